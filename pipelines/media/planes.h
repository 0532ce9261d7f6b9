/* How the 4:2:0 formats that kernels read and write lie in memory. */
#pragma once
#include <libavutil/frame.h>

struct planes {
    enum AVPixelFormat format;
    int bits, bytes, shift; /* of a sample: what counts, its word, zero bits below it */
    int step;               /* samples from one chroma sample to the next */
};

/* Of a frame in memory or on a device; NULL for any other format. */
const struct planes *planes_of(const AVFrame *frame);
/* Where a component (0 Y, 1 U, 2 V) begins, and its row pitch in bytes. */
uint8_t *planes_data(const struct planes *p, const AVFrame *frame, int component, int *ret_pitch);
