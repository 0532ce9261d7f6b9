/* What libavutil's CUDA context does not tell: asked of the driver's own libraries, through the
 * loaders of nv-codec-headers. Nothing is taken from a card's name. */
#pragma once
#include <libavutil/buffer.h>

#include "common/err.h"
#include "pipelines/plan/route.h"

/* Of the context's GPU: which streams NVDEC takes, which encoders open, with which limits. Opens an
 * NVENC session and ends it. ERR_RESOURCE when all of them are in use, so that nobody knows; what
 * the GPU lacks for good is in *ret (bind_free(&route_gpu_type, ret)) with its reason. */
int device_cuda_gpu(AVBufferRef *context, const char *name, struct route_gpu **ret, struct err *e);

/* How many GPUs the driver shows; 0 when there is no driver. */
int device_cuda_count(void);

/* Loads the driver's other libraries (video decoder and encoder, PTX compiler) where they are, for
 * good: libavcodec asks for them by name later, when a confined process can open no file any more.
 */
void device_cuda_preload(void);
