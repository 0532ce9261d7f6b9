/*
 * Command-line options as tables: parsing (getopt_long), --help, the man page and bash completion
 * all come from the same rows. Thread: main only.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"

enum opt_type {
    OPT_END = 0,
    OPT_FLAG,    /* bool */
    OPT_STRING,  /* const char *, borrowed from argv or the environment */
    OPT_INT,     /* int64_t, within min..max */
    OPT_SECONDS, /* double seconds: "12", "1.5", "90s", "2m", "1h" */
    OPT_LIST,    /* struct opt_list: may be given again and again */
};

struct opt_list {
    const char *values[64];
    size_t n;
};

struct opt {
    const char *name; /* long name, without dashes */
    char letter;      /* short form, or 0 */
    enum opt_type type;
    size_t offset;        /* into the verb's option struct */
    const char *argument; /* placeholder in help, e.g. "FILE" */
    const char *fallback; /* default as text, shown in help; NULL: zero */
    const char *env;      /* environment variable that sets it when the option is not given */
    int64_t min, max;     /* OPT_INT, OPT_SECONDS; both 0: no limit; max < min: no upper one */
    const char *complete; /* bash completion: "file", "dir", "profile", or words "a b c" */
    const char *help;     /* one line, no full stop */
};

struct opt_verb {
    const char *name;
    const char *positionals; /* "INPUT", "ID [ID...]", "" */
    int min_args, max_args;  /* max_args < 0: any number */
    const char *summary;     /* one line */
    const char *details;     /* paragraphs for --help and the man page; may be NULL */
    const struct opt *opts;  /* ends with {0}; --help and the common options are added */
    size_t size;             /* of the option struct */
    /* Runs the verb; returns 0 or -kind. opts: the filled struct. */
    int (*run)(const void *opts, int argc, char **argv, struct err *e);
    bool is_hidden; /* internal verbs: not in help, man or completion */
};

/* What is not given comes from the environment variable, unless that is empty, else from the
 * fallback. Parses argv (argv[0] = verb name) into the zeroed struct of verb->size bytes. Returns
 * 0, -ERR_USAGE, or 1 when --help was asked for and printed. Positional arguments end up at
 * *ret_argv.
 */
int opt_parse(const struct opt_verb *verb, const struct opt *common, int argc, char **argv,
              void *ret_opts, int *ret_argc, char ***ret_argv, struct err *e);

void opt_print_help(FILE *out, const char *program, const struct opt_verb *verb,
                    const struct opt *common);
void opt_print_overview(FILE *out, const char *program, const struct opt_verb *const *verbs);
void opt_print_man(FILE *out, const char *program, const struct opt_verb *const *verbs,
                   const struct opt *common);
void opt_print_completion(FILE *out, const char *program, const struct opt_verb *const *verbs,
                          const struct opt *common);
