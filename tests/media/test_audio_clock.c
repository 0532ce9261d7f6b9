/* Where audio belongs: arithmetic alone, against positions worked out by hand or by brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pipelines/media/audio_clock.h"

static const struct rational ms = {1, 1000};

static void position_is_the_nearest_sample(void **state)
{
    (void)state;
    struct rational t90k = {1, 90000}, one = {1, 1};
    assert_int_equal(audio_clock_position(0, ms, 0, one, 48000), 0);
    assert_int_equal(audio_clock_position(90000 * 3, t90k, 1, one, 48000), 96000);
    assert_int_equal(audio_clock_position(1, t90k, 0, one, 48000), 1); /* 0.533 */
    assert_int_equal(audio_clock_position(-1, t90k, 0, one, 48000), -1);
    assert_int_equal(audio_clock_position(3, t90k, 0, one, 44100), 1); /* 1.47 */
    assert_int_equal(audio_clock_position(-3, t90k, 0, one, 44100), -1);
    /* origin on a video tick of another base: 1001/30000 s = 1601.6 samples */
    assert_int_equal(audio_clock_position(0, t90k, 1001, (struct rational){1, 30000}, 48000),
                     -1602);
    /* three hours on: no drift */
    assert_int_equal(audio_clock_position(10800LL * 90000 + 1, t90k, 0, one, 44100),
                     10800LL * 44100);
    assert_int_equal(audio_clock_position(INT64_MAX, one, INT64_MIN, one, 768000),
                     AUDIO_CLOCK_NONE);
}

static struct audio_place place(struct audio_clock *c, int64_t position, int64_t samples)
{
    struct audio_place p;
    audio_clock_place(c, position, samples, false, &p);
    return p;
}

static void assert_place(struct audio_place p, int64_t silence, int64_t skip, int64_t take)
{
    assert_int_equal(p.silence, silence);
    assert_int_equal(p.skip, skip);
    assert_int_equal(p.take, take);
}

/* Millisecond timestamps of 1024-sample frames over three hours: not one sample put in or left out.
 */
static void rounded_timestamps_neither_drift_nor_click(void **state)
{
    (void)state;
    const int rates[] = {44100, 48000, 22050, 96000};
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        struct audio_clock c;
        audio_clock_init(&c, ms, rates[r], 0);
        int64_t frames = 3 * 3600 * (int64_t)rates[r] / 1024;
        for (int64_t i = 0; i < frames; i++) {
            int64_t pts = i * 1024 * 1000 / rates[r]; /* rounded down, as some muxers do */
            int64_t at = audio_clock_position(pts, ms, 0, (struct rational){1, 1}, rates[r]);
            assert_place(place(&c, at, 1024), 0, 0, 1024);
        }
        assert_int_equal(c.next, frames * 1024);
    }
}

static void gaps_are_filled_overlaps_cut(void **state)
{
    (void)state;
    struct audio_clock c;
    audio_clock_init(&c, (struct rational){1, 48000}, 48000, 1000);
    assert_place(place(&c, 1000, 1024), 0, 0, 1024);
    assert_place(place(&c, 2024 + 480, 1024), 0, 0, 1024);   /* 10 ms: still jitter */
    assert_place(place(&c, 3048 + 481, 1024), 481, 0, 1024); /* more: a gap */
    assert_int_equal(c.next, 4553);
    assert_place(place(&c, 4553 - 600, 1024), 0, 600, 424);      /* an overlap */
    assert_place(place(&c, 4977 - 5000, 1024), 0, 1024, 0);      /* wholly behind */
    assert_place(place(&c, AUDIO_CLOCK_NONE, 1024), 0, 0, 1024); /* no timestamp: follows */
    assert_int_equal(c.next, 6001);
    assert_int_equal(c.filled, 481);
    assert_int_equal(c.cut, 1624);
    struct audio_place p;
    audio_clock_place(&c, 6001 + 120, 100, true, &p); /* 2.5 ms are a gap when a loss is known */
    assert_place(p, 120, 0, 100);
}

static void nothing_lies_before_the_start(void **state)
{
    (void)state;
    struct audio_clock c;
    audio_clock_init(&c, (struct rational){1, 48000}, 48000, 5000);
    assert_place(place(&c, 3000, 1024), 0, 1024, 0);
    assert_false(c.is_started);
    assert_int_equal(audio_clock_fill(&c, 9000), 0); /* nothing to fill before the first frame */
    assert_place(place(&c, 4024, 1024), 0, 976, 48);
    assert_int_equal(c.next, 5048);
    /* a late start is no gap */
    audio_clock_init(&c, (struct rational){1, 48000}, 48000, 0);
    assert_place(place(&c, 96000, 1024), 0, 0, 1024);
    assert_int_equal(c.next, 97024);
    /* before the origin by less than a tick: moved, not cut */
    audio_clock_init(&c, ms, 48000, 0);
    assert_place(place(&c, -48, 1024), 0, 0, 1024);
    assert_int_equal(c.next, 1024);
}

static void fill_and_change_of_rate(void **state)
{
    (void)state;
    struct audio_clock c;
    audio_clock_init(&c, ms, 48000, 0);
    place(&c, 0, 48000);
    assert_int_equal(audio_clock_fill(&c, 48000), 0);
    assert_int_equal(audio_clock_fill(&c, 40000), 0);
    assert_int_equal(audio_clock_fill(&c, 50000), 2000);
    assert_int_equal(c.next, 50000);
    audio_clock_set_rate(&c, 24000);
    assert_place(place(&c, 25000, 512), 0, 0, 512);
    assert_int_equal(c.next, 25512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(position_is_the_nearest_sample),
        cmocka_unit_test(rounded_timestamps_neither_drift_nor_click),
        cmocka_unit_test(gaps_are_filled_overlaps_cut),
        cmocka_unit_test(nothing_lies_before_the_start),
        cmocka_unit_test(fill_and_change_of_rate),
    };
    return cmocka_run_group_tests_name("audio_clock", tests, NULL, NULL);
}
