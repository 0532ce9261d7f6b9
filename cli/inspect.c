#include "worker/inspect.h"

#include "cli/verbs.h"

struct inspect_verb_options {
    struct cli_common common;
    double speed_s;
};

static int inspect_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)argc, (void)e;
    const struct inspect_verb_options *o = arg;
    inspect_main(argv[0], (int64_t)(o->speed_s * 1e6));
}

static const struct opt options[] = {
    {.name = "speed",
     .type = OPT_SECONDS,
     .offset = offsetof(struct inspect_verb_options, speed_s),
     .argument = "SECONDS",
     .max = 3600,
     .help = "length of each measurement of speed; 0: none"},
    {0},
};

const struct opt_verb verb_inspect = {
    .name = "inspect",
    .positionals = "PART",
    .min_args = 1,
    .max_args = 1,
    .summary = "look at one part of the machine for doctor: system, cpu or cuda:N",
    .opts = options,
    .size = sizeof(struct inspect_verb_options),
    .run = inspect_run,
    .is_hidden = true,
};
