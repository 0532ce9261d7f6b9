/*
 * Thumbnails through video_chunk_run: clips whose frames carry their numbers are cut into 1 to 12
 * chunks; each time the same files must come out, and each must show the frame that the definition
 * names, worked out here with plain rationals. With DEVICE=cuda:N they must also be the CPU's to
 * the byte, and nothing but the small pictures may come down.
 */
#include <fcntl.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/probe.h"
#include "pipelines/media/task.h"
#include "tests/simgpu/stats.h"
#include "tests/support/opened.h"
#include "tests/support/scratch.h"
#include "tests/support/simgpu.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHUNKS_STEP 5 /* sanitizers look at the code, not at the arithmetic */
#else
#define CHUNKS_STEP 1
#endif

enum { FRAMES_MAX = 400, LIST_MAX = 64, HEIGHT = 54 };

static void ok(int status, const struct err *e)
{
    if (status < 0)
        fail_msg("%s", e->msg);
}

/* --- the definition ----------------------------------------------------------------------------
 */

struct seen {
    int64_t n;
    struct rational at[FRAMES_MAX]; /* seconds from the origin */
};

static void see(void *arg, const struct clip_frame *f)
{
    struct seen *s = arg;
    assert_true(s->n < FRAMES_MAX);
    assert_int_equal(f->number, s->n);
    s->at[s->n++] =
        rational_mul(rational_make(f->pts, 1), rational_make(f->time_base.num, f->time_base.den));
}

static struct rational minus(struct rational a, struct rational b)
{
    return rational_make(a.num * b.den - b.num * a.den, a.den * b.den);
}

/* rate: of a constant-rate clip, whose frames lie exactly there; else unset. */
static void read_times(const char *path, const struct source *source, struct rational rate,
                       struct seen *ret)
{
    struct err e;
    ret->n = 0;
    ok((int)clip_read_video(path, 0, see, ret, &e), &e);
    struct rational origin = rational_mul(rational_make(source->origin, 1), source->origin_base);
    for (int64_t i = 0; i < ret->n; i++)
        ret->at[i] = minus(ret->at[i], origin);
    for (int64_t i = 1; rational_is_set(rate) && i < ret->n; i++)
        ret->at[i] = minus(ret->at[0], rational_div(rational_make(-i, 1), rate));
}

static int64_t step_of(struct rational at, struct rational every)
{
    return rational_rescale(at.num, rational_make(1, at.den), every, ROUND_FLOOR);
}

/* The n-th thumbnail's frame and step; false past the last. */
static bool expected(const struct seen *s, struct rational every, size_t n, int64_t *ret_frame,
                     int64_t *ret_step)
{
    int64_t last = -1;
    for (int64_t i = 0; i < s->n; i++) {
        int64_t step = step_of(s->at[i], every);
        if (step == last)
            continue;
        last = step;
        if (!n--) {
            *ret_frame = i;
            *ret_step = step;
            return true;
        }
    }
    return false;
}

/* --- the work ----------------------------------------------------------------------------------
 */

struct work {
    struct opened o;
    struct warm warm;
    struct source *source;
    struct plan *plan;
    int scratch;
    const char *dir;
    int64_t announced; /* bytes of thumbnails */
};

static void on_file(void *arg, const char *path, int64_t bytes)
{
    struct work *w = arg;
    if (strncmp(path, THUMBNAILS_FOLDER "/", strlen(THUMBNAILS_FOLDER) + 1) == 0)
        w->announced += bytes;
}

static void on_progress(void *arg, int64_t in, int64_t out)
{
    (void)arg, (void)in, (void)out;
}

static void work_open(struct work *w, const char *clip, const char *profile_text)
{
    struct err e;
    char dir[] = "/tmp/test_thumbnails.XXXXXX";
    struct profile *profile = NULL;
    *w = (struct work){0};
    assert_non_null(mkdtemp(dir));
    w->dir = xstrdup(dir);
    w->scratch = open(dir, O_RDONLY | O_DIRECTORY);
    opened_must(&w->o, clip);
    ok(bind_parse(&profile_type, profile_text, strlen(profile_text), "profile", ERR_CONFIG,
                  &profile, &e),
       &e);
    ok(probe_source(w->o.in, &w->o.limits, profile->segment, NULL, NULL, &w->source, &e), &e);
    ok(plan_make(profile, w->source, &(struct plan_options){.segments = -1}, &w->plan, &e), &e);
    bind_free(&profile_type, &profile);
}

static void work_close(struct work *w)
{
    cleanup(free_ptr) char *command = xasprintf("rm -r %s", w->dir);
    assert_int_equal(system(command), 0);
    bind_free(&plan_type, &w->plan);
    bind_free(&source_type, &w->source);
    opened_close(&w->o);
    close(w->scratch);
    free((char *)w->dir);
}

/* A keyframe early enough for a chunk that begins with that segment. */
static int64_t seek_pts(const struct work *w, int64_t segment)
{
    const struct source_video *v = w->source->video;
    for (int64_t i = segment - 1; i >= 0 && i < (int64_t)v->n_borders; i--)
        if (v->borders[i].frames >= w->plan->context)
            return v->borders[i].key_pts;
    return INT64_MIN;
}

struct list {
    size_t n;
    struct manifest_thumbnail v[LIST_MAX]; /* names: owned */
};

static void list_clear(struct list *l)
{
    while (l->n)
        free(l->v[--l->n].name);
}

static void run_chunk(struct work *w, const struct device *device, const struct plan_chunk *chunk,
                      struct list *list)
{
    struct err e;
    struct manifest *m = NULL;
    struct task_events events = {.arg = w, .file = on_file, .progress = on_progress};
    ok(video_chunk_run(&w->warm, w->o.in, &w->o.limits, device, w->source, w->plan, chunk,
                       w->scratch, &events, &m, &e),
       &e);
    ok(manifest_check_video(m, w->plan, chunk, &e), &e);
    for (size_t i = 0; i < m->n_thumbnails; i++) {
        assert_true(list->n < LIST_MAX);
        list->v[list->n] = m->thumbnails[i];
        list->v[list->n++].name = xstrdup(m->thumbnails[i].name);
    }
    bind_free(&manifest_type, &m);
}

/* Makes everything in so many chunks; list: of all thumbnails, in order. */
static void run_chunks(struct work *w, const char *device_name, int64_t chunks, struct list *list)
{
    struct err e;
    struct device *device = NULL;
    const struct plan_thumbnails *t = w->plan->thumbnails;
    ok(device_open(device_name, &device, &e), &e);
    int64_t down = simgpu_own(SIM_COUNTERS, "dtoh_bytes"), bytes = 0;
    list_clear(list);
    w->announced = 0;
    for (int64_t c = 0; c < chunks; c++) {
        int64_t first = w->plan->n_segments * c / chunks;
        struct plan_chunk chunk = {
            .index = c,
            .first_segment = first,
            .end_segment = c + 1 == chunks ? INT64_MAX : w->plan->n_segments * (c + 1) / chunks,
            .seek_pts = first ? seek_pts(w, first) : INT64_MIN,
        };
        run_chunk(w, device, &chunk, list);
    }
    for (size_t i = 0; i < list->n; i++)
        bytes += list->v[i].bytes;
    warm_clear(&w->warm);
    assert_int_equal(w->announced, bytes);
    down = simgpu_own(SIM_COUNTERS, "dtoh_bytes") - down;
    bytes = device_is_gpu(device) ? (int64_t)list->n * t->width * t->height * 3 / 2 : 0;
    assert_int_equal(down, bytes);
    device_close(&device);
}

/* --- the checks --------------------------------------------------------------------------------
 */

static void see_number(void *arg, const struct clip_frame *f)
{
    assert_int_equal(f->height, HEIGHT);
    *(int64_t *)arg = f->number;
}

static void check_list(const struct work *w, const struct list *list, const struct seen *source,
                       struct rational every)
{
    int64_t frame = -1, step = -1;
    for (size_t i = 0; i < list->n; i++) {
        struct err e;
        int64_t shown = -1;
        cleanup(free_ptr) char *path =
            xasprintf("%s/" THUMBNAILS_FOLDER "/%s", w->dir, list->v[i].name);
        assert_true(expected(source, every, i, &frame, &step));
        assert_int_equal(list->v[i].index, step);
        ok((int)clip_read_video(path, 0, see_number, &shown, &e), &e);
        assert_int_equal(shown, frame);
    }
    assert_false(expected(source, every, list->n, &frame, &step));
}

static void check_same(const struct list *a, const struct list *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert_int_equal(a->v[i].index, b->v[i].index);
        assert_int_equal(a->v[i].start, b->v[i].start);
        assert_string_equal(a->v[i].name, b->v[i].name); /* so are the bytes */
    }
}

static void check_clip(const char *name, const struct clip_options *options, struct rational rate,
                       struct rational every, int segment)
{
    static struct seen source;
    static struct list whole, list;
    struct work w;
    const char *device = getenv("DEVICE") ? getenv("DEVICE") : "cpu";
    const char *path = clip_in_scratch(name, options);
    cleanup(free_ptr) char *profile =
        xasprintf("{encoder: libx264, preset: ultrafast, gop: 1, segment: %d, thumbnails: {every: "
                  "%lld/%lld, height: %d}, renditions: [{height: 90, bitrate: 100k}]}",
                  segment, (long long)every.num, (long long)every.den, HEIGHT);
    work_open(&w, path, profile);
    read_times(path, w.source, rate, &source);
    run_chunks(&w, "cpu", 1, &whole);
    check_list(&w, &whole, &source, every);
    bool is_cpu = !strcmp(device, "cpu");
    for (int64_t chunks = is_cpu ? 2 : 1; chunks <= 12 && chunks <= w.plan->n_segments;
         chunks += is_cpu ? CHUNKS_STEP : 5) {
        run_chunks(&w, device, chunks, &list);
        check_same(&whole, &list);
    }
    list_clear(&list);
    list_clear(&whole);
    work_close(&w);
}

static const struct rational none = {0, 1};

#define BASE \
    .width = 192, .height = 108, .fps = {25, 2}, .frames = 150, .video_options = "preset=superfast"

static void test_closed_gop(void **state)
{
    (void)state;
    check_clip("closed.mp4", &(struct clip_options){BASE, .gop = 33, .b_frames = 2},
               rational_make(25, 2), rational_make(5, 4), 1);
}

/* The chunk's keyframe is the first frame it needs, so that it knows of none before. */
static void test_open_gop(void **state)
{
    (void)state;
    check_clip("open.ts",
               &(struct clip_options){BASE, .gop = 25, .b_frames = 3, .is_open_gop = true},
               rational_make(25, 2), rational_make(3, 2), 1);
}

static void test_early_sound(void **state)
{
    (void)state;
    check_clip("early.mkv",
               &(struct clip_options){BASE, .gop = 25, .b_frames = 2, .n_audio = 1,
                                      .audio = {{.codec = "flac", .start_seconds = -0.62}}},
               rational_make(25, 2), rational_make(1, 1), 1);
}

static void test_ntsc(void **state)
{
    (void)state;
    check_clip("ntsc.mp4",
               &(struct clip_options){.width = 192,
                                      .height = 108,
                                      .fps = {15000, 1001},
                                      .frames = 180,
                                      .gop = 50,
                                      .b_frames = 2,
                                      .video_options = "preset=superfast"},
               rational_make(15000, 1001), rational_make(1, 1), 1);
}

/* Frames up to 3 s apart: steps without any, and frames beyond the chunk that are its own.
 */
static void check_stills(const char *name, int gop, int b_frames)
{
    enum { FRAMES = 50 };
    static int64_t pts[FRAMES];
    unsigned seed = 11;
    for (int i = 1; i < FRAMES; i++) {
        seed = seed * 1103515245 + 12345;
        pts[i] = pts[i - 1] + 40 + (seed >> 16) % 2960;
    }
    check_clip(name,
               &(struct clip_options){.width = 192,
                                      .height = 108,
                                      .frames = FRAMES,
                                      .gop = gop,
                                      .b_frames = b_frames,
                                      .pts = pts,
                                      .time_base = {1, 1000}},
               none, rational_make(7, 4), 4);
}

/* A chunk ends within a GOP, and at a keyframe, which is decoded only where it is wanted. */
static void test_stills(void **state)
{
    (void)state;
    check_stills("stills.mkv", 7, 2);
    check_stills("slides.mkv", 1, 0);
}

/* --- HDR ---------------------------------------------------------------------------------------
 */

static AVFrame *read_picture(const char *path)
{
    AVFormatContext *format = NULL;
    AVFrame *f = av_frame_alloc();
    assert_true(avformat_open_input(&format, path, NULL, NULL) >= 0);
    assert_true(avformat_find_stream_info(format, NULL) >= 0);
    const AVCodecParameters *par = format->streams[0]->codecpar;
    cleanup(avcodec_free_context) AVCodecContext *ctx =
        avcodec_alloc_context3(avcodec_find_decoder(par->codec_id));
    cleanup(av_packet_free) AVPacket *pkt = av_packet_alloc();
    assert_true(avcodec_parameters_to_context(ctx, par) >= 0);
    assert_int_equal(avcodec_open2(ctx, NULL, NULL), 0);
    assert_true(av_read_frame(format, pkt) >= 0);
    assert_int_equal(avcodec_send_packet(ctx, pkt), 0);
    assert_int_equal(avcodec_receive_frame(ctx, f), 0);
    avformat_close_input(&format);
    return f;
}

static int64_t mean_difference(const AVFrame *a, const AVFrame *b)
{
    int64_t sum = 0;
    for (int y = 0; y < a->height; y++)
        for (int x = 0; x < a->width; x++)
            sum += abs(a->data[0][y * a->linesize[0] + x] - b->data[0][y * b->linesize[0] + x]);
    return sum / a->width / a->height;
}

/* The first thumbnail of the clip under a profile with `hdr` and that pixel format. */
static AVFrame *first_thumbnail(const char *clip, const char *hdr, const char *pix_fmt,
                                const char *device)
{
    static struct list list;
    struct work w;
    cleanup(free_ptr) char *profile =
        xasprintf("{encoder: %s, gop: 1, segment: 1, pix_fmt: %s, hdr: %s, thumbnails: {every: 1, "
                  "height: %d}, renditions: [{height: 144, bitrate: 100k}]}",
                  strcmp(device, "cpu") ? "hevc_nvenc" : "libx264", pix_fmt, hdr, HEIGHT);
    work_open(&w, clip, profile);
    run_chunks(&w, device, 1, &list);
    cleanup(free_ptr) char *path = xasprintf("%s/" THUMBNAILS_FOLDER "/%s", w.dir, list.v[0].name);
    AVFrame *f = read_picture(path);
    list_clear(&list);
    work_close(&w);
    return f;
}

/* SDR whatever the ladder is, and the picture that a ladder in SDR would show. */
static void test_hdr(void **state)
{
    (void)state;
    const char *device = getenv("DEVICE") ? getenv("DEVICE") : "cpu";
    const char *clip = clip_in_scratch(
        "pq.mp4", &(struct clip_options){.codec = "libx265",
                                         .width = 256,
                                         .height = 144,
                                         .pix_fmt = "yuv420p10le",
                                         .fps = {10, 1},
                                         .frames = 10,
                                         .color_primaries = "bt2020",
                                         .color_transfer = "smpte2084",
                                         .color_space = "bt2020nc",
                                         .video_options = "x265-params=log-level=error"});
    cleanup(av_frame_free) AVFrame *mapped = first_thumbnail(clip, "tonemap", "yuv420p", "cpu");
    cleanup(av_frame_free) AVFrame *only = first_thumbnail(clip, "as-is", "yuv420p10le", device);
    cleanup(av_frame_free) AVFrame *also = first_thumbnail(clip, "tonemap", "yuv420p", device);
    cleanup(av_frame_free) AVFrame *raw = first_thumbnail(clip, "as-is", "yuv420p", "cpu");
    assert_int_equal(mean_difference(mapped, only), 0);
    assert_int_equal(mean_difference(mapped, also), 0);
    assert_true(mean_difference(mapped, raw) > 10);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_gop),  cmocka_unit_test(test_open_gop),
        cmocka_unit_test(test_early_sound), cmocka_unit_test(test_ntsc),
        cmocka_unit_test(test_stills),      cmocka_unit_test(test_hdr),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
