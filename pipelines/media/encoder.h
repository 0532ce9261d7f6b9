/*
 * One rendition's encoder on a thread of its own: frames in through a short queue, segments out
 * through its packager. Keyframes are where the caller says and nowhere else (I3, I12). Thread: all
 * functions are called by one thread, the owner; the encoder's own thread touches only what the
 * queue hands over.
 */
#pragma once
#include "pipelines/media/packager.h"
#include "pipelines/media/spares.h"

struct encoder;

struct encoder_options {
    struct encoder_codec_options codec;
    struct packager_options packager;
    struct spares *spares; /* what may be open already */
};

int encoder_start(const struct encoder_options *options, struct encoder **ret, struct err *e);

/* Queues one frame (its reference is taken; the frame is blank afterwards): pts in the rendition's
 * time base. Blocks while the queue is full. -kind when the encoder has failed. */
int encoder_push(struct encoder *enc, AVFrame *frame, int64_t segment, bool is_key, struct err *e);

/* Says that no frame follows, so that it drains while others are still told. */
int encoder_end(struct encoder *enc, struct err *e);

/* After encoder_end: waits, ends the last segment at `end`, and fills *ret. Also checks that each
 * frame that was pushed came out, and each keyframe where it was asked for. */
int encoder_finish(struct encoder *enc, int64_t end, struct manifest_track *ret, struct err *e);

int64_t encoder_frames_out(const struct encoder *enc); /* any thread */

void encoder_free(struct encoder **enc); /* stops the thread wherever it is */
