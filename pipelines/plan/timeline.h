/*
 * The timeline: where segments and keyframes begin. Pure integer arithmetic, no I/O, no libav.
 *
 * All positions are ticks of a time base, counted from the job's one origin (struct source).
 * Segment k begins at the first frame at or after k*D, a GOP likewise on its own grid G, so both
 * are functions of the frame's position alone: no state is carried from frame to frame, chunk to
 * chunk or rendition to rendition (I2, I3).
 *
 * Two things make that exact for real sources:
 *  - cfr: where the probe found a constant rate, a position is first snapped to the nearest
 *    start + n/cfr, so that timestamps rounded to milliseconds fall where they were meant. start
 *    is the first frame's position: a video that begins later than its audio keeps that distance.
 *  - ref: where a rendition runs on a slower grid, a border may only fall on that rendition's
 * ticks, or borders would differ between renditions by a frame. Positions are floored to n/ref
 * before the division by D or G. ref is the slowest grid of the ladder; unset when all keep source
 * timing.
 */
#pragma once
#include <stdint.h>

#include "common/rational.h"

struct timeline {
    struct rational time_base; /* of the video track's ticks, e.g. 1/90000 */
    struct rational segment;   /* D, seconds */
    struct rational gop;       /* G, seconds; D is a whole multiple of it */
    struct rational cfr;       /* frames/s of a constant-rate source, else unset */
    int64_t start;             /* ticks: the first frame, where n/cfr is counted from */
    struct rational ref;       /* borders fall on ticks n/ref only; unset: on any frame */
};

/* The segment, and the GOP, that the source frame at tick t belongs to. */
int64_t timeline_segment(const struct timeline *tl, int64_t t);
int64_t timeline_gop(const struct timeline *tl, int64_t t);

/* The same for tick m of an output grid of `rate` frames/s (time m/rate). */
int64_t timeline_grid_segment(const struct timeline *tl, int64_t m, struct rational rate);
int64_t timeline_grid_gop(const struct timeline *tl, int64_t m, struct rational rate);

/* The first grid tick at or after source position t: the frame at t is shown on ticks
 * timeline_grid_tick(t) ≤ m < timeline_grid_tick(t of the next frame). */
int64_t timeline_grid_tick(const struct timeline *tl, int64_t t, struct rational rate);

/* The earliest tick of tl->time_base that can belong to segment k (a frame at t belongs to a
 * segment ≥ k exactly when t ≥ this). */
int64_t timeline_segment_start(const struct timeline *tl, int64_t k);

/* Thumbnails lie on a grid of their own, every k*`every` seconds from the origin, and are source
 * frames whatever the renditions show. The step k that the frame at t lies in, and the least tick
 * that lies in step k or a later one. */
int64_t timeline_step(const struct timeline *tl, int64_t t, struct rational every);
int64_t timeline_step_start(const struct timeline *tl, int64_t k, struct rational every);

/* Audio: position of the first packet of segment k when packets of `packet_samples` samples follow
 * each other from sample `start` (in samples from the origin): index of the first packet whose
 * start ≥ k*D. Packet p starts at start + p*packet_samples. Never negative. */
int64_t timeline_audio_packet(struct rational segment, int sample_rate, int64_t start,
                              int packet_samples, int64_t k);
