/* Growing strings, UTF-8 and suggestions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "common/suggest.h"
#include "common/utf8.h"

static void test_strbuf(void **state)
{
    (void)state;
    cleanup(strbuf_free) struct strbuf b = {0};
    assert_null(b.s);
    strbuf_add(&b, "a\0b", 3);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.s, "a\0b", 4);
    b.len = 0;
    for (int i = 0; i < 10000; i++) {
        strbuf_printf(&b, "%d,", i % 10);
        assert_int_equal(b.len, 2 * (size_t)(i + 1));
        assert_int_equal(b.s[b.len], 0);
        assert_true(b.cap > b.len);
    }
    strbuf_printf(&b, "%05000d|", 7); /* longer than the room that is left */
    assert_int_equal(b.len, 25001);
    assert_string_equal(b.s + b.len - 3, "07|");
    assert_int_equal(strncmp(b.s, "0,1,2,", 6), 0);
    cleanup(free_ptr) char *taken = strbuf_take(&b);
    assert_int_equal(strlen(taken), 25001);
    assert_null(b.s);
    assert_int_equal(b.len, 0);
    cleanup(free_ptr) char *empty = strbuf_take(&b);
    assert_string_equal(empty, "");
    strbuf_printf(&b, "%s", "");
    assert_string_equal(b.s, "");
}

static void test_allocation(void **state)
{
    (void)state;
    cleanup(free_ptr) char *s = xasprintf("%d-%s", 1, "x");
    assert_string_equal(s, "1-x");
    assert_null(xstrdup(NULL));
    cleanup(free_ptr) int *zeroes = xcalloc(0, 0);
    assert_non_null(zeroes);
    zeroes = xrealloc_array(zeroes, 100, sizeof *zeroes);
    assert_non_null(zeroes);
    cleanup(free_ptr) int *moved = take(zeroes);
    assert_null(zeroes);
    assert_non_null(moved);
}

static void test_utf8(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "abc",
                                       "\x7F",
                                       "\xC2\x80",
                                       "\xDF\xBF",
                                       "\xE0\xA0\x80",
                                       "\xED\x9F\xBF",
                                       "\xEE\x80\x80",
                                       "\xEF\xBF\xBF",
                                       "\xF0\x90\x80\x80",
                                       "\xF4\x8F\xBF\xBF"};
    static const char *const bad[] = {"\x80",
                                      "\xBF",
                                      "\xC0\x80",
                                      "\xC1\xBF",
                                      "\xC2",
                                      "\xC2\x41",
                                      "\xE0\x9F\xBF",
                                      "\xE1\x80",
                                      "\xED\xA0\x80",
                                      "\xED\xBF\xBF",
                                      "\xF0\x8F\xBF\xBF",
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "\xF1\x80\x80",
                                      "\xFE",
                                      "\xFF"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(utf8_span(good[i], strlen(good[i])), strlen(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(utf8_span(bad[i], strlen(bad[i])), 0);
        cleanup(free_ptr) char *text = xasprintf("ab%s", bad[i]);
        assert_int_equal(utf8_span(text, strlen(text)), 2);
        cleanup(free_ptr) char *clean = utf8_clean(text);
        assert_int_equal(strncmp(clean, "ab\xEF\xBF\xBD", 5), 0);
        assert_int_equal(utf8_span(clean, strlen(clean)), strlen(clean));
    }
    for (unsigned long code = 1; code < 0x110000; code++) {
        char s[5] = "";
        size_t n = utf8_encode(code, s);
        bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
        assert_int_equal(n, is_surrogate     ? 0
                            : code < 0x80    ? 1
                            : code < 0x800   ? 2
                            : code < 0x10000 ? 3
                                             : 4);
        assert_int_equal(utf8_span(s, n), n);
    }
    assert_int_equal(utf8_encode(0x110000, (char[4]){0}), 0);
    char euro[4];
    assert_int_equal(utf8_encode(0x20AC, euro), 3);
    assert_memory_equal(euro, "\xE2\x82\xAC", 3);
}

static const char *closest(const char *word)
{
    static const char *const table[] = {"height", "width", "name", "bitrate", "maxrate", "id"};
    struct suggest s = {.word = word};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        suggest_try(&s, table[i]);
    return s.best ? s.best : "none";
}

static void test_suggest(void **state)
{
    (void)state;
    assert_string_equal(closest("heigth"), "height"); /* swapped */
    assert_string_equal(closest("hight"), "height");  /* left out */
    assert_string_equal(closest("widthh"), "width");  /* too many */
    assert_string_equal(closest("nama"), "name");     /* another */
    assert_string_equal(closest("bit_rate"), "bitrate");
    assert_string_equal(closest("birate"), "bitrate"); /* nearer than maxrate */
    assert_string_equal(closest("preset"), "none");
    assert_string_equal(closest("xxxx"), "none");
    assert_string_equal(closest(""), "none");
    assert_string_equal(closest("a-word-that-is-much-longer-than-any-table-would-have-it"), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strbuf),
        cmocka_unit_test(test_allocation),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_suggest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
