/*
 * Properties of the timeline, each against an independent witness: frame n of a constant rate is
 * known by its number, so where it belongs follows from n alone, in plain integer arithmetic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "common/rational.h"
#include "pipelines/plan/timeline.h"

static const struct rational rates[] = {{24000, 1001}, {24, 1}, {25, 1},       {30000, 1001},
                                        {30, 1},       {50, 1}, {60000, 1001}, {60, 1}};
static const struct rational lengths[] = {{2, 1}, {4, 1}, {6, 1}, {6006, 1000}, {10, 1}};
static const struct rational bases[] = {{1, 1000},  {1, 90000},    {1, 15360},    {1, 30000},
                                        {1, 60000}, {1001, 30000}, {1001, 60000}, {1, 1000000000}};

enum { HOURS_3 = 3 * 3600, HOURS_100 = 100 * 3600 };

#define EACH(i, array) for (size_t i = 0; i < sizeof array / sizeof *array; i++)

static struct rational inverse(struct rational r)
{
    return (struct rational){r.den, r.num};
}

/* Tick of frame n in a time base, rounded as a muxer does. */
static int64_t tick_of(int64_t n, struct rational rate, struct rational base)
{
    return rational_rescale(n, inverse(rate), base, ROUND_NEAREST);
}

/* A base can carry a rate when no two frames share a tick. */
static bool is_usable(struct rational rate, struct rational base)
{
    return rational_cmp(base, inverse(rate)) <= 0;
}

static int64_t frames_in(int64_t seconds, struct rational rate)
{
    return seconds * rate.num / rate.den;
}

/* The witness: frame n of `rate` lies in segment k when k*D <= n/rate < (k+1)*D. */
static int64_t segment_of_frame(int64_t n, struct rational rate, struct rational d)
{
    return (int64_t)((__int128)n * rate.den * d.den / ((__int128)rate.num * d.num));
}

/* First frame of segment k by the same definition: ceil(k*D*rate). */
static int64_t first_frame(int64_t k, struct rational rate, struct rational d)
{
    __int128 num = (__int128)k * d.num * rate.num, den = (__int128)d.den * rate.den;
    return (int64_t)((num + den - 1) / den);
}

static struct timeline timeline_of(struct rational base, struct rational d, struct rational cfr)
{
    return (struct timeline){.time_base = base, .segment = d, .gop = {2, 1}, .cfr = cfr};
}

/* Whatever the time base rounds, frame n goes where n says: over 3 h frame by frame. */
static void test_constant_rate_has_no_drift(void **state)
{
    (void)state;
    EACH(r, rates)
    EACH(d, lengths)
    EACH(b, bases)
    {
        if (!is_usable(rates[r], bases[b]))
            continue;
        struct timeline tl = timeline_of(bases[b], lengths[d], rates[r]);
        int64_t step = d == 2 && b < 2 ? 1 : 29; /* every frame in the commonest cases */
        for (int64_t n = 0, end = frames_in(HOURS_3, rates[r]); n < end; n += step) {
            int64_t k = timeline_segment(&tl, tick_of(n, rates[r], bases[b]));
            if (k != segment_of_frame(n, rates[r], lengths[d]))
                fail_msg("rate %zu length %zu base %zu frame %lld: segment %lld", r, d, b,
                         (long long)n, (long long)k);
        }
    }
}

/* At hour 100 the border frame and its neighbours are still exactly where they belong. */
static void test_borders_at_hour_100(void **state)
{
    (void)state;
    EACH(r, rates)
    EACH(d, lengths)
    EACH(b, bases)
    {
        if (!is_usable(rates[r], bases[b]))
            continue;
        struct timeline tl = timeline_of(bases[b], lengths[d], rates[r]);
        int64_t last = segment_of_frame(frames_in(HOURS_100, rates[r]), rates[r], lengths[d]);
        for (int64_t k = last - 50; k < last; k++) {
            int64_t n = first_frame(k, rates[r], lengths[d]);
            assert_int_equal(timeline_segment(&tl, tick_of(n, rates[r], bases[b])), k);
            assert_int_equal(timeline_segment(&tl, tick_of(n - 1, rates[r], bases[b])), k - 1);
        }
    }
}

/* A video that starts late: snapping counts from its first frame, so the phase is kept. */
static void test_late_start_keeps_phase(void **state)
{
    (void)state;
    static const int64_t starts_ms[] = {1, 17, 21, 500, 5999};
    EACH(r, rates)
    EACH(s, starts_ms)
    {
        struct timeline tl =
            timeline_of((struct rational){1, 1000}, (struct rational){6, 1}, rates[r]);
        tl.start = starts_ms[s];
        for (int64_t n = 0; n < 40000; n++) {
            int64_t t = tl.start + tick_of(n, rates[r], tl.time_base);
            /* start/1000 + n*den/num < (k+1)*6, all over 1000*num */
            int64_t k = (tl.start * rates[r].num + 1000 * n * rates[r].den) / (6000 * rates[r].num);
            if (timeline_segment(&tl, t) != k)
                fail_msg("rate %zu start %zu frame %lld", r, s, (long long)n);
        }
    }
}

/* A repeatable pseudo-random sequence (SplitMix64). */
static uint64_t next_random(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* timeline_segment is monotone, so the first tick of segment k can be found by bisection. */
static int64_t bisect_start(const struct timeline *tl, int64_t k, int64_t lo, int64_t hi)
{
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (timeline_segment(tl, mid) >= k)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static void check_starts(const struct timeline *tl)
{
    int64_t length =
        rational_rescale(1, tl->segment, tl->time_base, ROUND_CEIL); /* ticks in a segment */
    int64_t far = rational_rescale(HOURS_100, (struct rational){1, 1}, tl->segment, ROUND_FLOOR);
    for (int64_t k = -2; k < 20; k++) {
        int64_t at = k < 12 ? k : far + k;
        int64_t near = rational_rescale(at, tl->segment, tl->time_base, ROUND_FLOOR);
        int64_t expected = bisect_start(tl, at, near - 2 * length, near + 2 * length);
        assert_int_equal(timeline_segment_start(tl, at), expected);
        assert_true(timeline_segment(tl, expected) >= at);
        assert_true(timeline_segment(tl, expected - 1) < at);
    }
}

static void test_segment_start_agrees_on_every_tick(void **state)
{
    (void)state;
    static const struct rational refs[] = {{0, 1}, {30, 1}, {30000, 1001}, {25, 1}, {24000, 1001}};
    static const int64_t starts[] = {0, 1, 333};
    EACH(d, lengths)
    EACH(b, bases)
    EACH(f, refs)
    EACH(s, starts)
    {
        struct timeline tl = timeline_of(bases[b], lengths[d], (struct rational){0, 1});
        tl.ref = refs[f];
        tl.start = starts[s];
        check_starts(&tl);
        EACH(r, rates)
        {
            tl.cfr = rates[r];
            check_starts(&tl);
        }
    }
}

/* Every cut of the segments into chunks of 1 to 12 takes each frame exactly once, in order. */
static void check_partition(const struct timeline *tl, const int64_t *pts, int64_t n)
{
    int64_t n_segments = timeline_segment(tl, pts[n - 1]) + 1;
    for (int64_t chunk = 1; chunk <= 12; chunk++) {
        int64_t next = 0; /* the frame that must come next */
        for (int64_t first = 0; first < n_segments; first += chunk) {
            int64_t from = timeline_segment_start(tl, first);
            int64_t to = timeline_segment_start(tl, first + chunk);
            for (int64_t i = next > 2 ? next - 2 : 0; i < n && pts[i] < to; i++) {
                bool is_in = timeline_segment(tl, pts[i]) >= first &&
                             timeline_segment(tl, pts[i]) < first + chunk;
                assert_int_equal(is_in, pts[i] >= from && pts[i] < to);
                if (is_in)
                    assert_int_equal(i, next++);
            }
        }
        assert_int_equal(next, n);
    }
}

enum { FRAMES = 3000 };

static void test_chunkings_partition_constant_rate(void **state)
{
    (void)state;
    static int64_t pts[FRAMES];
    EACH(r, rates)
    EACH(d, lengths)
    EACH(b, bases)
    {
        if (!is_usable(rates[r], bases[b]))
            continue;
        for (int64_t n = 0; n < FRAMES; n++)
            pts[n] = tick_of(n, rates[r], bases[b]);
        struct timeline tl = timeline_of(bases[b], lengths[d], rates[r]);
        check_partition(&tl, pts, FRAMES);
    }
}

/* Variable rate: gaps from one tick to several segments, with and without a slower grid. */
static void fill_vfr(int64_t *pts, int64_t n, struct rational base, uint64_t seed)
{
    int64_t second = rational_rescale(1, (struct rational){1, 1}, base, ROUND_CEIL), t = 0;
    for (int64_t i = 0; i < n; i++) {
        pts[i] = t;
        uint64_t kind = next_random(&seed) % 100;
        int64_t longest = kind < 90 ? second / 20 : kind < 99 ? second : 15 * second;
        t += 1 + (int64_t)(next_random(&seed) % (uint64_t)(longest + 1));
    }
}

static void test_chunkings_partition_variable_rate(void **state)
{
    (void)state;
    static int64_t pts[FRAMES];
    EACH(d, lengths)
    EACH(b, bases)
    for (uint64_t seed = 1; seed <= 3; seed++) {
        fill_vfr(pts, FRAMES, bases[b], seed);
        struct timeline tl = timeline_of(bases[b], lengths[d], (struct rational){0, 1});
        check_partition(&tl, pts, FRAMES);
        tl.ref = (struct rational){30, 1};
        check_partition(&tl, pts, FRAMES);
    }
}

/* Keyframes: every segment border is a GOP border too, where D is a whole multiple of G. */
static void test_segment_border_is_gop_border(void **state)
{
    (void)state;
    static const struct rational refs[] = {{0, 1}, {30000, 1001}, {25, 1}};
    EACH(r, rates)
    EACH(f, refs)
    {
        struct timeline tl =
            timeline_of((struct rational){1, 90000}, (struct rational){6, 1}, rates[r]);
        tl.ref = refs[f];
        int64_t k = 0, g = 0;
        for (int64_t n = 1; n < 20000; n++) {
            int64_t t = tick_of(n, rates[r], tl.time_base);
            int64_t next_k = timeline_segment(&tl, t), next_g = timeline_gop(&tl, t);
            assert_int_equal(next_k, next_g / 3);
            assert_true(next_k == k || next_g != g);
            k = next_k;
            g = next_g;
        }
    }
}

struct slower {
    struct rational source, grid;
};
static const struct slower halved[] = {{{60000, 1001}, {30000, 1001}},
                                       {{50, 1}, {25, 1}},
                                       {{60, 1}, {30, 1}},
                                       {{60, 1}, {20, 1}},
                                       {{120, 1}, {30, 1}}};

/* The faster rendition keeps source timing, the slower takes every d-th frame: both begin each
 * segment and each GOP with the same frame. */
static void test_whole_ratio_grids_share_borders(void **state)
{
    (void)state;
    EACH(i, halved)
    EACH(d, lengths)
    EACH(b, bases)
    {
        struct rational rate = halved[i].source, grid = halved[i].grid, base = bases[b];
        if (!is_usable(rate, base))
            continue;
        struct timeline tl = timeline_of(base, lengths[d], rate);
        tl.ref = grid;
        int64_t ratio = rational_div(rate, grid).num;
        int64_t k = 0, g = 0;
        for (int64_t n = 1; n < 12000; n++) {
            int64_t t = tick_of(n, rate, base);
            int64_t m = timeline_grid_tick(&tl, t, grid);
            assert_int_equal(m, (n + ratio - 1) / ratio);
            int64_t next_k = timeline_segment(&tl, t), next_g = timeline_gop(&tl, t);
            if (n % ratio == 0) {
                assert_int_equal(timeline_grid_segment(&tl, m, grid), next_k);
                assert_int_equal(timeline_grid_gop(&tl, m, grid), next_g);
            } else { /* no border may fall on a frame that the slower rendition lacks */
                assert_int_equal(next_k, k);
                assert_int_equal(next_g, g);
            }
            k = next_k;
            g = next_g;
        }
    }
}

/* VFR onto a grid: each tick is shown exactly once, and a chunk's ticks are those of its segments,
 * whatever the chunking. */
static void test_vfr_onto_grid(void **state)
{
    (void)state;
    static int64_t pts[FRAMES];
    struct rational grid = {30, 1};
    EACH(d, lengths)
    EACH(b, bases)
    for (uint64_t seed = 1; seed <= 3; seed++) {
        fill_vfr(pts, FRAMES, bases[b], seed);
        struct timeline tl = timeline_of(bases[b], lengths[d], (struct rational){0, 1});
        tl.ref = grid;
        int64_t next = 0;
        for (int64_t i = 0; i + 1 < FRAMES; i++) {
            int64_t from = timeline_grid_tick(&tl, pts[i], grid);
            int64_t to = timeline_grid_tick(&tl, pts[i + 1], grid);
            assert_int_equal(from, next);
            assert_true(to >= from);
            for (int64_t m = from; m < to; m++) {
                /* the frame shown has begun, and the next one has not */
                assert_true(rational_rescale(m, inverse(grid), bases[b], ROUND_FLOOR) >= pts[i]);
                assert_true(rational_rescale(m, inverse(grid), bases[b], ROUND_FLOOR) < pts[i + 1]);
                /* a tick that opens a later segment than the frame it shows: that frame is the last
                 * before the border, so one frame of context is enough */
                int64_t k = timeline_grid_segment(&tl, m, grid);
                assert_true(k >= timeline_segment(&tl, pts[i]));
                assert_true(k == timeline_segment(&tl, pts[i]) ||
                            timeline_segment(&tl, pts[i + 1]) >= k);
            }
            next = to;
        }
    }
}

static void test_audio_packets(void **state)
{
    (void)state;
    static const int sample_rates[] = {44100, 48000, 22050};
    static const int packets[] = {1024, 960, 1536};
    static const int64_t starts[] = {-1024, 0, 1, 4711, 400000};
    EACH(d, lengths)
    EACH(r, sample_rates)
    EACH(p, packets)
    EACH(s, starts)
    {
        int64_t last = -1;
        for (int64_t i = 0; i < 2000; i++) {
            int64_t k = i < 1000 ? i : i + 30000; /* and beyond 100 h for 10 s */
            int64_t at =
                timeline_audio_packet(lengths[d], sample_rates[r], starts[s], packets[p], k);
            __int128 border = (__int128)k * lengths[d].num * sample_rates[r];
            __int128 here = (__int128)(starts[s] + at * packets[p]) * lengths[d].den;
            assert_true(at >= 0 && at >= last);
            assert_true(here >= border);
            assert_true(at == 0 || here - (__int128)packets[p] * lengths[d].den < border);
            last = at;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant_rate_has_no_drift),
        cmocka_unit_test(test_borders_at_hour_100),
        cmocka_unit_test(test_late_start_keeps_phase),
        cmocka_unit_test(test_segment_start_agrees_on_every_tick),
        cmocka_unit_test(test_chunkings_partition_constant_rate),
        cmocka_unit_test(test_chunkings_partition_variable_rate),
        cmocka_unit_test(test_segment_border_is_gop_border),
        cmocka_unit_test(test_whole_ratio_grids_share_borders),
        cmocka_unit_test(test_vfr_onto_grid),
        cmocka_unit_test(test_audio_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
