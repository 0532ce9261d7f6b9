/*
 * What no libavfilter filter does to a picture between pre-filter and sizes, by our own kernels:
 * tone mapping, and on a GPU all that turns, cuts and cures a picture, too. Thread: one.
 */
#pragma once
#include <libavutil/frame.h>

#include "pipelines/media/device.h"

struct device_kernels;

/* The rows of the device table. */
extern const struct device_kernels_kind device_kernels_cpu, device_kernels_cuda;

/* plan, video and the route's devices: borrowed. ERR_DEVICE with the driver's error, ERR_CONFIG
 * when built without kernels. */
int device_kernels_new(const struct device_route *route, const struct plan *plan,
                       const struct source_video *video, struct device_kernels **ret,
                       struct err *e);
void device_kernels_free(struct device_kernels **k);

/* Replaces *frame by what the sizes are made of. */
int device_kernels_frame(struct device_kernels *k, AVFrame *frame, struct err *e);
