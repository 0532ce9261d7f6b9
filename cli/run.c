/*
 * Everything on this machine, for one job: a private queue, a dispatcher and a worker as children,
 * the same programs that make up a farm. This file only starts them, watches, and stops them in
 * order: first the worker, which gives its work back, then the dispatcher, then the queue, so that
 * the state on disk is whole and --resume starts from it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/progress.h"
#include "cli/state.h"
#include "cli/summary.h"
#include "cli/supervise.h"
#include "cli/verbs.h"
#include "common/cleanup.h"
#include "common/process.h"
#include "common/strbuf.h"
#include "queue/embedded.h"

#define JOB_ID "run"

enum {
    STOP_EACH_US = 10 * 1000 * 1000,
    RETRY_US = 3 * 1000 * 1000, /* the queue is a child: away means dead */
};

struct run_options {
    struct cli_common common;
    const char *output, *device;
    struct cli_job_opts job;
    int64_t sessions;
    struct opt_list limits;
    bool is_resume, is_force, is_quiet;
};

struct run {
    const struct run_options *options;
    struct job_spec spec;
    struct state state;
    struct embedded_redis *redis;
    struct queue *queue;
    struct supervisor *supervisor;
    struct progress *progress;
    struct job *job; /* the last snapshot */
};

static bool is_urgent(void)
{
    return process_signal_count() > 1;
}

static void say(void *arg, const char *line)
{
    progress_say(((struct run *)arg)->progress, line);
}

static int start_dispatcher(struct run *r, const char *level, struct err *e)
{
    const char *argv[] = {"dispatcher",  "--redis", embedded_redis_url(r->redis),
                          "--log-level", level,     NULL};
    return supervisor_start(r->supervisor, argv, e);
}

static int start_worker(struct run *r, const char *level, struct err *e)
{
    const struct run_options *o = r->options;
    cleanup(free_ptr) char *sessions = xasprintf("%" PRId64, o->sessions);
    const char *argv[18 + 2 * sizeof o->limits.values / sizeof o->limits.values[0]] = {
        "worker",       "--redis",   embedded_redis_url(r->redis),
        "--device",     o->device,   "--sessions",
        sessions,       "--scratch", r->state.scratch,
        "--grace",      "0.1", /* what is not finished now is finished by --resume */
        "--quarantine", "0",   /* nobody waits for a GPU to recover */
        "--log-level",  level};
    size_t n = 15;
    for (size_t i = 0; i < o->limits.n; i++) {
        argv[n++] = "--limit";
        argv[n++] = o->limits.values[i];
    }
    return supervisor_start(r->supervisor, argv, e);
}

/* The queue first: what an earlier run left leased belongs to nobody now. */
static int start(struct run *r, struct err *e)
{
    const char *level = r->options->common.log_level ? r->options->common.log_level
                        : r->options->is_quiet       ? "error"
                                                     : "warning";
    struct queue_options options = {.retry_us = RETRY_US, .wake_fd = process_signal_fd()};
    int rc;
    if ((rc = embedded_redis_start(r->state.redis, &r->redis, e)) < 0 ||
        (rc = queue_open(embedded_redis_url(r->redis), &options, &r->queue, e)) < 0 ||
        (rc = queue_release_all(r->queue, e)) < 0)
        return rc;
    r->supervisor = supervisor_new(say, r);
    if ((rc = start_dispatcher(r, level, e)) < 0)
        return rc;
    return start_worker(r, level, e);
}

/* A job of an earlier run that failed or was cancelled goes on. */
static int submit(struct run *r, struct err *e)
{
    cleanup(free_ptr) char *id = NULL;
    int rc = queue_submit(r->queue, &r->spec, &id, e);
    if (rc == -ERR_USAGE)
        return err_set(e, ERR_USAGE,
                       "%s: the unfinished run was begun with another input, profile or options: "
                       "give the same again, or --force to start anew",
                       r->spec.output);
    return rc == 0 ? queue_retry(r->queue, JOB_ID, e) : rc;
}

static int tick(void *arg, struct err *e)
{
    struct run *r = arg;
    if (process_signal_count())
        return CLI_EXIT_DRAINED;
    int rc = supervisor_check(r->supervisor, e);
    if (rc <= 0)
        return rc;
    if ((rc = queue_release_all(r->queue, e)) < 0)
        return rc;
    return supervisor_restart(r->supervisor, e);
}

static void stop(struct run *r)
{
    if (r->supervisor)
        supervisor_stop(r->supervisor, STOP_EACH_US, is_urgent);
    supervisor_free(&r->supervisor);
    queue_close(&r->queue);
    embedded_redis_stop(&r->redis);
}

static void run_free(struct run *r)
{
    stop(r);
    progress_free(&r->progress);
    job_free(&r->job);
    state_close(&r->state);
    cli_spec_free(&r->spec);
}

/* What leaves nothing behind: a finished run, one that would only fail the same way again, and one
 * that never came to do anything. */
static bool is_over(const struct run *r, int rc)
{
    if (rc < 0)
        return r->state.is_new && (!r->job || !r->job->tasks_done);
    return r->job->state == JOB_DONE ||
           (r->job->state == JOB_FAILED && err_is_permanent(r->job->reason_kind));
}

static int work(struct run *r, struct err *e)
{
    int rc;
    process_title_set("run");
    process_signals_catch();
    if ((rc = start(r, e)) >= 0 && (rc = submit(r, e)) >= 0)
        rc = cli_watch(r->queue, JOB_ID, r->progress, tick, r, &r->job, e);
    stop(r);
    progress_free(&r->progress);
    return rc;
}

static int finish(struct run *r, int rc, struct err *e)
{
    if (rc == CLI_EXIT_DRAINED) {
        err_set(e, ERR_CANCELLED,
                "stopped; what is done is kept in %s: go on with the same command and --resume",
                r->spec.output);
        return rc;
    }
    struct err ignored = {0}; /* the first reason is the one to tell */
    if (is_over(r, rc) && state_remove(&r->state, rc < 0 ? &ignored : e) < 0 && rc >= 0)
        return -(int)e->kind;
    if (rc < 0)
        return rc;
    return summary_print(r->job, r->options->common.is_json, r->options->is_quiet, e);
}

static int run_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)argc;
    cleanup(run_free) struct run r = {.options = arg, .state.lock_fd = -1};
    const struct run_options *o = r.options;
    struct limits limits;
    int rc;
    if (!o->output)
        return err_set(e, ERR_USAGE, "where to? give -o OUTDIR");
    if ((rc = cli_limits_make(&o->limits, &limits, e)) < 0 ||
        (rc = cli_spec_make(&o->job, argv[0], o->output, JOB_ID, &r.spec, e)) < 0 ||
        (rc = state_open(r.spec.output, o->is_resume, o->is_force, &r.state, e)) < 0)
        return rc;
    if (rc == 1) {
        if (o->common.is_json)
            cli_print_json(json_pack("{s:s, s:b}", "output", r.spec.output, "is_done", 1));
        else if (!o->is_quiet)
            printf("%s is finished already: %s/master.m3u8\n", o->output, r.spec.output);
        return 0;
    }
    r.progress = progress_new(stderr, o->is_quiet);
    return finish(&r, work(&r, e), e);
}

static const struct opt options[] = {
    {.name = "output",
     .letter = 'o',
     .type = OPT_STRING,
     .offset = offsetof(struct run_options, output),
     .argument = "OUTDIR",
     .complete = "dir",
     .help = "where the output tree goes; made if it is not there"},
    CLI_OPTS_JOB(struct run_options),
    CLI_OPT_DEVICE(struct run_options),
    CLI_OPT_SESSIONS(struct run_options),
    CLI_OPT_LIMIT(struct run_options),
    {.name = "resume",
     .type = OPT_FLAG,
     .offset = offsetof(struct run_options, is_resume),
     .help = "go on with an unfinished run, doing only what is missing"},
    {.name = "force",
     .letter = 'f',
     .type = OPT_FLAG,
     .offset = offsetof(struct run_options, is_force),
     .help = "start anew over an unfinished run or a finished output"},
    {.name = "quiet",
     .letter = 'q',
     .type = OPT_FLAG,
     .offset = offsetof(struct run_options, is_quiet),
     .help = "show no progress and no summary"},
    {0},
};

const struct opt_verb verb_run = {
    .name = "run",
    .positionals = "INPUT",
    .min_args = 1,
    .max_args = 1,
    .summary = "transcode one file on this machine, start to end",
    .details =
        "Starts a private queue, a dispatcher and a worker, and stops them when the job is "
        "done. Until then OUTDIR/.transcode holds what is needed to go on. Ctrl-C stops "
        "cleanly, giving running work back, with exit code 6; the same command with --resume "
        "finishes what is missing.",
    .opts = options,
    .size = sizeof(struct run_options),
    .run = run_run,
};
