/*
 * What a source was measured to be. Written by the probe (pipelines/media/probe.c), carried as
 * JSON, read by the planner and by every session. Claimed values of headers appear only where named
 * so.
 *
 * Positions are ticks after timestamp repair (pipelines/media/repair.h), *not* yet shifted by the
 * origin unless said. Owner: bind_free(&source_type, &source).
 */
#pragma once
#include "common/bind.h"
#include "common/rational.h"
#include "pipelines/plan/route.h"

/* Where decoding can start for a segment border: one entry per k = 1, 2, … up to the last segment.
 */
struct source_border {
    int64_t key_pts;  /* last keyframe at or before the border, ticks before origin shift */
    int64_t frames;   /* frames from that keyframe to the border: decoded, then dropped */
    int64_t next_key; /* the first frame at or after the border, where that is a keyframe: nothing
                         before it is needed; else key_pts */
};

struct source_video {
    int stream; /* index in the container */
    char *codec, *profile;
    int width, height;             /* as decoded, before rotation and aspect */
    struct rational sample_aspect; /* unset: square */
    int rotation;                  /* clockwise degrees to turn for display: 0, 90, 180, 270 */
    bool is_flipped;               /* mirrored left-right before the rotation */
    struct rational time_base;
    int64_t start, end; /* ticks: first frame; end of the last frame (exclusive), measured */
    int64_t frames;     /* counted */
    struct rational frame_rate; /* measured average; for constant rate exact (30000/1001) */
    bool is_cfr;                /* every frame within half a frame of its place n/frame_rate */
    int64_t max_interval;       /* longest distance between two frames, ticks */
    bool is_interlaced, is_bottom_first;
    bool has_open_gop;
    bool is_sequential; /* timestamps cannot be known without reading from the start: one chunk */
    char *pix_fmt;
    int bit_depth;
    char *color_primaries, *color_transfer, *color_space, *color_range; /* libav names or NULL */
    int max_cll, mastering_nits;    /* HDR metadata, cd/m2: brightest pixel (CTA-861.3), peak of the
                                       mastering screen (ST 2086); 0: not told */
    struct rational border_segment; /* the grid D for which borders were measured */
    struct source_border *borders;
    size_t n_borders;
};

struct source_audio {
    int stream;
    char *codec;
    int sample_rate, channels;
    char *layout, *language, *title;
    bool is_default;
    struct rational time_base;
    int64_t start, end; /* ticks: first audible sample (after priming), end of the last */
};

struct source {
    char *container; /* libavformat demuxer name that was accepted */
    int64_t size_bytes;
    struct rational claimed_duration; /* seconds, from the header; never used for sizing */
    int64_t origin; /* in origin_base: the earliest start of all tracks, on a tick of
                       the video's time base when there is video */
    struct rational origin_base;
    struct rational duration;   /* seconds from the origin to the latest measured end */
    struct source_video *video; /* NULL: audio only */
    struct source_audio *audio;
    size_t n_audio;
    bool is_truncated;
    char *truncated_reason;
    int64_t repaired_missing, repaired_wrapped, repaired_jumps, repaired_duplicates; /* packets */
    struct route_gpu *gpu; /* of the session that measured this; NULL: it had none */
    char **notes;          /* things a person should know ("subtitle stream 3 is left out") */
    size_t n_notes;
};

extern const struct bind_struct source_type;
