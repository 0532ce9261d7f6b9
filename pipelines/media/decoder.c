#include "pipelines/media/decoder.h"

#include <libavcodec/avcodec.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/avlog.h"

struct decoder {
    AVCodecContext *ctx;
    int64_t origin, last;
    int64_t frames, errors;
};

int decoder_open(const AVStream *stream, int64_t origin, const struct limits *limits,
                 struct decoder **ret, struct err *e)
{
    const AVCodecParameters *par = stream->codecpar;
    const AVCodec *codec = avcodec_find_decoder(par->codec_id);
    if (!codec)
        return err_set(e, ERR_INPUT, "video codec %s has no decoder here",
                       avcodec_get_name(par->codec_id));
    cleanup(decoder_close) struct decoder *d = xcalloc(1, sizeof *d);
    d->ctx = avcodec_alloc_context3(codec);
    d->origin = origin;
    d->last = INT64_MIN;
    int status = d->ctx ? avcodec_parameters_to_context(d->ctx, par) : AVERROR(ENOMEM);
    if (status >= 0) {
        d->ctx->pkt_timebase = stream->time_base;
        d->ctx->max_pixels = limits->max_pixels;
        /* Sessions run side by side and encoders have threads of their own: one thread here costs
         * the least, and starts a chunk without filling a frame-threaded pipeline first. */
        d->ctx->thread_count = 1;
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

void decoder_flush(struct decoder *d)
{
    avcodec_flush_buffers(d->ctx);
    d->last = INT64_MIN;
}

int decoder_send(struct decoder *d, const AVPacket *pkt, bool is_unneeded, struct err *e)
{
    d->ctx->skip_frame = is_unneeded ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
    int status = avcodec_send_packet(d->ctx, pkt);
    if (status == AVERROR(ENOMEM))
        return err_set(e, ERR_RESOURCE, "decode video: out of memory");
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
        if (status == AVERROR(ENOMEM))
            return err_set(e, ERR_RESOURCE, "decode video: out of memory");
        if (status < 0) { /* damaged: later packets decode again */
            d->errors++;
            continue;
        }
        break;
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
