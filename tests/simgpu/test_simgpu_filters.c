/* FFmpeg's CUDA filters on the simulated GPU: what comes out is what the filter promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <libavfilter/avfilter.h>
#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/hwcontext.h>

#include "tests/support/simgpu.h"

enum { WIDTH = 64, HEIGHT = 48, FRAMES = 6 };

static AVBufferRef *device;

/* An NV12 picture of f(x, y, t) in luma, and two other values of it in chroma. */
static AVFrame *draw(int f(int x, int y, int t), int t)
{
    AVFrame *frame = av_frame_alloc();
    frame->format = AV_PIX_FMT_NV12;
    frame->width = WIDTH;
    frame->height = HEIGHT;
    frame->pts = t;
    assert_int_equal(av_frame_get_buffer(frame, 0), 0);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            frame->data[0][y * frame->linesize[0] + x] = (uint8_t)f(x, y, t);
            if (y < HEIGHT / 2)
                frame->data[1][y * frame->linesize[1] + x] = (uint8_t)f(x / 2, y + x % 2 * 7, t);
        }
    return frame;
}

static AVFilterGraph *open_graph(const char *filters, AVFilterContext **ret_in,
                                 AVFilterContext **ret_out)
{
    AVFilterGraph *graph = avfilter_graph_alloc();
    AVFilterInOut *in = NULL, *out = NULL;
    char text[512];
    snprintf(text, sizeof text, "buffer=video_size=%dx%d:pix_fmt=nv12:time_base=1/25,%s,buffersink",
             WIDTH, HEIGHT, filters);
    assert_int_equal(avfilter_graph_parse2(graph, text, &in, &out), 0);
    for (unsigned i = 0; i < graph->nb_filters; i++)
        if (strcmp(graph->filters[i]->filter->name, "hwupload") == 0)
            graph->filters[i]->hw_device_ctx = av_buffer_ref(device);
    assert_int_equal(avfilter_graph_config(graph, NULL), 0);
    *ret_in = graph->filters[0];
    for (unsigned i = 0; i < graph->nb_filters; i++)
        if (strcmp(graph->filters[i]->filter->name, "buffersink") == 0)
            *ret_out = graph->filters[i];
    return graph;
}

/* Sends `count` pictures through; returns how many came out, at most `count` of them. */
static int run_filters(const char *filters, int f(int, int, int), int count, AVFrame *ret[])
{
    AVFilterContext *in, *out;
    AVFilterGraph *graph = open_graph(filters, &in, &out);
    int n = 0;
    for (int t = 0; t < count; t++) {
        AVFrame *frame = draw(f, t);
        assert_int_equal(av_buffersrc_add_frame(in, frame), 0);
        av_frame_free(&frame);
    }
    assert_int_equal(av_buffersrc_add_frame(in, NULL), 0);
    do
        ret[n] = av_frame_alloc();
    while (av_buffersink_get_frame(out, ret[n]) >= 0 && ++n < count);
    for (int i = n; i < count; i++)
        av_frame_free(&ret[i]);
    avfilter_graph_free(&graph);
    return n;
}

static int noise(int x, int y, int t)
{
    uint32_t n = (uint32_t)x * 73856093u ^ (uint32_t)y * 19349663u ^ (uint32_t)t * 83492791u;
    return (int)(n * 2654435761u >> 24);
}

static int ramp(int x, int y, int t)
{
    (void)t;
    return 2 * x + y;
}

/* The worst difference between f and luma at `step` pixels a sample, borders left out. */
static int worst_luma(const AVFrame *frame, int f(int, int, int), int step)
{
    int worst = 0;
    for (int y = 2; y < frame->height - 2; y++)
        for (int x = 2; x < frame->width - 2; x++) {
            /* The middle of the pixels that it stands for, doubled to stay whole. */
            int want = f(step * x, step * y, 0) + f(step * x + step - 1, step * y + step - 1, 0);
            int got = 2 * frame->data[0][y * frame->linesize[0] + x];
            worst = abs(want - got) > worst ? abs(want - got) : worst;
        }
    return (worst + 1) / 2;
}

/* At the same size every algorithm gives back what it got, chroma too. */
static void test_same_size(void **state)
{
    (void)state;
    static const char *const algorithms[] = {"nearest", "bilinear", "bicubic", "lanczos"};
    for (size_t i = 0; i < 4; i++) {
        AVFrame *out[1], *want = draw(noise, 0);
        char filters[200];
        snprintf(filters, sizeof filters,
                 "hwupload,scale_cuda=interp_algo=%s:passthrough=0,hwdownload,format=nv12",
                 algorithms[i]);
        int64_t kernels = simgpu_own(0, "kernels");
        assert_int_equal(run_filters(filters, noise, 1, out), 1);
        assert_int_equal(simgpu_own(0, "kernels"), kernels + 2);
        for (int y = 0; y < HEIGHT; y++) {
            assert_memory_equal(out[0]->data[0] + y * out[0]->linesize[0],
                                want->data[0] + y * want->linesize[0], WIDTH);
            if (y < HEIGHT / 2)
                assert_memory_equal(out[0]->data[1] + y * out[0]->linesize[1],
                                    want->data[1] + y * want->linesize[1], WIDTH);
        }
        av_frame_free(&out[0]);
        av_frame_free(&want);
    }
}

/* A ramp stays a ramp, half as wide; in one plane more it comes out planar. */
static void test_half_size(void **state)
{
    (void)state;
    static const char *const filters[] = {
        "hwupload,scale_cuda=32:24:interp_algo=bilinear,hwdownload,format=nv12",
        "hwupload,scale_cuda=32:24:interp_algo=bicubic,hwdownload,format=nv12",
        "hwupload,scale_cuda=32:24:interp_algo=lanczos:format=yuv420p,hwdownload,format=yuv420p",
    };
    for (size_t i = 0; i < 3; i++) {
        AVFrame *out[1];
        assert_int_equal(run_filters(filters[i], ramp, 1, out), 1);
        assert_int_equal(out[0]->width, 32);
        assert_true(worst_luma(out[0], ramp, 2) <= 1);
        av_frame_free(&out[0]);
    }
}

/* 8 bits to 10 and back. */
static void test_depth(void **state)
{
    (void)state;
    AVFrame *out[1], *want = draw(noise, 0);
    assert_int_equal(
        run_filters("hwupload,scale_cuda=format=p010,hwdownload,format=p010", noise, 1, out), 1);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            int v = want->data[0][y * want->linesize[0] + x];
            int got = ((uint16_t *)(out[0]->data[0] + y * out[0]->linesize[0]))[x];
            assert_int_equal(got, (v << 8 | v) & 0xffc0);
        }
    av_frame_free(&out[0]);
    assert_int_equal(run_filters("hwupload,scale_cuda=format=p010,scale_cuda=format=nv12,"
                                 "hwdownload,format=nv12",
                                 noise, 1, out),
                     1);
    for (int y = 0; y < HEIGHT; y++)
        assert_memory_equal(out[0]->data[0] + y * out[0]->linesize[0],
                            want->data[0] + y * want->linesize[0], WIDTH);
    av_frame_free(&out[0]);
    av_frame_free(&want);
}

/* Something that moves by two pixels a field, drawn as an interlaced camera would. */
static int moving(int x, int y, int t)
{
    int field = 2 * t + y % 2;
    return (x + 2 * field) % 32 * 4 + y;
}

/* Kept lines are as they were; guessed ones are near what libavfilter guesses on the CPU. */
static void compare_deinterlacer(const char *name)
{
    AVFrame *cuda[FRAMES], *cpu[FRAMES];
    char filters[200];
    snprintf(filters, sizeof filters,
             "setfield=tff,hwupload,%s_cuda=mode=send_frame,hwdownload,format=nv12", name);
    assert_int_equal(run_filters(filters, moving, FRAMES, cuda), FRAMES);
    snprintf(filters, sizeof filters, "setfield=tff,format=yuv420p,%s=mode=send_frame,format=nv12",
             name);
    assert_int_equal(run_filters(filters, moving, FRAMES, cpu), FRAMES);
    for (int t = 0; t < FRAMES; t++) {
        long difference = 0;
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                int got = cuda[t]->data[0][y * cuda[t]->linesize[0] + x];
                if (y % 2 == 0)
                    assert_int_equal(got, moving(x, y, t));
                difference += abs(got - cpu[t]->data[0][y * cpu[t]->linesize[0] + x]);
            }
        print_message("%s, picture %d: mean difference %.3f\n", name, t,
                      (double)difference / (WIDTH * HEIGHT));
        assert_true(difference < WIDTH * HEIGHT);
        av_frame_free(&cuda[t]);
        av_frame_free(&cpu[t]);
    }
}

static void test_yadif(void **state)
{
    (void)state;
    compare_deinterlacer("yadif");
}

static void test_bwdif(void **state)
{
    (void)state;
    if (!avfilter_get_by_name("bwdif_cuda")) {
        print_message("skipped: this libavfilter has no bwdif_cuda\n");
        skip();
    }
    compare_deinterlacer("bwdif");
}

static int open_device(void **state)
{
    (void)state;
    return av_hwdevice_ctx_create(&device, AV_HWDEVICE_TYPE_CUDA, NULL, NULL, 0);
}

/* Nothing is left when the device has gone. */
static int close_device(void **state)
{
    (void)state;
    static const char *const kinds[] = {"memory", "module", "texture",
                                        "stream", "event",  "context"};
    av_buffer_unref(&device);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (simgpu_own(2, kinds[i]) != 0)
            return -1;
    return 0;
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_size), cmocka_unit_test(test_half_size),
        cmocka_unit_test(test_depth),     cmocka_unit_test(test_yadif),
        cmocka_unit_test(test_bwdif),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}

int main(int argc, char **argv)
{
    return simgpu_main(argc, argv, NULL, run_all);
}
