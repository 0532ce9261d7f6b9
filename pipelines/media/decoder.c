#include "pipelines/media/decoder.h"

#include <libavcodec/avcodec.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/avlog.h"
#include "pipelines/media/device_fault.h"

struct decoder {
    AVCodecContext *ctx;
    const struct device *device;
    bool is_offered; /* libavcodec knows how to decode this stream on the device */
    bool is_refused; /* the device does not decode it */
    struct err why;  /* of is_refused */
    int reorder;     /* frames, as the container's reader has found it */
    int64_t origin, last;
    int64_t frames, errors;
};

static void refuse(struct decoder *d)
{
    const AVCodecContext *c = d->ctx;
    const char *profile = avcodec_profile_name(c->codec_id, c->profile), *dot = profile ? ", " : "";
    const char *codec = avcodec_get_name(c->codec_id), *device = device_name(d->device);
    d->is_refused = true;
    profile = profile ? profile : "";
    if (d->is_offered) /* and what libavcodec then asked of the driver failed */
        device_fault(device_is_gpu(d->device), ERR_DEVICE, AVERROR_EXTERNAL, &d->why,
                     "device %s cannot decode this %s video (%s%s%dx%d), use --device cpu", device,
                     codec, profile, dot, c->width, c->height);
    else
        err_set(&d->why, ERR_DEVICE,
                "device %s cannot decode this %s video (%s%s%dx%d): use --device cpu", device,
                codec, profile, dot, c->width, c->height);
}

/* Takes the device's format or none: libavcodec would go on in software without a word. */
static enum AVPixelFormat get_format(AVCodecContext *ctx, const enum AVPixelFormat *formats)
{
    struct decoder *d = ctx->opaque;
    for (; *formats != AV_PIX_FMT_NONE; formats++) {
        if (*formats != device_pix_fmt(d->device))
            continue;
        d->is_offered = true;
        avlog_clear();
        return *formats;
    }
    refuse(d);
    return AV_PIX_FMT_NONE;
}

int decoder_open(const AVStream *stream, int64_t origin, const struct device *device, int surfaces,
                 const struct limits *limits, struct decoder **ret, struct err *e)
{
    const AVCodecParameters *par = stream->codecpar;
    const AVCodec *codec = avcodec_find_decoder(par->codec_id);
    if (!codec)
        return err_set(e, ERR_INPUT, "video codec %s has no decoder here",
                       avcodec_get_name(par->codec_id));
    cleanup(decoder_close) struct decoder *d = xcalloc(1, sizeof *d);
    d->ctx = avcodec_alloc_context3(codec);
    d->device = device;
    d->origin = origin;
    d->last = INT64_MIN;
    int status = d->ctx ? avcodec_parameters_to_context(d->ctx, par) : AVERROR(ENOMEM);
    if (status >= 0) {
        d->ctx->pkt_timebase = stream->time_base;
        d->ctx->max_pixels = limits->max_pixels;
        d->ctx->flags |= AV_CODEC_FLAG_UNALIGNED; /* else up to 31 columns of margin are shown */
        /* Sessions run side by side and encoders have threads of their own: one thread here costs
         * the least, and starts a chunk without filling a frame-threaded pipeline first. */
        d->ctx->thread_count = 1;
        if (device_is_gpu(device)) {
            d->ctx->opaque = d;
            d->ctx->get_format = get_format;
            d->ctx->hw_device_ctx = av_buffer_ref(device_context(device));
            d->ctx->extra_hw_frames = surfaces;
        }
        status = avcodec_open2(d->ctx, codec, NULL);
    }
    if (status < 0)
        return err_set(e, status == AVERROR(ENOMEM) ? ERR_RESOURCE : ERR_INPUT,
                       "open the %s decoder: %s", codec->name, avlog_reason(status));
    *ret = take(d);
    return 0;
}

void decoder_close(struct decoder **d)
{
    if (*d)
        avcodec_free_context(&(*d)->ctx);
    free_ptr(d);
}

/* Not what the source is to blame for. A driver that failed loses frames that are in the source:
 * that is no damage to be passed over. */
static bool is_fatal(const struct decoder *d, int status)
{
    bool is_of_driver = status == AVERROR_EXTERNAL || status == AVERROR_UNKNOWN;
    return d->is_refused || status == AVERROR(ENOMEM) || (is_of_driver && device_is_gpu(d->device));
}

/* Why neither a packet nor a frame will come any more. */
static int fail(const struct decoder *d, int status, struct err *e)
{
    if (d->is_refused) {
        *e = d->why;
        return -(int)d->why.kind;
    }
    return device_fault(device_is_gpu(d->device), ERR_DEVICE, status, e, "device %s: decode video",
                        device_name(d->device));
}

int decoder_send(struct decoder *d, const AVPacket *pkt, bool is_unneeded, struct err *e)
{
    d->ctx->skip_frame = is_unneeded ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
    int status = avcodec_send_packet(d->ctx, pkt);
    if (is_fatal(d, status))
        return fail(d, status, e);
    if (status < 0 && status != AVERROR_EOF)
        d->errors++;
    return 0;
}

int decoder_receive(struct decoder *d, AVFrame *frame, struct err *e)
{
    for (;;) {
        int status = avcodec_receive_frame(d->ctx, frame);
        if (status == AVERROR(EAGAIN))
            return 0;
        if (status == AVERROR_EOF)
            return status;
        if (status < 0) { /* damaged: later packets decode again */
            if (is_fatal(d, status))
                return fail(d, status, e);
            d->errors++;
            continue;
        }
        break;
    }
    if (device_is_gpu(d->device) && frame->format != device_pix_fmt(d->device)) {
        refuse(d);
        return fail(d, 0, e);
    }
    d->frames++;
    int64_t pts = frame->best_effort_timestamp;
    pts = pts == AV_NOPTS_VALUE ? d->last + 1 : pts - d->origin;
    if (pts <= d->last)
        pts = d->last + 1; /* two frames may not share a time: each is kept, one tick later */
    d->last = frame->pts = pts;
    frame->pict_type = AV_PICTURE_TYPE_NONE; /* the encoder is not to follow the source's choice */
    return 1;
}

int64_t decoder_frames(const struct decoder *d)
{
    return d->frames;
}

int64_t decoder_errors(const struct decoder *d)
{
    return d->errors;
}
