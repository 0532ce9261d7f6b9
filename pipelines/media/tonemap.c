/*
 * What HDR looks like on an SDR screen, and why.
 *
 * Which light. PQ (SMPTE ST 2084, BT.2100) codes the light of the mastering screen in cd/m2. HLG
 * (ARIB STD-B67, BT.2100) codes the scene; its OOTF, Ys^(gamma - 1) with gamma 1.2, says how the
 * nominal screen of 1000 cd/m2 shows it. From there on both are light on a screen.
 *
 * Which white. An SDR reference screen shows its white at 100 cd/m2 (BT.2035), but as a matter of
 * convention: viewers set it as bright as they like. BT.2408 says where that white lies in HDR: at
 * 203 cd/m2 ("HDR reference white": 58 % PQ, 75 % HLG). So SDR white is 203 cd/m2 of HDR here. SDR
 * that was put into HDR after BT.2408 comes back as it was below the knee, faces and walls stay as
 * bright relative to white as they are in SDR programmes, and what HDR has above reference white
 * shares the top of the range. Mapping to 100 cd/m2 instead would lift all of them by a stop.
 *
 * Which curve. BT.2390's EETF from [0, peak of the source] to [0, 203 cd/m2]: in PQ, i.e. evenly
 * for the eye, unchanged up to a knee and a Hermite spline from there to the peak. Both blacks are
 * 0: SDR has no black level to honour, and claimed ones of sources are mostly made up.
 * The peak is the source's MaxCLL, else the peak of its mastering screen (ST 2086), else 1000
 * cd/m2; the planner chooses (pipelines/plan/hdr.c). HLG's is 1000, its nominal screen's.
 *
 * Which colours. The curve is applied to the largest of R, G and B, and the other two keep their
 * ratio to it: no hue shifts, which mapping each by itself gives (orange fire turns yellow), and
 * nothing above white is left, which mapping the luminance gives. Then BT.2020's primaries become
 * BT.709's (BT.2087's matrix, inverted). Colours outside BT.709 move towards the grey of their own
 * luminance until they fit, which keeps luminance and roughly hue; clipping would keep neither.
 *
 * Which signal. The inverse of BT.1886's EOTF with black at 0: the 1/2.4th power. Limited range.
 */
#include "pipelines/media/tonemap.h"

#include <math.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/kernels/host.h"
#include "pipelines/media/planes.h"

enum { WHITE_NITS = 203, HLG_NITS = 1000, PQ_NITS = 10000 };

struct tonemap {
    bool is_hlg;
    double peak; /* in units of white */
    struct tonemap_tables tables;
};

/* --- curves ------------------------------------------------------------------------------------
 */

/* ST 2084; light 1 is 10000 cd/m2. */
static const double pq_m1 = 2610.0 / 16384, pq_m2 = 2523.0 / 4096 * 128, pq_c1 = 3424.0 / 4096,
                    pq_c2 = 2413.0 / 4096 * 32, pq_c3 = 2392.0 / 4096 * 32;

static double pq_light(double code)
{
    double p = pow(code, 1 / pq_m2);
    return pow(fmax(p - pq_c1, 0) / (pq_c2 - pq_c3 * p), 1 / pq_m1);
}

static double pq_code(double light)
{
    double p = pow(light, pq_m1);
    return pow((pq_c1 + pq_c2 * p) / (1 + pq_c3 * p), pq_m2);
}

/* BT.2100's inverse OETF; both from 0 to 1. */
static double hlg_light(double code)
{
    static const double a = 0.17883277, b = 0.28466892, c = 0.55991073;
    return code <= 0.5 ? code * code / 3 : (exp((code - c) / a) + b) / 12;
}

/* BT.2390 5.4.1: the light that is shown for light on the mastering screen, in units of white. */
static double eetf(double light, double peak)
{
    double full = pq_code(peak * WHITE_NITS / PQ_NITS);
    double e1 = fmin(pq_code(light * WHITE_NITS / PQ_NITS) / full, 1);
    double most = pq_code((double)WHITE_NITS / PQ_NITS) / full;
    double knee = 1.5 * most - 0.5;
    if (most >= 1 || e1 <= knee)
        return fmin(light, 1);
    double t = (e1 - knee) / (1 - knee), t2 = t * t, t3 = t2 * t;
    double e2 =
        (2 * t3 - 3 * t2 + 1) * knee + (t3 - 2 * t2 + t) * (1 - knee) + (-2 * t3 + 3 * t2) * most;
    return pq_light(e2 * full) * PQ_NITS / WHITE_NITS;
}

/* --- tables ------------------------------------------------------------------------------------
 */

/* The number at which a cell begins (kernels/tonemap.cu). */
static double cell_value(int i)
{
    double within = (double)(i % TONEMAP_OCTAVE) / TONEMAP_OCTAVE;
    return ldexp(1 + within, i / TONEMAP_OCTAVE - TONEMAP_OCTAVES_TO_ONE) -
           ldexp(1, -TONEMAP_OCTAVES_TO_ONE);
}

static double light_at(const struct tonemap *t, int i)
{
    double code = fmin(fmax(i - TONEMAP_BIAS, 0) / TONEMAP_STEPS, 1);
    return t->is_hlg ? hlg_light(code) : pq_light(code) * PQ_NITS / WHITE_NITS;
}

static double ootf_at(const struct tonemap *t, int i)
{
    (void)t;
    return pow(cell_value(i), 0.2) * HLG_NITS / WHITE_NITS;
}

static double gain_at(const struct tonemap *t, int i)
{
    return i ? eetf(cell_value(i), t->peak) / cell_value(i) : 1;
}

static double signal_at(const struct tonemap *t, int i)
{
    (void)t;
    return pow(cell_value(i), 1 / 2.4);
}

static void fill(const struct tonemap *t, double value_at(const struct tonemap *t, int i),
                 struct kernel_point *points, int n)
{
    for (int i = 0; i < n; i++)
        points[i].at = (float)value_at(t, i);
    for (int i = 0; i < n; i++)
        points[i].rise = i + 1 < n ? points[i + 1].at - points[i].at : 0;
}

/* The start of the last cell before the gain leaves 1. */
static float knee_of(const struct kernel_point *gain)
{
    int i = 0;
    while (gain[i + 1].at == 1 && gain[i + 1].rise == 0)
        i++;
    return (float)cell_value(i);
}

struct tonemap *tonemap_new(const struct source_video *video, int peak_nits)
{
    struct tonemap *t = xcalloc(1, sizeof *t);
    t->is_hlg = !strcmp(video->color_transfer, "arib-std-b67");
    t->peak = fmax(peak_nits, WHITE_NITS) / WHITE_NITS;
    fill(t, light_at, t->tables.light, TONEMAP_LIGHT);
    fill(t, ootf_at, t->tables.ootf, TONEMAP_ONE + 1);
    fill(t, gain_at, t->tables.gain, TONEMAP_OCTAVE * TONEMAP_OCTAVES);
    t->tables.knee = knee_of(t->tables.gain);
    fill(t, signal_at, t->tables.signal, TONEMAP_ONE + 1);
    return t;
}

void tonemap_free(struct tonemap **t)
{
    free_ptr(t);
}

const struct tonemap_tables *tonemap_tables(const struct tonemap *t)
{
    return &t->tables;
}

/* --- the kernel's argument ---------------------------------------------------------------------
 */

/* BT.709's matrix in limited range, with one half added so that cutting rounds. */
static void set_weights(int bits, struct tonemap_params *p)
{
    static const double kr = 0.2126, kg = 0.7152, kb = 0.0722;
    double unit = 1 << (bits - 8), luma = 219 * unit, half = 112 * unit / 2; /* of two pixels */
    float zero = (float)(128 * unit + 0.5);
    p->luma = (struct tonemap_weights){(float)(luma * kr), (float)(luma * kg), (float)(luma * kb),
                                       (float)(16 * unit + 0.5)};
    p->cb = (struct tonemap_weights){(float)(-half * kr / (1 - kb)), (float)(-half * kg / (1 - kb)),
                                     (float)half, zero};
    p->cr = (struct tonemap_weights){(float)half, (float)(-half * kg / (1 - kr)),
                                     (float)(-half * kb / (1 - kr)), zero};
}

/* Chroma lies at (x, y) in halves of a luma sample's distance from the block's first one. */
static void set_siting(enum AVChromaLocation location, struct tonemap_params *p)
{
    static const struct {
        int x, y;
    } sites[AVCHROMA_LOC_NB] = {
        [AVCHROMA_LOC_UNSPECIFIED] = {0, 1}, [AVCHROMA_LOC_LEFT] = {0, 1},
        [AVCHROMA_LOC_CENTER] = {1, 1},      [AVCHROMA_LOC_TOPLEFT] = {0, 0},
        [AVCHROMA_LOC_TOP] = {1, 0},         [AVCHROMA_LOC_BOTTOMLEFT] = {0, 2},
        [AVCHROMA_LOC_BOTTOM] = {1, 2},
    };
    bool is_known = (unsigned)location < AVCHROMA_LOC_NB;
    int x = is_known ? sites[location].x : 0, y = is_known ? sites[location].y : 1;
    p->near_x[0] = (float)x / 4;
    p->near_x[1] = (float)(2 - x) / 4;
    p->near_y[0] = (float)y / 4;
    p->near_y[1] = (float)(2 - y) / 4;
}

int tonemap_params_make(const struct tonemap *t, const AVFrame *in, const AVFrame *out,
                        const struct tonemap_tables *tables, struct tonemap_params *ret,
                        struct err *e)
{
    const struct planes *from = planes_of(in), *to = planes_of(out);
    if (!from || !to || from->bits != 10 || in->width != out->width || in->height != out->height)
        return err_set(e, ERR_BUG, "tone mapping: format %d to %d, %dx%d to %dx%d", in->format,
                       out->format, in->width, in->height, out->width, out->height);
    struct tonemap_params *p = ret;
    *p = (struct tonemap_params){
        .tables = tables,
        .width = in->width,
        .height = in->height,
        .in_step = from->step,
        .in_shift = from->shift,
        .out_step = to->step,
        .out_bytes = to->bytes,
        .out_shift = to->shift,
        .is_hlg = t->is_hlg,
    };
    p->in_y = planes_data(from, in, 0, &p->in_pitch_y);
    p->in_u = planes_data(from, in, 1, &p->in_pitch_u);
    p->in_v = planes_data(from, in, 2, &p->in_pitch_v);
    p->out_y = planes_data(to, out, 0, &p->out_pitch_y);
    p->out_u = planes_data(to, out, 1, &p->out_pitch_u);
    p->out_v = planes_data(to, out, 2, &p->out_pitch_v);
    set_siting(in->chroma_location, p);
    set_weights(to->bits, p);
    return 0;
}

void tonemap_threads(const AVFrame *in, int *ret_width, int *ret_height)
{
    *ret_width = (in->width + 1) / 2;
    *ret_height = (in->height + 1) / 2;
}

/* --- frames ------------------------------------------------------------------------------------
 */

int tonemap_describe(const AVFrame *in, AVFrame *out, struct err *e)
{
    static const enum AVFrameSideDataType hdr[] = {
        AV_FRAME_DATA_MASTERING_DISPLAY_METADATA,
        AV_FRAME_DATA_CONTENT_LIGHT_LEVEL,
        AV_FRAME_DATA_DYNAMIC_HDR_PLUS,
        AV_FRAME_DATA_DYNAMIC_HDR_VIVID,
        AV_FRAME_DATA_DOVI_RPU_BUFFER,
        AV_FRAME_DATA_DOVI_METADATA,
    };
    if (av_frame_copy_props(out, in) < 0)
        return err_set(e, ERR_RESOURCE, "tone mapping: out of memory");
    for (size_t i = 0; i < sizeof hdr / sizeof *hdr; i++)
        av_frame_remove_side_data(out, hdr[i]);
    out->color_primaries = AVCOL_PRI_BT709;
    out->color_trc = AVCOL_TRC_BT709;
    out->colorspace = AVCOL_SPC_BT709;
    out->color_range = AVCOL_RANGE_MPEG;
    out->chroma_location = AVCHROMA_LOC_LEFT;
    return 0;
}

int tonemap_frame(const struct tonemap *t, enum AVPixelFormat format, AVFrame *frame, struct err *e)
{
    cleanup(av_frame_free) AVFrame *out = av_frame_alloc();
    if (!out)
        return err_set(e, ERR_RESOURCE, "tone mapping: out of memory");
    out->format = format;
    out->width = frame->width;
    out->height = frame->height;
    struct tonemap_params params;
    int width, height, status = 0;
    if (av_frame_get_buffer(out, 0) < 0)
        return err_set(e, ERR_RESOURCE, "tone mapping: out of memory for a picture of %dx%d",
                       frame->width, frame->height);
    if ((status = tonemap_describe(frame, out, e)) < 0 ||
        (status = tonemap_params_make(t, frame, out, &t->tables, &params, e)) < 0)
        return status;
    tonemap_threads(frame, &width, &height);
    kernel_host_tonemap(&params, width, height, 1);
    av_frame_unref(frame);
    av_frame_move_ref(frame, out);
    return 0;
}
