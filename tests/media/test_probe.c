#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pipelines/media/probe.h"
#include "tests/support/opened.h"
#include "tests/support/scratch.h"

static struct source *probed(const char *path, int segment)
{
    struct source *s;
    struct err e = {0};
    if (probe_path(path, NULL, segment, &s, &e) < 0)
        fail_msg("%s: %s", path, e.msg);
    return s;
}

static struct source *probed_clip(const char *name, struct clip_options o, int segment)
{
    if (!o.width) {
        o.width = 192;
        o.height = 108;
    }
    return probed(clip_in_scratch(name, &o), segment);
}

static double seconds(int64_t t, struct rational base)
{
    return (double)t * rational_to_double(base);
}

static bool has_note(const struct source *s, const char *text)
{
    for (size_t i = 0; i < s->n_notes; i++)
        if (strstr(s->notes[i], text))
            return true;
    return false;
}

#define assert_near(a, b, within) assert_true((a) - (b) <= (within) && (b) - (a) <= (within))

/* Seconds from the origin. */
static double video_start(const struct source *s)
{
    return seconds(s->video->start - s->origin, s->video->time_base);
}

static double audio_at(const struct source *s, size_t i, int64_t t)
{
    return seconds(t, s->audio[i].time_base) - seconds(s->origin, s->origin_base);
}

static void an_ordinary_file_is_described(void **state)
{
    (void)state;
    struct source *s = probed_clip("plain.mp4",
                                   (struct clip_options){.frames = 50,
                                                         .width = 322,
                                                         .height = 180,
                                                         .n_audio = 1,
                                                         .audio = {{.sample_rate = 44100,
                                                                    .channels = 1,
                                                                    .language = "deu",
                                                                    .title = "Deutsch",
                                                                    .is_default = true}}},
                                   6);
    assert_string_equal(s->container, "mov,mp4,m4a,3gp,3g2,mj2");
    assert_true(s->size_bytes > 1000);
    const struct source_video *v = s->video;
    assert_string_equal(v->codec, "h264");
    assert_string_equal(v->profile, "High");
    assert_int_equal(v->width, 322);
    assert_int_equal(v->height, 180);
    assert_string_equal(v->pix_fmt, "yuv420p");
    assert_int_equal(v->bit_depth, 8);
    assert_null(v->color_transfer);
    assert_int_equal(v->frames, 50);
    assert_true(v->is_cfr);
    assert_int_equal(rational_cmp(v->frame_rate, (struct rational){25, 1}), 0);
    assert_near(seconds(v->end - v->start, v->time_base), 2, 1e-9);
    assert_false(v->is_interlaced || v->has_open_gop || v->is_sequential || v->is_flipped);
    assert_int_equal(v->rotation, 0);
    assert_int_equal(s->n_audio, 1);
    const struct source_audio *a = s->audio;
    assert_string_equal(a->codec, "aac");
    assert_int_equal(a->sample_rate, 44100);
    assert_int_equal(a->channels, 1);
    assert_string_equal(a->layout, "mono");
    assert_string_equal(a->language, "deu");
    assert_true(a->is_default);
    assert_int_equal(a->start, 0); /* after priming */
    assert_near(seconds(a->end, a->time_base), 2, 0.024);
    assert_int_equal(s->origin, 0);
    assert_near(rational_to_double(s->duration), 2, 0.024);
    assert_false(s->is_truncated);
    char *json = bind_dump(&source_type, s);
    struct source *back = NULL;
    struct err e = {0};
    assert_int_equal(bind_parse(&source_type, json, strlen(json), "s", ERR_BUG, &back, &e), 0);
    bind_free(&source_type, &back);
    free(json);
    bind_free(&source_type, &s);
}

static void rates_are_exact_in_every_container(void **state)
{
    (void)state;
    static const struct rational rates[] = {{24000, 1001}, {24, 1}, {25, 1},
                                            {30000, 1001}, {50, 1}, {60000, 1001}};
    static const char *const names[] = {"rate.mp4", "rate.mkv", "rate.ts", "rate.flv", "rate.avi"};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            struct source *s = probed_clip(
                names[n],
                (struct clip_options){
                    .fps = rates[r], .frames = 90, .b_frames = 2, .width = 96, .height = 54},
                6);
            assert_int_equal(s->video->frames, 90);
            if (!s->video->is_cfr || rational_cmp(s->video->frame_rate, rates[r]) != 0)
                fail_msg("%s at %ld/%ld: %ld/%ld cfr %d", names[n], (long)rates[r].num,
                         (long)rates[r].den, (long)s->video->frame_rate.num,
                         (long)s->video->frame_rate.den, s->video->is_cfr);
            bind_free(&source_type, &s);
        }
}

static void uneven_frames_are_variable(void **state)
{
    (void)state;
    static const int64_t pts[] = {0, 40, 80, 130, 200, 210, 300, 700, 710, 745};
    static const char *const names[] = {"vfr.mkv", "vfr.mp4"};
    for (size_t n = 0; n < 2; n++) {
        struct source *s = probed_clip(
            names[n],
            (struct clip_options){.pts = pts, .frames = 10, .time_base = {1, 1000}, .b_frames = 2},
            6);
        assert_false(s->video->is_cfr);
        assert_int_equal(s->video->frames, 10);
        assert_near(seconds(s->video->max_interval, s->video->time_base), 0.4, 1e-9);
        assert_true(seconds(s->video->end - s->video->start, s->video->time_base) > 0.745);
        bind_free(&source_type, &s);
    }
}

static void pictures_are_described(void **state)
{
    (void)state;
    struct source *s =
        probed_clip("turned.mp4",
                    (struct clip_options){.frames = 5, .rotation = 90, .sample_aspect = {4, 3}}, 6);
    assert_int_equal(s->video->rotation, 90);
    assert_int_equal(s->video->width, 108);
    assert_int_equal(rational_cmp(s->video->sample_aspect, (struct rational){4, 3}), 0);
    bind_free(&source_type, &s);

    s = probed_clip("left.mov", (struct clip_options){.frames = 5, .rotation = 270}, 6);
    assert_int_equal(s->video->rotation, 270);
    assert_false(rational_is_set(s->video->sample_aspect));
    bind_free(&source_type, &s);

    s = probed_clip(
        "fields.ts",
        (struct clip_options){
            .codec = "mpeg2video", .frames = 30, .is_interlaced = true, .is_bottom_first = true},
        6);
    assert_true(s->video->is_interlaced);
    assert_true(s->video->is_bottom_first);
    bind_free(&source_type, &s);

    s = probed_clip("fields.mp4", (struct clip_options){.frames = 30, .is_interlaced = true}, 6);
    assert_true(s->video->is_interlaced);
    assert_false(s->video->is_bottom_first);
    bind_free(&source_type, &s);

    s = probed_clip("pq.mkv",
                    (struct clip_options){.codec = "libx265",
                                          .frames = 5,
                                          .pix_fmt = "yuv420p10le",
                                          .color_primaries = "bt2020",
                                          .color_transfer = "smpte2084",
                                          .color_space = "bt2020nc",
                                          .color_range = "tv"},
                    6);
    assert_string_equal(s->video->pix_fmt, "yuv420p10le");
    assert_int_equal(s->video->bit_depth, 10);
    assert_string_equal(s->video->color_primaries, "bt2020");
    assert_string_equal(s->video->color_transfer, "smpte2084");
    assert_string_equal(s->video->color_space, "bt2020nc");
    assert_string_equal(s->video->color_range, "tv");
    bind_free(&source_type, &s);
}

static void gops_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct clip_options o;
        bool is_open;
    } cases[] = {
        {"closed.mp4", {.b_frames = 3}, false},
        {"open.mp4", {.b_frames = 3, .is_open_gop = true}, true},
        {"open.ts", {.b_frames = 3, .is_open_gop = true, .is_pyramid = true}, true},
        {"open2.ts", {.codec = "mpeg2video", .b_frames = 2, .is_open_gop = true}, true},
        {"intra.mkv", {.gop = 1}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct clip_options o = cases[i].o;
        o.frames = 60;
        o.gop = o.gop ? o.gop : 15;
        struct source *s = probed_clip(cases[i].name, o, 6);
        assert_int_equal(s->video->has_open_gop, cases[i].is_open);
        assert_int_equal(s->video->frames, 60);
        assert_false(s->video->is_sequential);
        bind_free(&source_type, &s);
    }
}

/* Where tracks begin and end, from the origin, to the millisecond that Matroska has. */
static void late_and_early_tracks_keep_their_place(void **state)
{
    (void)state;
    static const char *const names[] = {"place.mp4", "place.mkv", "place.ts", "place.mov"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct source *s =
            probed_clip(names[n],
                        (struct clip_options){
                            .frames = 75,
                            .b_frames = 2,
                            .start_seconds = 1,
                            .n_audio = 2,
                            .audio = {{.codec = "mp2", .start_seconds = 0.5, .end_seconds = 2},
                                      {.codec = "ac3"}}},
                        6);
        assert_int_equal(s->n_audio, 2);
        /* mp2 and AC-3 encoders prime by 481 and 256 samples, which these containers cannot say */
        double start0 = audio_at(s, 0, s->audio[0].start) - video_start(s);
        double start1 = audio_at(s, 1, s->audio[1].start) - video_start(s);
        assert_near(start0, 0.5, 0.012);
        assert_near(start1, 0, 0.007);
        assert_near(audio_at(s, 0, s->audio[0].end) - video_start(s), 2, 0.03);
        assert_true(video_start(s) >= 0 && audio_at(s, 1, s->audio[1].start) >= -1e-9);
        assert_true(video_start(s) < 0.02);
        assert_near(rational_to_double(s->duration), 3, 0.05);
        bind_free(&source_type, &s);
    }
    struct source *s =
        probed_clip("latevideo.mkv",
                    (struct clip_options){.frames = 25,
                                          .start_seconds = 3,
                                          .n_audio = 1,
                                          .audio = {{.codec = "flac", .start_seconds = -2}}},
                    6);
    assert_near(video_start(s), 2, 0.001);
    assert_near(audio_at(s, 0, s->audio[0].start), 0, 0.001);
    bind_free(&source_type, &s);
}

/* Priming is not heard: the first sample at the clip's own time 0 is where the track starts. */
static void priming_is_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *name, *codec;
    } cases[] = {{"prime.mp4", "aac"}, {"primeo.mp4", "libopus"}, {"prime.mov", "pcm_s16le"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct source *s = probed_clip(
            cases[i].name,
            (struct clip_options){.frames = 25, .n_audio = 1, .audio = {{.codec = cases[i].codec}}},
            6);
        assert_int_equal(s->audio[0].start, 0);
        assert_int_equal(s->origin, 0);
        bind_free(&source_type, &s);
    }
}

static void wrapped_and_negative_times_are_plain_ones(void **state)
{
    (void)state;
    struct source *s = probed_clip("wrapped.ts",
                                   (struct clip_options){.frames = 75,
                                                         .b_frames = 2,
                                                         .start_90k = ((int64_t)1 << 33) - 90000,
                                                         .n_audio = 1,
                                                         .audio = {{.codec = "mp2"}}},
                                   2);
    assert_int_equal(s->video->frames, 75);
    assert_true(s->video->is_cfr);
    assert_true(s->repaired_wrapped > 0);
    assert_int_equal(s->repaired_jumps, 0);
    assert_false(s->video->is_sequential);
    assert_near(rational_to_double(s->duration), 3, 0.05);
    bind_free(&source_type, &s);

    /* an edit list cuts the first five frames off */
    s = probed_clip("negative.mp4",
                    (struct clip_options){.frames = 50, .b_frames = 2, .start_seconds = -0.2}, 6);
    assert_int_equal(s->video->frames, 45);
    assert_int_equal(s->video->start, 0);
    assert_false(s->video->is_sequential);
    bind_free(&source_type, &s);
}

/* Every border against a plain look at the packets. */
static void borders_are_where_decoding_starts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct clip_options o;
    } cases[] = {
        {"b.mp4", {.b_frames = 2, .gop = 17}},
        {"b.mkv", {.b_frames = 2, .gop = 25, .is_open_gop = true, .fps = {30000, 1001}}},
        {"b.ts", {.b_frames = 3, .gop = 13, .start_seconds = 7}},
        {"a.mkv", {.gop = 10, .n_audio = 1, .audio = {{.codec = "flac", .start_seconds = -0.7}}}},
        {"n.mkv", {.gop = 25, .n_audio = 1, .audio = {{.codec = "flac", .start_seconds = -0.02}}}},
        {"i.mov", {.gop = 1}},
    };
    int n_next = 0; /* borders just before a keyframe */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct clip_options o = cases[i].o;
        o.frames = 130;
        o.width = 96;
        o.height = 54;
        const char *path = clip_in_scratch(cases[i].name, &o);
        struct source *s = probed(path, 1);
        const struct source_video *v = s->video;
        struct opened in;
        struct packet_list l;
        opened_must(&in, path);
        packets_read(&in, v->stream, &l);
        int64_t k = 1;
        for (;; k++) {
            int64_t at =
                s->origin + rational_rescale(k, (struct rational){1, 1}, v->time_base, ROUND_FLOOR);
            int64_t key = INT64_MIN, last = INT64_MIN, frames = 0;
            for (size_t p = 0; p < l.n; p++) {
                if (l.v[p].flags & AV_PKT_FLAG_KEY && l.v[p].pts <= at && l.v[p].pts > key)
                    key = l.v[p].pts;
                if (l.v[p].pts > last)
                    last = l.v[p].pts;
            }
            for (size_t p = 0; p < l.n; p++)
                frames += l.v[p].pts >= key && l.v[p].pts < at;
            if (last < at)
                break;
            assert_true((size_t)k <= v->n_borders);
            int64_t next = INT64_MAX, next_key = key;
            for (size_t p = 0; p < l.n; p++)
                if (l.v[p].pts >= at && l.v[p].pts < next) {
                    next = l.v[p].pts;
                    next_key = l.v[p].flags & AV_PKT_FLAG_KEY ? next : key;
                }
            assert_int_equal(v->borders[k - 1].next_key, next_key);
            n_next += next_key > key;
            if (v->borders[k - 1].key_pts != key || v->borders[k - 1].frames != frames)
                fail_msg("%s: border %ld: key %ld, %ld frames; expected %ld, %ld", cases[i].name,
                         (long)k, (long)v->borders[k - 1].key_pts, (long)v->borders[k - 1].frames,
                         (long)key, (long)frames);
        }
        assert_int_equal(v->n_borders, k - 1);
        assert_true(k > 4);
        packets_free(&l);
        opened_close(&in);
        bind_free(&source_type, &s);
    }
    assert_true(n_next > 0);
}

static void few_frames_are_enough(void **state)
{
    (void)state;
    static const char *const names[] = {"few.mp4", "few.mkv", "few.ts", "few.avi"};
    for (int frames = 1; frames <= 3; frames += 2)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            struct source *s = probed_clip(names[n], (struct clip_options){.frames = frames}, 6);
            assert_int_equal(s->video->frames, frames);
            assert_near(seconds(s->video->end - s->video->start, s->video->time_base),
                        frames * 0.04, 0.0005);
            assert_int_equal(s->video->n_borders, 0);
            bind_free(&source_type, &s);
        }
}

static void covers_and_subtitles_are_left_out_with_a_word(void **state)
{
    (void)state;
    struct source *s = probed_clip("song.mp4",
                                   (struct clip_options){.is_audio_only = true,
                                                         .has_cover = true,
                                                         .n_audio = 1,
                                                         .audio = {{.end_seconds = 1.5}}},
                                   6);
    assert_null(s->video);
    assert_int_equal(s->n_audio, 1);
    assert_true(has_note(s, "attached picture"));
    assert_near(rational_to_double(s->duration), 1.5, 0.03);
    bind_free(&source_type, &s);
    s = probed_clip("film.mp4", (struct clip_options){.frames = 5, .has_cover = true}, 6);
    assert_string_equal(s->video->codec, "h264");
    bind_free(&source_type, &s);
}

static void a_cut_file_is_reported_as_cut(void **state)
{
    (void)state;
    struct clip_options o = {
        .frames = 75, .width = 192, .height = 108, .muxer_options = "movflags=faststart"};
    const char *whole = clip_in_scratch("whole.mp4", &o);
    struct source *s = probed(scratch_cut("sixty.mp4", whole, 600), 6);
    assert_true(s->is_truncated);
    assert_non_null(strstr(s->truncated_reason, "incomplete"));
    assert_true(s->video->frames > 20 && s->video->frames < 75);
    assert_true(rational_to_double(s->claimed_duration) > rational_to_double(s->duration));
    bind_free(&source_type, &s);
}

static void assert_over(const char *path, const char *limit, const char *name)
{
    struct limits l;
    struct err e = {0};
    struct source *s;
    limits_default(&l);
    assert_int_equal(limits_set(&l, limit, &e), 0);
    if (probe_path(path, &l, 6, &s, &e) != -ERR_INPUT || s || !strstr(e.msg, name))
        fail_msg("%s with %s: %s", path, limit, e.msg);
}

static void limits_are_enforced_on_what_is_measured(void **state)
{
    (void)state;
    struct clip_options o = {.frames = 75, .width = 96, .height = 54};
    const char *path = clip_in_scratch("limit.mkv", &o);
    assert_over(path, "max_frames=74", "max_frames=74");
    assert_over(path, "max_duration_s=1", "max_duration_s=1");
    static const int64_t far[] = {0, 40, 144001000};
    o = (struct clip_options){
        .pts = far, .frames = 3, .time_base = {1, 1000}, .width = 96, .height = 54};
    assert_over(clip_in_scratch("endless.mkv", &o), "max_frames=100", "max_duration_s=86400");
    struct clip_options song = {
        .is_audio_only = true, .n_audio = 1, .audio = {{.end_seconds = 3.5}}};
    assert_over(clip_in_scratch("long.mka", &(struct clip_options){.format = "matroska",
                                                                   .is_audio_only = true,
                                                                   .n_audio = 1,
                                                                   .audio = {song.audio[0]}}),
                "max_duration_s=2", "max_duration_s=2");
}

/* A picture larger than the container admits, which only decoding would find out. */
static void pictures_are_limited_whatever_the_header_says(void **state)
{
    (void)state;
    struct clip_options o = {.frames = 3, .width = 640, .height = 360};
    const char *path = clip_in_scratch("large.ts", &o);
    struct limits l;
    struct err e = {0};
    struct source *s;
    limits_default(&l);
    assert_int_equal(limits_set(&l, "max_pixels=100000", &e), 0);
    assert_int_equal(probe_path(path, &l, 6, &s, &e), -ERR_INPUT);
    assert_true(e.msg[0]);
}

static void broken_video_is_refused_with_a_reason(void **state)
{
    (void)state;
    struct clip_options o = {.frames = 10, .codec = "libvpx-vp9"};
    const char *path = clip_in_scratch("vp9.webm", &o);
    int64_t size = scratch_size(path);
    uint8_t *bytes = malloc((size_t)size);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(bytes, 1, (size_t)size, f), size);
    fclose(f);
    /* spoil the payload of every SimpleBlock (0xA3, 4 or 8 bytes of size, track 1) */
    for (int64_t i = 400; i + 16 < size; i++)
        if (bytes[i] == 0x81 && bytes[i + 1] == 0 && (bytes[i + 3] & 0x7f) == 0)
            memset(bytes + i + 4, 0x13, 12);
    struct source *s;
    struct err e = {0};
    assert_int_equal(probe_path(scratch_write("bad.webm", bytes, (size_t)size), NULL, 6, &s, &e),
                     -ERR_INPUT);
    assert_non_null(strstr(e.msg, "cannot be decoded"));
    free(bytes);
}

static void joined_streams_are_sequential(void **state)
{
    (void)state;
    struct clip_options o = {.frames = 50, .width = 192, .height = 108};
    const char *one = clip_in_scratch("one.ts", &o);
    struct source *s = probed(scratch_join("two.ts", one, one), 1);
    assert_int_equal(s->video->frames, 100);
    assert_true(s->video->is_sequential);
    assert_int_equal(s->repaired_jumps, 1);
    assert_near(rational_to_double(s->duration), 4, 0.1);
    bind_free(&source_type, &s);
}

/* Whatever is broken in a file: it is measured as far as it goes, or refused with a reason. */
static void spoilt_files_are_measured_or_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"x.mp4", "x.mkv", "x.ts", "x.avi", "x.flv", "x.mpg"};
    uint32_t random = 12345;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct clip_options o = {
            .frames = 30, .width = 96, .height = 54, .b_frames = 2, .n_audio = 1};
        o.audio[0].codec = n == 4 ? "aac" : "mp2";
        o.codec = n == 5 ? "mpeg2video" : NULL;
        const char *path = clip_in_scratch(names[n], &o);
        size_t size = (size_t)scratch_size(path);
        uint8_t *whole = malloc(size), *spoilt = malloc(size);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        assert_int_equal(fread(whole, 1, size, f), size);
        fclose(f);
        for (int round = 0; round < 25; round++) {
            memcpy(spoilt, whole, size);
            for (int hits = 0; hits < 1 + round % 5 * 8; hits++) {
                random = random * 1664525 + 1013904223;
                size_t among = round & 1     ? size
                               : size < 1200 ? size
                                             : 1200; /* headers more often */
                spoilt[(random >> 8) % among] = (uint8_t)(random >> 3);
            }
            struct source *s;
            struct err e = {0};
            int r = probe_path(scratch_write("spoilt", spoilt, size), NULL, 1, &s, &e);
            if (r < 0 && (r != -ERR_INPUT || !e.msg[0]))
                fail_msg("%s round %d: %d %s", names[n], round, r, e.msg);
            if (r == 0)
                assert_true(s->video ? s->video->end > s->video->start && s->video->frames > 0
                                     : s->n_audio > 0);
            bind_free(&source_type, &s);
        }
        free(whole);
        free(spoilt);
    }
}

static int64_t last_progress;

static void note_progress(void *arg, int64_t bytes)
{
    (void)arg;
    assert_true(bytes >= last_progress);
    last_progress = bytes;
}

static void progress_is_told(void **state)
{
    (void)state;
    struct opened o;
    struct source *s = NULL;
    struct clip_options options = {.frames = 600, .width = 96, .height = 54};
    opened_must(&o, clip_in_scratch("progress.mkv", &options));
    assert_int_equal(
        probe_source(o.in, &o.limits, (struct rational){6, 1}, note_progress, NULL, &s, &o.err), 0);
    assert_true(last_progress > 0 && last_progress <= s->size_bytes);
    bind_free(&source_type, &s);
    opened_close(&o);
}

int main(void)
{
    av_log_set_level(AV_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ordinary_file_is_described),
        cmocka_unit_test(rates_are_exact_in_every_container),
        cmocka_unit_test(uneven_frames_are_variable),
        cmocka_unit_test(pictures_are_described),
        cmocka_unit_test(gops_are_told_apart),
        cmocka_unit_test(late_and_early_tracks_keep_their_place),
        cmocka_unit_test(priming_is_left_out),
        cmocka_unit_test(wrapped_and_negative_times_are_plain_ones),
        cmocka_unit_test(borders_are_where_decoding_starts),
        cmocka_unit_test(few_frames_are_enough),
        cmocka_unit_test(covers_and_subtitles_are_left_out_with_a_word),
        cmocka_unit_test(a_cut_file_is_reported_as_cut),
        cmocka_unit_test(limits_are_enforced_on_what_is_measured),
        cmocka_unit_test(pictures_are_limited_whatever_the_header_says),
        cmocka_unit_test(broken_video_is_refused_with_a_reason),
        cmocka_unit_test(joined_streams_are_sequential),
        cmocka_unit_test(spoilt_files_are_measured_or_refused),
        cmocka_unit_test(progress_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
