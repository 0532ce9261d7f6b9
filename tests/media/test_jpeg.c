/* Pictures as JPEG files: the colours that a viewer makes of them, and that nothing is remembered.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "pipelines/media/jpeg.h"

enum { WIDTH = 33, HEIGHT = 19 }; /* odd: the last chroma sample stands alone */

static AVFrame *new_picture(void)
{
    AVFrame *f = av_frame_alloc();
    assert_non_null(f);
    f->format = AV_PIX_FMT_YUV420P;
    f->width = WIDTH;
    f->height = HEIGHT;
    assert_int_equal(av_frame_get_buffer(f, 0), 0);
    return f;
}

static void fill(AVFrame *f, const int yuv[3])
{
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < (c ? (HEIGHT + 1) / 2 : HEIGHT); y++)
            memset(f->data[c] + y * f->linesize[c], yuv[c], c ? (WIDTH + 1) / 2 : WIDTH);
}

static AVPacket *encode(const AVFrame *f, int source_height)
{
    struct err e;
    AVPacket *pkt = NULL;
    if (jpeg_encode(f, source_height, &pkt, &e) < 0)
        fail_msg("%s", e.msg);
    return pkt;
}

static AVFrame *decode(const AVPacket *pkt)
{
    AVFrame *f = av_frame_alloc();
    cleanup(avcodec_free_context) AVCodecContext *ctx =
        avcodec_alloc_context3(avcodec_find_decoder(AV_CODEC_ID_MJPEG));
    assert_int_equal(avcodec_open2(ctx, NULL, NULL), 0);
    assert_int_equal(avcodec_send_packet(ctx, pkt), 0);
    assert_int_equal(avcodec_receive_frame(ctx, f), 0);
    return f;
}

/* What the definition of a matrix makes of a colour. */
static void video_of(const double rgb[3], double red, double blue, bool is_full, int ret[3])
{
    double y = red * rgb[0] + (1 - red - blue) * rgb[1] + blue * rgb[2];
    double cb = (rgb[2] - y) / (2 * (1 - blue)), cr = (rgb[0] - y) / (2 * (1 - red));
    ret[0] = (int)lrint(is_full ? 255 * y : 16 + 219 * y);
    ret[1] = (int)lrint(128 + (is_full ? 255 : 224) * cb);
    ret[2] = (int)lrint(128 + (is_full ? 255 : 224) * cr);
    for (int i = 0; i < 3; i++)
        ret[i] = ret[i] > 255 ? 255 : ret[i];
}

/* JFIF: BT.601, full range; every viewer does this. */
static double viewed(const AVFrame *f, int x, int y, int component)
{
    double luma = f->data[0][y * f->linesize[0] + x];
    double cb = f->data[1][y / 2 * f->linesize[1] + x / 2] - 128;
    double cr = f->data[2][y / 2 * f->linesize[2] + x / 2] - 128;
    const double rgb[3] = {luma + 1.402 * cr, luma - 0.344136 * cb - 0.714136 * cr,
                           luma + 1.772 * cb};
    return rgb[component];
}

static void test_colours(void **state)
{
    (void)state;
    static const double colours[][3] = {{1, 1, 1}, {0, 0, 0},       {0.5, 0.5, 0.5}, {1, 0, 0},
                                        {0, 1, 0}, {0, 0, 1},       {1, 1, 0},       {0, 1, 1},
                                        {1, 0, 1}, {0.8, 0.6, 0.5}, {0.2, 0.4, 0.7}};
    static const struct {
        enum AVColorSpace space;
        int source_height;
        double red, blue;
    } matrices[] = {
        {AVCOL_SPC_BT709, 480, 0.2126, 0.0722},       {AVCOL_SPC_BT470BG, 1080, 0.299, 0.114},
        {AVCOL_SPC_SMPTE170M, 1080, 0.299, 0.114},    {AVCOL_SPC_BT2020_NCL, 480, 0.2627, 0.0593},
        {AVCOL_SPC_UNSPECIFIED, 720, 0.2126, 0.0722}, {AVCOL_SPC_UNSPECIFIED, 719, 0.299, 0.114},
    };
    cleanup(av_frame_free) AVFrame *picture = new_picture();
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        for (size_t k = 0; k < 2 * sizeof colours / sizeof *colours; k++) {
            bool is_full = k % 2;
            int yuv[3];
            video_of(colours[k / 2], matrices[i].red, matrices[i].blue, is_full, yuv);
            fill(picture, yuv);
            picture->colorspace = matrices[i].space;
            picture->color_range = is_full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
            cleanup(av_packet_free) AVPacket *jpeg = encode(picture, matrices[i].source_height);
            cleanup(av_frame_free) AVFrame *seen = decode(jpeg);
            assert_int_equal(seen->width, WIDTH);
            assert_int_equal(seen->height, HEIGHT);
            assert_int_equal(seen->color_range, AVCOL_RANGE_JPEG);
            for (int c = 0; c < 3; c++)
                for (int at = 0; at < WIDTH * HEIGHT; at += WIDTH * HEIGHT - 1) {
                    double got = viewed(seen, at % WIDTH, at / WIDTH, c);
                    if (fabs(got - 255 * colours[k / 2][c]) > 5) /* Q and rounding */
                        fail_msg("matrix %zu, colour %zu, full range %d: component %d is %.1f", i,
                                 k / 2, is_full, c, got);
                }
        }
}

static void test_same_bytes(void **state)
{
    (void)state;
    cleanup(av_frame_free) AVFrame *a = new_picture(), *b = new_picture();
    fill(a, (const int[3]){90, 110, 150});
    fill(b, (const int[3]){90, 110, 150});
    for (int i = 0; i < WIDTH; i++)
        a->data[0][i % HEIGHT * a->linesize[0] + i] = (uint8_t)(5 * i + 40);
    cleanup(av_packet_free) AVPacket *first = encode(a, 1080);
    cleanup(av_packet_free) AVPacket *between = encode(b, 1080);
    cleanup(av_packet_free) AVPacket *second = encode(a, 1080);
    assert_int_equal(first->size, second->size);
    assert_memory_equal(first->data, second->data, (size_t)first->size);
    assert_true(between->size != first->size ||
                memcmp(between->data, first->data, (size_t)first->size));
    /* nothing of the library's name or version */
    for (int i = 0; i + 4 < first->size; i++)
        assert_int_not_equal(memcmp(first->data + i, "Lavc", 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_colours),
        cmocka_unit_test(test_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
