/* What libav's NVENC encoders make of the simulated engine: pictures, keyframes, order, headers,
 * rates, and what is left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "tests/support/nvenc_clip.h"
#include "tests/support/simgpu.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* --- in the child ---------------------------------------------------------------------------- */

/* Encodes n pictures and returns the worst PSNR; types as of nvenc_clip_decode. */
static double round_trip(const struct nvenc_clip_options *o, int n, char *types)
{
    struct nvenc_clip c;
    nvenc_clip_open(&c, o);
    nvenc_clip_encode(&c, n);
    nvenc_clip_check_order(&c, n);
    double db = nvenc_clip_decode(&c, types);
    nvenc_clip_close(&c);
    return db;
}

static const struct nvenc_clip_options round_trips[] = {
    {.encoder = "h264_nvenc", .options = "bf=0:b=1M", .format = AV_PIX_FMT_NV12},
    {.encoder = "h264_nvenc", .options = "bf=2:b=1M", .format = AV_PIX_FMT_YUV420P},
    {.encoder = "h264_nvenc",
     .options = "bf=3:b_ref_mode=middle:delay=0:b=1M",
     .format = AV_PIX_FMT_NV12},
    {.encoder = "h264_nvenc",
     .options = "bf=2:b=1M",
     .format = AV_PIX_FMT_YUV420P,
     .is_in_system_memory = true},
    {.encoder = "h264_nvenc", .options = "preset=p7:rc-lookahead=8", .format = AV_PIX_FMT_NV12},
    {.encoder = "h264_nvenc",
     .options = "bf=1:profile=high:b=1M",
     .format = AV_PIX_FMT_NV12,
     .width = 322,
     .height = 202},
    {.encoder = "hevc_nvenc", .options = "bf=0:b=1M", .format = AV_PIX_FMT_NV12},
    {.encoder = "hevc_nvenc", .options = "bf=2:b=1M", .format = AV_PIX_FMT_NV12},
    {.encoder = "hevc_nvenc", .options = "bf=0:b=1M", .format = AV_PIX_FMT_P010},
    {.encoder = "hevc_nvenc",
     .options = "bf=4:b_ref_mode=each:delay=0:b=1M",
     .format = AV_PIX_FMT_P010,
     .has_global_header = true},
    {.encoder = "hevc_nvenc",
     .options = "bf=0:b=1M",
     .format = AV_PIX_FMT_P010,
     .is_in_system_memory = true},
};

static const struct nvenc_clip_options round_trips_av1[] = {
    {.encoder = "av1_nvenc", .options = "b=1M", .format = AV_PIX_FMT_NV12},
    {.encoder = "av1_nvenc", .options = "bf=2:b=1M", .format = AV_PIX_FMT_YUV420P},
    {.encoder = "av1_nvenc", .options = "rc=vbr:cq=20", .format = AV_PIX_FMT_P010},
};

static void all_round_trips(const struct nvenc_clip_options *o, size_t n)
{
    char types[NVENC_CLIP_MAX + 1];
    for (size_t i = 0; i < n; i++) {
        double db = round_trip(&o[i], 20, types);
        nvenc_check(db > 34, "%s %s: %.1f dB", o[i].encoder, o[i].options, db);
    }
}

static int pictures(void)
{
    all_round_trips(round_trips, COUNT(round_trips));
    return 0;
}

static int pictures_av1(void)
{
    all_round_trips(round_trips_av1, COUNT(round_trips_av1));
    return 0;
}

/* B-frames lie between their anchors; a forced IDR and the end turn the last of them into P, and
 * the length of a GOP counts from the last IDR. */
static int types(void)
{
    static const int forced[] = {5, 6, 14, -1};
    static const struct {
        const char *encoder, *options, *expect;
        const int *forced;
    } cases[] = {
        {"h264_nvenc", "bf=0:g=250", "KPPPPPPPPPPPPPPPPPPPPPPP", NULL},
        {"h264_nvenc", "bf=2:g=250", "KBBPBBPBBPBBPBBPBBPBBPBP", NULL},
        {"h264_nvenc", "bf=2:g=12", "KBBPBBPBBPBPKBBPBBPBBPBP", NULL},
        {"h264_nvenc", "bf=3:g=10:b_ref_mode=middle:forced-idr=1", "KBBBPKKBBBPBBPKBBBPBBBPP",
         forced},
        {"hevc_nvenc", "bf=2:g=10:forced-idr=1", "KBBPPKKBBPBBPPKBBPBBPBBP", forced},
        {"hevc_nvenc", "bf=0:g=10:forced-idr=1", "KPPPPKKPPPPPPPKPPPPPPPPP", forced},
        /* without forced-idr it is an I that is no entry */
        {"h264_nvenc", "bf=0:g=10", "KPPPPIIPPPKPPPIPPPPPKPPP", forced},
        {"h264_nvenc", "g=0", "KKKKKKKKKKKKKKKKKKKKKKKK", NULL},
    };
    char got[NVENC_CLIP_MAX + 1];
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct nvenc_clip_options o = {.encoder = cases[i].encoder,
                                       .options = cases[i].options,
                                       .format = AV_PIX_FMT_NV12,
                                       .forced = cases[i].forced};
        round_trip(&o, 24, got);
        nvenc_check(strcmp(got, cases[i].expect) == 0, "%s %s:\n%s, not\n%s", cases[i].encoder,
                    cases[i].options, got, cases[i].expect);
    }
    return 0;
}

static int types_av1(void)
{
    static const int forced[] = {5, 6, 14, -1};
    char got[NVENC_CLIP_MAX + 1];
    struct nvenc_clip_options o = {.encoder = "av1_nvenc",
                                   .options = "g=10:forced-idr=1",
                                   .format = AV_PIX_FMT_NV12,
                                   .forced = forced};
    round_trip(&o, 24, got);
    for (int i = 0; i < 24; i++)
        nvenc_check((got[i] == 'K') == (i == 0 || i == 5 || i == 6 || i == 14), "%s", got);
    return 0;
}

/* True when there is an H.264 unit of that type. */
static bool has_unit(const uint8_t *data, int size, int type)
{
    for (int i = 0; i + 3 < size; i++)
        if (data[i] == 0 && data[i + 1] == 0 && data[i + 2] == 1 && (data[i + 3] & 31) == type)
            return true;
    return false;
}

enum { UNIT_SEI = 6, UNIT_SPS = 7, UNIT_PPS = 8 };

/* Parameter sets are in the extradata or with each key, never in both; SEI is nowhere. */
static int headers(void)
{
    for (int is_global = 0; is_global < 2; is_global++) {
        struct nvenc_clip c;
        struct nvenc_clip_options o = {.encoder = "h264_nvenc",
                                       .options = "bf=2:g=6",
                                       .format = AV_PIX_FMT_NV12,
                                       .has_global_header = is_global};
        nvenc_clip_open(&c, &o);
        const AVCodecContext *e = c.encoder;
        nvenc_check((e->extradata_size > 0) == is_global && e->extradata_size <= 256);
        if (is_global)
            nvenc_check(has_unit(e->extradata, e->extradata_size, UNIT_SPS) &&
                        has_unit(e->extradata, e->extradata_size, UNIT_PPS) &&
                        !has_unit(e->extradata, e->extradata_size, UNIT_SEI));
        nvenc_clip_encode(&c, 14);
        for (int i = 0; i < c.n; i++) {
            const AVPacket *p = c.packets[i];
            bool expects = !is_global && p->flags & AV_PKT_FLAG_KEY;
            nvenc_check(has_unit(p->data, p->size, UNIT_SPS) == expects, "packet %d", i);
            nvenc_check(!has_unit(p->data, p->size, UNIT_SEI), "packet %d", i);
        }
        nvenc_clip_close(&c);
    }
    return 0;
}

/* What the stream says of itself is what was asked for. */
static int signalled(void)
{
    static const char *const encoders[] = {"h264_nvenc", "hevc_nvenc"};
    for (size_t i = 0; i < COUNT(encoders); i++) {
        struct nvenc_clip c;
        struct nvenc_clip_options o = {
            .encoder = encoders[i],
            .options = "bf=0:level=4.1:color_primaries=bt2020:color_trc=smpte2084:"
                       "colorspace=bt2020nc:color_range=tv:aspect=4/3",
            .format = AV_PIX_FMT_NV12};
        nvenc_clip_open(&c, &o);
        nvenc_clip_encode(&c, 2);
        AVCodecContext *d = avcodec_alloc_context3(avcodec_find_decoder(c.encoder->codec_id));
        AVFrame *f = av_frame_alloc();
        nvenc_check(avcodec_open2(d, NULL, NULL) == 0);
        nvenc_check(avcodec_send_packet(d, c.packets[0]) == 0);
        avcodec_send_packet(d, NULL);
        nvenc_check(avcodec_receive_frame(d, f) == 0);
        nvenc_check(f->color_primaries == AVCOL_PRI_BT2020 && f->color_trc == AVCOL_TRC_SMPTE2084 &&
                    f->colorspace == AVCOL_SPC_BT2020_NCL && f->color_range == AVCOL_RANGE_MPEG);
        nvenc_check(f->sample_aspect_ratio.num == 4 && f->sample_aspect_ratio.den == 3);
        nvenc_check(d->level == (i ? 123 : 41), "level %d", d->level);
        av_frame_free(&f);
        avcodec_free_context(&d);
        nvenc_clip_close(&c);
    }
    return 0;
}

static int64_t bytes_of(const char *encoder, const char *options)
{
    struct nvenc_clip c;
    struct nvenc_clip_options o = {
        .encoder = encoder, .options = options, .format = AV_PIX_FMT_NV12};
    nvenc_clip_open(&c, &o);
    nvenc_clip_encode(&c, 90);
    int64_t bytes = nvenc_clip_bytes(&c);
    nvenc_clip_close(&c);
    return bytes;
}

/* Three seconds: 200 kbit/s are 75,000 bytes. */
static int rates(void)
{
    static const char *const encoders[] = {"h264_nvenc", "hevc_nvenc"};
    for (size_t i = 0; i < COUNT(encoders); i++) {
        const char *e = encoders[i];
        int64_t cbr = bytes_of(e, "bf=0:rc=cbr:b=60k");
        int64_t vbr = bytes_of(e, "bf=2:rc=vbr:b=60k:maxrate=90k:bufsize=90k");
        int64_t low = bytes_of(e, "rc=constqp:qp=38"), high = bytes_of(e, "rc=constqp:qp=20");
        int64_t good = bytes_of(e, "rc=vbr:cq=18:b=0"), bad = bytes_of(e, "rc=vbr:cq=34:b=0");
        int64_t capped = bytes_of(e, "rc=vbr:cq=18:b=0:maxrate=40k:bufsize=20k");
        nvenc_check(cbr > 15000 && cbr < 30000, "%s: %d bytes", e, (int)cbr);
        nvenc_check(vbr > 15000 && vbr < 34000, "%s: %d bytes", e, (int)vbr);
        nvenc_check(high > 2 * low, "%s: %d, %d bytes", e, (int)high, (int)low);
        nvenc_check(good > 2 * bad, "%s: %d, %d bytes", e, (int)good, (int)bad);
        nvenc_check(capped < 20000 && capped < good, "%s: %d bytes", e, (int)capped);
    }
    return 0;
}

static void check_equal(const struct nvenc_clip *a, const struct nvenc_clip *b)
{
    nvenc_check(a->n == b->n);
    for (int i = 0; i < a->n; i++) {
        const AVPacket *p = a->packets[i], *q = b->packets[i];
        nvenc_check(p->size == q->size && memcmp(p->data, q->data, p->size) == 0 &&
                        p->pts == q->pts && p->dts == q->dts,
                    "packet %d", i);
    }
}

/* The same pictures give the same bytes, from another session and from one that is used again. */
static void same_again(const char *encoder)
{
    struct nvenc_clip a, b;
    struct nvenc_clip_options o = {
        .encoder = encoder, .options = "bf=2:g=8:b=300k:rc=cbr", .format = AV_PIX_FMT_NV12};
    nvenc_clip_open(&a, &o);
    nvenc_clip_open(&b, &o);
    nvenc_clip_encode(&a, 20);
    nvenc_clip_encode(&b, 7);
    nvenc_clip_restart(&b);
    nvenc_clip_encode(&b, 20);
    check_equal(&a, &b);
    nvenc_clip_close(&a);
    nvenc_clip_close(&b);
}

static int same(void)
{
    same_again("h264_nvenc");
    same_again("hevc_nvenc");
    return 0;
}

static int same_av1(void)
{
    same_again("av1_nvenc");
    return 0;
}

/* A new rate while encoding begins with an IDR and loses nothing. */
static int new_rate(void)
{
    struct nvenc_clip c;
    struct nvenc_clip_options o = {
        .encoder = "h264_nvenc", .options = "bf=2:b=100k", .format = AV_PIX_FMT_NV12};
    nvenc_clip_open(&c, &o);
    nvenc_clip_send(&c, 10);
    c.encoder->bit_rate = 800000;
    /* send begins at 0 again; the time stamps are not looked at */
    nvenc_clip_encode(&c, 10);
    nvenc_check(c.n == 20, "%d packets", c.n);
    int keys = 0;
    for (int i = 0; i < c.n; i++)
        keys += c.packets[i]->flags & AV_PKT_FLAG_KEY;
    nvenc_check(keys == 2 && c.packets[10]->flags & AV_PKT_FLAG_KEY, "%d keys", keys);
    nvenc_clip_close(&c);
    return 0;
}

static char said[4096]; /* by libav */

static void listen(void *context, int level, const char *format, va_list args)
{
    (void)context;
    size_t length = strlen(said);
    if (level <= AV_LOG_ERROR)
        vsnprintf(said + length, sizeof said - length, format, args);
}

/* Opens three sessions of the codec ENCODER; the error that stops it must be ERROR, and libav must
 * have said TEXT. */
static int open_three(void)
{
    struct nvenc_clip c[3];
    struct nvenc_clip_options o = {.encoder = getenv("ENCODER"), .format = AV_PIX_FMT_NV12};
    int rc = 0, n = 0, expect = AVERROR(atoi(getenv("ERROR")));
    av_log_set_callback(listen);
    while (n < 3 && rc == 0)
        rc = nvenc_clip_try(&c[n++], &o);
    nvenc_check(rc == expect, "%s, not %s: %s", av_err2str(rc), av_err2str(expect), said);
    nvenc_check(strstr(said, getenv("TEXT")), "%s", said);
    while (n > 0)
        nvenc_clip_close(&c[--n]);
    return 0;
}

/* One lock fails: libav says so, and the encoder can still be closed without a leak. */
static int failing_lock(void)
{
    struct nvenc_clip c;
    struct nvenc_clip_options o = {
        .encoder = "h264_nvenc", .options = "bf=0", .format = AV_PIX_FMT_NV12};
    nvenc_clip_open(&c, &o);
    nvenc_check(nvenc_clip_send(&c, 20) == AVERROR_UNKNOWN);
    nvenc_clip_close(&c);
    return 0;
}

static const struct simgpu_part parts[] = {
    {"pictures", pictures},
    {"pictures_av1", pictures_av1},
    {"types", types},
    {"types_av1", types_av1},
    {"headers", headers},
    {"signalled", signalled},
    {"rates", rates},
    {"same", same},
    {"same_av1", same_av1},
    {"new_rate", new_rate},
    {"open_three", open_three},
    {"failing_lock", failing_lock},
    {0},
};

/* --- in the test ----------------------------------------------------------------------------- */

#define FAST "SIMGPU_NVENC_MPPS=0"
static const char *const fast[] = {FAST, NULL};

static void need(const char *encoder)
{
    if (nvenc_clip_can(encoder))
        return;
    print_message("skipped: the simulated NVENC or libav's %s is not here\n", encoder);
    skip();
}

static void must(const char *part, const char *const settings[])
{
    assert_int_equal(simgpu_run(part, settings, NULL), 0);
}

static void pictures_come_back(void **state)
{
    (void)state;
    need("h264_nvenc");
    must("pictures", fast);
}

static void pictures_come_back_in_av1(void **state)
{
    (void)state;
    need("av1_nvenc");
    must("pictures_av1", fast);
}

static void types_are_as_asked(void **state)
{
    (void)state;
    need("h264_nvenc");
    must("types", fast);
}

static void keys_are_as_asked_in_av1(void **state)
{
    (void)state;
    need("av1_nvenc");
    must("types_av1", fast);
}

static void headers_are_in_one_place(void **state)
{
    (void)state;
    need("h264_nvenc");
    must("headers", fast);
    must("signalled", fast);
}

static void rates_are_kept(void **state)
{
    (void)state;
    need("h264_nvenc");
    must("rates", fast);
    must("new_rate", fast);
}

static void output_depends_on_input_alone(void **state)
{
    (void)state;
    need("h264_nvenc");
    must("same", fast);
}

static void output_depends_on_input_alone_in_av1(void **state)
{
    (void)state;
    need("av1_nvenc");
    must("same_av1", fast);
}

/* The texts are those of libav on the real driver. */
static void refusals_have_libavs_words(void **state)
{
    (void)state;
    need("h264_nvenc");
    static const struct {
        const char *setting, *error, *text;
    } refusals[] = {
        {"SIMGPU_MAX_SESSIONS=3", "ERROR=0", "TEXT="},
        {"SIMGPU_MAX_SESSIONS=2", "ERROR=12",
         "TEXT=OpenEncodeSessionEx failed: out of memory (10)"},
        {"SIMGPU_FAULT=nvEncOpenEncodeSessionEx@3=21", "ERROR=22",
         "TEXT=OpenEncodeSessionEx failed: incompatible client key (21)"},
        {"SIMGPU_MODEL=H200", "ERROR=38",
         "TEXT=OpenEncodeSessionEx failed: unsupported device (2)"},
        {"SIMGPU_MODEL=A100", "ERROR=38",
         "TEXT=OpenEncodeSessionEx failed: unsupported device (2)"},
        {"SIMGPU_NVENC_API=11.0", "ERROR=38",
         "TEXT=Driver does not support the required nvenc API version. Required: "},
        {"SIMGPU_MEM_MIB=900", "ERROR=12", "TEXT=InitializeEncoder failed: out of memory (10)"},
        {"SIMGPU_FAULT=nvEncInitializeEncoder@2=8", "ERROR=22",
         "TEXT=InitializeEncoder failed: invalid param (8)"},
    };
    for (size_t i = 0; i < COUNT(refusals); i++)
        must("open_three", (const char *[]){FAST, "ENCODER=h264_nvenc", refusals[i].setting,
                                            refusals[i].error, refusals[i].text, NULL});
}

static void av1_is_refused_by_older_cards(void **state)
{
    (void)state;
    need("av1_nvenc");
    static const struct {
        const char *model, *error;
    } models[] = {
        {"SIMGPU_MODEL=T4", "ERROR=38"},
        {"SIMGPU_MODEL=A10", "ERROR=38"},
        {"SIMGPU_MODEL=L4", "ERROR=0"},
        {"SIMGPU_MODEL=RTXPRO6000", "ERROR=0"},
    };
    for (size_t i = 0; i < COUNT(models); i++)
        must("open_three", (const char *[]){FAST, "ENCODER=av1_nvenc", models[i].model,
                                            models[i].error, "TEXT=", NULL});
}

static void nothing_is_left(void **state)
{
    (void)state;
    need("h264_nvenc");
    json_t *stats;
    assert_int_equal(simgpu_run("pictures", fast, &stats), 0);
    assert_string_equal(simgpu_leaks(stats), "");
    assert_int_equal(simgpu_number(stats, "counters", "frames_encoded"), 20 * COUNT(round_trips));
    assert_true(simgpu_number(stats, "peak", "memory_bytes") > 350 << 20);
    assert_int_equal(simgpu_number(stats, "calls", "nvEncOpenEncodeSessionEx"), COUNT(round_trips));
    assert_int_equal(simgpu_number(stats, "calls", "nvEncDestroyEncoder"), COUNT(round_trips));
    json_decref(stats);
    assert_int_equal(
        simgpu_run("failing_lock",
                   (const char *[]){FAST, "SIMGPU_FAULT=nvEncLockBitstream@3=20", NULL}, &stats),
        0);
    assert_string_equal(simgpu_leaks(stats), "");
    json_decref(stats);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_come_back),
        cmocka_unit_test(pictures_come_back_in_av1),
        cmocka_unit_test(types_are_as_asked),
        cmocka_unit_test(keys_are_as_asked_in_av1),
        cmocka_unit_test(headers_are_in_one_place),
        cmocka_unit_test(rates_are_kept),
        cmocka_unit_test(output_depends_on_input_alone),
        cmocka_unit_test(output_depends_on_input_alone_in_av1),
        cmocka_unit_test(refusals_have_libavs_words),
        cmocka_unit_test(av1_is_refused_by_older_cards),
        cmocka_unit_test(nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return simgpu_main(argc, argv, parts, run_all);
}
