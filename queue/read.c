/* The reading side: snapshots, lists, results, and waiting for a change. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "queue/handle.h"

enum {
    LIST_PAGE = 100,   /* jobs in one reply */
    LIST_LOOKS = 500,  /* jobs looked at for one reply */
    RESULTS_PAGE = 64, /* tasks looked at for one reply */
};

/* The fields of a job's hash in the order in which they are asked for. The large ones stand last:
 * listings leave them out. */
enum {
    F_INPUT,
    F_OUTPUT,
    F_STATE,
    F_REASON_KIND,
    F_REASON,
    F_CREATED,
    F_UPDATED,
    F_FINISHED,
    F_TASKS,
    F_TASKS_DONE,
    F_RUNNING,
    F_FRAMES_TOTAL,
    F_FRAMES_DONE,
    F_TENANT,
    F_PRIORITY,
    F_DEADLINE,
    F_SMALL, /* count of those above */
    F_PROFILE = F_SMALL,
    F_OPTIONS,
    F_SOURCE,
    F_PLAN,
    F_REPORT,
    F_ALL,
};
static const char *const job_fields[F_ALL] = {
    [F_INPUT] = "input",
    [F_OUTPUT] = "output",
    [F_STATE] = "state",
    [F_REASON_KIND] = "reason_kind",
    [F_REASON] = "reason",
    [F_CREATED] = "created",
    [F_UPDATED] = "updated",
    [F_FINISHED] = "finished",
    [F_TASKS] = "tasks",
    [F_TASKS_DONE] = "tasks_done",
    [F_RUNNING] = "running",
    [F_FRAMES_TOTAL] = "frames_total",
    [F_FRAMES_DONE] = "frames_done",
    [F_TENANT] = "tenant",
    [F_PRIORITY] = "priority",
    [F_DEADLINE] = "deadline",
    [F_PROFILE] = "profile",
    [F_OPTIONS] = "options",
    [F_SOURCE] = "source",
    [F_PLAN] = "plan",
    [F_REPORT] = "report",
};

static int parse_state(const char *name, enum job_state *ret)
{
    for (int s = 0; name && job_state_names[s]; s++)
        if (!strcmp(name, job_state_names[s])) {
            *ret = s;
            return 0;
        }
    return -1;
}

/* A job from the elements `from`... of an array in the order of job_fields. NULL: no such job. */
static struct job *read_job(const char *id, const redisReply *a, size_t from)
{
    cleanup(job_free) struct job *j = xcalloc(1, sizeof *j);
    cleanup(free_ptr) char *state = reply_string(a, from + F_STATE);
    cleanup(free_ptr) char *reason_kind = reply_string(a, from + F_REASON_KIND);
    if (parse_state(state, &j->state))
        return NULL;
    j->spec.id = xstrdup(id);
    j->spec.input = reply_string(a, from + F_INPUT);
    j->spec.output = reply_string(a, from + F_OUTPUT);
    j->spec.tenant = reply_string(a, from + F_TENANT);
    j->spec.priority = (int)reply_int(a, from + F_PRIORITY);
    j->deadline_us = reply_int(a, from + F_DEADLINE);
    j->reason_kind = reason_kind ? err_kind_parse(reason_kind) : ERR_NONE;
    j->reason = reply_string(a, from + F_REASON);
    j->created_us = reply_int(a, from + F_CREATED);
    j->updated_us = reply_int(a, from + F_UPDATED);
    j->finished_us = reply_int(a, from + F_FINISHED);
    j->tasks = reply_int(a, from + F_TASKS);
    j->tasks_done = reply_int(a, from + F_TASKS_DONE);
    j->tasks_running = reply_int(a, from + F_RUNNING);
    j->frames_total = reply_int(a, from + F_FRAMES_TOTAL);
    j->frames_done = reply_int(a, from + F_FRAMES_DONE);
    if (a->elements >= from + F_ALL) {
        j->spec.profile = reply_string(a, from + F_PROFILE);
        j->spec.options = reply_string(a, from + F_OPTIONS);
        j->source = reply_string(a, from + F_SOURCE);
        j->plan = reply_string(a, from + F_PLAN);
        j->report = reply_string(a, from + F_REPORT);
    }
    return take(j);
}

int queue_job_get(struct queue *q, const char *id, struct job **ret, struct err *e)
{
    cleanup(request_free) struct request command = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    cleanup(free_ptr) char *key = xasprintf("%s:job:%s", QUEUE_PREFIX, id);
    request_strings(&command, "HMGET", key, NULL);
    for (size_t i = 0; i < F_ALL; i++)
        request_string(&command, job_fields[i]);
    int r = connection_call(q->connection, &command, NULL, 0, &reply, e);
    if (r < 0)
        return r;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != F_ALL)
        return err_set(e, ERR_BUG, "job %s: a reply that cannot be", id);
    struct job *job = read_job(id, reply, 0);
    if (!job)
        return err_set(e, ERR_USAGE, "job %s: there is no such job", id);
    free(q->seen_job);
    q->seen_job = xstrdup(id);
    q->seen_us = reply_int(reply, F_UPDATED);
    *ret = job;
    return 0;
}

/* Hands a page of jobs to fn and moves the cursor along. 1: fn stopped; the cursor is then at the
 * job it stopped at. */
static int list_page(const redisReply *page, int64_t *cursor,
                     int (*fn)(void *arg, const struct job *job), void *arg)
{
    for (size_t i = 1; i < page->elements; i++) {
        const redisReply *row = page->element[i];
        if (row->type != REDIS_REPLY_ARRAY || row->elements != 1 + F_SMALL)
            continue;
        cleanup(free_ptr) char *id = reply_string(row, 0);
        cleanup(job_free) struct job *job = id ? read_job(id, row, 1) : NULL;
        if (!job || !fn(arg, job))
            continue;
        *cursor = job->created_us;
        return 1;
    }
    *cursor = reply_int(page, 0);
    return 0;
}

int queue_job_list(struct queue *q, int64_t *cursor, int max, const struct queue_filter *filter,
                   int (*fn)(void *arg, const struct job *job), void *arg, struct err *e)
{
    do {
        int count = max < LIST_PAGE ? max : LIST_PAGE;
        cleanup(request_free) struct request argv = {0};
        cleanup(reply_free) redisReply *page = NULL;
        request_int(&argv, *cursor);
        request_int(&argv, count);
        request_int(&argv, LIST_LOOKS);
        request_string(&argv, filter ? filter->state : NULL);
        request_string(&argv, filter ? filter->tenant : NULL);
        for (size_t i = 0; i < F_SMALL; i++)
            request_string(&argv, job_fields[i]);
        int r = queue_script(q, "list", &argv, 1, &page, e);
        if (r < 0)
            return r;
        if (list_page(page, cursor, fn, arg))
            return 0;
        max -= (int)page->elements - 1;
    } while (*cursor && max > 0);
    return 0;
}

int queue_results(struct queue *q, const char *job, enum task_kind kind,
                  int (*fn)(void *arg, const char *task, const char *result, struct err *e),
                  void *arg, struct err *e)
{
    for (int64_t from = 0, has_more = 1; has_more; from += RESULTS_PAGE) {
        cleanup(request_free) struct request argv = {0};
        cleanup(reply_free) redisReply *page = NULL;
        request_strings(&argv, job, task_kind_names[kind], NULL);
        request_int(&argv, from);
        request_int(&argv, RESULTS_PAGE);
        int r = queue_script(q, "results", &argv, 1, &page, e);
        if (r < 0)
            return r;
        has_more = reply_int(page, 0);
        for (size_t i = 1; i + 1 < page->elements; i += 2) {
            cleanup(free_ptr) char *task = reply_string(page, i);
            cleanup(free_ptr) char *result = reply_string(page, i + 1);
            r = fn(arg, task, result, e);
            if (r)
                return r < 0 ? r : 0;
        }
    }
    return 0;
}

int queue_job_wait(struct queue *q, const char *id, int64_t wait_us, struct err *e)
{
    cleanup(request_free) struct request argv = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    /* Past the last snapshot, so that no change between the two is missed. */
    request_string(&argv, id);
    if (q->seen_job && !strcmp(q->seen_job, id))
        request_int(&argv, q->seen_us);
    else
        request_string(&argv, "");
    request_int(&argv, wait_us > 0 ? wait_us : 0);
    int r = queue_script(q, "watch", &argv, 2, &reply, e);
    if (r < 0 || reply_int(reply, 0) == 1)
        return r;
    cleanup(request_free) struct request command = {0};
    cleanup(reply_free) redisReply *event = NULL;
    cleanup(free_ptr) char *key = xasprintf("%s:events:%s", QUEUE_PREFIX, id);
    cleanup(free_ptr) char *after = xasprintf("%" PRId64 "-1", reply_int(reply, 1));
    int64_t ms = wait_us / 1000;
    request_strings(&command, "XREAD", "COUNT", "1", "BLOCK", NULL);
    request_int(&command, ms > 0 ? ms : 1); /* to Redis, 0 is for ever */
    request_strings(&command, "STREAMS", key, after, NULL);
    return connection_call(q->connection, &command, NULL, wait_us > 0 ? wait_us : 0, &event, e);
}

int64_t queue_depth(struct queue *q, struct err *e)
{
    cleanup(request_free) struct request command = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    request_strings(&command, "XLEN", QUEUE_PREFIX ":depth", NULL);
    int r = connection_call(q->connection, &command, NULL, 0, &reply, e);
    if (r < 0)
        return r;
    return reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
}
