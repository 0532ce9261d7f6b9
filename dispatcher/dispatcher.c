#include "dispatcher/dispatcher.h"

#include <stdio.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/process.h"
#include "common/strbuf.h"
#include "dispatcher/task.h"

enum {
    WAIT_US = 1000 * 1000,      /* blocked in a claim, unless a signal comes */
    RETRY_US = 3 * 1000 * 1000, /* in a call, while the queue is away; the loop goes on anyway */
    REAP_EVERY_US = 1000 * 1000,
    REAP_MAX = 256,
    BACKOFF_MIN_US = 200 * 1000, /* while the queue is away */
    BACKOFF_MAX_US = 10 * 1000 * 1000,
};

static int (*const handlers[])(struct queue *, const struct lease *, struct err *) = {
    [TASK_PLAN] = dispatcher_plan,
    [TASK_PUBLISH] = dispatcher_publish,
};

static int run_task(struct queue *q, const struct lease *l, struct err *e)
{
    if ((size_t)l->kind < sizeof handlers / sizeof handlers[0] && handlers[l->kind])
        return handlers[l->kind](q, l, e);
    return err_set(e, ERR_BUG, "is no work for a dispatcher");
}

/* Runs one task to its end in the queue. A failure that cannot be told to the queue either needs no
 * care: the lease lapses and another one tries. */
static void serve(struct queue *q, const struct lease *l)
{
    struct err why = {0}, e = {0};
    int64_t start_us = clock_mono_us();
    int r = run_task(q, l, &why);
    if (r == LEASE_HELD)
        log_info("job %s: %s done in %.3f s", l->job, l->task,
                 (double)(clock_mono_us() - start_us) / 1e6);
    else if (r == LEASE_LOST)
        log_warning("job %s: %s: the lease was lost, another dispatcher goes on", l->job, l->task);
    else if (r == LEASE_CANCELLED)
        r = queue_release(q, l, &e);
    else {
        log_warning("job %s: %s: attempt %d: %s", l->job, l->task, l->attempt, why.msg);
        r = queue_fail(q, l, &why, NULL, &e);
    }
    if (r < 0)
        log_warning("job %s: %s: %s", l->job, l->task, e.msg);
}

/* One turn of the loop: reap when it is due, then one task or a wait. */
static int turn(struct queue *q, const char *name, int64_t *reap_us, struct err *e)
{
    if (clock_mono_us() >= *reap_us) {
        int n = queue_reap(q, REAP_MAX, e);
        if (n < 0)
            return n;
        if (n)
            log_info("%d tasks are ready again", n);
        *reap_us = clock_mono_us() + (n < REAP_MAX ? REAP_EVERY_US : 0);
    }
    cleanup(lease_free) struct lease *lease = NULL;
    int r = queue_lease(q, TASK_CLASS_DISPATCHER, name, WAIT_US, &lease, e);
    if (r == 1)
        serve(q, lease);
    return r;
}

int dispatcher_run(const struct dispatcher_options *options, struct err *e)
{
    cleanup(queue_close) struct queue *q = NULL;
    char host[64] = "localhost";
    gethostname(host, sizeof host - 1);
    cleanup(free_ptr) char *name = xasprintf("%s/%d/dispatcher", host, (int)getpid());
    process_title_set("dispatcher");
    process_signals_catch();
    struct queue_options queue = {.retry_us = RETRY_US, .wake_fd = process_signal_fd()};
    int r = queue_open(options->redis_url, &queue, &q, e);
    int64_t reap_us = 0;
    for (unsigned failures = 0; r >= 0 && !process_signal_count();) {
        r = turn(q, name, &reap_us, e);
        if (r >= 0) {
            failures = 0;
        } else if (!process_signal_count() && !err_is_permanent(e->kind) && e->kind != ERR_BUG) {
            log_warning("%s", e->msg);
            clock_sleep_us(clock_backoff_us(failures++, BACKOFF_MIN_US, BACKOFF_MAX_US));
            r = 0;
        }
    }
    return process_signal_count() ? 0 : r;
}
