/*
 * The report of a finished job: what was made, measured from the manifests. The publish task
 * commits it as its result (job.report), `transcode run`, `status` and callers of --json read it.
 * Owner: bind_free(&report_type, &report).
 */
#pragma once
#include "common/bind.h"
#include "pipelines/plan/route.h"

enum report_track { REPORT_VIDEO, REPORT_AUDIO };

struct report_rendition {
    char *name;
    int kind; /* enum report_track */
    char *codecs;
    int width, height;          /* video, else 0 */
    struct rational frame_rate; /* video, else unset */
    char *language;             /* audio, or NULL */
    int64_t average_bps, peak_bps;
    int64_t segments, frames, bytes; /* frames: video frames or audio packets; bytes with init */
    double duration_s;
};

struct report {
    char *master; /* key below the job's output */
    struct report_rendition *renditions;
    size_t n_renditions;
    double duration_s;       /* of the longest rendition */
    int64_t segments, bytes; /* of all renditions; bytes with the thumbnails' */
    int64_t thumbnails;
    int64_t frames_source, frames_decoded; /* video */
    double waste;                          /* decoded / source; 0: no video */
    int64_t damaged;                       /* packets of the source that could not be decoded */
    double task_s, cpu_s;                  /* sums over all tasks */
    int64_t repaired_missing, repaired_wrapped, repaired_jumps, /* packets of the source */
        repaired_duplicates;
    bool is_truncated;                  /* the source ended early: this is as far as it goes */
    char *device;                       /* what encoded it */
    int64_t chunks, chunks_fallen_back; /* of video; those with a stage that left the GPU */
    struct route *route;                /* where the stages ran; NULL: no video */
    char **notes;
    size_t n_notes;
};

extern const struct bind_struct report_type;
