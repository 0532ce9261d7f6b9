#include <stdio.h>

#include "cli/verbs.h"

static int man_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)arg, (void)argc, (void)argv, (void)e;
    opt_print_man(stdout, "transcode", cli_verbs, cli_common_opts);
    return 0;
}

static const struct opt options[] = {{0}};

const struct opt_verb verb_man = {
    .name = "man",
    .positionals = "",
    .summary = "print the man page (troff)",
    .opts = options,
    .size = sizeof(struct cli_common),
    .run = man_run,
    .is_hidden = true,
};
