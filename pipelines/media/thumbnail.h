/*
 * A small 8-bit picture of a large SDR one, by area average, colours as they are. The work is done
 * by kernels/thumbnail.cu: on the CPU by thumbnail_frame, on a GPU by whoever launches it with what
 * is found here, so that only the small picture leaves the device. Thread: any, nothing is shared.
 */
#pragma once
#include <libavutil/frame.h>

#include "common/err.h"
#include "pipelines/media/kernels/params.h"

/* The kernel's argument: `in` (YUV420P, NV12, YUV420P10, P010) to `out` (YUV420P, of any size; a
 * larger one has each sample of `in` as a block); frames on a device (hw_frames_ctx) give device
 * pointers. Launch it on *ret_width x *ret_height x 3 threads. ERR_BUG for other formats. */
int thumbnail_params_make(const AVFrame *in, const AVFrame *out, struct thumbnail_params *ret,
                          int *ret_width, int *ret_height, struct err *e);

/* *ret: what is filled: YUV420P, square pixels, plane after plane without a gap from data[0] on,
 * the properties of `in`. */
int thumbnail_picture(const AVFrame *in, int width, int height, AVFrame **ret, struct err *e);

/* *ret: a YUV420P frame of that size with the properties of `in`. */
int thumbnail_frame(const AVFrame *in, int width, int height, AVFrame **ret, struct err *e);
