/*
 * Strict JSON (RFC 8259) into a value tree. The records of the product are JSON, and libyaml does
 * not read all of it: it refuses surrogate pairs, keys above 1024 bytes and some characters; it is
 * also an order of magnitude slower. Numbers keep the text they were written with.
 */
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "common/utf8.h"
#include "common/value_build.h"

struct reader {
    const char *p, *end;
    const char *mark; /* line and column are those of this byte; it trails p */
    int line, column;
    struct value_builder *b;
    struct strbuf text; /* of a string with escapes */
};

/* Moves the mark up to p, counting characters, not bytes. */
static void locate(struct reader *r)
{
    for (; r->mark < r->p; r->mark++) {
        if (*r->mark == '\n') {
            r->line++;
            r->column = 1;
        } else if ((*r->mark & 0xC0) != 0x80) {
            r->column++;
        }
    }
}

static char peek(const struct reader *r)
{
    return r->p < r->end ? *r->p : 0;
}

static bool skip(struct reader *r, char c)
{
    if (peek(r) != c)
        return false;
    r->p++;
    return true;
}

static void skip_blanks(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

static int read_hex4(struct reader *r, unsigned long *ret)
{
    *ret = 0;
    for (int i = 0; i < 4; i++, r->p++) {
        static const char digits[] = "0123456789abcdefABCDEF";
        const char *d = peek(r) ? strchr(digits, *r->p) : NULL;
        if (!d)
            return -1;
        size_t value = (size_t)(d - digits);
        *ret = *ret << 4 | (value < 16 ? value : value - 6);
    }
    return 0;
}

static int read_unicode(struct reader *r) /* after \u */
{
    unsigned long code, low;
    if (read_hex4(r, &code) < 0)
        return -1;
    if (code >= 0xD800 && code <= 0xDBFF) {
        if (!skip(r, '\\') || !skip(r, 'u') || read_hex4(r, &low) < 0 || low < 0xDC00 ||
            low > 0xDFFF)
            return -1;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    char bytes[4];
    size_t n = utf8_encode(code, bytes);
    strbuf_add(&r->text, bytes, n);
    return n && code ? 0 : -1;
}

static int read_escape(struct reader *r) /* after the backslash */
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (skip(r, 'u'))
        return read_unicode(r);
    const char *c = peek(r) ? strchr(from, *r->p) : NULL;
    if (!c)
        return -1;
    strbuf_add(&r->text, to + (c - from), 1);
    r->p++;
    return 0;
}

static int read_string(struct reader *r)
{
    locate(r);
    int line = r->line, column = r->column;
    const char *start = ++r->p;
    while (r->p < r->end && *r->p != '"' && *r->p != '\\' && (unsigned char)*r->p >= 0x20)
        r->p++;
    if (skip(r, '"')) /* most strings have no escapes */
        return value_builder_scalar(r->b, start, (size_t)(r->p - 1 - start), true, false, line,
                                    column);
    r->text.len = 0;
    strbuf_add(&r->text, start, (size_t)(r->p - start));
    while (!skip(r, '"')) {
        if (skip(r, '\\')) {
            if (read_escape(r) < 0)
                return -1;
            continue;
        }
        if ((unsigned char)peek(r) < 0x20) /* also the end of the text */
            return -1;
        strbuf_add(&r->text, r->p++, 1);
    }
    return value_builder_scalar(r->b, r->text.s, r->text.len, true, false, line, column);
}

static bool skip_digits(struct reader *r)
{
    const char *start = r->p;
    while (peek(r) >= '0' && peek(r) <= '9')
        r->p++;
    return r->p > start;
}

static int read_number(struct reader *r)
{
    locate(r);
    const char *start = r->p;
    skip(r, '-');
    if (!skip(r, '0') && !skip_digits(r))
        return -1;
    if (skip(r, '.') && !skip_digits(r))
        return -1;
    if (skip(r, 'e') || skip(r, 'E')) {
        if (!skip(r, '+'))
            skip(r, '-');
        if (!skip_digits(r))
            return -1;
    }
    return value_builder_scalar(r->b, start, (size_t)(r->p - start), false, false, r->line,
                                r->column);
}

static int read_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n))
        return -1;
    locate(r);
    r->p += n;
    return value_builder_scalar(r->b, word, n, false, *word == 'n', r->line, r->column);
}

static int read_value(struct reader *r);

/* A list or a map; they differ by their brackets and by "key:". The builder bounds the depth. */
static int read_entries(struct reader *r, enum value_kind kind, char close)
{
    locate(r);
    r->p++;
    if (value_builder_open(r->b, kind, r->line, r->column) < 0)
        return -1;
    skip_blanks(r);
    if (skip(r, close))
        return value_builder_close(r->b);
    do {
        skip_blanks(r);
        if (kind == VALUE_MAP) {
            if (peek(r) != '"' || read_string(r) < 0)
                return -1;
            skip_blanks(r);
            if (!skip(r, ':'))
                return -1;
        }
        if (read_value(r) < 0)
            return -1;
        skip_blanks(r);
    } while (skip(r, ','));
    return skip(r, close) ? value_builder_close(r->b) : -1;
}

static int read_value(struct reader *r)
{
    skip_blanks(r);
    switch (peek(r)) {
    case '{':
        return read_entries(r, VALUE_MAP, '}');
    case '[':
        return read_entries(r, VALUE_SEQ, ']');
    case '"':
        return read_string(r);
    case 't':
        return read_word(r, "true");
    case 'f':
        return read_word(r, "false");
    case 'n':
        return read_word(r, "null");
    default:
        return read_number(r);
    }
}

int value_read_json(struct value_builder *b, const char *text, size_t size)
{
    struct reader r = {.p = text, .end = text + size, .mark = text, .line = 1, .column = 1, .b = b};
    int rc = read_value(&r);
    skip_blanks(&r);
    strbuf_free(&r.text);
    if (rc == 0 && r.p == r.end)
        return 0;
    locate(&r);
    if (!value_builder_has_fault(b))
        value_builder_fault(b, r.line, r.column, "expected JSON, got a fault in it");
    return -1;
}
