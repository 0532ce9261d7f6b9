/* Exact arithmetic of times and rates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/rational.h"

static void assert_rational(struct rational r, int64_t num, int64_t den)
{
    assert_true(r.num == num);
    assert_true(r.den == den);
}

static void test_make_and_compare(void **state)
{
    (void)state;
    assert_rational(rational_make(60000, 2002), 30000, 1001);
    assert_rational(rational_make(-4, -6), 2, 3);
    assert_rational(rational_make(4, -6), -2, 3);
    assert_rational(rational_make(0, -7), 0, 1);
    assert_rational(rational_make(INT64_MAX, INT64_MAX), 1, 1);
    struct rational film = {24000, 1001}, pal = {25, 1};
    assert_true(rational_cmp(film, pal) < 0 && rational_cmp(pal, film) > 0);
    assert_int_equal(rational_cmp(film, (struct rational){48000, 2002}), 0);
    assert_true(rational_cmp((struct rational){INT64_MAX, 1}, (struct rational){INT64_MIN, 1}) > 0);
    assert_rational(rational_mul(film, (struct rational){1001, 24000}), 1, 1);
    assert_rational(rational_div(pal, film), 1001, 960);
    assert_rational(rational_div(film, (struct rational){-1, 1}), -24000, 1001);
    assert_true(rational_is_set(film) && !rational_is_set((struct rational){0, 1}));
    assert_true(rational_to_double((struct rational){1, 4}) == 0.25);
}

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t num, den;
    } good[] = {
        {"30000/1001", 30000, 1001},
        {"25", 25, 1},
        {"29.97", 2997, 100},
        {"0.04", 1, 25},
        {"-1.5", -3, 2},
        {"1.5/0.5", 3, 1},
        {"0", 0, 1},
        {".5", 1, 2},
        {"5.", 5, 1},
        {"007", 7, 1},
        {"-0", 0, 1},
        {"999999999999999999", 999999999999999999, 1},
    };
    static const char *const bad[] = {
        "",     "-",     ".",   "1/0", "1/0.0", "1//2", "1/2/3",
        "2s",   " 25",   "25 ", "1e3", "--1",   "1/-2", "+1",
        "0x10", "1.2.3", "1/",  "/2",  "nan",   "1,5",  "1234567890123456789"};
    struct rational r;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(rational_parse(good[i].text, &r), 0);
        assert_rational(r, good[i].num, good[i].den);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (rational_parse(bad[i], &r) == 0)
            fail_msg("accepted \"%s\"", bad[i]);
}

static void test_rounding(void **state)
{
    (void)state;
    struct rational half = {1, 2}, one = {1, 1};
    static const struct {
        int64_t t, floor, ceil, nearest;
    } cases[] = {
        {4, 2, 2, 2},     {5, 2, 3, 3}, {-4, -2, -2, -2},
        {-5, -3, -2, -3}, {1, 0, 1, 1}, {-1, -1, 0, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(rational_rescale(cases[i].t, half, one, ROUND_FLOOR), cases[i].floor);
        assert_int_equal(rational_rescale(cases[i].t, half, one, ROUND_CEIL), cases[i].ceil);
        assert_int_equal(rational_rescale(cases[i].t, half, one, ROUND_NEAREST), cases[i].nearest);
    }
}

/* Over a day, frame numbers of each rate become 90 kHz ticks, or milliseconds, and come back. */
static void test_no_drift(void **state)
{
    (void)state;
    static const struct rational rates[] = {{24000, 1001}, {24, 1}, {25, 1},       {30000, 1001},
                                            {50, 1},       {60, 1}, {60000, 1001}, {120, 1}};
    static const struct rational bases[] = {{1, 90000}, {1, 1000}, {1, 1000000}, {1001, 120000}};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        for (size_t k = 0; k < sizeof bases / sizeof bases[0]; k++) {
            struct rational frame = {rates[i].den, rates[i].num};
            int64_t n = 86400 * rates[i].num / rates[i].den;
            for (int64_t at = 0; at < n; at += 997) {
                int64_t t = rational_rescale(at, frame, bases[k], ROUND_NEAREST);
                __int128 exact = (__int128)at * frame.num * bases[k].den;
                __int128 unit = (__int128)frame.den * bases[k].num;
                __int128 off = 2 * (t * unit - exact);
                assert_true(off <= unit && off >= -unit); /* within half a tick */
                if (bases[k].den > 1000 * bases[k].num || rates[i].num < 120 * rates[i].den)
                    assert_int_equal(rational_rescale(t, bases[k], frame, ROUND_NEAREST), at);
            }
        }
}

static void test_extremes(void **state)
{
    (void)state;
    struct rational ns = {1, 1000000000}, day = {86400, 1};
    assert_int_equal(rational_rescale(INT64_MAX, ns, ns, ROUND_NEAREST), INT64_MAX);
    assert_int_equal(rational_rescale(INT64_MIN, ns, ns, ROUND_FLOOR), INT64_MIN);
    assert_int_equal(rational_rescale(INT64_MAX, day, ns, ROUND_NEAREST), INT64_MAX);
    assert_int_equal(rational_rescale(INT64_MIN, day, ns, ROUND_NEAREST), INT64_MIN);
    assert_int_equal(rational_rescale(INT64_MAX, ns, day, ROUND_FLOOR), INT64_MAX / 86400000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_make_and_compare), cmocka_unit_test(test_parse),
        cmocka_unit_test(test_rounding),         cmocka_unit_test(test_no_drift),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
