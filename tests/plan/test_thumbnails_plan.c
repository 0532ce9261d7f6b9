/* Thumbnails as planned: which ones a chunk makes, how large, what the gate lets through, and the
 * WebVTT track. */
#include "pipelines/plan/thumbnails.h"
#include "tests/plan/fixture.h"

#define PROFILE(rest)                                                                           \
    "{encoder: libx264, gop: 1, segment: 2, thumbnails: {every: 5/2, height: 90}, renditions: " \
    "[{height: 360, crf: 23}]" rest "}"

static struct plan *plan_of(const char *profile, int width, int height, struct rational rate,
                            int64_t frames)
{
    cleanup(fixture_free_source) struct source *s = fixture_video(width, height, rate, frames);
    return fixture_plan(profile, s);
}

/* --- shares ------------------------------------------------------------------------------------
 */

/* Whatever the borders, each step belongs to exactly one chunk. */
static void check_partition(const struct plan *plan)
{
    for (int64_t chunks = 1; chunks <= 12; chunks++) {
        int64_t next = 0;
        for (int64_t c = 0; c < chunks; c++) {
            bool is_last = c + 1 == chunks;
            int64_t first, end;
            struct plan_chunk chunk = {
                .first_segment = plan->n_segments * c / chunks,
                .end_segment = is_last ? INT64_MAX : plan->n_segments * (c + 1) / chunks,
            };
            thumbnails_share(plan, &chunk, &first, &end);
            if (c)
                assert_int_equal(first, next);
            else
                assert_true(first <= 0);
            assert_true(end >= first);
            next = end;
        }
        assert_int_equal(next, INT64_MAX);
    }
}

static void test_each_step_is_one_chunks(void **state)
{
    (void)state;
    static const struct {
        const char *every, *more;
        struct rational rate;
    } rows[] = {
        {"5/2", "", {25, 1}},
        {"1", "", {30000, 1001}},
        {"10", "", {24000, 1001}},
        {"1001/1000", "", {60000, 1001}},
        {"3600", "", {25, 1}},
        {"4/3", ", fps_policy: fixed, fps: 10", {25, 1}},
        {"1", "", {1, 4} /* steps without a frame */},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cleanup(free_ptr) char *text =
            xasprintf("{encoder: libx264, gop: 1, segment: 2, thumbnails: {every: %s}, renditions: "
                      "[{height: 360, crf: 23%s}]}",
                      rows[i].every, rows[i].more);
        cleanup(fixture_free_plan) struct plan *plan =
            plan_of(text, 640, 360, rows[i].rate, 1 + 60 * rows[i].rate.num / rows[i].rate.den);
        check_partition(plan);
        plan->start = 4567; /* later than the sound */
        check_partition(plan);
        plan->cfr = (struct rational){0, 1};
        check_partition(plan);
    }
}

/* --- what is planned ---------------------------------------------------------------------------
 */

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *video;
        int width, height;
    } rows[] = {
        {"width: 1920, height: 1080", 160, 90},
        {"width: 1920, height: 1080, rotation: 90", 90, 160}, /* a phone's: the short side */
        {"width: 720, height: 576, sample_aspect: 64/45", 160, 90},
        {"width: 96, height: 54", 96, 54}, /* never enlarged */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cleanup(fixture_free_source) struct source *s = fixture_source(
            "{video: {%s, time_base: 1/25, end: 100, frames: 100, frame_rate: 25, is_cfr: true, "
            "max_interval: 1}, duration: 4}",
            rows[i].video);
        cleanup(fixture_free_plan) struct plan *plan = fixture_plan(PROFILE(""), s);
        assert_int_equal(plan->thumbnails->width, rows[i].width);
        assert_int_equal(plan->thumbnails->height, rows[i].height);
    }
}

static void test_off_by_default(void **state)
{
    (void)state;
    cleanup(fixture_free_plan) struct plan *plan =
        plan_of("{encoder: libx264, renditions: [{height: 360, crf: 23}]}", 640, 360,
                rational_make(25, 1), 100);
    assert_null(plan->thumbnails);
    cleanup(fixture_free_source) struct source *sound = fixture_source(
        "{audio: [{codec: aac, sample_rate: 48000, channels: 2, end: 480000, time_base: 1/48000}], "
        "duration: 10, origin_base: 1/48000}");
    cleanup(fixture_free_plan) struct plan *audio_only =
        fixture_plan(PROFILE(", audio: [{bitrate: 96k}]"), sound);
    assert_null(audio_only->thumbnails);
}

/* A ladder that stays HDR gets SDR thumbnails where tone mapping can make them. */
static void test_hdr(void **state)
{
    (void)state;
    static const struct {
        const char *profile, *space;
        bool is_tonemapped;
    } rows[] = {
        {PROFILE(", hdr: as-is, pix_fmt: yuv420p10le"), "bt2020nc", true},
        {PROFILE(", hdr: as-is, pix_fmt: yuv420p10le"), "ictcp", false},
        {PROFILE(", hdr: as-is"), "bt2020nc", false},
        {PROFILE(", hdr: tonemap"), "bt2020nc", false}, /* like the ladder, and before it */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cleanup(fixture_free_source) struct source *s = fixture_source(
            "{video: {width: 640, height: 360, time_base: 1/25, end: 100, frames: 100, frame_rate: "
            "25, is_cfr: true, max_interval: 1, bit_depth: 10, color_transfer: smpte2084, "
            "color_space: %s, max_cll: 650}, duration: 4}",
            rows[i].space);
        cleanup(fixture_free_plan) struct plan *plan = fixture_plan(rows[i].profile, s);
        assert_int_equal(plan->thumbnails->is_tonemapped, rows[i].is_tonemapped);
        if (rows[i].is_tonemapped)
            assert_int_equal(plan->peak_nits, 650);
    }
}

static void check_refused(const char *profile_text, const char *source_more, const char *expected)
{
    cleanup(fixture_free_source) struct source *s = fixture_source(
        "{video: {width: 640, height: 360, time_base: 1/25, end: 100, frames: 100, frame_rate: 25, "
        "is_cfr: true, max_interval: 1}, %s}",
        source_more);
    cleanup(fixture_free_profile) struct profile *profile =
        fixture_read(&profile_type, profile_text);
    struct plan *plan = NULL;
    struct err e = {0};
    assert_int_equal(plan_make(profile, s, &(struct plan_options){.segments = -1}, &plan, &e),
                     -ERR_CONFIG);
    if (!strstr(e.msg, expected))
        fail_msg("%s", e.msg);
}

static void test_refusals(void **state)
{
    (void)state;
    check_refused(PROFILE(", pix_fmt: yuv444p"), "duration: 4", "not of pix_fmt yuv444p");
    check_refused(PROFILE(""), "duration: 250003", "more than 100000 thumbnails; raise every");
}

/* --- the gate ----------------------------------------------------------------------------------
 */

enum { TICKS = 3600 }; /* a frame: 25/s in 1/90000 */

/* Chunk [4 s, 10 s): the steps that begin within are those at 5 and 7.5 s. */
static const struct plan_chunk middle = {.index = 1, .first_segment = 2, .end_segment = 5};

static void check_gate(const struct plan *plan, struct manifest_thumbnail *list, size_t n,
                       struct manifest more, const char *expected)
{
    struct err e = {.msg = "accepted"};
    more.thumbnails = list;
    more.n_thumbnails = n;
    int rc = thumbnails_check(&more, plan, &middle, &e);
    if (expected ? rc != -ERR_BUG || !strstr(e.msg, expected) : rc != 0)
        fail_msg("expected %s: %s", expected ? expected : "acceptance", e.msg);
}

static void test_gate(void **state)
{
    (void)state;
    cleanup(fixture_free_plan) struct plan *plan =
        plan_of(PROFILE(""), 640, 360, rational_make(25, 1), 500);
    struct manifest whole = {0}, damaged = {.damaged = 1}, truncated = {.is_truncated = true};
    const struct manifest_thumbnail good[] = {{2, 125 * TICKS, 100, "a.jpg"},
                                              {3, 188 * TICKS, 100, "b.jpg"}};
    static const struct {
        size_t row;
        struct manifest_thumbnail bad;
        const char *expected;
    } rows[] = {
        {0, {1, 63 * TICKS, 100, "a.jpg"}, "thumbnail 1: it is not of this chunk"},
        {1, {4, 250 * TICKS, 100, "a.jpg"}, "thumbnail 4: it is not of this chunk"},
        {1,
         {2, 126 * TICKS, 100, "a.jpg"},
         "thumbnail 2: it is not of this chunk, or out of order"},
        {1, {3, 187 * TICKS, 100, "a.jpg"}, "thumbnail 3: it shows a frame of another time"},
        {1, {3, 188 * TICKS, 0, "a.jpg"}, "no bytes"},
        {1, {3, 188 * TICKS, 100, "../a.jpg"}, "slash"},
        {1, {3, 188 * TICKS, 100, NULL}, "missing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct manifest_thumbnail list[2] = {good[0], good[1]};
        list[rows[i].row] = rows[i].bad;
        check_gate(plan, list, 2, whole, rows[i].expected);
    }
    struct manifest_thumbnail list[2] = {good[0], good[1]};
    check_gate(plan, list, 2, whole, NULL);
    check_gate(plan, list, 1, whole, "thumbnail 3 is missing");
    check_gate(plan, list + 1, 1, whole, "thumbnail 3: one before it is missing");
    check_gate(plan, NULL, 0, damaged, NULL);
    check_gate(plan, list + 1, 1, damaged, NULL);
    check_gate(plan, list, 1, truncated, NULL);
    bind_free(&plan_type, &plan);
    plan = plan_of("{encoder: libx264, segment: 2, renditions: [{height: 360, crf: 23}]}", 640, 360,
                   rational_make(25, 1), 500);
    check_gate(plan, list, 2, whole, "2 thumbnails, planned none");
    check_gate(plan, NULL, 0, whole, NULL);
}

/* --- the track ---------------------------------------------------------------------------------
 */

static void test_track(void **state)
{
    (void)state;
    cleanup(fixture_free_plan) struct plan *plan =
        plan_of(PROFILE(""), 640, 360, rational_make(25, 1), 500);
    struct thumbnails_track *t = thumbnails_track_new(plan);
    struct manifest_track video = {.time_base = {1, 90000}, .end = 3 * 90000};
    struct manifest_thumbnail first[] = {{0, 0, 9, "a.jpg"}, {1, 63 * TICKS, 9, "b.jpg"}};
    struct manifest_thumbnail last[] = {{1440, 1440 * 225000, 9, "c.jpg"}};
    struct manifest m = {.tracks = &video, .n_tracks = 1, .thumbnails = first, .n_thumbnails = 2};
    assert_int_equal(thumbnails_track_add(t, &m, NULL), 0);
    m.n_thumbnails = 0; /* a chunk shorter than a step */
    assert_int_equal(thumbnails_track_add(t, &m, NULL), 0);
    m.thumbnails = last; /* steps without a frame in between: the source stood still */
    m.n_thumbnails = 1;
    video.end = 3601 * 90000 + 1;
    assert_int_equal(thumbnails_track_add(t, &m, NULL), 0);
    struct err e;
    assert_int_equal(thumbnails_track_add(t, &m, &e), -ERR_BUG);
    cleanup(free_ptr) char *text = thumbnails_track_finish(t);
    thumbnails_track_free(&t);
    assert_string_equal(text, "WEBVTT\n"
                              "\n00:00:00.000 --> 00:00:02.500\na.jpg\n"
                              "\n00:00:02.500 --> 01:00:00.000\nb.jpg\n"
                              "\n01:00:00.000 --> 01:00:01.001\nc.jpg\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_step_is_one_chunks),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_off_by_default),
        cmocka_unit_test(test_hdr),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_track),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
