/* Playlists: their text, their sums, their rates, each against an independent count. */
#include "fixture.h"

#include "pipelines/plan/language.h"
#include "pipelines/plan/playlist.h"

#define ONE_AUDIO "audio: [{sample_rate: 48000, channels: 2, language: eng}]"
#define PROFILE                                                                                  \
    "{encoder: x, segment: 6, renditions: [{name: v, height: 360, crf: 20}], audio: [{bitrate: " \
    "96k}]}"

static struct plan *plan_with(const char *profile, const char *audio)
{
    cleanup(fixture_free_source) struct source *s = fixture_source(
        "{duration: 60, video: {width: 1920, height: 1080, time_base: 1/90000, end: 5400000,"
        " frames: 1500, frame_rate: 25, is_cfr: true, max_interval: 3600}, %s}",
        audio);
    return fixture_plan(profile, s);
}

/* A track of n segments; durations and bytes come from the callbacks' arrays, repeated. */
struct made {
    struct manifest_track track;
    struct manifest_segment *segments;
    char names[32];
};

static void make_track(struct made *m, const char *rendition, struct rational base, size_t n,
                       const int64_t *durations, size_t n_durations, const int64_t *bytes,
                       size_t n_bytes)
{
    strcpy(m->names, "seg.m4s");
    m->segments = xcalloc(n, sizeof *m->segments);
    m->track = (struct manifest_track){.rendition = (char *)rendition,
                                       .init = (char *)"init-1.mp4",
                                       .codecs = (char *)"avc1.640028",
                                       .parameter_sets = (char *)"x",
                                       .video_range = (char *)"SDR",
                                       .time_base = base,
                                       .width = 640,
                                       .height = 360,
                                       .segments = m->segments,
                                       .n_segments = n};
    int64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        m->segments[i] = (struct manifest_segment){.index = (int64_t)i,
                                                   .start = at,
                                                   .duration = durations[i % n_durations],
                                                   .frames = 150,
                                                   .keyframes = 3,
                                                   .bytes = bytes[i % n_bytes],
                                                   .name = m->names};
        at += m->segments[i].duration;
        m->track.frames += 150;
    }
    m->track.end = at;
}

static void made_free(struct made *m)
{
    free(m->segments);
}

/* A finished playlist of one track. */
static struct playlist *finished(const struct plan *plan, const struct manifest_track *track,
                                 char **ret_text)
{
    struct playlist *p = playlist_new(plan);
    struct err e = {0};
    char *text = NULL;
    if (playlist_add(p, track, &e) < 0 || playlist_finish(p, &text, &e) < 0)
        fail_msg("%s", e.msg);
    if (ret_text)
        *ret_text = text;
    else
        free(text);
    return p;
}

static void test_text(void **state)
{
    (void)state;
    cleanup(fixture_free_plan) struct plan *plan = plan_with(PROFILE, ONE_AUDIO);
    cleanup(made_free) struct made m;
    int64_t durations[] = {540540, 540540, 45045}, bytes[] = {1000};
    make_track(&m, "v", (struct rational){1, 90000}, 3, durations, 3, bytes, 1);
    cleanup(free_ptr) char *text = NULL;
    cleanup(playlist_free) struct playlist *p = finished(plan, &m.track, &text);
    assert_string_equal(playlist_track(p)->rendition, "v");
    assert_string_equal(text, "#EXTM3U\n"
                              "#EXT-X-VERSION:7\n"
                              "#EXT-X-TARGETDURATION:6\n"
                              "#EXT-X-MEDIA-SEQUENCE:0\n"
                              "#EXT-X-PLAYLIST-TYPE:VOD\n"
                              "#EXT-X-INDEPENDENT-SEGMENTS\n"
                              "#EXT-X-MAP:URI=\"init-1.mp4\"\n"
                              "#EXTINF:6.006000,\nseg.m4s\n"
                              "#EXTINF:6.006000,\nseg.m4s\n"
                              "#EXTINF:0.500500,\nseg.m4s\n"
                              "#EXT-X-ENDLIST\n");
    m.track.init = NULL;
    cleanup(free_ptr) char *ts = NULL;
    cleanup(playlist_free) struct playlist *q = finished(plan, &m.track, &ts);
    assert_null(playlist_track(q)->init);
    assert_non_null(strstr(ts, "#EXT-X-VERSION:6\n"));
    assert_null(strstr(ts, "EXT-X-MAP"));
}

/* Three hours whose segments are no whole number of microseconds: every running sum is within half
 * a microsecond of the truth. */
static void test_sums_do_not_drift(void **state)
{
    (void)state;
    cleanup(fixture_free_plan) struct plan *plan = plan_with(PROFILE, ONE_AUDIO);
    cleanup(made_free) struct made m;
    struct rational base = {1, 30000};
    int64_t durations[] = {179 * 1001 + 1, 180 * 1001, 180 * 1001 - 1}, bytes[] = {1};
    make_track(&m, "v", base, 1800, durations, 3, bytes, 1);
    cleanup(free_ptr) char *text = NULL;
    cleanup(playlist_free) struct playlist *p = finished(plan, &m.track, &text);
    assert_string_equal(playlist_track(p)->rendition, "v");
    int64_t sum_us = 0, ticks = 0;
    size_t i = 0;
    for (char *s = strstr(text, "#EXTINF:"); s; s = strstr(s + 1, "#EXTINF:"), i++) {
        long long seconds, us;
        assert_int_equal(sscanf(s, "#EXTINF:%lld.%6lld,", &seconds, &us), 2);
        sum_us += seconds * 1000000 + us;
        ticks += m.segments[i].duration;
        assert_true(llabs(sum_us * 3 - ticks * 100) * 2 <= 3); /* us against ticks/30000 s */
    }
    assert_int_equal(i, 1800);
}

static void test_chunks_append(void **state)
{
    (void)state;
    cleanup(fixture_free_plan) struct plan *plan = plan_with(PROFILE, ONE_AUDIO);
    cleanup(made_free) struct made whole;
    int64_t durations[] = {540000, 537000, 543000}, bytes[] = {7, 5000, 300};
    make_track(&whole, "v", (struct rational){1, 90000}, 10, durations, 3, bytes, 3);
    cleanup(free_ptr) char *expected = NULL, *text = NULL;
    cleanup(playlist_free) struct playlist *one = finished(plan, &whole.track, &expected);
    cleanup(playlist_free) struct playlist *p = playlist_new(plan);
    for (size_t i = 0; i < 10; i += 4) {
        struct manifest_track part = whole.track;
        part.segments = whole.segments + i;
        part.n_segments = i + 4 > 10 ? 10 - i : 4;
        part.start = part.segments[0].start;
        part.end =
            part.segments[part.n_segments - 1].start + part.segments[part.n_segments - 1].duration;
        assert_int_equal(playlist_add(p, &part, NULL), 0);
    }
    assert_int_equal(playlist_finish(p, &text, NULL), 0);
    assert_string_equal(text, expected);
    assert_int_equal(playlist_peak_bps(p), playlist_peak_bps(one));
}

static void test_refuses_what_does_not_join(void **state)
{
    (void)state;
    cleanup(fixture_free_plan) struct plan *plan = plan_with(PROFILE, ONE_AUDIO);
    cleanup(made_free) struct made m;
    int64_t durations[] = {540000}, bytes[] = {1};
    make_track(&m, "v", (struct rational){1, 90000}, 2, durations, 1, bytes, 1);
    for (int fault = 0; fault < 6; fault++) {
        cleanup(playlist_free) struct playlist *p = playlist_new(plan);
        assert_int_equal(playlist_add(p, &m.track, NULL), 0);
        struct manifest_segment next = {
            .index = 2, .start = 1080000, .duration = 540000, .bytes = 1, .name = m.names};
        struct manifest_track t = m.track;
        t.segments = &next;
        t.n_segments = 1;
        t.start = 1080000;
        t.end = 1620000;
        if (fault == 1)
            t.start = next.start = 1080001;
        if (fault == 2)
            t.init = (char *)"other.mp4";
        if (fault == 3)
            next.index = 1;
        if (fault == 4)
            t.end++;
        if (fault == 5)
            t.time_base.den = 1000;
        assert_int_equal(playlist_add(p, &t, NULL), fault ? -ERR_BUG : 0);
    }
    cleanup(playlist_free) struct playlist *empty = playlist_new(plan);
    char *text = NULL;
    assert_int_equal(playlist_finish(empty, &text, NULL), -ERR_BUG);
}

/* RFC 8216: EXTINF, rounded, is at most the target; all playlists can be brought to one target. */
static void test_target_duration(void **state)
{
    (void)state;
    cleanup(fixture_free_plan) struct plan *plan = plan_with(PROFILE, ONE_AUDIO);
    static const struct {
        int64_t ticks, target;
    } cases[] = {{540000, 6}, {544000, 6}, {584999, 6}, {585000, 7}, {3600, 6}, {1800000, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(made_free) struct made m;
        int64_t bytes[] = {1};
        make_track(&m, "v", (struct rational){1, 90000}, 1, &cases[i].ticks, 1, bytes, 1);
        cleanup(playlist_free) struct playlist *p = finished(plan, &m.track, NULL);
        assert_int_equal(playlist_target(p), cases[i].target);
        playlist_raise_target(p, 30);
        playlist_raise_target(p, 5);
        cleanup(free_ptr) char *text = NULL;
        assert_int_equal(playlist_finish(p, &text, NULL), 0);
        assert_non_null(strstr(text, "#EXT-X-TARGETDURATION:30\n"));
    }
}

/* The definition, spelled out: every run, kept when it lasts 0.5 to 1.5 targets. */
static int64_t brute_peak(const struct made *m, int64_t target, int64_t average)
{
    int64_t most = average;
    for (size_t i = 0; i < m->track.n_segments; i++)
        for (size_t k = i; k < m->track.n_segments; k++) {
            int64_t ticks = 0, bytes = 0;
            for (size_t j = i; j <= k; j++) {
                ticks += m->segments[j].duration;
                bytes += m->segments[j].bytes;
            }
            if (2 * ticks < target * 90000 || 2 * ticks > 3 * target * 90000)
                continue;
            int64_t bps = (bytes * 8 * 90000 + ticks - 1) / ticks;
            most = bps > most ? bps : most;
        }
    return most;
}

static void test_rates(void **state)
{
    (void)state;
    cleanup(fixture_free_plan) struct plan *plan = plan_with(PROFILE, ONE_AUDIO);
    static const int64_t durations[][4] = {{540000, 540000, 540000, 540000},
                                           {540000, 100000, 260000, 700000},
                                           {90000, 180000, 45000, 270000},
                                           {3600, 3600, 3600, 3600}};
    static const int64_t bytes[] = {1000, 900000, 20000, 5, 700000, 3, 123456};
    for (size_t d = 0; d < 4; d++)
        for (size_t n = 1; n < 40; n += 3) {
            cleanup(made_free) struct made m;
            make_track(&m, "v", (struct rational){1, 90000}, n, durations[d], 4, bytes, 7);
            cleanup(playlist_free) struct playlist *p = finished(plan, &m.track, NULL);
            int64_t total = 0;
            for (size_t i = 0; i < n; i++)
                total += m.segments[i].bytes;
            int64_t average = (total * 8 * 90000 + m.track.end - 1) / m.track.end;
            assert_int_equal(playlist_average_bps(p), average);
            assert_int_equal(playlist_peak_bps(p), brute_peak(&m, playlist_target(p), average));
        }
}

static void test_frame_rate(void **state)
{
    (void)state;
    cleanup(fixture_free_plan) struct plan *plan = plan_with(PROFILE, ONE_AUDIO);
    cleanup(made_free) struct made m;
    int64_t durations[] = {150 * 3003}, bytes[] = {1};
    make_track(&m, "v", (struct rational){1, 90000}, 50, durations, 1, bytes, 1);
    cleanup(playlist_free) struct playlist *p = finished(plan, &m.track, NULL);
    assert_int_equal(rational_cmp(playlist_frame_rate(p), (struct rational){30000, 1001}), 0);
    m.track.width = 0;
    cleanup(playlist_free) struct playlist *audio = finished(plan, &m.track, NULL);
    assert_false(rational_is_set(playlist_frame_rate(audio)));
}

/* --- master ------------------------------------------------------------------------------------
 */

enum { MANY = 16 };

struct show {
    struct plan *plan;
    struct made made[MANY];
    struct playlist *lists[MANY];
    size_t n;
    char *text;
};

static void show_free(struct show *s)
{
    for (size_t i = 0; i < s->n; i++) {
        made_free(&s->made[i]);
        playlist_free(&s->lists[i]);
    }
    free(s->text);
    bind_free(&plan_type, &s->plan);
}

/* Every playlist of a plan; rendition i has (i + 1) * video bytes a segment, audio its own. */
static void make_show(struct show *s, const char *profile, const char *audio, const int64_t *bytes)
{
    *s = (struct show){.plan = plan_with(profile, audio)};
    int64_t durations[] = {540000};
    for (size_t i = 0; i < s->plan->n_renditions + s->plan->n_audio; i++) {
        bool is_video = i < s->plan->n_renditions;
        size_t a = i - s->plan->n_renditions;
        struct made *m = &s->made[i];
        make_track(m, is_video ? s->plan->renditions[i].name : s->plan->audio[a].name,
                   (struct rational){1, 90000}, 10, durations, 1, &bytes[i], 1);
        m->track.width = is_video ? s->plan->renditions[i].width : 0;
        m->track.height = is_video ? s->plan->renditions[i].height : 0;
        if (!is_video) {
            m->track.codecs = (char *)"mp4a.40.2";
            m->track.channels = s->plan->audio[a].channels;
            m->track.video_range = NULL;
        }
        s->lists[i] = finished(s->plan, &m->track, NULL);
        s->n++;
    }
    struct err e = {0};
    if (playlist_master(s->plan, s->lists, s->plan->n_renditions, s->lists + s->plan->n_renditions,
                        s->plan->n_audio, &s->text, &e) < 0)
        fail_msg("%s", e.msg);
}

static void test_master(void **state)
{
    (void)state;
    static const char profile[] = "{encoder: x, renditions: [{name: a, height: 360, crf: 20}, "
                                  "{name: b, height: 720, crf: 20},"
                                  " {name: c, height: 1080, crf: 20}], audio: [{bitrate: 96k}]}";
    static const int64_t bytes[] = {300000, 1500000, 4500000, 75000};
    cleanup(show_free) struct show s;
    make_show(&s, profile, ONE_AUDIO, bytes);
    assert_string_equal(
        s.text,
        "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-INDEPENDENT-SEGMENTS\n"
        "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"audio-96k\",NAME=\"en\",LANGUAGE=\"en\",DEFAULT=YES,"
        "AUTOSELECT=YES,CHANNELS=\"2\",URI=\"audio-96k/index.m3u8\"\n"
        "#EXT-X-STREAM-INF:BANDWIDTH=2100000,AVERAGE-BANDWIDTH=2100000,CODECS=\"avc1.640028,mp4a."
        "40."
        "2\",RESOLUTION=1280x720,FRAME-RATE=25.000,VIDEO-RANGE=SDR,AUDIO=\"audio-96k\","
        "CLOSED-CAPTIONS=NONE\nb/index.m3u8\n"
        "#EXT-X-STREAM-INF:BANDWIDTH=6100000,AVERAGE-BANDWIDTH=6100000,CODECS=\"avc1.640028,mp4a."
        "40."
        "2\",RESOLUTION=1920x1080,FRAME-RATE=25.000,VIDEO-RANGE=SDR,AUDIO=\"audio-96k\","
        "CLOSED-CAPTIONS=NONE\nc/index.m3u8\n"
        "#EXT-X-STREAM-INF:BANDWIDTH=500000,AVERAGE-BANDWIDTH=500000,CODECS=\"avc1.640028,mp4a.40."
        "2\",RESOLUTION=640x360,FRAME-RATE=25.000,VIDEO-RANGE=SDR,AUDIO=\"audio-96k\","
        "CLOSED-CAPTIONS=NONE\na/index.m3u8\n");
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *s = strstr(text, what); s; s = strstr(s + 1, what))
        n++;
    return n;
}

/* The line that precedes a URI. */
static const char *line_before(const char *text, const char *uri)
{
    static char line[1000];
    const char *at = strstr(text, uri), *begin = at - 1;
    while (begin > text && begin[-1] != '\n')
        begin--;
    snprintf(line, sizeof line, "%.*s", (int)(at - 1 - begin), begin);
    return line;
}

static void test_groups_are_paired_not_multiplied(void **state)
{
    (void)state;
    static const char profile[] =
        "{encoder: x, renditions: [{name: a, height: 240, crf: 20}, {name: b, height: 360, crf: "
        "20},"
        " {name: c, height: 720, crf: 20}, {name: d, height: 1080, crf: 20}],"
        " audio: [{bitrate: 160k}, {bitrate: 64k}]}"; /* the higher first */
    static const int64_t bytes[] = {100000, 300000, 1500000, 4500000, 120000, 48000};
    cleanup(show_free) struct show s;
    make_show(&s, profile, ONE_AUDIO, bytes);
    assert_int_equal(count(s.text, "#EXT-X-STREAM-INF"), 4);
    assert_int_equal(count(s.text, "#EXT-X-MEDIA"), 2);
    assert_non_null(strstr(line_before(s.text, "\na/index"), "AUDIO=\"audio-64k\""));
    assert_non_null(strstr(line_before(s.text, "\nb/index"), "AUDIO=\"audio-64k\""));
    assert_non_null(strstr(line_before(s.text, "\nc/index"), "AUDIO=\"audio-160k\""));
    assert_non_null(strstr(line_before(s.text, "\nd/index"), "AUDIO=\"audio-160k\""));
}

static void test_languages_and_names(void **state)
{
    (void)state;
    static const char audio[] =
        "audio: [{sample_rate: 48000, channels: 2, language: eng},"
        "{sample_rate: 48000, channels: 6, language: ger, title: 'Der \"Film\"'},"
        "{sample_rate: 48000, channels: 2, language: deu, is_default: true, title: 'Der \"Film\"'},"
        "{sample_rate: 48000, channels: 1, language: und},"
        "{sample_rate: 48000, channels: 1}]";
    static const int64_t bytes[] = {300000, 40000, 90000, 40000, 40000, 40000};
    cleanup(show_free) struct show s;
    make_show(&s, PROFILE, audio, bytes);
    static const char *const parts[] = {
        "NAME=\"en\",LANGUAGE=\"en\",DEFAULT=NO,AUTOSELECT=YES,CHANNELS=\"2\"",
        "NAME=\"Der 'Film' (2)\",LANGUAGE=\"de\",DEFAULT=NO,AUTOSELECT=YES,CHANNELS=\"6\"",
        "NAME=\"Der 'Film' (3)\",LANGUAGE=\"de\",DEFAULT=YES,AUTOSELECT=YES",
        "NAME=\"Audio 4\",DEFAULT=NO,AUTOSELECT=YES,CHANNELS=\"1\"",
        "NAME=\"Audio 5\",DEFAULT=NO,AUTOSELECT=NO",
        "URI=\"audio-96k-3-deu/index.m3u8\"",
        "BANDWIDTH=520000,", /* the dearest track counts */
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(s.text, parts[i]))
            fail_msg("no %s in: %s", parts[i], s.text);
    assert_int_equal(count(s.text, "DEFAULT=YES"), 1);
    assert_int_equal(count(s.text, "\"avc1.640028,mp4a.40.2\""), 1);
}

static void test_audio_only_and_video_only(void **state)
{
    (void)state;
    static const int64_t bytes[] = {48000, 96000};
    cleanup(show_free) struct show s;
    make_show(&s, "{audio: [{bitrate: 64k}, {bitrate: 128k}]}", ONE_AUDIO, bytes);
    assert_int_equal(count(s.text, "#EXT-X-MEDIA:"), 0);
    assert_int_equal(count(s.text, "#EXT-X-STREAM-INF:"), 2);
    assert_non_null(strstr(s.text, "BANDWIDTH=64000,AVERAGE-BANDWIDTH=64000,CODECS=\"mp4a.40.2\","
                                   "CLOSED-CAPTIONS=NONE\naudio-64k/index.m3u8\n"));
    assert_null(strstr(s.text, "RESOLUTION"));
    cleanup(show_free) struct show mute;
    make_show(&mute, PROFILE, "audio: []", bytes);
    assert_int_equal(count(mute.text, "AUDIO"), 0);
    assert_non_null(strstr(mute.text, "CODECS=\"avc1.640028\""));
}

/* The master names nothing that is not finished. */
static void test_master_needs_all(void **state)
{
    (void)state;
    static const int64_t bytes[] = {300000, 75000};
    cleanup(show_free) struct show s;
    make_show(&s, PROFILE, ONE_AUDIO, bytes);
    char *text = NULL;
    assert_int_equal(playlist_master(s.plan, s.lists, 1, NULL, 0, &text, NULL), -ERR_BUG);
    cleanup(playlist_free) struct playlist *open = playlist_new(s.plan);
    struct playlist *half[] = {open};
    assert_int_equal(playlist_master(s.plan, half, 1, s.lists + 1, 1, &text, NULL), -ERR_BUG);
    assert_int_equal(playlist_add(open, &s.made[0].track, NULL), 0);
    assert_int_equal(playlist_master(s.plan, half, 1, s.lists + 1, 1, &text, NULL), -ERR_BUG);
}

static void test_language_tags(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"eng", "en"}, {"ENG", "en"},  {"deu", "de"},
                                           {"ger", "de"}, {"fre", "fr"},  {"zho", "zh"},
                                           {"en", "en"},  {"fil", "fil"}, {"pt-BR", "pt-BR"},
                                           {"zul", "zu"}, {"aar", "aa"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(language_tag(cases[i][0]), cases[i][1]);
    static const char *const none[] = {"",     "und", "mul", "zxx", "e",      "english",
                                       "e\"n", "en-", "-en", "12",  "en--us", "en_US"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (language_tag(none[i]))
            fail_msg("%s", none[i]);
    assert_null(language_tag(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_sums_do_not_drift),
        cmocka_unit_test(test_chunks_append),
        cmocka_unit_test(test_refuses_what_does_not_join),
        cmocka_unit_test(test_target_duration),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_frame_rate),
        cmocka_unit_test(test_master),
        cmocka_unit_test(test_groups_are_paired_not_multiplied),
        cmocka_unit_test(test_languages_and_names),
        cmocka_unit_test(test_audio_only_and_video_only),
        cmocka_unit_test(test_master_needs_all),
        cmocka_unit_test(test_language_tags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
