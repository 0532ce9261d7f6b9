#include <stdio.h>

#include "cli/progress.h"
#include "cli/summary.h"
#include "cli/verbs.h"
#include "common/cleanup.h"

enum { WAIT_US = 200 * 1000 };

int cli_watch(struct queue *q, const char *id, struct progress *progress,
              int (*tick)(void *arg, struct err *e), void *arg, struct job **ret_job, struct err *e)
{
    for (;;) {
        job_free(ret_job);
        int r = queue_job_get(q, id, ret_job, e);
        if (r < 0)
            return r;
        progress_update(progress, *ret_job);
        if (cli_job_has_ended(*ret_job))
            return 0;
        if ((tick && (r = tick(arg, e)) != 0) || (r = queue_job_wait(q, id, WAIT_US, e)) < 0)
            return r;
    }
}

struct watch_options {
    struct cli_common common;
    const char *redis;
    bool is_quiet;
};

static int watch_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)argc;
    const struct watch_options *o = arg;
    cleanup(queue_close) struct queue *q = NULL;
    cleanup(job_free) struct job *job = NULL;
    int r = cli_queue_open(o->redis, &q, e);
    if (r < 0)
        return r;
    cleanup(progress_free) struct progress *progress = progress_new(stderr, o->is_quiet);
    r = cli_watch(q, argv[0], progress, NULL, NULL, &job, e);
    progress_free(&progress);
    return r < 0 ? r : summary_print(job, o->common.is_json, o->is_quiet, e);
}

static const struct opt options[] = {
    CLI_OPT_REDIS(struct watch_options),
    {.name = "quiet",
     .letter = 'q',
     .type = OPT_FLAG,
     .offset = offsetof(struct watch_options, is_quiet),
     .help = "show no progress and no summary"},
    {0},
};

const struct opt_verb verb_watch = {
    .name = "watch",
    .positionals = "ID",
    .min_args = 1,
    .max_args = 1,
    .summary = "show a job's progress until it ends",
    .details = "Exits like the job: 0 when it is done, else by what ended it.",
    .opts = options,
    .size = sizeof(struct watch_options),
    .run = watch_run,
};
