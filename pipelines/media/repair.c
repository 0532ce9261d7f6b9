/*
 * What libavformat has done by the time a packet gets here (5.1 to 7.1, read in its demux.c):
 *
 * - 33-bit wraps. With correct_ts_overflow (the default) the first packet of a program sets a
 *   reference 60 s before itself. If that lies in the last eighth of the range, or the packet in
 * the last 60 s, timestamps at or above the reference have 2^33 subtracted, so such a file starts
 * at a small negative time and goes through 0; else those below the reference have 2^33 added. The
 *   reference stays for the life of the context and read_timestamp() of the seek code applies it
 *   too, so linear reads and reads after a seek agree. One wrap (26.5 h) is all it can do, which
 *   max_duration_s exceeds by nothing at its default.
 * - AVI has no pts. Without B-frames pts = dts = frame number; with them a B-frame has pts = dts
 * and everything else (H.264: everything) none.
 * - MPEG-PS/TS packets without a PES timestamp get their dts extrapolated from the last one, which
 *   depends on where reading began: so a missing pts counts as stateful there, while in AVI the dts
 *   is the frame's own index.
 *
 * The order of pictures comes from the codec's parser: picture order count for H.264 and HEVC, the
 * picture type for the older codecs. A reorder buffer of the decoder's depth is simulated: a new
 * packet joins it, and when it overflows the first picture in output order leaves, at the time of
 * the packet that pushed. Starting at a keyframe gives the same result as coming from before it,
 * since what is still buffered then leaves before the keyframe's own pictures do.
 */
#include "pipelines/media/repair.h"

#include <libavcodec/avcodec.h>
#include <string.h>

#include "common/strbuf.h"

static const AVRational clock_90k = {1, 90000};

struct held {
    AVPacket *packet;
    int64_t order;   /* output order, while is_waiting */
    bool is_waiting; /* for its pts */
};

struct stream {
    AVRational tb;
    bool is_video, is_timed; /* timed: audio or video, takes part in the search for jumps */
    bool has_position;
    int64_t next;     /* dts expected next, repaired, ticks */
    int64_t duration; /* of the last packet, ticks */
    int64_t shift;    /* in 1/90000 s */
    int64_t recent[REPAIR_WINDOW];
    int n_recent;
    /* Reordering: packets held in decode order; those that wait for a pts. */
    bool is_reordering;
    int depth; /* pictures that the decoder holds back */
    struct held held[REPAIR_WINDOW];
    int n_held, n_waiting;
    AVCodecParserContext *parser;
    AVCodecContext *codec; /* for the parser; never opened */
    int64_t epoch, max_order, decoded;
};

struct repair {
    const AVFormatContext *format;
    bool has_jumps, has_index_dts;
    struct stream *streams;
    unsigned n_streams;
    int64_t shift; /* since the last jump, 1/90000 s */
    struct repair_counts counts;
};

static bool is_format(const AVFormatContext *f, const char *name)
{
    return f->iformat && !strcmp(f->iformat->name, name);
}

struct repair *repair_new(const AVFormatContext *format)
{
    struct repair *r = xcalloc(1, sizeof *r);
    r->format = format;
    r->has_jumps = is_format(format, "mpegts") || is_format(format, "mpeg");
    r->has_index_dts = is_format(format, "avi");
    return r;
}

static void stream_clear(struct stream *s)
{
    for (int i = 0; i < s->n_held; i++)
        av_packet_free(&s->held[i].packet);
    if (s->parser)
        av_parser_close(s->parser);
    avcodec_free_context(&s->codec);
}

void repair_reset(struct repair *r)
{
    for (unsigned i = 0; i < r->n_streams; i++)
        stream_clear(&r->streams[i]);
    free(r->streams);
    r->streams = NULL;
    r->n_streams = 0;
    r->shift = 0;
    r->counts = (struct repair_counts){0};
}

void repair_free(struct repair **r)
{
    if (*r)
        repair_reset(*r);
    free(*r);
    *r = NULL;
}

const struct repair_counts *repair_counts(const struct repair *r)
{
    return &r->counts;
}

/* Streams may appear while reading. */
static struct stream *stream_of(struct repair *r, int index)
{
    unsigned n = (unsigned)index + 1;
    if (n > r->n_streams) {
        r->streams = xrealloc_array(r->streams, n, sizeof *r->streams);
        for (unsigned i = r->n_streams; i < n; i++) {
            const AVStream *st = r->format->streams[i];
            enum AVMediaType type = st->codecpar->codec_type;
            bool is_picture = st->disposition & AV_DISPOSITION_ATTACHED_PIC;
            r->streams[i] = (struct stream){
                .tb = st->time_base,
                .is_video = type == AVMEDIA_TYPE_VIDEO && !is_picture,
                .is_timed =
                    (type == AVMEDIA_TYPE_VIDEO && !is_picture) || type == AVMEDIA_TYPE_AUDIO,
                .depth = st->codecpar->video_delay,
                .is_reordering = r->has_index_dts && st->codecpar->video_delay > 0,
            };
        }
        r->n_streams = n;
    }
    return &r->streams[index];
}

/* ---- jumps ---- */

static int64_t to_ticks(const struct stream *s, int64_t t_90k)
{
    return av_rescale_q(t_90k, clock_90k, s->tb);
}

static int64_t to_90k(const struct stream *s, int64_t ticks)
{
    return av_rescale_q(ticks, s->tb, clock_90k);
}

static bool is_near_others(const struct repair *r, const struct stream *s, int64_t at_90k)
{
    for (unsigned i = 0; i < r->n_streams; i++) {
        const struct stream *o = &r->streams[i];
        if (o != s && o->is_timed && o->has_position &&
            llabs(to_90k(o, o->next) - at_90k) <= REPAIR_AHEAD_S * 90000)
            return true;
    }
    return false;
}

static bool is_continuation(const struct repair *r, const struct stream *s, int64_t dts,
                            int64_t shift)
{
    int64_t at = to_90k(s, dts) + shift, step = at - to_90k(s, s->next);
    if (step < -REPAIR_BACK_S * 90000)
        return false;
    return step <= REPAIR_AHEAD_S * 90000 || is_near_others(r, s, at);
}

/* Decides by how much the stream is shifted from this packet on: as before, as the stream that met
 * the last jump first, or by a new jump. */
static void follow_jump(struct repair *r, struct stream *s, int64_t dts)
{
    if (s->has_position && is_continuation(r, s, dts, s->shift))
        return;
    if (s->has_position && !is_continuation(r, s, dts, r->shift)) {
        r->shift = to_90k(s, s->next) - to_90k(s, dts);
        r->counts.jumps++;
        r->counts.is_stateful = true;
    }
    s->shift = r->shift;
}

/* ---- missing ---- */

static int64_t frame_ticks(const struct repair *r, const struct stream *s, const AVPacket *pkt)
{
    if (pkt->duration > 0)
        return pkt->duration;
    const AVStream *st = r->format->streams[pkt->stream_index];
    AVRational rate = st->avg_frame_rate.num ? st->avg_frame_rate : st->r_frame_rate;
    if (!s->is_video || rate.num <= 0 || rate.den <= 0)
        return 1;
    int64_t ticks = av_rescale_q(1, av_inv_q(rate), s->tb);
    return ticks > 0 ? ticks : 1;
}

static void count_missing(struct repair *r, const struct stream *s)
{
    r->counts.missing++;
    if (s->is_video && !r->has_index_dts)
        r->counts.is_stateful = true;
}

static void start_reordering(struct repair *r, struct stream *s, int index)
{
    const AVCodecParameters *par = r->format->streams[index]->codecpar;
    s->parser = av_parser_init(par->codec_id);
    s->codec = avcodec_alloc_context3(NULL);
    if (s->codec)
        avcodec_parameters_to_context(s->codec, par);
    if (s->parser)
        s->parser->flags |= PARSER_FLAG_COMPLETE_FRAMES;
}

/* The picture's place in output order. */
static int64_t output_order(struct stream *s, const AVPacket *pkt)
{
    int64_t n = s->decoded++;
    if (!s->parser || !s->codec)
        return n;
    uint8_t *out;
    int out_size;
    av_parser_parse2(s->parser, s->codec, &out, &out_size, pkt->data, pkt->size, pkt->pts, pkt->dts,
                     pkt->pos);
    enum AVCodecID id = s->codec->codec_id;
    if (id != AV_CODEC_ID_H264 && id != AV_CODEC_ID_HEVC) /* B-frames go before the last I or P */
        return s->parser->pict_type == AV_PICTURE_TYPE_B
                   ? s->max_order - REPAIR_WINDOW + n % 64
                   : (s->max_order = 2 * REPAIR_WINDOW * (n + 1));
    int64_t count = s->parser->output_picture_number;
    if (pkt->flags & AV_PKT_FLAG_KEY && count < s->max_order) { /* the count began anew */
        s->epoch++;
        s->max_order = count;
    }
    if (count > s->max_order)
        s->max_order = count;
    return s->epoch * ((int64_t)1 << 33) + count;
}

static void release_first(struct repair *r, struct stream *s, int64_t time)
{
    struct held *first = NULL;
    for (int i = 0; i < s->n_held; i++)
        if (s->held[i].is_waiting && (!first || s->held[i].order < first->order))
            first = &s->held[i];
    first->is_waiting = false;
    s->n_waiting--;
    if (first->packet->pts == AV_NOPTS_VALUE) {
        first->packet->pts = time;
        count_missing(r, s);
    }
}

/* ---- duplicates ---- */

static bool was_seen(const struct stream *s, int64_t pts)
{
    int n = s->n_recent < REPAIR_WINDOW ? s->n_recent : REPAIR_WINDOW;
    for (int i = 0; i < n; i++)
        if (s->recent[i] == pts)
            return true;
    return false;
}

static void nudge(struct repair *r, struct stream *s, AVPacket *pkt)
{
    if (was_seen(s, pkt->pts)) {
        r->counts.duplicates++;
        r->counts.is_stateful = true;
        while (was_seen(s, pkt->pts))
            pkt->pts++;
    }
    s->recent[s->n_recent++ % REPAIR_WINDOW] = pkt->pts;
    if (s->n_recent == 2 * REPAIR_WINDOW)
        s->n_recent = REPAIR_WINDOW;
}

/* ---- in and out ---- */

static void count_wrapped(struct repair *r, const AVStream *st, const AVPacket *pkt)
{
    int64_t t = pkt->dts != AV_NOPTS_VALUE ? pkt->dts : pkt->pts;
    if (r->has_jumps && st->pts_wrap_bits == 33 && t != AV_NOPTS_VALUE &&
        (t < 0 || t >= (int64_t)1 << 33))
        r->counts.wrapped++;
}

/* dts, from here on always set, and the shift of both. */
static void place(struct repair *r, struct stream *s, AVPacket *pkt)
{
    bool has_pts = pkt->pts != AV_NOPTS_VALUE, has_dts = pkt->dts != AV_NOPTS_VALUE;
    int64_t duration = frame_ticks(r, s, pkt);
    if (has_pts || has_dts) {
        int64_t at = has_dts ? pkt->dts : pkt->pts;
        if (r->has_jumps && s->is_timed)
            follow_jump(r, s, at);
        int64_t shift = to_ticks(s, r->has_jumps && !s->is_timed ? r->shift : s->shift);
        pkt->pts += has_pts ? shift : 0;
        pkt->dts += has_dts ? shift : 0;
        s->next = at + shift + duration;
    } else {
        r->counts.is_stateful |= s->is_video;
        pkt->dts = s->has_position ? s->next : 0;
        s->next = pkt->dts + duration;
    }
    s->has_position = true;
    s->duration = duration;
    if (pkt->pts == AV_NOPTS_VALUE && (s->depth == 0 || !s->is_video)) {
        pkt->pts = pkt->dts;
        count_missing(r, s);
    }
}

static void hold(struct repair *r, struct stream *s, AVPacket *pkt)
{
    struct held *h = &s->held[s->n_held++];
    *h = (struct held){.packet = pkt};
    if (pkt->pts == AV_NOPTS_VALUE && !s->is_reordering)
        s->is_reordering = true;
    if (!s->is_reordering)
        return;
    if (!s->parser && !s->codec)
        start_reordering(r, s, pkt->stream_index);
    h->order = output_order(s, pkt);
    h->is_waiting = true;
    s->n_waiting++;
    int64_t now = pkt->dts != AV_NOPTS_VALUE ? pkt->dts : pkt->pts;
    while (s->n_waiting > s->depth || s->n_held == REPAIR_WINDOW) {
        if (s->n_waiting == 0)
            break;
        release_first(r, s, now);
    }
}

static void finish(struct repair *r)
{
    for (unsigned i = 0; i < r->n_streams; i++) {
        struct stream *s = &r->streams[i];
        for (int64_t t = s->next; s->n_waiting > 0; t += s->duration)
            release_first(r, s, t);
    }
}

void repair_push(struct repair *r, AVPacket *pkt)
{
    if (!pkt) {
        finish(r);
        return;
    }
    struct stream *s = stream_of(r, pkt->stream_index);
    AVPacket *own = av_packet_alloc();
    if (!own)
        abort(); /* as xcalloc does */
    av_packet_move_ref(own, pkt);
    count_wrapped(r, r->format->streams[own->stream_index], own);
    place(r, s, own);
    hold(r, s, own);
}

bool repair_pull(struct repair *r, AVPacket *ret)
{
    for (unsigned i = 0; i < r->n_streams; i++) {
        struct stream *s = &r->streams[i];
        if (s->n_held == 0 || s->held[0].is_waiting)
            continue;
        av_packet_move_ref(ret, s->held[0].packet);
        av_packet_free(&s->held[0].packet);
        s->n_held--;
        memmove(s->held, s->held + 1, (size_t)s->n_held * sizeof *s->held);
        if (s->is_video && ret->pts != AV_NOPTS_VALUE)
            nudge(r, s, ret);
        return true;
    }
    return false;
}
