/* The commit gate: a right manifest passes, and each single fault in it is found. */
#include "fixture.h"

#include "pipelines/plan/manifest.h"

static const struct rational fps60 = {60, 1};

#define PROFILE                                                                                 \
    "{encoder: x, segment: 4, renditions: [{name: low, height: 360, crf: 20, fps_policy: cap, " \
    "fps: 30}, {name: mid, height: 540, crf: 20}, {name: high, height: 720, crf: 20}], "        \
    "audio: [{name: sound, bitrate: 96k}]}"

struct world {
    struct source *source;
    struct plan *plan;
    struct plan_chunk chunk;
};

static void free_manifest(struct manifest **m)
{
    bind_free(&manifest_type, m);
}

static void world_free(struct world *w)
{
    bind_free(&source_type, &w->source);
    bind_free(&plan_type, &w->plan);
}

/* Chunk of segments 2 to 4 of a 60 frames/s source of many segments. */
static struct world new_world(void)
{
    struct world w = {.source = fixture_video(1280, 720, fps60, 60 * 60),
                      .chunk = {.index = 1, .first_segment = 2, .end_segment = 5}};
    w.source->audio = xcalloc(1, sizeof *w.source->audio);
    w.source->n_audio = 1;
    w.source->audio[0].sample_rate = 48000;
    w.source->audio[0].channels = 2;
    w.source->audio[0].time_base = (struct rational){1, 48000};
    w.plan = fixture_plan(PROFILE, w.source);
    return w;
}

static void add_segments(struct manifest_track *t, int64_t first, int64_t n, int64_t frames)
{
    int64_t length = rational_rescale(4, (struct rational){1, 1}, t->time_base, ROUND_NEAREST);
    t->segments = xcalloc((size_t)n, sizeof *t->segments);
    t->n_segments = (size_t)n;
    t->start = first * length;
    t->end = (first + n) * length;
    for (int64_t i = 0; i < n; i++)
        t->segments[i] =
            (struct manifest_segment){.index = first + i,
                                      .start = (first + i) * length,
                                      .duration = length,
                                      .frames = frames,
                                      .keyframes = 2,
                                      .bytes = 1000,
                                      .name = xasprintf("%lld.m4s", (long long)(first + i))};
    t->frames = n * frames;
    t->keyframes = n * 2;
}

static struct manifest *new_manifest(const struct world *w)
{
    struct manifest *m = xcalloc(1, sizeof *m);
    m->chunk = 1;
    m->device = xstrdup("cpu");
    m->n_tracks = 3;
    m->tracks = xcalloc(3, sizeof *m->tracks);
    for (size_t i = 0; i < 3; i++) {
        struct manifest_track *t = &m->tracks[i];
        const struct plan_rendition *r = &w->plan->renditions[i];
        t->rendition = xstrdup(r->name);
        t->init = xstrdup("init.mp4");
        t->codecs = xstrdup("avc1.640028");
        t->parameter_sets = xstrdup("abc");
        t->video_range = xstrdup("SDR");
        t->time_base = r->time_base;
        t->width = r->width;
        t->height = r->height;
        add_segments(t, 2, 3, i == 0 ? 120 : 240);
    }
    return m;
}

static void replace(char **s, const char *with)
{
    free(*s);
    *s = xstrdup(with);
}

static void test_right_manifest_passes(void **state)
{
    (void)state;
    cleanup(world_free) struct world w = new_world();
    cleanup(free_manifest) struct manifest *m = new_manifest(&w);
    struct err e = {0};
    if (manifest_check_video(m, w.plan, &w.chunk, &e) < 0)
        fail_msg("%s", e.msg);
    cleanup(free_ptr) char *text = bind_dump(&manifest_type, m);
    cleanup(free_manifest) struct manifest *again = fixture_read(&manifest_type, text);
    cleanup(free_ptr) char *second = bind_dump(&manifest_type, again);
    assert_string_equal(text, second);
    if (manifest_check_video(again, w.plan, &w.chunk, &e) < 0)
        fail_msg("%s", e.msg);
}

/* --- one fault each; the text is what the message must say -------------------------------------
 */

static void lose_track(struct manifest *m)
{
    m->n_tracks = 2;
    struct manifest_track *t = &m->tracks[2];
    for (size_t i = 0; i < t->n_segments; i++)
        free(t->segments[i].name);
    free(t->segments);
    free(t->rendition);
    free(t->init);
    free(t->codecs);
    free(t->parameter_sets);
    free(t->video_range);
}
static void swap_tracks(struct manifest *m)
{
    struct manifest_track t = m->tracks[1];
    m->tracks[1] = m->tracks[2];
    m->tracks[2] = t;
}
static void wrong_chunk(struct manifest *m)
{
    m->chunk = 2;
}
static void no_keyframe(struct manifest *m)
{
    m->tracks[1].segments[1].keyframes = 0;
    m->tracks[1].keyframes -= 2;
}
static void hole(struct manifest *m)
{
    m->tracks[0].segments[1].start++;
    m->tracks[0].segments[1].duration--;
}
static void short_end(struct manifest *m)
{
    m->tracks[2].end--;
}
static void lost_frame(struct manifest *m)
{
    m->tracks[2].frames--;
}
static void miscounted_keyframe(struct manifest *m)
{
    m->tracks[2].keyframes++;
}
/* Consistent in itself; only the sibling shows it. */
static void frame_lost_from_one_rendition(struct manifest *m)
{
    m->tracks[2].segments[1].frames--;
    m->tracks[2].frames--;
}
static void border_moved_in_one_rendition(struct manifest *m)
{
    m->tracks[2].segments[0].duration += 1500;
    m->tracks[2].segments[1].start += 1500;
    m->tracks[2].segments[1].duration -= 1500;
}
static void same_index_twice(struct manifest *m)
{
    m->tracks[0].segments[1].index = 2;
}
static void missing_segment(struct manifest *m)
{
    m->tracks[0].segments[2].index = 5;
}
static void outside_chunk(struct manifest *m)
{
    for (size_t i = 0; i < 3; i++)
        m->tracks[0].segments[i].index++;
}
static void stops_early(struct manifest *m)
{
    for (size_t i = 0; i < 3; i++) {
        struct manifest_track *t = &m->tracks[i];
        t->n_segments = 2;
        free(t->segments[2].name);
        t->frames -= t->segments[2].frames;
        t->keyframes -= 2;
        t->end = t->segments[2].start;
    }
}
static void empty_segment(struct manifest *m)
{
    m->tracks[0].segments[0].bytes = 0;
}
static void no_parameter_sets(struct manifest *m)
{
    replace(&m->tracks[0].parameter_sets, "");
}
static void no_init(struct manifest *m)
{
    replace(&m->tracks[0].init, "");
}
static void name_with_slash(struct manifest *m)
{
    replace(&m->tracks[0].segments[0].name, "../x.m4s");
}
static void no_codecs(struct manifest *m)
{
    replace(&m->tracks[0].codecs, "");
}
static void wrong_size(struct manifest *m)
{
    m->tracks[1].width += 2;
}
static void wrong_time_base(struct manifest *m)
{
    m->tracks[1].time_base.den = 1000;
}
static void truncated(struct manifest *m)
{
    m->is_truncated = true;
}

static void test_each_fault_is_found(void **state)
{
    (void)state;
    static const struct {
        void (*break_it)(struct manifest *m);
        const char *says;
    } faults[] = {
        {lose_track, "2 renditions, planned 3"},
        {swap_tracks, "another rendition"},
        {wrong_chunk, "manifest of chunk 2"},
        {no_keyframe, "mid: segment 3"},
        {hole, "low: segment 3"},
        {short_end, "high: its segments do not reach"},
        {lost_frame, "high: its frames are not"},
        {miscounted_keyframe, "high: its frames are not"},
        {frame_lost_from_one_rendition, "mid and high"},
        {border_moved_in_one_rendition, "mid and high"},
        {same_index_twice, "index does not increase"},
        {missing_segment, "low: segments 2 to 5"},
        {outside_chunk, "low: segments 3 to 5"},
        {stops_early, "do not fill the chunk"},
        {empty_segment, "no bytes"},
        {no_parameter_sets, "parameter sets"},
        {no_init, "no init"},
        {name_with_slash, "slash"},
        {no_codecs, "no codecs"},
        {wrong_size, "planned 960x540"},
        {wrong_time_base, "time base"},
        {truncated, "--allow-truncated"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        cleanup(world_free) struct world w = new_world();
        cleanup(free_manifest) struct manifest *m = new_manifest(&w);
        struct err e = {0};
        faults[i].break_it(m);
        int rc = manifest_check_video(m, w.plan, &w.chunk, &e);
        if (rc >= 0 || !strstr(e.msg, faults[i].says))
            fail_msg("fault %zu (%s): %s", i, faults[i].says, rc < 0 ? e.msg : "accepted");
        assert_non_null(strstr(e.msg, "chunk 1: "));
    }
}

/* The last chunk runs to the real end, and a variable rate may have empty segments. */
static void test_what_may_vary(void **state)
{
    (void)state;
    cleanup(world_free) struct world w = new_world();
    cleanup(free_manifest) struct manifest *m = new_manifest(&w);
    struct err e = {0};
    w.chunk.end_segment = INT64_MAX;
    stops_early(m);
    if (manifest_check_video(m, w.plan, &w.chunk, &e) < 0)
        fail_msg("%s", e.msg);
    cleanup(free_manifest) struct manifest *sparse = new_manifest(&w);
    w.chunk.end_segment = 6;
    w.plan->cfr = (struct rational){0, 1};
    sparse->tracks[0].segments[2].index = 4; /* a grid has no gaps */
    for (size_t i = 1; i < 3; i++)
        sparse->tracks[i].segments[2].index = 5;
    w.chunk.end_segment = 5;
    assert_true(manifest_check_video(sparse, w.plan, &w.chunk, &e) < 0);
    for (size_t i = 1; i < 3; i++) {
        sparse->tracks[i].segments[1].index = 4;
        sparse->tracks[i].n_segments = 2;
        free(sparse->tracks[i].segments[2].name);
        sparse->tracks[i].segments[1].duration *= 2;
        sparse->tracks[i].frames = 480;
        sparse->tracks[i].keyframes = 4;
    }
    if (manifest_check_video(sparse, w.plan, &w.chunk, &e) < 0)
        fail_msg("%s", e.msg);
}

static void test_audio(void **state)
{
    (void)state;
    cleanup(world_free) struct world w = new_world();
    cleanup(free_manifest) struct manifest *m = new_manifest(&w);
    struct err e = {0};
    assert_true(manifest_check_audio(m, w.plan, 0, &e) < 0); /* three tracks */
    swap_tracks(m);
    lose_track(m);
    assert_true(manifest_check_audio(m, w.plan, 0, &e) < 0);
    cleanup(free_manifest) struct manifest *sound = new_manifest(&w);
    lose_track(sound);
    sound->n_tracks = 1;
    replace(&sound->tracks[0].rendition, "sound");
    sound->tracks[0].channels = 2;
    sound->tracks[0].sample_rate = 48000;
    if (manifest_check_audio(sound, w.plan, 0, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(manifest_check_audio(sound, w.plan, 1, &e) < 0);
    sound->tracks[0].segments[1].start++;
    assert_true(manifest_check_audio(sound, w.plan, 0, &e) < 0);
    assert_non_null(strstr(e.msg, "audio sound"));
    sound->n_tracks = 2;
}

/* --- joins -------------------------------------------------------------------------------------
 */

static struct manifest *next_manifest(const struct world *w)
{
    struct manifest *m = new_manifest(w);
    m->chunk = 2;
    for (size_t i = 0; i < 3; i++) {
        int64_t length = m->tracks[i].segments[0].duration;
        for (size_t k = 0; k < 3; k++) {
            m->tracks[i].segments[k].index += 3;
            m->tracks[i].segments[k].start += 3 * length;
        }
        m->tracks[i].start += 3 * length;
        m->tracks[i].end += 3 * length;
    }
    return m;
}

static void other_init(struct manifest *m)
{
    replace(&m->tracks[2].init, "other.mp4");
}
static void other_parameter_sets(struct manifest *m)
{
    replace(&m->tracks[1].parameter_sets, "def");
}
static void other_codecs(struct manifest *m)
{
    replace(&m->tracks[1].codecs, "avc1.64001f");
}
static void late_start(struct manifest *m)
{
    m->tracks[0].start++;
}
static void same_segment(struct manifest *m)
{
    m->tracks[0].segments[0].index = 4;
}

static void test_joins(void **state)
{
    (void)state;
    static const struct {
        void (*break_it)(struct manifest *m);
        const char *says;
    } faults[] = {
        {NULL, NULL},
        {other_init, "high: init segments differ"},
        {other_parameter_sets, "mid: parameter sets differ"},
        {other_codecs, "mid: codecs differ"},
        {wrong_size, "mid: sizes differ"},
        {wrong_time_base, "mid: time bases differ"},
        {late_start, "low: one does not start where"},
        {same_segment, "low: segment indexes overlap"},
        {swap_tracks, "order"},
        {lose_track, "3 and 2 renditions"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        cleanup(world_free) struct world w = new_world();
        cleanup(free_manifest) struct manifest *a = new_manifest(&w), *b = next_manifest(&w);
        struct err e = {0};
        if (faults[i].break_it)
            faults[i].break_it(b);
        int rc = manifest_check_join(a, b, &e);
        if (!faults[i].says && rc < 0)
            fail_msg("%s", e.msg);
        if (faults[i].says && (rc != -ERR_BUG || !strstr(e.msg, faults[i].says)))
            fail_msg("fault %zu (%s): %s", i, faults[i].says, rc < 0 ? e.msg : "accepted");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_manifest_passes),
        cmocka_unit_test(test_each_fault_is_found),
        cmocka_unit_test(test_what_may_vary),
        cmocka_unit_test(test_audio),
        cmocka_unit_test(test_joins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
