/*
 * JPEG files say nothing of their colours that viewers would heed: JFIF has BT.601's matrix and
 * full range, always. Video has other matrices and limited range, so the samples are converted
 * first. From Y'CbCr to Y'CbCr, without R'G'B' in between: luma changes with luma and both chromas,
 * chroma with chroma alone, so that 4:2:0 stays as it is.
 */
#include "pipelines/media/jpeg.h"

#include <math.h>

#include "common/cleanup.h"
#include "pipelines/media/avlog.h"

enum { QUALITY = 4 /* libavcodec's scale: 2 is the best, 31 the worst */, ONE = 1 << 16 };

/* --- colours -----------------------------------------------------------------------------------
 */

struct matrix { /* the weights of luma */
    double red, blue;
};

static const struct matrix bt601 = {0.299, 0.114}, bt709 = {0.2126, 0.0722};

static struct matrix matrix_of(const AVFrame *picture, int source_height)
{
    static const struct {
        enum AVColorSpace space;
        struct matrix matrix;
    } rows[] = {
        {AVCOL_SPC_BT709, {0.2126, 0.0722}},     {AVCOL_SPC_FCC, {0.30, 0.11}},
        {AVCOL_SPC_BT470BG, {0.299, 0.114}},     {AVCOL_SPC_SMPTE170M, {0.299, 0.114}},
        {AVCOL_SPC_SMPTE240M, {0.212, 0.087}},   {AVCOL_SPC_BT2020_NCL, {0.2627, 0.0593}},
        {AVCOL_SPC_BT2020_CL, {0.2627, 0.0593}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].space == picture->colorspace)
            return rows[i].matrix;
    return source_height >= 720 ? bt709 : bt601;
}

struct conversion { /* in units of 1/ONE; of chroma less 128 */
    int black;      /* luma, not scaled */
    int64_t y_of_y, y_of_cb, y_of_cr, cb_of_cb, cb_of_cr, cr_of_cb, cr_of_cr;
};

static int64_t fixed(double factor)
{
    return llrint(factor * ONE);
}

/* R = Y + 2(1-kr)Cr, B = Y + 2(1-kb)Cb and kg G = Y - kr R - kb B, put into the other matrix's
 * Y', Cb' = (B - Y') / 2(1-kb') and Cr' = (R - Y') / 2(1-kr'). */
static void make_conversion(struct matrix from, bool is_full, struct conversion *ret)
{
    struct matrix to = bt601;
    double chroma = is_full ? 1 : 255.0 / 224, luma = is_full ? 1 : 255.0 / 219;
    double green = (1 - to.red - to.blue) / (1 - from.red - from.blue);
    double b = 2 * (1 - from.blue), r = 2 * (1 - from.red);
    double y_of_cb = b * (to.blue - green * from.blue), y_of_cr = r * (to.red - green * from.red);
    double cb = 2 * (1 - to.blue), cr = 2 * (1 - to.red);
    *ret = (struct conversion){
        .black = is_full ? 0 : 16,
        .y_of_y = fixed(luma),
        .y_of_cb = fixed(chroma * y_of_cb),
        .y_of_cr = fixed(chroma * y_of_cr),
        .cb_of_cb = fixed(chroma * (b - y_of_cb) / cb),
        .cb_of_cr = fixed(chroma * -y_of_cr / cb),
        .cr_of_cb = fixed(chroma * -y_of_cb / cr),
        .cr_of_cr = fixed(chroma * (r - y_of_cr) / cr),
    };
}

static uint8_t rounded(int64_t v)
{
    int64_t n = (v + ONE / 2) >> 16;
    return (uint8_t)(n < 0 ? 0 : n > 255 ? 255 : n);
}

static void convert(const struct conversion *c, const AVFrame *in, AVFrame *out)
{
    for (int y = 0; y < in->height; y++)
        for (int x = 0; x < in->width; x++) {
            int luma = in->data[0][y * in->linesize[0] + x] - c->black;
            int cb = in->data[1][y / 2 * in->linesize[1] + x / 2] - 128;
            int cr = in->data[2][y / 2 * in->linesize[2] + x / 2] - 128;
            out->data[0][y * out->linesize[0] + x] =
                rounded(c->y_of_y * luma + c->y_of_cb * cb + c->y_of_cr * cr);
            if (x % 2 || y % 2)
                continue;
            out->data[1][y / 2 * out->linesize[1] + x / 2] =
                rounded(c->cb_of_cb * cb + c->cb_of_cr * cr + 128 * ONE);
            out->data[2][y / 2 * out->linesize[2] + x / 2] =
                rounded(c->cr_of_cb * cb + c->cr_of_cr * cr + 128 * ONE);
        }
}

static AVFrame *converted(const AVFrame *picture, int source_height)
{
    struct conversion c;
    AVFrame *out = av_frame_alloc();
    if (!out)
        return NULL;
    out->format = AV_PIX_FMT_YUV420P;
    out->width = picture->width;
    out->height = picture->height;
    out->color_range = AVCOL_RANGE_JPEG;
    out->quality = QUALITY * FF_QP2LAMBDA;
    if (av_frame_get_buffer(out, 0) < 0) {
        av_frame_free(&out);
        return NULL;
    }
    make_conversion(matrix_of(picture, source_height), picture->color_range == AVCOL_RANGE_JPEG,
                    &c);
    convert(&c, picture, out);
    return out;
}

/* --- the file ----------------------------------------------------------------------------------
 */

/* A fresh encoder a picture, which costs next to nothing, has nothing to remember. The transform is
 * the integer one: the fast ones of different processors differ in a bit now and then. */
static AVCodecContext *encoder_of(const AVFrame *picture)
{
    const AVCodec *codec = avcodec_find_encoder(AV_CODEC_ID_MJPEG);
    AVCodecContext *ctx = codec ? avcodec_alloc_context3(codec) : NULL;
    if (!ctx)
        return NULL;
    ctx->width = picture->width;
    ctx->height = picture->height;
    ctx->pix_fmt = picture->format;
    ctx->color_range = picture->color_range;
    ctx->time_base = (AVRational){1, 25}; /* wanted, but without a meaning */
    ctx->sample_aspect_ratio = (AVRational){1, 1};
    ctx->flags = AV_CODEC_FLAG_QSCALE | AV_CODEC_FLAG_BITEXACT;
    ctx->global_quality = picture->quality;
    ctx->dct_algo = FF_DCT_INT;
    ctx->thread_count = 1;
    return ctx;
}

int jpeg_encode(const AVFrame *picture, int source_height, AVPacket **ret, struct err *e)
{
    cleanup(av_frame_free) AVFrame *frame = converted(picture, source_height);
    cleanup(av_packet_free) AVPacket *pkt = av_packet_alloc();
    cleanup(avcodec_free_context) AVCodecContext *ctx = frame ? encoder_of(frame) : NULL;
    if (!pkt || !frame)
        return err_set(e, ERR_RESOURCE, "JPEG: out of memory for a picture of %dx%d",
                       picture->width, picture->height);
    if (!ctx)
        return err_set(e, ERR_DEVICE, "JPEG: this libavcodec has no mjpeg encoder");
    int status = avcodec_open2(ctx, NULL, NULL);
    if (status >= 0)
        status = avcodec_send_frame(ctx, frame);
    if (status >= 0)
        status = avcodec_receive_packet(ctx, pkt);
    if (status == AVERROR(EAGAIN) && (status = avcodec_send_frame(ctx, NULL)) >= 0)
        status = avcodec_receive_packet(ctx, pkt);
    if (status < 0)
        return err_set(e, status == AVERROR(ENOMEM) ? ERR_RESOURCE : ERR_BUG,
                       "JPEG: a picture of %dx%d: %s", picture->width, picture->height,
                       avlog_reason(status));
    *ret = take(pkt);
    return 0;
}
