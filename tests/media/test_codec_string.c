/* Codec strings of what real encoders write, in each form that parameter sets come in. */
#include <libavutil/opt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pipelines/media/codec_string.h"

/* For the leak checker of sanitized builds: x265 itself forgets a few tables. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libx265";
}

/* x265 and SVT-AV1 print to stderr by themselves unless told not to. */
static const struct video {
    const char *encoder, *options;
    int width, height, depth;
    const char *expected;
} videos[] = {
    {"libx264", "profile=baseline:level=3.0", 320, 180, 8, "avc1.42C01E"},
    {"libx264", "profile=main:level=3.1", 320, 180, 8, "avc1.4D401F"},
    {"libx264", "profile=high:level=4.0", 320, 180, 8, "avc1.640028"},
    {"libx264", "profile=high10:level=5.1", 320, 180, 10, "avc1.6E0033"},
    {"libx265", "x265-params=log-level=none", 320, 180, 8, "hvc1.1.6.L60.90"},
    {"libx265", "x265-params=log-level=none", 320, 180, 10, "hvc1.2.4.L60.90"},
    {"libx265", "x265-params=log-level=none\\:level-idc=51\\:high-tier=1", 320, 180, 8,
     "hvc1.1.6.H153.90"},
    {"libaom-av1", "cpu-used=8", 320, 180, 8, "av01.0.00M.08"},
    {"libaom-av1", "cpu-used=8", 640, 360, 10, "av01.0.01M.10"},
    {"libsvtav1", "preset=12", 320, 180, 8, "av01.0.00M.08"},
    {"libsvtav1", "preset=12", 1280, 720, 10, "av01.0.05M.10"},
};

static AVCodecContext *open_video(const struct video *v, int flags)
{
    const AVCodec *codec = avcodec_find_encoder_by_name(v->encoder);
    if (!codec)
        return NULL;
    AVDictionary *options = NULL;
    AVCodecContext *ctx = avcodec_alloc_context3(codec);
    ctx->width = v->width;
    ctx->height = v->height;
    ctx->pix_fmt = v->depth == 8 ? AV_PIX_FMT_YUV420P : AV_PIX_FMT_YUV420P10;
    ctx->time_base = (AVRational){1, 25};
    ctx->framerate = (AVRational){25, 1};
    ctx->thread_count = 1;
    ctx->flags |= flags;
    assert_int_equal(av_dict_parse_string(&options, v->options, "=", ":", 0), 0);
    assert_int_equal(avcodec_open2(ctx, codec, &options), 0);
    av_dict_free(&options);
    return ctx;
}

static AVPacket *encode_one(AVCodecContext *ctx)
{
    AVFrame *frame = av_frame_alloc();
    AVPacket *pkt = av_packet_alloc();
    frame->width = ctx->width;
    frame->height = ctx->height;
    frame->format = ctx->pix_fmt;
    assert_int_equal(av_frame_get_buffer(frame, 0), 0);
    for (int i = 0; i < 3; i++)
        memset(frame->data[i], 1, (size_t)frame->linesize[i] * (size_t)(ctx->height / (i ? 2 : 1)));
    frame->pts = 0;
    assert_int_equal(avcodec_send_frame(ctx, frame), 0);
    assert_int_equal(avcodec_send_frame(ctx, NULL), 0);
    assert_int_equal(avcodec_receive_packet(ctx, pkt), 0);
    av_frame_free(&frame);
    return pkt;
}

/* The encoder's extradata, and the same parameter sets inside the first packet. */
static void video_is_named_by_its_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof videos / sizeof videos[0]; i++) {
        struct err e;
        char name[64] = "";
        AVCodecContext *ctx = open_video(&videos[i], AV_CODEC_FLAG_GLOBAL_HEADER);
        if (!ctx) {
            print_message("%s is not in this libavcodec\n", videos[i].encoder);
            continue;
        }
        if (ctx->extradata_size ||
            strcmp(videos[i].encoder, "libaom-av1")) { /* 3.6: only in-band */
            if (codec_string_make(ctx, name, sizeof name, &e) < 0)
                fail_msg("%s: %s", videos[i].encoder, e.msg);
            assert_string_equal(name, videos[i].expected);
        }
        AVPacket *pkt = encode_one(ctx); /* SVT-AV1 hangs when closed without an end of stream */
        av_packet_free(&pkt);
        avcodec_free_context(&ctx);

        ctx = open_video(&videos[i], 0);
        pkt = encode_one(ctx);
        AVCodecParameters *par = avcodec_parameters_alloc();
        par->codec_id = ctx->codec_id;
        assert_int_equal(codec_string_from(par, pkt, name, sizeof name, &e), 0);
        assert_string_equal(name, videos[i].expected);
        assert_int_equal(codec_string_from(par, NULL, name, sizeof name, &e), -ERR_BUG);
        avcodec_parameters_free(&par);
        av_packet_free(&pkt);
        avcodec_free_context(&ctx);
    }
}

static AVCodecParameters *parameters(enum AVCodecID id, int profile, const void *extra, int size)
{
    AVCodecParameters *par = avcodec_parameters_alloc();
    par->codec_id = id;
    par->profile = profile;
    if (size) {
        par->extradata = av_mallocz((size_t)size + AV_INPUT_BUFFER_PADDING_SIZE);
        memcpy(par->extradata, extra, (size_t)size);
        par->extradata_size = size;
    }
    return par;
}

enum { UNKNOWN = -99 /* libav's own value for no profile */ };

/* Each form written out by hand from its specification. */
static const struct vector {
    enum AVCodecID id;
    int profile;
    const char *extradata;
    int size;
    const char *expected; /* NULL: refused */
} vectors[] = {
    /* avcC: version, then profile, constraints, level */
    {AV_CODEC_ID_H264, UNKNOWN, "\x01\x64\x00\x28\xff\xe1", 6, "avc1.640028"},
    {AV_CODEC_ID_H264, UNKNOWN, "\x00\x00\x01\x67\x4d\x40", 6, NULL},         /* cut off */
    {AV_CODEC_ID_H264, UNKNOWN, "\x00\x00\x01\x68\x4d\x40\x1f\x00", 8, NULL}, /* no SPS */
    /* hvcC, the example of ISO/IEC 14496-15 E.3 */
    {AV_CODEC_ID_HEVC, UNKNOWN,
     "\x01\x01\x60\x00\x00\x00\xb0\x00\x00\x00\x00\x00\x5d\xf0\x00\xfc\xfd\xf8\xf8\x00\x00\x0f\x00",
     23, "hvc1.1.6.L93.B0"},
    {AV_CODEC_ID_HEVC, UNKNOWN,
     "\x01\x62\x20\x00\x00\x00\x90\x00\x01\x00\x00\x00\x99\xf0\x00\xfc\xfd\xf8\xf8\x00\x00\x0f\x00",
     23, "hvc1.A2.4.H153.90.0.1"}, /* profile space, zero byte in the middle */
    /* VPS alone, with emulation prevention in the compatibility flags */
    {AV_CODEC_ID_HEVC, UNKNOWN,
     "\x00\x00\x00\x01\x40\x01\x0c\x01\xff\xff\x01\x60\x00\x00\x03\x00\x90\x00\x00\x03\x00\x00\x03"
     "\x00\x5d\x95",
     26, "hvc1.1.6.L93.90"},
    /* av1C without OBUs says too little */
    {AV_CODEC_ID_AV1, UNKNOWN, "\x81\x04\x0c\x00", 4, NULL},
    {AV_CODEC_ID_AV1, UNKNOWN, "\x0a\x0a\x00\x00", 4, NULL},
    {AV_CODEC_ID_AAC, 1, "\x11\x90", 2, "mp4a.40.2"},
    {AV_CODEC_ID_AAC, 1, "\x2b\x11\x88\x00", 4, "mp4a.40.5"},             /* explicit SBR */
    {AV_CODEC_ID_AAC, 1, "\xeb\x09\x88\x00", 4, "mp4a.40.29"},            /* explicit PS */
    {AV_CODEC_ID_AAC, 4, "\x13\x10\x56\xe5\xa5\x48\x00", 7, "mp4a.40.5"}, /* compatible SBR */
    {AV_CODEC_ID_AAC, 28, "\x13\x08\x56\xe5\xa5\x48\x80", 7, "mp4a.40.29"},
    {AV_CODEC_ID_AAC, 1, "", 0, "mp4a.40.2"},
    {AV_CODEC_ID_AAC, UNKNOWN, "", 0, "mp4a.40.2"},
    {AV_CODEC_ID_AC3, UNKNOWN, "", 0, "ac-3"},
    {AV_CODEC_ID_EAC3, UNKNOWN, "", 0, "ec-3"},
    {AV_CODEC_ID_OPUS, UNKNOWN, "", 0, "opus"},
    {AV_CODEC_ID_FLAC, UNKNOWN, "", 0, "fLaC"},
    {AV_CODEC_ID_MP3, UNKNOWN, "", 0, "mp4a.40.34"},
};

static void every_form_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const struct vector *v = &vectors[i];
        struct err e;
        char name[64] = "";
        AVCodecParameters *par = parameters(v->id, v->profile, v->extradata, v->size);
        int ret = codec_string_from(par, NULL, name, sizeof name, &e);
        if (v->expected) {
            assert_int_equal(ret, 0);
            assert_string_equal(name, v->expected);
        } else {
            assert_int_equal(ret, -ERR_BUG);
        }
        avcodec_parameters_free(&par);
    }
}

/* The av1C that MP4 holds: four bytes, then the sequence header. */
static void av1c_is_skipped(void **state)
{
    (void)state;
    AVCodecContext *ctx = NULL;
    for (size_t i = 0; !ctx && i < sizeof videos / sizeof videos[0]; i++)
        if (!strcmp(videos[i].encoder, "libsvtav1"))
            ctx = open_video(&videos[i], AV_CODEC_FLAG_GLOBAL_HEADER);
    if (!ctx)
        skip();
    uint8_t config[256] = {0x81, 0x00, 0x0c, 0x00};
    const uint8_t *obu = ctx->extradata;
    int size = ctx->extradata_size;
    if (size && obu[0] == 0x81) { /* this libavcodec gives av1C itself: try the bare OBUs */
        obu += 4;
        size -= 4;
    }
    assert_in_range(size, 4, 200);
    memcpy(config + 4, obu, (size_t)size);
    char name[64];
    struct err e;
    for (int with_header = 0; with_header < 2; with_header++) {
        AVCodecParameters *par = with_header
                                     ? parameters(AV_CODEC_ID_AV1, UNKNOWN, config, size + 4)
                                     : parameters(AV_CODEC_ID_AV1, UNKNOWN, obu, size);
        assert_int_equal(codec_string_from(par, NULL, name, sizeof name, &e), 0);
        assert_string_equal(name, "av01.0.00M.08");
        avcodec_parameters_free(&par);
    }
    AVPacket *pkt = encode_one(ctx);
    av_packet_free(&pkt);
    avcodec_free_context(&ctx);
}

static void others_are_refused(void **state)
{
    (void)state;
    struct err e;
    char name[64], small[5];
    AVCodecParameters *par = parameters(AV_CODEC_ID_VORBIS, UNKNOWN, "", 0);
    assert_int_equal(codec_string_from(par, NULL, name, sizeof name, &e), -ERR_CONFIG);
    assert_non_null(strstr(e.msg, "vorbis"));
    par->codec_id = AV_CODEC_ID_OPUS;
    assert_int_equal(codec_string_from(par, NULL, small, sizeof small, &e), 0);
    assert_int_equal(codec_string_from(par, NULL, small, 4, &e), -ERR_BUG);
    avcodec_parameters_free(&par);
}

int main(void)
{
    av_log_set_level(AV_LOG_FATAL);
    setenv("SVT_LOG", "1", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(video_is_named_by_its_bits),
        cmocka_unit_test(every_form_is_read),
        cmocka_unit_test(av1c_is_skipped),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests_name("codec_string", tests, NULL, NULL);
}
