/*
 * kernels/turn.cu by its host build, to the sample, against a reference that cuts, mirrors and
 * turns step by step and converts the range in double precision.
 */
#include "pipelines/media/turn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/kernels/host.h"

struct matrix { /* one component */
    int width, height;
    int at[64 * 64];
};

static int *cell(struct matrix *m, int x, int y)
{
    return &m->at[y * m->width + x];
}

static AVFrame *frame_new(enum AVPixelFormat format, int width, int height)
{
    AVFrame *f = av_frame_alloc();
    assert_non_null(f);
    f->format = format;
    f->width = width;
    f->height = height;
    assert_true(av_frame_get_buffer(f, 0) >= 0);
    return f;
}

/* Where a component's sample lies; P010 has its 10 bits on top. */
static void *sample(const AVFrame *f, int c, int x, int y)
{
    int bytes = f->format == AV_PIX_FMT_P010 ? 2 : 1;
    uint8_t *row = f->data[c > 0] + (ptrdiff_t)y * f->linesize[c > 0];
    return row + bytes * (c ? 2 * x + c - 1 : x);
}

static int get(const AVFrame *f, int c, int x, int y)
{
    const void *p = sample(f, c, x, y);
    return f->format == AV_PIX_FMT_P010 ? *(const uint16_t *)p >> 6 : *(const uint8_t *)p;
}

static void fill(AVFrame *f)
{
    unsigned seed = 1;
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < (f->height + (c > 0)) >> (c > 0); y++)
            for (int x = 0; x < (f->width + (c > 0)) >> (c > 0); x++) {
                seed = seed * 1103515245 + 12345;
                if (f->format == AV_PIX_FMT_P010)
                    *(uint16_t *)sample(f, c, x, y) = (uint16_t)(seed >> 22 << 6);
                else
                    *(uint8_t *)sample(f, c, x, y) = (uint8_t)(seed >> 24);
            }
}

static struct matrix *cut(const AVFrame *f, int c)
{
    struct matrix *m = xcalloc(1, sizeof *m);
    int half = c > 0, left = (int)f->crop_left >> half, top = (int)f->crop_top >> half;
    m->width = (f->width - (int)f->crop_left + half) >> half;
    m->height = (f->height - (int)f->crop_top + half) >> half;
    for (int y = 0; y < m->height; y++)
        for (int x = 0; x < m->width; x++)
            *cell(m, x, y) = get(f, c, left + x, top + y);
    return m;
}

static void mirror(struct matrix *m)
{
    struct matrix from = *m;
    for (int y = 0; y < m->height; y++)
        for (int x = 0; x < m->width; x++)
            *cell(m, x, y) = *cell(&from, m->width - 1 - x, y);
}

/* A quarter clockwise: the left column, from the bottom up, becomes the top row. */
static void turn_quarter(struct matrix *m)
{
    struct matrix from = *m;
    m->width = from.height;
    m->height = from.width;
    for (int y = 0; y < m->height; y++)
        for (int x = 0; x < m->width; x++)
            *cell(m, x, y) = *cell(&from, y, from.height - 1 - x);
}

static int to_video_range(int value, int bits, bool is_chroma)
{
    double full = (1 << bits) - 1, unit = 1 << (bits - 8), middle = 1 << (bits - 1);
    double v = is_chroma ? middle + (value - middle) * 224 * unit / full
                         : 16 * unit + value * 219 * unit / full;
    return (int)floor(v + 0.5);
}

static void check(const AVFrame *in, const struct source_video *v)
{
    struct err e;
    struct turn_params params;
    int width, height, bits = in->format == AV_PIX_FMT_P010 ? 10 : 8;
    turn_size(in, v, &width, &height);
    cleanup(av_frame_free) AVFrame *out = frame_new(in->format, width, height);
    if (turn_params_make(in, out, v, &params, &e) < 0)
        fail_msg("%s", e.msg);
    kernel_host_turn(&params, width, height, 2);
    for (int c = 0; c < 3; c++) {
        cleanup(free_ptr) struct matrix *m = cut(in, c);
        if (v->is_flipped)
            mirror(m);
        for (int quarter = 0; quarter < v->rotation / 90; quarter++)
            turn_quarter(m);
        assert_int_equal(m->width, (width + (c > 0)) >> (c > 0));
        assert_int_equal(m->height, (height + (c > 0)) >> (c > 0));
        for (int y = 0; y < m->height; y++)
            for (int x = 0; x < m->width; x++) {
                int expected = *cell(m, x, y);
                if (v->color_range)
                    expected = to_video_range(expected, bits, c > 0);
                if (get(out, c, x, y) != expected)
                    fail_msg("%dx%d, %d degrees%s, component %d at %d,%d: %d, expected %d",
                             in->width, in->height, v->rotation, v->is_flipped ? ", mirrored" : "",
                             c, x, y, get(out, c, x, y), expected);
            }
    }
}

static void test_turns(void **state)
{
    (void)state;
    static const int sizes[][2] = {{16, 8}, {17, 9}, {2, 2}, {1, 5}, {50, 36}};
    static const enum AVPixelFormat formats[] = {AV_PIX_FMT_NV12, AV_PIX_FMT_P010};
    for (int f = 0; f < 2; f++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            cleanup(av_frame_free) AVFrame *in = frame_new(formats[f], sizes[s][0], sizes[s][1]);
            fill(in);
            for (int way = 0; way < 16; way++) {
                struct source_video v = {.rotation = way % 4 * 90,
                                         .is_flipped = way & 4,
                                         .color_range = way & 8 ? (char *)"pc" : NULL};
                check(in, &v);
            }
        }
}

static void test_cuts(void **state)
{
    (void)state;
    cleanup(av_frame_free) AVFrame *in = frame_new(AV_PIX_FMT_NV12, 32, 20);
    fill(in);
    in->crop_left = 6;
    in->crop_top = 4;
    for (int way = 0; way < 8; way++)
        check(in, &(struct source_video){.rotation = way % 4 * 90, .is_flipped = way & 4});
}

/* The ends and the middle of both ranges. */
static void test_range(void **state)
{
    (void)state;
    static const int luma[][2] = {{0, 16}, {255, 235}},
                     chroma[][2] = {{0, 16}, {128, 128}, {255, 240}};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(to_video_range(luma[i][0], 8, false), luma[i][1]);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(to_video_range(chroma[i][0], 8, true), chroma[i][1]);
    assert_int_equal(to_video_range(1023, 10, false), 940);
    assert_int_equal(to_video_range(0, 10, true), 64);
}

static void test_properties(void **state)
{
    (void)state;
    struct err e;
    cleanup(av_frame_free) AVFrame *in = frame_new(AV_PIX_FMT_NV12, 16, 8);
    cleanup(av_frame_free) AVFrame *out = av_frame_alloc();
    in->pts = 7;
    in->crop_left = 2;
    in->sample_aspect_ratio = (AVRational){4, 3};
    in->color_range = AVCOL_RANGE_JPEG;
    const struct source_video v = {.rotation = 90, .color_range = (char *)"pc"};
    assert_int_equal(turn_describe(in, &v, out, &e), 0);
    assert_int_equal(out->pts, 7);
    assert_int_equal(out->crop_left, 0);
    assert_int_equal(out->color_range, AVCOL_RANGE_MPEG);
    assert_int_equal(av_cmp_q(out->sample_aspect_ratio, (AVRational){3, 4}), 0);
}

static void test_other_formats(void **state)
{
    (void)state;
    struct err e;
    struct turn_params params;
    cleanup(av_frame_free) AVFrame *in = frame_new(AV_PIX_FMT_YUV444P, 16, 8);
    const struct source_video v = {0};
    assert_int_equal(turn_params_make(in, in, &v, &params, &e), -ERR_DEVICE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),         cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_range),         cmocka_unit_test(test_properties),
        cmocka_unit_test(test_other_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
