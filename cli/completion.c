#include <stdio.h>

#include "cli/verbs.h"

static int completion_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)arg, (void)argc, (void)argv, (void)e;
    opt_print_completion(stdout, "transcode", cli_verbs, cli_common_opts);
    return 0;
}

static const struct opt options[] = {{0}};

const struct opt_verb verb_completion = {
    .name = "completion",
    .positionals = "",
    .summary = "print the bash completion",
    .opts = options,
    .size = sizeof(struct cli_common),
    .run = completion_run,
    .is_hidden = true,
};
