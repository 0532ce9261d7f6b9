/* Options from tables: values, their sources and limits, one-line usage errors; help, man page
 * (checked by groff where it is) and completion (run by bash). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/opt.h"
#include "common/strbuf.h"

struct common_opts {
    bool is_json;
};

struct cook_opts {
    struct common_opts common;
    const char *out, *url, *profile;
    int64_t sessions;
    double chunk;
    struct opt_list limits;
    bool is_quiet;
};

static const struct opt common_opts[] = {
    {.name = "json",
     .type = OPT_FLAG,
     .offset = offsetof(struct common_opts, is_json),
     .help = "print JSON"},
    {0},
};

#define ROW(member, ...) .offset = offsetof(struct cook_opts, member), ##__VA_ARGS__
static const struct opt cook_rows[] = {
    {"output", 'o', OPT_STRING, ROW(out, .argument = "DIR", .complete = "dir"),
     .help = "where it goes"},
    {"redis", 0, OPT_STRING, ROW(url, .argument = "URL", .env = "TEST_OPT_REDIS"),
     .fallback = "redis://default", .help = "the queue"},
    {"profile", 'p', OPT_STRING, ROW(profile, .argument = "NAME|FILE", .complete = "profile"),
     .help = ".dots and 'quotes' and back\\slashes"},
    {"sessions", 'n', OPT_INT, ROW(sessions, .argument = "N", .min = 1, .max = 64), .fallback = "2",
     .env = "TEST_OPT_SESSIONS", .complete = "1 2 4 8", .help = "how many"},
    {"segment-seconds", 0, OPT_SECONDS, ROW(chunk, .argument = "SECONDS", .max = 86400),
     .help = "a rather long help text that goes on and on, so that it must be wrapped before "
             "the eightieth column of the terminal"},
    {"limit", 'l', OPT_LIST, ROW(limits, .argument = "NAME=VALUE"), .help = "a limit"},
    {"quiet", 'q', OPT_FLAG, ROW(is_quiet, .env = "TEST_OPT_QUIET"), .help = "say nothing"},
    {0},
};

static const struct opt_verb cook = {
    .name = "cook",
    .positionals = "INPUT [MORE]",
    .min_args = 1,
    .max_args = 2,
    .summary = "cook the input",
    .details = "First paragraph.\n.Second paragraph, 'with' a dot.",
    .opts = cook_rows,
    .size = sizeof(struct cook_opts),
};
static const struct opt no_rows[] = {{0}};
static const struct opt_verb secret = {.name = "secret",
                                       .summary = "internal",
                                       .opts = no_rows,
                                       .size = sizeof(struct common_opts),
                                       .is_hidden = true};
static const struct opt_verb *const verbs[] = {&cook, &secret, NULL};

static struct cook_opts opts;
static char **args;
static int n_args;
static struct err err;

static int parse(const char *line) /* words split at blanks; "''" is an empty one */
{
    static char copy[4096];
    static char *argv[200];
    int argc = 0;
    snprintf(copy, sizeof copy, "cook %s", line);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
        argv[argc++] = strcmp(w, "''") ? w : w + 2;
    argv[argc] = NULL;
    opts = (struct cook_opts){0};
    err = (struct err){0};
    return opt_parse(&cook, common_opts, argc, argv, &opts, &n_args, &args, &err);
}

static void accepts(const char *line)
{
    if (parse(line) != 0)
        fail_msg("%s: %s", line, err.msg);
}

static void refuses(const char *line, const char *message)
{
    assert_int_equal(parse(line), -ERR_USAGE);
    cleanup(free_ptr) char *whole = xasprintf("%s; see 'transcode cook --help'", message);
    if (strcmp(err.msg, whole))
        fail_msg("%s: expected \"%s\", got \"%s\"", line, whole, err.msg);
}

static void test_values(void **state)
{
    (void)state;
    accepts("-o out in.mp4 --limit a=1 --sessions=8 -l b=2 --segment-seconds 1.5m -q --json more");
    assert_string_equal(opts.out, "out");
    assert_string_equal(opts.url, "redis://default");
    assert_null(opts.profile);
    assert_int_equal(opts.sessions, 8);
    assert_true(opts.chunk == 90);
    assert_int_equal(opts.limits.n, 2);
    assert_string_equal(opts.limits.values[1], "b=2");
    assert_true(opts.is_quiet && opts.common.is_json);
    assert_int_equal(n_args, 2);
    assert_string_equal(args[0], "in.mp4");
    assert_string_equal(args[1], "more");

    accepts("in -- -q");
    assert_false(opts.is_quiet);
    assert_string_equal(args[1], "-q");
    accepts("in -n1 -n 64 --seg 2h");
    assert_int_equal(opts.sessions, 64);
    assert_true(opts.chunk == 7200);
    accepts("in --segment-seconds .5s");
    assert_true(opts.chunk == 0.5);
}

static void test_environment(void **state)
{
    (void)state;
    setenv("TEST_OPT_REDIS", "redis://env", 1);
    setenv("TEST_OPT_SESSIONS", "3", 1);
    setenv("TEST_OPT_QUIET", "yes", 1);
    accepts("in");
    assert_string_equal(opts.url, "redis://env");
    assert_int_equal(opts.sessions, 3);
    assert_true(opts.is_quiet);
    accepts("in --redis redis://given -n 4");
    assert_string_equal(opts.url, "redis://given");
    assert_int_equal(opts.sessions, 4);
    setenv("TEST_OPT_REDIS", "", 1);
    accepts("in");
    assert_string_equal(opts.url, "redis://default");
    setenv("TEST_OPT_SESSIONS", "65", 1);
    refuses("in", "TEST_OPT_SESSIONS: expected a whole number from 1 to 64, got \"65\"");
    setenv("TEST_OPT_QUIET", "maybe", 1);
    refuses("in -n 1", "TEST_OPT_QUIET: expected true or false, got \"maybe\"");
    unsetenv("TEST_OPT_REDIS");
    unsetenv("TEST_OPT_SESSIONS");
    unsetenv("TEST_OPT_QUIET");
}

static void test_usage_errors(void **state)
{
    (void)state;
    refuses("in --sesions 2", "--sesions: no such option (did you mean --sessions?)");
    refuses("in --xyzzy=1", "--xyzzy: no such option");
    refuses("in more --xyzzy", "--xyzzy: no such option");
    refuses("in -x", "-x: no such option");
    refuses("in -qx", "-x: no such option");
    refuses("in --se 2",
            "--se: expected one option, got the beginning of --sessions and --segment-seconds");
    refuses("in --output", "--output: expected DIR, got nothing");
    refuses("in -o", "--output: expected DIR, got nothing");
    refuses("in --quiet=1", "--quiet: expected no argument, got one");
    refuses("in -n 0", "--sessions: expected a whole number from 1 to 64, got \"0\"");
    refuses("in -n 1x", "--sessions: expected a whole number from 1 to 64, got \"1x\"");
    refuses("in -n ''", "--sessions: expected a whole number from 1 to 64, got \"\"");
    refuses("in -n 99999999999999999999",
            "--sessions: expected a whole number from 1 to 64, got \"99999999999999999999\"");
    static const char *const bad[] = {"x", "1d", "s", "1/2", "-1", "1e3", "25h", "nan"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cleanup(free_ptr) char *line = xasprintf("in --segment-seconds %s", bad[i]);
        cleanup(free_ptr) char *text = xasprintf("--segment-seconds: expected seconds (12, 1.5, "
                                                 "90s, 2m, 1h) from 0 to 86400, got \"%s\"",
                                                 bad[i]);
        refuses(line, text);
    }
    refuses("", "expected INPUT [MORE], got nothing");
    refuses("a b c", "expected INPUT [MORE], got \"c\" as well");

    cleanup(strbuf_free) struct strbuf many = {0};
    strbuf_puts(&many, "in");
    for (int i = 0; i < 64; i++)
        strbuf_puts(&many, " -l x");
    accepts(many.s);
    assert_int_equal(opts.limits.n, 64);
    strbuf_puts(&many, " -l x");
    refuses(many.s, "--limit: expected at most 64 times, got more");
}

/* --- generated text -------------------------------------------------------------------------- */

static char *printed(void (*print)(FILE *out))
{
    char *text;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    print(f);
    fclose(f);
    return text;
}

static void help(FILE *out)
{
    opt_print_help(out, "transcode", &cook, common_opts);
}

static void overview(FILE *out)
{
    opt_print_overview(out, "transcode", verbs);
}

static void man(FILE *out)
{
    opt_print_man(out, "transcode", verbs, common_opts);
}

static void completion(FILE *out)
{
    opt_print_completion(out, "transcode", verbs, common_opts);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("expected \"%s\" in:\n%s", part, text);
}

static void test_help(void **state)
{
    (void)state;
    cleanup(free_ptr) char *text = printed(help);
    assert_has(text, "Usage: transcode cook [OPTION]... INPUT [MORE]\n\nCook the input.\n");
    assert_has(text, "\n  -o, --output DIR        where it goes\n");
    assert_has(text,
               "\n      --redis URL         the queue (default: redis://default) (environment:\n"
               "                          TEST_OPT_REDIS)\n");
    assert_has(text, "(1 to 64) (default: 2)");
    assert_has(text, "\n      --json              print JSON\n");
    assert_has(text, "\n  -h, --help              show this help and exit\n");
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
        assert_in_range(end - line, 0, 80);

    cleanup(free_ptr) char *all = printed(overview);
    assert_has(all, "\n  cook        cook the input\n");
    assert_has(all, "\n  3  bad input");
    assert_has(all, "\n  6  stopped");
    assert_null(strstr(all, "secret"));
}

static void test_help_is_asked_for(void **state)
{
    (void)state;
    fflush(stdout);
    int saved = dup(1);
    FILE *to = tmpfile();
    dup2(fileno(to), 1);
    int rc = parse("--help --nonsense");
    fflush(stdout);
    dup2(saved, 1);
    close(saved);
    char text[8192] = "";
    rewind(to);
    size_t n = fread(text, 1, sizeof text - 1, to);
    fclose(to);
    cleanup(free_ptr) char *expected = printed(help);
    assert_int_equal(rc, 1);
    assert_true(n > 0);
    assert_string_equal(text, expected);
}

static char *run(const char *command, const char *input)
{
    char path[] = "/tmp/test_opt_XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, input, strlen(input)), strlen(input));
    close(fd);
    cleanup(free_ptr) char *line = xasprintf("%s < %s 2>&1", command, path);
    FILE *p = popen(line, "r");
    cleanup(strbuf_free) struct strbuf out = {0};
    char part[4096];
    size_t n;
    while ((n = fread(part, 1, sizeof part, p)) > 0)
        strbuf_add(&out, part, n);
    pclose(p);
    unlink(path);
    return strbuf_take(&out);
}

static void test_man(void **state)
{
    (void)state;
    cleanup(free_ptr) char *text = printed(man);
    assert_has(text, ".TH TRANSCODE 1 ");
    assert_has(text, ".SH NAME\ntranscode \\- ");
    assert_has(text, "\\fB\\-n\\fR, \\fB\\-\\-sessions\\fR \\fIN\\fR\nhow many");
    assert_has(text, "\\fB\\-\\-segment\\-seconds\\fR");
    assert_has(text, ".SH ENVIRONMENT\n.TP\n\\fBTEST_OPT_REDIS\\fR\n");
    assert_has(text, "First paragraph.\n.PP\n\\&.Second");
    assert_has(text, "\n\\&.dots and \\(aqquotes\\(aq and back\\eslashes");
    assert_null(strstr(text, "secret"));
    if (system("command -v groff >/dev/null") != 0)
        return;
    cleanup(free_ptr) char *shown = run("groff -man -Tascii -ww -P-cbou", text);
    assert_null(strstr(shown, "warning"));
    assert_null(strstr(shown, "error"));
    assert_has(shown, "-n, --sessions N");
    assert_has(shown, ".dots and 'quotes' and back\\slashes");
    assert_has(shown, ".Second paragraph, 'with' a dot.");
}

static void completes(const char *words, const char *expected)
{
    cleanup(free_ptr) char *script = printed(completion);
    cleanup(free_ptr) char *all =
        xasprintf("%s\ntranscode() { printf 'NAME X\\nh264 6\\nhevc 7\\n'; }\n"
                  "cd / && COMP_WORDS=(%s) && COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                  "_transcode; echo \"${COMPREPLY[*]}\"\n",
                  script, words);
    cleanup(free_ptr) char *got = run("bash -u", all);
    cleanup(free_ptr) char *line = xasprintf("%s\n", expected);
    if (strcmp(got, line))
        fail_msg("%s: expected \"%s\", got \"%s\"", words, line, got);
}

static void test_completion(void **state)
{
    (void)state;
    completes("transcode ''", "cook --help --version");
    completes("transcode co", "cook");
    completes("transcode cook --s", "--sessions --segment-seconds");
    completes("transcode cook --js", "--json");
    completes("transcode cook --sessions ''", "1 2 4 8");
    completes("transcode cook -n 4", "4");
    completes("transcode cook --sessions = 8", "8");
    completes("transcode cook --sessions =", "1 2 4 8");
    completes("transcode cook --redis x", "");
    completes("transcode cook --output /et", "/etc");
    completes("transcode cook /etc/os-rel", "/etc/os-release");
    completes("transcode cook -p he", "hevc");
    completes("transcode cook -p N", "");
    completes("transcode secret ''", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),       cmocka_unit_test(test_environment),
        cmocka_unit_test(test_usage_errors), cmocka_unit_test(test_help),
        cmocka_unit_test(test_man),          cmocka_unit_test(test_help_is_asked_for),
        cmocka_unit_test(test_completion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
