/* The thumbnail kernel on a CUDA device: a frame in device memory in, a small one in system memory
 * out, by one copy of its bytes. Thread: one. */
#pragma once
#include <libavutil/frame.h>

#include "pipelines/media/device.h"

struct thumbnail_cuda;

/* device: borrowed. Errors as kernel_cuda_new's. */
int thumbnail_cuda_new(const struct device *device, int width, int height,
                       struct thumbnail_cuda **ret, struct err *e);
void thumbnail_cuda_free(struct thumbnail_cuda **c);

/* As thumbnail_frame, of the size given above. */
int thumbnail_cuda_frame(struct thumbnail_cuda *c, const AVFrame *in, AVFrame **ret, struct err *e);
