/*
 * A picture turned and mirrored in steps of 90 degrees, cut at its edges, and brought from full to
 * video range: one thread for each pixel out of a plane (z: luma, or the pairs of chroma samples).
 * Where it comes from is linear in where it goes, and so is its value: all in whole numbers.
 */
#include "pipelines/media/kernels/kernel.h"
#include "pipelines/media/kernels/params.h"

KERNEL_FUNCTION int turn_value(const struct turn_params *p, const struct turn_plane *a, int word)
{
    return (((word >> p->shift) * a->gain + a->bias) / a->divisor) << p->shift;
}

KERNEL_FUNCTION void turn_at(const struct turn_params *p, int x, int y, int z)
{
    const struct turn_plane *a = &p->planes[z];
    if (x >= a->width || y >= a->height)
        return;
    int64_t column = a->column + x * p->column_by_x + y * p->column_by_y;
    int64_t row = a->row + x * p->row_by_x + y * p->row_by_y;
    const uint8_t *in = (const uint8_t *)p->in[z] + row * a->in_pitch;
    uint8_t *out = (uint8_t *)p->out[z] + (int64_t)y * a->out_pitch;
    for (int c = 0; c < a->samples; c++)
        if (p->bytes == 1)
            out[x * a->samples + c] = (uint8_t)turn_value(p, a, in[column * a->samples + c]);
        else
            ((uint16_t *)out)[x * a->samples + c] =
                (uint16_t)turn_value(p, a, ((const uint16_t *)in)[column * a->samples + c]);
}

#ifdef KERNEL_IS_DEVICE
extern "C" __global__ void turn(const struct turn_params params)
{
    turn_at(&params, KERNEL_AT(x), KERNEL_AT(y), KERNEL_AT(z));
}
#endif
