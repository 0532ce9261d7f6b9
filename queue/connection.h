/*
 * One connection to Redis that reconnects by itself. A call is sent, and sent again after a lost
 * connection or a passing error (LOADING, READONLY, ...), with back-off, until it was answered or
 * retry_us are over: so every command that goes through here must be safe to repeat.
 *
 * Thread: one.
 */
#pragma once
#include <hiredis/hiredis.h>

#include "common/err.h"
#include "queue/request.h"

struct connection;

/* Parses the URL; connects with the first call. ERR_USAGE: not a URL of a queue. wake_fd: while it
 * is readable no call blocks in the server; 0: none. It stays the caller's. */
int connection_new(const char *url, int64_t retry_us, int wake_fd, struct connection **ret,
                   struct err *e);
void connection_free(struct connection **c);
const char *connection_name(const struct connection *c); /* the URL without secrets */

/* Sends the command `head` + `tail` (tail may be NULL) and waits for the reply; block_us: how long
 * the command itself may block in the server. *ret is never an error, except NOSCRIPT, and NULL
 * only where wake_fd cut a blocking call short. Returns 0, -ERR_TRANSIENT, -ERR_CONFIG (not
 * permitted), -ERR_BUG (any other error reply). */
int connection_call(struct connection *c, const struct request *head, const struct request *tail,
                    int64_t block_us, redisReply **ret, struct err *e);

/* Refuses (ERR_CONFIG) a server that is too old or may evict keys; warns, once a process, of one
 * without persistence. */
int connection_check(struct connection *c, struct err *e);

void reply_free(redisReply **reply);
