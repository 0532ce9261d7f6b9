/* A Redis command in the making, in its wire form, so that arguments are copied once and a command
 * can be sent again behind another head (EVALSHA, then EVAL). Owner: the caller; zero-initialise,
 * request_free at the end. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "common/strbuf.h"

struct request {
    size_t n; /* arguments */
    struct strbuf wire;
};

void request_bytes(struct request *r, const void *bytes, size_t n);
void request_string(struct request *r, const char *s); /* NULL: empty */
void request_int(struct request *r, int64_t v);
/* All of them; the list ends with NULL. */
void request_strings(struct request *r, ...) __attribute__((sentinel));
void request_free(struct request *r);
