/*
 * HDR to SDR, one thread for each 2x2 block. What is computed, and by which of the ITU's documents,
 * is said in pipelines/media/tonemap.c, where the tables come from; here is how:
 *
 *     Y'CbCr -> R'G'B' -> light (table) -> x gain (table, by the largest component)
 *            -> BT.709 primaries -> desaturate what they cannot show -> signal (table) -> Y'CbCr
 *
 * Chroma is interpolated from where its samples lie to each of the four pixels. Chroma out lies
 * where H.264 and HEVC put it when nothing is said: on the left column, half-way between two rows;
 * so it is that of the mean of the block's two left pixels.
 *
 * A curve by cell has its points close together where numbers are small. A number's cell is, after
 * adding a small number, the leading bits of the float itself, and the other bits are its share of
 * the way to the next point: no logarithm. The straight lines between points matter: a colour near
 * the edge of BT.709 is a small difference of large numbers, and gamma makes much of small ones.
 */
#include "pipelines/media/kernels/kernel.h"
#include "pipelines/media/kernels/params.h"

struct light {
    real r, g, b;
};

struct signal {
    real r, g, b;
};

KERNEL_FUNCTION real by_cell(const struct kernel_point *curve, real v)
{
    const float small = 1.52587890625e-5f; /* 2^-TONEMAP_OCTAVES_TO_ONE ... */
    const int bits = (127 - 16) << 23;     /* ... whose bits these are */
    whole at = bits_of(v + small) - bits;
    return look_up(curve, at >> 17, KERNEL_REAL(at & 0x1ffff) * 7.62939453125e-6f); /* 2^-17 */
}

/* Of BT.2020 light. */
KERNEL_FUNCTION real luminance(struct light c)
{
    return 0.2627f * c.r + 0.6780f * c.g + 0.0593f * c.b;
}

/* What lies outside of 0 to 1 moves towards the grey of the same luminance, as far as it takes.
 * What fits is divided by itself and moves by nothing, so a lane does not see what its neighbours
 * need. */
KERNEL_FUNCTION struct light desaturate(struct light c, real grey)
{
    const float tiny = 1e-20f; /* black would be 0/0 */
    real zero = grey - grey, one = zero + 1.0f;
    real low = least(least(least(c.r, c.g), c.b), zero);
    real high = most(most(most(c.r, c.g), c.b), one);
    if (!is_any((low < zero) | (high > one)))
        return c;
    grey = least(grey, one);
    real keep =
        least((grey + tiny) / (grey + tiny - low), (one - grey + tiny) / (high - grey + tiny));
    c.r = least(most(c.r + (one - keep) * (grey - c.r), zero), one);
    c.g = least(most(c.g + (one - keep) * (grey - c.g), zero), one);
    c.b = least(most(c.b + (one - keep) * (grey - c.b), zero), one);
    return c;
}

/* The light of one component of R'G'B', by BT.2020's matrix (non-constant luminance): luma is in
 * steps of light[] already, cb and cr in 10-bit codes, of a range of 896 where luma has 876. */
KERNEL_FUNCTION real light(const struct tonemap_tables *t, real luma, real cb, real cr,
                           double of_cb, double of_cr)
{
    const double step = 4.0 * 876 / 896;
    real at = luma + (float)(of_cb * step) * cb + (float)(of_cr * step) * cr;
    whole i = KERNEL_WHOLE(at);
    return look_up(t->light, i, at - KERNEL_REAL(i));
}

/* Codes of 10 bits. */
KERNEL_FUNCTION struct signal map(const struct tonemap_params *p, real y, real cb, real cr)
{
    const struct tonemap_tables *t = p->tables;
    real luma = 4.0f * y + (TONEMAP_BIAS - 4 * 64);
    cb = cb - 512.0f;
    cr = cr - 512.0f;
    struct light in = {light(t, luma, cb, cr, 0, 1.4746),
                       light(t, luma, cb, cr, -0.16455313, -0.57135313),
                       light(t, luma, cb, cr, 1.8814, 0)};
    real gain = luma - luma + 1.0f;
    if (p->is_hlg)
        gain = by_cell(t->ootf, luminance(in));
    real largest = gain * most(most(in.r, in.g), in.b);
    if (is_any(largest > t->knee))
        gain = gain * by_cell(t->gain, largest);
    in.r *= gain;
    in.g *= gain;
    in.b *= gain;
    struct light out = {1.660491f * in.r - 0.587641f * in.g - 0.072850f * in.b,
                        -0.124550f * in.r + 1.132900f * in.g - 0.008349f * in.b,
                        -0.018151f * in.r - 0.100579f * in.g + 1.118730f * in.b};
    out = desaturate(out, luminance(in));
    struct signal s = {by_cell(t->signal, out.r), by_cell(t->signal, out.g),
                       by_cell(t->signal, out.b)};
    return s;
}

KERNEL_FUNCTION whole code(struct tonemap_weights w, struct signal s)
{
    return KERNEL_WHOLE(w.r * s.r + w.g * s.g + w.b * s.b + w.offset);
}

/* The samples `first`, `first` + 1, ... of a row, `step` words apart, not beyond 0 and `last`. */
KERNEL_FUNCTION real get(const struct tonemap_params *p, const void *row, int first, int last,
                         int step)
{
    const uint16_t *words = (const uint16_t *)row;
    whole v;
#ifndef KERNEL_IS_DEVICE
    if (first >= 0 && first + KERNEL_LANES <= last && step == 2) {
        __builtin_memcpy(&v, words + 2 * first, sizeof v);
        return KERNEL_REAL(((v & 0xffff) >> p->in_shift) & 1023);
    }
    if (first >= 0 && first + KERNEL_LANES <= last && step == 1) {
        typedef uint16_t run __attribute__((vector_size(KERNEL_LANES * 2)));
        run w;
        __builtin_memcpy(&w, words + first, sizeof w);
        return KERNEL_REAL((__builtin_convertvector(w, whole) >> p->in_shift) & 1023);
    }
#endif
    for (int l = 0; l < KERNEL_LANES; l++) {
        int i = first + l < 0 ? 0 : first + l > last ? last : first + l;
        KERNEL_LANE(v, l) = words[i * step];
    }
    return KERNEL_REAL((v >> p->in_shift) & 1023);
}

KERNEL_FUNCTION void put(const struct tonemap_params *p, void *row, int first, int last, int step,
                         whole v)
{
    for (int l = 0; l < KERNEL_LANES; l++) {
        int i = (first + l) * step;
        if (first + l > last)
            return;
        if (p->out_bytes == 1)
            ((uint8_t *)row)[i] = (uint8_t)KERNEL_LANE(v, l);
        else
            ((uint16_t *)row)[i] = (uint16_t)(KERNEL_LANE(v, l) << p->out_shift);
    }
}

KERNEL_FUNCTION const uint8_t *row_at(const void *plane, int pitch, int y)
{
    return (const uint8_t *)plane + (int64_t)pitch * y;
}

/* The chroma of column x, at the height of a row of luma. */
KERNEL_FUNCTION real between(const struct tonemap_params *p, const void *own, const void *other,
                             float share, int x)
{
    int last = (p->width - 1) / 2;
    real c = get(p, own, x, last, p->in_step);
    return share == 0 ? c : c + share * (get(p, other, x, last, p->in_step) - c);
}

/* The chroma at a row of the block, of its left and right pixel. */
KERNEL_FUNCTION void chroma(const struct tonemap_params *p, const void *plane, int pitch, int x,
                            int y, int r, real ret[2])
{
    int last = (p->height - 1) / 2, beside = r ? (y < last ? y + 1 : y) : (y ? y - 1 : y);
    float share = r ? p->near_y[1] : p->near_y[0];
    const void *own = row_at(plane, pitch, y), *other = row_at(plane, pitch, beside);
    real here = between(p, own, other, share, x);
    ret[0] = ret[1] = here;
    if (p->near_x[0] > 0)
        ret[0] += p->near_x[0] * (between(p, own, other, share, x - 1) - here);
    if (p->near_x[1] > 0)
        ret[1] += p->near_x[1] * (between(p, own, other, share, x + 1) - here);
}

KERNEL_FUNCTION void tonemap_at(const struct tonemap_params *p, int x, int y)
{
    int last_even = (p->width - 1) / 2, last_odd = p->width / 2 - 1;
    if (x > last_even || 2 * y >= p->height)
        return;
    struct signal left[2];
    KERNEL_UNROLL
    for (int r = 0; r < 2; r++) {
        real cb[2], cr[2];
        int half = 2 * y + r < p->height ? r : 0; /* an odd height ends with a row of its own */
        int row = 2 * y + half;
        const uint8_t *in = row_at(p->in_y, p->in_pitch_y, row);
        uint8_t *out = (uint8_t *)p->out_y + (int64_t)p->out_pitch_y * row;
        chroma(p, p->in_u, p->in_pitch_u, x, y, half, cb);
        chroma(p, p->in_v, p->in_pitch_v, x, y, half, cr);
        left[r] = map(p, get(p, in, x, last_even, 2), cb[0], cr[0]);
        const uint8_t *odd = last_odd < 0 ? in : in + 2; /* a width of 1 has none */
        struct signal right = map(p, get(p, odd, x, last_odd < 0 ? 0 : last_odd, 2), cb[1], cr[1]);
        if (half == r) {
            put(p, out, x, last_even, 2, code(p->luma, left[r]));
            put(p, out + p->out_bytes, x, last_odd, 2, code(p->luma, right));
        }
    }
    struct signal sum = {left[0].r + left[1].r, left[0].g + left[1].g, left[0].b + left[1].b};
    put(p, (uint8_t *)p->out_u + (int64_t)p->out_pitch_u * y, x, last_even, p->out_step,
        code(p->cb, sum));
    put(p, (uint8_t *)p->out_v + (int64_t)p->out_pitch_v * y, x, last_even, p->out_step,
        code(p->cr, sum));
}

#ifdef KERNEL_IS_DEVICE
extern "C" __global__ void tonemap(const struct tonemap_params params)
{
    tonemap_at(&params, KERNEL_AT(x), KERNEL_AT(y));
}
#endif
