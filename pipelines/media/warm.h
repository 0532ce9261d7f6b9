/*
 * What a session keeps from one video chunk to the next, so that a chunk costs its frames and
 * little else. Nothing is kept that could show in a chunk's bytes (I2): scalers and kernels know
 * nothing of earlier pictures, encoders are never used twice but opened ahead (spares.h), and a
 * decoder is opened anew (decoder.h).
 *
 * Zero-initialised it is empty. Owner: the session. video_chunk_run fills it, and empties it when
 * the chunk fails, whatever was wrong. Thread: one.
 */
#pragma once

struct warm {
    /* of one source and plan */
    struct device_kernels *kernels;
    struct ladder *ladder;
    struct thumbnails *thumbnails; /* NULL: the plan has none */
    /* of any */
    struct spares *spares;
};

/* Drops what belongs to the source and plan, before they are freed. */
void warm_forget(struct warm *w);

void warm_clear(struct warm *w); /* drops all */
