#include <inttypes.h>
#include <stdio.h>

#include "cli/verbs.h"
#include "common/cleanup.h"

struct tenant_options {
    struct cli_common common;
    const char *redis;
    int64_t weight, running, open;
};

static int tenant_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)argc;
    const struct tenant_options *o = arg;
    cleanup(queue_close) struct queue *q = NULL;
    const struct queue_tenant set = {o->weight, o->running, o->open, 0, 0};
    struct queue_tenant t;
    int r;
    if ((r = cli_queue_open(o->redis, &q, e)) < 0 ||
        (r = queue_tenant_set(q, argv[0], &set, &t, e)) < 0)
        return r;
    if (o->common.is_json) {
        cli_print_json(json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "tenant", argv[0], "weight",
                                 (json_int_t)t.weight, "running_max", (json_int_t)t.running_max,
                                 "open_max", (json_int_t)t.open_max, "running",
                                 (json_int_t)t.running, "open", (json_int_t)t.open));
        return 0;
    }
    printf("weight         %" PRId64 "\n", t.weight);
    printf("running tasks  %" PRId64, t.running);
    printf(t.running_max ? " of at most %" PRId64 "\n" : ", no cap\n", t.running_max);
    printf("open jobs      %" PRId64 " of at most %" PRId64 "\n", t.open, t.open_max);
    return 0;
}

#define COUNT(option, field, text)                                                         \
    {                                                                                      \
        .name = option, .type = OPT_INT, .offset = offsetof(struct tenant_options, field), \
        .argument = "N", .fallback = "-1", .min = -1, .max = 1000000000, .help = text      \
    }

static const struct opt options[] = {
    CLI_OPT_REDIS(struct tenant_options),
    COUNT("weight", weight,
          "its share among the tenants of one priority, 1 at first; -1: as it is"),
    COUNT("running", running, "tasks that workers run at once; 0: no cap; -1: as it is"),
    COUNT("open", open, "jobs that have not ended, beyond which submit says busy; -1: as it is"),
    {0},
};

const struct opt_verb verb_tenant = {
    .name = "tenant",
    .positionals = "NAME",
    .min_args = 1,
    .max_args = 1,
    .summary = "show or set a tenant's share of the farm and its caps",
    .opts = options,
    .size = sizeof(struct tenant_options),
    .run = tenant_run,
};
