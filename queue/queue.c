/* The state changes: each function fills the ARGV of one script and reads its reply. */
#include "queue/queue.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "queue/handle.h"

enum {
    /* what the scripts answer, as in _lib.lua */
    REPLY_PINNED = 3,
    REPLY_TAKEN = 4,
    PLAN_BATCH_TASKS = 500,
    PLAN_BATCH_BYTES = 1 << 20,
    WAKE_US = 1000000, /* longest sleep between two looks at the queue */
    KEEP_US = 1000000, /* between housekeeping of a connection that finds work */
    KEEP_TASKS = 16,   /* moved by it */
    FAIL_BACKOFF_BASE_US = 1000000,
    FAIL_BACKOFF_MAX_US = 60000000,
};

static int random_hex(char *ret, size_t digits, struct err *e)
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return err_set(e, ERR_RESOURCE, "queue: no random numbers from the kernel");
    for (size_t i = 0; i < digits; i++)
        ret[i] = "0123456789abcdef"[i % 2 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15];
    ret[digits] = 0;
    return 0;
}

int queue_open(const char *url, const struct queue_options *options, struct queue **ret,
               struct err *e)
{
    cleanup(queue_close) struct queue *q = xcalloc(1, sizeof *q);
    if (options)
        q->options = *options;
    if (q->options.lease_us <= 0)
        q->options.lease_us = QUEUE_LEASE_US;
    if (q->options.retry_us <= 0)
        q->options.retry_us = QUEUE_RETRY_US;
    if (q->options.max_attempts <= 0)
        q->options.max_attempts = QUEUE_MAX_ATTEMPTS;
    q->scripts = script_set_new();
    int r = random_hex(q->client, sizeof q->client - 1, e);
    if (!r)
        r = connection_new(url, q->options.retry_us, q->options.wake_fd, &q->connection, e);
    if (!r)
        r = connection_check(q->connection, e);
    if (!r)
        *ret = take(q);
    return r;
}

void queue_close(struct queue **q)
{
    if (!*q)
        return;
    connection_free(&(*q)->connection);
    script_set_free(&(*q)->scripts);
    lease_free(&(*q)->last);
    free((*q)->seen_job);
    free(*q);
    *q = NULL;
}

int queue_script(struct queue *q, const char *name, const struct request *argv, size_t min_elements,
                 redisReply **ret, struct err *e)
{
    int r = script_call(q->scripts, q->connection, name, argv, ret, e);
    if (r < 0)
        return r;
    if ((*ret)->type == REDIS_REPLY_ARRAY && (*ret)->elements >= min_elements)
        return 0;
    reply_free(ret);
    return err_set(e, ERR_BUG, "queue %s: script %s gave a reply that cannot be",
                   connection_name(q->connection), name);
}

int64_t reply_int(const redisReply *array, size_t i)
{
    const redisReply *r = array->element[i];
    if (r->type == REDIS_REPLY_INTEGER)
        return r->integer;
    return r->type == REDIS_REPLY_STRING ? strtoll(r->str, NULL, 10) : 0;
}

char *reply_string(const redisReply *array, size_t i)
{
    const redisReply *r = array->element[i];
    return r->type == REDIS_REPLY_STRING ? xstrdup(r->str) : NULL;
}

/* The number of this call, so that a repeat is known as one. */
static void add_op(struct queue *q, struct request *argv)
{
    cleanup(free_ptr) char *op = xasprintf("%s-%" PRIu64, q->client, ++q->ops);
    request_string(argv, op);
}

static int check_size(const char *what, const char *text, size_t max, struct err *e)
{
    size_t n = text ? strlen(text) : 0;
    return n <= max ? 0
                    : err_set(e, ERR_USAGE, "queue: %s has %zu bytes: at most %zu can be stored",
                              what, n, max);
}

/* 1 to QUEUE_ID_MAX of letters, digits and `others`. */
static bool is_name(const char *name, const char *others)
{
    size_t n = strlen(name);
    bool is_good = n >= 1 && n <= QUEUE_ID_MAX;
    for (size_t i = 0; is_good && i < n; i++)
        is_good = isalnum((unsigned char)name[i]) || strchr(others, name[i]);
    return is_good;
}

int queue_check_name(const char *what, const char *name, struct err *e)
{
    if (is_name(name, "._-"))
        return 0;
    return err_set(e, ERR_USAGE,
                   "%s \"%.80s\": expected 1 to %d of letters, digits, \".\", \"_\" and \"-\"",
                   what, name, QUEUE_ID_MAX);
}

static int check_spec(const struct job_spec *spec, struct err *e)
{
    int r = check_size("the input's URL", spec->input, QUEUE_URL_MAX, e);
    if (!r)
        r = check_size("the output's URL", spec->output, QUEUE_URL_MAX, e);
    if (!r)
        r = check_size("the profile", spec->profile, QUEUE_PROFILE_MAX, e);
    if (!r)
        r = check_size("the plan's options", spec->options, QUEUE_PROFILE_MAX, e);
    if (!r && spec->tenant)
        r = queue_check_name("tenant", spec->tenant, e);
    if (!r && (spec->priority < 0 || spec->priority > QUEUE_PRIORITY_MAX))
        r = err_set(e, ERR_USAGE, "priority %d: expected 0 to %d", spec->priority,
                    QUEUE_PRIORITY_MAX);
    return r;
}

static void add_spec(struct request *argv, const struct job_spec *spec)
{
    request_int(argv, spec->deadline_us > 0 ? spec->deadline_us : 0);
    request_int(argv, spec->keep_us > 0 ? spec->keep_us : QUEUE_KEEP_US);
    request_int(argv, QUEUE_OPEN_MAX);
    request_strings(argv, "tenant", spec->tenant ? spec->tenant : QUEUE_TENANT, "priority", NULL);
    request_int(argv, spec->priority);
    const char *const texts[] = {"input",   spec->input,   "output",  spec->output,
                                 "profile", spec->profile, "options", spec->options};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        request_string(argv, texts[i]);
}

static int refuse(const char *id, const struct job_spec *spec, const redisReply *reply,
                  struct err *e)
{
    if (reply_int(reply, 0) == -2)
        return err_set(e, ERR_RESOURCE,
                       "busy: tenant %s has %" PRId64 " open jobs of %" PRId64
                       " that it may have: try again when some have ended",
                       spec->tenant ? spec->tenant : QUEUE_TENANT, reply_int(reply, 1),
                       reply_int(reply, 2));
    cleanup(free_ptr) char *field = reply_string(reply, 1);
    return err_set(e, ERR_USAGE, "job %s: there is one already, with another %s: choose another id",
                   id, field ? field : "spec");
}

int queue_submit(struct queue *q, const struct job_spec *spec, char **ret_id, struct err *e)
{
    char generated[13];
    const char *id = spec->id;
    int r = check_spec(spec, e);
    if (!r && !id) {
        r = random_hex(generated, sizeof generated - 1, e);
        id = generated;
    }
    if (!r)
        r = queue_check_name("job id", id, e);
    if (r < 0)
        return r;
    cleanup(request_free) struct request argv = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    add_op(q, &argv);
    request_string(&argv, id);
    request_int(&argv, q->options.max_attempts);
    add_spec(&argv, spec);
    r = queue_script(q, "submit", &argv, 1, &reply, e);
    if (r < 0)
        return r;
    if (reply_int(reply, 0) < 0)
        return refuse(id, spec, reply, e);
    if (ret_id)
        *ret_id = xstrdup(id);
    return (int)reply_int(reply, 0);
}

/* ---- leases ---- */

void lease_free(struct lease **lease)
{
    struct lease *l = *lease;
    if (!l)
        return;
    free(l->job);
    free(l->task);
    free(l->payload);
    free(l->spec.id);
    free(l->spec.input);
    free(l->spec.output);
    free(l->spec.profile);
    free(l->spec.options);
    free(l->spec.tenant);
    free(l->source);
    free(l->plan);
    free(l);
    *lease = NULL;
}

static int parse_kind(const char *name, enum task_kind *ret)
{
    for (int k = 0; name && task_kind_names[k]; k++)
        if (!strcmp(name, task_kind_names[k])) {
            *ret = k;
            return 0;
        }
    return -1;
}

/* What a lease holds of its job, which the server need not send again with every task. */
static void copy_job(struct lease *to, const struct lease *from)
{
    to->created = from->created;
    to->spec = (struct job_spec){.id = xstrdup(from->spec.id),
                                 .input = xstrdup(from->spec.input),
                                 .output = xstrdup(from->spec.output),
                                 .profile = xstrdup(from->spec.profile),
                                 .options = xstrdup(from->spec.options),
                                 .tenant = xstrdup(from->spec.tenant),
                                 .priority = from->spec.priority};
    to->source = xstrdup(from->source);
    to->plan = xstrdup(from->plan);
}

static void read_job(struct lease *l, const redisReply *reply, size_t from)
{
    l->spec.id = xstrdup(l->job);
    l->spec.tenant = reply_string(reply, from);
    l->spec.priority = (int)reply_int(reply, from + 1);
    l->spec.input = reply_string(reply, from + 2);
    l->spec.output = reply_string(reply, from + 3);
    l->spec.profile = reply_string(reply, from + 4);
    l->spec.options = reply_string(reply, from + 5);
    l->source = reply_string(reply, from + 6);
    l->plan = reply_string(reply, from + 7);
}

static int read_lease(struct queue *q, const redisReply *reply, struct lease **ret, struct err *e)
{
    cleanup(lease_free) struct lease *l = xcalloc(1, sizeof *l);
    cleanup(free_ptr) char *kind = NULL;
    enum { CREATED = 8, SPEC, SPEC_N = 8 };
    if (reply->elements > CREATED)
        kind = reply_string(reply, 3);
    bool is_whole = reply->elements >= SPEC + SPEC_N;
    if (parse_kind(kind, &l->kind) || (!is_whole && !q->last))
        return err_set(e, ERR_BUG,
                       "queue %s: a lease of an unknown kind of task: is this program "
                       "older than the others?",
                       connection_name(q->connection));
    l->job = reply_string(reply, 1);
    l->task = reply_string(reply, 2);
    l->token = reply_int(reply, 4);
    l->attempt = (int)reply_int(reply, 5);
    l->is_exclusive = reply_int(reply, 6) == 1;
    l->payload = reply_string(reply, 7);
    l->created = reply_int(reply, CREATED);
    if (!is_whole) {
        copy_job(l, q->last);
    } else {
        read_job(l, reply, SPEC);
        lease_free(&q->last);
        if (l->plan) {
            q->last = xcalloc(1, sizeof *q->last);
            copy_job(q->last, l);
        }
    }
    *ret = take(l);
    return 1;
}

static const char *const class_names[] = {
    [TASK_CLASS_WORKER] = "worker", [TASK_CLASS_DISPATCHER] = "dispatcher"};

/* Goes on until nothing is left of what cancel, retry or plan_commit began. */
static int settle(struct queue *q, const char *job, bool has_more, struct err *e)
{
    cleanup(request_free) struct request argv = {0};
    request_string(&argv, job);
    while (has_more) {
        cleanup(reply_free) redisReply *reply = NULL;
        int r = script_call(q->scripts, q->connection, "settle", &argv, &reply, e);
        if (r < 0)
            return r;
        has_more = reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    }
    return 0;
}

/* One look at the queue: 1 and a lease, or 0 and for how long nothing can come by itself. A call
 * that got no answer may have taken a lease all the same: the next one asks with its number. */
static int try_lease(struct queue *q, enum task_class class, const char *worker, struct lease **ret,
                     int64_t *ret_wait_us, struct err *e)
{
    enum { LEASED = 1, UNSWEPT = 2 };
    cleanup(request_free) struct request argv = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    if (!q->is_unsettled)
        q->leases++;
    request_strings(&argv, class_names[class], worker, q->client, NULL);
    request_int(&argv, (int64_t)q->leases);
    request_int(&argv, q->options.lease_us);
    request_int(&argv, q->is_woken);
    cleanup(free_ptr) char *known =
        q->last ? xasprintf("%s %" PRId64, q->last->spec.id, q->last->created) : NULL;
    request_string(&argv, known);
    int r = queue_script(q, "lease", &argv, 2, &reply, e);
    q->is_woken = false;
    q->is_unsettled = r == -ERR_TRANSIENT;
    if (r < 0)
        return r;
    if (reply_int(reply, 0) == LEASED)
        return read_lease(q, reply, ret, e);
    *ret_wait_us = 0;
    if (reply_int(reply, 0) == UNSWEPT) {
        cleanup(free_ptr) char *job = reply_string(reply, 1);
        return settle(q, job, true, e);
    }
    *ret_wait_us = reply_int(reply, 1);
    return 0;
}

/* Sleeps until a task of the class may be ready: a token in the wake list, or us passed. 1: the
 * caller's wake_fd ended it. */
static int wait_wake(struct queue *q, enum task_class class, int64_t us, struct err *e)
{
    if (us < 1000)
        us = 1000; /* to Redis, 0 is for ever */
    cleanup(request_free) struct request command = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    char timeout[32];
    snprintf(timeout, sizeof timeout, "%" PRId64 ".%03d", us / 1000000, (int)(us / 1000 % 1000));
    cleanup(free_ptr) char *key = xasprintf("%s:wake:%s", QUEUE_PREFIX, class_names[class]);
    request_strings(&command, "BLPOP", key, timeout, NULL);
    int r = connection_call(q->connection, &command, NULL, us, &reply, e);
    if (!r && !reply)
        return 1;
    q->is_woken = !r && reply->type == REDIS_REPLY_ARRAY;
    return r;
}

/* Housekeeping in passing, once in a while or when it `is_due` since there is nothing else to do.
 * Returns how many tasks were moved, or -kind. */
static int keep_house(struct queue *q, bool is_due, struct err *e)
{
    int64_t now = clock_mono_us();
    if (!is_due && now - q->kept_us < KEEP_US)
        return 0;
    q->kept_us = now;
    return queue_reap(q, KEEP_TASKS, e);
}

int queue_lease(struct queue *q, enum task_class class, const char *worker, int64_t wait_us,
                struct lease **ret, struct err *e)
{
    int64_t deadline = clock_mono_us() + wait_us;
    int r = keep_house(q, false, e);
    while (r >= 0) {
        int64_t wait = WAKE_US;
        r = try_lease(q, class, worker, ret, &wait, e);
        if (r)
            break;
        r = keep_house(q, true, e);
        if (r > 0)
            continue; /* that may have made some task ready */
        int64_t left = deadline - clock_mono_us();
        if (left <= 0 || r < 0)
            break;
        wait = wait < left ? wait : left;
        r = wait_wake(q, class, wait < WAKE_US ? wait : WAKE_US, e);
        if (r > 0)
            return 0;
    }
    return r;
}

static void add_lease(struct request *argv, const struct lease *l)
{
    cleanup(free_ptr) char *ref = xasprintf("%s/%s", l->job, l->task);
    request_string(argv, ref);
    request_int(argv, l->token);
}

/* Runs a script whose first element is an enum lease_state. */
static int call_verdict(struct queue *q, const char *name, const struct request *argv,
                        struct err *e)
{
    cleanup(reply_free) redisReply *reply = NULL;
    int r = queue_script(q, name, argv, 1, &reply, e);
    return r < 0 ? r : (int)reply_int(reply, 0);
}

int queue_renew(struct queue *q, const struct lease *l, int64_t frames_done, struct err *e)
{
    cleanup(request_free) struct request argv = {0};
    add_lease(&argv, l);
    request_int(&argv, frames_done);
    request_int(&argv, q->options.lease_us);
    return call_verdict(q, "renew", &argv, e);
}

int queue_commit(struct queue *q, const struct lease *l, const char *result_json,
                 const char *const *pins, size_t n_pins, struct err *e)
{
    if (l->kind == TASK_PLAN)
        return err_set(e, ERR_BUG, "job %s: a plan is committed by queue_commit_plan", l->job);
    int r = check_size("the result", result_json, QUEUE_RESULT_MAX, e);
    if (r < 0)
        return r;
    cleanup(request_free) struct request argv = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    add_lease(&argv, l);
    request_string(&argv, result_json);
    for (size_t i = 0; i < 2 * n_pins; i++)
        request_string(&argv, pins[i]);
    r = queue_script(q, "commit", &argv, 1, &reply, e);
    if (r < 0 || reply_int(reply, 0) != REPLY_PINNED || reply->elements < 3)
        return r < 0 ? r : (int)reply_int(reply, 0);
    cleanup(free_ptr) char *name = reply_string(reply, 1);
    cleanup(free_ptr) char *there = reply_string(reply, 2);
    return err_set(e, ERR_DEVICE,
                   "job %s: %s: %s differs from what other tasks of the job committed (%s): it "
                   "must be made again on their kind of device",
                   l->job, l->task, name, there);
}

/* ---- the commit of a plan ---- */

struct plan_stage {
    struct queue *q;
    const struct lease *lease;
    int64_t count, frames; /* of the tasks sent; frames of video tasks */
};

/* Sends one batch; the first one is repeated while it still clears an older plan away. Returns a
 * lease state or -kind; *ret_is_done: the plan was committed before. */
static int send_batch(struct plan_stage *s, const struct request *tasks, bool *ret_is_done,
                      struct err *e)
{
    enum { STORED, CLEARING, COMMITTED };
    for (;;) {
        cleanup(request_free) struct request argv = {0};
        cleanup(reply_free) redisReply *reply = NULL;
        add_lease(&argv, s->lease);
        request_int(&argv, s->count == 0);
        request_int(&argv, s->count);
        strbuf_add(&argv.wire, tasks->wire.s ? tasks->wire.s : "", tasks->wire.len);
        argv.n += tasks->n;
        int r = queue_script(s->q, "plan_batch", &argv, 2, &reply, e);
        if (r < 0)
            return r;
        r = (int)reply_int(reply, 0);
        if (r == REPLY_TAKEN) {
            cleanup(free_ptr) char *id = reply_string(reply, 1);
            return err_set(e, ERR_BUG, "job %s: the plan holds a task \"%s\", which is taken",
                           s->lease->job, id);
        }
        if (r == LEASE_HELD && reply_int(reply, 1) == CLEARING)
            continue;
        *ret_is_done = r == LEASE_HELD && reply_int(reply, 1) == COMMITTED;
        return r;
    }
}

/* Sends all tasks of `next`. As send_batch. */
static int send_tasks(struct plan_stage *s, int (*next)(void *arg, struct task_spec *ret),
                      void *arg, bool *ret_is_done, struct err *e)
{
    for (bool has_more = true; has_more && !*ret_is_done;) {
        cleanup(request_free) struct request tasks = {0};
        int64_t n = 0, frames = 0;
        while (n < PLAN_BATCH_TASKS && tasks.wire.len < PLAN_BATCH_BYTES) {
            struct task_spec t = {0};
            int r = next(arg, &t);
            if (r < 0)
                return err_set(e, (enum err_kind) - r, "job %s: the plan's tasks cannot be listed",
                               s->lease->job);
            has_more = r > 0;
            if (!has_more)
                break;
            if (!is_name(t.id, "._-/"))
                return err_set(e, ERR_BUG, "job %s: the plan holds a task \"%.80s\"", s->lease->job,
                               t.id);
            request_strings(&tasks, t.id, task_kind_names[t.kind], t.payload ? t.payload : "{}",
                            NULL);
            request_int(&tasks, t.weight);
            request_int(&tasks, t.cost > 1 ? t.cost : 1);
            n++;
            frames += t.kind == TASK_VIDEO ? t.weight : 0;
        }
        if (!n && s->count) /* without any task, one empty batch clears an older plan */
            break;
        int r = send_batch(s, &tasks, ret_is_done, e);
        if (r)
            return r;
        s->count += n;
        s->frames += frames;
    }
    return LEASE_HELD;
}

int queue_commit_plan(struct queue *q, const struct lease *l, const char *plan_json,
                      int (*next)(void *arg, struct task_spec *ret), void *arg, struct err *e)
{
    if (l->kind != TASK_PLAN)
        return err_set(e, ERR_BUG, "job %s: %s is not a plan", l->job, l->task);
    int r = check_size("the plan", plan_json, QUEUE_RESULT_MAX, e);
    if (r < 0)
        return r;
    struct plan_stage s = {.q = q, .lease = l};
    bool is_done = false;
    r = send_tasks(&s, next, arg, &is_done, e);
    if (r || is_done)
        return r;
    cleanup(request_free) struct request argv = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    add_lease(&argv, l);
    request_string(&argv, plan_json);
    request_int(&argv, s.count);
    request_int(&argv, s.frames);
    r = queue_script(q, "plan_commit", &argv, 2, &reply, e);
    if (r < 0)
        return r;
    r = (int)reply_int(reply, 0);
    if (r == REPLY_TAKEN)
        return err_set(e, ERR_BUG, "job %s: of the plan's %" PRId64 " tasks %" PRId64 " differ",
                       l->job, s.count, reply_int(reply, 1));
    if (r)
        return r;
    /* The plan is in; whoever leases goes on letting its tasks in should this fail. */
    return settle(q, l->job, reply_int(reply, 1) == 1, e);
}

/* ---- giving back ---- */

/* How many attempts an error of the kind is worth. A dispatcher has no device of its own: what the
 * plan says cannot be done, it says again. */
static int tries_of(const struct lease *l, enum err_kind kind, int max_attempts)
{
    bool is_planned = kind == ERR_DEVICE && task_kind_class(l->kind) == TASK_CLASS_DISPATCHER;
    if (err_is_permanent(kind) || is_planned)
        return 1;
    return kind == ERR_BUG ? 2 : max_attempts;
}

int queue_fail(struct queue *q, const struct lease *l, const struct err *why, const char *log_tail,
               struct err *e)
{
    enum err_kind kind = why->kind ? why->kind : ERR_BUG;
    cleanup(free_ptr) char *reason = xstrdup(why->msg[0] ? why->msg : "no reason was given");
    size_t n = log_tail ? strlen(log_tail) : 0;
    size_t skip = n > QUEUE_LOG_MAX ? n - QUEUE_LOG_MAX : 0;
    cleanup(free_ptr) char *log = xstrdup(log_tail ? log_tail + skip : "");
    log_redact(reason);
    log_redact(log);
    cleanup(request_free) struct request argv = {0};
    add_lease(&argv, l);
    request_strings(&argv, err_kind_name(kind), reason, log, NULL);
    request_int(&argv, tries_of(l, kind, INT32_MAX));
    request_int(&argv, clock_backoff_us((unsigned)(l->attempt > 0 ? l->attempt - 1 : 0),
                                        FAIL_BACKOFF_BASE_US, FAIL_BACKOFF_MAX_US));
    return call_verdict(q, "fail", &argv, e);
}

int queue_release(struct queue *q, const struct lease *l, struct err *e)
{
    cleanup(request_free) struct request argv = {0};
    add_lease(&argv, l);
    return call_verdict(q, "release", &argv, e);
}

/* Runs a script that moves at most max tasks and answers with how many. */
static int call_count(struct queue *q, const char *name, int max, struct err *e)
{
    cleanup(request_free) struct request argv = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    request_int(&argv, max);
    int r = script_call(q->scripts, q->connection, name, &argv, &reply, e);
    if (r < 0)
        return r;
    return reply->type == REDIS_REPLY_INTEGER ? (int)reply->integer : 0;
}

int queue_reap(struct queue *q, int max, struct err *e)
{
    return call_count(q, "reap", max < 1 ? 1 : max > QUEUE_REAP_MAX ? QUEUE_REAP_MAX : max, e);
}

int queue_release_all(struct queue *q, struct err *e)
{
    for (int total = 0;;) {
        int n = call_count(q, "release_all", QUEUE_REAP_MAX, e);
        if (n <= 0)
            return n < 0 ? n : total;
        total += n;
    }
}

/* cancel and retry: an op on a job that may leave work to settle. */
static int change_job(struct queue *q, const char *name, const char *id, struct err *e)
{
    cleanup(request_free) struct request argv = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    int r = queue_check_name("job id", id, e);
    if (r < 0)
        return r;
    add_op(q, &argv);
    request_string(&argv, id);
    r = queue_script(q, name, &argv, 2, &reply, e);
    if (r < 0)
        return r;
    if (reply_int(reply, 0) < 0)
        return err_set(e, ERR_USAGE, "job %s: there is no such job", id);
    r = settle(q, id, reply_int(reply, 1) == 1, e);
    return r < 0 ? r : (int)reply_int(reply, 0);
}

int queue_cancel(struct queue *q, const char *id, struct err *e)
{
    return change_job(q, "cancel", id, e);
}

int queue_retry(struct queue *q, const char *id, struct err *e)
{
    return change_job(q, "retry", id, e);
}
