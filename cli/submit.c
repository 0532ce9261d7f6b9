#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/summary.h"
#include "cli/verbs.h"
#include "common/cleanup.h"
#include "common/strbuf.h"

struct submit_options {
    struct cli_common common;
    const char *redis, *output, *id, *tenant, *priority;
    double deadline_s, keep_s;
    struct cli_job_opts job;
    bool is_wait, is_quiet;
};

static int wait_for(struct queue *q, const char *id, const struct submit_options *o, struct err *e)
{
    cleanup(job_free) struct job *job = NULL;
    cleanup(progress_free) struct progress *progress = progress_new(stderr, o->is_quiet);
    int r = cli_watch(q, id, progress, NULL, NULL, &job, e);
    progress_free(&progress);
    if (r < 0)
        return r;
    if (!o->common.is_json)
        return cli_job_outcome(job, e);
    return summary_print(job, true, true, e);
}

static int priority_parse(const char *text, int *ret, struct err *e)
{
    static const struct {
        const char *name;
        int value;
    } names[] = {{"low", 25}, {"normal", QUEUE_PRIORITY}, {"high", 75}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(text, names[i].name)) {
            *ret = names[i].value;
            return 0;
        }
    char *end;
    long v = strtol(text, &end, 10);
    if (end == text || *end || v < 0 || v > QUEUE_PRIORITY_MAX)
        return err_set(e, ERR_USAGE, "--priority %s: expected low, normal, high or 0 to %d", text,
                       QUEUE_PRIORITY_MAX);
    *ret = (int)v;
    return 0;
}

static int submit_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)argc;
    const struct submit_options *o = arg;
    cleanup(cli_spec_free) struct job_spec spec = {0};
    cleanup(queue_close) struct queue *q = NULL;
    cleanup(free_ptr) char *id = NULL;
    int r;
    if (!o->output)
        return err_set(e, ERR_USAGE, "where to? give -o OUT");
    if ((r = cli_queue_open(o->redis, &q, e)) < 0 ||
        (r = cli_spec_make(&o->job, argv[0], o->output, o->id, &spec, e)) < 0)
        return r;
    spec.tenant = xstrdup(o->tenant);
    spec.deadline_us = (int64_t)(o->deadline_s * 1e6);
    spec.keep_us = (int64_t)(o->keep_s * 1e6);
    if ((r = priority_parse(o->priority, &spec.priority, e)) < 0 ||
        (r = queue_submit(q, &spec, &id, e)) < 0)
        return r;
    if (!o->common.is_json)
        puts(id);
    else if (!o->is_wait)
        cli_print_json(json_pack("{s:s, s:b}", "id", id, "is_new", r == 1));
    fflush(stdout); /* the id is there to be used while --wait goes on */
    return o->is_wait ? wait_for(q, id, o, e) : 0;
}

static const struct opt options[] = {
    {.name = "output",
     .letter = 'o',
     .type = OPT_STRING,
     .offset = offsetof(struct submit_options, output),
     .argument = "OUT",
     .complete = "dir",
     .help = "where the output tree goes; made if it is not there"},
    CLI_OPT_REDIS(struct submit_options),
    {.name = "id",
     .type = OPT_STRING,
     .offset = offsetof(struct submit_options, id),
     .argument = "ID",
     .help = "name the job, so that submitting it again is the same job"},
    CLI_OPTS_JOB(struct submit_options),
    {.name = "tenant",
     .letter = 't',
     .type = OPT_STRING,
     .offset = offsetof(struct submit_options, tenant),
     .argument = "NAME",
     .env = "TRANSCODE_TENANT",
     .fallback = QUEUE_TENANT,
     .help = "on whose account: tenants share the farm fairly"},
    {.name = "priority",
     .type = OPT_STRING,
     .offset = offsetof(struct submit_options, priority),
     .argument = "low|normal|high|0-100",
     .fallback = "normal",
     .complete = "low normal high",
     .help = "what goes first; low is 25, normal 50, high 75"},
    {.name = "deadline",
     .type = OPT_SECONDS,
     .offset = offsetof(struct submit_options, deadline_s),
     .argument = "SECONDS",
     .max = 365 * 86400,
     .help = "fail the job when it has not ended by then; 0: never"},
    {.name = "keep",
     .type = OPT_SECONDS,
     .offset = offsetof(struct submit_options, keep_s),
     .argument = "SECONDS",
     .fallback = "168h",
     .max = 365 * 86400,
     .help = "forget the job so long after it has ended (its output stays)"},
    {.name = "wait",
     .letter = 'w',
     .type = OPT_FLAG,
     .offset = offsetof(struct submit_options, is_wait),
     .help = "wait until the job has ended and exit by its outcome"},
    {.name = "quiet",
     .letter = 'q',
     .type = OPT_FLAG,
     .offset = offsetof(struct submit_options, is_quiet),
     .help = "with --wait, show no progress"},
    {0},
};

const struct opt_verb verb_submit = {
    .name = "submit",
    .positionals = "INPUT",
    .min_args = 1,
    .max_args = 1,
    .summary = "put a job into the queue and print its id",
    .details = "Workers and dispatchers that serve the same queue do the work; INPUT and OUT must "
               "mean the same to them as here.",
    .opts = options,
    .size = sizeof(struct submit_options),
    .run = submit_run,
};
