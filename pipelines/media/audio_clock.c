#include "pipelines/media/audio_clock.h"

/* Timestamps of real files wander by a few milliseconds around the sample count; half a usual frame
 * (20 to 32 ms) is never jitter but loss. */
static const struct rational jitter = {1, 100};

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t audio_clock_position(int64_t pts, struct rational tick, int64_t origin,
                             struct rational origin_base, int rate)
{
    __int128 t, o, n, d, den = (__int128)tick.den * origin_base.den;
    if (__builtin_mul_overflow((__int128)pts * tick.num, origin_base.den, &t) ||
        __builtin_mul_overflow((__int128)origin * origin_base.num, tick.den, &o) ||
        __builtin_sub_overflow(t, o, &n) || __builtin_mul_overflow(n, 2 * (__int128)rate, &n) ||
        __builtin_mul_overflow(den, 2, &d))
        return AUDIO_CLOCK_NONE;
    n += n < 0 ? -den : den; /* nearest: (2 n + den) / (2 den), half away from zero */
    n /= d;
    return n > INT64_MAX / 4 || n < -(INT64_MAX / 4) ? AUDIO_CLOCK_NONE : (int64_t)n;
}

void audio_clock_init(struct audio_clock *c, struct rational tick, int rate, int64_t floor)
{
    *c = (struct audio_clock){.tick = tick, .rate = rate, .floor = max_i64(floor, 0)};
}

void audio_clock_set_rate(struct audio_clock *c, int rate)
{
    struct rational from = {1, c->rate}, to = {1, rate};
    c->next = rational_rescale(c->next, from, to, ROUND_NEAREST);
    c->floor = rational_rescale(c->floor, from, to, ROUND_NEAREST);
    c->rate = rate;
}

/* Two rounded timestamps can differ from the truth by one tick together; one more for good measure,
 * and a sample because positions are rounded as well. */
static int64_t rounding_error(const struct audio_clock *c)
{
    return 1 + rational_rescale(2, c->tick, (struct rational){1, c->rate}, ROUND_CEIL);
}

static void start(struct audio_clock *c, int64_t position, int64_t samples, struct audio_place *ret)
{
    if (position == AUDIO_CLOCK_NONE)
        position = c->floor;
    int64_t early = c->floor - position;
    if (early > rounding_error(c)) { /* priming that nobody has dropped */
        ret->skip = min_i64(early, samples);
        c->cut += ret->skip;
    }
    ret->take = samples - ret->skip;
    if (!ret->take)
        return;
    c->is_started = true;
    c->next = max_i64(position + ret->skip, 0) + ret->take; /* never before the origin */
}

void audio_clock_place(struct audio_clock *c, int64_t position, int64_t samples, bool is_after_loss,
                       struct audio_place *ret)
{
    *ret = (struct audio_place){0};
    if (!c->is_started) {
        start(c, position, samples, ret);
        return;
    }
    int64_t error = position == AUDIO_CLOCK_NONE ? 0 : position - c->next;
    int64_t allowed = rounding_error(c);
    if (!is_after_loss)
        allowed = max_i64(
            allowed, rational_rescale(1, jitter, (struct rational){1, c->rate}, ROUND_NEAREST));
    if (error > allowed)
        ret->silence = error;
    else if (error < -allowed)
        ret->skip = min_i64(-error, samples);
    ret->take = samples - ret->skip;
    c->next += ret->silence + ret->take;
    c->filled += ret->silence;
    c->cut += ret->skip;
}

int64_t audio_clock_fill(struct audio_clock *c, int64_t position)
{
    if (!c->is_started || position <= c->next)
        return 0;
    int64_t silence = position - c->next;
    c->next = position;
    c->filled += silence;
    return silence;
}
