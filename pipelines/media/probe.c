/*
 * Three steps: choose the streams, decode their heads (head.h), read the whole source once.
 *
 * The one read counts frames and keyframes, finds the rate (cadence.h), the real ends and, for each
 * border k*D from the origin, the keyframe where a chunk starting there begins to decode. Packets
 * come in decode order and pass a small sorted window to get into presentation order.
 *
 * A border needs the origin, which is the earliest start of all tracks: known from the heads, since
 * what starts late cannot be earliest. Should a track that gave no head prove to start earlier, the
 * read is done once more.
 *
 * What counts as a frame: packets flagged AV_PKT_FLAG_DISCARD (before an edit list's start) are
 * decoded but not shown, so they only serve as keyframes to start from; pictures shown before the
 * first one that the decoder gives out (the leading pictures of a stream cut at an open GOP) cannot
 * be decoded and do not exist; VP8's alternate reference frames are never shown.
 */
#include "pipelines/media/probe.h"

#include <libavcodec/avcodec.h>
#include <libavutil/display.h>
#include <libavutil/mastering_display_metadata.h>
#include <libavutil/pixdesc.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/cadence.h"
#include "pipelines/media/compat.h"
#include "pipelines/media/head.h"
#include "pipelines/media/repair.h"

enum { WINDOW = 32, PROGRESS_PACKETS = 256, NITS_MAX = 10000 };

struct picture {
    int64_t pts, duration;
    bool is_key, is_hidden; /* hidden: decoded, never shown */
};

struct track { /* audio, while measuring */
    int64_t start, end;
    bool has_start, is_head_start;
};

struct probe {
    struct input *in;
    const struct limits *limits;
    struct rational segment;
    void (*progress)(void *arg, int64_t bytes);
    void *arg;
    struct source *s;
    struct head *heads; /* the video's first, where there is one */
    size_t n_heads;
    struct track *tracks; /* one for each of s->audio */
    /* Video measuring. */
    int64_t origin; /* in ticks of the video; of s->origin_base for audio only */
    struct cadence cadence;
    struct picture window[WINDOW];
    int n_window;
    int64_t last_duration;
    int64_t last_key_pts; /* in decode order, for leading pictures */
    bool has_key;
    int64_t border_key, since_key; /* in presentation order */
    bool has_border_key, is_first_key, is_disordered;
};

static struct rational from_av(AVRational r)
{
    return r.num && r.den ? rational_make(r.num, r.den) : (struct rational){0, 1};
}

__attribute__((format(printf, 2, 3))) static void note(struct source *s, const char *fmt, ...)
{
    enum { NOTES_MAX = 100 };
    if (s->n_notes == NOTES_MAX)
        return;
    struct strbuf b = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vprintf(&b, fmt, ap);
    va_end(ap);
    s->notes = xrealloc_array(s->notes, s->n_notes + 1, sizeof *s->notes);
    s->notes[s->n_notes++] = strbuf_take(&b);
}

static AVStream *stream_at(const struct probe *p, int index)
{
    return input_format(p->in)->streams[index];
}

/* ---- choosing streams ---- */

static bool is_picture(const AVStream *st)
{
    return st->disposition & AV_DISPOSITION_ATTACHED_PIC;
}

/* The larger is preferred, but a stream marked as default before all. */
static int64_t video_rank(const AVStream *st)
{
    int64_t pixels = (int64_t)st->codecpar->width * st->codecpar->height;
    return pixels + (st->disposition & AV_DISPOSITION_DEFAULT ? INT64_MAX / 2 : 0);
}

static int choose_video(const AVFormatContext *f)
{
    int best = -1;
    for (unsigned i = 0; i < f->nb_streams; i++) {
        const AVStream *st = f->streams[i];
        if (st->codecpar->codec_type == AVMEDIA_TYPE_VIDEO && !is_picture(st) &&
            (best < 0 || video_rank(st) > video_rank(f->streams[best])))
            best = (int)i;
    }
    return best;
}

static bool is_in_program(const AVProgram *program, int stream)
{
    for (unsigned i = 0; i < program->nb_stream_indexes; i++)
        if ((int)program->stream_index[i] == stream)
            return true;
    return false;
}

static void choose_streams(struct probe *p)
{
    AVFormatContext *f = input_format(p->in);
    p->heads = xcalloc(f->nb_streams, sizeof *p->heads);
    int video = choose_video(f);
    if (video >= 0)
        p->heads[p->n_heads++].stream = video;
    AVProgram *program = video < 0 ? NULL : av_find_program_from_stream(f, NULL, video);
    for (unsigned i = 0; i < f->nb_streams; i++) {
        AVStream *st = f->streams[i];
        enum AVMediaType type = st->codecpar->codec_type;
        const char *name = av_get_media_type_string(type);
        bool is_ours = !program || is_in_program(program, (int)i);
        st->discard = AVDISCARD_ALL;
        if (type == AVMEDIA_TYPE_AUDIO && is_ours)
            p->heads[p->n_heads++].stream = (int)i;
        else if ((int)i != video)
            note(p->s, "%s stream %u (%s) is left out%s", name ? name : "unknown", i,
                 avcodec_get_name(st->codecpar->codec_id),
                 is_picture(st)               ? ": an attached picture"
                 : !is_ours                   ? ": it belongs to another program"
                 : type == AVMEDIA_TYPE_VIDEO ? ": one video stream is used"
                                              : "");
    }
    for (size_t i = 0; i < p->n_heads; i++)
        f->streams[p->heads[i].stream]->discard = AVDISCARD_DEFAULT;
}

/* ---- what the heads say ---- */

/* The display matrix as "mirror, then turn clockwise". */
static void describe_turn(struct probe *p, const AVStream *st, struct source_video *v)
{
    size_t size;
    const uint8_t *bytes = compat_stream_side_data(st, AV_PKT_DATA_DISPLAYMATRIX, &size);
    int32_t m[9];
    if (!bytes || size < sizeof m)
        return;
    memcpy(m, bytes, sizeof m);
    if ((double)m[0] * m[4] - (double)m[1] * m[3] < 0) { /* undo a mirroring of the input */
        v->is_flipped = true;
        m[0] = -m[0];
        m[1] = -m[1];
    }
    double degrees = -av_display_rotation_get(m);
    if (isnan(degrees))
        return;
    long quarters = lrint(degrees / 90);
    v->rotation = (int)((quarters % 4 + 4) % 4 * 90);
    if (fabs(degrees - 90.0 * (double)quarters) > 1)
        note(p->s, "a rotation of %.1f degrees is taken as %d", degrees, v->rotation);
}

static void describe_aspect(struct probe *p, AVStream *st, AVFrame *frame, struct source_video *v)
{
    enum { MOST = 16 };
    AVRational sar = av_guess_sample_aspect_ratio(input_format(p->in), st, frame);
    v->sample_aspect = (struct rational){0, 1};
    if (sar.num <= 0 || sar.den <= 0 || sar.num == sar.den)
        return;
    if (sar.num > (int64_t)MOST * sar.den || sar.den > (int64_t)MOST * sar.num)
        note(p->s, "a sample aspect of %d:%d is not believed", sar.num, sar.den);
    else
        v->sample_aspect = from_av(sar);
}

/* The frame's value, else the container's; NULL: unspecified. */
static char *color_name(int in_frame, int in_container, int unspecified, const char *(*name)(int))
{
    int value = in_frame != unspecified ? in_frame : in_container;
    return value == unspecified ? NULL : xstrdup(name(value));
}

static const char *primaries_name(int v)
{
    return av_color_primaries_name(v);
}
static const char *transfer_name(int v)
{
    return av_color_transfer_name(v);
}
static const char *space_name(int v)
{
    return av_color_space_name(v);
}
static const char *range_name(int v)
{
    return av_color_range_name(v);
}

static void describe_color(const AVFrame *f, const AVCodecParameters *par, struct source_video *v)
{
    v->color_primaries =
        color_name(f->color_primaries, par->color_primaries, AVCOL_PRI_UNSPECIFIED, primaries_name);
    v->color_transfer =
        color_name(f->color_trc, par->color_trc, AVCOL_TRC_UNSPECIFIED, transfer_name);
    v->color_space = color_name(f->colorspace, par->color_space, AVCOL_SPC_UNSPECIFIED, space_name);
    v->color_range =
        color_name(f->color_range, par->color_range, AVCOL_RANGE_UNSPECIFIED, range_name);
}

/* HDR's static metadata, of the first frame, else of the container. */
static void describe_light(const AVStream *st, const AVFrame *f, struct source_video *v)
{
    const AVFrameSideData *sd = av_frame_get_side_data(f, AV_FRAME_DATA_CONTENT_LIGHT_LEVEL);
    const AVContentLightMetadata *light = sd ? (const void *)sd->data : NULL;
    if (!light)
        light = (const void *)compat_stream_side_data(st, AV_PKT_DATA_CONTENT_LIGHT_LEVEL, NULL);
    sd = av_frame_get_side_data(f, AV_FRAME_DATA_MASTERING_DISPLAY_METADATA);
    const AVMasteringDisplayMetadata *screen = sd ? (const void *)sd->data : NULL;
    if (!screen)
        screen =
            (const void *)compat_stream_side_data(st, AV_PKT_DATA_MASTERING_DISPLAY_METADATA, NULL);
    v->max_cll = light && light->MaxCLL <= NITS_MAX ? (int)light->MaxCLL : 0;
    if (screen && screen->has_luminance && screen->max_luminance.den > 0 &&
        av_cmp_q(screen->max_luminance, (AVRational){NITS_MAX, 1}) <= 0)
        v->mastering_nits = (int)lrint(fmax(av_q2d(screen->max_luminance), 0));
}

static int describe_video(struct probe *p, struct head *h, struct err *e)
{
    AVStream *st = stream_at(p, h->stream);
    const AVCodecParameters *par = st->codecpar;
    if (!h->first)
        return err_set(e, ERR_INPUT, "video stream %d (%s) cannot be decoded: %s", h->stream,
                       avcodec_get_name(par->codec_id),
                       h->failure ? h->failure : "no packet of it was found");
    struct source_video *v = p->s->video = xcalloc(1, sizeof *v);
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(h->first->format);
    v->stream = h->stream;
    v->codec = xstrdup(avcodec_get_name(par->codec_id));
    v->profile = xstrdup(avcodec_profile_name(par->codec_id, par->profile));
    v->width = h->first->width;
    v->height = h->first->height;
    v->time_base = from_av(st->time_base);
    v->pix_fmt = xstrdup(d ? d->name : NULL);
    v->bit_depth = d ? d->comp[0].depth : 0;
    v->is_interlaced = h->is_interlaced;
    v->is_bottom_first = h->is_bottom_first;
    v->start = h->start;
    describe_turn(p, st, v);
    describe_aspect(p, st, h->first, v);
    describe_color(h->first, par, v);
    describe_light(st, h->first, v);
    return 0;
}

static char *metadata(const AVStream *st, const char *key)
{
    enum { MOST = 200 };
    const AVDictionaryEntry *x = av_dict_get(st->metadata, key, NULL, 0);
    if (!x || !x->value[0] || !strcmp(x->value, "und"))
        return NULL;
    return strndup(x->value, MOST);
}

/* h->first is NULL for a track that starts after the head's bounds; it is measured then. */
static void describe_audio(struct probe *p, const struct head *h)
{
    struct source *s = p->s;
    const AVStream *st = stream_at(p, h->stream);
    const AVCodecParameters *par = st->codecpar;
    int sample_rate = h->first ? h->first->sample_rate : par->sample_rate;
    const AVChannelLayout *layout = h->first ? &h->first->ch_layout : &par->ch_layout;
    if (h->failure || sample_rate <= 0 || layout->nb_channels <= 0) {
        note(s, "audio stream %d (%s) is left out: %s", h->stream, avcodec_get_name(par->codec_id),
             h->failure ? h->failure : "it holds no sound");
        stream_at(p, h->stream)->discard = AVDISCARD_ALL;
        return;
    }
    struct source_audio *a = &s->audio[s->n_audio];
    struct track *t = &p->tracks[s->n_audio++];
    char name[64] = "";
    av_channel_layout_describe(layout, name, sizeof name);
    *a = (struct source_audio){.stream = h->stream,
                               .codec = xstrdup(avcodec_get_name(par->codec_id)),
                               .sample_rate = sample_rate,
                               .channels = layout->nb_channels,
                               .layout = xstrdup(name),
                               .language = metadata(st, "language"),
                               .title = metadata(st, "title"),
                               .is_default = st->disposition & AV_DISPOSITION_DEFAULT,
                               .time_base = from_av(st->time_base)};
    t->is_head_start = h->first && h->start != AV_NOPTS_VALUE;
    t->start = a->start = h->start;
}

static int describe(struct probe *p, struct err *e)
{
    const AVFormatContext *f = input_format(p->in);
    struct source *s = p->s;
    bool has_video =
        p->n_heads && stream_at(p, p->heads[0].stream)->codecpar->codec_type == AVMEDIA_TYPE_VIDEO;
    s->container = xstrdup(f->iformat->name);
    s->size_bytes = input_size(p->in);
    if (f->duration != AV_NOPTS_VALUE && f->duration > 0)
        s->claimed_duration = rational_make(f->duration, AV_TIME_BASE);
    else
        s->claimed_duration = (struct rational){0, 1};
    if (has_video) {
        int r = describe_video(p, &p->heads[0], e);
        if (r < 0)
            return r;
    }
    s->audio = xcalloc(p->n_heads, sizeof *s->audio);
    p->tracks = xcalloc(p->n_heads, sizeof *p->tracks);
    for (size_t i = has_video; i < p->n_heads; i++)
        describe_audio(p, &p->heads[i]);
    if (!has_video && s->n_audio == 0)
        return err_set(e, ERR_INPUT, "the source has no stream that can be decoded: %s",
                       s->n_notes ? s->notes[s->n_notes - 1] : "it holds no sound");
    return 0;
}

/* ---- the origin ---- */

/* The earliest start of all tracks, on a tick of the base. */
static int64_t find_origin(const struct probe *p, bool is_final)
{
    const struct source *s = p->s;
    int64_t origin = s->video ? s->video->start : INT64_MAX;
    for (size_t i = 0; i < s->n_audio; i++) {
        if (!is_final && !p->tracks[i].is_head_start)
            continue;
        int64_t start =
            rational_rescale(s->audio[i].start, s->audio[i].time_base, s->origin_base, ROUND_FLOOR);
        if (start < origin)
            origin = start;
    }
    return origin == INT64_MAX ? 0 : origin;
}

/* ---- measuring video ---- */

static int64_t border_position(const struct probe *p, int64_t k)
{
    return p->origin + rational_rescale(k, p->segment, p->s->video->time_base, ROUND_FLOOR);
}

/* next: the first picture at or after the border. */
static void add_border(struct probe *p, const struct picture *next)
{
    struct source_video *v = p->s->video;
    if ((v->n_borders & (v->n_borders - 1)) == 0) /* grow at powers of two */
        v->borders =
            xrealloc_array(v->borders, v->n_borders ? v->n_borders * 2 : 1, sizeof *v->borders);
    int64_t key = p->has_border_key ? p->border_key : next->pts;
    v->borders[v->n_borders++] =
        (struct source_border){.key_pts = key,
                               .frames = p->has_border_key ? p->since_key : 0,
                               .next_key = next->is_key ? next->pts : key};
}

/* One picture in presentation order. */
static void measure_picture(struct probe *p, const struct picture *x)
{
    struct source_video *v = p->s->video;
    bool is_shown = !x->is_hidden;
    if (is_shown && p->cadence.frames > 0 && x->pts <= p->cadence.last) {
        p->is_disordered = true; /* reordered beyond the window: no rate, no second chunk */
        v->frames++;
        return;
    }
    while (is_shown && border_position(p, (int64_t)v->n_borders + 1) < x->pts)
        add_border(p, x);
    if (x->is_key) {
        p->border_key = x->pts;
        p->has_border_key = true;
        p->since_key = 0;
    }
    if (is_shown && border_position(p, (int64_t)v->n_borders + 1) == x->pts)
        add_border(p, x);
    p->since_key++;
    if (!is_shown)
        return;
    if (p->cadence.frames == 0) {
        v->start = x->pts;
        p->is_first_key = p->has_border_key;
    }
    cadence_add(&p->cadence, x->pts);
    v->frames++;
    p->last_duration = x->duration;
}

static void window_pop(struct probe *p)
{
    struct picture first = p->window[0];
    memmove(p->window, p->window + 1, (size_t)--p->n_window * sizeof *p->window);
    measure_picture(p, &first);
}

static void window_push(struct probe *p, struct picture x)
{
    if (p->n_window == WINDOW)
        window_pop(p);
    int at = p->n_window++;
    for (; at > 0 && p->window[at - 1].pts > x.pts; at--)
        p->window[at] = p->window[at - 1];
    p->window[at] = x;
}

static bool is_never_shown(const struct probe *p, const AVPacket *pkt)
{
    enum AVCodecID id = stream_at(p, pkt->stream_index)->codecpar->codec_id;
    return id == AV_CODEC_ID_VP8 && pkt->size > 0 && !(pkt->data[0] & 0x10);
}

static int check_length(const struct probe *p, int64_t ticks, struct rational time_base,
                        struct err *e)
{
    if (rational_rescale(ticks, time_base, (struct rational){1, 1}, ROUND_FLOOR) <=
        p->limits->max_duration_s)
        return 0;
    return err_set(e, ERR_INPUT,
                   "the source is longer than the limit max_duration_s=%lld; raise it with --limit",
                   (long long)p->limits->max_duration_s);
}

static int measure_video(struct probe *p, const AVPacket *pkt, struct err *e)
{
    struct source_video *v = p->s->video;
    bool is_discarded = pkt->flags & AV_PKT_FLAG_DISCARD, is_key = pkt->flags & AV_PKT_FLAG_KEY;
    if (is_never_shown(p, pkt) || (!is_discarded && pkt->pts < p->heads[0].start))
        return 0;
    if (is_key) {
        p->last_key_pts = pkt->pts;
        p->has_key = true;
    } else if (p->has_key && pkt->pts < p->last_key_pts) {
        v->has_open_gop = true;
    }
    if (v->frames + p->n_window >= p->limits->max_frames)
        return err_set(e, ERR_INPUT,
                       "the source has more frames than the limit max_frames=%lld; raise it with "
                       "--limit",
                       (long long)p->limits->max_frames);
    int r = check_length(p, pkt->pts - p->origin, v->time_base, e);
    window_push(p, (struct picture){.pts = pkt->pts,
                                    .duration = pkt->duration,
                                    .is_key = is_key,
                                    .is_hidden = is_discarded});
    return r;
}

static void finish_video(struct probe *p)
{
    struct source_video *v = p->s->video;
    while (p->n_window > 0)
        window_pop(p);
    struct cadence *c = &p->cadence;
    v->max_interval = c->max_interval;
    v->is_cfr = !p->is_disordered && cadence_rate(c, &v->frame_rate);
    v->is_sequential = input_repairs(p->in)->is_stateful || p->is_disordered || !p->is_first_key;
    if (v->is_cfr) {
        struct rational period = rational_div((struct rational){1, 1}, v->frame_rate);
        v->end = v->start + rational_rescale(v->frames, period, v->time_base, ROUND_NEAREST);
    } else {
        int64_t average = c->frames > 1 ? (c->last - c->first) / (c->frames - 1) : 0;
        int64_t last = p->last_duration > 0 ? p->last_duration : average;
        v->end = c->last + (last > 0 ? last : 1);
        v->frame_rate = rational_div(rational_make(v->frames, v->end - v->start), v->time_base);
    }
    if (v->end <= c->last)
        v->end = c->last + 1;
    if (v->max_interval == 0)
        v->max_interval = v->end - v->start;
}

/* ---- measuring audio ---- */

/* Samples that libavcodec will drop at the packet's start and end. */
static void trimmed_samples(const AVPacket *pkt, int64_t *ret_start, int64_t *ret_end)
{
    size_t size;
    const uint8_t *sd = av_packet_get_side_data(pkt, AV_PKT_DATA_SKIP_SAMPLES, &size);
    *ret_start = *ret_end = 0;
    if (!sd || size < 8)
        return;
    uint32_t v[2];
    for (int i = 0; i < 2; i++)
        v[i] = (uint32_t)sd[4 * i] | (uint32_t)sd[4 * i + 1] << 8 | (uint32_t)sd[4 * i + 2] << 16 |
               (uint32_t)sd[4 * i + 3] << 24;
    *ret_start = v[0];
    *ret_end = v[1];
}

static int measure_audio(struct probe *p, size_t index, const AVPacket *pkt, struct err *e)
{
    struct source_audio *a = &p->s->audio[index];
    struct track *t = &p->tracks[index];
    if (pkt->flags & AV_PKT_FLAG_DISCARD)
        return 0;
    struct rational sample = {1, a->sample_rate};
    int64_t skip, padding, duration = pkt->duration;
    trimmed_samples(pkt, &skip, &padding);
    if (duration <= 0)
        duration = rational_rescale(
            av_get_audio_frame_duration2(stream_at(p, a->stream)->codecpar, pkt->size), sample,
            a->time_base, ROUND_NEAREST);
    int64_t start = pkt->pts + rational_rescale(skip, sample, a->time_base, ROUND_NEAREST);
    int64_t end =
        pkt->pts + duration - rational_rescale(padding, sample, a->time_base, ROUND_NEAREST);
    if (!t->is_head_start && (!t->has_start || start < t->start))
        t->start = start;
    if (!t->has_start || end > t->end)
        t->end = end;
    t->has_start = true;
    return check_length(p, t->end - t->start, a->time_base, e);
}

/* A track whose packets never came (or only discarded ones) is none. */
static void finish_audio(struct probe *p)
{
    struct source *s = p->s;
    size_t kept = 0;
    for (size_t i = 0; i < s->n_audio; i++) {
        struct source_audio a = s->audio[i];
        if (!p->tracks[i].has_start || p->tracks[i].end <= p->tracks[i].start) {
            note(s, "audio stream %d (%s) is left out: it holds no sound", a.stream, a.codec);
            free(a.codec);
            free(a.layout);
            free(a.language);
            free(a.title);
            continue;
        }
        a.start = p->tracks[i].start;
        a.end = p->tracks[i].end;
        p->tracks[kept] = p->tracks[i];
        s->audio[kept++] = a;
    }
    s->n_audio = kept;
}

/* ---- the one read ---- */

static void start_measuring(struct probe *p)
{
    struct source_video *v = p->s->video;
    for (size_t i = 0; i < p->s->n_audio; i++)
        p->tracks[i].has_start = false;
    if (!v)
        return;
    AVStream *st = stream_at(p, v->stream);
    struct rational hint = from_av(input_frame_rate(p->in, v->stream));
    struct rational coded = from_av(p->heads[0].decoder->framerate);
    if (rational_is_set(coded) &&
        rational_cmp(hint, rational_mul(coded, (struct rational){2, 1})) == 0)
        hint = coded; /* of a single frame libavformat has counted the fields */
    struct rational hints[] = {hint, from_av(st->r_frame_rate), from_av(st->avg_frame_rate)};
    cadence_init(&p->cadence, v->time_base, hints, 3);
    p->n_window = 0;
    p->has_key = p->has_border_key = p->is_disordered = p->is_first_key = false;
    p->since_key = 0;
    v->frames = 0;
    v->n_borders = 0;
    v->border_segment = p->segment;
}

static int measure_packet(struct probe *p, const AVPacket *pkt, struct err *e)
{
    if (p->s->video && pkt->stream_index == p->s->video->stream)
        return measure_video(p, pkt, e);
    for (size_t i = 0; i < p->s->n_audio; i++)
        if (pkt->stream_index == p->s->audio[i].stream)
            return measure_audio(p, i, pkt, e);
    return 0;
}

static int measure(struct probe *p, struct err *e)
{
    cleanup(av_packet_free) AVPacket *pkt = av_packet_alloc();
    int r = pkt ? input_seek(p->in, p->heads[0].stream, INT64_MIN, e)
                : err_set(e, ERR_RESOURCE, "read the source: out of memory");
    start_measuring(p);
    for (int64_t n = 1; r == 0 && (r = input_read(p->in, pkt, e)) == 0; n++) {
        r = measure_packet(p, pkt, e);
        av_packet_unref(pkt);
        if (p->progress && n % PROGRESS_PACKETS == 0)
            p->progress(p->arg, input_position(p->in));
    }
    if (r != AVERROR_EOF)
        return r;
    if (p->s->video)
        finish_video(p);
    return 0;
}

static void finish_source(struct probe *p)
{
    struct source *s = p->s;
    struct rational length = {0, 1};
    if (s->video)
        length = rational_mul((struct rational){s->video->end - s->origin, 1}, s->origin_base);
    for (size_t i = 0; i < s->n_audio; i++) {
        int64_t end =
            rational_rescale(s->audio[i].end, s->audio[i].time_base, s->origin_base, ROUND_CEIL);
        struct rational l = rational_mul((struct rational){end - s->origin, 1}, s->origin_base);
        if (rational_cmp(l, length) > 0)
            length = l;
    }
    s->duration = length;
    double claimed = rational_to_double(s->claimed_duration), real = rational_to_double(length);
    if (claimed > 0 && fabs(claimed - real) > 1 + real / 20)
        note(s, "the header claims %.1f s, measured are %.1f s", claimed, real);
    const struct repair_counts *c = input_repairs(p->in);
    s->repaired_missing = c->missing;
    s->repaired_wrapped = c->wrapped;
    s->repaired_jumps = c->jumps;
    s->repaired_duplicates = c->duplicates;
    s->truncated_reason = xstrdup(input_truncation(p->in));
    s->is_truncated = s->truncated_reason != NULL;
}

static int run(struct probe *p, struct err *e)
{
    int r = input_select(p->in, INPUT_ALL, e);
    if (r < 0)
        return r;
    choose_streams(p);
    if (p->n_heads == 0)
        return err_set(e, ERR_INPUT, "the source has neither video nor audio");
    if ((r = head_read(p->in, p->limits, p->heads, p->n_heads, e)) < 0 || (r = describe(p, e)) < 0)
        return r;
    struct source *s = p->s;
    s->origin_base = s->video ? s->video->time_base : s->audio[0].time_base;
    p->origin = find_origin(p, false);
    for (int pass = 0; pass < 2; pass++) {
        if ((r = measure(p, e)) < 0)
            return r;
        finish_audio(p);
        s->origin = find_origin(p, true);
        if (!s->video || s->origin == p->origin)
            break;
        p->origin = s->origin;
    }
    if (s->video ? s->video->frames == 0 : s->n_audio == 0)
        return err_set(e, ERR_INPUT, "the source has no %s", s->video ? "frame" : "sound");
    finish_source(p);
    return 0;
}

int probe_source(struct input *in, const struct limits *limits, struct rational segment,
                 void (*progress)(void *arg, int64_t bytes), void *arg, struct source **ret,
                 struct err *e)
{
    struct probe p = {.in = in,
                      .limits = limits,
                      .segment = segment,
                      .progress = progress,
                      .arg = arg,
                      .s = xcalloc(1, sizeof *p.s)};
    int r = run(&p, e);
    for (size_t i = 0; i < p.n_heads; i++)
        head_clear(&p.heads[i]);
    free(p.heads);
    free(p.tracks);
    if (r < 0)
        bind_free(&source_type, &p.s);
    *ret = p.s;
    return r;
}
