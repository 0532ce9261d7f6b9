/*
 * Where pictures are decoded, filtered and encoded: one row of the table in device.c for each kind.
 * The stages ask the device for what differs (decoder's frames, filter descriptions, encoder names,
 * kernels) and are otherwise one code path. Nothing falls back to another device by itself (I13):
 * a route says which device each stage has, and what a device cannot do is ERR_DEVICE with the
 * reason.
 *
 * Thread: opened and closed by one thread; read by any.
 */
#pragma once
#include <libavcodec/avcodec.h>

#include "pipelines/plan/plan.h"

struct device;
struct device_kernels_kind;

/* "cpu"; "cuda" or "cuda:N" (driver API through libavutil, one context); "auto": the first GPU if
 * it decodes and encodes, else the CPU. Opening a GPU asks it for all that it can do and loads all
 * that it will need later, since a session opens nothing once it is confined. */
int device_open(const char *name, struct device **ret, struct err *e);
void device_close(struct device **d);

const char *device_name(const struct device *d);            /* "cpu", "cuda:0"; borrowed */
const struct route_gpu *device_gpu(const struct device *d); /* NULL: the CPU; borrowed */
/* What "auto" took and why, for people; NULL when the device was named. Borrowed. */
const char *device_choice(const struct device *d);
bool device_is_gpu(const struct device *d);
AVBufferRef *device_context(const struct device *d);       /* borrowed; NULL: system memory */
enum AVPixelFormat device_pix_fmt(const struct device *d); /* of frames; NONE: system memory */

/* Which device each stage of a job has: `d` itself, or the CPU where the job allows it. */
struct device_route {
    const struct device *decode, *filter, *encode; /* borrowed from `d` */
    struct route *record;                          /* for the manifest */
};
int device_route(const struct device *d, const struct plan *plan, const struct source_video *v,
                 struct device_route *ret, struct err *e);
void device_route_clear(struct device_route *route);

/* The encoder that does here what `encoder` (a libav name of the profile) does elsewhere; borrowed.
 * ERR_DEVICE when this device has none for the codec. */
int device_encoder(const struct device *d, const char *encoder, const char **ret, struct err *e);

/* libavfilter descriptions (caller frees), "" when there is nothing to do. The pre-filter does to a
 * picture what is done once, before sizes: deinterlace, turn upright, pixel format, range; it runs
 * where pictures are decoded, and hands them over to where they are scaled. The hand-over brings
 * pictures of the ladder to the encoders. */
int device_prefilter(const struct device_route *route, const struct plan *plan,
                     const struct source_video *v, char **ret, struct err *e);
char *device_scaler(const struct device *d, const struct plan *plan, int width, int height);
char *device_hand_over(const struct device_route *route, const struct plan *plan);

/* Which kernels it has (device_kernels.h). */
const struct device_kernels_kind *device_kernels_kind(const struct device *d);

/* Surfaces of the decoder's pool that the stages behind it hold at once. */
int device_surfaces(const struct plan *plan);

/* Frames in system memory that are not scaled need no copy; a GPU's decoder must get its few
 * surfaces back soon, so there each size is a copy. */
bool device_shares_frames(const struct device *d);

/* A frames context in which an encoder is opened before it sees a frame; NULL on the CPU. The
 * caller unreferences it. */
int device_frames(const struct device *d, const char *pix_fmt, int width, int height,
                  AVBufferRef **ret, struct err *e);

/* Gives the blank frame *ret a surface out of *pool (a frames context, NULL at first), which is
 * made anew when the size changes. The caller unreferences the pool. */
int device_surface(const struct device *d, const char *pix_fmt, int width, int height,
                   AVBufferRef **pool, AVFrame *ret, struct err *e);

/* What must be equal for chunks to join (I12): device model, route, encoder build; caller frees. */
char *device_class(const struct device_route *route, const char *encoder);
