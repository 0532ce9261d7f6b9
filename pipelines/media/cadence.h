/*
 * How regular a video's frames are, measured in one pass with fixed memory: presentation times go
 * in, in order; a rate comes out, exact where the frames sit on a grid. Pure; thread: one.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "common/rational.h"

#define CADENCE_CANDIDATES 24

struct cadence_candidate {
    struct rational rate;
    bool is_standard;
    double worst; /* largest distance of a frame from its place, ticks; < 0: ruled out */
};

struct cadence {
    struct rational time_base;
    struct cadence_candidate candidates[CADENCE_CANDIDATES];
    int n_candidates;
    int64_t frames, first, last, max_interval;
};

/* guesses: rates that the container hints at, best first; unset ones are passed over. */
void cadence_init(struct cadence *c, struct rational time_base, const struct rational *guesses,
                  int n);
void cadence_add(struct cadence *c, int64_t pts); /* pts must grow */

/* True: constant, every frame within a quarter of a frame of its place n/rate after the first. */
bool cadence_rate(const struct cadence *c, struct rational *ret);
