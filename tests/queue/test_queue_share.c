/* Who is served next and how much of it: priorities, tenants, caps; and what time does to jobs and
 * leases: deadlines, retention, outages, clocks. Against a real redis-server. */
#include "tests/queue/server.h"

#include <inttypes.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/strbuf.h"
#include "queue/handle.h"

static struct server server;
static struct queue *q;
static struct err e;

static int set_up(void **state)
{
    (void)state;
    server_do(&server, "FLUSHALL");
    ok(queue_open(server.url, NULL, &q, &e));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    queue_close(&q);
    return 0;
}

static int submit(const char *id, const char *tenant, int priority)
{
    struct job_spec spec = {.id = (char *)id,
                            .input = "i",
                            .output = "o",
                            .profile = "{}",
                            .tenant = (char *)tenant,
                            .priority = priority};
    return queue_submit(q, &spec, NULL, &e);
}

static struct lease *lease(enum task_class class)
{
    struct lease *l = NULL;
    assert_int_equal(ok(queue_lease(q, class, "w", 0, &l, &e)), 1);
    return l;
}

static bool is_idle(void)
{
    struct lease *l = NULL;
    int r = ok(queue_lease(q, TASK_CLASS_WORKER, "w", 0, &l, &e));
    lease_free(&l);
    return r == 0;
}

static void lease_is(const char *job)
{
    cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
    assert_string_equal(l->job, job);
}

struct tasks {
    int i, n;
    int64_t cost;
    char id[32];
};

static int next_task(void *arg, struct task_spec *ret)
{
    struct tasks *t = arg;
    snprintf(t->id, sizeof t->id, "video/%06d", t->i);
    *ret = (struct task_spec){
        .id = t->id, .kind = TASK_VIDEO, .payload = "{}", .weight = 100, .cost = t->cost};
    return t->i++ < t->n;
}

/* A job with n tasks ready. */
static void make_job(const char *id, const char *tenant, int priority, int n, int64_t cost)
{
    assert_int_equal(ok(submit(id, tenant, priority)), 1);
    cleanup(lease_free) struct lease *probe = lease(TASK_CLASS_WORKER);
    assert_string_equal(probe->job, id);
    ok(queue_commit(q, probe, "{}", NULL, 0, &e));
    cleanup(lease_free) struct lease *plan = lease(TASK_CLASS_DISPATCHER);
    struct tasks t = {.n = n, .cost = cost};
    ok(queue_commit_plan(q, plan, "{}", next_task, &t, &e));
}

static struct queue_tenant tenant(const char *name, int64_t weight, int64_t running, int64_t open)
{
    struct queue_tenant t;
    ok(queue_tenant_set(q, name, &(struct queue_tenant){weight, running, open, 0, 0}, &t, &e));
    return t;
}

/* ---- who is next ---- */

static void test_priority(void **state)
{
    (void)state;
    ok(submit("low", NULL, 25));
    ok(submit("old", NULL, 50));
    ok(submit("high", NULL, 75));
    ok(submit("new", NULL, 50));
    ok(submit("top", NULL, 100));
    static const char *const order[] = {"top", "high", "old", "new", "low"};
    for (int i = 0; i < 5; i++)
        lease_is(order[i]);
    assert_true(is_idle());
    assert_int_equal(submit("bad", NULL, 101), -ERR_USAGE);
    assert_int_equal(submit("bad", NULL, -1), -ERR_USAGE);
    assert_int_equal(submit("bad", "a/b", 50), -ERR_USAGE);
    assert_int_equal(submit("low", NULL, 26), -ERR_USAGE);
    assert_non_null(strstr(e.msg, "priority"));
}

/* A band that nobody served for AGE_US a point goes before the higher one, for one task. */
static void test_ageing(void **state)
{
    (void)state;
    char id[16];
    for (int i = 0; i < 3; i++) {
        snprintf(id, sizeof id, "low%d", i);
        ok(submit(id, NULL, 40));
        snprintf(id, sizeof id, "high%d", i);
        ok(submit(id, NULL, 60));
    }
    lease_is("high0");
    server_do(&server, "ZINCRBY {transcode}:bands:worker -190000000 40"); /* has waited 190 s */
    lease_is("high1");
    server_do(&server, "ZINCRBY {transcode}:bands:worker -20000000 40"); /* 210 s: 21 points */
    lease_is("low0");
    lease_is("high2");
    lease_is("low1");
}

/* A band that was alone for long has waited for nobody. */
static void test_alone_is_not_waiting(void **state)
{
    (void)state;
    ok(submit("low0", NULL, 25));
    ok(submit("low1", NULL, 25));
    server_do(&server, "ZINCRBY {transcode}:bands:worker -3600000000 25");
    ok(submit("high", NULL, 75));
    lease_is("high");
}

static void count_shares(int n, int ret[256])
{
    memset(ret, 0, 256 * sizeof *ret);
    for (int i = 0; i < n; i++) {
        cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
        ret[(unsigned char)l->job[0]]++;
        ok(queue_commit(q, l, "{}", NULL, 0, &e));
    }
}

/* Shares follow weights and costs, not the number of tasks. */
static void test_shares(void **state)
{
    (void)state;
    int n[256];
    tenant("ann", 1, -1, -1);
    tenant("bob", 3, -1, -1);
    tenant("cat", 1, -1, -1);
    ok(submit("a", "ann", 50));
    ok(submit("b", "bob", 50));
    ok(submit("c", "cat", 50));
    for (int i = 0; i < 3; i++) {
        cleanup(lease_free) struct lease *probe = lease(TASK_CLASS_WORKER);
        ok(queue_commit(q, probe, "{}", NULL, 0, &e));
    }
    for (int i = 0; i < 3; i++) {
        cleanup(lease_free) struct lease *plan = lease(TASK_CLASS_DISPATCHER);
        struct tasks t = {.n = 200, .cost = plan->job[0] == 'c' ? 20 : 10};
        ok(queue_commit_plan(q, plan, "{}", next_task, &t, &e));
    }
    count_shares(90, n);
    /* in time 1 : 3 : 1, in tasks 2 : 6 : 1 */
    assert_in_range(n['a'], 18, 22);
    assert_in_range(n['b'], 57, 63);
    assert_in_range(n['c'], 8, 12);
}

/* Who comes late is not served for the time it was away, who is idle keeps no credit. */
static void test_latecomer(void **state)
{
    (void)state;
    int n[256];
    make_job("a", "ann", 50, 300, 10);
    count_shares(100, n);
    cleanup(lease_free) struct lease *l = NULL;
    ok(submit("b", "bob", 50));
    for (int i = 0; i < 3 && !(l && l->job[0] == 'b'); i++) {
        lease_free(&l);
        l = lease(TASK_CLASS_WORKER);
    }
    assert_string_equal(l->job, "b");
    ok(queue_commit(q, l, "{}", NULL, 0, &e));
    cleanup(lease_free) struct lease *plan = lease(TASK_CLASS_DISPATCHER);
    struct tasks t = {.n = 100, .cost = 10};
    ok(queue_commit_plan(q, plan, "{}", next_task, &t, &e));
    count_shares(40, n);
    assert_in_range(n['a'], 17, 23);
}

static void test_running_cap(void **state)
{
    (void)state;
    make_job("a", "ann", 75, 5, 1);
    make_job("b", "bob", 100, 2, 1);
    assert_int_equal(tenant("ann", -1, 2, -1).running_max, 2);
    struct lease *held[4];
    static const char order[] = "bbaa";
    for (int i = 0; i < 4; i++) {
        held[i] = lease(TASK_CLASS_WORKER);
        assert_int_equal(held[i]->job[0], order[i]);
    }
    assert_true(is_idle()); /* ann has two */
    assert_true(is_idle());
    assert_int_equal(tenant("ann", -1, -1, -1).running, 2);
    ok(submit("c", "ann", 100)); /* another lane of hers */
    assert_true(is_idle());
    ok(queue_commit(q, held[2], "{}", NULL, 0, &e));
    lease_is("c");
    assert_true(is_idle());
    tenant("ann", -1, 3, -1); /* raised: at once */
    lease_is("a");
    assert_true(is_idle());
    tenant("ann", -1, 0, -1); /* none */
    lease_is("a");
    lease_is("a");
    assert_true(is_idle());
    for (int i = 0; i < 4; i++)
        lease_free(&held[i]);
}

static void test_busy(void **state)
{
    (void)state;
    tenant("ann", -1, -1, 2);
    ok(submit("a", "ann", 50));
    ok(submit("b", "ann", 50));
    assert_int_equal(submit("c", "ann", 50), -ERR_RESOURCE);
    assert_int_equal(err_exit_code(e.kind), 4);
    assert_non_null(strstr(e.msg, "busy: tenant ann has 2 open jobs of 2"));
    assert_int_equal(ok(submit("b", "ann", 50)), 0); /* that one is there */
    assert_int_equal(ok(submit("d", "bob", 50)), 1);
    ok(queue_cancel(q, "a", &e));
    assert_int_equal(ok(submit("c", "ann", 50)), 1);
    assert_int_equal(tenant("ann", -1, -1, -1).open, 2);
}

/* ---- time ---- */

static void test_deadline(void **state)
{
    (void)state;
    struct job_spec spec = {
        .id = "j", .input = "i", .output = "o", .profile = "{}", .deadline_us = 50000};
    ok(queue_submit(q, &spec, NULL, &e));
    cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
    clock_sleep_us(60000);
    ok(queue_reap(q, 100, &e));
    cleanup(job_free) struct job *j = NULL;
    ok(queue_job_get(q, "j", &j, &e));
    assert_int_equal(j->state, JOB_FAILED);
    assert_int_equal(j->reason_kind, ERR_CANCELLED);
    assert_non_null(strstr(j->reason, "deadline passed with 0 of 1 tasks done"));
    assert_in_range(j->deadline_us - j->created_us, 50000, 1000000);
    assert_int_equal(ok(queue_renew(q, l, 1, &e)), LEASE_CANCELLED);
    assert_int_equal(ok(queue_retry(q, "j", &e)), 1); /* goes on without one */
    clock_sleep_us(10000);
    ok(queue_reap(q, 100, &e));
    lease_is("j");
}

/* Nothing is left of a job that was kept long enough. */
static void test_retention(void **state)
{
    (void)state;
    struct job_spec spec = {
        .id = "j", .input = "i", .output = "o", .profile = "{}", .keep_us = 50000};
    ok(queue_submit(q, &spec, NULL, &e));
    cleanup(lease_free) struct lease *probe = lease(TASK_CLASS_WORKER);
    ok(queue_commit(q, probe, "{}", NULL, 0, &e));
    cleanup(lease_free) struct lease *plan = lease(TASK_CLASS_DISPATCHER);
    struct tasks t = {.n = 1};
    ok(queue_commit_plan(q, plan, "{}", next_task, &t, &e));
    cleanup(job_free) struct job *j = NULL;
    ok(queue_job_get(q, "j", &j, &e));
    ok(queue_job_wait(q, "j", 1000, &e));
    static const char *const pin[] = {"p", "v"};
    cleanup(lease_free) struct lease *video = lease(TASK_CLASS_WORKER);
    ok(queue_commit(q, video, "{}", pin, 1, &e));
    cleanup(lease_free) struct lease *publish = lease(TASK_CLASS_DISPATCHER);
    ok(queue_commit(q, publish, "{}", NULL, 0, &e));
    ok(queue_reap(q, 100, &e));
    cleanup(job_free) struct job *done = NULL;
    ok(queue_job_get(q, "j", &done, &e));
    assert_int_equal(done->state, JOB_DONE);
    clock_sleep_us(60000);
    ok(queue_reap(q, 100, &e));
    struct job *none = NULL;
    assert_int_equal(queue_job_get(q, "j", &none, &e), -ERR_USAGE);
    assert_int_equal(server_do(&server, "EVAL %s 0", "return #redis.call('KEYS', '*:j')"), 0);
    assert_int_equal(ok(queue_renew(q, video, 1, &e)), LEASE_LOST);
    assert_int_equal(ok(queue_submit(q, &spec, NULL, &e)), 1); /* the name is free */
}

/* The server was away for longer than a lease: holders renew first; then leases lapse as ever. */
static void test_mercy(void **state)
{
    (void)state;
    ok(submit("j", NULL, 50));
    cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
    ok(queue_reap(q, 10, &e));
    server_do(&server, "EVAL %s 0",
              "local P = '{transcode}' redis.call('SET', P .. ':beat', "
              "redis.call('TIME')[1] - 60 .. '000000') "
              "return redis.call('ZADD', P .. ':leases', 1, 'j/probe')");
    assert_int_equal(ok(queue_reap(q, 10, &e)), 0);
    assert_int_equal(ok(queue_reap(q, 10, &e)), 0);
    int64_t start = clock_mono_us();
    struct lease *none = NULL; /* and nobody spins meanwhile */
    long long before = server_do(&server, "EVAL %s 0", "return redis.call('DBSIZE')");
    assert_int_equal(ok(queue_lease(q, TASK_CLASS_WORKER, "w", 200000, &none, &e)), 0);
    assert_in_range(clock_mono_us() - start, 190000, 2000000);
    assert_true(before > 0);
    assert_int_equal(ok(queue_renew(q, l, 0, &e)), LEASE_HELD);
    server_do(&server, "ZADD {transcode}:leases 1 j/probe");
    server_do(&server, "DEL {transcode}:mercy"); /* its time is over */
    assert_int_equal(ok(queue_reap(q, 10, &e)), 1);
    assert_int_equal(ok(queue_renew(q, l, 0, &e)), LEASE_LOST);
}

static long long seconds_left(const char *key, const char *member)
{
    return server_do(&server, "EVAL %s 0 %s %s",
                     "return redis.call('ZSCORE', '{transcode}:' .. ARGV[1], ARGV[2]) / 1000000 "
                     "- redis.call('TIME')[1]",
                     key, member);
}

/* The clock of the server goes back by an hour: what was due in seconds is due in seconds. */
static void test_clock_back(void **state)
{
    (void)state;
    ok(submit("j", NULL, 50));
    cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
    int64_t token = l->token;
    ok(submit("k", NULL, 50));
    server_do(&server, "EVAL %s 0",
              "local P, t = '{transcode}', redis.call('TIME') "
              "local later = string.format('%d', (t[1] + 3600) * 1000000) "
              "redis.call('SET', P .. ':beat', later) redis.call('SET', P .. ':stamp', later) "
              "redis.call('ZADD', P .. ':bands:worker', later - 500000000, '50') "
              "return redis.call('ZADD', P .. ':leases', later + 30000000, 'j/probe')");
    ok(queue_reap(q, 10, &e));
    assert_in_range(seconds_left("leases", "j/probe"), 25, 31);
    assert_in_range(seconds_left("bands:worker", "50") + 510, 5, 15);
    cleanup(lease_free) struct lease *k = lease(TASK_CLASS_WORKER);
    assert_true(k->token > token + 3500 * INT64_C(1000000)); /* never smaller than one before */
}

/* ---- looking ---- */

struct seen {
    int n;
    char last[32];
};

static int see_job(void *arg, const struct job *job)
{
    struct seen *s = arg;
    s->n++;
    snprintf(s->last, sizeof s->last, "%s", job->spec.id);
    return 0;
}

static int list(const char *state, const char *of, int max, int64_t *cursor, struct seen *s)
{
    struct queue_filter f = {state, of};
    return queue_job_list(q, cursor, max, &f, see_job, s, &e);
}

/* A page costs the server milliseconds, however many jobs there are and however few are wanted. */
static void test_list_many(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    server_do(&server, "CONFIG SET appendfsync no");
    server_do(
        &server, "EVAL %s 0 %d",
        "for i = 1, ARGV[1] do local rare = i % 25000 == 0 "
        "redis.call('HSET', '{transcode}:job:j' .. i, 'state', rare and 'failed' or 'done', "
        "'tenant', i % 2 == 0 and 'ann' or 'bob', 'priority', 50, 'created', i, 'input', 'i') "
        "redis.call('ZADD', '{transcode}:jobs', i, 'j' .. i) end return 1",
        MANY);
    server_do(&server, "CONFIG SET slowlog-log-slower-than 100000");
    server_do(&server, "SLOWLOG RESET");
    int64_t cursor = 0;
    struct seen some = {0};
    ok(list(NULL, NULL, 250, &cursor, &some));
    assert_int_equal(some.n, 250);
    assert_string_equal(some.last, "j99751");
    struct seen rare = {0};
    cursor = 0;
    ok(list("failed", NULL, MANY, &cursor, &rare));
    assert_int_equal(rare.n, 4);
    assert_int_equal(cursor, 0);
    struct seen both = {0};
    ok(list("done", "ann", 1000, &cursor, &both));
    assert_int_equal(both.n, 1000);
    assert_string_equal(both.last, "j98000");
    cursor = 0;
    struct seen three = {0}; /* page after page */
    do
        ok(list("failed", "ann", 1, &cursor, &three));
    while (cursor);
    assert_int_equal(three.n, 4);
    assert_in_range(server_do(&server, "SLOWLOG LEN"), 0, 2); /* this machine is not quiet */
    server_do(&server, "CONFIG SET appendfsync always");
}

static void test_overview(void **state)
{
    (void)state;
    make_job("a", "ann", 50, 3, 1);
    tenant("ann", -1, 1, -1);
    cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
    ok(queue_renew(q, l, 40, &e));
    assert_true(is_idle()); /* her lane is set aside, and shown all the same */
    json_t *all = NULL;
    ok(queue_overview(q, &all, &e));
    json_t *lane = json_array_get(json_object_get(all, "lanes"), 0);
    json_t *held = json_array_get(json_object_get(all, "leases"), 0);
    assert_int_equal(json_integer_value(json_object_get(all, "depth")), 3);
    assert_int_equal(json_integer_value(json_object_get(lane, "tasks")), 2);
    assert_int_equal(json_integer_value(json_object_get(lane, "priority")), 50);
    assert_string_equal(json_string_value(json_object_get(lane, "tenant")), "ann");
    assert_true(json_real_value(json_object_get(lane, "age_s")) < 60);
    assert_string_equal(json_string_value(json_object_get(held, "task")), "a/video/000000");
    assert_string_equal(json_string_value(json_object_get(held, "worker")), "w");
    assert_int_equal(json_integer_value(json_object_get(held, "frames_done")), 40);
    assert_true(json_real_value(json_object_get(held, "age_s")) < 60);
    json_decref(all);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_priority), T(test_ageing),     T(test_alone_is_not_waiting),
        T(test_shares),   T(test_latecomer),  T(test_running_cap),
        T(test_busy),     T(test_deadline),   T(test_retention),
        T(test_mercy),    T(test_clock_back), T(test_list_many),
        T(test_overview),
    };
    log_init(LOG_ERROR, "test");
    server_start(&server);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    server_remove(&server);
    return failed;
}
