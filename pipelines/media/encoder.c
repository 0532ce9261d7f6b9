#include "pipelines/media/encoder.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/device_fault.h"

enum { QUEUE_FRAMES = 2 };

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
    struct encoder_codec *codec;
    struct packager *packager;
    AVPacket *pkt;
    struct key *keys;
    size_t n_keys, cap_keys;
    int64_t segment, frames_in;
    _Atomic int64_t frames_out;
};

static int write_packet(struct encoder *enc, struct err *e)
{
    if (enc->pkt->flags & AV_PKT_FLAG_KEY) {
        if (!enc->n_keys || enc->keys[0].pts != enc->pkt->pts)
            return err_set(e, ERR_BUG, "%s: encoder %s set a keyframe at %lld that was not planned",
                           enc->opt.codec.rendition->name, encoder_codec_name(enc->codec),
                           (long long)enc->pkt->pts);
        enc->segment = enc->keys[0].segment;
        memmove(enc->keys, enc->keys + 1, --enc->n_keys * sizeof *enc->keys);
    }
    enc->frames_out++;
    return packager_write(enc->packager, enc->pkt, enc->segment, e);
}

/* Sends one frame (NULL: flush) and takes all packets that are ready. */
static int encode(struct encoder *enc, const AVFrame *frame, struct err *e)
{
    AVCodecContext *ctx = encoder_codec_context(enc->codec);
    int status = avcodec_send_frame(ctx, frame);
    while (status >= 0) {
        status = avcodec_receive_packet(ctx, enc->pkt);
        if (status == AVERROR(EAGAIN) || status == AVERROR_EOF)
            return 0;
        if (status < 0)
            break;
        int written = write_packet(enc, e);
        av_packet_unref(enc->pkt);
        if (written < 0)
            return written;
    }
    const struct device *device = enc->opt.codec.device;
    bool is_gpu = device_is_gpu(device);
    return device_fault(is_gpu, is_gpu ? ERR_DEVICE : ERR_BUG, status, e, "%s: encoder %s on %s",
                        enc->opt.codec.rendition->name, encoder_codec_name(enc->codec),
                        device_name(device));
}

static void expect_key(struct encoder *enc, int64_t pts, int64_t segment)
{
    if (enc->n_keys == enc->cap_keys) {
        enc->cap_keys = enc->cap_keys ? 2 * enc->cap_keys : 8;
        enc->keys = xrealloc_array(enc->keys, enc->cap_keys, sizeof *enc->keys);
    }
    enc->keys[enc->n_keys++] = (struct key){pts, segment};
}

/* The first of a chunk may have been opened ahead. */
static int open_first(struct encoder *enc, struct err *e)
{
    int status = encoder_codec_new(&enc->opt.codec, &enc->codec, e);
    if (status < 0)
        return status;
    struct encoder_codec *spare = spares_take(enc->opt.spares, enc->codec);
    if (spare) {
        encoder_codec_free(&enc->codec);
        enc->codec = spare;
    }
    if ((status = encoder_codec_open(enc->codec, e)) < 0)
        return status;
    return packager_open(&enc->opt.packager, encoder_codec_context(enc->codec), &enc->packager, e);
}

static bool has_same_parameter_sets(struct encoder_codec *a, struct encoder_codec *b)
{
    const AVCodecContext *x = encoder_codec_context(a), *y = encoder_codec_context(b);
    return x->extradata_size == y->extradata_size &&
           !memcmp(x->extradata, y->extradata, (size_t)x->extradata_size);
}

/* A new encoder takes over at a keyframe, under the same parameter sets. */
static int restart(struct encoder *enc, struct err *e)
{
    cleanup(encoder_codec_free) struct encoder_codec *old = NULL;
    int status = encode(enc, NULL, e);
    if (status < 0)
        return status;
    old = take(enc->codec);
    if ((status = encoder_codec_new(&enc->opt.codec, &enc->codec, e)) < 0 ||
        (status = encoder_codec_open(enc->codec, e)) < 0)
        return status;
    if (!has_same_parameter_sets(old, enc->codec))
        return err_set(e, ERR_BUG, "%s: encoder %s changed its parameter sets",
                       enc->opt.codec.rendition->name, encoder_codec_name(enc->codec));
    return 0;
}

static int encode_work(struct encoder *enc, struct work *w, struct err *e)
{
    if (!w->frame)
        return encode(enc, NULL, e);
    if (w->is_key) {
        int status =
            enc->frames_in && encoder_codec_is_gop_encoder(enc->codec) ? restart(enc, e) : 0;
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
    int status = open_first(enc, &err);
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
    pthread_mutex_init(&enc->lock, NULL);
    pthread_cond_init(&enc->changed, NULL);
    enc->pkt = av_packet_alloc();
    int status = enc->pkt ? pthread_create(&enc->thread, NULL, run, enc) : ENOMEM;
    if (status)
        return err_set(e, ERR_RESOURCE, "start the encoder thread of %s: %s",
                       options->codec.rendition->name, strerror(status));
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
        return err_set(e, ERR_RESOURCE, "%s: out of memory", enc->opt.codec.rendition->name);
    av_frame_move_ref(copy, frame);
    return push(enc, (struct work){copy, segment, is_key}, e);
}

static void join(struct encoder *enc)
{
    if (enc->is_running)
        pthread_join(enc->thread, NULL);
    enc->is_running = false;
}

int encoder_end(struct encoder *enc, struct err *e)
{
    return push(enc, (struct work){0}, e);
}

int encoder_finish(struct encoder *enc, int64_t end, struct manifest_track *ret, struct err *e)
{
    int status = 0;
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
                       enc->opt.codec.rendition->name, encoder_codec_name(enc->codec),
                       (long long)enc->frames_in, (long long)enc->frames_out, enc->n_keys);
    status = packager_finish(enc->packager, end, ret, e);
    if (status < 0)
        return status;
    ret->width = enc->opt.codec.rendition->width;
    ret->height = enc->opt.codec.rendition->height;
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
    packager_free(&enc->packager);
    encoder_codec_free(&enc->codec);
    av_packet_free(&enc->pkt);
    free(enc->keys);
    pthread_cond_destroy(&enc->changed);
    pthread_mutex_destroy(&enc->lock);
    free_ptr(pp);
}
