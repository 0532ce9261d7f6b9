/* A private redis-server on a Unix socket, for `run` and for tests: found on PATH, started with
 * appendonly yes, appendfsync everysec, noeviction, no TCP port, its data in `dir`, dying with its
 * parent (PR_SET_PDEATHSIG). It has a session of its own, so that a Ctrl-C in the terminal is not
 * its end. Thread: the one that starts it must live as long as the server. */
#pragma once
#include "common/err.h"

struct embedded_redis;

/* dir: exists, private; a data set left there by an earlier run is loaded again. The socket lies in
 * a short private temporary directory, since socket paths are limited to 107 bytes. ERR_CONFIG: no
 * redis-server on PATH, with the package to install. */
int embedded_redis_start(const char *dir, struct embedded_redis **ret, struct err *e);
const char *embedded_redis_url(const struct embedded_redis *r); /* unix:///... */
void embedded_redis_stop(
    struct embedded_redis **r); /* SIGTERM (data is flushed), waits, kills after 5 s */
int embedded_redis_pid(const struct embedded_redis *r);
