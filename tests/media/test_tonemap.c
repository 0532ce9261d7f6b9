/*
 * Tone mapping and thumbnails against references in double precision, written here from the ITU's
 * documents and not from the product's source: every sample of ramps and of random pictures within
 * one code value. Then a whole HDR10 clip through video_chunk_run.
 */
#include <fcntl.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/kernels/host.h"
#include "pipelines/media/probe.h"
#include "pipelines/media/task.h"
#include "pipelines/media/thumbnail.h"
#include "pipelines/media/tonemap.h"
#include "tests/support/clip.h"
#include "tests/support/opened.h"
#include "tests/support/scratch.h"

/* --- pictures ----------------------------------------------------------------------------------
 */

static AVFrame *frame_new(enum AVPixelFormat format, int width, int height)
{
    AVFrame *f = av_frame_alloc();
    assert_non_null(f);
    f->format = format;
    f->width = width;
    f->height = height;
    assert_int_equal(av_frame_get_buffer(f, 0), 0);
    return f;
}

/* The sample of a component at (x, y) of its plane, in any of the formats at hand. */
static uint8_t *sample_at(const AVFrame *f, int component, int x, int y)
{
    bool is_packed = f->format == AV_PIX_FMT_P010 || f->format == AV_PIX_FMT_NV12;
    int bytes = f->format == AV_PIX_FMT_YUV420P || f->format == AV_PIX_FMT_NV12 ? 1 : 2;
    int plane = is_packed && component ? 1 : component;
    int column = is_packed && component ? 2 * x + component - 1 : x;
    return f->data[plane] + (ptrdiff_t)y * f->linesize[plane] + column * bytes;
}

static int get(const AVFrame *f, int component, int x, int y)
{
    const uint8_t *at = sample_at(f, component, x, y);
    if (f->format == AV_PIX_FMT_YUV420P || f->format == AV_PIX_FMT_NV12)
        return *at;
    int word = at[0] | at[1] << 8;
    return f->format == AV_PIX_FMT_P010 ? word >> 6 : word;
}

static void set(AVFrame *f, int component, int x, int y, int value)
{
    uint8_t *at = sample_at(f, component, x, y);
    int word = f->format == AV_PIX_FMT_P010 ? value << 6 : value;
    at[0] = (uint8_t)word;
    if (f->format == AV_PIX_FMT_YUV420P10 || f->format == AV_PIX_FMT_P010)
        at[1] = (uint8_t)(word >> 8);
}

static int width_of(const AVFrame *f, int component)
{
    return component ? (f->width + 1) / 2 : f->width;
}

static int height_of(const AVFrame *f, int component)
{
    return component ? (f->height + 1) / 2 : f->height;
}

static uint32_t seed;

static int random_to(int n)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (uint32_t)n);
}

typedef int picture(int component, int x, int y);

static int grey_ramp(int component, int x, int y)
{
    return component ? 512 : (x + 64 * y) % 1024;
}

static int colour_ramp(int component, int x, int y)
{
    return component == 0   ? 64 + (7 * x + 13 * y) % 877
           : component == 1 ? 64 + (5 * x + 2 * y) % 897
                            : 64 + (3 * x + 11 * y) % 897;
}

static int noise(int component, int x, int y)
{
    (void)component, (void)x, (void)y;
    return random_to(1024);
}

static int soft_noise(int component, int x, int y)
{
    (void)x, (void)y;
    return component ? 412 + random_to(200) : 64 + random_to(700);
}

static void fill(AVFrame *f, picture *p)
{
    seed = 1;
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < height_of(f, c); y++)
            for (int x = 0; x < width_of(f, c); x++)
                set(f, c, x, y, p(c, x, y));
}

/* --- the reference -----------------------------------------------------------------------------
 */

static double clamp(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

/* BT.2100 table 4. */
static double pq_to_nits(double e)
{
    double m1 = 0.1593017578125, m2 = 78.84375, c1 = 0.8359375, c2 = 18.8515625, c3 = 18.6875;
    double p = pow(e, 1 / m2), top = p - c1 > 0 ? p - c1 : 0;
    return 10000 * pow(top / (c2 - c3 * p), 1 / m1);
}

static double nits_to_pq(double nits)
{
    double m1 = 0.1593017578125, m2 = 78.84375, c1 = 0.8359375, c2 = 18.8515625, c3 = 18.6875;
    double y = pow(nits / 10000, m1);
    return pow((c1 + c2 * y) / (1 + c3 * y), m2);
}

/* BT.2100 table 5, the inverse of the OETF. */
static double hlg_to_scene(double e)
{
    double a = 0.17883277, b = 1 - 4 * a, c = 0.5 - a * log(4 * a);
    return e <= 0.5 ? e * e / 3 : (exp((e - c) / a) + b) / 12;
}

/* BT.2390 section 5.4.1, from black 0 to black 0. */
static double eetf(double nits, double source_peak, double target_peak)
{
    double lw = nits_to_pq(source_peak), max = nits_to_pq(target_peak) / lw;
    double e1 = clamp(nits_to_pq(nits) / lw, 0, 1), ks = 1.5 * max - 0.5;
    if (source_peak <= target_peak)
        return nits < target_peak ? nits : target_peak;
    if (e1 < ks)
        return nits;
    double t = (e1 - ks) / (1 - ks);
    double e2 = (2 * pow(t, 3) - 3 * pow(t, 2) + 1) * ks +
                (pow(t, 3) - 2 * pow(t, 2) + t) * (1 - ks) + (-2 * pow(t, 3) + 3 * pow(t, 2)) * max;
    return pq_to_nits(e2 * lw);
}

struct colour {
    double c[3];
};

struct reference {
    bool is_hlg;
    double peak;
    double site_x, site_y; /* of chroma, in luma samples */
};

/* Display light (cd/m2) of BT.2020 R'G'B'. */
static struct colour display_light(const struct reference *r, const double rgb[3])
{
    struct colour l;
    for (int i = 0; i < 3; i++) {
        double e = clamp(rgb[i], 0, 1);
        l.c[i] = r->is_hlg ? hlg_to_scene(e) : pq_to_nits(e);
    }
    if (r->is_hlg) {
        double y = 0.2627 * l.c[0] + 0.6780 * l.c[1] + 0.0593 * l.c[2];
        for (int i = 0; i < 3; i++)
            l.c[i] *= y > 0 ? 1000 * pow(y, 1.2 - 1) : 0;
    }
    return l;
}

/* BT.709 R'G'B' of a 10-bit BT.2020 Y'CbCr. */
static struct colour map_colour(const struct reference *r, double y, double cb, double cr)
{
    static const double to709[3][3] = {{1.660491, -0.587641, -0.072850},
                                       {-0.124550, 1.132900, -0.008349},
                                       {-0.018151, -0.100579, 1.118730}};
    y = (y - 64) / 876;
    cb = (cb - 512) / 896;
    cr = (cr - 512) / 896;
    double rp = y + 2 * (1 - 0.2627) * cr, bp = y + 2 * (1 - 0.0593) * cb;
    double rgb[3] = {rp, (y - 0.2627 * rp - 0.0593 * bp) / 0.6780, bp};
    struct colour l = display_light(r, rgb), out;
    double most = fmax(fmax(l.c[0], l.c[1]), l.c[2]);
    double gain = most > 0 ? eetf(most, r->peak, 203) / most / 203 : 0;
    double luminance = gain * (0.2627 * l.c[0] + 0.6780 * l.c[1] + 0.0593 * l.c[2]);
    double keep = 1;
    luminance = fmin(luminance, 1);
    for (int i = 0; i < 3; i++) {
        out.c[i] = gain * (to709[i][0] * l.c[0] + to709[i][1] * l.c[1] + to709[i][2] * l.c[2]);
        if (out.c[i] < 0)
            keep = fmin(keep, luminance / (luminance - out.c[i]));
        if (out.c[i] > 1)
            keep = fmin(keep, (1 - luminance) / (out.c[i] - luminance));
    }
    for (int i = 0; i < 3; i++)
        out.c[i] = pow(clamp(luminance + keep * (out.c[i] - luminance), 0, 1), 1 / 2.4);
    return out;
}

/* Chroma at a luma sample, between the four samples around it. */
static double chroma_at(const struct reference *r, const AVFrame *f, int component, int x, int y)
{
    double cx = clamp((x - r->site_x) / 2, 0, width_of(f, 1) - 1);
    double cy = clamp((y - r->site_y) / 2, 0, height_of(f, 1) - 1);
    int x0 = (int)cx, y0 = (int)cy;
    int x1 = x0 + 1 < width_of(f, 1) ? x0 + 1 : x0, y1 = y0 + 1 < height_of(f, 1) ? y0 + 1 : y0;
    double fx = cx - x0, fy = cy - y0;
    return (1 - fy) * ((1 - fx) * get(f, component, x0, y0) + fx * get(f, component, x1, y0)) +
           fy * ((1 - fx) * get(f, component, x0, y1) + fx * get(f, component, x1, y1));
}

static struct colour map_pixel(const struct reference *r, const AVFrame *f, int x, int y)
{
    y = y < f->height ? y : f->height - 1;
    return map_colour(r, get(f, 0, x, y), chroma_at(r, f, 1, x, y), chroma_at(r, f, 2, x, y));
}

/* The exact value of a sample out, in codes of `bits` bits. Below the last row of an odd height
 * lies the same row again. */
static double reference_sample(const struct reference *r, const AVFrame *f, int component, int x,
                               int y, int bits)
{
    double unit = 1 << (bits - 8);
    if (!component) {
        struct colour c = map_pixel(r, f, x, y);
        return unit * (16 + 219 * (0.2126 * c.c[0] + 0.7152 * c.c[1] + 0.0722 * c.c[2]));
    }
    struct colour a = map_pixel(r, f, 2 * x, 2 * y), b = map_pixel(r, f, 2 * x, 2 * y + 1);
    double rgb[3];
    for (int i = 0; i < 3; i++)
        rgb[i] = (a.c[i] + b.c[i]) / 2;
    double luma = 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
    double diff = component == 1 ? (rgb[2] - luma) / 1.8556 : (rgb[0] - luma) / 1.5748;
    return unit * (128 + 224 * diff);
}

static const struct {
    enum AVChromaLocation location;
    double x, y;
} sites[] = {
    {AVCHROMA_LOC_UNSPECIFIED, 0, 0.5}, {AVCHROMA_LOC_LEFT, 0, 0.5},
    {AVCHROMA_LOC_CENTER, 0.5, 0.5},    {AVCHROMA_LOC_TOPLEFT, 0, 0},
    {AVCHROMA_LOC_TOP, 0.5, 0},         {AVCHROMA_LOC_BOTTOMLEFT, 0, 1},
    {AVCHROMA_LOC_BOTTOM, 0.5, 1},
};

/* Every sample of `out` within one code of what it should be of `in`. */
static void check_picture(const AVFrame *in, const AVFrame *out, bool is_hlg, int peak,
                          const char *what)
{
    struct reference r = {.is_hlg = is_hlg, .peak = is_hlg ? 1000 : peak};
    int bits = out->format == AV_PIX_FMT_YUV420P || out->format == AV_PIX_FMT_NV12 ? 8 : 10;
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++)
        if (sites[i].location == in->chroma_location) {
            r.site_x = sites[i].x;
            r.site_y = sites[i].y;
        }
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < height_of(in, c); y++)
            for (int x = 0; x < width_of(in, c); x++) {
                double exact = reference_sample(&r, in, c, x, y, bits);
                if (abs(get(out, c, x, y) - (int)lrint(exact)) > 1)
                    fail_msg("%s, %s, peak %d: component %d at (%d, %d): %d, expected %.2f", what,
                             is_hlg ? "HLG" : "PQ", peak, c, x, y, get(out, c, x, y), exact);
            }
}

static struct tonemap *tonemap_of(bool is_hlg, int peak)
{
    const struct source_video v = {.color_transfer = is_hlg ? "arib-std-b67" : "smpte2084"};
    return tonemap_new(&v, peak);
}

static AVFrame *mapped(const struct tonemap *t, const AVFrame *in, enum AVPixelFormat format)
{
    struct err e;
    AVFrame *out = av_frame_clone(in);
    assert_non_null(out);
    if (tonemap_frame(t, format, out, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(out->format, format);
    return out;
}

/* --- tests of the picture ----------------------------------------------------------------------
 */

static void test_against_reference(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        picture *p;
    } pictures[] = {{"grey ramp", grey_ramp},
                    {"colour ramp", colour_ramp},
                    {"noise", noise},
                    {"soft noise", soft_noise}};
    static const int peaks[] = {203, 400, 1000, 4000, 10000};
    for (int is_hlg = 0; is_hlg < 2; is_hlg++)
        for (size_t k = 0; k < (is_hlg ? 1 : sizeof peaks / sizeof *peaks); k++) {
            int peak = is_hlg ? 1000 : peaks[k];
            struct tonemap *t = tonemap_of(is_hlg, peak);
            for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
                cleanup(av_frame_free) AVFrame *in = frame_new(AV_PIX_FMT_YUV420P10, 96, 34);
                fill(in, pictures[i].p);
                cleanup(av_frame_free) AVFrame *out = mapped(t, in, AV_PIX_FMT_YUV420P);
                check_picture(in, out, is_hlg, peak, pictures[i].name);
            }
            tonemap_free(&t);
        }
}

static void test_formats_and_sites(void **state)
{
    (void)state;
    static const enum AVPixelFormat from[] = {AV_PIX_FMT_YUV420P10, AV_PIX_FMT_P010},
                                    to[] = {AV_PIX_FMT_YUV420P, AV_PIX_FMT_NV12,
                                            AV_PIX_FMT_YUV420P10, AV_PIX_FMT_P010};
    struct tonemap *t = tonemap_of(false, 1000);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 4; k++)
            for (size_t s = 0; s < sizeof sites / sizeof *sites; s++) {
                cleanup(av_frame_free) AVFrame *in = frame_new(from[i], 38, 12);
                fill(in, soft_noise);
                in->chroma_location = sites[s].location;
                cleanup(av_frame_free) AVFrame *out = mapped(t, in, to[k]);
                check_picture(in, out, false, 1000, "site or format");
                assert_int_equal(out->chroma_location, AVCHROMA_LOC_LEFT);
            }
    tonemap_free(&t);
}

/* Odd sizes, and sizes that do not fill the vectors of the CPU. Nothing beyond the picture is
 * touched: a wall stands right of each row. */
static void test_sizes(void **state)
{
    (void)state;
    struct tonemap *t = tonemap_of(true, 1000);
    struct err e;
    for (int w = 1; w <= 21; w++)
        for (int h = 1; h <= 5; h++) {
            cleanup(av_frame_free) AVFrame *in = frame_new(AV_PIX_FMT_YUV420P10, w, h);
            cleanup(av_frame_free) AVFrame *out = frame_new(AV_PIX_FMT_NV12, w, h);
            struct tonemap_params params;
            fill(in, soft_noise);
            memset(out->data[0], 0xee, (size_t)out->linesize[0] * (size_t)h);
            memset(out->data[1], 0xee, (size_t)out->linesize[1] * (size_t)height_of(out, 1));
            assert_int_equal(tonemap_params_make(t, in, out, tonemap_tables(t), &params, &e), 0);
            kernel_host_tonemap(&params, 32, 8, 1);
            check_picture(in, out, true, 1000, "size");
            for (int y = 0; y < h; y++)
                assert_int_equal(out->data[0][y * out->linesize[0] + w], 0xee);
            for (int y = 0; y < height_of(out, 1); y++)
                assert_int_equal(out->data[1][y * out->linesize[1] + 2 * width_of(out, 1)], 0xee);
        }
    tonemap_free(&t);
}

static int code_of(bool is_hlg, int peak, int y, int cb, int cr, int component)
{
    struct tonemap *t = tonemap_of(is_hlg, peak);
    cleanup(av_frame_free) AVFrame *in = frame_new(AV_PIX_FMT_YUV420P10, 16, 16);
    const int value[] = {y, cb, cr};
    for (int c = 0; c < 3; c++)
        for (int row = 0; row < height_of(in, c); row++)
            for (int x = 0; x < width_of(in, c); x++)
                set(in, c, x, row, value[c]);
    cleanup(av_frame_free) AVFrame *out = mapped(t, in, AV_PIX_FMT_YUV420P);
    tonemap_free(&t);
    return get(out, component, component ? 3 : 7, component ? 3 : 7);
}

/* Values that can be looked up or worked out by hand. PQ 573 is 58 %: 203 cd/m2; 397 is 26 cd/m2,
 * which BT.2408 names for an 18 % grey card: below the knee, so (26 / 203)^(1/2.4) of the range. */
static void test_known_points(void **state)
{
    (void)state;
    static const struct {
        bool is_hlg;
        int peak, y, cb, cr, component, expected, within;
    } points[] = {
        {false, 1000, 64, 512, 512, 0, 16, 0},   /* black */
        {false, 1000, 4, 512, 512, 0, 16, 0},    /* below it */
        {false, 1000, 940, 512, 512, 0, 235, 0}, /* 10000 cd/m2, beyond the peak */
        {false, 1000, 1019, 512, 512, 0, 235, 0},
        {false, 1000, 723, 512, 512, 0, 235, 0}, /* 1000 cd/m2: the peak is white */
        {false, 203, 573, 512, 512, 0, 235, 1},  /* 203 cd/m2: nothing to map, white is white */
        {false, 1000, 397, 512, 512, 0, 109, 1}, /* 26 cd/m2 */
        {false, 4000, 397, 512, 512, 0, 109, 1},
        {true, 1000, 64, 512, 512, 0, 16, 0},
        {true, 1000, 940, 512, 512, 0, 235, 0},  /* HLG 100 %: 1000 cd/m2 */
        {true, 1000, 396, 512, 512, 0, 109, 1},  /* HLG 38 %: 26 cd/m2 */
        {false, 1000, 500, 512, 512, 1, 128, 0}, /* grey is grey */
        {true, 1000, 500, 512, 512, 2, 128, 0},
    };
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        int code = code_of(points[i].is_hlg, points[i].peak, points[i].y, points[i].cb,
                           points[i].cr, points[i].component);
        if (abs(code - points[i].expected) > points[i].within)
            fail_msg("point %zu: %d, expected %d", i, code, points[i].expected);
    }
    /* HDR reference white is one light, 75 % HLG or 58 % PQ, and lies well below SDR's white. */
    int pq = code_of(false, 1000, 573, 512, 512, 0), hlg = code_of(true, 1000, 721, 512, 512, 0);
    assert_true(abs(pq - hlg) <= 1);
    assert_in_range(pq, 205, 220);
}

/* More light in is never less light out, and no grey gets a colour. */
static void test_monotonic(void **state)
{
    (void)state;
    static const int peaks[] = {203, 1000, 10000};
    for (int is_hlg = 0; is_hlg < 2; is_hlg++)
        for (size_t k = 0; k < sizeof peaks / sizeof *peaks; k++) {
            struct tonemap *t = tonemap_of(is_hlg, peaks[k]);
            cleanup(av_frame_free) AVFrame *in = frame_new(AV_PIX_FMT_YUV420P10, 1024, 2);
            for (int c = 0; c < 3; c++)
                for (int y = 0; y < height_of(in, c); y++)
                    for (int x = 0; x < width_of(in, c); x++)
                        set(in, c, x, y, c ? 512 : x);
            cleanup(av_frame_free) AVFrame *out = mapped(t, in, AV_PIX_FMT_YUV420P10);
            for (int x = 1; x < 1024; x++)
                assert_true(get(out, 0, x, 0) >= get(out, 0, x - 1, 0));
            for (int x = 0; x < 512; x++)
                assert_true(get(out, 1, x, 0) == 512 && get(out, 2, x, 0) == 512);
            tonemap_free(&t);
        }
}

/* No word of HDR is left on the picture. */
static void test_properties(void **state)
{
    (void)state;
    struct tonemap *t = tonemap_of(false, 1000);
    cleanup(av_frame_free) AVFrame *in = frame_new(AV_PIX_FMT_YUV420P10, 16, 16);
    fill(in, grey_ramp);
    in->pts = 42;
    in->color_primaries = AVCOL_PRI_BT2020;
    in->color_trc = AVCOL_TRC_SMPTE2084;
    in->colorspace = AVCOL_SPC_BT2020_NCL;
    assert_non_null(av_frame_new_side_data(in, AV_FRAME_DATA_MASTERING_DISPLAY_METADATA, 64));
    assert_non_null(av_frame_new_side_data(in, AV_FRAME_DATA_CONTENT_LIGHT_LEVEL, 8));
    assert_non_null(av_frame_new_side_data(in, AV_FRAME_DATA_A53_CC, 3));
    cleanup(av_frame_free) AVFrame *out = mapped(t, in, AV_PIX_FMT_YUV420P);
    assert_int_equal(out->pts, 42);
    assert_int_equal(out->color_primaries, AVCOL_PRI_BT709);
    assert_int_equal(out->color_trc, AVCOL_TRC_BT709);
    assert_int_equal(out->colorspace, AVCOL_SPC_BT709);
    assert_int_equal(out->color_range, AVCOL_RANGE_MPEG);
    assert_int_equal(out->nb_side_data, 1);
    assert_int_equal(out->side_data[0]->type, AV_FRAME_DATA_A53_CC);
    struct err e;
    cleanup(av_frame_free) AVFrame *wrong = frame_new(AV_PIX_FMT_YUV420P, 16, 16);
    assert_int_equal(tonemap_frame(t, AV_PIX_FMT_YUV420P, wrong, &e), -ERR_BUG);
    tonemap_free(&t);
}

/* --- thumbnails --------------------------------------------------------------------------------
 */

/* The mean over the area that a sample covers, by adding up exact overlaps. */
static double area_mean(const AVFrame *in, int component, int x, int y, int out_w, int out_h)
{
    double sx = (double)width_of(in, component) / out_w,
           sy = (double)height_of(in, component) / out_h;
    double sum = 0, area = 0;
    for (int r = 0; r < height_of(in, component); r++)
        for (int c = 0; c < width_of(in, component); c++) {
            double w = fmin(c + 1, (x + 1) * sx) - fmax(c, x * sx);
            double h = fmin(r + 1, (y + 1) * sy) - fmax(r, y * sy);
            if (w <= 0 || h <= 0)
                continue;
            sum += w * h * get(in, component, c, r);
            area += w * h;
        }
    return sum / area;
}

static void test_thumbnails(void **state)
{
    (void)state;
    static const enum AVPixelFormat formats[] = {AV_PIX_FMT_YUV420P, AV_PIX_FMT_NV12,
                                                 AV_PIX_FMT_YUV420P10, AV_PIX_FMT_P010};
    static const int sizes[][4] = {
        {64, 36, 16, 9}, {37, 23, 10, 7}, {20, 20, 20, 20}, {9, 9, 1, 1}, {9, 7, 12, 20}};
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            struct err e;
            cleanup(av_frame_free) AVFrame *in = frame_new(formats[k], sizes[i][0], sizes[i][1]);
            cleanup(av_frame_free) AVFrame *out = NULL;
            double unit = k < 2 ? 1 : 4;
            fill(in, noise);
            in->pts = 7;
            assert_int_equal(thumbnail_frame(in, sizes[i][2], sizes[i][3], &out, &e), 0);
            assert_int_equal(out->pts, 7);
            for (int c = 0; c < 3; c++)
                for (int y = 0; y < height_of(out, c); y++)
                    for (int x = 0; x < width_of(out, c); x++) {
                        double exact = area_mean(in, c, x, y, width_of(out, c), height_of(out, c));
                        exact = fmin(exact / unit, 255);
                        if (fabs(get(out, c, x, y) - exact) > 0.5 + 1e-9)
                            fail_msg("component %d at (%d, %d): %d, expected %.3f", c, x, y,
                                     get(out, c, x, y), exact);
                    }
        }
    struct err e;
    AVFrame *none = NULL;
    cleanup(av_frame_free) AVFrame *other = frame_new(AV_PIX_FMT_YUV422P, 16, 16);
    assert_int_equal(thumbnail_frame(other, 8, 8, &none, &e), -ERR_BUG);
    assert_null(none);
}

/* --- a whole clip ------------------------------------------------------------------------------
 */

enum { FRAMES = 20 };

static int decode_into(AVCodecContext *dec, const AVPacket *pkt, AVFrame *ret[FRAMES], int n)
{
    assert_true(avcodec_send_packet(dec, pkt) >= 0);
    for (;;) {
        AVFrame *f = av_frame_alloc();
        if (avcodec_receive_frame(dec, f) < 0) {
            av_frame_free(&f);
            return n;
        }
        assert_true(n < FRAMES);
        ret[n++] = f;
    }
}

static int decode_all(const char *path, AVFrame *ret[FRAMES])
{
    AVFormatContext *format = NULL;
    assert_true(avformat_open_input(&format, path, NULL, NULL) >= 0);
    assert_true(avformat_find_stream_info(format, NULL) >= 0);
    const AVCodecParameters *par = format->streams[0]->codecpar;
    AVCodecContext *dec = avcodec_alloc_context3(avcodec_find_decoder(par->codec_id));
    assert_true(avcodec_parameters_to_context(dec, par) >= 0);
    assert_true(avcodec_open2(dec, NULL, NULL) >= 0);
    AVPacket *pkt = av_packet_alloc();
    int n = 0;
    for (; av_read_frame(format, pkt) >= 0; av_packet_unref(pkt))
        n = decode_into(dec, pkt, ret, n);
    n = decode_into(dec, NULL, ret, n);
    av_packet_free(&pkt);
    avcodec_free_context(&dec);
    avformat_close_input(&format);
    return n;
}

static void on_file(void *arg, const char *path, int64_t bytes)
{
    (void)arg, (void)path, (void)bytes;
}

static void on_progress(void *arg, int64_t in, int64_t out)
{
    (void)arg, (void)in, (void)out;
}

static void ok(int status, const struct err *e)
{
    if (status < 0)
        fail_msg("%s", e->msg);
}

/* Runs the chunk and decodes what it wrote. */
static int run_chunk(struct opened *o, const struct source *source, const struct plan *plan,
                     const struct plan_chunk *chunk, AVFrame *ret[FRAMES])
{
    struct err e;
    struct manifest *m = NULL;
    char dir[] = "/tmp/test_tonemap.XXXXXX";
    assert_non_null(mkdtemp(dir));
    int scratch = open(dir, O_RDONLY | O_DIRECTORY);
    struct task_events events = {.file = on_file, .progress = on_progress};
    struct warm warm = {0};
    struct device *device = NULL;
    ok(device_open("cpu", &device, &e), &e);
    ok(video_chunk_run(&warm, o->in, &o->limits, device, source, plan, chunk, scratch, &events, &m,
                       &e),
       &e);
    warm_clear(&warm);
    device_close(&device);
    ok(manifest_check_video(m, plan, chunk, &e), &e);
    assert_string_equal(m->tracks[0].video_range, "SDR");
    assert_int_equal(m->tracks[0].n_segments, 1);
    cleanup(free_ptr) char *folder = xasprintf("%s/%s", dir, m->tracks[0].rendition);
    cleanup(free_ptr) char *joined = xasprintf("%s/joined.mp4", dir);
    cleanup(free_ptr) char *join = xasprintf("cat %s/%s %s/%s >%s", folder, m->tracks[0].init,
                                             folder, m->tracks[0].segments[0].name, joined);
    assert_int_equal(system(join), 0);
    int n = decode_all(joined, ret);
    cleanup(free_ptr) char *tidy = xasprintf("rm -r %s", dir);
    assert_int_equal(system(tidy), 0);
    bind_free(&manifest_type, &m);
    close(scratch);
    return n;
}

/* Lossless out, so that every sample can be held against the reference. The peak comes from the
 * clip's MaxCLL, which only its first keyframe carries, but rules both chunks. */
static void test_clip(void **state)
{
    (void)state;
    static const char profile_text[] =
        "{encoder: libx264, preset: ultrafast, gop: 1, segment: 1, renditions: [{height: 72, crf: "
        "0}]}";
    struct err e;
    const struct clip_options options = {
        .codec = "libx265",
        .width = 128,
        .height = 72,
        .pix_fmt = "yuv420p10le",
        .fps = {10, 1},
        .frames = FRAMES,
        .color_primaries = "bt2020",
        .color_transfer = "smpte2084",
        .color_space = "bt2020nc",
        .video_options = "x265-params=log-level=error\\:keyint=10\\:scenecut=0\\:open-gop=0\\:"
                         "bframes=0\\:max-cll=650,200",
    };
    const char *path = clip_in_scratch("pq.mp4", &options);
    AVFrame *source_frames[FRAMES], *out[FRAMES];
    assert_int_equal(decode_all(path, source_frames), FRAMES);
    struct opened o = {0};
    opened_must(&o, path);
    struct source *source = NULL;
    struct profile *profile = NULL;
    struct plan *plan = NULL;
    ok(bind_parse(&profile_type, profile_text, strlen(profile_text), "profile", ERR_CONFIG,
                  &profile, &e),
       &e);
    ok(probe_source(o.in, &o.limits, profile->segment, NULL, NULL, &source, &e), &e);
    assert_int_equal(source->video->max_cll, 650);
    ok(plan_make(profile, source, &(struct plan_options){.segments = -1}, &plan, &e), &e);
    assert_true(plan->is_tonemapped);
    assert_int_equal(plan->peak_nits, 650);
    for (int c = 0; c < 2; c++) {
        struct plan_chunk chunk = {
            .index = c,
            .first_segment = c,
            .end_segment = c ? INT64_MAX : 1,
            .seek_pts = c ? source->video->borders[0].key_pts : INT64_MIN,
        };
        assert_int_equal(run_chunk(&o, source, plan, &chunk, out), FRAMES / 2);
        for (int i = 0; i < FRAMES / 2; i++) {
            assert_int_equal(out[i]->color_primaries, AVCOL_PRI_BT709);
            assert_int_equal(out[i]->color_trc, AVCOL_TRC_BT709);
            assert_int_equal(out[i]->colorspace, AVCOL_SPC_BT709);
            assert_int_equal(out[i]->color_range, AVCOL_RANGE_MPEG);
            check_picture(source_frames[c * FRAMES / 2 + i], out[i], false, 650, "clip");
            av_frame_free(&out[i]);
        }
    }
    for (int i = 0; i < FRAMES; i++)
        av_frame_free(&source_frames[i]);
    bind_free(&plan_type, &plan);
    bind_free(&source_type, &source);
    bind_free(&profile_type, &profile);
    opened_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_reference),
        cmocka_unit_test(test_formats_and_sites),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_known_points),
        cmocka_unit_test(test_monotonic),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_thumbnails),
        cmocka_unit_test(test_clip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
