/* Each script against a real redis-server: what it does, what a repeat and a stale caller get. */
#include "tests/queue/server.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

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
    server_do(&server, "SCRIPT FLUSH");
    ok(queue_open(server.url, NULL, &q, &e));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    queue_close(&q);
    return 0;
}

static void submit(const char *id)
{
    struct job_spec spec = {.id = (char *)id,
                            .input = "/in.mp4",
                            .output = "/out",
                            .profile = "{\"name\":\"h264\"}",
                            .options = "{}"};
    cleanup(free_ptr) char *given = NULL;
    assert_int_equal(ok(queue_submit(q, &spec, &given, &e)), 1);
    assert_string_equal(given, id);
}

static struct lease *lease(enum task_class class)
{
    struct lease *l = NULL;
    assert_int_equal(ok(queue_lease(q, class, "w1", 0, &l, &e)), 1);
    return l;
}

static void no_lease(enum task_class class)
{
    struct lease *l = NULL;
    assert_int_equal(ok(queue_lease(q, class, "w1", 0, &l, &e)), 0);
}

struct tasks {
    int i, video, audio;
    char id[32];
};

static int next_task(void *arg, struct task_spec *ret)
{
    struct tasks *t = arg;
    if (t->i == t->video + t->audio)
        return 0;
    bool is_video = t->i < t->video;
    int n = is_video ? t->i : t->i - t->video;
    snprintf(t->id, sizeof t->id, is_video ? "video/%06d" : "audio/%d", n);
    *ret = (struct task_spec){.id = t->id,
                              .kind = is_video ? TASK_VIDEO : TASK_AUDIO,
                              .payload = is_video ? "{\"index\":1}" : "{\"audio\":0}",
                              .weight = 100};
    t->i++;
    return 1;
}

static void probe_and_plan(const char *id, int video, int audio)
{
    submit(id);
    cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
    assert_int_equal(l->kind, TASK_PROBE);
    assert_int_equal(ok(queue_commit(q, l, "{\"container\":\"mov\"}", NULL, 0, &e)), LEASE_HELD);
    cleanup(lease_free) struct lease *p = lease(TASK_CLASS_DISPATCHER);
    assert_int_equal(p->kind, TASK_PLAN);
    assert_string_equal(p->source, "{\"container\":\"mov\"}");
    struct tasks t = {.video = video, .audio = audio};
    assert_int_equal(ok(queue_commit_plan(q, p, "{\"segments\":0}", next_task, &t, &e)),
                     LEASE_HELD);
}

static struct job *get(const char *id)
{
    struct job *j = NULL;
    ok(queue_job_get(q, id, &j, &e));
    return j;
}

static void assert_state(const char *id, enum job_state state)
{
    cleanup(job_free) struct job *j = get(id);
    assert_string_equal(job_state_names[j->state], job_state_names[state]);
}

/* Moves every member of a place to a score in the past. */
static void make_due(const char *place)
{
    server_do(&server, "EVAL %s 1 {transcode}:%s",
              "for _, m in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
              "redis.call('ZADD', KEYS[1], 1, m) end",
              place);
}

/* ---- the life of a job ---- */

struct seen {
    int n;
    char ids[512];
};

static int see(void *arg, const char *task, const char *result, struct err *why)
{
    (void)why;
    struct seen *s = arg;
    s->n++;
    snprintf(s->ids + strlen(s->ids), sizeof s->ids - strlen(s->ids), "%s=%s ", task, result);
    return 0;
}

static void test_life(void **state)
{
    (void)state;
    probe_and_plan("j", 2, 1);
    assert_state("j", JOB_RUNNING);
    assert_int_equal(ok(queue_depth(q, &e)), 3);
    static const char *const order[] = {"audio/0", "video/000000", "video/000001"};
    for (int i = 0; i < 3; i++) {
        no_lease(TASK_CLASS_DISPATCHER);
        cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
        assert_string_equal(l->task, order[i]);
        assert_string_equal(l->plan, "{\"segments\":0}");
        assert_string_equal(l->spec.input, "/in.mp4");
        assert_string_equal(l->payload, i ? "{\"index\":1}" : "{\"audio\":0}");
        assert_int_equal(l->attempt, 1);
        assert_false(l->is_exclusive);
        char result[32];
        snprintf(result, sizeof result, "{\"n\":%d}", i);
        assert_int_equal(ok(queue_commit(q, l, result, NULL, 0, &e)), LEASE_HELD);
    }
    assert_state("j", JOB_PUBLISHING);
    struct seen video = {0}, audio = {0};
    ok(queue_results(q, "j", TASK_VIDEO, see, &video, &e));
    ok(queue_results(q, "j", TASK_AUDIO, see, &audio, &e));
    assert_string_equal(video.ids, "video/000000={\"n\":1} video/000001={\"n\":2} ");
    assert_string_equal(audio.ids, "audio/0={\"n\":0} ");
    cleanup(lease_free) struct lease *l = lease(TASK_CLASS_DISPATCHER);
    assert_int_equal(l->kind, TASK_PUBLISH);
    assert_int_equal(ok(queue_commit(q, l, "{\"master\":\"m\"}", NULL, 0, &e)), LEASE_HELD);
    cleanup(job_free) struct job *j = get("j");
    assert_int_equal(j->state, JOB_DONE);
    assert_string_equal(j->report, "{\"master\":\"m\"}");
    assert_int_equal(j->tasks, 6);
    assert_int_equal(j->tasks_done, 6);
    assert_int_equal(j->tasks_running, 0);
    assert_int_equal(j->frames_total, 200);
    assert_int_equal(j->frames_done, 200);
    assert_true(j->finished_us >= j->created_us && j->created_us > 1600000000000000);
    assert_int_equal(ok(queue_depth(q, &e)), 0);
    json_t *o = job_to_json(j);
    assert_string_equal(json_string_value(json_object_get(o, "state")), "done");
    assert_true(json_is_object(json_object_get(o, "source")));
    assert_true(json_is_object(json_object_get(o, "profile")));
    json_decref(o);
}

static void test_plan_without_tasks(void **state)
{
    (void)state;
    probe_and_plan("j", 0, 0);
    assert_state("j", JOB_PUBLISHING);
}

static void test_submit_again(void **state)
{
    (void)state;
    submit("j");
    struct job_spec same = {.id = "j",
                            .input = "/in.mp4",
                            .output = "/out",
                            .profile = "{\"name\":\"h264\"}",
                            .options = "{}"};
    assert_int_equal(ok(queue_submit(q, &same, NULL, &e)), 0);
    assert_int_equal(ok(queue_depth(q, &e)), 1);
    struct job_spec other = same;
    other.output = "/elsewhere";
    assert_int_equal(queue_submit(q, &other, NULL, &e), -ERR_USAGE);
    assert_non_null(strstr(e.msg, "output"));
    struct job_spec anonymous = same;
    anonymous.id = NULL;
    cleanup(free_ptr) char *a = NULL;
    cleanup(free_ptr) char *b = NULL;
    assert_int_equal(ok(queue_submit(q, &anonymous, &a, &e)), 1);
    assert_int_equal(ok(queue_submit(q, &anonymous, &b, &e)), 1);
    assert_string_not_equal(a, b);
    static const char *const bad[] = {"", "a/b", "a b", "ä", NULL};
    for (int i = 0; bad[i]; i++) {
        other.id = (char *)bad[i];
        assert_int_equal(queue_submit(q, &other, NULL, &e), -ERR_USAGE);
    }
    cleanup(free_ptr) char *long_url = xasprintf("%0*d", QUEUE_URL_MAX + 1, 0);
    same.id = "k";
    same.input = long_url;
    assert_int_equal(queue_submit(q, &same, NULL, &e), -ERR_USAGE);
    struct job *none = NULL;
    assert_int_equal(queue_job_get(q, "k", &none, &e), -ERR_USAGE);
}

/* ---- stale callers and repeats ---- */

/* Every call that a lease holder can make answers LOST and leaves the keys as they are. */
static void assert_stale(const struct lease *l)
{
    char digest[41];
    server_load(&server, TESTS_DIR "/queue/digest.lua", digest);
    redisReply *before = redisCommand(server.admin, "EVALSHA %s 0", digest);
    assert_int_equal(before->type, REDIS_REPLY_STRING);
    assert_int_equal(ok(queue_renew(q, l, 50, &e)), LEASE_LOST);
    if (l->kind == TASK_PLAN) {
        struct tasks t = {.video = 3};
        assert_int_equal(ok(queue_commit_plan(q, l, "{}", next_task, &t, &e)), LEASE_LOST);
    } else {
        static const char *const pin[] = {"p", "v"};
        assert_int_equal(ok(queue_commit(q, l, "{}", pin, 1, &e)), LEASE_LOST);
    }
    struct err why = {.kind = ERR_INPUT, .msg = "stale"};
    assert_int_equal(ok(queue_fail(q, l, &why, "log", &e)), LEASE_LOST);
    assert_int_equal(ok(queue_release(q, l, &e)), LEASE_LOST);
    redisReply *after = redisCommand(server.admin, "EVALSHA %s 0", digest);
    assert_string_equal(before->str, after->str);
    freeReplyObject(before);
    freeReplyObject(after);
}

static void test_stale(void **state)
{
    (void)state;
    submit("j");
    cleanup(lease_free) struct lease *probe1 = lease(TASK_CLASS_WORKER);
    make_due("leases");
    cleanup(lease_free) struct lease *probe2 = lease(TASK_CLASS_WORKER);
    assert_string_equal(probe2->task, "probe");
    assert_true(probe2->token > probe1->token);
    assert_int_equal(probe2->attempt, 2);
    assert_stale(probe1);
    ok(queue_commit(q, probe2, "{}", NULL, 0, &e));
    assert_stale(probe1);
    cleanup(lease_free) struct lease *plan1 = lease(TASK_CLASS_DISPATCHER);
    make_due("leases");
    assert_int_equal(ok(queue_reap(q, 10, &e)), 1);
    assert_stale(plan1); /* ready again, nobody has it */
    cleanup(lease_free) struct lease *plan2 = lease(TASK_CLASS_DISPATCHER);
    assert_stale(plan1);
    struct tasks t = {.video = 2};
    assert_int_equal(ok(queue_commit_plan(q, plan2, "{}", next_task, &t, &e)), LEASE_HELD);
    assert_stale(plan1);
    cleanup(lease_free) struct lease *never = lease(TASK_CLASS_WORKER);
    never->token++;
    assert_stale(never);
}

static void test_repeats(void **state)
{
    (void)state;
    submit("j");
    cleanup(lease_free) struct lease *probe = lease(TASK_CLASS_WORKER);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ok(queue_commit(q, probe, "{}", NULL, 0, &e)), LEASE_HELD);
    assert_int_equal(ok(queue_depth(q, &e)), 1);
    assert_int_equal(ok(queue_renew(q, probe, 1, &e)), LEASE_LOST);
    assert_int_equal(ok(queue_release(q, probe, &e)), LEASE_LOST);
    cleanup(lease_free) struct lease *plan = lease(TASK_CLASS_DISPATCHER);
    for (int i = 0; i < 2; i++) {
        struct tasks t = {.video = 2};
        assert_int_equal(ok(queue_commit_plan(q, plan, "{}", next_task, &t, &e)), LEASE_HELD);
    }
    assert_int_equal(ok(queue_depth(q, &e)), 2);
    cleanup(lease_free) struct lease *a = lease(TASK_CLASS_WORKER);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ok(queue_release(q, a, &e)), LEASE_HELD);
    struct err why = {.kind = ERR_TRANSIENT, .msg = "no"};
    assert_int_equal(ok(queue_fail(q, a, &why, NULL, &e)), LEASE_LOST);
    cleanup(lease_free) struct lease *b = lease(TASK_CLASS_WORKER);
    assert_int_equal(b->attempt, 1); /* a release charges none */
    for (int i = 0; i < 2; i++)
        assert_int_equal(ok(queue_fail(q, b, &why, NULL, &e)), LEASE_HELD);
    assert_int_equal(server_do(&server, "ZCARD {transcode}:delayed"), 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ok(queue_cancel(q, "j", &e)), i == 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ok(queue_retry(q, "j", &e)), i == 0);
    assert_int_equal(ok(queue_depth(q, &e)), 2);
}

/* A lease call whose reply was lost, sent again: the same lease. A new call: another task. */
static void test_lease_repeat(void **state)
{
    (void)state;
    submit("j1");
    submit("j2");
    cleanup(lease_free) struct lease *a = lease(TASK_CLASS_WORKER);
    q->is_unsettled = true;
    cleanup(lease_free) struct lease *again = lease(TASK_CLASS_WORKER);
    assert_string_equal(again->job, a->job);
    assert_int_equal(again->token, a->token);
    assert_int_equal(again->attempt, 1);
    cleanup(lease_free) struct lease *b = lease(TASK_CLASS_WORKER);
    assert_string_equal(b->job, "j2");
    assert_true(b->token > a->token);
    ok(queue_commit(q, b, "{}", NULL, 0, &e));
    q->is_unsettled = true;
    no_lease(TASK_CLASS_WORKER); /* that one is over */
}

/* ---- losing, failing, ending ---- */

static void test_lapse(void **state)
{
    (void)state;
    submit("j");
    for (int i = 1; i <= QUEUE_MAX_ATTEMPTS; i++) {
        cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
        assert_int_equal(l->attempt, i);
        assert_int_equal(l->is_exclusive, i > 2);
        make_due("leases");
    }
    assert_int_equal(ok(queue_reap(q, 10, &e)), 1);
    cleanup(job_free) struct job *j = get("j");
    assert_int_equal(j->state, JOB_FAILED);
    assert_int_equal(j->reason_kind, ERR_TRANSIENT);
    assert_non_null(strstr(j->reason, "5 attempts"));
    assert_non_null(strstr(j->reason, "w1"));
    assert_int_equal(ok(queue_depth(q, &e)), 0);
    no_lease(TASK_CLASS_WORKER);
}

static void test_fail_permanent(void **state)
{
    (void)state;
    probe_and_plan("j", 300, 0);
    cleanup(lease_free) struct lease *sibling = lease(TASK_CLASS_WORKER);
    cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
    struct err why = {.kind = ERR_INPUT, .msg = "https://u:secret@h/in.mp4?sig=abc: no moov atom"};
    assert_int_equal(ok(queue_fail(q, l, &why, "last words", &e)), LEASE_HELD);
    cleanup(job_free) struct job *j = get("j");
    assert_int_equal(j->state, JOB_FAILED);
    assert_int_equal(j->reason_kind, ERR_INPUT);
    assert_non_null(strstr(j->reason, "no moov atom"));
    assert_null(strstr(j->reason, "secret"));
    while (ok(queue_reap(q, 100, &e)))
        ;
    assert_int_equal(ok(queue_depth(q, &e)), 0);
    assert_int_equal(ok(queue_renew(q, sibling, 1, &e)), LEASE_CANCELLED);
    assert_int_equal(ok(queue_release(q, sibling, &e)), LEASE_CANCELLED);
    json_t *all = NULL;
    ok(queue_overview(q, &all, &e));
    json_t *letters = json_object_get(all, "dead_letters"), *letter = json_array_get(letters, 0);
    assert_int_equal(json_array_size(letters), 1);
    assert_string_equal(json_string_value(json_object_get(letter, "log")), "last words");
    assert_string_equal(json_string_value(json_object_get(letter, "worker")), "w1");
    assert_non_null(strstr(json_string_value(json_object_get(letter, "reason")), "no moov atom"));
    json_decref(all);
    /* and goes on where it was */
    assert_int_equal(ok(queue_retry(q, "j", &e)), 1);
    assert_int_equal(ok(queue_depth(q, &e)), 300);
    assert_stale(sibling);
    cleanup(job_free) struct job *again = get("j");
    assert_int_equal(again->state, JOB_RUNNING);
    assert_null(again->reason);
    cleanup(lease_free) struct lease *first = lease(TASK_CLASS_WORKER);
    assert_int_equal(first->attempt, 1);
}

static void test_fail_bounded(void **state)
{
    (void)state;
    submit("j");
    static const struct {
        enum err_kind kind;
        int tries;
    } rows[] = {{ERR_TRANSIENT, QUEUE_MAX_ATTEMPTS}, {ERR_BUG, 2}, {ERR_CONFIG, 1}};
    for (size_t i = 0; i < 3; i++) {
        for (int attempt = 1; attempt <= rows[i].tries; attempt++) {
            assert_state("j", JOB_PROBING);
            cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
            assert_int_equal(l->attempt, attempt);
            struct err why = {.kind = rows[i].kind, .msg = "broken"};
            assert_int_equal(ok(queue_fail(q, l, &why, NULL, &e)), LEASE_HELD);
            if (attempt < rows[i].tries)
                no_lease(TASK_CLASS_WORKER); /* delayed */
            make_due("delayed");
        }
        assert_state("j", JOB_FAILED);
        assert_int_equal(ok(queue_depth(q, &e)), 0);
        assert_int_equal(ok(queue_retry(q, "j", &e)), 1);
    }
}

static void test_pins(void **state)
{
    (void)state;
    probe_and_plan("j", 3, 0);
    static const char *const first[] = {"init/1080p", "aa", "device", "cpu"};
    static const char *const other[] = {"extra", "1", "init/1080p", "bb"};
    cleanup(lease_free) struct lease *a = lease(TASK_CLASS_WORKER);
    cleanup(lease_free) struct lease *b = lease(TASK_CLASS_WORKER);
    assert_int_equal(ok(queue_commit(q, a, "{}", first, 2, &e)), LEASE_HELD);
    assert_int_equal(queue_commit(q, b, "{}", other, 2, &e), -ERR_DEVICE);
    assert_non_null(strstr(e.msg, "init/1080p"));
    assert_int_equal(server_do(&server, "HEXISTS {transcode}:pins:j extra"), 0);
    assert_int_equal(ok(queue_renew(q, b, 1, &e)), LEASE_HELD); /* nothing has changed */
    assert_int_equal(ok(queue_commit(q, b, "{}", first, 2, &e)), LEASE_HELD);
}

static void test_progress(void **state)
{
    (void)state;
    probe_and_plan("j", 2, 0);
    cleanup(lease_free) struct lease *a = lease(TASK_CLASS_WORKER);
    cleanup(lease_free) struct lease *b = lease(TASK_CLASS_WORKER);
    static const struct {
        int which;
        int64_t frames, total;
    } rows[] = {{0, 30, 30}, {1, 20, 50}, {0, 60, 80}, {1, 1000, 160}, {1, -5, 60}};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(ok(queue_renew(q, rows[i].which ? b : a, rows[i].frames, &e)), LEASE_HELD);
        cleanup(job_free) struct job *j = get("j");
        assert_int_equal(j->frames_done, rows[i].total);
        assert_int_equal(j->tasks_running, 2);
    }
    ok(queue_commit(q, b, "{}", NULL, 0, &e));
    ok(queue_release(q, a, &e));
    cleanup(job_free) struct job *j = get("j");
    assert_int_equal(j->frames_done, 100);
    assert_int_equal(j->tasks_running, 0);
}

static void test_cancel(void **state)
{
    (void)state;
    probe_and_plan("j", 1000, 0);
    cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
    assert_int_equal(ok(queue_cancel(q, "j", &e)), 1);
    assert_int_equal(ok(queue_depth(q, &e)), 0);
    assert_state("j", JOB_CANCELLED);
    assert_int_equal(ok(queue_renew(q, l, 1, &e)), LEASE_CANCELLED);
    assert_int_equal(ok(queue_commit(q, l, "{}", NULL, 0, &e)), LEASE_CANCELLED);
    no_lease(TASK_CLASS_WORKER);
    assert_int_equal(ok(queue_retry(q, "j", &e)), 1);
    assert_int_equal(ok(queue_depth(q, &e)), 1000);
    assert_state("j", JOB_RUNNING);
    assert_int_equal(queue_cancel(q, "none", &e), -ERR_USAGE);
    assert_int_equal(queue_retry(q, "none", &e), -ERR_USAGE);
}

/* A canceller that dies after the first script: the holders of leases hear of it all the same, and
 * whoever leases ends the work, bit by bit. */
static void test_chores_go_on(void **state)
{
    (void)state;
    enum { HOLDERS = 260 };
    probe_and_plan("j", 700, 0);
    struct lease *held[HOLDERS];
    for (int i = 0; i < HOLDERS; i++)
        held[i] = lease(TASK_CLASS_WORKER);
    cleanup(request_free) struct request argv = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    request_strings(&argv, "op", "j", NULL);
    ok(script_call(q->scripts, q->connection, "cancel", &argv, &reply, &e));
    int64_t left = ok(queue_depth(q, &e));
    assert_in_range(left, 1, 699);
    assert_in_range(server_do(&server, "ZCARD {transcode}:leases"), 1, HOLDERS); /* not all swept */
    for (int i = 0; i < HOLDERS; i++) {
        assert_int_equal(ok(queue_renew(q, held[i], 1, &e)), LEASE_CANCELLED);
        assert_int_equal(ok(queue_commit(q, held[i], "{}", NULL, 0, &e)), LEASE_CANCELLED);
        lease_free(&held[i]);
    }
    for (int i = 0; i < 100 && ok(queue_depth(q, &e)); i++)
        no_lease(TASK_CLASS_WORKER);
    assert_int_equal(ok(queue_depth(q, &e)), 0);
}

static void test_release_all(void **state)
{
    (void)state;
    probe_and_plan("j", 3, 0);
    cleanup(lease_free) struct lease *a = lease(TASK_CLASS_WORKER);
    cleanup(lease_free) struct lease *b = lease(TASK_CLASS_WORKER);
    assert_true(b->token > a->token);
    assert_int_equal(ok(queue_release_all(q, &e)), 2);
    assert_int_equal(ok(queue_release_all(q, &e)), 0);
    assert_int_equal(ok(queue_renew(q, a, 1, &e)), LEASE_LOST);
    cleanup(lease_free) struct lease *c = lease(TASK_CLASS_WORKER);
    assert_string_equal(c->task, a->task);
    assert_int_equal(c->attempt, 1);
}

/* ---- plans ---- */

static int64_t memory_kib(void)
{
    int64_t kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    for (char line[256]; fgets(line, sizeof line, f);)
        if (sscanf(line, "VmHWM: %" SCNd64, &kib) == 1)
            break;
    fclose(f);
    return kib;
}

static void test_plan_large(void **state)
{
    (void)state;
    submit("j");
    cleanup(lease_free) struct lease *probe = lease(TASK_CLASS_WORKER);
    ok(queue_commit(q, probe, "{}", NULL, 0, &e));
    cleanup(lease_free) struct lease *l = lease(TASK_CLASS_DISPATCHER);
    int64_t memory = memory_kib(), start = clock_mono_us();
    struct tasks t = {.video = 10000};
    assert_int_equal(ok(queue_commit_plan(q, l, "{}", next_task, &t, &e)), LEASE_HELD);
    print_message("10,000 tasks planned in %.0f ms, %lld KiB more memory\n",
                  (double)(clock_mono_us() - start) / 1e3, (long long)(memory_kib() - memory));
    assert_int_equal(ok(queue_depth(q, &e)), 10000);
    assert_in_range(memory_kib() - memory, 0, 8192);
    cleanup(job_free) struct job *j = get("j");
    assert_int_equal(j->tasks, 10002);
    assert_int_equal(j->frames_total, 1000000);
}

/* Fails half-way, as a dispatcher that dies does. */
static int next_broken(void *arg, struct task_spec *ret)
{
    struct tasks *t = arg;
    return t->i == 1200 ? -ERR_BUG : next_task(arg, ret);
}

static void test_plan_again(void **state)
{
    (void)state;
    submit("j");
    cleanup(lease_free) struct lease *probe = lease(TASK_CLASS_WORKER);
    ok(queue_commit(q, probe, "{}", NULL, 0, &e));
    cleanup(lease_free) struct lease *first = lease(TASK_CLASS_DISPATCHER);
    struct tasks many = {.video = 5000};
    assert_int_equal(queue_commit_plan(q, first, "{}", next_broken, &many, &e), -ERR_BUG);
    no_lease(TASK_CLASS_WORKER);
    make_due("leases");
    cleanup(lease_free) struct lease *second = lease(TASK_CLASS_DISPATCHER);
    struct tasks few = {.video = 7};
    assert_int_equal(ok(queue_commit_plan(q, second, "{}", next_task, &few, &e)), LEASE_HELD);
    assert_int_equal(ok(queue_depth(q, &e)), 7);
    assert_int_equal(server_do(&server, "ZCARD {transcode}:order:j"), 9);
    assert_int_equal(server_do(&server, "HEXISTS {transcode}:tasks:j video/001000"), 0);
}

static int next_same(void *arg, struct task_spec *ret)
{
    int r = next_task(arg, ret);
    ret->id = "video/0";
    return r;
}

static int next_taken(void *arg, struct task_spec *ret)
{
    int r = next_task(arg, ret);
    ret->id = "probe";
    return r;
}

static void test_plan_refused(void **state)
{
    (void)state;
    submit("j");
    cleanup(lease_free) struct lease *probe = lease(TASK_CLASS_WORKER);
    ok(queue_commit(q, probe, "{}", NULL, 0, &e));
    cleanup(lease_free) struct lease *l = lease(TASK_CLASS_DISPATCHER);
    struct tasks t = {.video = 3}, u = t;
    assert_int_equal(queue_commit_plan(q, l, "{}", next_same, &t, &e), -ERR_BUG);
    assert_int_equal(queue_commit_plan(q, l, "{}", next_taken, &u, &e), -ERR_BUG);
    assert_state("j", JOB_PLANNING);
    assert_int_equal(queue_commit(q, l, "{}", NULL, 0, &e), -ERR_BUG);
}

/* ---- reading ---- */

static int see_job(void *arg, const struct job *job)
{
    struct seen *s = arg;
    s->n++;
    snprintf(s->ids + strlen(s->ids), sizeof s->ids - strlen(s->ids), "%s ", job->spec.id);
    assert_null(job->spec.profile);
    return 0;
}

static void test_list(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        submit(id);
    }
    int64_t cursor = 0;
    static const char *const pages[] = {"j4 j3 ", "j2 j1 ", "j0 "};
    for (int i = 0; i < 3; i++) {
        struct seen s = {0};
        ok(queue_job_list(q, &cursor, 2, NULL, see_job, &s, &e));
        assert_string_equal(s.ids, pages[i]);
        assert_int_equal(cursor == 0, i == 2);
    }
}

static void *submit_later(void *arg)
{
    struct queue *other = NULL;
    struct err why;
    clock_sleep_us(200000);
    struct job_spec spec = {.id = arg, .input = "i", .output = "o", .profile = "{}"};
    if (queue_open(server.url, NULL, &other, &why) || queue_submit(other, &spec, NULL, &why) != 1)
        abort();
    queue_close(&other);
    return NULL;
}

static void *cancel_later(void *arg)
{
    struct queue *other = NULL;
    struct err why;
    clock_sleep_us(200000);
    if (queue_open(server.url, NULL, &other, &why) || queue_cancel(other, arg, &why) != 1)
        abort();
    queue_close(&other);
    return NULL;
}

static long long commands_processed(void)
{
    redisReply *info = redisCommand(server.admin, "INFO stats");
    const char *p = strstr(info->str, "total_commands_processed:");
    long long n = atoll(strchr(p, ':') + 1);
    freeReplyObject(info);
    return n;
}

/* Waiting ends with the event, soon, and costs next to no commands. */
static void test_wake(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, submit_later, "j"), 0);
    int64_t start = clock_mono_us();
    long long commands = commands_processed();
    cleanup(lease_free) struct lease *l = NULL;
    assert_int_equal(ok(queue_lease(q, TASK_CLASS_WORKER, "w", 5000000, &l, &e)), 1);
    assert_in_range(clock_mono_us() - start, 150000, 3000000);
    assert_in_range(commands_processed() - commands, 1, 80);
    pthread_join(thread, NULL);

    assert_state("j", JOB_PROBING); /* a snapshot to wait past */
    assert_int_equal(pthread_create(&thread, NULL, cancel_later, "j"), 0);
    start = clock_mono_us();
    ok(queue_job_wait(q, "j", 5000000, &e));
    assert_in_range(clock_mono_us() - start, 150000, 3000000);
    pthread_join(thread, NULL);
    start = clock_mono_us();
    ok(queue_job_wait(q, "j", 5000000, &e)); /* changed since the snapshot: at once */
    assert_in_range(clock_mono_us() - start, 0, 2000000);
    assert_state("j", JOB_CANCELLED);
    start = clock_mono_us();
    ok(queue_job_wait(q, "j", 150000, &e)); /* no change */
    assert_in_range(clock_mono_us() - start, 140000, 3000000);
    start = clock_mono_us();
    struct lease *none = NULL;
    assert_int_equal(ok(queue_lease(q, TASK_CLASS_WORKER, "w", 150000, &none, &e)), 0);
    assert_in_range(clock_mono_us() - start, 140000, 3000000);
}

static void *write_later(void *arg)
{
    clock_sleep_us(200000);
    if (eventfd_write(*(int *)arg, 1))
        abort();
    return NULL;
}

/* Whoever waits may be told to stop; the connection is good for more. */
static void test_wake_fd(void **state)
{
    (void)state;
    cleanup(close_fd) int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    cleanup(queue_close) struct queue *woken = NULL;
    const struct queue_options options = {.wake_fd = fd};
    ok(queue_open(server.url, &options, &woken, &e));
    submit("j");
    struct lease *l = NULL;
    assert_int_equal(ok(queue_lease(woken, TASK_CLASS_WORKER, "w", 20000000, &l, &e)), 1);
    lease_free(&l);

    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_later, &fd), 0);
    int64_t start = clock_mono_us();
    assert_int_equal(ok(queue_lease(woken, TASK_CLASS_WORKER, "w", 20000000, &l, &e)), 0);
    assert_in_range(clock_mono_us() - start, 150000, 10000000);
    pthread_join(thread, NULL);
    start = clock_mono_us();
    for (int i = 0; i < 10; i++)
        ok(queue_job_wait(woken, "j", 20000000, &e));
    assert_in_range(clock_mono_us() - start, 0, 10000000);
    struct job *job = NULL;
    ok(queue_job_get(woken, "j", &job, &e));
    assert_int_equal(job->state, JOB_PROBING);
    job_free(&job);
}

/* A delayed task is leased when it is due, not a second later, and by whoever waits. */
static void test_delay_is_waited(void **state)
{
    (void)state;
    submit("j");
    cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
    struct err why = {.kind = ERR_RESOURCE, .msg = "full"};
    int64_t start = clock_mono_us();
    ok(queue_fail(q, l, &why, NULL, &e));
    cleanup(lease_free) struct lease *again = NULL;
    assert_int_equal(ok(queue_lease(q, TASK_CLASS_WORKER, "w", 5000000, &again, &e)), 1);
    assert_in_range(clock_mono_us() - start, 490000, 1400000);
    assert_int_equal(again->attempt, 2);
}

/* ---- the server ---- */

static void test_script_flush(void **state)
{
    (void)state;
    submit("j");
    server_do(&server, "SCRIPT FLUSH");
    cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
    assert_int_equal(ok(queue_renew(q, l, 1, &e)), LEASE_HELD);
    server_do(&server, "SCRIPT FLUSH");
    assert_int_equal(ok(queue_renew(q, l, 1, &e)), LEASE_HELD);
    submit("k");
}

static void test_kill_and_restart(void **state)
{
    (void)state;
    probe_and_plan("j", 3, 0);
    cleanup(lease_free) struct lease *l = lease(TASK_CLASS_WORKER);
    server_kill(&server);
    server_spawn(&server, 300000);
    assert_int_equal(ok(queue_renew(q, l, 40, &e)), LEASE_HELD); /* waits for it */
    server_connect(&server);
    assert_int_equal(ok(queue_depth(q, &e)), 3);
    cleanup(job_free) struct job *j = get("j");
    assert_int_equal(j->frames_done, 40);
    server_kill(&server);
    server_start(&server);
    assert_int_equal(ok(queue_commit(q, l, "{}", NULL, 0, &e)), LEASE_HELD);
    cleanup(lease_free) struct lease *m = lease(TASK_CLASS_WORKER);
    assert_true(m->token > l->token);
}

static void test_server_away(void **state)
{
    (void)state;
    queue_close(&q);
    struct queue_options options = {.retry_us = 300000};
    ok(queue_open(server.url, &options, &q, &e));
    submit("j");
    server_kill(&server);
    int64_t start = clock_mono_us();
    assert_int_equal(queue_depth(q, &e), -ERR_TRANSIENT);
    assert_in_range(clock_mono_us() - start, 290000, 1500000);
    assert_non_null(strstr(e.msg, server.url));
    struct lease *l = NULL;
    assert_int_equal(queue_lease(q, TASK_CLASS_WORKER, "w", 0, &l, &e), -ERR_TRANSIENT);
    server_start(&server);
    l = lease(TASK_CLASS_WORKER);
    lease_free(&l);
}

/* Passing errors are waited out, then told; the call works again when they pass. */
static void test_passing_errors(void **state)
{
    (void)state;
    queue_close(&q);
    struct queue_options options = {.retry_us = 200000};
    ok(queue_open(server.url, &options, &q, &e));
    static const struct {
        const char *on, *off, *code;
    } rows[] = {
        {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY"},
        {"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "OOM"},
        {"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "NOREPLICAS"},
    };
    struct job_spec spec = {.id = "j", .input = "i", .output = "o", .profile = "{}"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        server_do(&server, rows[i].on, NULL);
        assert_int_equal(queue_submit(q, &spec, NULL, &e), -ERR_TRANSIENT);
        assert_non_null(strstr(e.msg, rows[i].code));
        server_do(&server, rows[i].off, NULL);
        struct job *none = NULL;
        assert_int_equal(queue_job_get(q, "j", &none, &e), -ERR_USAGE);
    }
    assert_int_equal(ok(queue_submit(q, &spec, NULL, &e)), 1);
}

static void test_eviction_refused(void **state)
{
    (void)state;
    server_do(&server, "CONFIG SET maxmemory-policy allkeys-lru");
    struct queue *other = NULL;
    assert_int_equal(queue_open(server.url, NULL, &other, &e), -ERR_CONFIG);
    assert_non_null(strstr(e.msg, "noeviction"));
    server_do(&server, "CONFIG SET maxmemory-policy noeviction");
}

static void test_secrets(void **state)
{
    (void)state;
    struct queue *other = NULL;
    struct queue_options options = {.retry_us = 1};
    assert_int_equal(queue_open("redis://u:hunter2@127.0.0.1:1/0", &options, &other, &e),
                     -ERR_TRANSIENT);
    assert_null(strstr(e.msg, "hunter2"));
    assert_non_null(strstr(e.msg, "127.0.0.1:1"));
    assert_int_equal(queue_open("http://u:hunter2@h/", NULL, &other, &e), -ERR_USAGE);
    assert_null(strstr(e.msg, "hunter2"));
}

static int free_port(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof any;
    cleanup(close_fd) int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&any, n), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &n), 0);
    return ntohs(any.sin_port);
}

/* A user with few rights, over TCP, with a password to be decoded. */
static void test_password(void **state)
{
    (void)state;
    int port = free_port();
    server_do(&server, "ACL SETUSER farm on >p@ss/w ~{transcode}* +@all -config");
    server_do(&server, "CONFIG SET port %d", port);
    cleanup(free_ptr) char *good = xasprintf("redis://farm:p%%40ss%%2Fw@127.0.0.1:%d/0", port);
    cleanup(free_ptr) char *bad = xasprintf("redis://farm:wrong@127.0.0.1:%d", port);
    struct queue *other = NULL;
    ok(queue_open(good, NULL, &other, &e));
    struct job_spec spec = {.id = "j", .input = "i", .output = "o", .profile = "{}"};
    assert_int_equal(ok(queue_submit(other, &spec, NULL, &e)), 1);
    assert_int_equal(ok(queue_depth(other, &e)), 1);
    queue_close(&other);
    assert_int_equal(queue_open(bad, NULL, &other, &e), -ERR_CONFIG);
    assert_null(strstr(e.msg, "farm:wrong"));
    server_do(&server, "CONFIG SET port 0");
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_life),
        T(test_plan_without_tasks),
        T(test_submit_again),
        T(test_stale),
        T(test_repeats),
        T(test_lease_repeat),
        T(test_lapse),
        T(test_fail_permanent),
        T(test_fail_bounded),
        T(test_pins),
        T(test_progress),
        T(test_cancel),
        T(test_chores_go_on),
        T(test_release_all),
        T(test_plan_large),
        T(test_plan_again),
        T(test_plan_refused),
        T(test_list),
        T(test_wake),
        T(test_wake_fd),
        T(test_delay_is_waited),
        T(test_script_flush),
        T(test_kill_and_restart),
        T(test_server_away),
        T(test_passing_errors),
        T(test_eviction_refused),
        T(test_secrets),
        T(test_password),
    };
    log_init(LOG_ERROR, "test");
    server_start(&server);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    server_remove(&server);
    return failed;
}
