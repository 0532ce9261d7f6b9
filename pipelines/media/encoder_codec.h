/*
 * The libav encoder of one rendition, with all that a chunk must ask of it to join its neighbours.
 * It is set up first and opened later, by any one thread, and then needs nothing of the plan that
 * it was made from: so the next chunk's can be opened before that chunk is known
 * (pipelines/media/spares.h).
 */
#pragma once
#include "pipelines/media/device.h"

struct encoder_codec;

struct encoder_codec_options { /* borrowed for the call */
    const struct plan *plan;
    const struct device *device;
    const struct plan_rendition *rendition;
    const struct source_video *source; /* colour and frame rate */
};

int encoder_codec_new(const struct encoder_codec_options *options, struct encoder_codec **ret,
                      struct err *e);
void encoder_codec_free(struct encoder_codec **c);

int encoder_codec_open(struct encoder_codec *c, struct err *e); /* again: 0, nothing happens */

/* Whether both would give the same bytes: encoder, device, size, rates, colours, options. */
bool encoder_codec_equals(const struct encoder_codec *a, const struct encoder_codec *b);

AVCodecContext *encoder_codec_context(struct encoder_codec *c);
const char *encoder_codec_name(const struct encoder_codec *c); /* libav's */
/* Cannot be told where keyframes go: a new one is needed for each GOP. */
bool encoder_codec_is_gop_encoder(const struct encoder_codec *c);
