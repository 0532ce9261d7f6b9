/*
 * Test clips whose every frame says which one it is, and readers that find it again.
 *
 * Video: along the top of the upright picture runs a strip of 24 blocks, each a 24th of the width:
 * white, black (the reference levels), the frame number's 20 bits (most significant first), their
 * parity, and its inverse. Below it something moves, so that encoders have work. Rotated clips are
 * drawn so that the picture stands upright once the rotation was applied.
 *
 * Audio: a cosine of its own frequency a track (440 Hz, 550 Hz, ...) at amplitude 0.2, with a pulse
 * (raised cosine, 2 ms wide in all, amplitude 0.7) centred on every half second: 0.5 s, 1.5 s, ...
 * Both are functions of presentation time, so a track that starts late has its pulses where the
 * others have them.
 *
 * Thread: any, nothing is shared. Failures: -ERR_BUG with a reason.
 */
#pragma once
#include <libavutil/frame.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "common/rational.h"

#define CLIP_AUDIO_MAX 8

struct clip_audio {
    const char *codec;            /* libav encoder; NULL: "aac" */
    int sample_rate, channels;    /* 0: 48000, 2 */
    double start_seconds;         /* first sample, relative to the clip's start */
    double end_seconds;           /* where it ends; 0: with the video */
    const char *language, *title; /* may be NULL */
    bool is_default;
};

/* Zero means the default in every field. */
struct clip_options {
    const char *format; /* libav muxer; NULL: guessed from the path */
    /* Video; none when is_audio_only. */
    bool is_audio_only;
    const char *codec;         /* libav encoder; NULL: "libx264" */
    int width, height;         /* upright; 320, 180 */
    const char *pix_fmt;       /* NULL: what the encoder likes, 8-bit 4:2:0 first */
    struct rational fps;       /* 25 */
    int frames;                /* 50 */
    const int64_t *pts;        /* `frames` times in time_base, increasing: variable frame rate */
    struct rational time_base; /* of pts and of the encoder; unset: 1/fps */
    int gop;                   /* frames; 0: one second; 1: intra only */
    bool is_open_gop;
    int b_frames;
    bool is_pyramid;
    bool is_interlaced, is_bottom_first;
    int rotation; /* clockwise degrees to turn for display */
    struct rational sample_aspect;
    const char *color_primaries, *color_transfer, *color_space, *color_range; /* libav names */
    const char *video_options; /* "key=value:key=value" for the encoder */
    /* Audio. */
    struct clip_audio audio[CLIP_AUDIO_MAX];
    int n_audio;
    /* Container. */
    double start_seconds;      /* added to every timestamp; may be negative */
    int64_t start_90k;         /* the same in 1/90000 s, exact: 2^33 - 90000 wraps after a second */
    bool has_cover;            /* an attached picture (JPEG) */
    const char *muxer_options; /* "key=value:key=value" */
};

int clip_make(const char *path, const struct clip_options *options, struct err *e);

/* The number drawn into an upright picture in any 4:x:x planar YUV or grey format of 8 to 16 bits;
 * -1 when the strip is not there or does not check. `rotation`: clockwise degrees that the picture
 * still has to be turned to stand upright. */
int64_t clip_read_frame_number(const AVFrame *frame);
int64_t clip_read_turned(const AVFrame *frame, int rotation);

struct clip_frame {
    int64_t pts;
    AVRational time_base;
    int64_t number; /* -1: unreadable */
    bool is_key;
    char type; /* I, P, B */
    int width, height;
};

/* Decodes the `index`-th video stream of a file or playlist (any protocol libav has), frame by
 * frame, in order. Returns the number of frames. */
int64_t clip_read_video(const char *path, int index,
                        void (*frame)(void *arg, const struct clip_frame *f), void *arg,
                        struct err *e);

#define CLIP_PULSES_MAX 4096

/* What the `index`-th audio stream turned out to be. Positions are in samples from pts 0. */
struct clip_sound {
    int sample_rate, channels;
    int64_t start;   /* position of the first sample handed out by the decoder */
    int64_t samples; /* how many were, a channel */
    int64_t gaps; /* places where a frame's pts is off the count of samples by more than one ms */
    int64_t pulses[CLIP_PULSES_MAX]; /* positions of the pulses' peaks */
    int n_pulses;
    double roughness; /* largest second difference away from the pulses, the first and last 50 ms,
                         relative to a clean sine's; a click shows as a large number */
    double roughness_at; /* seconds, where that was */
};

int clip_read_audio(const char *path, int index, struct clip_sound *ret, struct err *e);
