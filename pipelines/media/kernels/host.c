#include "pipelines/media/kernels/host.h"

#include "pipelines/media/kernels/thumbnail.cu"
#include "pipelines/media/kernels/tonemap.cu"
#include "pipelines/media/kernels/turn.cu"

/* Vectors of neighbouring threads. What never changes within a picture is told to the compiler. */
KERNEL_FUNCTION void tonemap_all(struct tonemap_params p, int width, int height)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x += KERNEL_LANES)
            tonemap_at(&p, x, y);
}

void kernel_host_tonemap(const void *params, int width, int height, int depth)
{
    (void)depth;
    struct tonemap_params p = *(const struct tonemap_params *)params;
    if (p.in_step == 1 && p.out_step == 1 && p.in_shift == 0 && p.out_bytes == 1) {
        p.in_step = p.out_step = p.out_bytes = 1;
        p.in_shift = 0;
        tonemap_all(p, width, height);
    } else {
        tonemap_all(p, width, height);
    }
}

void kernel_host_thumbnail(const void *params, int width, int height, int depth)
{
    for (int z = 0; z < depth; z++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                thumbnail_at(params, x, y, z);
}

void kernel_host_turn(const void *params, int width, int height, int depth)
{
    for (int z = 0; z < depth; z++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                turn_at(params, x, y, z);
}

enum { POINTER = sizeof(void *) };

const struct kernel_host kernel_host_table[] = {
    {"tonemap", sizeof(struct tonemap_params), offsetof(struct tonemap_params, width) / POINTER,
     kernel_host_tonemap},
    {"thumbnail", sizeof(struct thumbnail_params),
     offsetof(struct thumbnail_params, planes) / POINTER, kernel_host_thumbnail},
    {"turn", sizeof(struct turn_params), offsetof(struct turn_params, planes) / POINTER,
     kernel_host_turn},
    {NULL, 0, 0, NULL},
};
