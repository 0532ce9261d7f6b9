#include "worker/session.h"

#include "cli/verbs.h"

static int session_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)arg, (void)argc, (void)argv;
    return session_main(e);
}

static const struct opt options[] = {{0}};

const struct opt_verb verb_session = {
    .name = "session",
    .positionals = "",
    .max_args = -1,
    .summary = "run tasks for the agent on descriptor 3",
    .opts = options,
    .size = sizeof(struct cli_common),
    .run = session_run,
    .is_hidden = true,
};
