/* URLs of a queue, taken apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    {"rediss://u:p@h:7/1", NULL, "h", 7, 1, "u", "p"},
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
    "redis-sentinel://h",
    "redis-sentinel:///name",
    "redis-sentinel://h,/name",
    "redis-sentinel://h:x/name",
    "redis-sentinel://h/name/x",
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
        equal(a.host.host, good[i].host);
        equal(a.user, good[i].user);
        equal(a.password, good[i].password);
        assert_int_equal(a.host.port, good[i].port);
        assert_int_equal(a.is_tls, !strncmp(good[i].url, "rediss", 6));
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

static void test_sentinels(void **state)
{
    (void)state;
    struct address a;
    struct err e;
    assert_int_equal(
        address_parse("redis-sentinel://u:p%40@h1,[::1]:70,h3:26380/farm%2d1/2", &a, &e), 0);
    assert_int_equal(a.n_sentinels, 3);
    assert_string_equal(a.sentinels[0].host, "h1");
    assert_int_equal(a.sentinels[0].port, 26379);
    assert_string_equal(a.sentinels[1].host, "::1");
    assert_int_equal(a.sentinels[1].port, 70);
    assert_int_equal(a.sentinels[2].port, 26380);
    assert_string_equal(a.service, "farm-1");
    assert_string_equal(a.user, "u");
    assert_string_equal(a.password, "p@");
    assert_int_equal(a.db, 2);
    assert_null(a.host.host);
    address_free(&a);
    char many[256] = "redis-sentinel://h";
    for (int i = 0; i < ADDRESS_SENTINELS_MAX; i++)
        strcat(many, ",h");
    strcat(many, "/n");
    assert_int_equal(address_parse(many, &a, &e), -ERR_USAGE);
}

static void password_is(const char *url, const char *want)
{
    struct address a;
    struct err e;
    assert_int_equal(address_parse(url, &a, &e), 0);
    assert_int_equal(address_add_password(&a, &e), 0);
    equal(a.password, want);
    address_free(&a);
}

static void test_password_outside(void **state)
{
    (void)state;
    char path[] = "/tmp/transcode-test-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "from file\n", 10), 10);
    close(fd);
    password_is("redis://u@h", NULL);
    setenv("TRANSCODE_REDIS_PASSWORD_FILE", path, 1);
    password_is("redis://u@h", "from file");
    setenv("TRANSCODE_REDIS_PASSWORD", "from env", 1);
    password_is("redis://h", "from env");
    password_is("redis://u:own@h", "own");
    password_is("unix:///s", NULL);
    unsetenv("TRANSCODE_REDIS_PASSWORD");
    unlink(path);
    struct address a;
    struct err e;
    assert_int_equal(address_parse("redis://h", &a, &e), 0);
    assert_int_equal(address_add_password(&a, &e), -ERR_CONFIG);
    assert_non_null(strstr(e.msg, path));
    address_free(&a);
    unsetenv("TRANSCODE_REDIS_PASSWORD_FILE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad),
                                       cmocka_unit_test(test_sentinels),
                                       cmocka_unit_test(test_password_outside)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
