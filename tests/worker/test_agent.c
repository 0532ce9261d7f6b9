/*
 * A worker, a dispatcher and a real Redis, each in a process of its own, on a clip of a few chunks:
 * what sessions and workers may suffer, and that the output shows nothing of it. This program is
 * also its sessions' program (`test_agent session`).
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/process.h"
#include "common/strbuf.h"
#include "dispatcher/dispatcher.h"
#include "pipelines/plan/plan.h"
#include "queue/embedded.h"
#include "queue/queue.h"
#include "tests/support/clip.h"
#include "worker/agent.h"
#include "worker/scratch.h"
#include "worker/session.h"

enum { FRAMES = 300, PATIENCE_US = 120000000 };

static const char profile_yaml[] = "name: small\n"
                                   "encoder: libx264\n"
                                   "preset: faster\n"
                                   "gop: 1\n"
                                   "segment: 1\n"
                                   "renditions:\n"
                                   "  - {name: large, height: 180, bitrate: 400k}\n"
                                   "  - {name: small, height: 90, bitrate: 100k}\n"
                                   "audio:\n"
                                   "  - {name: sound, encoder: aac, bitrate: 64k}\n";

static char base[] = "/tmp/test-agent-XXXXXX";
static struct embedded_redis *server;
static struct queue *queue;
static pid_t dispatcher, worker;
static char *clip, *calm; /* calm: digest of an undisturbed run's output */

/* ---- processes ---- */

static pid_t start_child(int (*run)(void))
{
    pid_t parent = getpid(), pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    _exit(run());
}

static int run_dispatcher(void)
{
    struct err e;
    process_title_set("dispatcher");
    const struct dispatcher_options options = {embedded_redis_url(server)};
    return err_exit_code((enum err_kind) - dispatcher_run(&options, &e));
}

static struct agent_options agent_options; /* of the next worker */

static int run_worker(void)
{
    struct err e = {0};
    int rc = agent_run(&agent_options, &e);
    if (rc < 0)
        log_info("the worker ends: %s", e.msg);
    return -rc;
}

static int wait_for_end(pid_t *pid)
{
    int status;
    if (process_wait(*pid, PATIENCE_US, &status) != 1)
        fail_msg("process %d does not end", (int)*pid);
    *pid = 0;
    return status;
}

static int stop_worker(int sig)
{
    assert_true(worker > 0);
    kill(worker, sig);
    return wait_for_end(&worker);
}

/* The command line of a process, blanks for zeros; "" when it is gone. */
static void read_title(int pid, char ret[256])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, ret, 255);
    if (fd >= 0)
        close(fd);
    ret[n > 0 ? n : 0] = 0;
    for (ssize_t i = 0; i + 1 < n; i++)
        if (!ret[i])
            ret[i] = ' ';
}

static bool is_running(int pid)
{
    char title[256];
    read_title(pid, title);
    return strstr(title, "session"); /* not so a zombie, which has none */
}

static int parent_of(int pid)
{
    char path[64];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%*d (%*[^)]) %*c %d", &parent) != 1)
        parent = 0;
    if (f)
        fclose(f);
    return parent;
}

/* Sessions of a worker with `what` in their titles; *ret_pid: the last of them, or 0. */
static int look_for_sessions(int parent, const char *what, int *ret_pid)
{
    DIR *dir = opendir("/proc");
    int n = 0;
    *ret_pid = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char title[256];
        int pid = atoi(entry->d_name);
        if (pid <= 0 || parent_of(pid) != parent)
            continue;
        read_title(pid, title);
        if (!strstr(title, "session") || !strstr(title, what))
            continue;
        *ret_pid = pid;
        n++;
    }
    closedir(dir);
    return n;
}

static int find_session(int parent, const char *what)
{
    int pid;
    look_for_sessions(parent, what, &pid);
    return pid;
}

static int count_sessions(int parent, const char *what)
{
    int pid;
    return look_for_sessions(parent, what, &pid);
}

static int wait_for_session(const char *what)
{
    int64_t until_us = clock_mono_us() + PATIENCE_US;
    int pid = 0;
    while (!(pid = find_session(worker, what)) && clock_mono_us() < until_us)
        clock_sleep_us(2000);
    if (!pid)
        fail_msg("no session shows %s", what);
    return pid;
}

/* Waits until it serves (and has caught its signals). */
static void start_worker(void)
{
    worker = start_child(run_worker);
    wait_for_session(" idle");
}

/* ---- jobs ---- */

static char *output_of(const char *id)
{
    return xasprintf("%s/%s", base, id);
}

static const char *tenant; /* of the next job; NULL: the default one */

static void submit(const char *id, const char *input)
{
    struct err e = {0};
    struct profile *profile = NULL;
    if (bind_parse(&profile_type, profile_yaml, strlen(profile_yaml), "small.yaml", ERR_CONFIG,
                   &profile, &e) < 0)
        fail_msg("%s", e.msg);
    const struct plan_options plan_options = {.chunk_seconds = 2, .segments = -1};
    cleanup(free_ptr) char *output = output_of(id), *ret_id = NULL;
    struct job_spec spec = {.id = (char *)id,
                            .input = (char *)input,
                            .output = output,
                            .profile = bind_dump(&profile_type, profile),
                            .options = bind_dump(&plan_options_type, &plan_options),
                            .tenant = (char *)tenant};
    if (queue_submit(queue, &spec, &ret_id, &e) != 1)
        fail_msg("%s", e.msg);
    free(spec.profile);
    free(spec.options);
    bind_free(&profile_type, &profile);
}

static struct job *get_job(const char *id)
{
    struct job *job = NULL;
    struct err e = {0};
    if (queue_job_get(queue, id, &job, &e) < 0)
        fail_msg("%s", e.msg);
    return job;
}

/* Waits for the end; caller frees. */
static struct job *finish(const char *id)
{
    int64_t until_us = clock_mono_us() + PATIENCE_US;
    for (;;) {
        struct job *job = get_job(id);
        if (job->state == JOB_DONE || job->state == JOB_FAILED || job->state == JOB_CANCELLED)
            return job;
        if (clock_mono_us() > until_us)
            fail_msg("job %s is %s for too long", id, job_state_names[job->state]);
        job_free(&job);
        clock_sleep_us(20000);
    }
}

static void finish_well(const char *id)
{
    struct job *job = finish(id);
    if (job->state != JOB_DONE)
        fail_msg("job %s %s: %s", id, job_state_names[job->state], job->reason);
    job_free(&job);
}

static void expect_failure(const char *id, enum err_kind kind, const char *text)
{
    struct job *job = finish(id);
    assert_int_equal(job->state, JOB_FAILED);
    if (job->reason_kind != kind || !strstr(job->reason, text))
        fail_msg("job %s: %s: %s", id, err_kind_name(job->reason_kind), job->reason);
    job_free(&job);
}

/* ---- outputs ---- */

static uint64_t mix(uint64_t h, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * 0x100000001b3ULL; /* FNV-1a */
    return h;
}

static void digest_file(struct strbuf *out, const char *folder, const char *name)
{
    char *path = xasprintf("%s/%s", folder, name);
    unsigned char bytes[65536];
    uint64_t h = 0xcbf29ce484222325ULL;
    size_t n, size = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (; (n = fread(bytes, 1, sizeof bytes, f)) > 0; size += n)
        h = mix(h, bytes, n);
    fclose(f);
    free(path);
    strbuf_printf(out, "%s %zu %016" PRIx64 "\n", name, size, h);
}

/* Names, sizes and contents of a folder's files, sorted. */
static void digest_folder(struct strbuf *out, const char *root, const char *folder)
{
    struct dirent **entries;
    char *path = xasprintf("%s/%s", root, folder);
    int n = scandir(path, &entries, NULL, alphasort);
    strbuf_printf(out, "%s:\n", folder);
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.')
            digest_file(out, path, entries[i]->d_name);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    free(path);
}

static char *digest(const char *id)
{
    static const char *const folders[] = {"large", "small", "sound"};
    struct strbuf out = {0};
    char *root = output_of(id);
    for (size_t i = 0; i < 3; i++)
        digest_folder(&out, root, folders[i]);
    digest_file(&out, root, "master.m3u8");
    free(root);
    return strbuf_take(&out);
}

static void expect_calm_output(const char *id)
{
    char *text = digest(id);
    assert_string_equal(text, calm);
    free(text);
}

static bool has_master(const char *id)
{
    char *path = xasprintf("%s/%s/master.m3u8", base, id);
    bool is_there = access(path, F_OK) == 0;
    free(path);
    return is_there;
}

static int count_scratches(void)
{
    int n = 0;
    DIR *dir = opendir(base);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += !strncmp(entry->d_name, "transcode-scratch-", 18);
    closedir(dir);
    return n;
}

/* ---- tests ---- */

static void test_calm(void **unused)
{
    (void)unused;
    submit("calm", clip);
    finish_well("calm");
    calm = digest("calm");
    assert_non_null(strstr(calm, "000011-")); /* 12 s in segments of 1 s */
}

static void test_session_killed(void **unused)
{
    (void)unused;
    submit("killed", clip);
    int first = wait_for_session("killed/video/");
    kill(first, SIGKILL);
    clock_sleep_us(200000);
    int second = wait_for_session("killed/video/");
    assert_true(second != first);
    kill(second, SIGKILL);
    finish_well("killed");
    expect_calm_output("killed");
}

static void test_session_hangs(void **unused)
{
    (void)unused;
    submit("hung", clip);
    int pid = wait_for_session("hung/video/");
    kill(pid, SIGSTOP);
    finish_well("hung");
    assert_false(is_running(pid));
    expect_calm_output("hung");
}

/* The queue is away longer than calls retry; sessions go on, commits are kept. */
static void test_queue_away(void **unused)
{
    (void)unused;
    submit("away", clip);
    wait_for_session("away/video/");
    kill(embedded_redis_pid(server), SIGSTOP);
    clock_sleep_us(2000000);
    kill(embedded_redis_pid(server), SIGCONT);
    finish_well("away");
    expect_calm_output("away");
}

static void test_worker_stopped(void **unused)
{
    (void)unused;
    submit("stopped", clip);
    wait_for_session("stopped/video/");
    int status = stop_worker(SIGTERM);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), ERR_CANCELLED);
    assert_int_equal(count_scratches(), 0);
    start_worker();
    finish_well("stopped");
    expect_calm_output("stopped");
}

/* A second signal does not wait for the grace time; what was given back is not charged. */
static void test_worker_stopped_twice(void **unused)
{
    (void)unused;
    double grace_s = agent_options.grace_s;
    stop_worker(SIGTERM);
    agent_options.grace_s = 600;
    start_worker();
    submit("twice", clip);
    wait_for_session("twice/video/");
    kill(worker, SIGTERM);
    clock_sleep_us(50000);
    int status = stop_worker(SIGTERM);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), ERR_CANCELLED);
    struct err e = {0};
    struct lease *l = NULL;
    if (queue_lease(queue, TASK_CLASS_WORKER, "test", 0, &l, &e) != 1)
        fail_msg("nothing was given back: %s", e.msg);
    assert_int_equal(l->attempt, 1);
    assert_int_equal(queue_release(queue, l, &e), LEASE_HELD);
    lease_free(&l);
    agent_options.grace_s = grace_s;
    start_worker();
    finish_well("twice");
    expect_calm_output("twice");
}

/* Collects the sessions that are seen at work for a job until it has ended. */
static int watch_sessions(const char *id, int pids[64])
{
    int n = 0;
    cleanup(free_ptr) char *title = xasprintf("%s/", id);
    for (enum job_state state = JOB_PROBING; state < JOB_DONE; clock_sleep_us(2000)) {
        int pid = find_session(worker, title), i = 0;
        while (i < n && pids[i] != pid)
            i++;
        if (pid && i == n && n < 64)
            pids[n++] = pid;
        struct job *job = get_job(id);
        state = job->state;
        job_free(&job);
    }
    return n;
}

/* No session that has seen one tenant's work gets another's. */
static void test_tenants(void **unused)
{
    (void)unused;
    int ann[64], bob[64];
    tenant = "ann";
    submit("of-ann", clip);
    int n_ann = watch_sessions("of-ann", ann);
    tenant = "bob";
    submit("of-bob", clip);
    int n_bob = watch_sessions("of-bob", bob);
    tenant = NULL;
    finish_well("of-bob");
    expect_calm_output("of-bob");
    assert_true(n_ann > 0 && n_bob > 0);
    for (int i = 0; i < n_ann; i++)
        for (int k = 0; k < n_bob; k++)
            assert_int_not_equal(ann[i], bob[k]);
}

/* An agent that is killed takes its sessions with it; what it held comes back, its scratch goes. */
static void test_worker_killed(void **unused)
{
    (void)unused;
    submit("dead", clip);
    int pid = wait_for_session("dead/video/");
    stop_worker(SIGKILL);
    for (int i = 0; i < 500 && is_running(pid); i++)
        clock_sleep_us(10000);
    assert_false(is_running(pid));
    assert_int_equal(count_scratches(), 1);
    struct err e;
    assert_true(queue_release_all(queue, &e) >= 0); /* instead of 30 s until its leases lapse */
    start_worker();
    finish_well("dead");
    expect_calm_output("dead");
    assert_int_equal(count_scratches(), 1);
}

/* Even a session that stands still is stopped once the agent hears of it, with the next renewal. */
static void test_cancel(void **unused)
{
    (void)unused;
    struct err e;
    submit("cancelled", clip);
    int pid = wait_for_session("cancelled/video/");
    kill(pid, SIGSTOP);
    assert_int_equal(queue_cancel(queue, "cancelled", &e), 1);
    int64_t until_us = clock_mono_us() + PATIENCE_US;
    while (find_session(worker, "cancelled/") && clock_mono_us() < until_us)
        clock_sleep_us(20000);
    assert_int_equal(find_session(worker, "cancelled/"), 0);
    assert_false(is_running(pid));
    struct job *job = finish("cancelled");
    assert_int_equal(job->state, JOB_CANCELLED);
    job_free(&job);
    assert_false(has_master("cancelled"));
}

static void test_bad_input(void **unused)
{
    (void)unused;
    char *path = xasprintf("%s/garbage.mp4", base);
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 20000; i++)
        fputc(i * 7919 >> 3 & 0xff, f);
    fclose(f);
    submit("garbage", path);
    expect_failure("garbage", ERR_INPUT, "");
    char *missing = xasprintf("%s/missing.mp4", base);
    submit("missing", missing);
    expect_failure("missing", ERR_INPUT, "missing.mp4");
    assert_false(has_master("garbage"));
    free(missing);
    free(path);
}

static void test_limits(void **unused)
{
    (void)unused;
    assert_true(WIFEXITED(stop_worker(SIGTERM)));
    struct agent_options usual = agent_options;
    agent_options.limits.max_output_bytes = 10000;
    start_worker();
    submit("big", clip);
    expect_failure("big", ERR_INPUT, "max_output_bytes=10000");
    assert_true(WIFEXITED(stop_worker(SIGTERM)));
    agent_options = usual;
    agent_options.limits.max_pixels = 1000;
    start_worker();
    submit("wide", clip);
    expect_failure("wide", ERR_INPUT, "max_pixels=1000");
    assert_true(WIFEXITED(stop_worker(SIGTERM)));
    agent_options = usual;
    start_worker();
}

/* A session that stands still is not only hung: its task has a time of its own, whatever it shows.
 */
static void test_overtime(void **unused)
{
    (void)unused;
    assert_true(WIFEXITED(stop_worker(SIGTERM)));
    struct agent_options usual = agent_options;
    agent_options.limits.max_task_s = 1;
    agent_options.limits.max_silence_s = 100;
    start_worker();
    submit("late", clip);
    kill(wait_for_session("late/video/"), SIGSTOP);
    expect_failure("late", ERR_INPUT, "max_task_s=1");
    assert_true(WIFEXITED(stop_worker(SIGTERM)));
    agent_options = usual;
    start_worker();
}

static char *slurp(const char *name)
{
    char *path = xasprintf("%s/%s", base, name), *text = xcalloc(1, 65536);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && read(fd, text, 65535) >= 0);
    close(fd);
    free(path);
    return text;
}

/* What a session is given, written down by a program in its place; and that an agent whose sessions
 * cannot begin says so and ends. */
static void test_what_sessions_get(void **unused)
{
    (void)unused;
    assert_true(WIFEXITED(stop_worker(SIGTERM)));
    char *program = xasprintf("%s/session.sh", base);
    FILE *f = fopen(program, "w");
    fprintf(f, "#!/bin/sh\nenv >%s/env\nexec >%s/fd\nexec ls -l /proc/self/fd\n", base, base);
    fclose(f);
    chmod(program, 0755);
    struct agent_options usual = agent_options;
    agent_options.session_exe = program;
    setenv("AWS_SECRET_ACCESS_KEY", "geheim", 1);
    setenv("TRANSCODE_REDIS", "redis://:geheim@host", 1);
    setenv("LC_ALL", "C", 1);
    worker = start_child(run_worker);
    int status = wait_for_end(&worker);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), ERR_RESOURCE);
    char *env = slurp("env"), *fds = slurp("fd");
    assert_null(strstr(env, "geheim"));
    assert_non_null(strstr(env, "LC_ALL=C"));
    assert_non_null(strstr(fds, " 3 -> socket:"));
    for (int fd = 4; fd < 256; fd++) { /* but for the directory that ls reads */
        char text[32];
        snprintf(text, sizeof text, " %d -> ", fd);
        const char *line = strstr(fds, text);
        if (line && strncmp(line + strlen(text), "/proc/", 6))
            fail_msg("a session has a descriptor too many: %.100s", line);
    }
    free(env);
    free(fds);
    free(program);
    agent_options = usual;
    start_worker();
}

/* Leases and loses tasks until one of them has been lost so often that it must run alone; it is
 * given back then. Returns its id. */
static char *lose_twice(void)
{
    struct err e = {0};
    struct queue *loser = NULL;
    const struct queue_options options = {.lease_us = 100000};
    char *task = NULL;
    assert_int_equal(queue_open(embedded_redis_url(server), &options, &loser, &e), 0);
    for (int i = 0; i < 100 && !task; i++) {
        struct lease *l = NULL;
        if (queue_lease(loser, TASK_CLASS_WORKER, "loser", 2000000, &l, &e) < 0)
            fail_msg("%s", e.msg);
        if (l && l->is_exclusive && l->kind == TASK_VIDEO) {
            task = xstrdup(l->task);
            queue_release(loser, l, &e);
        }
        lease_free(&l);
    }
    queue_close(&loser);
    assert_non_null(task);
    return task;
}

/* While the task that has to be alone is in a session, no other session has one. */
static void test_exclusive(void **unused)
{
    (void)unused;
    submit("alone", clip);
    wait_for_session("alone/video/");
    stop_worker(SIGTERM);
    char *task = lose_twice(), *title = xasprintf("alone/%s", task);
    start_worker();
    int seen = 0;
    for (enum job_state state = JOB_RUNNING; state == JOB_RUNNING; clock_sleep_us(5000)) {
        int pid = find_session(worker, title);
        int busy = count_sessions(worker, "alone/");
        if (pid && pid == find_session(worker, title)) {
            seen++;
            assert_int_equal(busy, 1);
        }
        struct job *job = get_job("alone");
        state = job->state;
        job_free(&job);
    }
    finish_well("alone");
    expect_calm_output("alone");
    assert_true(seen > 0);
    free(title);
    free(task);
}

static void test_probe(void **unused)
{
    (void)unused;
    struct err e = {0};
    char *text = NULL;
    struct source *source = NULL;
    if (agent_probe(clip, "cpu", &agent_options.limits, "2", &text, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(bind_parse(&source_type, text, strlen(text), "source", ERR_BUG, &source, &e),
                     0);
    assert_int_equal(source->video->frames, FRAMES);
    bind_free(&source_type, &source);
    free(text);
    assert_int_equal(agent_probe("/dev/null", "cpu", &agent_options.limits, "2", &text, &e),
                     -ERR_INPUT);
}

/* Idle, it ends at once and without having given anything back. */
static void test_drained_idle(void **unused)
{
    (void)unused;
    assert_int_equal(stop_worker(SIGINT), 0);
    assert_int_equal(count_scratches(), 0);
    start_worker();
}

/* ---- */

static int set_up(void **unused)
{
    (void)unused;
    struct err e = {0};
    if (!mkdtemp(base))
        return -1;
    clip = xasprintf("%s/clip.mp4", base);
    char *redis = xasprintf("%s/redis", base);
    const struct clip_options options = {
        .width = 320, .height = 180, .frames = FRAMES, .audio = {{.codec = "aac"}}, .n_audio = 1};
    const struct queue_options queue_options = {.retry_us = 10000000};
    int rc = mkdir(redis, 0700);
    if (rc == 0)
        rc = clip_make(clip, &options, &e);
    if (rc == 0)
        rc = embedded_redis_start(redis, &server, &e);
    if (rc == 0)
        rc = queue_open(embedded_redis_url(server), &queue_options, &queue, &e);
    free(redis);
    if (rc < 0) {
        print_error("%s\n", e.msg);
        return -1;
    }
    agent_options = (struct agent_options){.redis_url = embedded_redis_url(server),
                                           .device = "cpu",
                                           .scratch = base,
                                           .sessions = 2,
                                           .lease_s = 6}; /* longer than the queue is away */
    limits_default(&agent_options.limits);
    agent_options.limits.max_silence_s = 3; /* longer than a renewal takes */
    dispatcher = start_child(run_dispatcher);
    start_worker();
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    struct err e;
    if (worker)
        stop_worker(SIGTERM);
    kill(dispatcher, SIGTERM);
    wait_for_end(&dispatcher);
    queue_close(&queue);
    embedded_redis_stop(&server);
    free(calm);
    free(clip);
    return scratch_remove_at(AT_FDCWD, base, &e);
}

int main(int argc, char **argv)
{
    struct err e;
    argv = process_title_init(argc, argv);
    if (argc > 1 && !strcmp(argv[1], "session"))
        return session_main(&e) < 0;
    log_init(getenv("TEST_LOG") ? LOG_DEBUG : LOG_ERROR, "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calm),
        cmocka_unit_test(test_session_killed),
        cmocka_unit_test(test_session_hangs),
        cmocka_unit_test(test_queue_away),
        cmocka_unit_test(test_worker_stopped),
        cmocka_unit_test(test_worker_killed),
        cmocka_unit_test(test_worker_stopped_twice),
        cmocka_unit_test(test_tenants),
        cmocka_unit_test(test_exclusive),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_overtime),
        cmocka_unit_test(test_what_sessions_get),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_drained_idle),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
