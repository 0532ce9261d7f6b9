/*
 * One audio track to one rendition, from start to end: packets -> decoder -> audio_clock (where
 * each sample belongs) -> audio_convert (rate, channels, format) -> audio_encode (frames,
 * segments).
 *
 * The encoder is opened at the first decoded frame, because only that knows where the track really
 * begins. Everything after the clock is a plain run of samples; memory does not grow with the film.
 *
 * Priming of the source (edit lists, LAME's delay, Opus pre-skip) is dropped by libavcodec: with
 * pkt_timebase set it acts on AV_PKT_DATA_SKIP_SAMPLES and AV_PKT_FLAG_DISCARD, and moves the pts
 * of a shortened frame. Demuxers say it only when read from the very start, so the clock also cuts
 * what lies before the track's measured start.
 */
#include <time.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/strbuf.h"
#include "pipelines/media/audio_clock.h"
#include "pipelines/media/audio_convert.h"
#include "pipelines/media/audio_encode.h"
#include "pipelines/media/task.h"

enum { PROGRESS_US = 200000 };

/* A track that ends this much before its measured end, in seconds, was cut off on the way. */
static const struct rational truncation = {1, 10};

struct track {
    struct input *in;
    const struct limits *limits;
    const struct source *source;
    const struct source_audio *from;
    const struct plan *plan;
    const struct plan_audio *to;
    const struct task_events *events;
    int scratch_fd;
    AVCodecContext *decoder;
    AVPacket *pkt;
    AVFrame *frame;
    struct audio_clock clock;
    struct audio_convert *convert; /* NULL until the first frame is decoded */
    struct audio_encode *encode;   /* likewise */
    int64_t frames;                /* decoded */
    int64_t damaged;               /* packets that did not decode */
    int64_t damaged_end;           /* where the last of them ended, ticks */
    bool is_after_loss;
    int64_t started_us, reported_us, cpu_us;
};

static int64_t process_cpu_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static struct rational per_second(int rate)
{
    return (struct rational){1, rate};
}

static int64_t position_of(const struct track *t, int64_t pts, int rate)
{
    if (pts == AV_NOPTS_VALUE)
        return AUDIO_CLOCK_NONE;
    return audio_clock_position(pts, t->from->time_base, t->source->origin, t->source->origin_base,
                                rate);
}

/* Cancellation, the limits on time, and the proof of life; between any two pieces of work. */
static int poll_events(struct track *t, struct err *e)
{
    if (t->events->is_cancelled(t->events->arg))
        return err_set(e, ERR_CANCELLED, "cancelled");
    int64_t now = clock_mono_us();
    if (now - t->started_us > t->limits->max_task_s * 1000000)
        return err_set(e, ERR_INPUT,
                       "takes longer than the limit max_task_s=%lld, raise it with --limit",
                       (long long)t->limits->max_task_s);
    if (now - t->reported_us < PROGRESS_US)
        return 0;
    t->reported_us = now;
    t->events->progress(t->events->arg, t->clock.next,
                        t->encode ? audio_encode_samples(t->encode) : 0);
    return 0;
}

static int check_duration(const struct track *t, struct err *e)
{
    if (t->clock.next / t->clock.rate <= t->limits->max_duration_s)
        return 0;
    return err_set(e, ERR_INPUT,
                   "timestamps go past the limit max_duration_s=%lld, raise it with --limit",
                   (long long)t->limits->max_duration_s);
}

static int open_decoder(struct track *t, struct err *e)
{
    AVFormatContext *format = input_format(t->in);
    if (t->from->stream < 0 || t->from->stream >= (int)format->nb_streams)
        return err_set(e, ERR_INPUT, "the source has no such stream: it changed since the probe");
    const AVStream *stream = format->streams[t->from->stream];
    const AVCodec *codec = avcodec_find_decoder(stream->codecpar->codec_id);
    if (stream->codecpar->codec_type != AVMEDIA_TYPE_AUDIO || !codec)
        return err_set(e, ERR_INPUT, "no decoder for %s",
                       avcodec_get_name(stream->codecpar->codec_id));
    AVCodecContext *d = t->decoder = avcodec_alloc_context3(codec);
    t->pkt = av_packet_alloc();
    t->frame = av_frame_alloc();
    if (!d || !t->pkt || !t->frame || avcodec_parameters_to_context(d, stream->codecpar) < 0)
        return err_set(e, ERR_RESOURCE, "out of memory");
    d->pkt_timebase = stream->time_base;
    d->thread_count = 1;
    if (format->codec_whitelist && !(d->codec_whitelist = av_strdup(format->codec_whitelist)))
        return err_set(e, ERR_RESOURCE, "out of memory");
    int ret = avcodec_open2(d, codec, NULL);
    return ret < 0 ? err_set(e, ERR_INPUT, "open the decoder: %s", av_err2str(ret)) : 0;
}

static int rewind_to_track(struct track *t, struct err *e)
{
    int ret = input_select(t->in, t->from->stream, e);
    return ret < 0 ? ret : input_seek(t->in, t->from->stream, INT64_MIN, e);
}

/* FLAC keeps what the source has: more than 16 bits only where they carry something. */
static bool is_deep_source(const struct track *t)
{
    const AVCodecDescriptor *d = avcodec_descriptor_get(t->decoder->codec_id);
    return d && (d->props & AV_CODEC_PROP_LOSSLESS) &&
           av_get_bytes_per_sample(t->frame->format) > 2;
}

static int sink(void *arg, uint8_t *const *planes, int n, struct err *e)
{
    struct track *t = arg;
    return audio_encode_write(t->encode, planes, n, e);
}

/* At the first frame: the output starts at `start` (at the source's rate). */
static int begin_output(struct track *t, int64_t start, struct err *e)
{
    struct audio_encode_options o = {
        .audio = t->to,
        .segment = t->plan->segment,
        .is_deep = is_deep_source(t),
        .start = rational_rescale(start, per_second(t->clock.rate), per_second(t->to->sample_rate),
                                  ROUND_NEAREST),
        .packager = {.rendition = t->to->name,
                     .segments = t->plan->segments,
                     .scratch_fd = t->scratch_fd,
                     .max_bytes = t->limits->max_output_bytes,
                     .events = t->events,
                     .language = t->to->language},
    };
    struct audio_convert_output out = {.sample_rate = t->to->sample_rate, .sink = sink, .arg = t};
    int ret = audio_encode_format(t->to, o.is_deep, &out.layout, &out.format, e);
    if (ret < 0 || (ret = audio_encode_open(&o, &t->encode, e)) < 0)
        return ret;
    t->convert = audio_convert_new(&out);
    return 0;
}

static int write_silence(struct track *t, int64_t n, struct err *e)
{
    int ret = 0;
    while (n > 0 && ret >= 0 && (ret = poll_events(t, e)) >= 0) {
        int step = (int)FFMIN(n, AUDIO_CONVERT_SILENCE);
        ret = audio_convert_write_silence(t->convert, step, e);
        n -= step;
    }
    return ret;
}

/* The clock must run at the frame's rate before the frame can be placed. */
static int follow_rate(struct track *t, struct err *e)
{
    int rate = t->frame->sample_rate;
    if (rate < 1)
        return err_set(e, ERR_INPUT, "the decoder gave samples without a rate");
    if (!t->clock.rate)
        audio_clock_init(&t->clock, t->from->time_base, rate, position_of(t, t->from->start, rate));
    else if (rate != t->clock.rate)
        audio_clock_set_rate(&t->clock, rate);
    return 0;
}

static int write_frame(struct track *t, const struct audio_place *place, struct err *e)
{
    int ret = 0;
    if (!t->encode)
        ret = begin_output(t, t->clock.next - place->take, e);
    if (ret >= 0 && audio_convert_is_new(t->convert, t->frame))
        ret = audio_convert_begin(t->convert, t->frame, e);
    if (ret >= 0)
        ret = write_silence(t, place->silence, e);
    if (ret >= 0)
        ret = audio_convert_write(t->convert, t->frame, (int)place->skip, (int)place->take, e);
    return ret;
}

static int take_frame(struct track *t, struct err *e)
{
    struct audio_place place;
    int ret = follow_rate(t, e);
    if (ret < 0)
        return ret;
    t->frames++;
    audio_clock_place(&t->clock, position_of(t, t->frame->pts, t->clock.rate), t->frame->nb_samples,
                      t->is_after_loss, &place);
    if (!place.take)
        return 0;
    t->is_after_loss = false;
    if ((ret = check_duration(t, e)) < 0)
        return ret;
    return write_frame(t, &place, e);
}

/* What did not decode stays silent: the next frame's timestamp leaves the gap, and at the very end
 * the packet's own end does, or where that is not told the measured end of the track. */
static void note_damage(struct track *t)
{
    const AVPacket *pkt = t->pkt;
    int64_t end = t->from->end;
    if (pkt->pts != AV_NOPTS_VALUE && pkt->duration > 0 && pkt->pts < end - pkt->duration)
        end = pkt->pts + pkt->duration;
    t->damaged++;
    t->is_after_loss = true;
    t->damaged_end = FFMAX(t->damaged_end, end);
}

/* is_end: flush. */
static int decode(struct track *t, bool is_end, struct err *e)
{
    int ret = avcodec_send_packet(t->decoder, is_end ? NULL : t->pkt);
    while (ret >= 0) {
        ret = avcodec_receive_frame(t->decoder, t->frame);
        if (ret == AVERROR(EAGAIN) || ret == AVERROR_EOF)
            return 0;
        if (ret < 0)
            break;
        int status = take_frame(t, e);
        av_frame_unref(t->frame);
        if (status < 0)
            return status;
    }
    if (ret == AVERROR(ENOMEM))
        return err_set(e, ERR_RESOURCE, "decode: out of memory");
    if (!is_end)
        note_damage(t);
    return 0;
}

static int read_all(struct track *t, struct err *e)
{
    for (;;) {
        int ret = poll_events(t, e);
        if (ret < 0)
            return ret;
        ret = input_read(t->in, t->pkt, e);
        if (ret == AVERROR_EOF)
            return decode(t, true, e);
        if (ret < 0)
            return ret;
        if (t->pkt->stream_index == t->from->stream)
            ret = decode(t, false, e);
        av_packet_unref(t->pkt);
        if (ret < 0)
            return ret;
    }
}

static int fill_damaged_end(struct track *t, struct err *e)
{
    int64_t end = position_of(t, t->damaged_end, t->clock.rate); /* none: AV_NOPTS_VALUE */
    return write_silence(t, audio_clock_fill(&t->clock, end), e);
}

static int run(struct track *t, struct manifest_track *ret, struct err *e)
{
    int status = open_decoder(t, e);
    if (status < 0 || (status = rewind_to_track(t, e)) < 0 || (status = read_all(t, e)) < 0)
        return status;
    if (!t->encode)
        return err_set(e, ERR_INPUT, "nothing in it can be decoded (%lld damaged packets)",
                       (long long)t->damaged);
    if ((status = fill_damaged_end(t, e)) < 0 || (status = audio_convert_end(t->convert, e)) < 0)
        return status;
    log_debug("audio track %s: %lld frames, %lld damaged packets, %lld samples filled, %lld cut",
              t->to->name, (long long)t->frames, (long long)t->damaged, (long long)t->clock.filled,
              (long long)t->clock.cut);
    return audio_encode_finish(t->encode, ret, e);
}

static bool ended_early(const struct track *t)
{
    int64_t end = position_of(t, t->from->end, t->clock.rate);
    int64_t allowed = rational_rescale(1, truncation, per_second(t->clock.rate), ROUND_NEAREST);
    return end != AUDIO_CLOCK_NONE && t->clock.next < end - allowed;
}

static struct manifest *make_manifest(const struct track *t, const struct manifest_track *track)
{
    struct manifest *m = xcalloc(1, sizeof *m);
    m->chunk = -1;
    m->tracks = xcalloc(1, sizeof *m->tracks);
    m->n_tracks = 1;
    m->tracks[0] = *track;
    m->frames_decoded = m->frames_source = t->frames;
    m->damaged = t->damaged;
    m->wall_us = clock_mono_us() - t->started_us;
    m->cpu_us = process_cpu_us() - t->cpu_us;
    m->is_truncated = ended_early(t);
    m->device = xasprintf("cpu %s", t->to->encoder);
    return m;
}

static void close_track(struct track *t)
{
    audio_encode_free(&t->encode);
    audio_convert_free(&t->convert);
    avcodec_free_context(&t->decoder);
    av_packet_free(&t->pkt);
    av_frame_free(&t->frame);
}

int audio_track_run(struct input *in, const struct limits *limits, const struct source *source,
                    const struct plan *plan, size_t audio, int scratch_fd,
                    const struct task_events *events, struct manifest **ret, struct err *e)
{
    if (audio >= plan->n_audio || plan->audio[audio].track < 0 ||
        (size_t)plan->audio[audio].track >= source->n_audio)
        return err_set(e, ERR_BUG, "audio %zu is not in the plan or the source", audio);
    const struct plan_audio *to = &plan->audio[audio];
    const struct source_audio *from = &source->audio[to->track];
    cleanup(close_track) struct track t = {
        .in = in,
        .limits = limits,
        .source = source,
        .from = from,
        .plan = plan,
        .to = to,
        .events = events,
        .scratch_fd = scratch_fd,
        .damaged_end = AV_NOPTS_VALUE,
        .started_us = clock_mono_us(),
        .cpu_us = process_cpu_us(),
    };
    struct manifest_track track = {0};
    if (run(&t, &track, e) < 0)
        return err_prefix(e, "audio track %d (stream %d, %s)", to->track, from->stream,
                          from->codec);
    *ret = make_manifest(&t, &track);
    return 0;
}
