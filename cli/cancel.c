#include <stdio.h>

#include "cli/verbs.h"
#include "common/cleanup.h"

struct cancel_options {
    struct cli_common common;
    const char *redis;
};

static int cancel_run(const void *arg, int argc, char **argv, struct err *e)
{
    const struct cancel_options *o = arg;
    cleanup(queue_close) struct queue *q = NULL;
    int r = cli_queue_open(o->redis, &q, e);
    for (int i = 0; r >= 0 && i < argc; i++) {
        if ((r = queue_cancel(q, argv[i], e)) < 0)
            break;
        if (o->common.is_json)
            cli_print_json(json_pack("{s:s, s:b}", "id", argv[i], "is_changed", r == 1));
        else
            printf("%s %s\n", argv[i], r == 1 ? "cancelled" : "had ended already");
    }
    return r < 0 ? r : 0;
}

static const struct opt options[] = {CLI_OPT_REDIS(struct cancel_options), {0}};

const struct opt_verb verb_cancel = {
    .name = "cancel",
    .positionals = "ID [ID...]",
    .min_args = 1,
    .max_args = -1,
    .summary = "stop a job and drop its work",
    .details = "Running tasks are told at their next sign of life. What was made stays where it "
               "is, without a master.",
    .opts = options,
    .size = sizeof(struct cancel_options),
    .run = cancel_run,
};
