/*
 * One chunk of video, decoded once and encoded into every rendition.
 *
 *     input_read -> decoder -> pre-filter -> (hold one) -> deliver -> kernels -> ladder
 *                                                                            -> encoder × N
 *
 * Which frames belong to the chunk is decided from their time alone (pipelines/plan/timeline.h), so
 * that neighbouring chunks agree without talking to each other: a chunk is the segments
 * [first_segment, end_segment), and decoding starts at a keyframe early enough and goes on until a
 * frame beyond the end comes, or where GOPs are closed until a keyframe does, which is not decoded.
 * One frame is held back so that it is delivered together with the time of its successor: that
 * gives true durations, the exact end, and for renditions on a grid of their own the ticks on which
 * the frame is shown.
 */
#include <libavutil/pixdesc.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strbuf.h"
#include "pipelines/media/decoder.h"
#include "pipelines/media/device_kernels.h"
#include "pipelines/media/encoder.h"
#include "pipelines/media/filter.h"
#include "pipelines/media/ladder.h"
#include "pipelines/media/spares.h"
#include "pipelines/media/task.h"
#include "pipelines/media/thumbnails.h"

struct output { /* one rendition's place in its timeline */
    struct encoder *encoder;
    int64_t gop;    /* of the last frame delivered; -1: none */
    int64_t end;    /* rendition ticks: start of the first frame or tick beyond the chunk */
    bool is_closed; /* such a frame was met */
};

struct run {
    struct input *in;
    struct device_route route; /* which device each stage has */
    const struct source_video *video;
    const struct plan *plan;
    const struct plan_chunk *chunk;
    const struct task_events *events;
    struct timeline timeline;
    /* Ticks from the origin: the chunk's first, and where its last frame ends when none comes after
     * it: the source's end until a later keyframe is met. */
    int64_t start, end;
    struct warm *warm; /* the stages that outlive the chunk */
    struct decoder *decoder;
    struct filter *prefilter;
    struct output *outputs;
    AVPacket *pkt;
    AVFrame *frame, *held;
    bool is_held_ready; /* the held frame went through the kernels already */
    int64_t frames_in;  /* source frames of this chunk */
    bool is_past_key;   /* the packet to start decoding from was met */
    bool is_fed;        /* the decoder got a packet */

    struct task_events shared; /* what encoders get: events behind the lock */
    pthread_mutex_t lock;
};

static void locked_file(void *arg, const char *path, int64_t bytes)
{
    struct run *run = arg;
    pthread_mutex_lock(&run->lock);
    run->events->file(run->events->arg, path, bytes);
    pthread_mutex_unlock(&run->lock);
}

static void report(struct run *run)
{
    int64_t out = 0;
    for (size_t i = 0; i < run->plan->n_renditions; i++)
        out += encoder_frames_out(run->outputs[i].encoder);
    pthread_mutex_lock(&run->lock);
    run->events->progress(run->events->arg, run->frames_in, out);
    pthread_mutex_unlock(&run->lock);
}

static bool is_in_chunk(const struct run *run, int64_t segment)
{
    return segment >= run->chunk->first_segment && segment < run->chunk->end_segment;
}

/* Only a frame that some rendition shows is worth it. */
static int ready_held(struct run *run, struct err *e)
{
    if (run->is_held_ready)
        return 0;
    run->is_held_ready = true;
    return device_kernels_frame(run->warm->kernels, run->held, e);
}

static int push(struct run *run, size_t r, int64_t pts, int64_t segment, int64_t gop, struct err *e)
{
    struct output *o = &run->outputs[r];
    cleanup(av_frame_free) AVFrame *frame = av_frame_alloc();
    if (!frame)
        return err_set(e, ERR_RESOURCE, "out of memory for a frame");
    int status = ready_held(run, e);
    if (status < 0 || (status = ladder_get(run->warm->ladder, r, frame, e)) < 0)
        return status;
    frame->pts = pts;
    bool is_key = gop != o->gop;
    o->gop = gop;
    return encoder_push(o->encoder, frame, segment, is_key, e);
}

/* Source timing: the frame itself. */
static int deliver_frame(struct run *run, size_t r, int64_t t, struct err *e)
{
    struct output *o = &run->outputs[r];
    const struct rational tb = run->plan->renditions[r].time_base;
    int64_t segment = timeline_segment(&run->timeline, t);
    int64_t pts = rational_rescale(t, run->plan->time_base, tb, ROUND_NEAREST);
    if (is_in_chunk(run, segment))
        return push(run, r, pts, segment, timeline_gop(&run->timeline, t), e);
    if (segment >= run->chunk->end_segment && !o->is_closed) {
        o->end = pts;
        o->is_closed = true;
    }
    return 0;
}

/* Grid of its own: every tick on which the frame is shown. */
static int deliver_ticks(struct run *run, size_t r, int64_t t, int64_t next, struct err *e)
{
    struct output *o = &run->outputs[r];
    const struct plan_rendition *rendition = &run->plan->renditions[r];
    struct rational period = rational_div((struct rational){1, 1}, rendition->fps);
    int64_t m = timeline_grid_tick(&run->timeline, t, rendition->fps);
    int64_t end = timeline_grid_tick(&run->timeline, next, rendition->fps);
    int status = 0;
    for (; m < end && status >= 0 && !o->is_closed; m++) {
        int64_t segment = timeline_grid_segment(&run->timeline, m, rendition->fps);
        int64_t pts = rational_rescale(m, period, rendition->time_base, ROUND_NEAREST);
        if (is_in_chunk(run, segment))
            status =
                push(run, r, pts, segment, timeline_grid_gop(&run->timeline, m, rendition->fps), e);
        else if (segment >= run->chunk->end_segment) {
            o->end = pts;
            o->is_closed = true;
        }
    }
    return status;
}

/* All that is shown from t on belongs to later chunks. */
static void close_outputs(struct run *run, int64_t t)
{
    for (size_t r = 0; r < run->plan->n_renditions; r++) {
        const struct plan_rendition *rendition = &run->plan->renditions[r];
        struct output *o = &run->outputs[r];
        if (o->is_closed)
            continue;
        o->is_closed = true;
        if (rational_is_set(rendition->fps))
            o->end = rational_rescale(timeline_grid_tick(&run->timeline, t, rendition->fps),
                                      rational_div((struct rational){1, 1}, rendition->fps),
                                      rendition->time_base, ROUND_NEAREST);
        else
            o->end = rational_rescale(t, run->plan->time_base, rendition->time_base, ROUND_NEAREST);
    }
}

/* Hands the held frame, shown from its pts until `next`, to every rendition. */
static int deliver(struct run *run, int64_t next, struct err *e)
{
    int64_t t = run->held->pts;
    int status = 0;
    run->is_held_ready = false;
    ladder_set_source(run->warm->ladder, run->held);
    for (size_t r = 0; r < run->plan->n_renditions && status >= 0; r++)
        status = rational_is_set(run->plan->renditions[r].fps) ? deliver_ticks(run, r, t, next, e)
                                                               : deliver_frame(run, r, t, e);
    if (status >= 0 && thumbnails_want(run->warm->thumbnails, t) &&
        (status = ready_held(run, e)) >= 0)
        status = thumbnails_make(run->warm->thumbnails, run->held, e);
    if (timeline_segment(&run->timeline, next) >= run->chunk->end_segment)
        close_outputs(run, next);
    run->frames_in += is_in_chunk(run, timeline_segment(&run->timeline, t));
    ladder_set_source(run->warm->ladder, NULL);
    av_frame_unref(run->held);
    if (status >= 0)
        report(run);
    return status;
}

static bool is_complete(const struct run *run)
{
    for (size_t r = 0; r < run->plan->n_renditions; r++)
        if (!run->outputs[r].is_closed)
            return false;
    return !run->held->buf[0] || !thumbnails_want(run->warm->thumbnails, run->held->pts);
}

/* Takes what the pre-filter has ready. 0: more is needed; 1: the chunk is complete or at the end.
 */
static int drain_filter(struct run *run, struct err *e)
{
    int status;
    while ((status = filter_receive(run->prefilter, run->frame, e)) == 1) {
        if (run->held->buf[0] && (status = deliver(run, run->frame->pts, e)) < 0)
            return status;
        av_frame_move_ref(run->held, run->frame);
        if (is_complete(run))
            return 1;
    }
    return status == AVERROR_EOF ? 1 : status;
}

static int drain_decoder(struct run *run, struct err *e)
{
    int status;
    while ((status = decoder_receive(run->decoder, run->frame, e)) == 1) {
        if ((status = filter_send(run->prefilter, run->frame, e)) < 0 ||
            (status = drain_filter(run, e)) != 0)
            return status;
    }
    if (status != AVERROR_EOF)
        return status;
    status = filter_send(run->prefilter, NULL, e);
    return status < 0 ? status : drain_filter(run, e);
}

/* Packets before the keyframe that the plan chose are read, since the seek may land early, but not
 * decoded. */
static bool is_before_key(struct run *run)
{
    if (run->is_past_key)
        return false;
    run->is_past_key = run->chunk->seek_pts == INT64_MIN || ((run->pkt->flags & AV_PKT_FLAG_KEY) &&
                                                             run->pkt->pts >= run->chunk->seek_pts);
    return !run->is_past_key;
}

/* Whether no picture of the chunk comes after this packet: a keyframe beyond it, which no picture
 * leads that is shown before. */
static bool is_beyond(const struct run *run)
{
    const AVPacket *pkt = run->pkt;
    bool is_sound = (pkt->flags & (AV_PKT_FLAG_KEY | AV_PKT_FLAG_CORRUPT)) == AV_PKT_FLAG_KEY;
    return run->is_fed && is_sound && pkt->pts != AV_NOPTS_VALUE && !run->plan->context &&
           !run->video->has_open_gop && !run->video->is_sequential &&
           timeline_segment(&run->timeline, pkt->pts - run->plan->origin) >=
               run->chunk->end_segment &&
           !thumbnails_want(run->warm->thumbnails, pkt->pts - run->plan->origin);
}

static int read_and_decode(struct run *run, struct err *e)
{
    const struct task_events *events = run->events;
    for (int status = 0; !status;) {
        if (events->is_cancelled && events->is_cancelled(events->arg))
            return err_set(e, ERR_CANCELLED, "cancelled");
        int got = input_read(run->in, run->pkt, e);
        if (got < 0 && got != AVERROR_EOF)
            return got;
        bool is_skipped =
            !got && (run->pkt->stream_index != run->video->stream || is_before_key(run));
        if (!is_skipped) {
            if (!got && is_beyond(run)) {
                run->end = run->pkt->pts - run->plan->origin;
                got = AVERROR_EOF;
            }
            run->is_fed = true;
            bool is_unneeded = !got && !run->plan->context && run->pkt->pts != AV_NOPTS_VALUE &&
                               run->pkt->pts - run->plan->origin < run->start;
            status = decoder_send(run->decoder, got ? NULL : run->pkt, is_unneeded, e);
            if (!status)
                status = drain_decoder(run, e);
        }
        av_packet_unref(run->pkt);
        if (status)
            return status < 0 ? status : 0;
    }
    return 0;
}

/* Ends the renditions that met no frame beyond the chunk. */
static int deliver_last(struct run *run, struct err *e)
{
    if (is_complete(run) || !run->held->buf[0])
        return 0;
    int64_t t = run->held->pts;
    int64_t end = run->end > t ? run->end : t + 1;
    int status = deliver(run, end, e);
    close_outputs(run, end);
    return status;
}

/* Makes the stages that were not kept. */
static int warm_up(struct run *run, struct err *e)
{
    struct warm *w = run->warm;
    int status = 0;
    if (!w->kernels)
        status = device_kernels_new(&run->route, run->plan, run->video, &w->kernels, e);
    if (!w->ladder)
        w->ladder = ladder_new(run->plan, &run->route);
    if (!w->thumbnails)
        w->thumbnails = thumbnails_new(run->plan, run->video, run->route.filter);
    if (!w->spares)
        w->spares = spares_new();
    return status;
}

static struct encoder_codec_options codec_options(const struct run *run, size_t r)
{
    return (struct encoder_codec_options){run->plan, run->route.encode, &run->plan->renditions[r],
                                          run->video};
}

static int start(struct run *run, const struct limits *limits, int scratch_fd, struct err *e)
{
    AVFormatContext *format = input_format(run->in);
    input_set_sequential(run->in, run->video->is_sequential);
    int status = warm_up(run, e);
    run->pkt = av_packet_alloc();
    run->frame = av_frame_alloc();
    run->held = av_frame_alloc();
    if (status >= 0 && (!run->pkt || !run->frame || !run->held))
        status = err_set(e, ERR_RESOURCE, "out of memory");
    run->shared = (struct task_events){.arg = run, .file = locked_file};
    if (status >= 0)
        status = thumbnails_begin(run->warm->thumbnails, run->chunk,
                                  (struct output_folder){.scratch_fd = scratch_fd,
                                                         .max_bytes = limits->max_output_bytes,
                                                         .events = &run->shared},
                                  e);
    for (size_t r = 0; r < run->plan->n_renditions && status >= 0; r++) {
        run->outputs[r].gop = -1;
        status = encoder_start(
            &(struct encoder_options){
                .codec = codec_options(run, r),
                .packager = {.rendition = run->plan->renditions[r].name,
                             .segments = run->plan->segments,
                             .scratch_fd = scratch_fd,
                             .max_bytes = limits->max_output_bytes,
                             .events = &run->shared},
                .spares = run->warm->spares,
            },
            &run->outputs[r].encoder, e);
    }
    cleanup(free_ptr) char *graph = NULL;
    if (status >= 0)
        status = device_prefilter(&run->route, run->plan, run->video, &graph, e);
    if (status < 0)
        return status;
    run->prefilter = filter_new(graph, run->plan->time_base, device_context(run->route.filter));
    status = input_select(run->in, run->video->stream, e);
    if (status >= 0)
        status = input_seek(run->in, run->video->stream, run->chunk->seek_pts, e);
    return status < 0 ? status
                      : decoder_open(format->streams[run->video->stream], run->plan->origin,
                                     run->route.decode, device_surfaces(run->plan), limits,
                                     &run->decoder, e);
}

static int finish(struct run *run, struct manifest *m, struct err *e)
{
    if (!decoder_frames(run->decoder))
        return err_set(e, ERR_INPUT, "nothing of the video can be decoded (%lld damaged packets)",
                       (long long)decoder_errors(run->decoder));
    for (size_t r = 0; r < run->plan->n_renditions; r++) {
        int status = encoder_end(run->outputs[r].encoder, e);
        if (status < 0)
            return status;
    }
    m->tracks = xcalloc(run->plan->n_renditions, sizeof *m->tracks);
    for (size_t r = 0; r < run->plan->n_renditions; r++) {
        int status = encoder_finish(run->outputs[r].encoder, run->outputs[r].end, &m->tracks[r], e);
        if (status < 0)
            return status;
        m->n_tracks = r + 1;
        m->tracks[r].video_range = xstrdup(plan_video_range(run->plan, run->video));
    }
    thumbnails_finish(run->warm->thumbnails, m);
    m->chunk = run->chunk->index;
    m->frames_decoded = decoder_frames(run->decoder);
    m->frames_source = run->frames_in;
    m->damaged = decoder_errors(run->decoder);
    m->is_truncated = input_truncation(run->in) != NULL;
    const char *encoder;
    int status = device_encoder(run->route.encode, run->plan->encoder, &encoder, e);
    if (status < 0)
        return status;
    m->device = device_class(&run->route, encoder);
    m->route = take(run->route.record);
    return 0;
}

static void close_encoders(struct run *run)
{
    for (size_t r = 0; r < run->plan->n_renditions; r++)
        encoder_free(&run->outputs[r].encoder);
}

/* Opens the next chunk's encoders, after this one's were closed: an engine has few sessions. */
static void open_ahead(struct run *run)
{
    struct spares *spares = run->warm->spares;
    close_encoders(run);
    spares_clear(spares);
    for (size_t r = 0; r < run->plan->n_renditions; r++) {
        const struct encoder_codec_options options = codec_options(run, r);
        struct encoder_codec *codec;
        struct err ignored;
        if (encoder_codec_new(&options, &codec, &ignored) == 0)
            spares_put(spares, codec);
    }
}

static void run_free(struct run *run)
{
    close_encoders(run);
    free(run->outputs);
    filter_free(&run->prefilter);
    decoder_close(&run->decoder);
    device_route_clear(&run->route);
    av_frame_free(&run->frame);
    av_frame_free(&run->held);
    av_packet_free(&run->pkt);
    pthread_mutex_destroy(&run->lock);
}

static int64_t cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000LL + u.ru_utime.tv_usec +
           u.ru_stime.tv_usec;
}

int video_chunk_run(struct warm *warm, struct input *in, const struct limits *limits,
                    const struct device *device, const struct source *source,
                    const struct plan *plan, const struct plan_chunk *chunk, int scratch_fd,
                    const struct task_events *events, struct manifest **ret, struct err *e)
{
    int64_t wall = clock_mono_us(), cpu = cpu_us();
    cleanup(run_free) struct run run = {
        .warm = warm,
        .in = in,
        .video = source->video,
        .plan = plan,
        .chunk = chunk,
        .events = events,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .end = source->video->end - plan->origin,
        .outputs = xcalloc(plan->n_renditions, sizeof *run.outputs),
    };
    plan_timeline(plan, &run.timeline);
    run.start = timeline_segment_start(&run.timeline, chunk->first_segment);
    struct manifest *m = xcalloc(1, sizeof *m);
    int status = device_route(device, plan, source->video, &run.route, e);
    if (status >= 0)
        status = start(&run, limits, scratch_fd, e);
    if (status >= 0)
        status = read_and_decode(&run, e);
    if (status >= 0)
        status = deliver_last(&run, e);
    if (status >= 0)
        status = finish(&run, m, e);
    if (status < 0) {
        bind_free(&manifest_type, &m);
        close_encoders(&run); /* they look for spares */
        warm_clear(warm);
        return status;
    }
    open_ahead(&run);
    m->wall_us = clock_mono_us() - wall;
    m->cpu_us = cpu_us() - cpu;
    *ret = m;
    return 0;
}
