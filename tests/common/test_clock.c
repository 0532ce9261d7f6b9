/* Clocks, their text, and back-off. */
#include <signal.h>
#include <time.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"

static void test_now(void **state)
{
    (void)state;
    int64_t wall = clock_wall_us(), mono = clock_mono_us();
    assert_true(llabs(wall / 1000000 - (int64_t)time(NULL)) <= 1);
    clock_sleep_us(20000);
    assert_in_range(clock_mono_us() - mono, 20000, 5000000);
    mono = clock_mono_us();
    clock_sleep_us(0);
    clock_sleep_us(-5);
    assert_in_range(clock_mono_us() - mono, 0, 1000000);
}

static void test_format(void **state)
{
    (void)state;
    char text[32];
    clock_format_utc(0, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    clock_format_utc(1767322445678901, text);
    assert_string_equal(text, "2026-01-02T02:54:05.678Z");
}

static void test_backoff(void **state)
{
    (void)state;
    int64_t low = INT64_MAX, high = 0;
    for (unsigned attempt = 0; attempt < 40; attempt++) {
        int64_t top = attempt < 10 ? 1000LL << attempt : 1000000;
        if (top > 1000000)
            top = 1000000;
        for (int i = 0; i < 100; i++) {
            int64_t us = clock_backoff_us(attempt, 1000, 1000000);
            assert_in_range(us, top / 2, top);
            if (!attempt) {
                low = us < low ? us : low;
                high = us > high ? us : high;
            }
        }
    }
    assert_true(high - low > 100);                              /* there is jitter */
    assert_int_equal(clock_backoff_us(UINT32_MAX, 0, 1000), 0); /* at once, not after 2^32 rounds */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_now),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_backoff),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
