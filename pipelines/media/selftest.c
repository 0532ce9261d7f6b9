#include "pipelines/media/selftest.h"

#include <inttypes.h>
#include <libavutil/hwcontext.h>
#include <libavutil/opt.h>
#include <math.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strbuf.h"
#include "pipelines/media/avlog.h"
#include "pipelines/media/decoder.h"
#include "pipelines/media/filter.h"
#include "pipelines/media/planes.h"

/* A picture is compared in GRID_X x GRID_Y parts by their means, which survive a lossy codec, a
 * scaler's taste and half a sample of chroma siting; wrong content, a picture of another time, a
 * swapped plane and a torn surface do not. The pattern repeats after PERIOD pictures. */
enum {
    GRID_X = 20,
    GRID_Y = 12,
    PARTS = 3 * GRID_X * GRID_Y,
    PERIOD = 8,
    TOLERANCE = 6,
    PIXELS_PER_BIT = 4,
    FPS = 25,
    FRAMES_MAX = 100000, /* encoded in one test, whatever its time */
};

static const struct selftest_work small = {320, 192, 8, 0};
static const char *const cpu_encoders[] = {"libx264", "libopenh264", "mpeg2video"};

struct clip {                /* what was encoded */
    AVFormatContext *holder; /* of the one stream */
    AVPacket **packets;
    size_t n;
    AVFrame *pictures[PERIOD];
    double means[PERIOD][PARTS];
};

static void clip_clear(struct clip *c)
{
    for (size_t i = 0; i < c->n; i++)
        av_packet_free(&c->packets[i]);
    for (int i = 0; i < PERIOD; i++)
        av_frame_free(&c->pictures[i]);
    free_ptr(&c->packets);
    avformat_free_context(c->holder);
    c->holder = NULL;
}

/* ---- the pattern ---- */

/* Waves in another direction for each component, moving: 0 to 256 and back. */
static int sample_at(int component, int x, int y, int n)
{
    static const struct {
        int x, y, low, range;
    } waves[] = {{2, 1, 40, 160}, {2, 3, 80, 96}, {3, -2, 80, 96}};
    int phase = (waves[component].x * x + waves[component].y * y + 512 / PERIOD * n) & 511;
    int height = phase < 256 ? phase : 512 - phase;
    return waves[component].low + height * waves[component].range / 256;
}

static int draw(AVFrame *frame, int n, struct err *e)
{
    const struct planes *p = planes_of(frame);
    if (!p || p->bytes != 1)
        return err_set(e, ERR_BUG, "cannot draw pictures of format %d", frame->format);
    for (int component = 0; component < 3; component++) {
        int shift = component > 0, step = component ? p->step : 1, pitch;
        uint8_t *row = planes_data(p, frame, component, &pitch);
        for (int y = 0; y < frame->height >> shift; y++, row += pitch)
            for (int x = 0; x < frame->width >> shift; x++)
                row[x * step] = (uint8_t)sample_at(component, x, y, n);
    }
    return 0;
}

static double mean_of(const AVFrame *frame, int part)
{
    const struct planes *p = planes_of(frame);
    int component = part / (GRID_X * GRID_Y), shift = component > 0, pitch;
    int column = part % GRID_X, line = part / GRID_X % GRID_Y, step = component ? p->step : 1;
    int width = frame->width >> shift, height = frame->height >> shift;
    int left = column * width / GRID_X, right = (column + 1) * width / GRID_X;
    int top = line * height / GRID_Y, bottom = (line + 1) * height / GRID_Y;
    const uint8_t *row = planes_data(p, frame, component, &pitch) + (ptrdiff_t)top * pitch;
    int64_t sum = 0;
    for (int y = top; y < bottom; y++, row += pitch)
        for (int x = left; x < right; x++)
            sum += row[x * step];
    return (double)sum / ((bottom - top) * (right - left));
}

/* The largest difference to the means of what was drawn. */
static double compare(const AVFrame *got, const double drawn[PARTS])
{
    double worst = 0;
    for (int part = 0; part < PARTS; part++)
        worst = fmax(worst, fabs(mean_of(got, part) - drawn[part]));
    return worst;
}

/* ---- encode ---- */

static int fail(int status, const char *what, const char *name, struct err *e)
{
    return err_set(e, status == AVERROR(ENOMEM) ? ERR_RESOURCE : ERR_DEVICE, "%s %s: %s", what,
                   name, avlog_reason(status));
}

/* frames: where the encoder takes its pictures from, NULL: from memory; the reference is taken. */
static int open_encoder(const char *name, AVBufferRef *frames, const struct selftest_work *work,
                        AVCodecContext **ret)
{
    const AVCodec *codec = avcodec_find_encoder_by_name(name);
    AVCodecContext *ctx = *ret = codec ? avcodec_alloc_context3(codec) : NULL;
    if (!ctx) {
        av_buffer_unref(&frames);
        return codec ? AVERROR(ENOMEM) : AVERROR_ENCODER_NOT_FOUND;
    }
    ctx->width = work->width;
    ctx->height = work->height;
    ctx->time_base = (AVRational){1, FPS};
    ctx->framerate = (AVRational){FPS, 1};
    ctx->pix_fmt = AV_PIX_FMT_YUV420P;
    ctx->bit_rate = (int64_t)work->width * work->height * FPS / PIXELS_PER_BIT;
    ctx->max_b_frames = 0;
    ctx->thread_count = 1;
    if ((ctx->hw_frames_ctx = frames))
        ctx->pix_fmt = ((AVHWFramesContext *)frames->data)->format;
    else
        av_opt_set(ctx->priv_data, "preset", "veryfast", 0); /* where there are presets */
    return avcodec_open2(ctx, codec, NULL);
}

/* What libavcodec's NVENC wrapper says of a GPU or a driver that has no (fitting) encoder at all;
 * everything else is a device that does not do what it can. */
static bool is_absent(int status)
{
    return status == AVERROR(ENOSYS) || status == AVERROR(EPERM) || status == AVERROR(ENOENT) ||
           status == AVERROR_ENCODER_NOT_FOUND;
}

/* 1: the GPU's own encoder is open; 0: it has none, for the reason in ret->no_encoder. */
static int open_own_encoder(const struct device *device, const struct selftest_work *work,
                            struct selftest *ret, AVCodecContext **ret_ctx, struct err *e)
{
    struct err reason = {0};
    const char *name;
    AVBufferRef *frames;
    int status = AVERROR_ENCODER_NOT_FOUND;
    if (device_encoder(device, "libx264", &name, &reason) == 0) {
        int rc = device_frames(device, "yuv420p", work->width, work->height, &frames, e);
        if (rc < 0)
            return rc;
        snprintf(ret->encoder, sizeof ret->encoder, "%s", name);
        avlog_clear();
        status = open_encoder(name, frames, work, ret_ctx);
        if (status < 0 && !is_absent(status))
            return fail(status, "open", name, e);
        if (status < 0)
            err_set(&reason, ERR_DEVICE, "%s: %s", name, avlog_reason(status));
    }
    if (status >= 0)
        return 1;
    avcodec_free_context(ret_ctx);
    snprintf(ret->no_encoder, sizeof ret->no_encoder, "%.*s", (int)sizeof ret->no_encoder - 1,
             reason.msg);
    return 0;
}

/* The device's own encoder, or the CPU's. */
static int choose_encoder(const struct device *device, const struct selftest_work *work,
                          struct selftest *ret, AVCodecContext **ret_ctx, struct err *e)
{
    int status = AVERROR_ENCODER_NOT_FOUND;
    if (device_is_gpu(device)) {
        int rc = open_own_encoder(device, work, ret, ret_ctx, e);
        ret->has_encoder = rc == 1;
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
    for (size_t i = 0; i < sizeof cpu_encoders / sizeof *cpu_encoders && status < 0; i++) {
        avcodec_free_context(ret_ctx);
        snprintf(ret->encoder, sizeof ret->encoder, "%s", cpu_encoders[i]);
        status = open_encoder(ret->encoder, NULL, work, ret_ctx);
    }
    if (status < 0)
        return fail(status, "open", ret->encoder, e);
    ret->has_encoder = !device_is_gpu(device);
    return 0;
}

/* Takes all packets that are ready, and keeps the first `keep`. */
static int receive_packets(AVCodecContext *ctx, struct clip *clip, size_t keep)
{
    for (;;) {
        AVPacket *packet = av_packet_alloc();
        int status = packet ? avcodec_receive_packet(ctx, packet) : AVERROR(ENOMEM);
        if (status >= 0 && clip->n < keep) {
            clip->packets = xrealloc_array(clip->packets, clip->n + 1, sizeof *clip->packets);
            clip->packets[clip->n++] = packet;
            continue;
        }
        av_packet_free(&packet);
        if (status < 0)
            return status == AVERROR(EAGAIN) || status == AVERROR_EOF ? 0 : status;
    }
}

/* Picture n in memory, and where the encoder wants it. */
static int make_picture(AVCodecContext *ctx, int n, struct clip *clip, struct err *e)
{
    cleanup(av_frame_free) AVFrame *memory = av_frame_alloc();
    AVFrame *picture = clip->pictures[n] = av_frame_alloc();
    if (!memory || !picture)
        return err_set(e, ERR_RESOURCE, "out of memory");
    memory->format = AV_PIX_FMT_YUV420P;
    memory->width = ctx->width;
    memory->height = ctx->height;
    if (ctx->hw_frames_ctx)
        memory->format = ((AVHWFramesContext *)ctx->hw_frames_ctx->data)->sw_format;
    int status = av_frame_get_buffer(memory, 0), rc = status < 0 ? 0 : draw(memory, n, e);
    if (rc < 0)
        return rc;
    for (int part = 0; part < PARTS && status >= 0; part++)
        clip->means[n][part] = mean_of(memory, part);
    if (status >= 0 && !ctx->hw_frames_ctx)
        status = av_frame_ref(picture, memory);
    else if (status >= 0)
        status = av_hwframe_get_buffer(ctx->hw_frames_ctx, picture, 0);
    if (status >= 0 && ctx->hw_frames_ctx)
        status = av_hwframe_transfer_data(picture, memory, 0);
    return status < 0 ? fail(status, "make a picture for", ctx->codec->name, e) : 0;
}

static int describe_stream(const AVCodecContext *ctx, struct clip *clip)
{
    clip->holder = avformat_alloc_context();
    AVStream *stream = clip->holder ? avformat_new_stream(clip->holder, NULL) : NULL;
    if (!stream)
        return AVERROR(ENOMEM);
    stream->time_base = ctx->time_base;
    return avcodec_parameters_from_context(stream->codecpar, ctx);
}

/* Encodes work->frames pictures, or more until the time is over, of which as many are kept. */
static int encode_pictures(AVCodecContext *ctx, const struct selftest_work *work, int64_t min_us,
                           struct clip *clip, double *ret_fps)
{
    int64_t start_us = clock_mono_us();
    int n = 0, status = 0;
    while (status >= 0 && n < FRAMES_MAX &&
           (n < work->frames || clock_mono_us() - start_us < min_us)) {
        AVFrame *picture = clip->pictures[n % PERIOD];
        picture->pts = n++;
        status = avcodec_send_frame(ctx, picture);
        if (status >= 0)
            status = receive_packets(ctx, clip, (size_t)work->frames);
    }
    if (status >= 0)
        status = avcodec_send_frame(ctx, NULL);
    if (status >= 0)
        status = receive_packets(ctx, clip, (size_t)work->frames);
    *ret_fps = n * 1e6 / (double)(clock_mono_us() - start_us + 1);
    return status;
}

static int encode(const struct device *device, const struct selftest_work *work, struct clip *clip,
                  struct selftest *ret, struct err *e)
{
    cleanup(avcodec_free_context) AVCodecContext *ctx = NULL;
    double fps = 0;
    int rc = choose_encoder(device, work, ret, &ctx, e);
    for (int n = 0; n < PERIOD && rc == 0; n++)
        rc = make_picture(ctx, n, clip, e);
    if (rc < 0)
        return rc;
    int status = encode_pictures(ctx, work, ret->has_encoder ? work->min_us : 0, clip, &fps);
    if (status >= 0)
        status = describe_stream(ctx, clip);
    ret->encode_fps = ret->has_encoder ? fps : 0;
    return status < 0 ? fail(status, "encode by", ret->encoder, e) : 0;
}

/* ---- decode ---- */

struct decode {
    const struct device *device;
    const struct selftest_work *work;
    const struct clip *clip;
    struct decoder *decoder;
    struct filter *scaler;
    struct selftest *found;
    int sent;
};

static int check_picture(struct decode *d, const AVFrame *frame, struct err *e)
{
    cleanup(av_frame_free) AVFrame *copy = av_frame_alloc();
    int status = !copy                  ? AVERROR(ENOMEM)
                 : frame->hw_frames_ctx ? av_hwframe_transfer_data(copy, frame, 0)
                                        : av_frame_ref(copy, frame);
    if (status < 0)
        return fail(status, "take back", "a picture", e);
    if (!planes_of(copy) || planes_of(copy)->bytes != 1)
        return err_set(e, ERR_DEVICE, "pictures come back in format %d", copy->format);
    int n = d->found->frames++ % (int)d->clip->n;
    double worst = compare(copy, d->clip->means[n % PERIOD]);
    d->found->worst = fmax(d->found->worst, worst);
    if (worst > TOLERANCE)
        return err_set(e, ERR_DEVICE,
                       "picture %d of %d is wrong by %.0f code values (%s); the device cannot be "
                       "trusted",
                       n + 1, (int)d->clip->n, worst, d->found->encoder);
    return 0;
}

/* frame NULL: the end. */
static int scale(struct decode *d, AVFrame *frame, struct err *e)
{
    cleanup(av_frame_free) AVFrame *out = av_frame_alloc();
    int rc = out ? filter_send(d->scaler, frame, e) : err_set(e, ERR_RESOURCE, "out of memory");
    while (rc == 0 && (rc = filter_receive(d->scaler, out, e)) == 1) {
        rc = check_picture(d, out, e);
        av_frame_unref(out);
    }
    return rc == AVERROR_EOF ? 0 : rc;
}

/* packet NULL: the end. */
static int decode_packet(struct decode *d, const AVPacket *packet, AVFrame *frame, struct err *e)
{
    int rc = decoder_send(d->decoder, packet, false, e);
    while (rc == 0 && (rc = decoder_receive(d->decoder, frame, e)) == 1)
        rc = scale(d, frame, e);
    return rc == AVERROR_EOF ? scale(d, NULL, e) : rc;
}

/* The stream once more, later: it begins with a keyframe. */
static int decode_clip(struct decode *d, AVFrame *frame, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < d->clip->n && rc == 0; i++) {
        cleanup(av_packet_free) AVPacket *packet = av_packet_clone(d->clip->packets[i]);
        if (!packet)
            return err_set(e, ERR_RESOURCE, "out of memory");
        packet->pts = packet->dts = d->sent++;
        rc = decode_packet(d, packet, frame, e);
    }
    return rc;
}

static int decode(struct decode *d, struct err *e)
{
    struct limits limits;
    struct plan plan = {.pix_fmt = (char *)"yuv420p"};
    cleanup(free_ptr) char *graph =
        device_scaler(d->device, &plan, d->work->width / 2, d->work->height / 2);
    cleanup(av_frame_free) AVFrame *frame = av_frame_alloc();
    if (!frame)
        return err_set(e, ERR_RESOURCE, "out of memory");
    limits_default(&limits);
    d->scaler = filter_new(graph, (struct rational){1, FPS}, NULL);
    int64_t start_us = clock_mono_us();
    int rc = decoder_open(d->clip->holder->streams[0], 0, d->device, device_surfaces(&plan),
                          &limits, &d->decoder, e);
    do {
        rc = rc == 0 ? decode_clip(d, frame, e) : rc;
    } while (rc == 0 && clock_mono_us() - start_us < d->work->min_us);
    rc = rc == 0 ? decode_packet(d, NULL, frame, e) : rc;
    d->found->decode_fps = d->found->frames * 1e6 / (double)(clock_mono_us() - start_us + 1);
    if (rc == 0 && d->found->frames != d->sent)
        rc = err_set(e, ERR_DEVICE,
                     "%d of %d pictures came back (%" PRId64
                     " packets were damaged); the device cannot be trusted",
                     d->found->frames, d->sent, decoder_errors(d->decoder));
    return rc;
}

int device_selftest_work(const struct device *device, const struct selftest_work *work,
                         struct selftest *ret, struct err *e)
{
    cleanup(clip_clear) struct clip clip = {0};
    struct decode d = {.device = device, .work = work, .clip = &clip, .found = ret};
    struct err reason = {0};
    *ret = (struct selftest){0};
    int rc = encode(device, work, &clip, ret, &reason);
    if (rc == 0 && clip.n != (size_t)work->frames)
        rc = err_set(&reason, ERR_DEVICE, "%s made %zu of %d pictures", ret->encoder, clip.n,
                     work->frames);
    if (rc == 0)
        rc = decode(&d, &reason);
    decoder_close(&d.decoder);
    filter_free(&d.scaler);
    if (rc >= 0)
        return 0;
    /* The work is known to be good, so whatever fails is the device's. */
    return err_set(e, rc == -ERR_RESOURCE ? ERR_RESOURCE : ERR_DEVICE, "self-test of %s: %s",
                   device_name(device), reason.msg);
}

int device_selftest(const struct device *device, struct selftest *ret, struct err *e)
{
    return device_selftest_work(device, &small, ret, e);
}
