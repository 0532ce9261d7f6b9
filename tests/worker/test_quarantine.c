/* Which GPU gets work, minute by minute of a clock that the test turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/quarantine.h"

#define SECOND 1000000LL

static const struct err why = {ERR_DEVICE, "broken"};

static struct quarantine fresh(void)
{
    return (struct quarantine){.first_us = 30 * SECOND};
}

static void test_trouble_is_tested(void **unused)
{
    (void)unused;
    struct quarantine q = fresh();
    assert_string_equal(quarantine_state(&q, 0), "working");
    quarantine_suspect(&q, &why);
    assert_string_equal(quarantine_state(&q, 0), "suspect");
    quarantine_passed(&q);
    assert_string_equal(quarantine_state(&q, 0), "working");
    assert_string_equal(q.why.msg, "broken"); /* still told */
}

static void test_third_strike(void **unused)
{
    (void)unused;
    struct quarantine q = fresh();
    assert_false(quarantine_strike(&q, NULL, &why, SECOND));
    assert_false(quarantine_strike(&q, NULL, &why, 2 * SECOND));
    assert_true(quarantine_strike(&q, NULL, &why, 3 * SECOND));
    assert_true(quarantine_is_closed(&q, 3 * SECOND));
    assert_true(quarantine_is_closed(&q, 33 * SECOND - 1));
    assert_false(quarantine_is_closed(&q, 33 * SECOND));
    assert_string_equal(quarantine_state(&q, 33 * SECOND), "suspect"); /* to be tested again */
}

/* A source that breaks every GPU must not take them all. */
static void test_one_job_is_one_strike(void **unused)
{
    (void)unused;
    struct quarantine q = fresh();
    for (int i = 0; i < 20; i++)
        assert_false(quarantine_strike(&q, "a", &why, i * SECOND));
    assert_false(quarantine_strike(&q, "b", &why, 20 * SECOND));
    assert_false(quarantine_strike(&q, "a", &why, 21 * SECOND));
    assert_true(quarantine_strike(&q, "c", &why, 22 * SECOND));
}

static void test_strikes_lapse(void **unused)
{
    (void)unused;
    struct quarantine q = fresh();
    for (int i = 0; i < 20; i++) /* two in each window */
        assert_false(quarantine_strike(&q, NULL, &why, i * 301 * SECOND));
}

static void test_longer_each_time(void **unused)
{
    (void)unused;
    struct quarantine q = fresh();
    int64_t now_us = 0, length_us = 30 * SECOND;
    quarantine_close(&q, &why, now_us);
    for (int i = 0; i < 12; i++) {
        assert_true(q.until_us - now_us == length_us);
        now_us = q.until_us + SECOND;
        length_us = 2 * length_us < QUARANTINE_MAX_US ? 2 * length_us : QUARANTINE_MAX_US;
        if (i % 2) /* passing a test is not yet having been well */
            quarantine_passed(&q);
        assert_true(quarantine_strike(&q, i % 3 ? "a" : NULL, &why, now_us));
    }
    now_us = q.until_us + QUARANTINE_WINDOW_US; /* well for a window: all is forgotten */
    assert_false(quarantine_strike(&q, NULL, &why, now_us));
    quarantine_close(&q, &why, now_us);
    assert_true(q.until_us - now_us == 30 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trouble_is_tested),     cmocka_unit_test(test_third_strike),
        cmocka_unit_test(test_one_job_is_one_strike), cmocka_unit_test(test_strikes_lapse),
        cmocka_unit_test(test_longer_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
