#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipelines/media/cadence.h"

static const struct rational rates[] = {{24000, 1001}, {24, 1}, {25, 1},       {30000, 1001},
                                        {30, 1},       {50, 1}, {60000, 1001}, {60, 1}};

static void add_grid(struct cadence *c, struct rational rate, int frames)
{
    struct rational period = {rate.den, rate.num};
    for (int i = 0; i < frames; i++)
        cadence_add(c, 7000 + rational_rescale(i, period, c->time_base, ROUND_NEAREST));
}

static void standard_rates_are_exact_in_any_time_base(void **state)
{
    (void)state;
    static const int64_t bases[] = {1000, 90000, 1000000, 48000};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
        for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
            struct cadence c;
            struct rational got = {0, 1};
            cadence_init(&c, (struct rational){1, bases[b]}, NULL, 0);
            add_grid(&c, rates[r], 3000);
            assert_true(cadence_rate(&c, &got));
            assert_int_equal(rational_cmp(got, rates[r]), 0);
            assert_int_equal(c.frames, 3000);
        }
}

static void a_long_film_does_not_drift(void **state)
{
    (void)state;
    struct cadence c;
    struct rational got;
    cadence_init(&c, (struct rational){1, 1000}, NULL, 0);
    add_grid(&c, (struct rational){24000, 1001}, 3 * 3600 * 24);
    assert_true(cadence_rate(&c, &got));
    assert_int_equal(rational_cmp(got, (struct rational){24000, 1001}), 0);
}

static void an_odd_rate_is_taken_from_the_container(void **state)
{
    (void)state;
    struct rational odd = {23040000, 767849};
    struct cadence c;
    struct rational got;
    cadence_init(&c, (struct rational){1, 23040000}, &odd, 1);
    add_grid(&c, odd, 500);
    assert_true(cadence_rate(&c, &got));
    assert_int_equal(rational_cmp(got, odd), 0);
}

static void gaps_and_uneven_steps_are_no_rate(void **state)
{
    (void)state;
    struct cadence c;
    struct rational got, hint = {30, 1};
    cadence_init(&c, (struct rational){1, 90000}, &hint, 1);
    add_grid(&c, hint, 100);
    cadence_add(&c, 7000 + 101 * 3000); /* frame 100 is missing */
    assert_false(cadence_rate(&c, &got));
    assert_int_equal(c.max_interval, 6000);

    cadence_init(&c, (struct rational){1, 30}, &hint, 1);
    for (int i = 0; i < 240; i++) /* 24 frames/s on a track of 30 */
        cadence_add(&c, i * 5 / 4);
    assert_false(cadence_rate(&c, &got));
    assert_int_equal(c.max_interval, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standard_rates_are_exact_in_any_time_base),
        cmocka_unit_test(a_long_film_does_not_drift),
        cmocka_unit_test(an_odd_rate_is_taken_from_the_container),
        cmocka_unit_test(gaps_and_uneven_steps_are_no_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
