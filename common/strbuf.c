#include "common/strbuf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *xcheck(void *p)
{
    if (!p) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return p;
}

void *xcalloc(size_t n, size_t size)
{
    return xcheck(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc_array(void *p, size_t n, size_t size)
{
    return xcheck(reallocarray(p, n ? n : 1, size ? size : 1));
}

char *xstrdup(const char *s)
{
    return s ? xcheck(strdup(s)) : NULL;
}

char *xasprintf(const char *fmt, ...)
{
    struct strbuf b = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vprintf(&b, fmt, ap);
    va_end(ap);
    return strbuf_take(&b);
}

static void reserve(struct strbuf *b, size_t n)
{
    if (n > SIZE_MAX / 2 - b->len)
        xcheck(NULL);
    size_t need = b->len + n + 1;
    if (need <= b->cap)
        return;
    b->cap = need < 64 ? 64 : need + need / 2;
    b->s = xrealloc_array(b->s, b->cap, 1);
}

void strbuf_add(struct strbuf *b, const void *bytes, size_t n)
{
    reserve(b, n);
    if (n)
        memcpy(b->s + b->len, bytes, n);
    b->len += n;
    b->s[b->len] = 0;
}

void strbuf_puts(struct strbuf *b, const char *s)
{
    strbuf_add(b, s, strlen(s));
}

void strbuf_vprintf(struct strbuf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    reserve(b, 0);
    int n = vsnprintf(b->s + b->len, b->cap - b->len, fmt, ap);
    if (n < 0)
        xcheck(NULL);
    if ((size_t)n >= b->cap - b->len) {
        reserve(b, (size_t)n);
        vsnprintf(b->s + b->len, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    b->len += (size_t)n;
}

void strbuf_printf(struct strbuf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    strbuf_vprintf(b, fmt, ap);
    va_end(ap);
}

char *strbuf_take(struct strbuf *b)
{
    char *s = b->s ? b->s : xstrdup("");
    *b = (struct strbuf){0};
    return s;
}

void strbuf_free(struct strbuf *b)
{
    free(b->s);
    *b = (struct strbuf){0};
}
