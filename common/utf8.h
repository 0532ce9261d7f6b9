/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. Pure. */
#pragma once
#include <stddef.h>

/* Length of the longest valid prefix of s[0..n): n when all of it is valid. */
size_t utf8_span(const char *s, size_t n);

/* Writes the code point to s (room for 4 bytes) and returns the bytes written; 0 for what is not a
 * Unicode scalar value. */
size_t utf8_encode(unsigned long code, char *s);

/* A copy with every invalid byte replaced by U+FFFD (caller frees). */
char *utf8_clean(const char *s);
