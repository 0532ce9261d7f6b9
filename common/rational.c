#include "common/rational.h"

#include <ctype.h>

typedef __int128 wide;

static wide gcd(wide a, wide b)
{
    while (b) {
        wide r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

/* Reduces; a result beyond 63 bits loses low bits of both, which times and rates never reach. */
static struct rational reduce(wide num, wide den)
{
    if (den < 0) {
        num = -num;
        den = -den;
    }
    wide g = gcd(num, den);
    if (g > 1) {
        num /= g;
        den /= g;
    }
    while (num > INT64_MAX || num < -INT64_MAX || den > INT64_MAX) {
        num /= 2;
        den /= 2;
    }
    return (struct rational){(int64_t)num, den ? (int64_t)den : 1};
}

struct rational rational_make(int64_t num, int64_t den)
{
    return reduce(num, den);
}

struct rational rational_mul(struct rational a, struct rational b)
{
    return reduce((wide)a.num * b.num, (wide)a.den * b.den);
}

struct rational rational_div(struct rational a, struct rational b)
{
    return reduce((wide)a.num * b.den, (wide)a.den * b.num);
}

int rational_cmp(struct rational a, struct rational b)
{
    wide l = (wide)a.num * b.den, r = (wide)b.num * a.den;
    return (l > r) - (l < r);
}

static wide floor_div(wide a, wide b) /* b > 0 */
{
    wide q = a / b;
    return a % b < 0 ? q - 1 : q;
}

static int64_t saturate(wide n)
{
    return n > INT64_MAX ? INT64_MAX : n < INT64_MIN ? INT64_MIN : (int64_t)n;
}

/*
 * t * num / den where num/den is from/to reduced: the product t * num stays below 126 bits, since
 * the rates and time bases of media have 31-bit terms, so that doubling it for rounding is safe.
 */
int64_t rational_rescale(int64_t t, struct rational from, struct rational to, enum rounding r)
{
    struct rational f = rational_div(from, to);
    wide n = (wide)t * f.num, d = f.den;
    switch (r) {
    case ROUND_FLOOR:
        return saturate(floor_div(n, d));
    case ROUND_CEIL:
        return saturate(-floor_div(-n, d));
    default:
        return saturate(n < 0 ? -floor_div(-2 * n + d, 2 * d) : floor_div(2 * n + d, 2 * d));
    }
}

/* Digits with an optional decimal point at *s; advances it. */
static int parse_decimal(const char **s, struct rational *ret)
{
    wide num = 0, den = 1;
    int digits = 0, is_fraction = 0;
    for (; isdigit((unsigned char)**s) || (**s == '.' && !is_fraction); ++*s) {
        if (**s == '.') {
            is_fraction = 1;
            continue;
        }
        if (++digits > 18)
            return -1;
        num = num * 10 + (**s - '0');
        if (is_fraction)
            den *= 10;
    }
    *ret = reduce(num, den);
    return digits ? 0 : -1;
}

int rational_parse(const char *text, struct rational *ret)
{
    int is_negative = *text == '-';
    text += is_negative;
    struct rational num, den = {1, 1};
    if (parse_decimal(&text, &num) < 0)
        return -1;
    if (*text == '/') {
        text++;
        if (parse_decimal(&text, &den) < 0 || !den.num)
            return -1;
    }
    if (*text)
        return -1;
    *ret = rational_div(num, den);
    if (is_negative)
        ret->num = -ret->num;
    return 0;
}
