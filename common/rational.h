/*
 * Exact rational arithmetic for times and rates; 128-bit intermediates, no floating point.
 * All functions are pure. A zero rate or time base is written {0, 1} and means "none".
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct rational {
    int64_t num;
    int64_t den; /* > 0 */
};

enum rounding { ROUND_FLOOR, ROUND_CEIL, ROUND_NEAREST /* half away from zero */ };

struct rational rational_make(int64_t num, int64_t den); /* reduced, den > 0; den must not be 0 */
struct rational rational_mul(struct rational a, struct rational b);
struct rational rational_div(struct rational a, struct rational b); /* b must not be 0 */
int rational_cmp(struct rational a, struct rational b);             /* <0, 0, >0 */
static inline bool rational_is_set(struct rational r)
{
    return r.num != 0;
}
static inline double rational_to_double(struct rational r)
{
    return (double)r.num / (double)r.den;
}

/* t * from / to, rounded: t ticks of `from` seconds as ticks of `to` seconds.
 * Saturates where the result leaves 64 bits. */
int64_t rational_rescale(int64_t t, struct rational from, struct rational to, enum rounding r);

/* Parses "30000/1001", "25", "-29.97" (exact decimal); nothing else may stand around it. 0 or -1.
 */
int rational_parse(const char *text, struct rational *ret);
