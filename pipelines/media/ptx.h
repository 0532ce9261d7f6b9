/* The CUDA kernels of this build, as text. Thread: any. */
#pragma once
#include "common/err.h"

/* The PTX, zero-terminated, of kernels/<name>.cu; its entry point has the same name. ERR_CONFIG
 * when the product was built without a CUDA compiler. */
int ptx_find(const char *name, const char **ret, struct err *e);
