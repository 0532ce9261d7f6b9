/*
 * A small picture of a large one, one thread for each sample: the mean of the area it covers, edges
 * by their share, in whole numbers. With the width in units of 1/out_width, a sample out covers
 * in_width units and a sample in out_width of them.
 */
#include "pipelines/media/kernels/kernel.h"
#include "pipelines/media/kernels/params.h"

KERNEL_FUNCTION int sample(const struct thumbnail_params *p, const uint8_t *row, int x)
{
    return p->in_bytes == 1 ? row[x] : ((const uint16_t *)row)[x] >> p->in_shift;
}

/* Units of the sample in at `i` (`size` of them) that lie within [start, end). */
KERNEL_FUNCTION int64_t share(int64_t i, int64_t size, int64_t start, int64_t end)
{
    int64_t from = i * size > start ? i * size : start;
    int64_t to = (i + 1) * size < end ? (i + 1) * size : end;
    return to - from;
}

KERNEL_FUNCTION void thumbnail_at(const struct thumbnail_params *p, int x, int y, int z)
{
    const struct thumbnail_plane *a = &p->planes[z];
    if (x >= a->out_width || y >= a->out_height)
        return;
    int64_t left = (int64_t)x * a->in_width, right = left + a->in_width;
    int64_t top = (int64_t)y * a->in_height, bottom = top + a->in_height;
    int64_t sum = 0, area = (int64_t)a->in_width * a->in_height;
    for (int64_t r = top / a->out_height; r * a->out_height < bottom; r++) {
        const uint8_t *row = (const uint8_t *)p->in[z] + r * a->in_pitch;
        int64_t line = 0;
        for (int64_t c = left / a->out_width; c * a->out_width < right; c++)
            line += share(c, a->out_width, left, right) * sample(p, row, (int)c * a->in_step);
        sum += share(r, a->out_height, top, bottom) * line;
    }
    area <<= p->in_bits - 8;
    int64_t mean = (sum + area / 2) / area;
    ((uint8_t *)p->out[z])[(int64_t)y * a->out_pitch + x] = (uint8_t)(mean < 255 ? mean : 255);
}

#ifdef KERNEL_IS_DEVICE
extern "C" __global__ void thumbnail(const struct thumbnail_params params)
{
    thumbnail_at(&params, KERNEL_AT(x), KERNEL_AT(y), KERNEL_AT(z));
}
#endif
