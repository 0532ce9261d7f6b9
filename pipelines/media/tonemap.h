/*
 * HDR pictures to SDR: 10-bit PQ or HLG in BT.2020 to BT.709, a pure function of one picture and
 * two numbers of the plan (I2: nothing is remembered from frame to frame, and nothing is read from
 * a frame but its samples and where its chroma lies). The work is done by kernels/tonemap.cu: on
 * the CPU by tonemap_frame, on a GPU by whoever launches it with what is found here.
 *
 * Thread: a struct tonemap is immutable, any number of threads may use it.
 */
#pragma once
#include <libavutil/frame.h>

#include "common/err.h"
#include "pipelines/media/kernels/params.h"
#include "pipelines/plan/source.h"

struct tonemap;

/* For plan->is_tonemapped: from the transfer of `video`, at plan->peak_nits. */
struct tonemap *tonemap_new(const struct source_video *video, int peak_nits);
void tonemap_free(struct tonemap **t);

/* What the kernel looks up, to be copied to the device once. Lives as long as *t. */
const struct tonemap_tables *tonemap_tables(const struct tonemap *t);

/* The kernel's argument: `in` (YUV420P10 or P010) to `out` (YUV420P, NV12, YUV420P10 or P010) of
 * the same size; tables: as the device sees them. Frames on a device (hw_frames_ctx) give device
 * pointers. Launch it on tonemap_threads(). ERR_BUG for other formats or sizes. */
int tonemap_params_make(const struct tonemap *t, const AVFrame *in, const AVFrame *out,
                        const struct tonemap_tables *tables, struct tonemap_params *ret,
                        struct err *e);
void tonemap_threads(const AVFrame *in, int *ret_width, int *ret_height);

/* Makes `out` say what it is: the properties of `in`, BT.709, no word of HDR. */
int tonemap_describe(const AVFrame *in, AVFrame *out, struct err *e);

/* Replaces *frame (in memory, YUV420P10 or P010) by its SDR picture in `format`. */
int tonemap_frame(const struct tonemap *t, enum AVPixelFormat format, AVFrame *frame,
                  struct err *e);
