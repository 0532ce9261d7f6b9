#include "pipelines/media/trial.h"

#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/avlog.h"
#include "pipelines/media/compat.h"
#include "pipelines/media/trial_cuda.h"

enum { WIDTH = 640, HEIGHT = 368 }; /* which every engine takes */

const char *trial_ffmpeg_version(void)
{
    return av_version_info();
}

struct candidate {
    const char *name;
    int bits;
};

/* What the profiles can ask for. */
static const struct candidate cpu_encoders[] = {
    {"libx264", 8},    {"libx265", 8}, {"libx265", 10},  {"libsvtav1", 8},
    {"libsvtav1", 10}, {"aac", 0},     {"ac3", 0},       {"eac3", 0},
    {"flac", 0},       {"libopus", 0}, {"libfdk_aac", 0}};
static const struct candidate gpu_encoders[] = {
    {"h264_nvenc", 8}, {"hevc_nvenc", 8}, {"hevc_nvenc", 10}, {"av1_nvenc", 8}, {"av1_nvenc", 10}};
static const struct candidate cpu_decoders[] = {{"mpeg2video", 8}, {"mpeg4", 8},  {"h264", 8},
                                                {"hevc", 8},       {"vp8", 8},    {"vp9", 8},
                                                {"av1", 8},        {"prores", 10}};

static struct trial *add(struct trial *all, size_t *n, const struct candidate *c)
{
    all[*n] = (struct trial){.codec = c->name, .bits = c->bits};
    return &all[(*n)++];
}

static const char *pix_fmt_of(int bits)
{
    return bits > 8 ? "yuv420p10le" : "yuv420p";
}

static void set_picture(AVCodecContext *ctx, int bits)
{
    ctx->width = WIDTH;
    ctx->height = HEIGHT;
    ctx->time_base = (AVRational){1, 25};
    ctx->framerate = (AVRational){25, 1};
    ctx->pix_fmt = av_get_pix_fmt(pix_fmt_of(bits));
}

static int set_sound(AVCodecContext *ctx)
{
    const enum AVSampleFormat *formats = compat_codec_sample_fmts(ctx->codec);
    ctx->sample_fmt = formats ? formats[0] : AV_SAMPLE_FMT_S16;
    ctx->sample_rate = 48000;
    ctx->time_base = (AVRational){1, 48000};
    return av_channel_layout_copy(&ctx->ch_layout, &(AVChannelLayout)AV_CHANNEL_LAYOUT_STEREO);
}

/* Something to encode; what it shows does not matter. */
static int make_frame(const AVCodecContext *ctx, AVFrame *frame)
{
    if (ctx->hw_frames_ctx)
        return av_hwframe_get_buffer(ctx->hw_frames_ctx, frame, 0);
    frame->width = ctx->width;
    frame->height = ctx->height;
    frame->format = ctx->width ? (int)ctx->pix_fmt : (int)ctx->sample_fmt;
    frame->sample_rate = ctx->sample_rate;
    frame->nb_samples = ctx->width ? 0 : ctx->frame_size ? ctx->frame_size : 1024;
    int status = av_channel_layout_copy(&frame->ch_layout, &ctx->ch_layout);
    if (status >= 0)
        status = av_frame_get_buffer(frame, 0);
    for (int i = 0; status >= 0 && i < AV_NUM_DATA_POINTERS && frame->buf[i]; i++)
        memset(frame->buf[i]->data, 0, frame->buf[i]->size);
    return status;
}

static int encode_one(AVCodecContext *ctx)
{
    cleanup(av_frame_free) AVFrame *frame = av_frame_alloc();
    cleanup(av_packet_free) AVPacket *packet = av_packet_alloc();
    int status = frame && packet ? make_frame(ctx, frame) : AVERROR(ENOMEM);
    if (status < 0)
        return status;
    frame->pts = 0;
    status = avcodec_send_frame(ctx, frame);
    if (status >= 0)
        status = avcodec_send_frame(ctx, NULL);
    return status < 0 ? status : avcodec_receive_packet(ctx, packet);
}

static int prepare(const struct device *device, const struct trial *t, AVCodecContext *ctx,
                   struct err *e)
{
    if (!t->bits)
        return set_sound(ctx) < 0 ? err_set(e, ERR_RESOURCE, "out of memory") : 0;
    set_picture(ctx, t->bits);
    ctx->thread_count = 1;
    if (!device_is_gpu(device))
        return 0;
    ctx->pix_fmt = device_pix_fmt(device);
    return device_frames(device, pix_fmt_of(t->bits), WIDTH, HEIGHT, &ctx->hw_frames_ctx, e);
}

static int open_encoder(const struct device *device, const struct trial *t, struct err *e)
{
    const AVCodec *codec = avcodec_find_encoder_by_name(t->codec);
    if (!codec)
        return err_set(e, ERR_DEVICE, "this libavcodec has no such encoder");
    cleanup(avcodec_free_context) AVCodecContext *ctx = avcodec_alloc_context3(codec);
    if (!ctx)
        return err_set(e, ERR_RESOURCE, "out of memory");
    int rc = prepare(device, t, ctx, e);
    if (rc < 0)
        return rc;
    avlog_clear();
    int status = avcodec_open2(ctx, codec, NULL);
    if (status >= 0)
        status = encode_one(ctx);
    return status < 0 ? err_set(e, ERR_DEVICE, "%s", avlog_reason(status)) : 0;
}

static int open_decoder(const struct trial *t, struct err *e)
{
    const AVCodecDescriptor *description = avcodec_descriptor_get_by_name(t->codec);
    const AVCodec *codec = description ? avcodec_find_decoder(description->id) : NULL;
    if (!codec)
        return err_set(e, ERR_DEVICE, "this libavcodec has no such decoder");
    cleanup(avcodec_free_context) AVCodecContext *ctx = avcodec_alloc_context3(codec);
    avlog_clear();
    if (ctx)
        set_picture(ctx, t->bits);
    int status = ctx ? avcodec_open2(ctx, codec, NULL) : AVERROR(ENOMEM);
    return status < 0 ? err_set(e, ERR_DEVICE, "%s", avlog_reason(status)) : 0;
}

static void note(struct trial *t, int rc, const struct err *e)
{
    t->is_open = rc == 0;
    if (rc < 0)
        snprintf(t->reason, sizeof t->reason, "%.*s", (int)sizeof t->reason - 1, e->msg);
}

size_t trial_encoders(const struct device *device, struct trial ret[TRIALS_MAX])
{
    bool is_gpu = device_is_gpu(device);
    const struct candidate *all = is_gpu ? gpu_encoders : cpu_encoders;
    size_t n = 0, count = is_gpu ? sizeof gpu_encoders / sizeof *gpu_encoders
                                 : sizeof cpu_encoders / sizeof *cpu_encoders;
    for (size_t i = 0; i < count; i++) {
        struct err e = {0};
        struct trial *t = add(ret, &n, &all[i]);
        note(t, open_encoder(device, t, &e), &e);
    }
    return n;
}

size_t trial_decoders(const struct device *device, struct trial ret[TRIALS_MAX],
                      struct trial_engines *ret_engines)
{
    *ret_engines = (struct trial_engines){0};
    if (device_is_gpu(device))
        return trial_cuda_decoders(device, ret, ret_engines);
    size_t n = 0;
    for (size_t i = 0; i < sizeof cpu_decoders / sizeof *cpu_decoders; i++) {
        struct err e = {0};
        struct trial *t = add(ret, &n, &cpu_decoders[i]);
        note(t, open_decoder(t, &e), &e);
    }
    return n;
}
