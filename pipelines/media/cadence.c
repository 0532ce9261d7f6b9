/*
 * A rate is a candidate until a frame is found off its grid: frame number i must lie within a
 * quarter of a frame of first + i/rate, so every grid place is taken exactly once. A quarter, not a
 * half, keeps 24 frames/s rounded onto a 30 frames/s track from passing as constant. What is left
 * at the end is ranked: what explains every time to the rounding of a tick wins over what merely
 * fits, since over a few frames many rates do.
 */
#include "pipelines/media/cadence.h"

#include <math.h>
#include <stddef.h>

static const struct rational standard[] = {
    {24000, 1001}, {24, 1}, {25, 1},        {30000, 1001}, {30, 1},  {48, 1}, {50, 1},
    {60000, 1001}, {60, 1}, {120000, 1001}, {120, 1},      {100, 1}, {15, 1}, {12, 1},
};

static bool is_standard(struct rational rate)
{
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++)
        if (rational_cmp(standard[i], rate) == 0)
            return true;
    return false;
}

static void add_candidate(struct cadence *c, struct rational rate)
{
    enum { FASTEST = 1000 };
    if (rate.num <= 0 || rate.den <= 0 || rate.num / rate.den > FASTEST ||
        c->n_candidates == CADENCE_CANDIDATES)
        return;
    for (int i = 0; i < c->n_candidates; i++)
        if (rational_cmp(c->candidates[i].rate, rate) == 0)
            return;
    c->candidates[c->n_candidates++] =
        (struct cadence_candidate){.rate = rate, .is_standard = is_standard(rate)};
}

void cadence_init(struct cadence *c, struct rational time_base, const struct rational *guesses,
                  int n)
{
    *c = (struct cadence){.time_base = time_base};
    for (int i = 0; i < n; i++)
        add_candidate(c, guesses[i]);
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++)
        add_candidate(c, standard[i]);
}

/* Ticks between frames at a rate. */
static double frame_ticks(const struct cadence *c, struct rational rate)
{
    return (double)rate.den * (double)c->time_base.den /
           ((double)rate.num * (double)c->time_base.num);
}

static void check(struct cadence *c, struct cadence_candidate *x, int64_t pts)
{
    struct rational period = {x->rate.den, x->rate.num};
    /* the grid place in 1/1024 ticks: rounding it must not matter */
    struct rational fine = {c->time_base.num, c->time_base.den * 1024};
    int64_t place = rational_rescale(c->frames, period, fine, ROUND_NEAREST);
    double off = fabs((double)((pts - c->first) * 1024 - place) / 1024);
    if (off > frame_ticks(c, x->rate) / 4)
        x->worst = -1;
    else if (off > x->worst)
        x->worst = off;
}

void cadence_add(struct cadence *c, int64_t pts)
{
    if (c->frames == 0)
        c->first = pts;
    else if (pts - c->last > c->max_interval)
        c->max_interval = pts - c->last;
    for (int i = 0; i < c->n_candidates; i++)
        if (c->candidates[i].worst >= 0)
            check(c, &c->candidates[i], pts);
    c->last = pts;
    c->frames++;
}

/* Among the rates that explain every time to the rounding of a tick: a standard one, the nearest to
 * the container's first hint, since hints are often averages; else a hint. */
static const struct cadence_candidate *best_exact(const struct cadence *c)
{
    const struct cadence_candidate *best = NULL, *hint = NULL;
    double best_off = 0;
    for (int i = 0; i < c->n_candidates; i++) {
        const struct cadence_candidate *x = &c->candidates[i];
        if (x->worst < 0 || x->worst > 1) /* both ends of a distance are rounded */
            continue;
        double off = fabs(rational_to_double(x->rate) - rational_to_double(c->candidates[0].rate));
        if (x->is_standard && (!best || off < best_off)) {
            best = x;
            best_off = off;
        }
        if (!hint && !x->is_standard)
            hint = x;
    }
    return best ? best : hint;
}

bool cadence_rate(const struct cadence *c, struct rational *ret)
{
    const struct cadence_candidate *best = best_exact(c);
    for (int i = 0; !best && i < c->n_candidates; i++)
        if (c->candidates[i].worst >= 0)
            best = &c->candidates[i];
    for (int i = 0; i < c->n_candidates && best && best->worst > 1; i++)
        if (c->candidates[i].worst >= 0 && c->candidates[i].worst < best->worst)
            best = &c->candidates[i];
    if (best)
        *ret = best->rate;
    return best != NULL;
}
