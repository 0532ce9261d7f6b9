/* Where chunks are cut: every frame in exactly one chunk, decoding begins in time, little in vain.
 */
#include "fixture.h"

#include "common/clock.h"

static const struct rational fps25 = {25, 1}, fps30 = {30, 1}, six = {6, 1}, four = {4, 1};

static char *profile_of(int segment)
{
    return xasprintf("{encoder: x, segment: %d, renditions: [{height: 360, crf: 20}]}", segment);
}

struct cut {
    struct source *source;
    struct plan *plan;
    struct plan_chunk *chunks;
    size_t n;
};

static void cut_free(struct cut *c)
{
    bind_free(&source_type, &c->source);
    bind_free(&plan_type, &c->plan);
    free(c->chunks);
}

static struct cut cut_source(struct source *source, int segment, double seconds)
{
    struct cut c = {.source = source};
    cleanup(free_ptr) char *profile = profile_of(segment);
    c.plan = fixture_plan(profile, source);
    assert_int_equal(plan_chunks(c.plan, source, seconds, &c.chunks, &c.n, NULL), 0);
    return c;
}

static struct cut cut_video(struct rational rate, int64_t frames, int64_t gop, int segment,
                            double seconds)
{
    struct source *source = fixture_video(1280, 720, rate, frames);
    fixture_borders(source, gop, (struct rational){segment, 1});
    return cut_source(source, segment, seconds);
}

/* Frames decoded before the first wanted frame, over all chunks, relative to the source: the
 * keyframe grid of fixture_borders is the witness. */
static double waste(const struct cut *c)
{
    const struct source_video *v = c->source->video;
    struct rational interval = {v->frame_rate.den, v->frame_rate.num};
    int64_t vain = 0;
    for (size_t i = 1; i < c->n; i++) {
        int64_t first =
            rational_rescale(c->chunks[i].first_segment, c->plan->segment, interval, ROUND_CEIL);
        int64_t from = c->chunks[i].seek_pts == INT64_MIN
                           ? 0
                           : rational_rescale(c->chunks[i].seek_pts - v->start, v->time_base,
                                              interval, ROUND_NEAREST);
        assert_true(from <= first);
        vain += first - from;
    }
    return (double)(v->frames + vain) / (double)v->frames;
}

static void assert_partition(const struct cut *c)
{
    struct timeline tl;
    plan_timeline(c->plan, &tl);
    int64_t frames = 0;
    int64_t interval = c->source->video->is_cfr ? c->source->video->max_interval : 1;
    assert_true(c->n >= 1);
    assert_int_equal(c->chunks[0].first_segment, 0);
    assert_int_equal(c->chunks[c->n - 1].end_segment, INT64_MAX);
    assert_true(c->chunks[c->n - 1].first_segment < c->plan->n_segments);
    for (size_t i = 0; i < c->n; i++) {
        const struct plan_chunk *k = &c->chunks[i];
        assert_int_equal(k->index, i);
        assert_true(k->end_segment > k->first_segment);
        if (i + 1 < c->n)
            assert_int_equal(k->end_segment, c->chunks[i + 1].first_segment);
        if (i > 0 && k->seek_pts != INT64_MIN) /* no frame before the keyframe is wanted */
            assert_true(timeline_segment(&tl, k->seek_pts - c->plan->origin - interval) <
                        k->first_segment);
        assert_true(k->frames >= 0);
        frames += k->frames;
    }
    assert_int_equal(c->chunks[0].seek_pts, INT64_MIN);
    assert_int_equal(frames, c->source->video->frames);
}

static void test_every_length_is_a_partition(void **state)
{
    (void)state;
    static const struct rational rates[] = {{24000, 1001}, {25, 1}, {30000, 1001}, {60, 1}};
    static const int gops[] = {1, 12, 48, 250, 100000};
    for (size_t r = 0; r < 4; r++)
        for (size_t g = 0; g < 5; g++)
            for (int segments = 0; segments <= 12; segments++)
                for (int64_t frames = 1; frames < 20000; frames = frames * 3 + 7) {
                    cleanup(cut_free) struct cut c =
                        cut_video(rates[r], frames, gops[g], 4, 4.0 * segments);
                    assert_partition(&c);
                }
}

/* Where a keyframe stands at every border, an asked length is kept to the segment. */
static void test_asked_length_is_kept(void **state)
{
    (void)state;
    for (int segments = 1; segments <= 12; segments++) {
        cleanup(cut_free) struct cut c = cut_video(fps25, 25 * 4 * 12, 50, 4, 4.0 * segments);
        assert_int_equal(c.n, (12 + segments - 1) / segments);
        for (size_t i = 0; i < c.n; i++)
            assert_int_equal(c.chunks[i].first_segment, (int)i * segments);
        assert_true(waste(&c) == 1);
    }
    cleanup(cut_free) struct cut rounded = cut_video(fps25, 25 * 48, 50, 4, 9.9); /* 8 s */
    assert_int_equal(rounded.n, 6);
    cleanup(cut_free) struct cut tiny = cut_video(fps25, 25 * 48, 50, 4, 0.01);
    assert_int_equal(tiny.n, 12);
    cleanup(cut_free) struct cut huge = cut_video(fps25, 25 * 48, 50, 4, 1e300);
    assert_int_equal(huge.n, 1);
}

static void test_default_lengths(void **state)
{
    (void)state;
    cleanup(cut_free) struct cut hour = cut_video(fps25, 25 * 3600, 50, 6, 0);
    assert_int_equal(hour.n, 75); /* 48 s */
    for (size_t i = 1; i < hour.n; i++)
        assert_int_equal(hour.chunks[i].first_segment - hour.chunks[i - 1].first_segment, 8);
    cleanup(cut_free) struct cut minute = cut_video(fps25, 25 * 60, 50, 6, 0);
    assert_int_equal(minute.n, 4); /* 18 + 18 + 12 + 12 s: long ones first */
    assert_int_equal(minute.chunks[1].first_segment, 3);
    assert_int_equal(minute.chunks[2].first_segment, 6);
    assert_int_equal(minute.chunks[3].first_segment, 8);
    cleanup(cut_free) struct cut second = cut_video(fps25, 25, 50, 6, 0);
    assert_int_equal(second.n, 1);
    cleanup(cut_free) struct cut frame = cut_video(fps25, 1, 50, 6, 0);
    assert_int_equal(frame.n, 1);
}

/* 10 s between keyframes against 6 s segments. */
static void test_waste_with_long_gops(void **state)
{
    (void)state;
    static const struct {
        struct rational rate;
        int64_t seconds, gop;
        double most;
    } cases[] = {
        {{30, 1}, 60, 300, 1.0},         {{30, 1}, 120, 300, 1.0},
        {{25, 1}, 600, 250, 1.0},        {{30, 1}, 3600, 300, 1.0},
        {{30, 1}, 3607, 300, 1.01},      {{24000, 1001}, 3600, 240, 1.05},
        {{30000, 1001}, 600, 300, 1.05}, {{25, 1}, 3600, 263, 1.05},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t frames = cases[i].seconds * cases[i].rate.num / cases[i].rate.den;
        cleanup(cut_free) struct cut c = cut_video(cases[i].rate, frames, cases[i].gop, 6, 0);
        assert_partition(&c);
        if (waste(&c) > cases[i].most || (cases[i].seconds > 300 && c.n < 5))
            fail_msg("case %zu: waste %.3f with %zu chunks", i, waste(&c), c.n);
    }
    /* asked for 16 s with 4 s segments: cut at 20 s, where the keyframes are */
    cleanup(cut_free) struct cut asked = cut_video(fps25, 25 * 120, 250, 4, 16);
    assert_true(waste(&asked) == 1);
    assert_int_equal(asked.n, 6);
}

static void test_borders_of_another_segment_length(void **state)
{
    (void)state;
    struct source *s = fixture_video(1280, 720, fps25, 25 * 600);
    fixture_borders(s, 250, four);
    cleanup(cut_free) struct cut c = cut_source(s, 6, 0);
    assert_partition(&c);
    assert_true(c.n > 5);
    for (size_t i = 1; i < c.n; i++) {
        assert_true(c.chunks[i].seek_pts % 900000 == 0); /* a keyframe */
        int64_t start = c.chunks[i].first_segment * 6 * 90000;
        assert_true(start - c.chunks[i].seek_pts < (10 + 4) * 90000);
    }
}

static void test_one_chunk_where_seeking_is_impossible(void **state)
{
    (void)state;
    struct source *s = fixture_video(1280, 720, fps25, 25 * 600);
    fixture_borders(s, 250, six);
    s->video->is_sequential = true;
    cleanup(cut_free) struct cut sequential = cut_source(s, 6, 12);
    assert_int_equal(sequential.n, 1);
    assert_partition(&sequential);
    cleanup(cut_free) struct cut unknown =
        cut_source(fixture_video(1280, 720, fps25, 25 * 600), 6, 12);
    assert_int_equal(unknown.n, 1);
    assert_partition(&unknown);
}

static void test_no_chunks_for_audio_only(void **state)
{
    (void)state;
    cleanup(fixture_free_source) struct source *s =
        fixture_source("{duration: 100, audio: [{sample_rate: 48000, channels: 2}]}");
    cleanup(fixture_free_plan) struct plan *plan = fixture_plan("{audio: [{bitrate: 96k}]}", s);
    struct plan_chunk *chunks;
    size_t n;
    assert_int_equal(plan_chunks(plan, s, 0, &chunks, &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_null(chunks);
}

/* Deinterlacing needs the frame before the border: the keyframe must lie strictly before it. */
static void test_context_moves_the_seek_point(void **state)
{
    (void)state;
    static const int gops[] = {1, 25, 50, 150, 250};
    for (size_t g = 0; g < 5; g++) {
        struct source *s = fixture_video(1280, 720, fps25, 25 * 600);
        fixture_borders(s, gops[g], six);
        s->video->is_interlaced = true;
        cleanup(cut_free) struct cut c = cut_source(s, 6, 18);
        assert_int_equal(c.plan->context, 1);
        for (size_t i = 1; i < c.n; i++)
            assert_true(c.chunks[i].seek_pts < c.chunks[i].first_segment * 6 * 90000);
    }
}

/* Rounded to milliseconds, a keyframe can lie before the border by its timestamp and still be the
 * first frame behind it: it is no context. */
static void test_rounded_keyframe_is_no_context(void **state)
{
    (void)state;
    struct source *s = fixture_source(
        "{video: {width: 640, height: 360, time_base: 1/1000, end: 10010, frames: 300, is_cfr: "
        "true,"
        " frame_rate: 30000/1001, max_interval: 34, is_interlaced: true, border_segment: 1001/300,"
        " borders: [{key_pts: 0, frames: 100}, {key_pts: 6673, frames: 1}]}}");
    cleanup(cut_free) struct cut c = {.source = s};
    c.plan = fixture_plan("{encoder: x, gop: 1001/300, segment: 1001/300,"
                          " renditions: [{height: 360, crf: 20}]}",
                          s);
    assert_int_equal(plan_chunks(c.plan, s, 3.3, &c.chunks, &c.n, NULL), 0);
    assert_int_equal(c.n, 3);
    assert_int_equal(c.chunks[2].seek_pts, 0);
    s->video->is_interlaced = false;
    cleanup(cut_free) struct cut without = {.source = bind_copy(&source_type, s)};
    without.plan = fixture_plan("{encoder: x, gop: 1001/300, segment: 1001/300,"
                                " renditions: [{height: 360, crf: 20}]}",
                                s);
    assert_int_equal(plan_chunks(without.plan, s, 3.3, &without.chunks, &without.n, NULL), 0);
    assert_int_equal(without.chunks[2].seek_pts, 6673);
}

/* The video begins after the audio: a chunk must not consist of the silence before it. */
static void test_late_video(void **state)
{
    (void)state;
    struct source *s = fixture_video(1280, 720, fps25, 25 * 60);
    s->video->start += 30 * 90000;
    s->video->end += 30 * 90000;
    s->video->border_segment = six;
    for (int64_t k = 1; k < 15; k++) {
        s->video->borders = xrealloc_array(s->video->borders, (size_t)k, sizeof *s->video->borders);
        s->video->borders[k - 1] = (struct source_border){.key_pts = k * 6 * 90000};
    }
    s->video->n_borders = 14;
    for (int64_t k = 0; k < 5; k++) /* nothing before the first frame */
        s->video->borders[k].key_pts = INT64_MIN;
    cleanup(cut_free) struct cut c = cut_source(s, 6, 6);
    assert_int_equal(c.n, 10);
    assert_int_equal(c.chunks[0].first_segment, 0);
    assert_int_equal(c.chunks[0].end_segment, 6);
    assert_int_equal(c.chunks[9].first_segment, 14);
}

/* A picture that stands still for 50 s must not leave a chunk without a frame. */
static void test_sparse_variable_rate(void **state)
{
    (void)state;
    struct source *s = fixture_source(
        "{video: {width: 640, height: 360, time_base: 1/1000, end: 600000, frames: 40,"
        " frame_rate: 1/15, max_interval: 50000}}");
    s->video->border_segment = six;
    for (int64_t k = 1; k < 92; k++) {
        s->video->borders = xrealloc_array(s->video->borders, (size_t)k, sizeof *s->video->borders);
        s->video->borders[k - 1] = (struct source_border){.key_pts = k * 6000};
    }
    s->video->n_borders = 91;
    cleanup(cut_free) struct cut c = cut_source(s, 6, 6);
    assert_partition(&c);
    assert_true(c.n > 5);
    for (size_t i = 0; i + 1 < c.n; i++)
        assert_true((c.chunks[i].end_segment - c.chunks[i].first_segment) * 6000 >= 50000);
}

/* The dearest case that limits allow must not hold up a dispatcher. */
static void test_time_is_bounded(void **state)
{
    (void)state;
    struct source *s = fixture_video(640, 360, fps25, 25LL * 100 * 3600);
    fixture_borders(s, 250, (struct rational){1, 1});
    int64_t begin = clock_mono_us();
    cleanup(cut_free) struct cut c = cut_source(s, 2, 3600);
    assert_partition(&c);
    assert_true(clock_mono_us() - begin < 20 * 1000000);
}

static void test_record(void **state)
{
    (void)state;
    cleanup(cut_free) struct cut c = cut_video(fps30, 30 * 60, 30, 6, 6);
    for (size_t i = 0; i < c.n; i++) {
        cleanup(free_ptr) char *text = bind_dump(&plan_chunk_type, &c.chunks[i]);
        struct plan_chunk *again = fixture_read(&plan_chunk_type, text);
        assert_memory_equal(again, &c.chunks[i], sizeof *again);
        bind_free(&plan_chunk_type, &again);
    }
    assert_int_equal(c.chunks[0].seek_pts, INT64_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length_is_a_partition),
        cmocka_unit_test(test_asked_length_is_kept),
        cmocka_unit_test(test_default_lengths),
        cmocka_unit_test(test_waste_with_long_gops),
        cmocka_unit_test(test_borders_of_another_segment_length),
        cmocka_unit_test(test_one_chunk_where_seeking_is_impossible),
        cmocka_unit_test(test_no_chunks_for_audio_only),
        cmocka_unit_test(test_context_moves_the_seek_point),
        cmocka_unit_test(test_rounded_keyframe_is_no_context),
        cmocka_unit_test(test_late_video),
        cmocka_unit_test(test_sparse_variable_rate),
        cmocka_unit_test(test_time_is_bounded),
        cmocka_unit_test(test_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
