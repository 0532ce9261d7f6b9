/*
 * Where each stage of the video runs: on the GPU or on the CPU. Decided from what a GPU was found
 * to do, before any work is done, by one pure function that the planner and every session call, so
 * that what `plan` shows is what happens. Without a GPU all stages are the CPU's. With one they are
 * the GPU's, or the job is refused with the reason; only where the job allows it does what the GPU
 * cannot do move to the CPU, and then the route says which stages and why (I13).
 *
 * A picture crosses between the two at most once on its way: decode on the CPU, the rest on the
 * GPU; or encode on the CPU, the rest on the GPU; or both on the CPU, and then there is nothing
 * left that would be worth two crossings, and filters are the CPU's, too.
 */
#pragma once
#include "common/bind.h"

struct route_decoder {
    char *codec;  /* libav name: "h264" */
    char *chroma; /* "4:2:0" */
    int bits;
    int min_width, min_height, max_width, max_height;
    int64_t max_blocks; /* of 16x16 samples */
};

struct route_encoder {
    char *name;       /* "h264_nvenc" */
    char *stands_for; /* what a profile calls it: "libx264" */
    char *missing;    /* why it cannot be used at all; NULL: it can */
    int min_width, min_height, max_width, max_height;
    int max_b_frames;
    bool has_10_bit, has_b_references;
};

/* What a GPU can do, asked of the device itself by whoever opened it (pipelines/media/device_cuda).
 * Owner: bind_free(&route_gpu_type, &gpu). */
struct route_gpu {
    char *device;          /* "cuda:0" */
    char *model;           /* "NVIDIA L4" */
    char *no_decoder;      /* why nothing can be decoded, likewise below; NULL: it can */
    char *no_deinterlacer; /* in this libavfilter */
    char *no_kernels;      /* our own: tone mapping, turning */
    struct route_decoder *decoders;
    size_t n_decoders;
    struct route_encoder *encoders;
    size_t n_encoders;
};

enum route_place { ROUTE_CPU, ROUTE_GPU };

struct route {
    int decode, filter, encode; /* enum route_place */
    char *why;                  /* what left the GPU and why; NULL: nothing did */
};

extern const struct bind_struct route_gpu_type, route_type;
extern const char *const route_place_names[];

struct plan;
struct source_video;

/* gpu: NULL for the CPU. *ret: bind_free(&route_type, ...). ERR_DEVICE when the GPU cannot do it
 * all and plan->allow_fallback is not set, or the CPU cannot either: one line with the cause and
 * the way out. */
int route_make(const struct route_gpu *gpu, const struct plan *plan,
               const struct source_video *video, struct route **ret, struct err *e);

/* Whether the pictures must be turned, mirrored or cut from full to video range before all else. */
bool route_is_turned(const struct source_video *video);
bool route_is_full_range(const struct source_video *video);

/* "4:2:0", "4:2:2", "4:4:4", or "other", of libav's name of a pixel format (static). */
const char *route_chroma(const char *pix_fmt);
