/* TLS on a connection to Redis, where this program was built with it (hiredis_ssl, OpenSSL). */
#pragma once
#include <hiredis/hiredis.h>

#include "common/err.h"

/* Shakes hands on a connected context, and verifies the certificate and that it is `host`'s.
 * Authorities are the system's, or those in the file that TRANSCODE_REDIS_CA names. ERR_CONFIG: no
 * TLS in this program, or that file is bad; ERR_TRANSIENT: the handshake failed, with the reason.
 */
int tls_start(redisContext *c, const char *host, struct err *e);
