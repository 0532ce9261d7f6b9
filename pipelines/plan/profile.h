/*
 * A profile: the ladder and the packaging a job asks for, in YAML. Built-in ones are embedded from
 * pipelines/plan/profiles/. Owner: bind_free(&profile_type, &profile).
 */
#pragma once
#include "common/bind.h"

/* In the job's output, beside the renditions. */
#define THUMBNAILS_FOLDER "thumbnails"

enum profile_deinterlace { DEINTERLACE_AUTO, DEINTERLACE_OFF };
enum profile_segments { SEGMENTS_FMP4, SEGMENTS_TS };
enum profile_hdr { HDR_TONEMAP, HDR_AS_IS, HDR_REFUSE };
enum profile_fps_policy { FPS_SOURCE, FPS_CAP, FPS_FIXED };

struct profile_rendition {
    char *name;        /* folder and NAME; default from height and bit rate: "1080p-7800k" */
    int width, height; /* either may be 0: kept by aspect. Both: a box to fit into, aspect kept */
    int64_t bitrate, maxrate, bufsize; /* bits/s; 0: from crf alone, 1.5 x, 2 x (see profile.c) */
    double crf;                        /* < 0: not used */
    int fps_policy;
    struct rational fps;           /* FPS_CAP, FPS_FIXED */
    char *encoder_profile, *level; /* libav's "profile" and "level" options, or NULL */
    char **options;                /* "key=value", on top of the profile's */
    size_t n_options;
};

struct profile_audio {
    char *name;    /* default "audio-96k" */
    char *encoder; /* libav's encoder name: aac, libopus, ac3, eac3, flac */
    int64_t bitrate;
    int channels;    /* at most; 0: as the source */
    int sample_rate; /* 0: as the source, brought to what the encoder takes */
};

struct profile_thumbnails {
    struct rational every; /* seconds */
    int height;            /* the short side; never more than the source has */
};

struct profile {
    char *name, *description;
    char *encoder; /* libav's encoder name for the whole ladder: libx264, libx265, libsvtav1,
                      h264_nvenc */
    char *preset;
    char *pix_fmt;  /* yuv420p (default), yuv420p10le */
    char **options; /* encoder options "key=value" for all renditions */
    size_t n_options;
    struct rational gop, segment; /* seconds; segment is a whole multiple of gop */
    int segments;                 /* enum profile_segments */
    int deinterlace;              /* enum profile_deinterlace */
    int hdr;                      /* enum profile_hdr */
    bool allow_upscale, allow_truncated;
    struct profile_rendition *renditions;
    size_t n_renditions;
    struct profile_audio *audio;
    size_t n_audio;
    struct profile_thumbnails *thumbnails; /* NULL: none are made */
};

extern const struct bind_struct profile_type;

/* `name_or_path`: a built-in name, else a file (anything with '/' or ending in .yaml/.yml/.json).
 * ERR_CONFIG with all faults, or the list of names when there is no such profile. */
int profile_load(const char *name_or_path, struct profile **ret, struct err *e);
/* The i-th built-in's YAML text and name; NULL past the end. */
const char *profile_builtin_text(size_t i, const char **ret_name);
