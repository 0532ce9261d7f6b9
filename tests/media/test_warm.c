/*
 * What a session did before does not show (I2): a chunk made by warm stages has the bytes of one
 * made by new ones, with every encoder, after other chunks, other parameters and failures. Files
 * are named by their bytes, so manifests are compared.
 */
#include <fcntl.h>
#include <libavcodec/avcodec.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/probe.h"
#include "pipelines/media/spares.h"
#include "pipelines/media/task.h"
#include "tests/support/opened.h"
#include "tests/support/scratch.h"
#include "tests/support/simgpu.h"

enum { FRAMES = 100, SEGMENTS = 4 };

static struct device *device;
static struct opened source_file;
static struct source *source;
static int scratch;

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

static bool at_once(void *arg)
{
    (void)arg;
    return true;
}

static struct plan *plan(const char *encoder, int height, const char *rate)
{
    struct err e;
    struct profile *profile = NULL;
    struct plan *ret = NULL;
    cleanup(free_ptr) char *text =
        xasprintf("name: warm\nencoder: %s\npreset: %s\ngop: 1\nsegment: 1\nrenditions:\n"
                  "  - {name: big, height: %d, %s}\n  - {name: small, height: 90, %s}\naudio: []\n",
                  encoder, !strcmp(encoder, "libsvtav1") ? "12" : "veryfast", height, rate, rate);
    ok(bind_parse(&profile_type, text, strlen(text), "profile", ERR_CONFIG, &profile, &e), &e);
    ok(plan_make(profile, source, &(struct plan_options){.segments = -1}, &ret, &e), &e);
    bind_free(&profile_type, &profile);
    return ret;
}

static int try_chunk(struct warm *warm, const struct plan *p, int64_t segment,
                     bool (*is_cancelled)(void *), struct manifest **ret, struct err *e)
{
    const struct plan_chunk chunk = {
        .index = segment,
        .first_segment = segment,
        .end_segment = segment + 1 == SEGMENTS ? INT64_MAX : segment + 1,
        .seek_pts = segment ? source->video->borders[segment - 1].key_pts : INT64_MIN,
    };
    const struct task_events events = {
        .file = on_file, .progress = on_progress, .is_cancelled = is_cancelled};
    return video_chunk_run(warm, source_file.in, &source_file.limits, device, source, p, &chunk,
                           scratch, &events, ret, e);
}

/* The names, hence the bytes, of all that a chunk wrote. */
static char *chunk(struct warm *warm, const struct plan *p, int64_t segment)
{
    struct err e;
    struct manifest *m = NULL;
    struct strbuf names = {0};
    ok(try_chunk(warm, p, segment, NULL, &m, &e), &e);
    assert_int_equal(m->frames_decoded, FRAMES / SEGMENTS); /* none of the next chunk */
    for (size_t r = 0; r < m->n_tracks; r++) {
        strbuf_printf(&names, "%s", m->tracks[r].init);
        for (size_t i = 0; i < m->tracks[r].n_segments; i++)
            strbuf_printf(&names, " %s", m->tracks[r].segments[i].name);
        strbuf_puts(&names, "\n");
    }
    bind_free(&manifest_type, &m);
    return strbuf_take(&names);
}

static void same_as_new(struct warm *warm, const struct plan *p, int64_t segment)
{
    struct warm new = {0};
    cleanup(free_ptr) char *a = chunk(warm, p, segment), *b = chunk(&new, p, segment);
    assert_string_equal(a, b);
    warm_clear(&new);
}

static void check_encoder(const char *encoder, const char *rate)
{
    struct warm warm = {0};
    const char *name;
    struct err e;
    if (device_encoder(device, encoder, &name, &e) < 0) {
        print_message("%s\n", e.msg);
        return;
    }
    struct plan *p = plan(encoder, 180, rate);
    static const int64_t segments[] = {0, 3, 1, 1}; /* the last: another attempt */
    for (size_t i = 0; i < sizeof segments / sizeof segments[0]; i++)
        same_as_new(&warm, p, segments[i]);
    warm_clear(&warm);
    bind_free(&plan_type, &p);
}

static void test_h264(void **state)
{
    (void)state;
    check_encoder("libx264", "bitrate: 300k");
}

static void test_hevc(void **state)
{
    (void)state;
    check_encoder("libx265", "bitrate: 300k");
}

static void test_av1(void **state)
{
    (void)state;
    check_encoder("libsvtav1", "crf: 40");
}

/* Kernels are loaded for the first chunk only. */
static void test_gpu_stays_loaded(void **state)
{
    (void)state;
    int64_t loaded = 0;
    struct warm warm = {0};
    if (!device_is_gpu(device))
        skip();
    struct plan *p = plan("libx264", 180, "bitrate: 300k");
    for (int64_t segment = 0; segment < SEGMENTS; segment++) {
        free(chunk(&warm, p, segment));
        int64_t now = simgpu_own(3, "cuModuleLoadData");
        assert_true(now > 0);
        assert_true(!segment || now == loaded);
        loaded = now;
    }
    warm_clear(&warm);
    bind_free(&plan_type, &p);
}

static void test_other_parameters(void **state)
{
    (void)state;
    struct warm warm = {0};
    struct plan *p[] = {plan("libx264", 180, "bitrate: 300k"),
                        plan("libx264", 180, "bitrate: 400k"),
                        plan("libx264", 120, "bitrate: 300k")};
    for (int64_t segment = 0; segment < 3; segment++)
        for (size_t i = 0; i < sizeof p / sizeof p[0]; i++) {
            same_as_new(&warm, p[i], segment);
            warm_forget(&warm);
        }
    warm_clear(&warm);
    for (size_t i = 0; i < sizeof p / sizeof p[0]; i++)
        bind_free(&plan_type, &p[i]);
}

static void test_failure_drops_all(void **state)
{
    (void)state;
    struct warm warm = {0}, empty = {0};
    struct err e;
    struct manifest *m = NULL;
    struct plan *p = plan("libx264", 180, "bitrate: 300k");
    same_as_new(&warm, p, 0);
    assert_non_null(warm.ladder);
    assert_int_equal(try_chunk(&warm, p, 1, at_once, &m, &e), -ERR_CANCELLED);
    assert_memory_equal(&warm, &empty, sizeof warm);
    same_as_new(&warm, p, 1);
    warm_clear(&warm);
    bind_free(&plan_type, &p);
}

static struct encoder_codec *codec(const struct plan *p, size_t r)
{
    struct err e;
    struct encoder_codec *ret = NULL;
    const struct encoder_codec_options options = {p, device, &p->renditions[r], source->video};
    ok(encoder_codec_new(&options, &ret, &e), &e);
    return ret;
}

static void test_spares(void **state)
{
    (void)state;
    struct err e;
    struct plan *p = plan("libx264", 180, "bitrate: 300k"),
                *q = plan("libx264", 180, "bitrate: 400k"),
                *b = plan("libx264", 180, "bitrate: 300k, options: {no-such-option: 1}");
    struct encoder_codec *like = codec(p, 0), *other = codec(q, 0), *got;
    struct spares *s = spares_new();
    assert_null(spares_take(s, like));
    spares_put(s, codec(p, 0));
    spares_put(s, codec(p, 1));
    assert_null(spares_take(s, other)); /* another bit rate is another encoder */
    got = spares_take(s, like);
    assert_non_null(got);
    assert_ptr_not_equal(got, like);
    ok(encoder_codec_open(got, &e), &e);
    assert_true(avcodec_is_open(encoder_codec_context(got)));
    assert_null(spares_take(s, like)); /* each is given away once */
    spares_clear(s);
    assert_null(spares_take(s, got));
    for (int i = 0; i < 2; i++) { /* one that cannot be opened: it says so to whoever needs it */
        struct encoder_codec *bad = codec(b, 0);
        assert_true(encoder_codec_open(bad, &e) < 0);
        assert_non_null(strstr(e.msg, "no-such-option"));
        spares_put(s, bad);
    }
    encoder_codec_free(&got);
    for (int i = 0; i < 40; i++) /* more than it keeps */
        spares_put(s, codec(p, i % 2));
    spares_free(&s);
    assert_null(s);
    encoder_codec_free(&like);
    encoder_codec_free(&other);
    bind_free(&plan_type, &p);
    bind_free(&plan_type, &q);
    bind_free(&plan_type, &b);
}

static int set_up(void **state)
{
    (void)state;
    struct err e;
    const char *clip = clip_in_scratch(
        "warm.mp4", &(struct clip_options){
                        .frames = FRAMES, .b_frames = 2, .video_options = "preset=superfast"});
    ok(device_open(getenv("DEVICE") ? getenv("DEVICE") : "cpu", &device, &e), &e);
    const char *out = scratch_file("out");
    assert_int_equal(mkdir(out, 0755), 0);
    scratch = open(out, O_RDONLY | O_DIRECTORY);
    opened_must(&source_file, clip);
    ok(probe_source(source_file.in, &source_file.limits, rational_make(1, 1), NULL, NULL, &source,
                    &e),
       &e);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    bind_free(&source_type, &source);
    opened_close(&source_file);
    device_close(&device);
    return close(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_h264),
        cmocka_unit_test(test_hevc),
        cmocka_unit_test(test_av1),
        cmocka_unit_test(test_gpu_stays_loaded),
        cmocka_unit_test(test_other_parameters),
        cmocka_unit_test(test_failure_drops_all),
        cmocka_unit_test(test_spares),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
