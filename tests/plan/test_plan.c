#include "fixture.h"

#define FOUR                                                                               \
    "{encoder: libx264, renditions: ["                                                     \
    "{width: 640, height: 360, bitrate: 365k}, {width: 960, height: 540, bitrate: 2000k}," \
    "{width: 1280, height: 720, bitrate: 3000k}, {width: 1920, height: 1080, bitrate: 6000k}]}"

static const struct rational fps25 = {25, 1}, fps30 = {30, 1}, fps60 = {60, 1},
                             fps2997 = {30000, 1001}, fps5994 = {60000, 1001};

static void assert_rational(struct rational r, int64_t num, int64_t den)
{
    if (rational_cmp(r, (struct rational){num, den}))
        fail_msg("%lld/%lld, expected %lld/%lld", (long long)r.num, (long long)r.den,
                 (long long)num, (long long)den);
}

static bool has_note(const struct plan *plan, const char *text)
{
    for (size_t i = 0; i < plan->n_notes; i++)
        if (strstr(plan->notes[i], text))
            return true;
    return false;
}

/* --- sizes -------------------------------------------------------------------------------------
 */

struct size_case {
    int width, height, sar_num, sar_den, rotation;
    size_t n;
    int top_width, top_height; /* of the largest rendition */
};

static void test_sizes(void **state)
{
    (void)state;
    static const struct size_case cases[] = {
        {1920, 1080, 1, 1, 0, 4, 1920, 1080},   {3840, 2160, 1, 1, 0, 4, 1920, 1080},
        {1920, 800, 1, 1, 0, 4, 1920, 800},    /* wide: the width decides */
        {1440, 1080, 1, 1, 0, 4, 1440, 1080},  /* 4:3: the height decides */
        {1440, 1080, 4, 3, 0, 4, 1920, 1080},  /* anamorphic HD */
        {720, 576, 16, 15, 0, 2, 720, 540},    /* PAL 4:3, shown as 768x576 */
        {720, 576, 64, 45, 0, 2, 960, 540},    /* PAL 16:9, shown as 1024x576 */
        {1080, 1920, 1, 1, 0, 4, 1080, 1920},  /* vertical */
        {1920, 1080, 1, 1, 90, 4, 1080, 1920}, /* vertical by rotation */
        {1920, 1080, 1, 1, 270, 4, 1080, 1920}, {1920, 1080, 1, 1, 180, 4, 1920, 1080},
        {1440, 1080, 4, 3, 90, 4, 1080, 1920}, /* both */
        {1600, 900, 1, 1, 0, 3, 1280, 720},    /* between two rungs: none of its own */
        {1916, 1076, 1, 1, 0, 4, 1916, 1076},  /* as good as 1080p: not enlarged */
        {1279, 719, 1, 1, 0, 3, 1280, 720},    /* odd: to the nearest even */
        {1000, 1000, 1, 1, 0, 3, 720, 720},    /* square: 1080 is 1.08 x */
        {320, 180, 1, 1, 0, 1, 320, 180},      /* smaller than all */
        {321, 181, 1, 1, 0, 1, 322, 182},       {1, 1, 1, 1, 0, 1, 2, 2},
        {16000, 20, 1, 1, 0, 4, 1920, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct size_case *c = &cases[i];
        cleanup(fixture_free_source) struct source *s =
            fixture_video(c->width, c->height, fps25, 250);
        s->video->sample_aspect = rational_make(c->sar_num, c->sar_den);
        s->video->rotation = c->rotation;
        cleanup(fixture_free_plan) struct plan *plan = fixture_plan(FOUR, s);
        const struct plan_rendition *top = &plan->renditions[plan->n_renditions - 1];
        if (plan->n_renditions != c->n || top->width != c->top_width ||
            top->height != c->top_height)
            fail_msg("case %zu (%dx%d): %zu renditions, top %dx%d", i, c->width, c->height,
                     plan->n_renditions, top->width, top->height);
    }
}

static void test_small_source_gets_lowest_rates(void **state)
{
    (void)state;
    cleanup(fixture_free_source) struct source *s = fixture_video(320, 180, fps25, 250);
    cleanup(fixture_free_plan) struct plan *plan = fixture_plan(FOUR, s);
    assert_string_equal(plan->renditions[0].name, "180p-365k");
    assert_int_equal(plan->renditions[0].bitrate, 365000);
    assert_true(has_note(plan, "320x180"));
}

static void test_upscale_only_when_asked(void **state)
{
    (void)state;
    cleanup(fixture_free_source) struct source *s = fixture_video(640, 480, fps25, 250);
    cleanup(fixture_free_plan) struct plan *plan = fixture_plan(FOUR, s);
    assert_int_equal(plan->n_renditions, 1);
    assert_true(has_note(plan, "1080p-6000k"));
    struct profile *profile = fixture_read(&profile_type, FOUR);
    struct plan *up = NULL;
    struct plan_options options = {.segments = -1, .allow_upscale = true};
    assert_int_equal(plan_make(profile, s, &options, &up, NULL), 0);
    assert_int_equal(up->n_renditions, 4);
    assert_int_equal(up->renditions[3].width, 1440);
    assert_int_equal(up->renditions[3].height, 1080);
    bind_free(&plan_type, &up);
    bind_free(&profile_type, &profile);
}

static void test_one_sided_boxes(void **state)
{
    (void)state;
    static const char profile[] =
        "{encoder: x, renditions: [{height: 720, crf: 23, maxrate: 3M}, {width: 640, crf: 23}]}";
    cleanup(fixture_free_source) struct source *wide = fixture_video(1920, 800, fps25, 250);
    cleanup(fixture_free_plan) struct plan *a = fixture_plan(profile, wide);
    assert_int_equal(a->renditions[0].width, 1728);
    assert_int_equal(a->renditions[0].height, 720);
    assert_int_equal(a->renditions[1].width, 640);
    assert_int_equal(a->renditions[1].height, 266);
    cleanup(fixture_free_source) struct source *tall = fixture_video(1080, 1920, fps25, 250);
    cleanup(fixture_free_plan) struct plan *b = fixture_plan(profile, tall);
    assert_int_equal(b->renditions[0].width, 720);
    assert_int_equal(b->renditions[0].height, 1280);
    assert_int_equal(b->renditions[1].width, 360);
    assert_int_equal(b->renditions[1].height, 640);
}

/* --- rates and names ---------------------------------------------------------------------------
 */

static void test_rate_control_and_options(void **state)
{
    (void)state;
    cleanup(fixture_free_source) struct source *s = fixture_video(1920, 1080, fps25, 250);
    cleanup(fixture_free_plan) struct plan *plan =
        fixture_plan("{encoder: x, options: {tune: film, bf: 2}, renditions: ["
                     "{height: 720, bitrate: 2M}, {height: 720, bitrate: 2M},"
                     "{height: 480, crf: 21.5, maxrate: 1M, options: {bf: 3, refs: 4}},"
                     "{height: 360, bitrate: 1M, maxrate: 1100k, bufsize: 900k}]}",
                     s);
    const struct plan_rendition *r = plan->renditions;
    assert_int_equal(r[0].maxrate, 3000000);
    assert_int_equal(r[0].bufsize, 4000000);
    assert_true(r[0].crf < 0);
    assert_string_equal(r[0].name, "720p-2000k");
    assert_string_equal(r[1].name, "720p-2000k-2");
    assert_string_equal(r[2].name, "480p-crf21.5");
    assert_int_equal(r[2].bitrate, 0);
    assert_int_equal(r[2].bufsize, 2000000);
    assert_int_equal(r[2].n_options, 3);
    assert_string_equal(r[2].options[0], "tune=film");
    assert_string_equal(r[2].options[1], "bf=3");
    assert_string_equal(r[2].options[2], "refs=4");
    assert_int_equal(r[3].maxrate, 1100000);
    assert_int_equal(r[3].bufsize, 900000);
}

/* --- frame rates -------------------------------------------------------------------------------
 */

#define CAPPED                                                                     \
    "{encoder: x, renditions: [{height: 360, crf: 20, fps_policy: cap, fps: 30}, " \
    "{height: 720, crf: 20}]}"

static void test_caps(void **state)
{
    (void)state;
    static const struct {
        struct rational source, grid; /* grid 0: source timing */
        int64_t scale;
    } cases[] = {
        {{24000, 1001}, {0, 1}, 90000}, {{25, 1}, {0, 1}, 90000},
        {{30000, 1001}, {0, 1}, 90000}, {{30, 1}, {0, 1}, 90000},
        {{3002, 100}, {0, 1}, 90000}, /* within 0.1 % */
        {{50, 1}, {25, 1}, 12800},      {{60000, 1001}, {30000, 1001}, 30000},
        {{60, 1}, {30, 1}, 15360},      {{48, 1}, {24, 1}, 12288},
        {{100, 1}, {25, 1}, 12800},     {{120, 1}, {30, 1}, 15360},
        {{144, 1}, {144, 5}, 18432},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(fixture_free_source) struct source *s =
            fixture_video(1280, 720, cases[i].source, 1000);
        cleanup(fixture_free_plan) struct plan *plan = fixture_plan(CAPPED, s);
        const struct plan_rendition *r = plan->renditions;
        assert_rational(r[0].fps, cases[i].grid.num, cases[i].grid.den);
        assert_rational(plan->ref, cases[i].grid.num, cases[i].grid.den);
        assert_rational(r[0].time_base, 1, cases[i].scale);
        assert_rational(r[1].fps, 0, 1);
        assert_rational(r[1].time_base, 1, 90000);
        assert_int_equal(plan->context, 0);
        if (rational_is_set(r[0].fps)) { /* a frame is a whole number of ticks */
            struct rational interval = {r[0].fps.den, r[0].fps.num};
            assert_int_equal(rational_div(interval, r[0].time_base).den, 1);
        }
    }
}

static void test_variable_rate_caps(void **state)
{
    (void)state;
    cleanup(fixture_free_source) struct source *s = fixture_video(1280, 720, fps60, 1000);
    s->video->is_cfr = false;
    cleanup(fixture_free_plan) struct plan *fast = fixture_plan(CAPPED, s);
    assert_rational(fast->renditions[0].fps, 30, 1);
    assert_rational(fast->cfr, 0, 1);
    assert_int_equal(fast->context, 1);
    s->video->frame_rate = (struct rational){28, 1};
    cleanup(fixture_free_plan) struct plan *slow = fixture_plan(CAPPED, s);
    assert_rational(slow->renditions[0].fps, 0, 1);
    assert_int_equal(slow->context, 0);
}

/* One frame of context wherever a grid's ticks are not source frames. */
static void test_context(void **state)
{
    (void)state;
    static const char fixed[] =
        "{encoder: x, renditions: [{height: 360, crf: 20, fps_policy: fixed, fps: 25}]}";
    cleanup(fixture_free_source) struct source *s = fixture_video(1280, 720, fps30, 1000);
    cleanup(fixture_free_plan) struct plan *between = fixture_plan(fixed, s);
    assert_rational(between->renditions[0].fps, 25, 1);
    assert_int_equal(between->context, 1);
    s->video->frame_rate = (struct rational){50, 1};
    cleanup(fixture_free_plan) struct plan *on = fixture_plan(fixed, s);
    assert_int_equal(on->context, 0);
    s->video->start = 900; /* 10 ms: every tick falls between two frames */
    cleanup(fixture_free_plan) struct plan *late = fixture_plan(fixed, s);
    assert_int_equal(late->context, 1);
    s->video->start = 0;
    s->video->is_interlaced = true;
    cleanup(fixture_free_plan) struct plan *deinterlaced = fixture_plan(fixed, s);
    assert_int_equal(deinterlaced->context, 1);
    assert_true(deinterlaced->is_deinterlaced && has_note(deinterlaced, "interlaced"));
}

/* --- ticks -------------------------------------------------------------------------------------
 */

static void test_time_bases(void **state)
{
    (void)state;
    static const struct {
        struct rational source;
        int64_t scale;
    } cases[] = {
        {{1, 90000}, 90000},    {{1, 1000}, 16000},  {{1, 25}, 12800},
        {{1001, 30000}, 30000}, {{1, 15360}, 15360}, {{1, 1000000000}, 1000000000},
        {{2, 50}, 12800},       {{1, 1}, 16384},     {{1, INT32_MAX}, INT32_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(fixture_free_source) struct source *s = fixture_video(1280, 720, fps25, 1000);
        s->video->time_base = cases[i].source;
        s->origin_base = cases[i].source;
        cleanup(fixture_free_plan) struct plan *plan = fixture_plan(FOUR, s);
        assert_rational(plan->renditions[0].time_base, 1, cases[i].scale);
        assert_int_equal(rational_div(cases[i].source, plan->renditions[0].time_base).den, 1);
    }
}

static void test_origin_and_segments(void **state)
{
    (void)state;
    cleanup(fixture_free_source) struct source *s = fixture_video(1280, 720, fps2997, 5395);
    s->origin = 100; /* ms */
    s->origin_base = (struct rational){1, 1000};
    s->video->start += 9000;
    s->video->end += 9000;
    cleanup(fixture_free_plan) struct plan *plan = fixture_plan(FOUR, s);
    assert_int_equal(plan->origin, 9000);
    assert_int_equal(plan->start, 0);
    assert_rational(plan->cfr, 30000, 1001);
    assert_int_equal(plan->n_segments, 30); /* last frame at 179.98 s */
    s->video->frames = 5396;                /* last frame at 180.0132 s */
    cleanup(fixture_free_plan) struct plan *longer = fixture_plan(FOUR, s);
    assert_int_equal(longer->n_segments, 31);
    struct timeline tl;
    plan_timeline(longer, &tl);
    assert_rational(tl.segment, 6, 1);
    assert_rational(tl.gop, 2, 1);
    assert_rational(tl.cfr, 30000, 1001);
    assert_rational(tl.time_base, 1, 90000);
}

/* 12 s of 25 frames/s: exactly two segments, none for the instant at which it ends. */
static void test_exact_length_has_no_empty_segment(void **state)
{
    (void)state;
    cleanup(fixture_free_source) struct source *s = fixture_video(1280, 720, fps25, 300);
    cleanup(fixture_free_plan) struct plan *plan = fixture_plan(FOUR, s);
    assert_int_equal(plan->n_segments, 2);
    s->video->is_cfr = false;
    cleanup(fixture_free_plan) struct plan *vfr = fixture_plan(FOUR, s);
    assert_int_equal(vfr->n_segments, 2);
}

/* --- audio -------------------------------------------------------------------------------------
 */

#define TWO_TRACKS                                                                  \
    "audio: [{stream: 1, sample_rate: 44100, channels: 6, language: eng},"          \
    "{stream: 2, sample_rate: 96000, channels: 1, language: ger, title: Kommentar," \
    " is_default: true}]"

static void test_audio_tracks(void **state)
{
    (void)state;
    cleanup(fixture_free_source) struct source *s =
        fixture_source("{duration: 20, " TWO_TRACKS "}");
    cleanup(fixture_free_plan) struct plan *plan = fixture_plan(
        "{audio: [{bitrate: 64k, channels: 2}, {bitrate: 64k}, {encoder: libopus, bitrate: 96k}]}",
        s);
    static const char *const names[] = {"audio-64k",          "audio-64k-2-ger", "audio-64k-v2",
                                        "audio-64k-v2-2-ger", "audio-96k",       "audio-96k-2-ger"};
    static const int channels[] = {2, 1, 6, 1, 6, 1};
    static const int rates[] = {44100, 48000, 44100, 48000, 48000, 48000};
    assert_int_equal(plan->n_audio, 6);
    for (size_t i = 0; i < 6; i++) {
        const struct plan_audio *a = &plan->audio[i];
        assert_string_equal(a->name, names[i]);
        assert_string_equal(a->group, names[i - i % 2]);
        assert_int_equal(a->track, i % 2);
        assert_int_equal(a->channels, channels[i]);
        assert_int_equal(a->sample_rate, rates[i]);
        assert_int_equal(a->is_default, i % 2 == 1);
    }
    assert_string_equal(plan->audio[1].title, "Kommentar");
}

static void test_audio_only(void **state)
{
    (void)state;
    cleanup(fixture_free_source) struct source *s =
        fixture_source("{duration: 18001/1000, origin: 500, " TWO_TRACKS "}");
    struct profile *h264 = NULL;
    struct plan *plan = NULL;
    assert_int_equal(profile_load("h264", &h264, NULL), 0);
    assert_int_equal(plan_make(h264, s, &(struct plan_options){.segments = -1}, &plan, NULL), 0);
    assert_int_equal(plan->n_renditions, 0);
    assert_int_equal(plan->n_audio, 2);
    assert_rational(plan->time_base, 1, 44100);
    assert_int_equal(plan->origin, 22050);
    assert_int_equal(plan->n_segments, 4);
    bind_free(&plan_type, &plan);
    bind_free(&profile_type, &h264);
}

/* A language comes from the source: nothing of it may reach a folder's name that could escape. */
static void test_hostile_language(void **state)
{
    (void)state;
    cleanup(fixture_free_source) struct source *s =
        fixture_source("{duration: 20, audio: [{sample_rate: 48000, channels: 2},"
                       "{sample_rate: 48000, channels: 2, language: '../../x'}]}");
    cleanup(fixture_free_plan) struct plan *plan = fixture_plan("{audio: [{bitrate: 96k}]}", s);
    assert_string_equal(plan->audio[1].name, "audio-96k-2");
}

/* --- refusals ----------------------------------------------------------------------------------
 */

struct refusal {
    const char *profile, *source;
    struct plan_options options;
    int rc;
    const char *says;
};

#define VIDEO  "time_base: 1/1000, end: 10000, frames: 250, frame_rate: 25, is_cfr: true"
#define REFUSE "{encoder: x, hdr: refuse, renditions: [{height: 360, crf: 30}]}"
#define HDR(transfer) \
    SIZE ", color_transfer: " transfer ", color_space: bt2020nc, color_primaries: bt2020"
#define SIZE "width: 640, height: 360, " VIDEO

static void test_refusals(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {REFUSE, "{video: {" HDR("smpte2084") "}}", {.segments = -1}, -ERR_INPUT, "(PQ)"},
        {REFUSE, "{video: {" HDR("arib-std-b67") "}}", {.segments = -1}, -ERR_INPUT, "as-is"},
        {REFUSE,
         "{video: {" HDR("smpte2084") "}}",
         {.segments = -1, .allow_hdr_as_is = true},
         0,
         "without tone mapping"},
        {FOUR, "{video: {" HDR("smpte2084") "}}", {.segments = -1}, 0, "HDR10 (PQ) is tone-mapped"},
        {FOUR,
         "{video: {" SIZE ", color_transfer: smpte2084, color_space: ictcp}}",
         {.segments = -1},
         -ERR_INPUT,
         "matrix ictcp"},
        {"{encoder: x, pix_fmt: yuv444p, renditions: [{height: 360, crf: 30}]}",
         "{video: {" HDR("smpte2084") "}}",
         {.segments = -1},
         -ERR_CONFIG,
         "yuv444p"},
        {FOUR,
         "{video: {" SIZE ", color_transfer: arib-std-b67}}",
         {.segments = -1, .allow_hdr_as_is = true},
         0,
         "HLG"},
        {FOUR, "{video: {" SIZE ", color_transfer: bt709}}", {.segments = -1}, 0, NULL},
        {FOUR,
         "{video: {" SIZE "}, is_truncated: true, truncated_reason: 'lost 40 %%'}",
         {.segments = -1},
         -ERR_INPUT,
         "lost 40 %"},
        {FOUR,
         "{video: {" SIZE "}, is_truncated: true, truncated_reason: 'lost 40 %%'}",
         {.segments = -1, .allow_truncated = true},
         0,
         "lost 40 %"},
        {FOUR, "{}", {.segments = -1}, -ERR_INPUT, "neither video nor audio"},
        {FOUR,
         "{duration: 9, audio: [{sample_rate: 48000, channels: 2}]}",
         {.segments = -1},
         -ERR_CONFIG,
         "no audio entry"},
        {"{audio: [{bitrate: 96k}]}",
         "{video: {" SIZE "}}",
         {.segments = -1},
         -ERR_CONFIG,
         "no renditions entry"},
        {"{encoder: libsvtav1, segments: ts, renditions: [{height: 360, crf: 30}]}",
         "{video: {" SIZE "}}",
         {.segments = -1},
         -ERR_CONFIG,
         "libsvtav1"},
        {"{encoder: libsvtav1, renditions: [{height: 360, crf: 30}]}",
         "{video: {" SIZE "}}",
         {.segments = SEGMENTS_TS},
         -ERR_CONFIG,
         "libsvtav1"},
        {"{encoder: libsvtav1, segments: ts, renditions: [{height: 360, crf: 30}]}",
         "{video: {" SIZE "}}",
         {.segments = SEGMENTS_FMP4},
         0,
         NULL},
        /* numbers that a hostile session could report */
        {FOUR,
         "{video: {width: 640, height: 360, time_base: 0, end: 1, frames: 1}}",
         {.segments = -1},
         -ERR_INPUT,
         "out of range"},
        {FOUR,
         "{video: {width: 640, height: 360, time_base: 1/25, start: 5, end: 5, frames: 1}}",
         {.segments = -1},
         -ERR_INPUT,
         "out of range"},
        {FOUR,
         "{video: {width: 640, height: 360, time_base: 1/25, end: 9000000000000000000, "
         "frames: 1}}",
         {.segments = -1},
         -ERR_INPUT,
         "out of range"},
        {FOUR,
         "{video: {width: 640, height: 360, time_base: 1/25, end: 900000000000, "
         "frames: 900000000000, frame_rate: 25, is_cfr: true}}",
         {.segments = -1},
         -ERR_INPUT,
         "limit"},
        {FOUR,
         "{video: {width: 640, height: 360, time_base: 1/25, end: 100, frames: -5}}",
         {.segments = -1},
         -ERR_INPUT,
         "out of range"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(fixture_free_profile) struct profile *profile =
            fixture_read(&profile_type, cases[i].profile);
        cleanup(fixture_free_source) struct source *s = fixture_source("%s", cases[i].source);
        if (!rational_is_set(s->origin_base) || s->origin_base.num <= 0)
            s->origin_base = (struct rational){1, 1000};
        cleanup(fixture_free_plan) struct plan *plan = NULL;
        struct err e = {0};
        int rc = plan_make(profile, s, &cases[i].options, &plan, &e);
        if (rc != cases[i].rc)
            fail_msg("case %zu: %d (%s), expected %d", i, rc, e.msg, cases[i].rc);
        if (rc < 0 && !strstr(e.msg, cases[i].says))
            fail_msg("case %zu: \"%s\" does not say \"%s\"", i, e.msg, cases[i].says);
        if (rc == 0 && cases[i].says && !has_note(plan, cases[i].says))
            fail_msg("case %zu: no note \"%s\"", i, cases[i].says);
    }
}

/* --- HDR ---------------------------------------------------------------------------------------
 */

static void test_hdr(void **state)
{
    (void)state;
    static const struct {
        const char *hdr, *transfer;
        int max_cll, mastering_nits;
        bool is_tonemapped;
        int peak;
        const char *range;
    } cases[] = {
        {"tonemap", "smpte2084", 0, 0, true, 1000, "SDR"},
        {"tonemap", "smpte2084", 0, 4000, true, 4000, "SDR"},
        {"tonemap", "smpte2084", 650, 4000, true, 650, "SDR"},
        {"tonemap", "smpte2084", 90, 4000, true, 203, "SDR"},
        {"tonemap", "smpte2084", 65535, 4000, true, 1000, "SDR"},
        {"tonemap", "arib-std-b67", 650, 4000, true, 1000, "SDR"},
        {"tonemap", "bt709", 0, 0, false, 0, "SDR"},
        {"refuse", "bt709", 0, 0, false, 0, "SDR"},
        {"as-is", "smpte2084", 650, 4000, false, 0, "PQ"},
        {"as-is", "arib-std-b67", 0, 0, false, 0, "HLG"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(free_ptr) char *profile =
            xasprintf("{encoder: x, hdr: %s, renditions: [{height: 360, crf: 20}]}", cases[i].hdr);
        cleanup(fixture_free_source) struct source *s = fixture_video(640, 360, fps25, 250);
        s->video->color_transfer = xstrdup(cases[i].transfer);
        s->video->max_cll = cases[i].max_cll;
        s->video->mastering_nits = cases[i].mastering_nits;
        cleanup(fixture_free_plan) struct plan *plan = fixture_plan(profile, s);
        assert_int_equal(plan->is_tonemapped, cases[i].is_tonemapped);
        assert_int_equal(plan->is_hdr_as_is, !strcmp(cases[i].hdr, "as-is"));
        assert_int_equal(plan->peak_nits, cases[i].peak);
        assert_string_equal(plan_video_range(plan, s->video), cases[i].range);
    }
}

/* --- the record --------------------------------------------------------------------------------
 */

static void test_plan_is_a_function_and_survives_storage(void **state)
{
    (void)state;
    cleanup(fixture_free_source) struct source *s = fixture_video(1920, 1080, fps5994, 10000);
    cleanup(fixture_free_plan) struct plan *a = fixture_plan(CAPPED, s),
                                           *b = fixture_plan(CAPPED, s);
    cleanup(free_ptr) char *first = bind_dump(&plan_type, a), *second = bind_dump(&plan_type, b);
    assert_string_equal(first, second);
    cleanup(fixture_free_plan) struct plan *again = fixture_read(&plan_type, first);
    cleanup(free_ptr) char *third = bind_dump(&plan_type, again);
    assert_string_equal(first, third);
    assert_rational(again->ref, 30000, 1001);
    assert_true(again->renditions[0].crf == 20);
}

static void test_ffmpeg_command(void **state)
{
    (void)state;
    cleanup(fixture_free_source) struct source *s =
        fixture_source("{video: {" SIZE ", stream: 3}, " TWO_TRACKS "}");
    cleanup(fixture_free_plan) struct plan *plan = fixture_plan(
        "{encoder: libx264, preset: fast, options: {tune: film}, audio: [{bitrate: 96k}],"
        "renditions: [{height: 360, bitrate: 500k}, {height: 180, crf: 23, fps_policy: fixed,"
        " fps: 12.5}]}",
        s);
    cleanup(free_ptr) char *text = plan_ffmpeg_command(plan, s, "it's.mp4", "out");
    static const char *const parts[] = {
        "-i 'it'\\''s.mp4'",   "[0:3]split=2", "fps=25/2,scale=320:180", "-b:v:0 500000",
        "-maxrate:v:0 750000", "-crf:v:1 23",  "-preset:v:1 'fast'",     "-tune:v:0 'film'",
        "-map 0:2 -c:a:1 aac", "-hls_time 6",  "'out/%v/index.m3u8'",    "name:360p-500k"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(text, parts[i]))
            fail_msg("no \"%s\" in: %s", parts[i], text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_small_source_gets_lowest_rates),
        cmocka_unit_test(test_upscale_only_when_asked),
        cmocka_unit_test(test_one_sided_boxes),
        cmocka_unit_test(test_rate_control_and_options),
        cmocka_unit_test(test_caps),
        cmocka_unit_test(test_variable_rate_caps),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_time_bases),
        cmocka_unit_test(test_origin_and_segments),
        cmocka_unit_test(test_exact_length_has_no_empty_segment),
        cmocka_unit_test(test_audio_tracks),
        cmocka_unit_test(test_audio_only),
        cmocka_unit_test(test_hostile_language),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_hdr),
        cmocka_unit_test(test_plan_is_a_function_and_survives_storage),
        cmocka_unit_test(test_ffmpeg_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
