#include "pipelines/media/head.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/avlog.h"
#include "pipelines/media/compat.h"

enum { VIDEO_FRAMES = 8, PACKETS_MAX = 300 };

static void fail(struct head *h, const char *why)
{
    h->is_done = true;
    if (!h->first && !h->failure)
        h->failure = xstrdup(why);
}

static void open_decoder(struct head *h, const AVFormatContext *f, const struct limits *limits)
{
    const AVStream *st = f->streams[h->stream];
    const AVCodec *codec = avcodec_find_decoder(st->codecpar->codec_id);
    if (!codec) {
        cleanup(free_ptr) char *why =
            xasprintf("there is no decoder for %s", avcodec_get_name(st->codecpar->codec_id));
        fail(h, why);
        return;
    }
    h->decoder = avcodec_alloc_context3(codec);
    int status =
        h->decoder ? avcodec_parameters_to_context(h->decoder, st->codecpar) : AVERROR(ENOMEM);
    if (status >= 0) {
        h->decoder->pkt_timebase = st->time_base;
        h->decoder->max_pixels = limits->max_pixels;
        h->decoder->thread_count = 1;
        h->decoder->flags |= AV_CODEC_FLAG_UNALIGNED; /* cut where the stream says, as decoder.c */
        h->decoder->skip_loop_filter = AVDISCARD_ALL; /* nobody looks at the pictures */
        h->decoder->codec_whitelist = av_strdup(f->codec_whitelist);
        status = avcodec_open2(h->decoder, codec, NULL);
    }
    if (status < 0)
        fail(h, avlog_reason(status));
}

static void take_frame(struct head *h, AVFrame *frame)
{
    if (h->frames++ == 0) {
        h->first = av_frame_clone(frame);
        h->start = frame->pts != AV_NOPTS_VALUE ? frame->pts : frame->best_effort_timestamp;
    }
    if (compat_frame_is_interlaced(frame)) {
        h->is_bottom_first |= !h->is_interlaced && !compat_frame_is_top_first(frame);
        h->is_interlaced = true;
    }
    h->is_done |= h->frames >= (frame->width > 0 ? VIDEO_FRAMES : 1);
}

/* pkt NULL: the end. */
static void decode(struct head *h, const AVPacket *pkt)
{
    cleanup(av_frame_free) AVFrame *frame = av_frame_alloc();
    int status = avcodec_send_packet(h->decoder, pkt);
    while (frame && !h->is_done && avcodec_receive_frame(h->decoder, frame) >= 0)
        take_frame(h, frame);
    if (pkt && ++h->packets < PACKETS_MAX)
        return; /* damage at the start is no reason yet */
    if (!h->is_done)
        fail(h, avlog_reason(status < 0 ? status : AVERROR_INVALIDDATA));
}

static bool is_finished(const struct head *heads, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!heads[i].is_done)
            return false;
    return true;
}

int head_read(struct input *in, const struct limits *limits, struct head *heads, size_t n,
              struct err *e)
{
    cleanup(av_packet_free) AVPacket *pkt = av_packet_alloc();
    int r = pkt ? input_seek(in, heads[0].stream, INT64_MIN, e)
                : err_set(e, ERR_RESOURCE, "read the source: out of memory");
    avlog_clear();
    for (size_t i = 0; i < n; i++)
        open_decoder(&heads[i], input_format(in), limits);
    while (r == 0 && !is_finished(heads, n) && input_position(in) < limits->max_header_bytes) {
        if ((r = input_read(in, pkt, e)) < 0)
            break;
        for (size_t i = 0; i < n; i++)
            if (heads[i].stream == pkt->stream_index && !heads[i].is_done)
                decode(&heads[i], pkt);
        av_packet_unref(pkt);
    }
    if (r < 0 && r != AVERROR_EOF)
        return r;
    for (size_t i = 0; i < n; i++)
        if (!heads[i].is_done && heads[i].packets > 0)
            decode(&heads[i], NULL);
    return 0;
}

void head_clear(struct head *h)
{
    avcodec_free_context(&h->decoder);
    av_frame_free(&h->first);
    free(h->failure);
    h->failure = NULL;
}
