/*
 * Random histories. A small model knows which token of a task is the last and how it was closed, so
 * it knows what every call must answer; I7 to I10 are read from the keys after every step by
 * invariants.lua, which knows nothing of the model; a call that must change nothing is held against
 * a digest of all keys. Which task a lease gives is held against the priorities and caps. Somewhere
 * in each history the server is killed and started again, and at the end every job must come to an
 * end.
 *
 *     test_queue_history [SEEDS [STEPS [FIRST_SEED]]]
 *
 * 100 seeds of 400 steps by default; QUEUE_SEEDS says how many where no arguments can be given.
 */
#include "tests/queue/server.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/strbuf.h"
#include "queue/handle.h"

enum {
    JOBS = 5,
    TENANTS = 2,
    VIDEO_TASKS = 5,
    HISTORY = 512,
};

enum closing { OPEN, BY_COMMIT, BY_FAIL, BY_RELEASE, BY_LAPSE, BY_SWEEP };

struct held { /* a lease that was given at some time */
    struct lease *lease;
    enum closing closing;
    bool is_last; /* no later token was given for the task */
};

static struct server server;
static struct queue *q;
static struct err e;
static struct held history[HISTORY];
static int n_history;
static int64_t last_token;
static char digest_sha[41], invariants_sha[41];
static uint64_t random_state;
static int64_t running_max[TENANTS], open_max[TENANTS];
static int max_attempts; /* of the jobs of one history: few, so that they are used up */
static int seeds = 100, steps = 400, first_seed = 1;

static uint32_t random_below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % n;
}

static int must(int r)
{
    if (r < 0)
        fail_msg("%s", e.msg);
    return r;
}

static void load_scripts(void)
{
    server_load(&server, TESTS_DIR "/queue/invariants.lua", invariants_sha);
    server_load(&server, TESTS_DIR "/queue/digest.lua", digest_sha);
}

static void digest(char ret[41])
{
    redisReply *r = redisCommand(server.admin, "EVALSHA %s 0", digest_sha);
    assert_int_equal(r->type, REDIS_REPLY_STRING);
    memcpy(ret, r->str, 41);
    freeReplyObject(r);
}

static void check_invariants(void)
{
    redisReply *r = redisCommand(server.admin, "EVALSHA %s 1 " QUEUE_PREFIX, invariants_sha);
    if (r->type != REDIS_REPLY_ARRAY)
        fail_msg("invariants.lua: %s", r->str);
    for (size_t i = 0; i < r->elements; i++)
        print_error("%s\n", r->element[i]->str);
    assert_int_equal(r->elements, 0);
    freeReplyObject(r);
}

static bool is_there(const char *job)
{
    return server_do(&server, "EXISTS " QUEUE_PREFIX ":job:%s", job) == 1;
}

static bool is_over(const char *job)
{
    cleanup(job_free) struct job *j = NULL;
    must(queue_job_get(q, job, &j, &e));
    return j->state >= JOB_DONE;
}

/* Of the jobs "j0" to "j4" each has its tenant and priority. */
static int tenant_of(const char *job)
{
    return (job[1] - '0') % TENANTS;
}

static int priority_of(const char *job)
{
    return 25 + 25 * ((job[1] - '0') % 3);
}

static const char *const tenants[TENANTS] = {"ann", "bob"};

static const char *random_job(void)
{
    static char id[8];
    snprintf(id, sizeof id, "j%u", random_below(JOBS));
    return id;
}

/* Chores that an op leaves behind are done at once, so that the model need not know them. */
static void drain(void)
{
    while (must(queue_reap(q, 1000, &e)) > 0)
        ;
}

/* The open leases of a job that has just ended are no more. */
static void sweep(const char *job)
{
    for (int i = 0; i < n_history; i++)
        if (history[i].closing == OPEN && !strcmp(history[i].lease->job, job))
            history[i].closing = BY_SWEEP;
}

static struct held *pick_held(void)
{
    if (!n_history)
        return NULL;
    /* Mostly one of the newest, so that work gets done; else any, mostly stale. */
    int window = random_below(4) && n_history > 6 ? 6 : n_history;
    return &history[n_history - 1 - (int)random_below((uint32_t)window)];
}

/* ---- what can happen ---- */

static void do_submit(void)
{
    const char *id = random_job();
    int tenant = tenant_of(id), open = 0;
    struct job_spec spec = {.id = (char *)id,
                            .input = "i",
                            .output = "o",
                            .profile = "{}",
                            .tenant = (char *)tenants[tenant],
                            .priority = priority_of(id)};
    for (int i = 0; i < JOBS; i++) {
        char other[16];
        snprintf(other, sizeof other, "j%d", i);
        open += tenant_of(other) == tenant && is_there(other) && !is_over(other);
    }
    bool is_new = !is_there(id);
    int r = queue_submit(q, &spec, NULL, &e);
    if (is_new && open >= open_max[tenant]) {
        assert_int_equal(r, -ERR_RESOURCE);
        assert_false(is_there(id));
    } else {
        assert_int_equal(must(r), is_new);
    }
}

static void remember(struct lease *l)
{
    assert_true(l->token > last_token);
    assert_in_range(l->attempt, 1, max_attempts);
    last_token = l->token;
    for (int i = 0; i < n_history; i++) {
        struct held *h = &history[i];
        if (!h->is_last || strcmp(h->lease->job, l->job) || strcmp(h->lease->task, l->task))
            continue;
        assert_int_not_equal(h->closing, OPEN); /* two holders */
        assert_int_not_equal(h->closing, BY_COMMIT);
        h->is_last = false;
    }
    if (n_history == HISTORY) {
        lease_free(&history[0].lease);
        memmove(history, history + 1, (HISTORY - 1) * sizeof *history);
        n_history--;
    }
    history[n_history++] = (struct held){l, OPEN, true};
}

static bool is_of(const struct lease *l, enum task_class class)
{
    return task_kind_class(l->kind) == class;
}

/* The highest priority of a task of the class that can be given; -1: there is none. */
static int best_priority(enum task_class class)
{
    int best = -1, running[TENANTS] = {0};
    for (int i = 0; i < n_history; i++)
        if (history[i].closing == OPEN && is_of(history[i].lease, TASK_CLASS_WORKER))
            running[tenant_of(history[i].lease->job)]++;
    for (int i = 0; i < JOBS; i++) {
        char job[16];
        snprintf(job, sizeof job, "j%d", i);
        int t = tenant_of(job), priority = priority_of(job);
        bool is_capped =
            class == TASK_CLASS_WORKER && running_max[t] && running[t] >= running_max[t];
        if (!is_capped && priority > best &&
            server_do(&server, "ZCARD " QUEUE_PREFIX ":ready:%s:%d:%s",
                      class == TASK_CLASS_WORKER ? "worker" : "dispatcher", priority,
                      tenants[t]) > 0)
            best = priority;
    }
    return best;
}

static int lease_one(enum task_class class)
{
    int best = best_priority(class);
    bool has_delayed = server_do(&server, "ZCARD " QUEUE_PREFIX ":delayed") > 0; /* due by now? */
    struct lease *l = NULL;
    int r = must(queue_lease(q, class, "w", 0, &l, &e));
    assert_true(r == (best >= 0) || (r && has_delayed));
    if (!r)
        return 0;
    assert_true(l->spec.priority == best || (l->spec.priority > best && has_delayed));
    assert_string_equal(l->spec.tenant, tenants[tenant_of(l->job)]);
    remember(l);
    return 1;
}

static void do_lease(void)
{
    lease_one(random_below(3) ? TASK_CLASS_WORKER : TASK_CLASS_DISPATCHER);
}

/* A lease whose reply was lost: asked again, it is the same one. */
static void do_lease_again(void)
{
    if (!lease_one(TASK_CLASS_WORKER))
        return;
    struct lease *first = history[n_history - 1].lease, *l = NULL;
    q->is_unsettled = true;
    assert_int_equal(must(queue_lease(q, TASK_CLASS_WORKER, "w", 0, &l, &e)), 1);
    assert_int_equal(l->token, first->token);
    assert_int_equal(l->attempt, first->attempt);
    lease_free(&l);
}

static int next_task(void *arg, struct task_spec *ret)
{
    static char id[16];
    int i = (*(int *)arg)++;
    snprintf(id, sizeof id, i ? "video/%d" : "audio/0", i);
    *ret = (struct task_spec){
        .id = id, .kind = i ? TASK_VIDEO : TASK_AUDIO, .payload = "{}", .weight = 10 * i};
    return i <= VIDEO_TASKS;
}

/* The last step of a plan's commit alone, by a caller for whom the steps before went through. */
static int commit_plan_late(const struct lease *l)
{
    cleanup(request_free) struct request argv = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    cleanup(free_ptr) char *ref = xasprintf("%s/%s", l->job, l->task);
    request_string(&argv, ref);
    request_int(&argv, l->token);
    request_string(&argv, "{}");
    request_int(&argv, VIDEO_TASKS + 1);
    request_int(&argv, 0);
    int r = queue_script(q, "plan_commit", &argv, 2, &reply, &e);
    return r < 0 ? r : (int)reply_int(reply, 0);
}

static bool is_late; /* the holder whose call is made has no lease any more */

static int commit(const struct lease *l)
{
    int i = 0;
    if (is_late && l->kind == TASK_PLAN && random_below(2))
        return commit_plan_late(l);
    return l->kind == TASK_PLAN ? queue_commit_plan(q, l, "{}", next_task, &i, &e)
                                : queue_commit(q, l, "{}", NULL, 0, &e);
}

static int renew(const struct lease *l)
{
    return queue_renew(q, l, random_below(60), &e);
}

static int release(const struct lease *l)
{
    return queue_release(q, l, &e);
}

static enum err_kind fail_kind;
static int give_up(const struct lease *l)
{
    struct err why = {.kind = fail_kind, .msg = "for a reason"};
    return queue_fail(q, l, &why, "log", &e);
}

static const struct {
    int (*call)(const struct lease *l);
    enum closing closing;
} ops[] = {{renew, OPEN}, {commit, BY_COMMIT}, {give_up, BY_FAIL}, {release, BY_RELEASE}};

/* What the call must answer; *ret_is_change: whether it may change anything. */
static int expected(const struct held *h, enum closing op, bool *ret_is_change)
{
    *ret_is_change = false;
    if (!h->is_last)
        return LEASE_LOST;
    if (h->closing == OPEN) {
        *ret_is_change = true;
        return LEASE_HELD;
    }
    if (h->closing == op)
        return LEASE_HELD; /* a repeat */
    return h->closing == BY_SWEEP && is_over(h->lease->job) ? LEASE_CANCELLED : LEASE_LOST;
}

static void call_holder(struct held *h, int op)
{
    static const enum err_kind kinds[] = {ERR_TRANSIENT, ERR_RESOURCE, ERR_BUG, ERR_INPUT};
    fail_kind = kinds[random_below(16) ? random_below(3) : 3];
    bool is_change;
    int want = expected(h, ops[op].closing, &is_change);
    char before[41], after[41];
    is_late = !is_change;
    digest(before);
    assert_int_equal(must(ops[op].call(h->lease)), want);
    digest(after);
    if (!is_change) {
        assert_string_equal(before, after);
        return;
    }
    if (ops[op].closing == OPEN)
        return;
    h->closing = ops[op].closing;
    if (h->closing != BY_FAIL)
        return;
    int tries = fail_kind == ERR_INPUT ? 1 : fail_kind == ERR_BUG ? 2 : max_attempts;
    assert_int_equal(is_over(h->lease->job), h->lease->attempt >= tries);
    if (is_over(h->lease->job))
        sweep(h->lease->job);
}

static void do_holder(void)
{
    struct held *h = pick_held();
    static const int odds[] = {0, 0, 1, 1, 1, 1, 2, 3}; /* mostly commits */
    if (h)
        call_holder(h, odds[random_below(8)]);
}

static void do_lapse(void)
{
    struct held *h = pick_held();
    if (!h || h->closing != OPEN)
        return;
    /* However slow this machine is, the server was not away. */
    server_do(&server, "DEL " QUEUE_PREFIX ":beat " QUEUE_PREFIX ":mercy");
    server_do(&server, "ZADD " QUEUE_PREFIX ":leases 1 %s/%s", h->lease->job, h->lease->task);
    drain();
    h->closing = BY_LAPSE;
    assert_int_equal(is_over(h->lease->job), h->lease->attempt >= max_attempts);
    if (is_over(h->lease->job))
        sweep(h->lease->job);
}

static void do_promote(void)
{
    server_do(&server, "EVAL %s 1 " QUEUE_PREFIX ":delayed",
              "for _, m in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
              "redis.call('ZADD', KEYS[1], 1, m) end");
    drain();
}

static void do_cancel(void)
{
    const char *id = random_job();
    if (!is_there(id))
        return;
    bool was_over = is_over(id);
    assert_int_equal(must(queue_cancel(q, id, &e)), !was_over);
    assert_true(is_over(id));
    sweep(id);
}

static void do_retry(void)
{
    const char *id = random_job();
    if (!is_there(id))
        return;
    cleanup(job_free) struct job *j = NULL;
    must(queue_job_get(q, id, &j, &e));
    bool can = j->state == JOB_FAILED || j->state == JOB_CANCELLED;
    assert_int_equal(must(queue_retry(q, id, &e)), can);
    assert_int_equal(is_over(id), j->state == JOB_DONE);
}

/* The deadline of a going job passes, or the time that an ended one is kept. */
static void do_due(void)
{
    const char *id = random_job();
    if (!is_there(id))
        return;
    bool was_over = is_over(id);
    if (!was_over)
        server_do(&server, "HSET " QUEUE_PREFIX ":job:%s deadline 1", id);
    server_do(&server, "ZADD " QUEUE_PREFIX ":due 1 %s", id);
    drain();
    assert_int_equal(is_there(id), !was_over);
    sweep(id);
    for (int i = 0; was_over && i < n_history; i++)
        if (!strcmp(history[i].lease->job, id))
            history[i].is_last = false; /* whatever comes under this id is another job */
    if (was_over)
        return;
    cleanup(job_free) struct job *j = NULL;
    must(queue_job_get(q, id, &j, &e));
    assert_int_equal(j->state, JOB_FAILED);
    assert_non_null(strstr(j->reason, "deadline"));
}

static void set_tenant(int t, int64_t running, int64_t open)
{
    struct queue_tenant now;
    running_max[t] = running;
    open_max[t] = open;
    must(queue_tenant_set(q, tenants[t], &(struct queue_tenant){1 + t, running, open, 0, 0}, &now,
                          &e));
}

static void do_tenant(void)
{
    set_tenant((int)random_below(TENANTS), random_below(4), 1 + random_below(4));
}

static void do_flush(void)
{
    server_do(&server, "SCRIPT FLUSH");
    load_scripts();
}

static void do_release_all(void)
{
    int open = 0;
    for (int i = 0; i < n_history; i++)
        if (history[i].closing == OPEN) {
            history[i].closing = BY_RELEASE;
            open++;
        }
    assert_int_equal(must(queue_release_all(q, &e)), open);
}

static const struct {
    void (*step)(void);
    uint32_t odds;
} rows[] = {{do_submit, 6}, {do_lease, 40},      {do_lease_again, 3}, {do_holder, 60},
            {do_lapse, 8},  {do_promote, 8},     {do_cancel, 3},      {do_retry, 6},
            {do_flush, 1},  {do_release_all, 1}, {do_due, 3},         {do_tenant, 2}};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void random_step(void)
{
    uint32_t sum = 0;
    for (int i = 0; i < ROWS; i++)
        sum += rows[i].odds;
    uint32_t at = random_below(sum);
    int i = 0;
    for (; at >= rows[i].odds; i++)
        at -= rows[i].odds;
    rows[i].step();
}

static void kill_server(void)
{
    server_kill(&server);
    server_start(&server);
    load_scripts();
}

/* Honest work from here on ends every job. */
static void finish_all(void)
{
    for (int i = 0; i < 1000; i++) {
        for (int k = 0; k < n_history; k++)
            if (history[k].closing == OPEN)
                call_holder(&history[k], 1);
        do_promote();
        check_invariants();
        if (!lease_one(TASK_CLASS_WORKER) && !lease_one(TASK_CLASS_DISPATCHER) &&
            must((int)queue_depth(q, &e)) == 0)
            return;
    }
    fail_msg("jobs do not end");
}

static int expect_over(void *arg, const struct job *job)
{
    (void)arg;
    assert_true(job->state >= JOB_DONE);
    assert_true(job->state != JOB_DONE || job->frames_done == job->frames_total);
    return 0;
}

static void begin(uint64_t seed)
{
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
    server_do(&server, "FLUSHALL");
    while (n_history)
        lease_free(&history[--n_history].lease);
    last_token = 0;
    q->options.max_attempts = max_attempts = 2 + (int)(seed % 3);
    for (int t = 0; t < TENANTS; t++)
        set_tenant(t, 0, JOBS);
}

static void test_histories(void **state)
{
    (void)state;
    int64_t start = clock_mono_us();
    for (int seed = first_seed; seed < first_seed + seeds; seed++) {
        begin((uint64_t)seed);
        fprintf(stderr, "\rseed %d ", seed); /* the last one shown is the one that failed */
        int kill_at = (int)random_below((uint32_t)steps);
        for (int step = 0; step < steps; step++) {
            if (step == kill_at)
                kill_server();
            random_step();
            check_invariants();
        }
        finish_all();
        int64_t cursor = 0;
        must(queue_job_list(q, &cursor, 100, NULL, expect_over, NULL, &e));
    }
    begin(1);
    print_message("%d histories of %d steps in %.1f s\n", seeds, steps,
                  (double)(clock_mono_us() - start) / 1e6);
}

int main(int argc, char **argv)
{
    int *const numbers[] = {&seeds, &steps, &first_seed};
    if (getenv("QUEUE_SEEDS"))
        seeds = atoi(getenv("QUEUE_SEEDS"));
    for (int i = 1; i < argc && i <= 3; i++)
        *numbers[i - 1] = atoi(argv[i]);
    if (seeds < 1 || steps < 1)
        return fprintf(stderr, "test_queue_history: 1 seed and 1 step or more\n"), 2;
    log_init(LOG_ERROR, "test");
    server_start(&server);
    load_scripts();
    if (queue_open(server.url, NULL, &q, &e) < 0) {
        fprintf(stderr, "%s\n", e.msg);
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_histories)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    queue_close(&q);
    server_remove(&server);
    return failed;
}
