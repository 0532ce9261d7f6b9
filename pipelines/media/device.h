/*
 * Where pictures are decoded, scaled and encoded: one row of the table in device.c for each kind.
 * The stages ask the device for what differs (decoder's frames, filter descriptions, encoder names)
 * and are otherwise one code path. Nothing falls back to another device by itself (I13): what a
 * device cannot do is ERR_DEVICE with the reason.
 *
 * Thread: opened and closed by one thread; read by any.
 */
#pragma once
#include <libavcodec/avcodec.h>

#include "pipelines/plan/plan.h"

struct device;

/* "cpu"; "cuda" or "cuda:N" (driver API through libavutil, one context); "auto": the first GPU that
 * works, else the CPU. Opening a GPU also loads all that it will need later, since a session opens
 * nothing once it is confined. */
int device_open(const char *name, struct device **ret, struct err *e);
void device_close(struct device **d);

const char *device_name(const struct device *d); /* "cpu", "cuda:0"; borrowed */
bool device_is_gpu(const struct device *d);
AVBufferRef *device_context(const struct device *d);       /* borrowed; NULL: system memory */
enum AVPixelFormat device_pix_fmt(const struct device *d); /* of frames; NONE: system memory */

/* The encoder that does here what `encoder` (a libav name of the profile) does elsewhere; borrowed.
 * ERR_DEVICE when this device has none for the codec. */
int device_encoder(const struct device *d, const char *encoder, const char **ret, struct err *e);

/* libavfilter descriptions (caller frees). The pre-filter does to a picture what is done once,
 * before sizes: deinterlace, turn upright, pixel format, range; "" when there is nothing to do. */
int device_prefilter(const struct device *d, const struct plan *plan, const struct source_video *v,
                     char **ret, struct err *e);
char *device_scaler(const struct device *d, const struct plan *plan, int width, int height);

/* Frames in system memory that are not scaled need no copy; a GPU's decoder must get its few
 * surfaces back soon, so there each size is a copy. */
bool device_shares_frames(const struct device *d);

/* A frames context in which an encoder is opened before it sees a frame; NULL on the CPU. The
 * caller unreferences it. */
int device_frames(const struct device *d, const char *pix_fmt, int width, int height,
                  AVBufferRef **ret, struct err *e);

/* What must be equal for chunks to join (I12): device model, encoder build; caller frees. */
char *device_class(const struct device *d, const char *encoder);
