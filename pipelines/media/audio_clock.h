/*
 * Where decoded audio belongs: turns the timestamps of decoded frames into one unbroken run of
 * samples, counted from the job's origin. Pure integer arithmetic.
 *
 * The first frame's timestamp is the anchor; from there on samples are counted, not timed, so
 * timestamps that a container rounded to milliseconds neither drift nor click. Only where a
 * timestamp leaves the count by more than the allowed jitter is it believed: a gap becomes silence,
 * an overlap is cut from the later frame.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "common/rational.h"

#define AUDIO_CLOCK_NONE INT64_MIN /* a frame without a timestamp follows the one before it */

struct audio_clock {
    struct rational tick; /* of the source's timestamps, seconds */
    int rate;             /* samples/s */
    int64_t floor;        /* nothing lies before it: the track's first audible sample */
    bool is_started;
    int64_t next;        /* position of the sample that comes next */
    int64_t filled, cut; /* samples of silence put in, samples left out; for the report */
};

struct audio_place { /* what to do with one frame, in this order */
    int64_t silence; /* samples to put before it */
    int64_t skip;    /* its first samples to leave out */
    int64_t take;    /* samples to use after that */
};

/* (pts * tick - origin) * rate, rounded to the nearest sample; AUDIO_CLOCK_NONE when it is beyond
 * what 64 bits can hold. origin: in ticks of origin_base. */
int64_t audio_clock_position(int64_t pts, struct rational tick, int64_t origin,
                             struct rational origin_base, int rate);

void audio_clock_init(struct audio_clock *c, struct rational tick, int rate, int64_t floor);
/* The rate changes in mid-stream; positions go on from the same time. */
void audio_clock_set_rate(struct audio_clock *c, int rate);

/* is_after_loss: packets before this frame are known to be lost, so its timestamp is believed to
 * the tick instead of being allowed jitter. */
void audio_clock_place(struct audio_clock *c, int64_t position, int64_t samples, bool is_after_loss,
                       struct audio_place *ret);
/* The samples of silence up to `position` (0 if that is behind); the clock moves there. Before the
 * first frame there is nothing to fill. */
int64_t audio_clock_fill(struct audio_clock *c, int64_t position);
