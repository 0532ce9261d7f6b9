#include "tests/support/nvenc_clip.h"

#include <dlfcn.h>
#include <libavutil/hwcontext.h>
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FPS = 30 };

void nvenc_check_at(bool ok, const char *what, const char *file, int line, const char *format, ...)
{
    if (ok)
        return;
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: %s:", file, line, what);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

bool nvenc_clip_can(const char *encoder)
{
    void *library = dlopen("libnvidia-encode.so.1", RTLD_LAZY);
    if (library)
        dlclose(library);
    return library && avcodec_find_encoder_by_name(encoder);
}

enum { WAVE = 4096 }; /* more than any width or height plus what the pictures move */

static signed char across[3][WAVE], down[WAVE];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_waves(void)
{
    for (int i = 0; i < WAVE; i++) {
        for (int plane = 0; plane < 3; plane++)
            across[plane][i] = (signed char)lround(70 * sin(i * 0.06 + plane));
        down[i] = (signed char)lround(50 * cos((i - WAVE / 2) * 0.09));
    }
}

/* Value of a sample of picture `n`: smooth, moving, and different in each plane. 0..255. */
static int sample(int n, int plane, int x, int y)
{
    pthread_once(&once, fill_waves);
    return 128 + across[plane][x + 2 * n] + down[y - n + WAVE / 2];
}

static void put(AVFrame *f, int plane, int x, int y, int value)
{
    const AVComponentDescriptor *c = &av_pix_fmt_desc_get(f->format)->comp[plane];
    uint8_t *at =
        f->data[c->plane] + (ptrdiff_t)y * f->linesize[c->plane] + x * c->step + c->offset;
    if (c->depth > 8)
        *(uint16_t *)at = (uint16_t)(value << (c->depth - 8) << c->shift);
    else
        *at = (uint8_t)value;
}

static AVFrame *draw(const struct nvenc_clip *c, int n)
{
    AVFrame *f = av_frame_alloc();
    f->format = c->options.format;
    f->width = c->options.width;
    f->height = c->options.height;
    nvenc_check(av_frame_get_buffer(f, 0) == 0);
    for (int plane = 0; plane < 3; plane++)
        for (int y = 0; y < f->height >> !!plane; y++)
            for (int x = 0; x < f->width >> !!plane; x++)
                put(f, plane, x, y, sample(n, plane, x << !!plane, y << !!plane));
    return f;
}

static AVFrame *upload(const struct nvenc_clip *c, AVFrame *picture)
{
    AVFrame *f = av_frame_alloc();
    nvenc_check(av_hwframe_get_buffer(c->encoder->hw_frames_ctx, f, 0) == 0);
    nvenc_check(av_hwframe_transfer_data(f, picture, 0) == 0);
    av_frame_free(&picture);
    return f;
}

static AVFrame *picture(const struct nvenc_clip *c, int n)
{
    AVFrame *f = draw(c, n);
    if (!c->options.is_in_system_memory)
        f = upload(c, f);
    f->pts = n;
    for (const int *forced = c->options.forced; forced && *forced >= 0; forced++)
        if (*forced == n)
            f->pict_type = AV_PICTURE_TYPE_I;
    return f;
}

static int add_device(struct nvenc_clip *c)
{
    AVBufferRef *device = NULL;
    int rc = av_hwdevice_ctx_create(&device, AV_HWDEVICE_TYPE_CUDA, NULL, NULL, 0);
    if (rc < 0)
        return rc;
    c->encoder->hw_frames_ctx = av_hwframe_ctx_alloc(device);
    av_buffer_unref(&device);
    AVHWFramesContext *frames = (AVHWFramesContext *)c->encoder->hw_frames_ctx->data;
    frames->format = AV_PIX_FMT_CUDA;
    frames->sw_format = c->options.format;
    frames->width = c->options.width;
    frames->height = c->options.height;
    c->encoder->pix_fmt = AV_PIX_FMT_CUDA;
    return av_hwframe_ctx_init(c->encoder->hw_frames_ctx);
}

int nvenc_clip_try(struct nvenc_clip *c, const struct nvenc_clip_options *options)
{
    *c = (struct nvenc_clip){.options = *options};
    if (!options->width) {
        c->options.width = 320;
        c->options.height = 180;
    }
    const AVCodec *codec = avcodec_find_encoder_by_name(options->encoder);
    nvenc_check(codec, "%s", options->encoder);
    AVCodecContext *e = c->encoder = avcodec_alloc_context3(codec);
    e->width = c->options.width;
    e->height = c->options.height;
    e->pix_fmt = options->format;
    e->time_base = (AVRational){1, FPS};
    e->framerate = (AVRational){FPS, 1};
    if (options->has_global_header)
        e->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    int rc = options->is_in_system_memory ? 0 : add_device(c);
    AVDictionary *dict = NULL;
    if (options->options)
        nvenc_check(av_dict_parse_string(&dict, options->options, "=", ":", 0) == 0);
    if (rc == 0)
        rc = avcodec_open2(e, codec, &dict);
    nvenc_check(rc < 0 || !av_dict_count(dict), "an option that the encoder does not know");
    av_dict_free(&dict);
    return rc;
}

void nvenc_clip_open(struct nvenc_clip *c, const struct nvenc_clip_options *options)
{
    int rc = nvenc_clip_try(c, options);
    nvenc_check(rc == 0, "%s", av_err2str(rc));
}

static void drop_packets(struct nvenc_clip *c)
{
    while (c->n)
        av_packet_free(&c->packets[--c->n]);
}

void nvenc_clip_close(struct nvenc_clip *c)
{
    drop_packets(c);
    avcodec_free_context(&c->encoder);
}

static int receive(struct nvenc_clip *c)
{
    int rc;
    do {
        nvenc_check(c->n < NVENC_CLIP_MAX);
        c->packets[c->n] = av_packet_alloc();
        rc = avcodec_receive_packet(c->encoder, c->packets[c->n]);
        if (rc < 0)
            av_packet_free(&c->packets[c->n]);
        else
            c->n++;
    } while (rc == 0);
    return rc == AVERROR(EAGAIN) ? 0 : rc;
}

int nvenc_clip_send(struct nvenc_clip *c, int n)
{
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        AVFrame *f = picture(c, i);
        rc = avcodec_send_frame(c->encoder, f);
        av_frame_free(&f);
        if (rc == 0)
            rc = receive(c);
    }
    return rc;
}

void nvenc_clip_encode(struct nvenc_clip *c, int n)
{
    int rc = nvenc_clip_send(c, n);
    nvenc_check(rc == 0, "%s", av_err2str(rc));
    nvenc_check(avcodec_send_frame(c->encoder, NULL) == 0);
    rc = receive(c);
    nvenc_check(rc == AVERROR_EOF, "%s", av_err2str(rc));
}

void nvenc_clip_restart(struct nvenc_clip *c)
{
    drop_packets(c);
    avcodec_flush_buffers(c->encoder);
}

void nvenc_clip_check_order(const struct nvenc_clip *c, int n)
{
    bool seen[NVENC_CLIP_MAX] = {0};
    nvenc_check(c->n == n, "%d packets of %d pictures", c->n, n);
    for (int i = 0; i < n; i++) {
        const AVPacket *p = c->packets[i];
        nvenc_check(p->pts >= 0 && p->pts < n && !seen[p->pts], "pts %d", (int)p->pts);
        seen[p->pts] = true;
        nvenc_check(p->dts <= p->pts, "packet %d", i);
        nvenc_check(i == 0 || p->dts > c->packets[i - 1]->dts, "packet %d", i);
    }
}

/* Worst of the three planes against what went in; a decoded picture has one plane a component. */
static double psnr(const AVFrame *f)
{
    int depth = av_pix_fmt_desc_get(f->format)->comp[0].depth;
    double worst = 1000;
    for (int plane = 0; plane < 3; plane++) {
        int width = f->width >> !!plane, height = f->height >> !!plane;
        double sum = 1e-9;
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                const uint8_t *row = f->data[plane] + (ptrdiff_t)y * f->linesize[plane];
                double value = depth > 8 ? ((const uint16_t *)row)[x] / 4.0 : row[x];
                double expect = sample((int)f->pts, plane, x << !!plane, y << !!plane);
                sum += (value - expect) * (value - expect);
            }
        worst = fmin(worst, 10 * log10(255.0 * 255.0 * width * height / sum));
    }
    return worst;
}

struct decoding {
    AVCodecContext *decoder;
    AVFrame *frame;
    char *types;
    int n;
    double worst;
};

static void take_pictures(struct decoding *d)
{
    while (avcodec_receive_frame(d->decoder, d->frame) == 0) {
        nvenc_check(d->frame->pts == d->n, "picture %d has pts %d", d->n, (int)d->frame->pts);
        double db = psnr(d->frame);
        d->worst = db < d->worst ? db : d->worst;
        d->types[d->n++] = d->frame->pict_type == AV_PICTURE_TYPE_B   ? 'B'
                           : d->frame->pict_type == AV_PICTURE_TYPE_P ? 'P'
                                                                      : 'I';
    }
}

double nvenc_clip_decode(const struct nvenc_clip *c, char ret_types[NVENC_CLIP_MAX + 1])
{
    struct decoding d = {.types = ret_types, .worst = 1000};
    const AVCodecContext *e = c->encoder;
    d.decoder = avcodec_alloc_context3(avcodec_find_decoder(e->codec_id));
    d.decoder->thread_count = 1;
    if (e->extradata_size) {
        d.decoder->extradata = av_mallocz(e->extradata_size + AV_INPUT_BUFFER_PADDING_SIZE);
        memcpy(d.decoder->extradata, e->extradata, e->extradata_size);
        d.decoder->extradata_size = e->extradata_size;
    }
    nvenc_check(avcodec_open2(d.decoder, NULL, NULL) == 0);
    d.frame = av_frame_alloc();
    for (int i = 0; i < c->n; i++) {
        nvenc_check(avcodec_send_packet(d.decoder, c->packets[i]) == 0);
        take_pictures(&d);
    }
    avcodec_send_packet(d.decoder, NULL);
    take_pictures(&d);
    nvenc_check(d.n == c->n, "%d pictures of %d packets", d.n, c->n);
    ret_types[d.n] = 0;
    for (int i = 0; i < c->n; i++)
        if (c->packets[i]->flags & AV_PKT_FLAG_KEY) {
            nvenc_check(ret_types[c->packets[i]->pts] == 'I');
            ret_types[c->packets[i]->pts] = 'K';
        }
    av_frame_free(&d.frame);
    avcodec_free_context(&d.decoder);
    return d.worst;
}

int64_t nvenc_clip_bytes(const struct nvenc_clip *c)
{
    int64_t sum = 0;
    for (int i = 0; i < c->n; i++)
        sum += c->packets[i]->size;
    return sum;
}
