/*
 * One of our kernels on a CUDA device: loaded from the PTX of this build into the device's context,
 * launched on its stream. Errors are ERR_DEVICE: "device cuda:0: tone mapping: cuLaunchKernel:
 * CUDA_ERROR_...". Thread: one.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "pipelines/media/device.h"

struct kernel_cuda;

/* name: of kernels/<name>.cu; work: for messages. Both and the device are borrowed. ERR_CONFIG when
 * the product was built without kernels. */
int kernel_cuda_new(const struct device *device, const char *name, const char *work,
                    struct kernel_cuda **ret, struct err *e);
void kernel_cuda_free(struct kernel_cuda **k); /* its memory, too */

/* Device memory that lives as long as *k, as an address of the device; filled from `data` unless
 * that is NULL. */
int kernel_cuda_memory(struct kernel_cuda *k, const void *data, size_t size, void **ret,
                       struct err *e);

/* Runs the kernel for each (x, y, z) below the sizes, after what is in the stream; does not wait.
 * params: its one argument, copied. */
int kernel_cuda_launch(struct kernel_cuda *k, void *params, int width, int height, int depth,
                       struct err *e);

/* Copies device memory to `ret` when what is in the stream is done, and waits for it. */
int kernel_cuda_read(struct kernel_cuda *k, const void *from, void *ret, size_t size,
                     struct err *e);
