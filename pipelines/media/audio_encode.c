/*
 * Packet p covers the samples from start - priming + p * F on, F being the encoder's frame size;
 * the first `priming` of them are the encoder's own run-up. Encoders that look ahead give out
 * packets until everything is covered when they are flushed; those that do not (AC-3) get as much
 * silence as they delay the signal by, or its end would be missing.
 *
 * Segments follow the position that packet p would have without priming, start + p * F, so that
 * they do not depend on the encoder: segment k begins with the first packet at or after k * D. The
 * packets that priming pushes past the end open no segment of their own.
 */
#include "pipelines/media/audio_encode.h"

#include <libavutil/audio_fifo.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/plan/timeline.h"

enum { DEFAULT_FRAME = 1024 /* for encoders that take any size */ };

struct audio_encode {
    AVCodecContext *ctx;
    AVAudioFifo *fifo;
    AVFrame *frame;
    AVPacket *pkt;
    struct packager *packager;
    const char *rendition;
    struct rational segment;
    int frame_size;
    int64_t start, written; /* first sample; samples so far */
    int64_t framed;         /* samples handed to the encoder */
    int64_t packets;        /* written */
    int64_t index;          /* segment of the next packet */
    bool is_ending;
};

/* Encoders that HLS has a name for. deep: the format for sources beyond 16 bits. */
static const struct {
    const char *name;
    enum AVSampleFormat format, deep;
} encoders[] = {
    {"aac", AV_SAMPLE_FMT_FLTP, AV_SAMPLE_FMT_FLTP},
    {"libfdk_aac", AV_SAMPLE_FMT_S16, AV_SAMPLE_FMT_S16},
    {"libopus", AV_SAMPLE_FMT_FLT, AV_SAMPLE_FMT_FLT},
    {"ac3", AV_SAMPLE_FMT_FLTP, AV_SAMPLE_FMT_FLTP},
    {"eac3", AV_SAMPLE_FMT_FLTP, AV_SAMPLE_FMT_FLTP},
    {"flac", AV_SAMPLE_FMT_S16, AV_SAMPLE_FMT_S32},
    {"libmp3lame", AV_SAMPLE_FMT_FLTP, AV_SAMPLE_FMT_FLTP},
};

/* The layouts that every one of them takes, by number of channels. */
static const uint64_t layouts[] = {
    [1] = AV_CH_LAYOUT_MONO,    [2] = AV_CH_LAYOUT_STEREO,       [3] = AV_CH_LAYOUT_SURROUND,
    [4] = AV_CH_LAYOUT_4POINT0, [5] = AV_CH_LAYOUT_5POINT0_BACK, [6] = AV_CH_LAYOUT_5POINT1_BACK,
    [7] = AV_CH_LAYOUT_6POINT1, [8] = AV_CH_LAYOUT_7POINT1,
};

int audio_encode_format(const struct plan_audio *audio, bool is_deep, AVChannelLayout *ret_layout,
                        enum AVSampleFormat *ret_format, struct err *e)
{
    if (audio->channels < 1 || audio->channels >= (int)(sizeof layouts / sizeof layouts[0]))
        return err_set(e, ERR_CONFIG, "%s: %d channels cannot be encoded, at most 8", audio->name,
                       audio->channels);
    av_channel_layout_from_mask(ret_layout, layouts[audio->channels]);
    for (size_t i = 0; i < sizeof encoders / sizeof encoders[0]; i++) {
        if (strcmp(encoders[i].name, audio->encoder))
            continue;
        *ret_format = is_deep ? encoders[i].deep : encoders[i].format;
        return 0;
    }
    return err_set(e, ERR_CONFIG,
                   "%s: %s is not an audio encoder for HLS, use aac, ac3, eac3, flac or libopus",
                   audio->name, audio->encoder);
}

static int open_encoder(struct audio_encode *a, const struct audio_encode_options *o, struct err *e)
{
    const struct plan_audio *audio = o->audio;
    const AVCodec *codec = avcodec_find_encoder_by_name(audio->encoder);
    if (!codec)
        return err_set(e, ERR_DEVICE, "%s: this libavcodec has no encoder %s", audio->name,
                       audio->encoder);
    AVCodecContext *ctx = a->ctx = avcodec_alloc_context3(codec);
    if (!ctx)
        return err_set(e, ERR_RESOURCE, "%s: out of memory", audio->name);
    int ret = audio_encode_format(audio, o->is_deep, &ctx->ch_layout, &ctx->sample_fmt, e);
    if (ret < 0)
        return ret;
    ctx->sample_rate = audio->sample_rate;
    ctx->time_base = (AVRational){1, audio->sample_rate};
    ctx->bit_rate = audio->bitrate;
    ctx->thread_count = 1;
    if (ctx->sample_fmt == AV_SAMPLE_FMT_S32)
        ctx->bits_per_raw_sample = 24;
    ctx->flags |= AV_CODEC_FLAG_BITEXACT; /* no library version in the stream */
    if (o->packager.segments == SEGMENTS_FMP4)
        ctx->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    if ((ret = avcodec_open2(ctx, codec, NULL)) < 0)
        return err_set(e, ERR_CONFIG, "%s: %s does not take %d channels at %d Hz, %lld bit/s: %s",
                       audio->name, audio->encoder, audio->channels, audio->sample_rate,
                       (long long)audio->bitrate, av_err2str(ret));
    a->frame_size = ctx->frame_size ? ctx->frame_size : DEFAULT_FRAME;
    return 0;
}

static int alloc_frame(struct audio_encode *a)
{
    a->pkt = av_packet_alloc();
    a->fifo =
        av_audio_fifo_alloc(a->ctx->sample_fmt, a->ctx->ch_layout.nb_channels, 2 * a->frame_size);
    if (!a->pkt || !a->fifo || !(a->frame = av_frame_alloc()))
        return -1;
    a->frame->format = a->ctx->sample_fmt;
    a->frame->sample_rate = a->ctx->sample_rate;
    a->frame->nb_samples = a->frame_size;
    if (av_channel_layout_copy(&a->frame->ch_layout, &a->ctx->ch_layout) < 0)
        return -1;
    return av_frame_get_buffer(a->frame, 0);
}

int audio_encode_open(const struct audio_encode_options *options, struct audio_encode **ret,
                      struct err *e)
{
    cleanup(audio_encode_free) struct audio_encode *a = xcalloc(1, sizeof *a);
    a->rendition = options->audio->name;
    a->segment = options->segment;
    a->start = options->start;
    int status = open_encoder(a, options, e);
    if (status < 0)
        return status;
    if (alloc_frame(a) < 0)
        return err_set(e, ERR_RESOURCE, "%s: out of memory", a->rendition);
    struct rational samples = {1, a->ctx->sample_rate};
    a->index = rational_rescale(a->start, samples, a->segment, ROUND_FLOOR);
    if ((status = packager_open(&options->packager, a->ctx, &a->packager, e)) < 0)
        return status;
    *ret = take(a);
    return 0;
}

void audio_encode_free(struct audio_encode **ap)
{
    struct audio_encode *a = *ap;
    if (!a)
        return;
    packager_free(&a->packager);
    avcodec_free_context(&a->ctx);
    av_audio_fifo_free(a->fifo);
    av_frame_free(&a->frame);
    av_packet_free(&a->pkt);
    free(a);
    *ap = NULL;
}

int64_t audio_encode_samples(const struct audio_encode *a)
{
    return a->written;
}

/* The segment of the next packet; while encoding goes on the end is not known and not needed. */
static int64_t next_segment(struct audio_encode *a)
{
    int64_t nominal = a->start + a->packets * a->frame_size;
    if (a->is_ending && nominal >= a->start + a->written)
        return a->index;
    while (a->packets >= timeline_audio_packet(a->segment, a->ctx->sample_rate, a->start,
                                               a->frame_size, a->index + 1))
        a->index++;
    return a->index;
}

static int write_packet(struct audio_encode *a, struct err *e)
{
    AVPacket *pkt = a->pkt;
    int64_t pts = a->start - a->ctx->initial_padding + a->packets * a->frame_size;
    int64_t end = a->is_ending ? a->start + a->written : pts + a->frame_size;
    if (!pkt->size || pts >= end) /* FLAC's closing side data; flushing beyond the end */
        return 0;
    if (pkt->pts != AV_NOPTS_VALUE && pkt->pts != pts)
        return err_set(e, ERR_BUG, "%s: %s gave packet %lld at sample %lld instead of %lld",
                       a->rendition, a->ctx->codec->name, (long long)a->packets,
                       (long long)pkt->pts, (long long)pts);
    pkt->pts = pkt->dts = pts;
    pkt->duration = FFMIN(a->frame_size, end - pts);
    pkt->flags |= AV_PKT_FLAG_KEY;
    int ret = packager_write(a->packager, pkt, next_segment(a), e);
    a->packets++;
    return ret;
}

static int receive_packets(struct audio_encode *a, struct err *e)
{
    for (;;) {
        int ret = avcodec_receive_packet(a->ctx, a->pkt);
        if (ret == AVERROR(EAGAIN) || ret == AVERROR_EOF)
            return 0;
        if (ret < 0)
            return err_set(e, ret == AVERROR(ENOMEM) ? ERR_RESOURCE : ERR_BUG, "%s: encode: %s",
                           a->rendition, av_err2str(ret));
        ret = write_packet(a, e);
        av_packet_unref(a->pkt);
        if (ret < 0)
            return ret;
    }
}

/* The next n samples of the fifo as one frame; 0: the end of the stream. */
static int encode_frame(struct audio_encode *a, int n, struct err *e)
{
    AVFrame *frame = n ? a->frame : NULL;
    if (frame) {
        frame->nb_samples = a->frame_size; /* whole while its buffer may be replaced */
        if (av_frame_make_writable(frame) < 0)
            return err_set(e, ERR_RESOURCE, "%s: out of memory", a->rendition);
        av_audio_fifo_read(a->fifo, (void **)frame->extended_data, n);
        frame->nb_samples = n;
        frame->pts = a->start + a->framed;
        a->framed += n;
    }
    int ret = avcodec_send_frame(a->ctx, frame);
    if (ret < 0)
        return err_set(e, ret == AVERROR(ENOMEM) ? ERR_RESOURCE : ERR_BUG, "%s: encode: %s",
                       a->rendition, av_err2str(ret));
    return receive_packets(a, e);
}

static int put(struct audio_encode *a, uint8_t *const *planes, int n, struct err *e)
{
    if (av_audio_fifo_write(a->fifo, (void **)planes, n) < n)
        return err_set(e, ERR_RESOURCE, "%s: out of memory", a->rendition);
    int ret = 0;
    while (ret >= 0 && av_audio_fifo_size(a->fifo) >= a->frame_size)
        ret = encode_frame(a, a->frame_size, e);
    return ret;
}

int audio_encode_write(struct audio_encode *a, uint8_t *const *planes, int n, struct err *e)
{
    a->written += n;
    return put(a, planes, n, e);
}

static void free_samples(uint8_t ***planes)
{
    if (*planes)
        av_freep(&(*planes)[0]);
    av_freep(planes);
}

static int push_out_tail(struct audio_encode *a, struct err *e)
{
    int n = a->ctx->initial_padding, channels = a->ctx->ch_layout.nb_channels;
    if (a->ctx->codec->capabilities & AV_CODEC_CAP_DELAY || !n)
        return 0;
    cleanup(free_samples) uint8_t **planes = NULL;
    if (av_samples_alloc_array_and_samples(&planes, NULL, channels, n, a->ctx->sample_fmt, 0) < 0)
        return err_set(e, ERR_RESOURCE, "%s: out of memory", a->rendition);
    av_samples_set_silence(planes, 0, n, channels, a->ctx->sample_fmt);
    return put(a, planes, n, e);
}

int audio_encode_finish(struct audio_encode *a, struct manifest_track *ret, struct err *e)
{
    a->is_ending = true;
    int status = push_out_tail(a, e);
    int rest = av_audio_fifo_size(a->fifo);
    if (status >= 0 && rest)
        status = encode_frame(a, rest, e);
    if (status >= 0)
        status = encode_frame(a, 0, e);
    if (status < 0)
        return status;
    int64_t end = a->start + a->written;
    int64_t covered = a->start - a->ctx->initial_padding + a->packets * a->frame_size;
    if (covered < end)
        return err_set(e, ERR_BUG, "%s: %s lost the last %lld samples", a->rendition,
                       a->ctx->codec->name, (long long)(end - covered));
    if ((status = packager_finish(a->packager, end, ret, e)) < 0)
        return status;
    ret->channels = a->ctx->ch_layout.nb_channels;
    ret->sample_rate = a->ctx->sample_rate;
    ret->priming = a->ctx->initial_padding;
    return 0;
}
