/*
 * How the arithmetic stays exact: a time is one fraction of 128-bit integers, never rounded before
 * the one floor or ceiling that a definition asks for. The widest product is ticks (63 bits) times
 * a time base's and a rate's terms (each at most about 31 bits), which leaves room.
 *
 * Everything is a composition of monotone steps
 *
 *     tick -> snapped time -> floored to 1/ref -> floored to a multiple of D
 *
 * so the set of ticks of one segment is an interval, and each step has an inverse ("the least
 * argument that reaches x"). timeline_segment_start is the composition of those inverses, in
 * reverse order; that is why it agrees with timeline_segment on every tick.
 */
#include "pipelines/plan/timeline.h"

typedef __int128 wide;

struct fraction {
    wide num, den; /* den > 0 */
};

static int64_t floor_of(struct fraction f)
{
    wide q = f.num / f.den;
    return (int64_t)(f.num % f.den < 0 ? q - 1 : q);
}

static int64_t ceil_of(struct fraction f)
{
    return -floor_of((struct fraction){-f.num, f.den});
}

static struct fraction times(int64_t n, struct rational r)
{
    return (struct fraction){(wide)n * r.num, r.den};
}

static struct fraction scaled(struct fraction f, struct rational r)
{
    return (struct fraction){f.num * r.num, f.den * r.den};
}

static struct rational inverse(struct rational r)
{
    return (struct rational){r.den, r.num};
}

static struct fraction sum(struct fraction a, struct fraction b)
{
    return (struct fraction){a.num * b.den + b.num * a.den, a.den * b.den};
}

static struct fraction negative(struct fraction f)
{
    return (struct fraction){-f.num, f.den};
}

/* The time that tick t was meant to be. Halves go up, on either side of zero, so that snapping
 * stays monotone and even. */
static struct fraction snapped(const struct timeline *tl, int64_t t)
{
    if (!rational_is_set(tl->cfr))
        return times(t, tl->time_base);
    int64_t halves = floor_of(scaled(times(2 * (t - tl->start), tl->time_base), tl->cfr));
    int64_t n = (halves + 1) >> 1;
    return sum(times(tl->start, tl->time_base), times(n, inverse(tl->cfr)));
}

/* Inverse of snapped: the least tick whose time is at or after `at`. */
static int64_t first_tick(const struct timeline *tl, struct fraction at)
{
    if (!rational_is_set(tl->cfr))
        return ceil_of(scaled(at, inverse(tl->time_base)));
    struct fraction from_start = sum(at, negative(times(tl->start, tl->time_base)));
    int64_t n = ceil_of(scaled(from_start, tl->cfr));
    struct fraction half_before = times(2 * n - 1, inverse(tl->cfr));
    half_before.den *= 2;
    return tl->start + ceil_of(scaled(half_before, inverse(tl->time_base)));
}

/* Index of the step of `length` seconds that a time belongs to. */
static int64_t step_of(const struct timeline *tl, struct fraction at, struct rational length)
{
    if (rational_is_set(tl->ref))
        at = times(floor_of(scaled(at, tl->ref)), inverse(tl->ref));
    return floor_of(scaled(at, inverse(length)));
}

/* Inverse of step_of: the earliest time of step k. */
static struct fraction step_start(const struct timeline *tl, int64_t k, struct rational length)
{
    struct fraction at = times(k, length);
    if (!rational_is_set(tl->ref))
        return at;
    return times(ceil_of(scaled(at, tl->ref)), inverse(tl->ref));
}

int64_t timeline_segment(const struct timeline *tl, int64_t t)
{
    return step_of(tl, snapped(tl, t), tl->segment);
}

int64_t timeline_gop(const struct timeline *tl, int64_t t)
{
    return step_of(tl, snapped(tl, t), tl->gop);
}

int64_t timeline_grid_segment(const struct timeline *tl, int64_t m, struct rational rate)
{
    return step_of(tl, times(m, inverse(rate)), tl->segment);
}

int64_t timeline_grid_gop(const struct timeline *tl, int64_t m, struct rational rate)
{
    return step_of(tl, times(m, inverse(rate)), tl->gop);
}

int64_t timeline_grid_tick(const struct timeline *tl, int64_t t, struct rational rate)
{
    return ceil_of(scaled(snapped(tl, t), rate));
}

int64_t timeline_segment_start(const struct timeline *tl, int64_t k)
{
    return first_tick(tl, step_start(tl, k, tl->segment));
}

int64_t timeline_step(const struct timeline *tl, int64_t t, struct rational every)
{
    return floor_of(scaled(snapped(tl, t), inverse(every)));
}

int64_t timeline_step_start(const struct timeline *tl, int64_t k, struct rational every)
{
    return first_tick(tl, times(k, every));
}

int64_t timeline_audio_packet(struct rational segment, int sample_rate, int64_t start,
                              int packet_samples, int64_t k)
{
    struct fraction border = scaled(times(k, segment), (struct rational){sample_rate, 1});
    struct fraction behind = sum(border, (struct fraction){-start, 1});
    int64_t p = ceil_of(scaled(behind, (struct rational){1, packet_samples}));
    return p < 0 ? 0 : p;
}
