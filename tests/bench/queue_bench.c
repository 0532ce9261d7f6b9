/*
 * How fast the queue is: tasks through submit, lease, renew and commit, from one client and from
 * many, against the redis-server whose URL is given. Each client is a thread with a connection of
 * its own, as a worker has. Run by queue.sh.
 *
 *     queue_bench URL TASKS CLIENTS [WORK_MS]
 *
 * WORK_MS is what a client works on each task, half of it before it renews; 0, the default, is as
 * fast as they can. One line: tasks, clients, enqueued in s, cycles/s, server CPU per task in us,
 * round trips per task, and what one task waited for the queue: median, 99th percentile, and the
 * mean as a share of a chunk of 10 s.
 */
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "queue/queue.h"

enum { CLIENTS_MAX = 256, CHUNK_S = 10 };

static const char *url;
static int n_tasks, work_ms;
static int64_t *cycle_us; /* of each task: in the queue's calls */
static _Atomic int n_done;

static int must(int r, const struct err *e)
{
    if (r >= 0)
        return r;
    fprintf(stderr, "queue_bench: %s\n", e->msg);
    exit(1);
}

static struct queue *open_queue(void)
{
    struct queue *q = NULL;
    struct err e;
    must(queue_open(url, NULL, &q, &e), &e);
    return q;
}

/* What a manifest of a chunk and its payload weigh, roughly. */
static const char payload[] = "{\"index\":12,\"first_segment\":36,\"end_segment\":39,"
                              "\"seek_pts\":5184000,\"frames\":300}";
static char result[1500];

static int next_task(void *arg, struct task_spec *ret)
{
    static char id[32];
    int i = (*(int *)arg)++;
    snprintf(id, sizeof id, "video/%06d", i);
    *ret = (struct task_spec){
        .id = id, .kind = TASK_VIDEO, .payload = (char *)payload, .weight = 300, .cost = 30};
    return i < n_tasks;
}

static struct lease *take_lease(struct queue *q, enum task_class class)
{
    struct lease *l = NULL;
    struct err e;
    return must(queue_lease(q, class, "bench", 0, &l, &e), &e) ? l : NULL;
}

/* A job with n_tasks tasks; returns the seconds that its plan took to go in. */
static double enqueue(struct queue *q)
{
    struct err e;
    static char profile[3000];
    memset(profile, ' ', sizeof profile - 1);
    memcpy(profile, "{}", 2);
    struct job_spec spec = {.input = "/in.mp4", .output = "/out", .profile = profile};
    must(queue_submit(q, &spec, NULL, &e), &e);
    cleanup(lease_free) struct lease *probe = take_lease(q, TASK_CLASS_WORKER);
    must(queue_commit(q, probe, result, NULL, 0, &e), &e);
    cleanup(lease_free) struct lease *plan = take_lease(q, TASK_CLASS_DISPATCHER);
    int64_t start = clock_mono_us();
    int i = 0;
    must(queue_commit_plan(q, plan, result, next_task, &i, &e), &e);
    return (double)(clock_mono_us() - start) / 1e6;
}

/* Half of what a task takes; returns how long that was. */
static int64_t work(void)
{
    int64_t start = clock_mono_us();
    if (work_ms)
        clock_sleep_us(work_ms * INT64_C(500));
    return clock_mono_us() - start;
}

static void *client(void *arg)
{
    struct queue *q = open_queue();
    struct err e;
    static const char *const pins[] = {"init/1080p", "8f14e45fceea167a", "init/720p",
                                       "c9f0f895fb98ab91"};
    (void)arg;
    for (;;) {
        int64_t start = clock_mono_us();
        cleanup(lease_free) struct lease *l = take_lease(q, TASK_CLASS_WORKER);
        if (!l)
            break;
        start += work();
        must(queue_renew(q, l, 150, &e), &e);
        start += work();
        must(queue_commit(q, l, result, pins, 2, &e), &e);
        cycle_us[n_done++] = clock_mono_us() - start;
    }
    queue_close(&q);
    return NULL;
}

struct usage {
    double cpu_s;
    long long calls;
};

static struct usage server_usage(redisContext *admin)
{
    struct usage u = {0};
    redisReply *info = redisCommand(admin, "INFO all");
    static const char *const commands[] = {
        "cmdstat_evalsha:calls=", "cmdstat_eval:calls=", "cmdstat_blpop:calls="};
    const char *p = strstr(info->str, "used_cpu_sys:");
    u.cpu_s = p ? atof(p + strlen("used_cpu_sys:")) : 0;
    p = strstr(info->str, "used_cpu_user:");
    u.cpu_s += p ? atof(p + strlen("used_cpu_user:")) : 0;
    for (size_t i = 0; i < 3; i++)
        if ((p = strstr(info->str, commands[i])))
            u.calls += atoll(p + strlen(commands[i]));
    freeReplyObject(info);
    return u;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 5 || strncmp(argv[1], "unix://", 7))
        return fprintf(stderr, "usage: queue_bench unix://SOCKET TASKS CLIENTS [WORK_MS]\n"), 2;
    url = argv[1];
    n_tasks = atoi(argv[2]);
    int n_clients = atoi(argv[3]);
    work_ms = argc > 4 ? atoi(argv[4]) : 0;
    if (n_tasks < 1 || n_clients < 1 || n_clients > CLIENTS_MAX)
        return fprintf(stderr, "queue_bench: 1 task or more, 1 to %d clients\n", CLIENTS_MAX), 2;
    log_init(LOG_ERROR, "bench");
    memset(result, ' ', sizeof result - 1);
    memcpy(result, "{}", 2);
    cycle_us = calloc((size_t)n_tasks, sizeof *cycle_us);
    redisContext *admin = redisConnectUnix(url + 7);
    struct queue *q = open_queue();
    struct usage before = server_usage(admin);
    double enqueue_s = enqueue(q);
    pthread_t threads[CLIENTS_MAX];
    int64_t start = clock_mono_us();
    for (int i = 0; i < n_clients; i++)
        pthread_create(&threads[i], NULL, client, NULL);
    for (int i = 0; i < n_clients; i++)
        pthread_join(threads[i], NULL);
    double seconds = (double)(clock_mono_us() - start) / 1e6 + enqueue_s;
    struct usage after = server_usage(admin);
    qsort(cycle_us, (size_t)n_done, sizeof *cycle_us, by_time);
    double cpu_us = (after.cpu_s - before.cpu_s) * 1e6 / n_done;
    double mean_us = 0;
    for (int i = 0; i < n_done; i++)
        mean_us += (double)cycle_us[i] / n_done;
    printf("%7d %7d %8.3f s %8.0f/s %8.0f us %6.2f %8lld us %8lld us %8.4f %%\n", n_done, n_clients,
           enqueue_s, n_done / seconds, cpu_us, (double)(after.calls - before.calls) / n_done,
           (long long)cycle_us[n_done / 2], (long long)cycle_us[n_done * 99 / 100],
           100 * mean_us / (CHUNK_S * 1e6));
    bool is_whole = n_done == n_tasks;
    queue_close(&q);
    redisFree(admin);
    free(cycle_us);
    return is_whole ? 0 : 1;
}
