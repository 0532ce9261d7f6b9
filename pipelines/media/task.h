/*
 * The work of a session, as functions: run one video chunk or one audio track. They know files and
 * libav, not jobs or Redis. Output goes into the scratch directory, each file whole before it is
 * announced. Thread: the caller's, plus one thread an encoder inside.
 */
#pragma once
#include "pipelines/media/device.h"
#include "pipelines/media/input.h"
#include "pipelines/media/warm.h"
#include "pipelines/plan/manifest.h"
#include "pipelines/plan/plan.h"

struct task_events { /* called from the caller's thread and from encoder threads, never two at once
                      */
    void *arg;
    /* A finished file "<rendition>/<name>" lies in scratch; the receiver may take it away at once.
     */
    void (*file)(void *arg, const char *path, int64_t bytes);
    /* Frames out so far (of the slowest rendition) or audio samples; also proof of life. */
    void (*progress)(void *arg, int64_t frames_in, int64_t frames_out);
    bool (*is_cancelled)(void *arg); /* polled between frames */
};

/* warm: what is kept for the next chunk, see there. */
int video_chunk_run(struct warm *warm, struct input *in, const struct limits *limits,
                    const struct device *device, const struct source *source,
                    const struct plan *plan, const struct plan_chunk *chunk, int scratch_fd,
                    const struct task_events *events, struct manifest **ret, struct err *e);

/* audio: index into plan->audio. */
int audio_track_run(struct input *in, const struct limits *limits, const struct source *source,
                    const struct plan *plan, size_t audio, int scratch_fd,
                    const struct task_events *events, struct manifest **ret, struct err *e);
