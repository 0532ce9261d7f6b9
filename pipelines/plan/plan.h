/*
 * The plan: what exactly will be made, a pure function of profile, source and options (I2). The
 * dispatcher makes it once a job; it is stored with the job and handed to every session. Chunks are
 * not in it: they are the payload of the tasks.
 */
#pragma once
#include "pipelines/plan/profile.h"
#include "pipelines/plan/route.h"
#include "pipelines/plan/source.h"
#include "pipelines/plan/timeline.h"

struct plan_rendition {
    char *name;
    int width, height;         /* even, square pixels, after rotation */
    struct rational fps;       /* output grid, frames/s; unset: source timing, every frame */
    struct rational time_base; /* of the output's ticks: source's, or 1/fps made of whole ticks */
    int64_t bitrate, maxrate, bufsize;
    double crf;
    char *encoder_profile, *level;
    char **options; /* merged, "key=value" */
    size_t n_options;
};

struct plan_audio { /* one per audio track x audio rendition; one task each */
    char *name;     /* folder: "audio-96k" or "audio-96k-2-deu" */
    char *group;    /* GROUP-ID */
    int track;      /* index into source->audio */
    char *encoder;
    int64_t bitrate;
    int channels, sample_rate;
    char *language, *title;
    bool is_default;
};

struct plan_thumbnails {
    struct rational every; /* seconds */
    int width, height;     /* even, square pixels, after rotation */
    bool is_tonemapped;    /* of a ladder that stays HDR: only they become SDR */
};

struct plan {
    int segments; /* enum profile_segments */
    char *encoder, *preset, *pix_fmt;
    /* the timeline, flattened */
    struct rational time_base, segment, gop, cfr, ref;
    int64_t origin; /* in time_base: subtract from repaired pts */
    int64_t start;  /* the first video frame, ticks from the origin (see timeline.h) */
    int64_t n_segments;
    bool is_deinterlaced, allow_truncated;
    bool allow_fallback; /* what a GPU cannot do may be done on the CPU (route.h) */
    struct route *route; /* on the device that probed the source; NULL: no video */
    int64_t
        context; /* frames needed on each side of a chunk (deinterlacing, grids on VFR): 0, 1, 2 */
    bool is_hdr_as_is, is_tonemapped; /* of an HDR source one of them */
    int peak_nits;                    /* where anything is tone-mapped: the source's, cd/m2 */
    struct plan_rendition *renditions;
    size_t n_renditions;
    struct plan_audio *audio;
    size_t n_audio;
    struct plan_thumbnails *thumbnails; /* NULL: none */
    char **notes;                       /* "1080p left out: the source is 720p" */
    size_t n_notes;
};

struct plan_chunk { /* payload of a video task */
    int64_t index;
    int64_t first_segment, end_segment; /* end exclusive; the last chunk: INT64_MAX */
    int64_t seek_pts; /* keyframe to start decoding from, source ticks before origin shift;
                         INT64_MIN: from the start */
    int64_t frames;   /* estimated source frames, for progress and scheduling */
};

extern const struct bind_struct plan_type, plan_chunk_type, plan_options_type;

struct plan_options {
    double chunk_seconds;                /* 0: automatic */
    int segments;                        /* enum profile_segments, or -1: the profile's */
    bool allow_truncated, allow_upscale; /* or-ed with the profile's */
    bool allow_hdr_as_is;                /* instead of the profile's hdr */
    bool allow_fallback;                 /* from GPU to CPU, stage by stage */
};

/* ERR_INPUT when the source cannot be served (HDR that is refused, truncated, neither video nor
 * audio) with the way out in the message; ERR_CONFIG when the profile cannot. */
int plan_make(const struct profile *profile, const struct source *source,
              const struct plan_options *options, struct plan **ret, struct err *e);

/* Cuts the video into chunks of whole segments near the target length, borders preferred where few
 * frames are decoded in vain. *ret: array of *ret_n, freed with free(). None for audio only. */
int plan_chunks(const struct plan *plan, const struct source *source, double chunk_seconds,
                struct plan_chunk **ret, size_t *ret_n, struct err *e);

/* What HLS calls VIDEO-RANGE: SDR, PQ or HLG (static). */
const char *plan_video_range(const struct plan *plan, const struct source_video *video);

void plan_timeline(const struct plan *plan, struct timeline *ret);

/* The equivalent single ffmpeg command, for people (caller frees). */
char *plan_ffmpeg_command(const struct plan *plan, const struct source *source, const char *input,
                          const char *output);
