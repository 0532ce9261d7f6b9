/* The tone-mapping kernel on a CUDA device: device memory in, device memory out. Thread: one. */
#pragma once
#include "pipelines/media/device.h"
#include "pipelines/media/tonemap.h"

struct tonemap_cuda;

/* t, device: borrowed. ERR_DEVICE with the driver's error, ERR_CONFIG when built without kernels.
 */
int tonemap_cuda_new(const struct tonemap *t, const struct device *device,
                     struct tonemap_cuda **ret, struct err *e);
void tonemap_cuda_free(struct tonemap_cuda **c);

/* Replaces *frame by its SDR picture in the surface format of `pix_fmt`. */
int tonemap_cuda_frame(struct tonemap_cuda *c, const char *pix_fmt, AVFrame *frame, struct err *e);
