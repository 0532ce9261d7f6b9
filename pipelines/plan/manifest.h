/*
 * What a task has made: the record that a commit stores, and all that playlists are written from.
 * Positions are ticks of the track's time base from the origin.
 */
#pragma once
#include "common/bind.h"
#include "pipelines/plan/route.h"

struct manifest_segment {
    int64_t index;           /* k on the segment grid */
    int64_t start, duration; /* ticks */
    int64_t frames;          /* video frames or audio packets */
    int64_t keyframes;
    int64_t bytes;
    char *name; /* file name: index and content hash, so that two attempts can write one name only
                   with the same bytes */
};

struct manifest_track {
    char *rendition; /* folder */
    char *init;      /* init segment's file name, content-addressed; NULL for TS */
    int64_t init_bytes;
    char *codecs;         /* RFC 6381: avc1.640028 */
    char *parameter_sets; /* hash of the encoder's parameter sets: equal in all chunks (I12) */
    struct rational time_base;
    int64_t start, end; /* of all segments here; end = start of the next chunk's first frame */
    int64_t frames, keyframes;
    int width, height;         /* video; 0 for audio */
    char *video_range;         /* SDR, PQ, HLG; NULL for audio */
    int channels, sample_rate; /* audio */
    int64_t priming;           /* audio: encoder delay, samples */
    struct manifest_segment *segments;
    size_t n_segments;
};

struct manifest_thumbnail {
    int64_t index; /* k: of the time k*every */
    int64_t start; /* of the frame it shows, ticks of the plan's time base from the origin */
    int64_t bytes;
    char *name; /* as a segment's */
};

struct manifest {
    int64_t chunk;                 /* -1 for audio */
    struct manifest_track *tracks; /* in the plan's order */
    size_t n_tracks;
    struct manifest_thumbnail *thumbnails; /* by index; those of the chunk's share (thumbnails.h) */
    size_t n_thumbnails;
    int64_t frames_decoded, frames_source; /* waste = decoded / source */
    int64_t damaged;                       /* packets of the source that could not be decoded */
    int64_t wall_us, cpu_us;
    bool is_truncated;   /* the source ended before its measured end */
    char *device;        /* "cpu libx264 ..." : the device class (I12) */
    struct route *route; /* where its stages ran; NULL for audio */
};

extern const struct bind_struct manifest_type;

struct plan;
/* The commit gate (I12), as far as one manifest shows it: every rendition is there, counts add up,
 * segments are consecutive, each starts with a keyframe, times join without hole. ERR_BUG names the
 * first fault. */
struct plan_chunk;
int manifest_check_video(const struct manifest *m, const struct plan *plan,
                         const struct plan_chunk *chunk, struct err *e);
int manifest_check_audio(const struct manifest *m, const struct plan *plan, size_t audio,
                         struct err *e);
/* Whether b continues a exactly on every track: same init, parameter sets, end == start. */
int manifest_check_join(const struct manifest *a, const struct manifest *b, struct err *e);
