/* The entry: finds the verb in the table, reads its options, runs it, and turns what it returns
 * into one line and an exit code. */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/process.h"
#include "common/strbuf.h"

#define PROGRAM "transcode"

static const struct opt_verb *find_verb(const char *name)
{
    for (size_t i = 0; cli_verbs[i]; i++)
        if (!strcmp(cli_verbs[i]->name, name))
            return cli_verbs[i];
    return NULL;
}

/* For errors in the options themselves, when the option struct is not there to ask. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], "--json"))
            return true;
    return false;
}

static void print_error(const char *verb, struct err *e, int exit_code, bool is_json)
{
    log_redact(e->msg);
    if (is_json)
        cli_print_json(json_pack("{s:{s:s, s:s, s:i}}", "error", "kind", err_kind_name(e->kind),
                                 "message", e->msg, "exit_code", exit_code));
    else
        fprintf(stderr, PROGRAM ": %s%s%s\n", verb ? verb : "", verb ? ": " : "", e->msg);
}

static int run_verb(const struct opt_verb *verb, int argc, char **argv, struct err *e)
{
    cleanup(free_ptr) struct cli_common *opts = xcalloc(1, verb->size);
    enum log_level level = LOG_WARNING;
    int n;
    char **args;
    int r = opt_parse(verb, cli_common_opts, argc, argv, opts, &n, &args, e);
    if (r)
        return r < 0 ? r : 0;
    if (opts->log_level && log_level_parse(opts->log_level, &level) < 0)
        return err_set(e, ERR_USAGE, "--log-level %s: expected error, warning, info or debug",
                       opts->log_level);
    log_init(level, "");
    return verb->run(opts, n, args, e);
}

static int dispatch(int argc, char **argv, const char **ret_verb, struct err *e)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (!strcmp(name, "--version") || !strcmp(name, "-V"))
        return printf(PROGRAM " %s\n", TRANSCODE_VERSION) < 0 ? 1 : 0;
    bool is_help = !strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help");
    if (is_help && argc == 2) {
        opt_print_overview(stdout, PROGRAM, cli_verbs);
        return 0;
    }
    if (is_help)
        name = argv[2];
    const struct opt_verb *verb = find_verb(name);
    if (!verb)
        return err_set(e, ERR_USAGE,
                       *name ? "no verb \"%s\"; see " PROGRAM " --help"
                             : "say what to do%s; see " PROGRAM " --help",
                       name);
    *ret_verb = verb->name;
    if (is_help) {
        opt_print_help(stdout, PROGRAM, verb, cli_common_opts);
        return 0;
    }
    return run_verb(verb, argc - 1, argv + 1, e);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    const char *verb = NULL;
    argv = process_title_init(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    log_init(LOG_WARNING, "");
    int r = dispatch(argc, argv, &verb, &e);
    int exit_code = r > 0 ? r : err_exit_code((enum err_kind) - r);
    if (e.kind && exit_code)
        print_error(verb, &e, exit_code, wants_json(argc, argv));
    if ((fflush(stdout) || ferror(stdout)) && !exit_code) {
        fputs(PROGRAM ": the output could not be written to stdout\n", stderr);
        exit_code = 1;
    }
    return exit_code;
}
