/* The children of `run`, played by this program itself. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/supervise.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strbuf.h"

static void add_line(void *arg, const char *line)
{
    strbuf_printf(arg, "%s\n", line);
}

/* Until check says something else than "all live", or 5 s. */
static int check_until(struct supervisor *s, struct err *e)
{
    for (int i = 0; i < 500; i++) {
        int r = supervisor_check(s, e);
        if (r)
            return r;
        clock_sleep_us(10000);
    }
    return 0;
}

static void start(struct supervisor *s, const char *verb, const char *argument)
{
    struct err e = {0};
    const char *argv[] = {verb, argument, NULL};
    if (supervisor_start(s, argv, &e) < 0)
        fail_msg("%s", e.msg);
}

static void restarts_are_bounded(void **state)
{
    (void)state;
    struct err e = {0};
    struct strbuf said = {0};
    struct supervisor *s = supervisor_new(add_line, &said);
    start(s, "die", "1");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(check_until(s, &e), 1);
        assert_int_equal(supervisor_restart(s, &e), 0);
    }
    assert_int_equal(check_until(s, &e), -ERR_BUG);
    assert_non_null(strstr(e.msg, "die ended: exit code 1"));
    assert_non_null(strstr(said.s, "last words\n"));
    assert_non_null(strstr(said.s, "die ended: exit code 1; starting it again\n"));
    supervisor_free(&s);
    assert_null(s);
    strbuf_free(&said);
}

/* What would end the same way again is not started again, and its error is told once. */
static void hopeless_codes(void **state)
{
    (void)state;
    static const struct {
        const char *code;
        enum err_kind kind;
    } cases[] = {{"2", ERR_CONFIG}, {"3", ERR_INPUT}, {"5", ERR_DEVICE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err e = {0};
        struct strbuf said = {0};
        struct supervisor *s = supervisor_new(add_line, &said);
        start(s, "die", cases[i].code);
        assert_int_equal(check_until(s, &e), -(int)cases[i].kind);
        assert_string_equal(said.s, "a warning\n");
        assert_string_equal(e.msg, "last words");
        supervisor_free(&s);
        strbuf_free(&said);
    }
}

static void stops_in_order(void **state)
{
    (void)state;
    struct err e = {0};
    struct strbuf said = {0};
    struct supervisor *s = supervisor_new(add_line, &said);
    start(s, "obey", "first");
    start(s, "obey", "second");
    for (int i = 0; i < 500 && (!said.s || !strstr(said.s, "first ready\n") ||
                                !strstr(said.s, "second ready\n"));
         i++) {
        assert_int_equal(supervisor_check(s, &e), 0);
        clock_sleep_us(10000);
    }
    supervisor_stop(s, 5000000, NULL);
    const char *second = strstr(said.s, "second stopped\n"),
               *first = strstr(said.s, "first stopped\n");
    assert_non_null(second);
    assert_non_null(first);
    assert_true(second < first);
    supervisor_free(&s);
    strbuf_free(&said);
}

static bool now(void)
{
    return true;
}

static void kills_the_deaf(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct err e = {0};
        struct strbuf said = {0};
        struct supervisor *s = supervisor_new(add_line, &said);
        start(s, "deaf", "x");
        for (int k = 0; k < 500 && !said.s; k++) {
            assert_int_equal(supervisor_check(s, &e), 0);
            clock_sleep_us(10000);
        }
        int64_t start_us = clock_mono_us();
        supervisor_stop(s, i ? 60000000 : 200000, i ? now : NULL);
        int64_t took_us = clock_mono_us() - start_us;
        assert_true(took_us < 3000000 && (i || took_us >= 200000));
        supervisor_free(&s);
        strbuf_free(&said);
    }
}

static volatile sig_atomic_t is_asked;

static void on_term(int signal)
{
    (void)signal;
    is_asked = 1;
}

static int child(const char *verb, const char *argument)
{
    if (!strcmp(verb, "die")) {
        fputs("a warning\ntranscode: die: last words\n", stderr);
        return atoi(argument);
    }
    signal(SIGTERM, strcmp(verb, "deaf") ? on_term : SIG_IGN);
    fprintf(stderr, "%s ready\n", argument);
    while (!is_asked)
        clock_sleep_us(20000);
    fprintf(stderr, "%s stopped\n", argument);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return child(argv[1], argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restarts_are_bounded),
        cmocka_unit_test(hopeless_codes),
        cmocka_unit_test(stops_in_order),
        cmocka_unit_test(kills_the_deaf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
