/*
 * Everything that a source may cost, each with a name, so that a hostile upload costs no more than
 * an ordinary one. One table in limits.c: name, default, help. Set by the operator (`--limit
 * NAME=VALUE` on run and worker, again and again), carried to the session as JSON. A source over a
 * limit is ERR_INPUT: "... 16000x16000 is over the limit max_pixels=..., raise it with --limit".
 */
#pragma once
#include "common/bind.h"

struct limits {
    int64_t max_pixels;       /* of one decoded picture */
    int64_t max_streams;      /* in the container */
    int64_t max_frames;       /* video frames in the source */
    int64_t max_duration_s;   /* measured, from the origin */
    int64_t max_output_bytes; /* one task's output */
    int64_t max_task_s;       /* wall time of one task */
    int64_t max_silence_s;    /* wall time of one task without progress: it hangs */
    int64_t max_memory_bytes; /* address space of a session on top of its start (RLIMIT_AS) */
    int64_t max_header_bytes; /* read before the streams are known (probesize) */
};

extern const struct bind_struct limits_type;

void limits_default(struct limits *ret);
/* "max_pixels=100000000"; ERR_USAGE lists the names for an unknown one. */
int limits_set(struct limits *l, const char *name_value, struct err *e);
