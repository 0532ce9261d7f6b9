#include "common/opt_inside.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/rational.h"
#include "common/suggest.h"

enum { LONG_BASE = UCHAR_MAX + 1 }; /* getopt's value of row i without a letter */

const struct opt opt_help = {
    .name = "help", .letter = 'h', .type = OPT_FLAG, .help = "show this help and exit"};

const struct opt *opt_row(const struct opt_verb *verb, const struct opt *common, size_t i)
{
    const struct opt *tables[] = {verb->opts, common};
    for (size_t t = 0; t < 2; t++)
        for (const struct opt *o = tables[t]; o && o->name; o++)
            if (!i--)
                return o;
    return i ? NULL : &opt_help;
}

static bool has_limits(const struct opt *o)
{
    return (o->type == OPT_INT || o->type == OPT_SECONDS) && (o->min || o->max);
}

static void add_limits(const struct opt *o, struct strbuf *out)
{
    if (o->max < o->min)
        strbuf_printf(out, "at least %" PRId64, o->min);
    else
        strbuf_printf(out, "%" PRId64 " to %" PRId64, o->min, o->max);
}

void opt_expected(const struct opt *o, struct strbuf *out)
{
    static const char *const texts[] = {
        [OPT_FLAG] = "true or false", [OPT_STRING] = "text",
        [OPT_INT] = "a whole number", [OPT_SECONDS] = "seconds (12, 1.5, 90s, 2m, 1h)",
        [OPT_LIST] = "text",
    };
    strbuf_puts(out, texts[o->type]);
    if (!has_limits(o))
        return;
    strbuf_puts(out, o->max < o->min ? " of " : " from ");
    add_limits(o, out);
}

void opt_describe(const struct opt *o, struct strbuf *out)
{
    strbuf_puts(out, o->help ? o->help : "");
    if (o->type == OPT_INT && has_limits(o)) {
        strbuf_puts(out, " (");
        add_limits(o, out);
        strbuf_puts(out, ")");
    }
    if (o->fallback && *o->fallback)
        strbuf_printf(out, " (default: %s)", o->fallback);
    if (o->env)
        strbuf_printf(out, " (environment: %s)", o->env);
}

/* --- values ---------------------------------------------------------------------------------- */

static bool is_within(const struct opt *o, double n)
{
    return !has_limits(o) || (n >= (double)o->min && (o->max < o->min || n <= (double)o->max));
}

static bool read_flag(const struct opt *o, const char *text, void *member)
{
    static const char *const words[] = {"0", "1", "false", "true", "no", "yes", "off", "on"};
    (void)o;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(text, words[i])) {
            *(bool *)member = i % 2;
            return true;
        }
    return false;
}

static bool read_string(const struct opt *o, const char *text, void *member)
{
    (void)o;
    *(const char **)member = text;
    return true;
}

static bool read_int(const struct opt *o, const char *text, void *member)
{
    char *end;
    if (!*text || strspn(text, "-0123456789") != strlen(text))
        return false;
    errno = 0;
    int64_t n = strtoll(text, &end, 10);
    if (*end || errno || (has_limits(o) && (n < o->min || (o->max >= o->min && n > o->max))))
        return false;
    *(int64_t *)member = n;
    return true;
}

static bool read_seconds(const struct opt *o, const char *text, void *member)
{
    static const char units[] = "smh";
    static const int factors[] = {1, 60, 3600};
    char number[32];
    size_t n = strlen(text);
    const char *unit = n ? strchr(units, text[n - 1]) : NULL;
    n -= unit != NULL;
    if (n >= sizeof number || memchr(text, '/', n))
        return false;
    memcpy(number, text, n);
    number[n] = 0;
    struct rational r;
    if (rational_parse(number, &r) < 0)
        return false;
    double seconds = rational_to_double(r) * (unit ? factors[unit - units] : 1);
    if (!is_within(o, seconds))
        return false;
    *(double *)member = seconds;
    return true;
}

static bool read_list(const struct opt *o, const char *text, void *member)
{
    (void)o;
    struct opt_list *list = member;
    if (list->n < sizeof list->values / sizeof list->values[0])
        list->values[list->n++] = text; /* set_value has refused one too many */
    return true;
}

static int usage(const struct opt_verb *verb, struct err *e, const char *fmt, ...)
{
    cleanup(strbuf_free) struct strbuf b = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vprintf(&b, fmt, ap);
    va_end(ap);
    return err_set(e, ERR_USAGE, "%s; see '" OPT_PROGRAM " %s --help'", b.s, verb->name);
}

/* `origin` is what the user wrote the value to: "--chunk", "TRANSCODE_REDIS". */
static int set_value(const struct opt_verb *verb, const struct opt *o, const char *origin,
                     const char *text, void *opts, struct err *e)
{
    static bool (*const readers[])(const struct opt *, const char *, void *) = {
        [OPT_FLAG] = read_flag,       [OPT_STRING] = read_string, [OPT_INT] = read_int,
        [OPT_SECONDS] = read_seconds, [OPT_LIST] = read_list,
    };
    void *member = (char *)opts + o->offset;
    const struct opt_list *list = member;
    size_t max = sizeof list->values / sizeof list->values[0];
    if (o->type == OPT_LIST && list->n == max)
        return usage(verb, e, "%s: expected at most %zu times, got more", origin, max);
    if (readers[o->type](o, text, member))
        return 0;
    cleanup(strbuf_free) struct strbuf b = {0};
    opt_expected(o, &b);
    return usage(verb, e, "%s: expected %s, got \"%.60s\"", origin, b.s, text);
}

/* --- the command line ------------------------------------------------------------------------ */

struct parser {
    const struct opt_verb *verb;
    const struct opt *common;
    size_t n; /* rows */
    struct option *longs;
    bool *is_given;
    struct strbuf shorts;
};

static void parser_free(struct parser *p)
{
    free(p->longs);
    free(p->is_given);
    strbuf_free(&p->shorts);
}

static int row_code(const struct opt *o, size_t i)
{
    return o->letter ? (unsigned char)o->letter : LONG_BASE + (int)i;
}

static void make_tables(struct parser *p)
{
    const struct opt *o;
    while (opt_row(p->verb, p->common, p->n))
        p->n++;
    p->longs = xcalloc(p->n + 1, sizeof *p->longs);
    p->is_given = xcalloc(p->n, sizeof *p->is_given);
    strbuf_puts(&p->shorts, ":"); /* a missing argument is told from an unknown option */
    for (size_t i = 0; (o = opt_row(p->verb, p->common, i)); i++) {
        int has_arg = o->type == OPT_FLAG ? no_argument : required_argument;
        p->longs[i] = (struct option){o->name, has_arg, NULL, row_code(o, i)};
        if (o->letter)
            strbuf_printf(&p->shorts, "%c%s", o->letter, has_arg ? ":" : "");
    }
}

static const struct opt *find_row(const struct parser *p, int code, size_t *ret_i)
{
    const struct opt *o;
    for (size_t i = 0; (o = opt_row(p->verb, p->common, i)); i++)
        if (row_code(o, i) == code) {
            *ret_i = i;
            return o;
        }
    return NULL;
}

static int unknown_long(const struct parser *p, const char *word, struct err *e)
{
    cleanup(free_ptr) char *name = xstrdup(word + 2);
    name[strcspn(name, "=")] = 0;
    const struct opt *o, *alike[2] = {NULL};
    struct suggest s = {.word = name};
    size_t n = 0;
    for (size_t i = 0; (o = opt_row(p->verb, p->common, i)); i++) {
        suggest_try(&s, o->name);
        if (!strncmp(o->name, name, strlen(name)) && n < 2)
            alike[n++] = o;
    }
    if (n == 2)
        return usage(p->verb, e, "--%s: expected one option, got the beginning of --%s and --%s",
                     name, alike[0]->name, alike[1]->name);
    if (s.best)
        return usage(p->verb, e, "--%s: no such option (did you mean --%s?)", name, s.best);
    return usage(p->verb, e, "--%s: no such option", name);
}

static int explain(const struct parser *p, int code, const char *word, struct err *e)
{
    size_t i;
    const struct opt *o = optopt ? find_row(p, optopt, &i) : NULL;
    if (o && code == ':')
        return usage(p->verb, e, "--%s: expected %s, got nothing", o->name,
                     o->argument ? o->argument : "an argument");
    if (o)
        return usage(p->verb, e, "--%s: expected no argument, got one", o->name);
    if (optopt)
        return usage(p->verb, e, "-%c: no such option", optopt);
    return unknown_long(p, word, e);
}

/* What was not given comes from the environment, else from the table. */
static int set_rest(const struct parser *p, void *opts, struct err *e)
{
    const struct opt *o;
    int rc = 0;
    for (size_t i = 0; rc == 0 && (o = opt_row(p->verb, p->common, i)); i++) {
        const char *env = o->env ? getenv(o->env) : NULL;
        if (p->is_given[i])
            continue;
        if (env && *env)
            rc = set_value(p->verb, o, o->env, env, opts, e);
        else if (o->fallback)
            rc = set_value(p->verb, o, o->name, o->fallback, opts, e);
    }
    return rc;
}

static int check_count(const struct opt_verb *verb, int argc, char **argv, struct err *e)
{
    const char *positionals = verb->positionals ? verb->positionals : "";
    if (verb->max_args >= 0 && argc > verb->max_args)
        return usage(verb, e, "expected %s, got \"%.60s\" as well",
                     *positionals ? positionals : "no arguments", argv[verb->max_args]);
    if (argc < verb->min_args && !argc)
        return usage(verb, e, "expected %s, got nothing", positionals);
    if (argc < verb->min_args)
        return usage(verb, e, "expected %s, got only \"%.60s\"", positionals, argv[argc - 1]);
    return 0;
}

int opt_parse(const struct opt_verb *verb, const struct opt *common, int argc, char **argv,
              void *ret_opts, int *ret_argc, char ***ret_argv, struct err *e)
{
    cleanup(parser_free) struct parser p = {.verb = verb, .common = common};
    make_tables(&p);
    optind = 0; /* glibc: start afresh */
    opterr = 0;
    for (;;) {
        int code = getopt_long(argc, argv, p.shorts.s, p.longs, NULL);
        size_t i = 0;
        if (code == -1)
            break;
        if (code == '?' || code == ':')
            return explain(&p, code, argv[optind - 1], e);
        const struct opt *o = find_row(&p, code, &i);
        if (o == &opt_help) {
            opt_print_help(stdout, OPT_PROGRAM, verb, common);
            return 1;
        }
        cleanup(free_ptr) char *origin = xasprintf("--%s", o->name);
        p.is_given[i] = true;
        int rc = set_value(verb, o, origin, optarg ? optarg : "true", ret_opts, e);
        if (rc < 0)
            return rc;
    }
    *ret_argc = argc - optind;
    *ret_argv = argv + optind;
    int rc = set_rest(&p, ret_opts, e);
    return rc < 0 ? rc : check_count(verb, *ret_argc, *ret_argv, e);
}
