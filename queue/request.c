#include "queue/request.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void request_bytes(struct request *r, const void *bytes, size_t n)
{
    strbuf_printf(&r->wire, "$%zu\r\n", n);
    if (n)
        strbuf_add(&r->wire, bytes, n);
    strbuf_puts(&r->wire, "\r\n");
    r->n++;
}

void request_string(struct request *r, const char *s)
{
    request_bytes(r, s, s ? strlen(s) : 0);
}

void request_int(struct request *r, int64_t v)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%" PRId64, v);
    request_bytes(r, text, (size_t)n);
}

void request_strings(struct request *r, ...)
{
    va_list ap;
    va_start(ap, r);
    for (const char *s; (s = va_arg(ap, const char *));)
        request_string(r, s);
    va_end(ap);
}

void request_free(struct request *r)
{
    strbuf_free(&r->wire);
    *r = (struct request){0};
}
