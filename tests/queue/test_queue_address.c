/* URLs of a queue, taken apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "queue/address.h"

static const struct {
    const char *url, *path, *host;
    int port, db;
    const char *user, *password;
} good[] = {
    {"redis://h", NULL, "h", 6379, 0, NULL, NULL},
    {"redis://h/", NULL, "h", 6379, 0, NULL, NULL},
    {"redis://h:1234/7", NULL, "h", 1234, 7, NULL, NULL},
    {"redis://:p@h:1", NULL, "h", 1, 0, NULL, "p"},
    {"redis://u:p%40%2f:@h", NULL, "h", 6379, 0, "u", "p@/:"},
    {"redis://[::1]:70/2", NULL, "::1", 70, 2, NULL, NULL},
    {"redis://[fe80::2]", NULL, "fe80::2", 6379, 0, NULL, NULL},
    {"unix:///run/redis.sock", "/run/redis.sock", NULL, 0, 0, NULL, NULL},
    {"unix:///a%20b?db=3", "/a b", NULL, 0, 3, NULL, NULL},
};

static const char *const bad[] = {
    "",
    "h:6379",
    "http://h",
    "redis://",
    "redis://:1",
    "redis://h:",
    "redis://h:x",
    "redis://h:99999",
    "redis://h/x",
    "redis://h/-1",
    "redis://[::1",
    "unix://run/s",
    "unix:///",
    "unix:///s?x=1",
    "redis://h?x=1",
    "rediss://h",
    "redis://u:p@",
    "redis://[::1]x",
};

static void equal(const char *a, const char *b)
{
    if (!a || !b)
        assert_ptr_equal(a, b);
    else
        assert_string_equal(a, b);
}

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct address a;
        struct err e;
        assert_int_equal(address_parse(good[i].url, &a, &e), 0);
        equal(a.path, good[i].path);
        equal(a.host, good[i].host);
        equal(a.user, good[i].user);
        equal(a.password, good[i].password);
        assert_int_equal(a.port, good[i].port);
        assert_int_equal(a.db, good[i].db);
        address_free(&a);
    }
}

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct address a;
        struct err e;
        if (address_parse(bad[i], &a, &e) != -ERR_USAGE)
            fail_msg("%s was taken", bad[i]);
        assert_non_null(strstr(e.msg, "redis://"));
    }
    struct address a;
    struct err e;
    assert_int_equal(address_parse(NULL, &a, &e), -ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
