/* Reading test clips and what was made of them: frame numbers, pulses, clicks. */
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/compat.h"
#include "tests/support/clip.h"
#include "tests/support/clip_sound.h"

struct reader {
    AVFormatContext *in;
    AVCodecContext *decoder;
    AVStream *stream;
    AVPacket *packet;
    AVFrame *frame;
    bool is_draining;
};

static int fail(struct err *e, const char *path, int averror)
{
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(averror, text, sizeof text);
    return err_set(e, ERR_BUG, "clip: read %s: %s", path, text);
}

static void reader_free(struct reader *r)
{
    avcodec_free_context(&r->decoder);
    avformat_close_input(&r->in);
    av_packet_free(&r->packet);
    av_frame_free(&r->frame);
}

static AVStream *find_stream(AVFormatContext *in, enum AVMediaType type, int index)
{
    AVStream *found = NULL;
    for (unsigned i = 0; i < in->nb_streams; i++) {
        AVStream *st = in->streams[i];
        bool is_wanted = st->codecpar->codec_type == type &&
                         !(st->disposition & AV_DISPOSITION_ATTACHED_PIC) && index-- == 0;
        st->discard = is_wanted ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
        if (is_wanted)
            found = st;
    }
    return found;
}

static int reader_open(struct reader *r, const char *path, enum AVMediaType type, int index)
{
    AVDictionary *options = NULL;
    av_dict_set(&options, "allowed_extensions", "ALL", 0);
    int rc = avformat_open_input(&r->in, path, NULL, &options);
    av_dict_free(&options);
    if (rc < 0 || (rc = avformat_find_stream_info(r->in, NULL)) < 0)
        return rc;
    if (!(r->stream = find_stream(r->in, type, index)))
        return AVERROR_STREAM_NOT_FOUND;
    const AVCodec *codec = avcodec_find_decoder(r->stream->codecpar->codec_id);
    if (!codec)
        return AVERROR_DECODER_NOT_FOUND;
    r->decoder = avcodec_alloc_context3(codec);
    r->packet = av_packet_alloc();
    r->frame = av_frame_alloc();
    if (!r->decoder || !r->packet || !r->frame)
        return AVERROR(ENOMEM);
    if ((rc = avcodec_parameters_to_context(r->decoder, r->stream->codecpar)) < 0)
        return rc;
    r->decoder->pkt_timebase = r->stream->time_base;
    r->decoder->thread_count = 2;
    return avcodec_open2(r->decoder, codec, NULL);
}

/* The next frame in r->frame: 0, AVERROR_EOF or an error. */
static int reader_next(struct reader *r)
{
    for (;;) {
        int rc = avcodec_receive_frame(r->decoder, r->frame);
        if (rc != AVERROR(EAGAIN) || r->is_draining)
            return rc;
        rc = av_read_frame(r->in, r->packet);
        if (rc == AVERROR_EOF) {
            r->is_draining = true;
            rc = avcodec_send_packet(r->decoder, NULL);
        } else if (rc >= 0) {
            if (r->packet->stream_index == r->stream->index)
                rc = avcodec_send_packet(r->decoder, r->packet);
            av_packet_unref(r->packet);
        }
        if (rc < 0 && rc != AVERROR(EAGAIN) && rc != AVERROR_INVALIDDATA)
            return rc;
    }
}

static int stream_rotation(const AVStream *st)
{
    size_t size;
    const uint8_t *m = compat_stream_side_data(st, AV_PKT_DATA_DISPLAYMATRIX, &size);
    if (!m || size < 9 * sizeof(int32_t))
        return 0;
    int r = (int)lrint(-av_display_rotation_get((const int32_t *)(const void *)m));
    return (r % 360 + 360) % 360;
}

int64_t clip_read_video(const char *path, int index,
                        void (*frame)(void *arg, const struct clip_frame *f), void *arg,
                        struct err *e)
{
    struct reader r = {0};
    int64_t n = 0;
    int rc = reader_open(&r, path, AVMEDIA_TYPE_VIDEO, index);
    int rotation = rc < 0 ? 0 : stream_rotation(r.stream);
    while (rc >= 0 && (rc = reader_next(&r)) >= 0) {
        struct clip_frame f = {.pts = r.frame->best_effort_timestamp,
                               .time_base = r.stream->time_base,
                               .number = clip_read_turned(r.frame, rotation),
                               .is_key = compat_frame_is_key(r.frame),
                               .type = av_get_picture_type_char(r.frame->pict_type),
                               .width = r.frame->width,
                               .height = r.frame->height};
        frame(arg, &f);
        n++;
    }
    reader_free(&r);
    return rc == AVERROR_EOF ? n : fail(e, path, rc);
}

/* ---- audio ---- */

double clip_sample(int64_t position, int sample_rate, double hz)
{
    double t = (double)position / sample_rate;
    double v = CLIP_SINE_AMPLITUDE * cos(2 * M_PI * hz * t);
    double off = t - floor(t) - 0.5; /* from the nearest half second */
    if (fabs(off) < CLIP_PULSE_SECONDS / 2)
        v += CLIP_PULSE_AMPLITUDE * (0.5 + 0.5 * cos(2 * M_PI * off / CLIP_PULSE_SECONDS));
    return v;
}

struct samples { /* the first channel, whole: test clips are short */
    float *v;
    size_t n, cap;
};

static void samples_add(struct samples *s, const AVFrame *f)
{
    size_t need = s->n + (size_t)f->nb_samples;
    if (need > s->cap) {
        s->cap = need * 2;
        s->v = xrealloc_array(s->v, s->cap, sizeof *s->v);
    }
    bool is_planar = av_sample_fmt_is_planar(f->format);
    int step = is_planar ? 1 : f->ch_layout.nb_channels;
    for (int i = 0; i < f->nb_samples; i++) {
        const void *p = f->extended_data[0];
        double v = 0;
        switch (av_get_packed_sample_fmt(f->format)) {
        case AV_SAMPLE_FMT_FLT:
            v = ((const float *)p)[i * step];
            break;
        case AV_SAMPLE_FMT_DBL:
            v = ((const double *)p)[i * step];
            break;
        case AV_SAMPLE_FMT_S16:
            v = ((const int16_t *)p)[i * step] / 32768.0;
            break;
        case AV_SAMPLE_FMT_S32:
            v = ((const int32_t *)p)[i * step] / 2147483648.0;
            break;
        default:
            v = (((const uint8_t *)p)[i * step] - 128) / 128.0;
        }
        s->v[s->n++] = (float)v;
    }
}

static void find_pulses(const struct samples *s, struct clip_sound *ret)
{
    size_t width = (size_t)(ret->sample_rate * CLIP_PULSE_SECONDS);
    for (size_t i = 0; i < s->n; i++) {
        if (s->v[i] < 0.45)
            continue;
        size_t best = i, end = i + width < s->n ? i + width : s->n;
        for (; i < end; i++)
            if (s->v[i] > s->v[best])
                best = i;
        if (ret->n_pulses < CLIP_PULSES_MAX)
            ret->pulses[ret->n_pulses++] = ret->start + (int64_t)best;
        i += width;
    }
}

static double second_difference(const float *v, size_t i)
{
    return fabs((double)v[i - 1] - 2.0 * v[i] + v[i + 1]);
}

/* A clean sine's second difference is at most A·w²; its frequency is measured by the median. */
static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void find_clicks(const struct samples *s, struct clip_sound *ret)
{
    size_t edge = (size_t)ret->sample_rate / 20, guard = (size_t)ret->sample_rate / 40;
    if (s->n < 3 * edge)
        return;
    double *d = xcalloc(s->n, sizeof *d);
    size_t n = 0;
    int pulse = 0;
    double worst = 0;
    for (size_t i = edge; i + edge < s->n; i++) {
        int64_t at = ret->start + (int64_t)i;
        while (pulse < ret->n_pulses && ret->pulses[pulse] + (int64_t)guard < at)
            pulse++;
        if (pulse < ret->n_pulses && llabs(ret->pulses[pulse] - at) <= (int64_t)guard)
            continue;
        d[n++] = second_difference(s->v, i);
        if (d[n - 1] > worst) {
            worst = d[n - 1];
            ret->roughness_at = (double)at / ret->sample_rate;
        }
    }
    if (n) { /* the median of |sin| is 0.707 of its peak */
        qsort(d, n, sizeof *d, compare_doubles);
        ret->roughness = worst / (d[n / 2] / M_SQRT1_2 + 1e-9);
    }
    free(d);
}

static void note_position(struct clip_sound *ret, const struct samples *s, int64_t position)
{
    int64_t expected = ret->start + (int64_t)s->n;
    if (s->n == 0)
        ret->start = position;
    else if (llabs(position - expected) > ret->sample_rate / 1000)
        ret->gaps++;
}

int clip_read_audio(const char *path, int index, struct clip_sound *ret, struct err *e)
{
    struct reader r = {0};
    struct samples s = {0};
    *ret = (struct clip_sound){0};
    int rc = reader_open(&r, path, AVMEDIA_TYPE_AUDIO, index);
    while (rc >= 0 && (rc = reader_next(&r)) >= 0) {
        ret->sample_rate = r.frame->sample_rate;
        ret->channels = r.frame->ch_layout.nb_channels;
        int64_t pts = r.frame->best_effort_timestamp;
        if (pts != AV_NOPTS_VALUE)
            note_position(
                ret, &s, av_rescale_q(pts, r.stream->time_base, (AVRational){1, ret->sample_rate}));
        samples_add(&s, r.frame);
    }
    ret->samples = (int64_t)s.n;
    if (s.n) {
        find_pulses(&s, ret);
        find_clicks(&s, ret);
    }
    free(s.v);
    reader_free(&r);
    return rc == AVERROR_EOF ? 0 : fail(e, path, rc);
}
