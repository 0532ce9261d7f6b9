#include <inttypes.h>
#include <stdio.h>

#include "cli/format.h"
#include "cli/summary.h"
#include "cli/verbs.h"
#include "common/cleanup.h"

struct status_options {
    struct cli_common common;
    const char *redis;
};

static int print_job(const struct job *job, struct err *e)
{
    char time[FORMAT_MAX];
    printf("job       %s\n", job->spec.id);
    printf("state     %s\n", job_state_names[job->state]);
    if (job->reason)
        printf("reason    %s\n", job->reason);
    printf("tenant    %s, priority %d\n", job->spec.tenant, job->spec.priority);
    printf("input     %s\n", job->spec.input);
    printf("output    %s\n", job->spec.output);
    printf("tasks     %" PRId64 " done, %" PRId64 " running, %" PRId64 " in all\n", job->tasks_done,
           job->tasks_running, job->tasks);
    if (job->frames_total)
        printf("frames    %" PRId64 " of %" PRId64 "\n", job->frames_done, job->frames_total);
    printf("created   %s\n", format_utc(job->created_us, time));
    if (job->deadline_us)
        printf("deadline  %s\n", format_utc(job->deadline_us, time));
    if (job->finished_us)
        printf("finished  %s\n", format_utc(job->finished_us, time));
    return summary_print_report(job, e);
}

static int status_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)argc;
    const struct status_options *o = arg;
    cleanup(queue_close) struct queue *q = NULL;
    cleanup(job_free) struct job *job = NULL;
    int r;
    if ((r = cli_queue_open(o->redis, &q, e)) < 0 || (r = queue_job_get(q, argv[0], &job, e)) < 0)
        return r;
    if (!o->common.is_json)
        return print_job(job, e);
    cli_print_json(job_to_json(job));
    return 0;
}

static const struct opt options[] = {CLI_OPT_REDIS(struct status_options), {0}};

const struct opt_verb verb_status = {
    .name = "status",
    .positionals = "ID",
    .min_args = 1,
    .max_args = 1,
    .summary = "show what a job is doing or has come to",
    .opts = options,
    .size = sizeof(struct status_options),
    .run = status_run,
};
