/*
 * Where a Redis is: a URL taken apart.
 *
 *     redis://[[user]:password@]host[:port][/db]
 *     rediss://...                                  the same over TLS
 *     unix:///path/to/socket[?db=N]
 *     redis-sentinel://[[user]:password@]host[:port][,host[:port]...]/name[/db]
 *
 * User and password are percent-encoded. A URL with a user but no password, or without either, gets
 * the password from TRANSCODE_REDIS_PASSWORD or from the first line of the file that
 * TRANSCODE_REDIS_PASSWORD_FILE names, where one of them is set: so it needs to stand in no command
 * line. (Not with a Unix socket.) Sentinels are asked without a password; user and password are the
 * master's.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

enum { ADDRESS_SENTINELS_MAX = 16 };

struct address_host {
    char *host;
    int port;
};

struct address {
    char *path;               /* of a Unix socket; NULL: host and port */
    struct address_host host; /* NULL with sentinels */
    struct address_host sentinels[ADDRESS_SENTINELS_MAX];
    size_t n_sentinels;
    char *service; /* what the sentinels call the master */
    int db;
    bool is_tls;
    char *user, *password; /* or NULL */
};

int address_parse(const char *url, struct address *ret, struct err *e); /* ERR_USAGE */
/* Fills in the password from the environment, as above. ERR_CONFIG: the file cannot be read. */
int address_add_password(struct address *a, struct err *e);
void address_free(struct address *a);
