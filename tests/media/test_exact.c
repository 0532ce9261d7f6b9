/*
 * Every frame once, at its own time, whatever the chunking (I1, I2, I3): clips whose frames carry
 * their numbers are cut into 1 to 12 chunks; the joined output of every rendition must show the
 * frames 0…N-1 at the source's times, with the same keyframes and the same segments each time.
 *
 * DEVICE=, FALLBACK=1 (what the device cannot do is done on the CPU) and CHUNKS_STEP= are for
 * tests/e2e/test_cuda.sh.
 */
#include <fcntl.h>
#include <libavformat/avformat.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/probe.h"
#include "pipelines/media/task.h"
#include "tests/support/clip.h"

enum { FRAMES_MAX = 1000, FRAMES = 150 };

/* How many more chunks each time. */
static int chunks_step(void)
{
    if (getenv("CHUNKS_STEP"))
        return atoi(getenv("CHUNKS_STEP"));
    bool is_cpu = !getenv("DEVICE");
#ifdef SANITIZED
    return is_cpu ? 11 : 12; /* sanitizers look at the code, not at the arithmetic */
#else
    return is_cpu ? 1 : 3; /* which is the same on every device */
#endif
}

static const char profile_text[] =
    "name: exact\n"
    "encoder: libx264\n"
    "preset: superfast\n" /* B-frames, but no trellis, which takes half of the time here */
    "gop: 1/2\n"
    "segment: 1\n"
    "renditions:\n"
    "  - {name: big, height: 108, bitrate: 200k}\n"
    "  - {name: small, height: 90, bitrate: 100k}\n"
    "  - {name: slow, height: 90, bitrate: 100k, fps_policy: cap, fps: 25}\n"
    "audio: []\n";

struct seen {
    int64_t n;
    struct rational pts[FRAMES_MAX]; /* seconds */
    int64_t number[FRAMES_MAX];
    bool is_key[FRAMES_MAX];
};

static void see(void *arg, const struct clip_frame *f)
{
    struct seen *s = arg;
    assert_true(s->n < FRAMES_MAX);
    s->pts[s->n] =
        rational_mul(rational_make(f->pts, 1), rational_make(f->time_base.num, f->time_base.den));
    s->number[s->n] = f->number;
    s->is_key[s->n++] = f->is_key;
}

static void ok(int status, const struct err *e)
{
    if (status < 0)
        fail_msg("%s", e->msg);
}

static void on_file(void *arg, const char *path, int64_t bytes)
{
    (void)arg, (void)path, (void)bytes;
}

static void on_progress(void *arg, int64_t in, int64_t out)
{
    (void)arg, (void)in, (void)out;
}

struct job {
    char dir[64];
    int scratch;
    int fd;
    struct limits limits;
    struct device *device;
    struct input *in;
    struct source *source;
    struct plan *plan;
    struct warm warm;
};

static void job_open(struct job *job, const char *clip)
{
    struct err e;
    strcpy(job->dir, "/tmp/test_exact.XXXXXX");
    assert_non_null(mkdtemp(job->dir));
    job->scratch = open(job->dir, O_RDONLY | O_DIRECTORY);
    job->fd = open(clip, O_RDONLY);
    assert_true(job->fd >= 0);
    limits_default(&job->limits);
    ok(device_open(getenv("DEVICE") ? getenv("DEVICE") : "cpu", &job->device, &e), &e);
    ok(input_open(job->fd, &job->limits, NULL, NULL, &job->in, &e), &e);
    struct profile *profile = NULL;
    ok(bind_parse(&profile_type, profile_text, strlen(profile_text), "profile", ERR_CONFIG,
                  &profile, &e),
       &e);
    ok(probe_source(job->in, &job->limits, profile->segment, NULL, NULL, &job->source, &e), &e);
    const struct plan_options options = {.segments = -1, .allow_fallback = getenv("FALLBACK")};
    if (device_gpu(job->device))
        job->source->gpu = bind_copy(&route_gpu_type, device_gpu(job->device));
    ok(plan_make(profile, job->source, &options, &job->plan, &e), &e);
    bind_free(&profile_type, &profile);
}

static void job_close(struct job *job)
{
    cleanup(free_ptr) char *command = xasprintf("rm -rf %s", job->dir);
    warm_clear(&job->warm);
    bind_free(&plan_type, &job->plan);
    bind_free(&source_type, &job->source);
    input_close(&job->in);
    device_close(&job->device);
    close(job->fd);
    close(job->scratch);
    assert_int_equal(system(command), 0);
}

/* Where decoding starts for a chunk: the planner's choice where it cuts there too, since it knows
 * more than this test; else a keyframe with enough frames before the border. */
static int64_t seek_pts(struct job *job, int64_t segment)
{
    const struct source_video *v = job->source->video;
    struct plan_chunk *chunks = NULL;
    size_t n = 0;
    struct err e;
    ok(plan_chunks(job->plan, job->source, 1, &chunks, &n, &e), &e);
    int64_t pts = INT64_MIN;
    bool is_known = false;
    for (size_t i = 0; i < n && !is_known; i++) {
        is_known = chunks[i].first_segment == segment;
        pts = is_known ? chunks[i].seek_pts : pts;
    }
    free(chunks);
    for (int64_t i = segment - 1; !is_known && i >= 0 && i < (int64_t)v->n_borders; i--) {
        is_known = v->borders[i].frames >= job->plan->context;
        pts = is_known ? v->borders[i].key_pts : pts;
    }
    return pts;
}

static struct manifest *run_chunk(struct job *job, int64_t index, int64_t first, int64_t end)
{
    struct err e;
    struct manifest *m = NULL;
    struct plan_chunk chunk = {
        .index = index,
        .first_segment = first,
        .end_segment = end,
        .seek_pts = first ? seek_pts(job, first) : INT64_MIN,
    };
    struct task_events events = {.file = on_file, .progress = on_progress};
    ok(video_chunk_run(&job->warm, job->in, &job->limits, job->device, job->source, job->plan,
                       &chunk, job->scratch, &events, &m, &e),
       &e);
    ok(manifest_check_video(m, job->plan, &chunk, &e), &e);
    return m;
}

static void append_file(FILE *out, const char *dir, const char *folder, const char *name)
{
    cleanup(free_ptr) char *path = xasprintf("%s/%s/%s", dir, folder, name);
    cleanup(close_file) FILE *in = fopen(path, "r");
    assert_non_null(in);
    char buf[65536];
    for (size_t n; (n = fread(buf, 1, sizeof buf, in));)
        assert_int_equal(fwrite(buf, 1, n, out), n);
}

static void read_joined(const struct job *job, struct manifest *const *m, int chunks, size_t r,
                        struct seen *ret)
{
    struct err e;
    cleanup(free_ptr) char *path = xasprintf("%s/joined.mp4", job->dir);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    append_file(out, job->dir, m[0]->tracks[r].rendition, m[0]->tracks[r].init);
    for (int c = 0; c < chunks; c++)
        for (size_t i = 0; i < m[c]->tracks[r].n_segments; i++)
            append_file(out, job->dir, m[c]->tracks[r].rendition, m[c]->tracks[r].segments[i].name);
    fclose(out);
    ret->n = 0;
    ok((int)clip_read_video(path, 0, see, ret, &e), &e);
}

static int64_t floor_div(struct rational t, struct rational unit)
{
    return rational_rescale(t.num, rational_make(1, t.den), unit, ROUND_FLOOR);
}

/* The time that the definition gives a source frame: the exact n/rate where the rate is constant.
 */
static struct rational time_of(const struct seen *source, struct rational rate, int64_t n)
{
    if (!rational_is_set(rate))
        return source->pts[n];
    struct rational first = source->pts[0], t = rational_div(rational_make(n, 1), rate);
    return rational_make(first.num * t.den + t.num * first.den, first.den * t.den);
}

/* The source frame that tick m of a grid shows: the last one at or before it. */
static int64_t shown_at(const struct seen *source, struct rational rate, struct rational t)
{
    int64_t n = 0;
    while (n + 1 < source->n && rational_cmp(time_of(source, rate, n + 1), t) <= 0)
        n++;
    return n;
}

/*
 * What the definitions say of every frame, worked out with plain rationals: which source frame it
 * shows, when, and whether it is a keyframe: the first one at or after k·G on the slowest grid
 * `ref` of the ladder (unset: of all frames).
 */
static void check_frames(const struct seen *out, const struct seen *source, struct rational rate,
                         struct rational fps, struct rational ref)
{
    bool is_grid = rational_is_set(fps);
    int64_t last_gop = -1;
    if (!is_grid)
        assert_int_equal(out->n, source->n);
    assert_int_equal(out->number[out->n - 1] / 2, (source->n - 1) / 2); /* none lost at the end */
    for (int64_t i = 0; i < out->n; i++) {
        struct rational t =
            is_grid ? rational_div(rational_make(i, 1), fps) : time_of(source, rate, i);
        assert_int_equal(out->number[i], is_grid ? shown_at(source, rate, t) : i);
        if (rational_cmp(out->pts[i], is_grid ? t : source->pts[i]))
            fail_msg("frame %lld at %lld/%lld, expected %lld/%lld", (long long)i,
                     (long long)out->pts[i].num, (long long)out->pts[i].den, (long long)t.num,
                     (long long)t.den);
        if (rational_is_set(ref))
            t = rational_div(rational_make(floor_div(t, rational_div(rational_make(1, 1), ref)), 1),
                             ref);
        int64_t gop = floor_div(t, rational_make(1, 2));
        assert_int_equal(out->is_key[i], gop != last_gop);
        last_gop = gop;
    }
}

static struct rational minus(struct rational a, struct rational b)
{
    return rational_make(a.num * b.den - b.num * a.den, a.den * b.den);
}

/* From the container's times to the job's. */
static void subtract_origin(struct seen *s, const struct source *source)
{
    struct rational origin = rational_mul(rational_make(source->origin, 1), source->origin_base);
    for (int64_t i = 0; i < s->n; i++)
        s->pts[i] = minus(s->pts[i], origin);
}

static void check_same_segments(const struct manifest_segment *a, const struct manifest_segment *b)
{
    assert_int_equal(a->index, b->index);
    assert_int_equal(a->start, b->start);
    assert_int_equal(a->duration, b->duration);
    assert_int_equal(a->frames, b->frames);
    assert_int_equal(a->keyframes, b->keyframes);
}

static const struct manifest_segment *nth_segment(struct manifest *const *m, int chunks, size_t r,
                                                  size_t i)
{
    for (int c = 0; c < chunks; c++) {
        if (i < m[c]->tracks[r].n_segments)
            return &m[c]->tracks[r].segments[i];
        i -= m[c]->tracks[r].n_segments;
    }
    return NULL;
}

/* rate: of a constant-rate clip, else unset. */
static void check_clip(const char *name, const struct clip_options *options, struct rational rate)
{
    struct err e;
    static struct seen source, out;
    struct job job = {0};
    struct manifest *whole = NULL, *m[12];
    cleanup(free_ptr) char *path = xasprintf("/tmp/test_exact_%d_%s", (int)getpid(), name);
    ok(clip_make(path, options, &e), &e);
    source.n = 0;
    ok((int)clip_read_video(path, 0, see, &source, &e), &e);
    /* MP4's edit list ends a variable-rate clip with its last frame's start, not its end */
    assert_true(source.n == options->frames || (options->pts && source.n == options->frames - 1));
    job_open(&job, path);
    subtract_origin(&source, job.source);
    int64_t segments = job.plan->n_segments;
    for (int chunks = 1; chunks <= 12 && chunks <= segments; chunks += chunks_step()) {
        for (int c = 0; c < chunks; c++) {
            bool is_last = c + 1 == chunks;
            m[c] = run_chunk(&job, c, segments * c / chunks,
                             is_last ? INT64_MAX : segments * (c + 1) / chunks);
            if (c)
                ok(manifest_check_join(m[c - 1], m[c], &e), &e);
        }
        if (!whole)
            whole = bind_copy(&manifest_type, m[0]);
        for (size_t r = 0; r < job.plan->n_renditions; r++) {
            read_joined(&job, m, chunks, r, &out);
            check_frames(&out, &source, rate, job.plan->renditions[r].fps, job.plan->ref);
            for (size_t i = 0; i < whole->tracks[r].n_segments; i++) {
                const struct manifest_segment *s = nth_segment(m, chunks, r, i);
                assert_non_null(s);
                check_same_segments(s, &whole->tracks[r].segments[i]);
                /* Aligned on all renditions: the same second, in each one's own ticks. Where a grid
                 * runs beside frames that lie at any time, it cannot be. */
                if (!rational_is_set(rate) && rational_is_set(job.plan->ref))
                    continue;
                struct rational t[2] = {
                    rational_mul(rational_make(s->start, 1), m[0]->tracks[r].time_base),
                    rational_mul(rational_make(whole->tracks[0].segments[i].start, 1),
                                 m[0]->tracks[0].time_base),
                };
                assert_int_equal(rational_cmp(t[0], t[1]), 0);
            }
            assert_null(nth_segment(m, chunks, r, whole->tracks[r].n_segments));
        }
        for (int c = 0; c < chunks; c++)
            bind_free(&manifest_type, &m[c]);
    }
    bind_free(&manifest_type, &whole);
    job_close(&job);
    remove(path);
}

static const struct rational none = {0, 1}, base_rate = {25, 2};

#define BASE                                                       \
    .width = 192, .height = 108, .fps = {25, 2}, .frames = FRAMES, \
    .video_options = "preset=superfast"

static void test_closed_gop(void **state)
{
    (void)state;
    check_clip("closed.mp4", &(struct clip_options){BASE, .gop = 33, .b_frames = 2}, base_rate);
}

static void test_open_gop(void **state)
{
    (void)state;
    check_clip("open.mp4",
               &(struct clip_options){BASE, .gop = 35, .b_frames = 3, .is_open_gop = true},
               base_rate);
    check_clip("open.ts",
               &(struct clip_options){BASE, .gop = 35, .b_frames = 3, .is_open_gop = true},
               base_rate);
}

static void test_hevc_open_gop(void **state) /* NVDEC decodes HEVC from 144 lines up */
{
    (void)state;
    check_clip("hevc.mkv",
               &(struct clip_options){.width = 256,
                                      .height = 144,
                                      .fps = {25, 2},
                                      .frames = FRAMES,
                                      .codec = "libx265",
                                      .gop = 35,
                                      .b_frames = 3,
                                      .is_open_gop = true,
                                      .video_options = "preset=ultrafast"},
               base_rate);
}

static void test_pyramid(void **state)
{
    (void)state;
    check_clip("pyramid.mkv",
               &(struct clip_options){BASE, .gop = 150, .b_frames = 5, .is_pyramid = true},
               base_rate);
}

static void test_intra_only(void **state)
{
    (void)state;
    check_clip("intra.mov", &(struct clip_options){BASE, .gop = 1}, base_rate);
}

/* Frames 1 to `longest` ms apart. */
static void check_vfr(const char *name, int longest)
{
    static int64_t pts[FRAMES];
    unsigned seed = 7;
    for (int i = 1; i < FRAMES; i++) {
        seed = seed * 1103515245 + 12345;
        pts[i] = pts[i - 1] + 1 + (seed >> 16) % (unsigned)longest;
    }
    check_clip(
        name,
        &(struct clip_options){BASE, .gop = 40, .b_frames = 2, .pts = pts, .time_base = {1, 1000}},
        none);
}

static void test_vfr(void **state)
{
    (void)state;
    check_vfr("vfr.mp4", 159); /* 12.5 frames/s: below the cap */
}

static void test_vfr_to_grid(void **state)
{
    (void)state;
    check_vfr("grid.mp4", 69); /* 29 frames/s: the slow rendition runs on a grid of 25 */
}

static void test_negative_start(void **state)
{
    (void)state;
    /* libav reads 2^33 - 0.52 s as -0.52 s */
    check_clip("negative.ts",
               &(struct clip_options){BASE, .gop = 50, .b_frames = 2,
                                      .start_90k = (INT64_C(1) << 33) - 46800},
               base_rate);
}

static void test_wrapped_timestamps(void **state)
{
    (void)state;
    check_clip("wrapped.ts",
               &(struct clip_options){BASE, .gop = 50, .b_frames = 2,
                                      .start_90k = (INT64_C(1) << 33) - 5 * 90000},
               base_rate);
}

/* The origin is the sound's start: keyframes lie just after the borders. */
static void test_early_audio(void **state)
{
    (void)state;
    check_clip("early.mkv",
               &(struct clip_options){BASE, .gop = 25, .b_frames = 2, .n_audio = 1,
                                      .audio = {{.codec = "flac", .start_seconds = -0.02}}},
               base_rate);
}

static void test_half_rate_rendition(void **state)
{
    (void)state;
    check_clip(
        "fifty.mp4",
        &(struct clip_options){
            .width = 192, .height = 108, .fps = {50, 1}, .frames = 300, .gop = 70, .b_frames = 2},
        (struct rational){50, 1});
}

static void test_ntsc(void **state)
{
    (void)state;
    check_clip("ntsc.ts",
               &(struct clip_options){.width = 192,
                                      .height = 108,
                                      .fps = {15000, 1001},
                                      .frames = 180,
                                      .gop = 50,
                                      .b_frames = 2},
               none);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_gop),          cmocka_unit_test(test_open_gop),
        cmocka_unit_test(test_hevc_open_gop),       cmocka_unit_test(test_pyramid),
        cmocka_unit_test(test_intra_only),          cmocka_unit_test(test_vfr),
        cmocka_unit_test(test_vfr_to_grid),         cmocka_unit_test(test_negative_start),
        cmocka_unit_test(test_wrapped_timestamps),  cmocka_unit_test(test_early_audio),
        cmocka_unit_test(test_half_rate_rendition), cmocka_unit_test(test_ntsc),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
