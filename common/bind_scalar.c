#include "common/bind_scalar.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/utf8.h"

static const struct scalar_type {
    const char *expected;
    int64_t min, max;
    bool may_be_quoted;
} types[] = {
    [BIND_BOOL] = {"true or false", 0, 0, false},
    [BIND_INT] = {"a whole number", INT_MIN, INT_MAX, false},
    [BIND_INT64] = {"a whole number", INT64_MIN, INT64_MAX, false},
    [BIND_DOUBLE] = {"a number", INT64_MIN, INT64_MAX, false},
    [BIND_STRING] = {"text", 0, 0, true},
    [BIND_ENUM] = {"", 0, 0, true},
    [BIND_RATIONAL] = {"a number or fraction (25, 29.97, 30000/1001)", INT64_MIN, INT64_MAX, true},
    [BIND_BITRATE] = {"a bit rate (145000, 7800k, 2.5M)", 0, INT64_MAX, true},
};

bool bind_is_scalar(enum bind_type type)
{
    return type >= BIND_BOOL && type <= BIND_BITRATE;
}

static void limits(const struct bind_field *f, int64_t *ret_min, int64_t *ret_max)
{
    const struct scalar_type *t = &types[f->type];
    bool is_limited = f->min || f->max;
    *ret_min = is_limited && f->min > t->min ? f->min : t->min;
    *ret_max = is_limited && f->max >= f->min && f->max < t->max ? f->max : t->max;
}

static bool is_integer_within(const struct bind_field *f, int64_t n)
{
    int64_t min, max;
    limits(f, &min, &max);
    return n >= min && n <= max;
}

static bool read_bool(const struct bind_field *f, const char *text, void *member)
{
    (void)f;
    bool is_true = !strcmp(text, "true");
    if (!is_true && strcmp(text, "false"))
        return false;
    *(bool *)member = is_true;
    return true;
}

static bool read_integer(const char *text, int64_t *ret)
{
    char *end;
    if (strspn(text, "-0123456789") != strlen(text) || !*text)
        return false;
    errno = 0;
    *ret = strtoll(text, &end, 10);
    return !*end && !errno;
}

static bool read_int(const struct bind_field *f, const char *text, void *member)
{
    int64_t n;
    if (!read_integer(text, &n) || !is_integer_within(f, n))
        return false;
    *(int *)member = (int)n;
    return true;
}

static bool read_int64(const struct bind_field *f, const char *text, void *member)
{
    int64_t n;
    if (!read_integer(text, &n) || !is_integer_within(f, n))
        return false;
    *(int64_t *)member = n;
    return true;
}

static locale_t c_locale;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static bool read_double(const struct bind_field *f, const char *text, void *member)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_c_locale);
    if (!*text || strspn(text, "+-.0123456789eE") != strlen(text))
        return false;
    char *end;
    double d = strtod_l(text, &end, c_locale); /* a decimal point whatever the user's locale */
    int64_t min, max;
    limits(f, &min, &max);
    if (*end || !isfinite(d) || d < (double)min || d > (double)max)
        return false;
    *(double *)member = d;
    return true;
}

static bool read_string(const struct bind_field *f, const char *text, void *member)
{
    (void)f;
    *(char **)member = xstrdup(text);
    return true;
}

static bool read_enum(const struct bind_field *f, const char *text, void *member)
{
    for (int i = 0; f->names[i]; i++)
        if (!strcmp(text, f->names[i])) {
            *(int *)member = i;
            return true;
        }
    return false;
}

static bool read_rational(const struct bind_field *f, const char *text, void *member)
{
    struct rational r;
    int64_t min, max;
    limits(f, &min, &max);
    if (rational_parse(text, &r) < 0 || rational_cmp(r, (struct rational){min, 1}) < 0 ||
        rational_cmp(r, (struct rational){max, 1}) > 0)
        return false;
    *(struct rational *)member = r;
    return true;
}

static bool read_bitrate(const struct bind_field *f, const char *text, void *member)
{
    static const char units[] = "kKMG";
    static const int64_t factors[] = {1000, 1000, 1000000, 1000000000};
    char number[32];
    size_t n = strlen(text);
    const char *unit = n ? strchr(units, text[n - 1]) : NULL;
    int64_t factor = unit ? factors[unit - units] : 1;
    n -= unit != NULL;
    if (n >= sizeof number || strspn(text, "0123456789.") < n)
        return false;
    memcpy(number, text, n);
    number[n] = 0;
    struct rational r;
    if (rational_parse(number, &r) < 0)
        return false;
    __int128 bps = (__int128)r.num * factor;
    if (bps % r.den || bps / r.den > INT64_MAX || !is_integer_within(f, (int64_t)(bps / r.den)))
        return false;
    *(int64_t *)member = (int64_t)(bps / r.den);
    return true;
}

bool bind_scalar_read(const struct bind_field *f, const char *text, bool is_quoted, void *member)
{
    static bool (*const readers[])(const struct bind_field *, const char *, void *) = {
        [BIND_BOOL] = read_bool,         [BIND_INT] = read_int,         [BIND_INT64] = read_int64,
        [BIND_DOUBLE] = read_double,     [BIND_STRING] = read_string,   [BIND_ENUM] = read_enum,
        [BIND_RATIONAL] = read_rational, [BIND_BITRATE] = read_bitrate,
    };
    return (!is_quoted || types[f->type].may_be_quoted) && readers[f->type](f, text, member);
}

void bind_scalar_zero(const struct bind_field *f, void *member)
{
    if (f->type == BIND_RATIONAL)
        *(struct rational *)member = (struct rational){0, 1};
}

void bind_scalar_expected(const struct bind_field *f, struct strbuf *out)
{
    const struct scalar_type *t = &types[f->type];
    strbuf_puts(out, t->expected);
    for (int i = 0; f->type == BIND_ENUM && f->names[i]; i++)
        strbuf_printf(out, "%s%s", !i ? "" : f->names[i + 1] ? ", " : " or ", f->names[i]);
    if (t->min == t->max)
        return;
    int64_t min, max;
    limits(f, &min, &max);
    if (min > t->min && max < t->max)
        strbuf_printf(out, " from %" PRId64 " to %" PRId64, min, max);
    else if (min > t->min)
        strbuf_printf(out, " of at least %" PRId64, min);
    else if (max < t->max)
        strbuf_printf(out, " of at most %" PRId64, max);
    else if (f->type == BIND_INT)
        strbuf_printf(out, " of at most %d", INT_MAX);
}

static json_t *write_string(const char *s)
{
    if (!s)
        return NULL;
    json_t *j = json_string(s);
    if (j)
        return j;
    cleanup(free_ptr) char *clean = utf8_clean(s); /* jansson takes valid UTF-8 only */
    return xcheck(json_string(clean));
}

static json_t *write_enum(const struct bind_field *f, int n)
{
    for (int i = 0; f->names[i]; i++)
        if (i == n)
            return json_string(f->names[i]);
    return NULL;
}

/* Zero is what an absent field without a fallback is read as. Where the limits exclude it, it must
 * be left out again, or what was written could not be read. */
static bool is_absent(const struct bind_field *f, bool is_zero)
{
    int64_t min, max;
    limits(f, &min, &max);
    return is_zero && !f->fallback && (min > 0 || max < 0);
}

static json_t *write_integer(const struct bind_field *f, int64_t n)
{
    return is_absent(f, n == 0) ? NULL : json_integer(n);
}

static json_t *write_rational(const struct bind_field *f, struct rational r)
{
    if (is_absent(f, r.num == 0))
        return NULL;
    return json_sprintf("%" PRId64 "/%" PRId64, r.num, r.den > 0 ? r.den : 1);
}

json_t *bind_scalar_write(const struct bind_field *f, const void *member)
{
    switch (f->type) {
    case BIND_BOOL:
        return json_boolean(*(const bool *)member);
    case BIND_INT:
        return write_integer(f, *(const int *)member);
    case BIND_INT64:
    case BIND_BITRATE:
        return write_integer(f, *(const int64_t *)member);
    case BIND_DOUBLE: {
        double d = *(const double *)member;
        return is_absent(f, d == 0) ? NULL : json_real(d); /* NULL too for what is not finite */
    }
    case BIND_STRING:
        return write_string(*(char *const *)member);
    case BIND_ENUM:
        return write_enum(f, *(const int *)member);
    default:
        return write_rational(f, *(const struct rational *)member);
    }
}
