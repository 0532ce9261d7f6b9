/* A growing string. Owner: the caller; zero-initialise, strbuf_free at the end. Aborts when out of
 * memory, as all small allocations of the product do (see xcalloc). */
#pragma once
#include <stdarg.h>
#include <stddef.h>

struct strbuf {
    char *s; /* zero-terminated once anything was added, else NULL */
    size_t len, cap;
};

void strbuf_add(struct strbuf *b, const void *bytes, size_t n);
void strbuf_puts(struct strbuf *b, const char *s);
void strbuf_printf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vprintf(struct strbuf *b, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
char *strbuf_take(struct strbuf *b); /* the string (never NULL, caller frees); b is empty again */
void strbuf_free(struct strbuf *b);

/* Small allocations that end the process with a line on stderr instead of returning NULL. Sizes
 * that come from outside must be checked against a limit before they get here. */
void *xcheck(void *p); /* p, which must not be NULL */
void *xcalloc(size_t n, size_t size);
void *xrealloc_array(void *p, size_t n, size_t size);
char *xstrdup(const char *s); /* NULL gives NULL */
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
