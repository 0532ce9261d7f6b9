/*
 * Pictures turned upright, cut and brought to video range by kernels/turn.cu: what libavfilter's
 * filters do on the CPU and has no filter for on a GPU. Thread: pure.
 */
#pragma once
#include <libavutil/frame.h>

#include "common/err.h"
#include "pipelines/media/kernels/params.h"
#include "pipelines/plan/source.h"

/* The size of `in` without its margins (crop_left and so on), turned as `v` says. */
void turn_size(const AVFrame *in, const struct source_video *v, int *ret_width, int *ret_height);

/* The kernel's argument: `in` to `out`, NV12 or P010 both, out of turn_size(). Launch it on out's
 * width and height and a depth of 2. ERR_DEVICE for other formats. */
int turn_params_make(const AVFrame *in, const AVFrame *out, const struct source_video *v,
                     struct turn_params *ret, struct err *e);

/* Makes `out` say what it is: the properties of `in`, without margins. */
int turn_describe(const AVFrame *in, const struct source_video *v, AVFrame *out, struct err *e);
