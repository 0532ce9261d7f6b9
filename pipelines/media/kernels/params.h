/*
 * What the kernels are given: one struct by value each, the same on the host and on the device. All
 * pointers come first, so that whoever launches a kernel by name on another machine's behalf (the
 * simulated driver) can translate them. Pitches are in bytes, sizes in samples.
 */
#pragma once
#include <stdint.h>

/* --- tonemap: one thread for each 2x2 block of luma samples (one chroma sample) --------------- */

/* A curve is a row of points, joined by straight lines. */
struct kernel_point {
    float at, rise; /* its value; how much higher the next one's is */
};

/* Curves that depend on the transfer and the peak only, made by pipelines/media/tonemap.c. Those by
 * "cell" have points that lie closer where numbers are small, see kernels/tonemap.cu. */
enum {
    TONEMAP_STEPS = 4 * 876,     /* of light[], from black to full scale: 4 a 10-bit luma code */
    TONEMAP_BIAS = 4096,         /* index of black; what lies below is out of range */
    TONEMAP_LIGHT = 11776,       /* holds every index that 10-bit Y'CbCr can give */
    TONEMAP_OCTAVE = 64,         /* cells for each doubling */
    TONEMAP_OCTAVES_TO_ONE = 16, /* of values below 1 */
    TONEMAP_OCTAVES = 22,        /* ... and up to 64: PQ's 10000 cd/m2 is 49 times white */
    TONEMAP_ONE = TONEMAP_OCTAVE * TONEMAP_OCTAVES_TO_ONE,
};

struct tonemap_tables {
    /* Of a component: display light (PQ), 1 is SDR white; scene light (HLG), 1 is full scale. */
    struct kernel_point light[TONEMAP_LIGHT];
    /* HLG: display light for a unit of scene light, by the scene's luminance (cell). */
    struct kernel_point ootf[TONEMAP_ONE + 1];
    /* EETF: light out for a unit of light in, by the largest component (cell). */
    struct kernel_point gain[TONEMAP_OCTAVE * TONEMAP_OCTAVES];
    /* BT.1886: 0 to 1, by light (cell). */
    struct kernel_point signal[TONEMAP_ONE + 1];
    float knee; /* the light up to which gain is exactly 1 */
};

struct tonemap_weights { /* code = r * signal_r + g * signal_g + b * signal_b + offset, cut */
    float r, g, b, offset;
};

struct tonemap_params {
    const void *in_y, *in_u, *in_v; /* 16-bit words holding 10 bits; where chroma is interleaved,
                                       u and v point into one plane */
    void *out_y, *out_u, *out_v;
    const struct tonemap_tables *tables;
    int32_t width, height; /* luma */
    int32_t in_pitch_y, in_pitch_u, in_pitch_v, out_pitch_y, out_pitch_u, out_pitch_v;
    int32_t in_step, out_step;  /* samples from one chroma sample to the next: 1, interleaved 2 */
    int32_t in_shift;           /* words >> in_shift: the 10 bits */
    int32_t out_bytes;          /* a sample: 1, or 2 */
    int32_t out_shift;          /* words << out_shift, of 2 bytes only */
    float near_x[2], near_y[2]; /* chroma for the luma of even and odd columns (rows): the share
                                   taken from the sample before and after the block's own */
    int32_t is_hlg;
    struct tonemap_weights luma, cb, cr; /* cb, cr: of the sum of two pixels */
};

/* --- thumbnail: one thread for each sample out; z: which of the planes ------------------------ */

struct thumbnail_plane {
    int32_t in_width, in_height, in_pitch, in_step, out_width, out_height, out_pitch;
};

struct thumbnail_params {
    const void *in[3];
    void *out[3]; /* bytes, one plane a component */
    struct thumbnail_plane planes[3];
    int32_t in_bytes; /* a sample: 1, or 2 */
    int32_t in_shift; /* of 2-byte samples: words >> in_shift */
    int32_t in_bits;  /* what is left: 8 or 10 */
};

/* --- turn: one thread for each pixel out; z: luma, or chroma (two samples a pixel) ------------ */

struct turn_plane {
    int32_t width, height;       /* out */
    int32_t in_pitch, out_pitch; /* bytes */
    int32_t samples;             /* of a pixel: 1, or 2 */
    int32_t column, row;         /* where out's first pixel comes from */
    int32_t gain, bias, divisor; /* out = (in * gain + bias) / divisor */
};

struct turn_params {
    const void *in[2];
    void *out[2];
    struct turn_plane planes[2];
    int32_t column_by_x, column_by_y, row_by_x, row_by_y; /* a step out, in pixels in */
    int32_t bytes, shift; /* a sample's word; words >> shift are its bits */
};
