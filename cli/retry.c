#include <stdio.h>

#include "cli/verbs.h"
#include "common/cleanup.h"

struct retry_options {
    struct cli_common common;
    const char *redis;
};

static int retry_run(const void *arg, int argc, char **argv, struct err *e)
{
    const struct retry_options *o = arg;
    cleanup(queue_close) struct queue *q = NULL;
    int r = cli_queue_open(o->redis, &q, e);
    for (int i = 0; r >= 0 && i < argc; i++) {
        if ((r = queue_retry(q, argv[i], e)) < 0)
            break;
        if (o->common.is_json)
            cli_print_json(json_pack("{s:s, s:b}", "id", argv[i], "is_changed", r == 1));
        else
            printf("%s %s\n", argv[i], r == 1 ? "goes on" : "is not failed or cancelled");
    }
    return r < 0 ? r : 0;
}

static const struct opt options[] = {CLI_OPT_REDIS(struct retry_options), {0}};

const struct opt_verb verb_retry = {
    .name = "retry",
    .positionals = "ID [ID...]",
    .min_args = 1,
    .max_args = -1,
    .summary = "go on with a failed or cancelled job",
    .details = "What was committed is kept; only what is missing is done.",
    .opts = options,
    .size = sizeof(struct retry_options),
    .run = retry_run,
};
