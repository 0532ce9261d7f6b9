/* The error type: messages that can go anywhere, and what follows from a kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/err.h"
#include "common/utf8.h"

static void test_set(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(err_set(&e, ERR_INPUT, "a\n%s\r\t%d", "b\x1b[31m", 3), -ERR_INPUT);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.msg, "a b [31m  3");
    assert_int_equal(err_set(NULL, ERR_DEVICE, "x"), -ERR_DEVICE);
    assert_int_equal(err_set(&e, ERR_BUG, "again: %s", e.msg), -ERR_BUG); /* its own text */
    assert_string_equal(e.msg, "again: a b [31m  3");
    err_set(&e, ERR_INPUT, "n\xFFm\xC3");
    assert_string_equal(e.msg, "n?m?");
}

static void test_long_messages_are_cut_between_characters(void **state)
{
    (void)state;
    struct err e = {0};
    char text[3 * ERR_MSG_MAX] = "";
    for (size_t i = 0; i + 3 < sizeof text; i += 3)
        memcpy(text + i, "\xE2\x82\xAC", 3);
    for (int shift = 0; shift < 3; shift++) {
        err_set(&e, ERR_INPUT, "%.*s%s", shift, "ab", text);
        size_t n = strlen(e.msg);
        assert_in_range(n, ERR_MSG_MAX - 4, ERR_MSG_MAX - 1);
        assert_int_equal(utf8_span(e.msg, n), n);
        assert_null(strchr(e.msg, '?'));
    }
}

static void test_prefix(void **state)
{
    (void)state;
    struct err e = {0};
    err_set(&e, ERR_TRANSIENT, "redis is away");
    assert_int_equal(err_prefix(&e, "job %s", "7f3a"), -ERR_TRANSIENT);
    assert_string_equal(e.msg, "job 7f3a: redis is away");
    assert_int_equal(err_prefix(NULL, "x"), -ERR_BUG);
    for (int i = 0; i < 500; i++)
        err_prefix(&e, "layer");
    assert_int_equal(strlen(e.msg), ERR_MSG_MAX - 1);
    assert_int_equal(strncmp(e.msg, "layer: layer: ", 14), 0);
}

static void test_kinds(void **state)
{
    (void)state;
    static const struct {
        enum err_kind kind;
        const char *name;
        int exit_code;
        bool is_permanent;
    } kinds[] = {
        {ERR_NONE, "none", 0, false},
        {ERR_USAGE, "usage", 2, true},
        {ERR_CONFIG, "config", 2, true},
        {ERR_INPUT, "input", 3, true},
        {ERR_TRANSIENT, "transient", 4, false},
        {ERR_RESOURCE, "resource", 4, false},
        {ERR_DEVICE, "device", 5, false},
        {ERR_CANCELLED, "cancelled", 1, true},
        {ERR_BUG, "bug", 1, false},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        assert_string_equal(err_kind_name(kinds[i].kind), kinds[i].name);
        assert_int_equal(err_kind_parse(kinds[i].name), kinds[i].kind);
        assert_int_equal(err_exit_code(kinds[i].kind), kinds[i].exit_code);
        assert_int_equal(err_is_permanent(kinds[i].kind), kinds[i].is_permanent);
        assert_in_range(err_http_status(kinds[i].kind), 200, 599);
        assert_non_null(err_exit_meaning(kinds[i].exit_code));
    }
    assert_int_equal(err_kind_parse("nonsense"), ERR_BUG);
    assert_int_equal(err_kind_parse(NULL), ERR_BUG);
    assert_string_equal(err_kind_name(99), "bug");
    assert_int_equal(err_exit_code(-1), 1);
    assert_non_null(err_exit_meaning(6));
    assert_null(err_exit_meaning(7));
    assert_null(err_exit_meaning(-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_long_messages_are_cut_between_characters),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
