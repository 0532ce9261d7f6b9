#include "pipelines/media/encoder.h"

#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/avlog.h"

/*
 * What each encoder needs so that a chunk can join its neighbours: keyframes only where they are
 * asked for, closed GOPs, parameter sets that do not depend on the content, and output that does
 * not depend on the number of cores. Profiles may add options, but these stand.
 */
static const char *const nvenc_presets[][2] = {
    {"ultrafast", "p1"}, {"superfast", "p2"}, {"veryfast", "p3"}, {"faster", "p4"},
    {"fast", "p4"},      {"medium", "p5"},    {"slow", "p6"},     {"slower", "p7"},
    {"veryslow", "p7"},  {NULL, NULL},
};
#define NVENC_OPTIONS "forced-idr=1", "no-scenecut=1", "strict_gop=1", "g=1000000000", "rc=vbr"

static const struct encoder_kind {
    const char *name;
    const char *params_key; /* the private option that takes "key=value:key=value" */
    const char *params;
    const char *options[5];          /* "key=value" */
    const char *crf_key;             /* the option for constant quality */
    const char *const (*presets)[2]; /* of libx264 and libx265 to this encoder's; NULL: the same */
    bool is_gop_encoder; /* cannot be told where keyframes go: a new encoder for each GOP */
} kinds[] = {
    {"libx264",
     "x264-params",
     "keyint=infinite:scenecut=0:open-gop=0:stitchable=1",
     {"forced-idr=1"},
     "crf",
     NULL,
     false},
    {"libx265",
     "x265-params",
     "keyint=-1:scenecut=0:open-gop=0:repeat-headers=0:info=0:frame-threads=1:pools=none:"
     "log-level=error",
     {"forced-idr=1"},
     "crf",
     NULL,
     false},
    {"libsvtav1", "svtav1-params", "keyint=-1:lp=1", {NULL}, "crf", NULL, true},
    {"h264_nvenc", NULL, NULL, {NVENC_OPTIONS}, "cq", nvenc_presets, false},
    {"hevc_nvenc", NULL, NULL, {NVENC_OPTIONS}, "cq", nvenc_presets, false},
    {"av1_nvenc", NULL, NULL, {NVENC_OPTIONS}, "cq", nvenc_presets, false},
};

enum { QUEUE_FRAMES = 4 };

struct work {
    AVFrame *frame; /* NULL: end of stream */
    int64_t segment;
    bool is_key;
};

struct key { /* a keyframe that was asked for and has not come out yet */
    int64_t pts, segment;
};

struct encoder {
    struct encoder_options opt;
    const struct encoder_kind *kind;
    const char *codec; /* libav's name of the encoder on this device */
    pthread_t thread;
    bool is_running;

    pthread_mutex_t lock; /* guards the queue, is_stopping, status and err */
    pthread_cond_t changed;
    struct work queue[QUEUE_FRAMES];
    int head, count;
    bool is_stopping, is_done;
    int status;
    struct err err;

    /* the encoder's thread only, until it was joined */
    AVCodecContext *ctx;
    struct packager *packager;
    AVPacket *pkt;
    struct key *keys;
    size_t n_keys, cap_keys;
    int64_t segment, frames_in;
    _Atomic int64_t frames_out;
};

static const struct encoder_kind *find_kind(const char *name)
{
    static const struct encoder_kind other = {"", NULL, NULL, {"forced-idr=1"}, "crf", NULL, false};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return &other;
}

static void set_option(const struct encoder_kind *kind, AVDictionary **d, const char *key_value)
{
    const char *eq = strchr(key_value, '=');
    if (!eq)
        return;
    cleanup(free_ptr) char *key = xasprintf("%.*s", (int)(eq - key_value), key_value);
    if (kind->params_key && !strcmp(key, kind->params_key)) {
        AVDictionaryEntry *base = av_dict_get(*d, key, NULL, 0);
        cleanup(free_ptr) char *both = xasprintf("%s:%s", eq + 1, base ? base->value : "");
        av_dict_set(d, key, both, 0); /* ours last: the last one counts */
        return;
    }
    av_dict_set(d, key, eq + 1, 0);
}

static const char *preset_of(const struct encoder_kind *kind, const char *preset)
{
    for (size_t i = 0; kind->presets && kind->presets[i][0]; i++)
        if (!strcmp(kind->presets[i][0], preset))
            return kind->presets[i][1];
    return preset;
}

static void set_options(const struct encoder *enc, AVDictionary **d)
{
    const struct plan_rendition *r = enc->opt.rendition;
    const struct encoder_kind *kind = enc->kind;
    if (kind->params_key)
        av_dict_set(d, kind->params_key, kind->params, 0);
    for (size_t i = 0; i < sizeof kind->options / sizeof kind->options[0]; i++)
        if (kind->options[i])
            set_option(kind, d, kind->options[i]);
    if (enc->opt.plan->preset)
        av_dict_set(d, "preset", preset_of(kind, enc->opt.plan->preset), 0);
    if (r->encoder_profile)
        av_dict_set(d, "profile", r->encoder_profile, 0);
    if (r->level)
        av_dict_set(d, "level", r->level, 0);
    if (r->crf >= 0) {
        char crf[32];
        snprintf(crf, sizeof crf, "%g", r->crf);
        av_dict_set(d, kind->crf_key, crf, 0);
    }
    for (size_t i = 0; i < r->n_options; i++)
        set_option(kind, d, r->options[i]);
}

static void set_colour(AVCodecContext *ctx, const struct plan *plan, const struct source_video *v)
{
    int n;
    ctx->color_range = AVCOL_RANGE_MPEG;
    if (plan->is_tonemapped) {
        ctx->color_primaries = AVCOL_PRI_BT709;
        ctx->color_trc = AVCOL_TRC_BT709;
        ctx->colorspace = AVCOL_SPC_BT709;
        return;
    }
    if (v->color_primaries && (n = av_color_primaries_from_name(v->color_primaries)) >= 0)
        ctx->color_primaries = n;
    if (v->color_transfer && (n = av_color_transfer_from_name(v->color_transfer)) >= 0)
        ctx->color_trc = n;
    if (v->color_space && (n = av_color_space_from_name(v->color_space)) >= 0 && n != AVCOL_SPC_RGB)
        ctx->colorspace = n;
}

static AVRational to_av(struct rational r)
{
    return (AVRational){(int)r.num, (int)r.den};
}

static int open_codec(struct encoder *enc, struct err *e)
{
    const struct plan *plan = enc->opt.plan;
    const struct plan_rendition *r = enc->opt.rendition;
    const AVCodec *codec = avcodec_find_encoder_by_name(enc->codec);
    if (!codec)
        return err_set(e, ERR_DEVICE, "encoder %s is not in this build of libavcodec", enc->codec);
    AVCodecContext *ctx = enc->ctx = avcodec_alloc_context3(codec);
    if (!ctx)
        return err_set(e, ERR_RESOURCE, "%s: out of memory", r->name);
    ctx->width = r->width;
    ctx->height = r->height;
    ctx->pix_fmt = device_is_gpu(enc->opt.device) ? device_pix_fmt(enc->opt.device)
                                                  : av_get_pix_fmt(plan->pix_fmt);
    int status =
        device_frames(enc->opt.device, plan->pix_fmt, r->width, r->height, &ctx->hw_frames_ctx, e);
    if (status < 0)
        return status;
    ctx->time_base = to_av(r->time_base);
    ctx->framerate = to_av(rational_is_set(r->fps) ? r->fps : enc->opt.source->frame_rate);
    ctx->sample_aspect_ratio = (AVRational){1, 1};
    ctx->flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_CLOSED_GOP;
    ctx->thread_count = 1; /* the same bytes on any number of cores; sessions fill the cores */
    ctx->bit_rate = r->crf >= 0 ? 0 : r->bitrate;
    ctx->rc_max_rate = r->maxrate;
    ctx->rc_buffer_size = (int)r->bufsize;
    set_colour(ctx, plan, enc->opt.source);
    AVDictionary *options = NULL;
    set_options(enc, &options);
    status = avcodec_open2(ctx, codec, &options);
    const AVDictionaryEntry *unknown = av_dict_get(options, "", NULL, AV_DICT_IGNORE_SUFFIX);
    if (status < 0) /* on a GPU: no engine, no session left, no memory */
        status = err_set(e, device_is_gpu(enc->opt.device) ? ERR_DEVICE : ERR_CONFIG,
                         "%s: encoder %s does not open on %s: %s", r->name, enc->codec,
                         device_name(enc->opt.device), avlog_reason(status));
    else if (unknown)
        status = err_set(e, ERR_CONFIG, "%s: encoder %s has no option \"%s\"", r->name, enc->codec,
                         unknown->key);
    av_dict_free(&options);
    return status;
}

static int write_packet(struct encoder *enc, struct err *e)
{
    if (enc->pkt->flags & AV_PKT_FLAG_KEY) {
        if (!enc->n_keys || enc->keys[0].pts != enc->pkt->pts)
            return err_set(e, ERR_BUG, "%s: encoder %s set a keyframe at %lld that was not planned",
                           enc->opt.rendition->name, enc->codec, (long long)enc->pkt->pts);
        enc->segment = enc->keys[0].segment;
        memmove(enc->keys, enc->keys + 1, --enc->n_keys * sizeof *enc->keys);
    }
    enc->frames_out++;
    return packager_write(enc->packager, enc->pkt, enc->segment, e);
}

/* Sends one frame (NULL: flush) and takes all packets that are ready. */
static int encode(struct encoder *enc, const AVFrame *frame, struct err *e)
{
    int status = avcodec_send_frame(enc->ctx, frame);
    while (status >= 0) {
        status = avcodec_receive_packet(enc->ctx, enc->pkt);
        if (status == AVERROR(EAGAIN) || status == AVERROR_EOF)
            return 0;
        if (status < 0)
            break;
        int written = write_packet(enc, e);
        av_packet_unref(enc->pkt);
        if (written < 0)
            return written;
    }
    return err_set(e, status == AVERROR(ENOMEM) ? ERR_RESOURCE : ERR_BUG, "%s: encoder %s: %s",
                   enc->opt.rendition->name, enc->codec, avlog_reason(status));
}

static void expect_key(struct encoder *enc, int64_t pts, int64_t segment)
{
    if (enc->n_keys == enc->cap_keys) {
        enc->cap_keys = enc->cap_keys ? 2 * enc->cap_keys : 8;
        enc->keys = xrealloc_array(enc->keys, enc->cap_keys, sizeof *enc->keys);
    }
    enc->keys[enc->n_keys++] = (struct key){pts, segment};
}

static int open_all(struct encoder *enc, struct err *e)
{
    int status = open_codec(enc, e);
    if (status < 0 || enc->packager)
        return status;
    return packager_open(&enc->opt.packager, enc->ctx, &enc->packager, e);
}

/* A new encoder takes over at a keyframe, under the same parameter sets. */
static int restart(struct encoder *enc, struct err *e)
{
    int status = encode(enc, NULL, e);
    if (status < 0)
        return status;
    AVCodecContext *old = enc->ctx;
    status = open_all(enc, e);
    if (status >= 0 &&
        (old->extradata_size != enc->ctx->extradata_size ||
         memcmp(old->extradata, enc->ctx->extradata, (size_t)old->extradata_size) != 0))
        status = err_set(e, ERR_BUG, "%s: encoder %s changed its parameter sets",
                         enc->opt.rendition->name, enc->codec);
    avcodec_free_context(&old);
    return status;
}

static int encode_work(struct encoder *enc, struct work *w, struct err *e)
{
    if (!w->frame)
        return encode(enc, NULL, e);
    if (w->is_key) {
        int status = enc->kind->is_gop_encoder && enc->frames_in ? restart(enc, e) : 0;
        if (status < 0)
            return status;
        expect_key(enc, w->frame->pts, w->segment);
        w->frame->pict_type = AV_PICTURE_TYPE_I;
    }
    enc->frames_in++;
    return encode(enc, w->frame, e);
}

static bool next_work(struct encoder *enc, struct work *ret)
{
    pthread_mutex_lock(&enc->lock);
    while (!enc->count && !enc->is_stopping)
        pthread_cond_wait(&enc->changed, &enc->lock);
    bool is_there = !enc->is_stopping;
    if (is_there) {
        *ret = enc->queue[enc->head];
        enc->head = (enc->head + 1) % QUEUE_FRAMES;
        enc->count--;
        pthread_cond_broadcast(&enc->changed);
    }
    pthread_mutex_unlock(&enc->lock);
    return is_there;
}

static void *run(void *arg)
{
    struct encoder *enc = arg;
    struct err err = {0};
    struct work w;
    int status = open_all(enc, &err);
    bool is_end = false;
    while (status >= 0 && !is_end && next_work(enc, &w)) {
        is_end = !w.frame;
        status = encode_work(enc, &w, &err);
        av_frame_free(&w.frame);
    }
    pthread_mutex_lock(&enc->lock);
    enc->status = status;
    enc->err = err;
    enc->is_done = true;
    pthread_cond_broadcast(&enc->changed);
    pthread_mutex_unlock(&enc->lock);
    return NULL;
}

int encoder_start(const struct encoder_options *options, struct encoder **ret, struct err *e)
{
    cleanup(encoder_free) struct encoder *enc = xcalloc(1, sizeof *enc);
    enc->opt = *options;
    int status = device_encoder(options->device, options->plan->encoder, &enc->codec, e);
    if (status < 0)
        return status;
    enc->kind = find_kind(enc->codec);
    pthread_mutex_init(&enc->lock, NULL);
    pthread_cond_init(&enc->changed, NULL);
    enc->pkt = av_packet_alloc();
    status = enc->pkt ? pthread_create(&enc->thread, NULL, run, enc) : ENOMEM;
    if (status)
        return err_set(e, ERR_RESOURCE, "start the encoder thread of %s: %s",
                       options->rendition->name, strerror(status));
    enc->is_running = true;
    *ret = take(enc);
    return 0;
}

static int push(struct encoder *enc, struct work w, struct err *e)
{
    pthread_mutex_lock(&enc->lock);
    while (enc->count == QUEUE_FRAMES && !enc->is_done)
        pthread_cond_wait(&enc->changed, &enc->lock);
    int status = enc->is_done ? enc->status : 0;
    if (enc->is_done) {
        *e = enc->err;
        av_frame_free(&w.frame);
    } else {
        enc->queue[(enc->head + enc->count++) % QUEUE_FRAMES] = w;
        pthread_cond_broadcast(&enc->changed);
    }
    pthread_mutex_unlock(&enc->lock);
    return status;
}

int encoder_push(struct encoder *enc, AVFrame *frame, int64_t segment, bool is_key, struct err *e)
{
    AVFrame *copy = av_frame_alloc();
    if (!copy)
        return err_set(e, ERR_RESOURCE, "%s: out of memory", enc->opt.rendition->name);
    av_frame_move_ref(copy, frame);
    return push(enc, (struct work){copy, segment, is_key}, e);
}

static void join(struct encoder *enc)
{
    if (enc->is_running)
        pthread_join(enc->thread, NULL);
    enc->is_running = false;
}

int encoder_finish(struct encoder *enc, int64_t end, struct manifest_track *ret, struct err *e)
{
    int status = push(enc, (struct work){0}, e);
    join(enc);
    if (enc->status < 0) {
        *e = enc->err;
        status = enc->status;
    }
    if (status < 0)
        return status;
    if (enc->frames_out != enc->frames_in || enc->n_keys)
        return err_set(e, ERR_BUG,
                       "%s: encoder %s got %lld frames and gave %lld, %zu keyframes missing",
                       enc->opt.rendition->name, enc->codec, (long long)enc->frames_in,
                       (long long)enc->frames_out, enc->n_keys);
    status = packager_finish(enc->packager, end, ret, e);
    if (status < 0)
        return status;
    ret->width = enc->opt.rendition->width;
    ret->height = enc->opt.rendition->height;
    return 0;
}

int64_t encoder_frames_out(const struct encoder *enc)
{
    return enc->frames_out;
}

void encoder_free(struct encoder **pp)
{
    struct encoder *enc = *pp;
    if (!enc)
        return;
    pthread_mutex_lock(&enc->lock);
    enc->is_stopping = true;
    pthread_cond_broadcast(&enc->changed);
    pthread_mutex_unlock(&enc->lock);
    join(enc);
    for (; enc->count; enc->count--) {
        av_frame_free(&enc->queue[enc->head].frame);
        enc->head = (enc->head + 1) % QUEUE_FRAMES;
    }
    if (enc->ctx && enc->kind->is_gop_encoder) { /* SVT-AV1 hangs when freed in mid-stream */
        avcodec_send_frame(enc->ctx, NULL);
        while (avcodec_receive_packet(enc->ctx, enc->pkt) >= 0)
            av_packet_unref(enc->pkt);
    }
    packager_free(&enc->packager);
    avcodec_free_context(&enc->ctx);
    av_packet_free(&enc->pkt);
    free(enc->keys);
    pthread_cond_destroy(&enc->changed);
    pthread_mutex_destroy(&enc->lock);
    free_ptr(pp);
}
