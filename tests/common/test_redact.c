/* Redaction: what must go, what must stay, and on random text: never longer, twice is once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/strbuf.h"

static const struct {
    const char *given, *expected;
} cases[] = {
    /* URLs: passwords, users that may be tokens, queries, fragments */
    {"redis://user:hunter2@host:6379/0", "redis://user:***@host:6379/0"},
    {"redis://:ab@host", "redis://:**@host"},
    {"redis://:a@h: refused", "redis://:*@h: refused"},
    {"redis://:@host", "redis://:@host"},
    {"https://ghp_abc123@github.com/x", "https://***@github.com/x"},
    {"redis://u:p@ss:w@host/0", "redis://u:***@host/0"},
    {"redis://:pa/ss@host:1/0", "redis://:***@host:1/0"},
    {"redis://:pa?s#s@host:1/0", "redis://:***@host:1/0"},
    {"job 7: open https://h/k?X-Amz-Signature=abc&list-type=2: 403",
     "job 7: open https://h/k?X-Amz-Signature=***&list-type=*: 403"},
    {"\"https://h/k?sastoken\", then", "\"https://h/k?***\", then"},
    {"https://h/#access_token=abcd&x", "https://h/#access_token=***&x"},
    {"see <https://h/doc#install>", "see <https://h/doc#install>"},
    {"a redis://u:p1234@h b redis://u:q1234@i c", "a redis://u:***@h b redis://u:***@i c"},
    {"redis+sentinel://:secret@h", "redis+sentinel://:***@h"},
    /* headers */
    {"Authorization: Bearer abc.def", "Authorization: ***"},
    {"curl -H \"authorization: Basic Zm9v\" https://h/",
     "curl -H \"authorization: ***\" https://h/"},
    {"{\"Authorization\": \"Bearer abcd\", \"a\": 1}", "{\"Authorization\": \"***\", \"a\": 1}"},
    {"Authorization: AWS4-HMAC-SHA256 Credential=AK/x, Signature=00", "Authorization: ***"},
    {"sent Bearer abc.def now", "sent Bearer *** now"},
    {"Set-Cookie: id=1; path=/", "Set-Cookie: ***"},
    {"X-Amz-Security-Token: FwoG", "X-Amz-Security-Token: ***"},
    /* assignments */
    {"GET /b/k?X-Amz-Signature=abc&X-Amz-Date=1 failed", "GET /b/k?X-Amz-Signature=*** failed"},
    {"AWS_SECRET_ACCESS_KEY=abcd AWS_REGION=eu", "AWS_SECRET_ACCESS_KEY=*** AWS_REGION=eu"},
    {"S3_SECRET=abcd WEBHOOK_TOKEN='a b' x", "S3_SECRET=*** WEBHOOK_TOKEN='***' x"},
    {"password=hunter2, user=x", "password=*** user=x"},
    {"Password : hunter2", "Password : ***"},
    {"\"password\":\"a\\\"b\",\"user\":\"x\"", "\"password\":\"***\",\"user\":\"x\""},
    {"{'api-key' : 'abcd'}", "{'api-key' : '***'}"},
    {"\"token\": \"abcd\"", "\"token\": \"***\""},
    {"run --password hunter2 --redis-password=hunter2 -o x",
     "run --password *** --redis-password=*** -o x"},
    {"password=", "password="},
    /* what must stay */
    {"", ""},
    {"jansson: unexpected token: 'x' near line 3", "jansson: unexpected token: 'x' near line 3"},
    {"https://host:8080/a@b/c:d", "https://host:8080/a@b/c:d"},
    {"redis://[::1]:6379/0", "redis://[::1]:6379/0"},
    {"unix:///run/user@host/redis.sock", "unix:///run/user@host/redis.sock"},
    {"s3://bucket/poster@2x.png is missing", "s3://bucket/poster@2x.png is missing"},
    {"profile.yaml:3:5: renditions[0].height: expected a whole number, got \"x\"",
     "profile.yaml:3:5: renditions[0].height: expected a whole number, got \"x\""},
    {"tokens=5 passwords are secret", "tokens=5 passwords are secret"},
    {"frame=12 fps=30 speed=2x", "frame=12 fps=30 speed=2x"},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cleanup(free_ptr) char *line = xstrdup(cases[i].given);
        log_redact(line);
        if (strcmp(line, cases[i].expected))
            fail_msg("%s\nexpected %s\ngot      %s", cases[i].given, cases[i].expected, line);
        log_redact(line);
        assert_string_equal(line, cases[i].expected);
    }
}

/* Random lines made of the pieces that the rules look for. A secret that was put where a rule must
 * find it is gone; the buffer's end is exact, so that ASan sees a step beyond it. */
static void test_random(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "redis://", "user:",     "@",  "host", "/",      "?",        "&",       "=",
        "#",        " ",         "\"", "'",    ":",      "\\",       "Bearer ", "Authorization:",
        "token",    "password=", "--", "[",    "secret", "\xC3\xA9", "***",     "12",
        "\t"};
    enum { PIECES = sizeof pieces / sizeof pieces[0] };
    uint32_t seed = 1;
    for (int round = 0; round < 50000; round++) {
        struct strbuf b = {0};
        seed = seed * 1664525 + 1013904223;
        for (unsigned i = 0, n = seed >> 28; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            strbuf_puts(&b, pieces[(seed >> 16) % PIECES]);
        }
        strbuf_puts(&b, round % 2 ? " password=S3CR3T" : " redis://u:S3CR3T@h");
        cleanup(free_ptr) char *line = xstrdup(b.s);
        log_redact(line);
        assert_true(strlen(line) <= b.len);
        if (strstr(line, "S3CR3T"))
            fail_msg("%s\nleaves %s", b.s, line);
        strbuf_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
