/* What libavutil's CUDA context does not tell: asked of the driver API through its own loader. */
#pragma once
#include <libavutil/buffer.h>

#include "common/err.h"

/* The name of the context's GPU: "NVIDIA L4" (caller frees). */
int device_cuda_model(AVBufferRef *context, char **ret, struct err *e);

/* Loads the driver's other libraries (video decoder and encoder, PTX compiler) where they are, for
 * good: libavcodec asks for them by name later, when a confined process can open no file any more.
 */
void device_cuda_preload(void);
