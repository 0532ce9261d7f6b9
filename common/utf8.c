#include "common/utf8.h"

#include <string.h>

#include "common/strbuf.h"

/* Length of the character at s, or 0. The first byte's class gives the length and the range that
 * the second byte must lie in; that alone excludes overlong forms, surrogates and the beyond. */
static size_t character(const unsigned char *s, size_t n)
{
    static const struct {
        unsigned char first, last, len, second_min, second_max;
    } classes[] = {
        {0x00, 0x7F, 1, 0, 0},       {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF},
        {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF},
        {0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
    };
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (s[0] < classes[i].first || s[0] > classes[i].last)
            continue;
        size_t len = classes[i].len;
        if (len > n || (len > 1 && (s[1] < classes[i].second_min || s[1] > classes[i].second_max)))
            return 0;
        for (size_t k = 2; k < len; k++)
            if ((s[k] & 0xC0) != 0x80)
                return 0;
        return len;
    }
    return 0;
}

size_t utf8_span(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        size_t len = character((const unsigned char *)s + i, n - i);
        if (!len)
            break;
        i += len;
    }
    return i;
}

size_t utf8_encode(unsigned long code, char *s)
{
    if (code < 0x80) {
        s[0] = (char)code;
        return 1;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return 0;
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, code >>= 6)
        s[i] = (char)(0x80 | (code & 0x3F));
    s[0] = (char)((0xF00 >> len & 0xFF) | code);
    return len;
}

char *utf8_clean(const char *s)
{
    struct strbuf b = {0};
    size_t n = strlen(s);
    for (;;) {
        size_t valid = utf8_span(s, n);
        strbuf_add(&b, s, valid);
        if (valid == n)
            return strbuf_take(&b);
        strbuf_puts(&b, "\xEF\xBF\xBD");
        s += valid + 1;
        n -= valid + 1;
    }
}
