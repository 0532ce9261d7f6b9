#include "pipelines/media/packager.h"

#include <string.h>

#include "common/cleanup.h"
#include "pipelines/media/bitstream.h"
#include "pipelines/media/cmaf.h"
#include "pipelines/media/codec_string.h"
#include "pipelines/media/decode_time.h"
#include "pipelines/media/output.h"
#include "pipelines/media/ts.h"

struct packager {
    struct packager_options opt; /* its strings are borrowed from the plan */
    AVCodecParameters *par;      /* a copy: encoders may be replaced at a keyframe */
    AVRational time_base;
    int64_t delay; /* media time - presentation time */
    struct output_folder folder;
    struct manifest_track track;
    size_t segments_cap;
    /* the segment that is being collected */
    int64_t index;
    AVPacket **packets;
    size_t n, cap;
    int64_t keyframes;
};

static int write_init(struct packager *p, const AVPacket *first, struct err *e)
{
    cleanup(strbuf_free) struct strbuf init = {0};
    int ret = cmaf_write_init(&init, p->par, p->time_base, p->delay, first, p->opt.language, e);
    if (ret < 0)
        return ret;
    p->track.init_bytes = (int64_t)init.len;
    return output_write(&p->folder, "init", "mp4", init.s, init.len, &p->track.init, e);
}

static bool is_video(const struct packager *p)
{
    return p->par->codec_type == AVMEDIA_TYPE_VIDEO;
}

/* Ticks that the encoder's reordering takes at its nominal frame rate. */
static int64_t reorder_delay(const AVCodecContext *encoder)
{
    return av_rescale_q_rnd(encoder->has_b_frames, av_inv_q(encoder->framerate), encoder->time_base,
                            AV_ROUND_UP);
}

int packager_open(const struct packager_options *options, const AVCodecContext *encoder,
                  struct packager **ret, struct err *e)
{
    cleanup(packager_free) struct packager *p = xcalloc(1, sizeof *p);
    p->opt = *options;
    p->time_base = encoder->time_base;
    p->par = avcodec_parameters_alloc();
    if (!p->par || avcodec_parameters_from_context(p->par, encoder) < 0)
        return err_set(e, ERR_RESOURCE, "%s: out of memory", options->rendition);
    p->folder = (struct output_folder){
        .name = options->rendition,
        .scratch_fd = options->scratch_fd,
        .max_bytes = options->max_bytes,
        .events = options->events,
    };
    p->index = -1;
    if (encoder->time_base.num != 1)
        return err_set(e, ERR_BUG, "%s: time base %d/%d cannot be a time scale", options->rendition,
                       encoder->time_base.num, encoder->time_base.den);
    int status = output_make_folder(&p->folder, e);
    if (status < 0)
        return status;
    p->track = (struct manifest_track){
        .rendition = xstrdup(options->rendition),
        .time_base = {1, encoder->time_base.den},
        .priming = is_video(p) ? 0 : encoder->initial_padding,
    };
    p->delay = is_video(p) ? reorder_delay(encoder) : encoder->initial_padding;
    char hash[OUTPUT_HASH_DIGITS + 1];
    output_hash(encoder->extradata, (size_t)encoder->extradata_size, hash);
    p->track.parameter_sets = xstrdup(hash);
    *ret = take(p);
    return 0;
}

static struct manifest_segment *add_segment(struct packager *p)
{
    struct manifest_track *t = &p->track;
    if (t->n_segments == p->segments_cap) {
        p->segments_cap = p->segments_cap ? 2 * p->segments_cap : 16;
        t->segments = xrealloc_array(t->segments, p->segments_cap, sizeof *t->segments);
    }
    t->segments[t->n_segments] = (struct manifest_segment){.index = p->index};
    return &t->segments[t->n_segments++];
}

static void drop_packets(struct packager *p)
{
    while (p->n)
        av_packet_free(&p->packets[--p->n]);
    p->keyframes = 0;
}

/* Gives every packet its decode time, in presentation time less the delay. */
static void schedule(struct packager *p)
{
    cleanup(free_ptr) int64_t *pts = xcalloc(p->n, sizeof *pts);
    cleanup(free_ptr) int64_t *dts = xcalloc(p->n, sizeof *dts);
    for (size_t i = 0; i < p->n; i++)
        pts[i] = p->packets[i]->pts;
    decode_time_schedule(pts, p->n, is_video(p) ? p->delay : 0, dts);
    for (size_t i = 0; i < p->n; i++)
        p->packets[i]->dts = dts[i] - (is_video(p) ? p->delay : 0);
}

static void render_cmaf(struct packager *p, int64_t end, struct strbuf *out)
{
    int64_t lead =
        is_video(p) ? 0 : p->delay; /* the next segment's first dts is its pts, put off */
    cleanup(strbuf_free) struct strbuf payload = {0};
    cleanup(free_ptr) struct cmaf_sample *samples = xcalloc(p->n, sizeof *samples);
    for (size_t i = 0; i < p->n; i++) {
        const AVPacket *pkt = p->packets[i];
        samples[i].pts = pkt->pts + p->delay;
        samples[i].dts = pkt->dts + p->delay;
        samples[i].is_key = pkt->flags & AV_PKT_FLAG_KEY;
        samples[i].size =
            bitstream_append_sample(&payload, p->par->codec_id, pkt->data, (size_t)pkt->size);
    }
    cmaf_write_segment(out, p->index + 1, samples, p->n, end + lead, is_video(p), &payload);
}

/* The packets of one segment must begin with the keyframe that is also first on display (I12). */
static int check_start(const struct packager *p, int64_t end, struct err *e)
{
    const AVPacket *first = p->packets[0];
    if (!(first->flags & AV_PKT_FLAG_KEY))
        return err_set(e, ERR_BUG, "%s: segment %lld does not start with a keyframe",
                       p->opt.rendition, (long long)p->index);
    for (size_t i = 0; i < p->n; i++)
        if (p->packets[i]->pts < first->pts || p->packets[i]->pts >= end)
            return err_set(e, ERR_BUG, "%s: segment %lld: frame at %lld lies outside [%lld, %lld)",
                           p->opt.rendition, (long long)p->index, (long long)p->packets[i]->pts,
                           (long long)first->pts, (long long)end);
    return 0;
}

static int close_segment(struct packager *p, int64_t end, struct err *e)
{
    int ret = check_start(p, end, e);
    if (ret < 0)
        return ret;
    cleanup(strbuf_free) struct strbuf data = {0};
    bool is_ts = p->opt.segments == SEGMENTS_TS;
    schedule(p);
    if (is_ts)
        ret = ts_write_segment(&data, p->par, p->time_base, p->opt.language, p->packets, p->n, e);
    else
        render_cmaf(p, end, &data);
    if (ret < 0)
        return ret;
    struct manifest_segment *s = add_segment(p);
    bool is_primed = p->track.n_segments == 1; /* priming is not heard: it is not counted as time */
    s->start = p->packets[0]->pts + (is_primed ? p->track.priming : 0);
    s->duration = end - s->start;
    s->frames = (int64_t)p->n;
    s->keyframes = p->keyframes;
    s->bytes = (int64_t)data.len;
    p->track.frames += s->frames;
    p->track.keyframes += s->keyframes;
    drop_packets(p);
    char stem[32];
    snprintf(stem, sizeof stem, "%06lld", (long long)p->index);
    return output_write(&p->folder, stem, is_ts ? "ts" : "m4s", data.s, data.len, &s->name, e);
}

int packager_write(struct packager *p, const AVPacket *pkt, int64_t segment, struct err *e)
{
    int ret = 0;
    if (segment < p->index)
        return err_set(e, ERR_BUG, "%s: segment %lld after %lld", p->opt.rendition,
                       (long long)segment, (long long)p->index);
    if (p->index < 0 && p->opt.segments == SEGMENTS_FMP4 && (ret = write_init(p, pkt, e)) < 0)
        return ret;
    if (segment > p->index && p->n && (ret = close_segment(p, pkt->pts, e)) < 0)
        return ret;
    p->index = segment;
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 64;
        p->packets = xrealloc_array(p->packets, p->cap, sizeof *p->packets);
    }
    AVPacket *copy = av_packet_clone(pkt);
    if (!copy)
        return err_set(e, ERR_RESOURCE, "%s: out of memory", p->opt.rendition);
    p->packets[p->n++] = copy;
    p->keyframes += !!(pkt->flags & AV_PKT_FLAG_KEY);
    return 0;
}

int packager_finish(struct packager *p, int64_t end, struct manifest_track *ret, struct err *e)
{
    int status;
    char codecs[64];
    if (p->n && (status = close_segment(p, end, e)) < 0)
        return status;
    if (!p->track.init && p->opt.segments == SEGMENTS_FMP4 && (status = write_init(p, NULL, e)) < 0)
        return status; /* no segment at all: a chunk in which no frame begins */
    if ((status = codec_string_from(p->par, NULL, codecs, sizeof codecs, e)) < 0)
        return status;
    p->track.codecs = xstrdup(codecs);
    p->track.start = p->track.n_segments ? p->track.segments[0].start : end;
    p->track.end = end;
    *ret = p->track;
    p->track = (struct manifest_track){0};
    return 0;
}

static void free_track(struct manifest_track *t)
{
    for (size_t i = 0; i < t->n_segments; i++)
        free(t->segments[i].name);
    free(t->segments);
    free(t->rendition);
    free(t->init);
    free(t->codecs);
    free(t->parameter_sets);
}

void packager_free(struct packager **pp)
{
    struct packager *p = *pp;
    if (!p)
        return;
    drop_packets(p);
    free(p->packets);
    avcodec_parameters_free(&p->par);
    free_track(&p->track);
    free(p);
    *pp = NULL;
}
