/* Where a Redis is: a URL taken apart. redis://[[user]:password@]host[:port][/db] or
 * unix:///path/to/socket[?db=N]; user and password percent-encoded. */
#pragma once
#include "common/err.h"

struct address {
    char *path; /* of a Unix socket; NULL: host and port */
    char *host;
    int port, db;
    char *user, *password; /* or NULL */
};

int address_parse(const char *url, struct address *ret, struct err *e); /* ERR_USAGE */
void address_free(struct address *a);
