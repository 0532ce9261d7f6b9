/* Ways to a server that is not on this machine: Sentinel with a failover, TLS. Each with real
 * processes on loopback. */
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/strbuf.h"
#include "queue/queue.h"

static char folder[] = "/tmp/transcode-test-XXXXXX";
static struct err e;

static int free_port(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof any;
    cleanup(close_fd) int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&any, n), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &n), 0);
    return ntohs(any.sin_port);
}

/* Starts redis-server with a configuration of its own; mode: one more argument, or NULL. */
static pid_t start(const char *name, const char *mode, const char *config)
{
    cleanup(free_ptr) char *path = xasprintf("%s/%s.conf", folder, name);
    cleanup(free_ptr) char *dir = xasprintf("%s/%s", folder, name);
    cleanup(free_ptr) char *make = xasprintf("mkdir -p %s", dir);
    assert_int_equal(system(make), 0);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "dir %s\nlogfile log\nbind 127.0.0.1\n%s", dir, config);
    fclose(f);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execlp("redis-server", "redis-server", path, mode, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Waits until a command on a port gives a reply that holds `want`. */
static void wait_for(int port, const char *command, const char *want)
{
    for (int i = 0; i < 300; i++) {
        redisContext *c = redisConnect("127.0.0.1", port);
        redisReply *r = c && !c->err ? redisCommand(c, command) : NULL;
        const char *text = r && r->str ? r->str : r && r->elements ? r->element[0]->str : "";
        bool is_there = strstr(text ? text : "", want) != NULL;
        if (r)
            freeReplyObject(r);
        redisFree(c);
        if (is_there)
            return;
        clock_sleep_us(50000);
    }
    fail_msg("port %d: %s: no %s", port, command, want);
}

static int submit(struct queue *q, const char *id)
{
    struct job_spec spec = {.id = (char *)id, .input = "i", .output = "o", .profile = "{}"};
    return queue_submit(q, &spec, NULL, &e);
}

/* The master dies; whoever has a lease still has it at the new one. */
static void test_sentinel(void **state)
{
    (void)state;
    int first = free_port(), second = free_port(), watcher = free_port();
    cleanup(free_ptr) char *one = xasprintf("port %d\nappendonly yes\nappendfsync always\n", first);
    cleanup(free_ptr) char *two =
        xasprintf("port %d\nappendonly yes\nreplicaof 127.0.0.1 %d\nrepl-diskless-sync-delay 0\n",
                  second, first);
    cleanup(free_ptr) char *three = xasprintf("port %d\nsentinel monitor farm 127.0.0.1 %d 1\n"
                                              "sentinel down-after-milliseconds farm 500\n"
                                              "sentinel failover-timeout farm 3000\n",
                                              watcher, first);
    pid_t a = start("one", NULL, one);
    wait_for(first, "PING", "PONG");
    pid_t b = start("two", NULL, two);
    wait_for(second, "INFO replication", "master_link_status:up");
    pid_t s = start("sentinel", "--sentinel", three);
    wait_for(watcher, "INFO sentinel", "slaves=1");

    cleanup(free_ptr) char *url =
        xasprintf("redis-sentinel://127.0.0.1:1,127.0.0.1:%d/farm", watcher);
    cleanup(queue_close) struct queue *q = NULL;
    struct queue_options options = {.retry_us = 30000000};
    assert_int_equal(queue_open(url, &options, &q, &e), 0);
    assert_int_equal(submit(q, "j"), 1);
    cleanup(lease_free) struct lease *l = NULL;
    assert_int_equal(queue_lease(q, TASK_CLASS_WORKER, "w", 0, &l, &e), 1);
    wait_for(second, "GET {transcode}:stamp", "1");
    clock_sleep_us(200000);
    stop(a);
    if (queue_renew(q, l, 0, &e) != LEASE_HELD)
        fail_msg("%s", e.msg);
    wait_for(second, "ROLE", "master");
    assert_int_equal(queue_commit(q, l, "{}", NULL, 0, &e), LEASE_HELD);
    assert_int_equal(submit(q, "k"), 1);
    cleanup(free_ptr) char *unknown = xasprintf("redis-sentinel://127.0.0.1:%d/other", watcher);
    struct queue *none = NULL;
    options.retry_us = 1000;
    assert_int_equal(queue_open(unknown, &options, &none, &e), -ERR_TRANSIENT);
    assert_non_null(strstr(e.msg, "knows no master \"other\""));
    stop(s);
    stop(b);
}

static void command(int port, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    redisContext *c = redisConnect("127.0.0.1", port);
    redisReply *r = redisvCommand(c, fmt, ap);
    va_end(ap);
    if (!r || r->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", fmt, r ? r->str : c->errstr);
    freeReplyObject(r);
    redisFree(c);
}

static void open_queue(int port, int64_t retry_us, struct queue **ret)
{
    cleanup(free_ptr) char *url = xasprintf("redis://127.0.0.1:%d", port);
    if (queue_open(url, &(struct queue_options){.retry_us = retry_us}, ret, &e) < 0)
        fail_msg("%s", e.msg);
}

/* While a server reads its data it answers LOADING: that is waited for. */
static void test_loading(void **state)
{
    (void)state;
    int port = free_port();
    cleanup(free_ptr) char *config = xasprintf("port %d\nsave \"\"\n", port);
    cleanup(free_ptr) char *slow =
        xasprintf("%skey-load-delay 1000\nloading-process-events-interval-bytes 1024\n", config);
    pid_t pid = start("loading", NULL, config);
    wait_for(port, "PING", "PONG");
    cleanup(queue_close) struct queue *q = NULL;
    open_queue(port, 200000, &q);
    assert_int_equal(submit(q, "j"), 1);
    command(port, "EVAL %s 0",
            "for i = 1, 2000 do redis.call('SET', 'x' .. i, string.rep('x', 100)) end return 1");
    command(port, "SAVE");
    stop(pid);
    pid = start("loading", NULL, slow);
    wait_for(port, "PING", "LOADING");
    assert_int_equal(submit(q, "k"), -ERR_TRANSIENT);
    assert_non_null(strstr(e.msg, "LOADING"));
    queue_close(&q);
    open_queue(port, 20000000, &q);
    assert_int_equal(submit(q, "j"), 0);
    stop(pid);
}

/* The disk of the server fails: it refuses writes with MISCONF until that is over. */
static void test_misconf(void **state)
{
    (void)state;
    int port = free_port();
    cleanup(free_ptr) char *config = xasprintf("port %d\nsave 3600 1\n", port);
    pid_t pid = start("misconf", NULL, config);
    wait_for(port, "PING", "PONG");
    cleanup(queue_close) struct queue *q = NULL;
    open_queue(port, 200000, &q);
    assert_int_equal(submit(q, "j"), 1);
    cleanup(lease_free) struct lease *l = NULL;
    assert_int_equal(queue_lease(q, TASK_CLASS_WORKER, "w", 0, &l, &e), 1);
    cleanup(free_ptr) char *gone = xasprintf("rm -rf %s/misconf", folder);
    assert_int_equal(system(gone), 0);
    command(port, "BGSAVE");
    wait_for(port, "INFO persistence", "rdb_last_bgsave_status:err");
    assert_int_equal(queue_commit(q, l, "{}", NULL, 0, &e), -ERR_TRANSIENT);
    assert_non_null(strstr(e.msg, "MISCONF"));
    command(port, "CONFIG SET stop-writes-on-bgsave-error no");
    assert_int_equal(queue_commit(q, l, "{}", NULL, 0, &e), LEASE_HELD);
    stop(pid);
}

/* A cluster that is not whole answers CLUSTERDOWN; one that is serves us from one slot. */
static void test_cluster(void **state)
{
    (void)state;
    int port = 10000 + getpid() % 30000; /* the bus takes the port 10,000 above */
    cleanup(free_ptr) char *config = xasprintf("port %d\ncluster-enabled yes\n", port);
    pid_t pid = start("cluster", NULL, config);
    wait_for(port, "PING", "PONG");
    cleanup(queue_close) struct queue *q = NULL;
    open_queue(port, 200000, &q);
    assert_int_equal(submit(q, "j"), -ERR_TRANSIENT);
    assert_non_null(strstr(e.msg, "CLUSTERDOWN"));
    cleanup(free_ptr) char *slots =
        xasprintf("redis-cli -p %d CLUSTER ADDSLOTS $(seq 0 16383) >/dev/null", port);
    assert_int_equal(system(slots), 0);
    wait_for(port, "CLUSTER INFO", "cluster_state:ok");
    assert_int_equal(submit(q, "j"), 1);
    cleanup(lease_free) struct lease *l = NULL;
    assert_int_equal(queue_lease(q, TASK_CLASS_WORKER, "w", 0, &l, &e), 1);
    assert_int_equal(queue_commit(q, l, "{}", NULL, 0, &e), LEASE_HELD);
    assert_int_equal(queue_job_wait(q, "j", 1000, &e), 0);
    assert_int_equal(queue_cancel(q, "j", &e), 1);
    stop(pid);
}

#ifdef QUEUE_TLS
static void make_certificate(const char *name)
{
    cleanup(free_ptr) char *command = xasprintf(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=%s -addext subjectAltName=DNS:%s -keyout %s/%s.key -out %s/%s.crt 2>/dev/null",
        name, name, folder, name, folder, name);
    assert_int_equal(system(command), 0);
}

/* A certificate that is trusted, for the right name; and one for another name. */
static void test_tls(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int want;
    } rows[] = {{"localhost", 0}, {"elsewhere", -ERR_CONFIG}};
    cleanup(free_ptr) char *trust = xasprintf("%s/trust", folder);
    cleanup(free_ptr) char *gather = xasprintf("cat %s/*.crt >%s", folder, trust);
    for (int i = 0; i < 2; i++)
        make_certificate(rows[i].name);
    assert_int_equal(system(gather), 0);
    setenv("TRANSCODE_REDIS_CA", trust, 1);
    setenv("TRANSCODE_REDIS_PASSWORD", "secret", 1);
    for (int i = 0; i < 2; i++) {
        int port = free_port();
        cleanup(free_ptr) char *config =
            xasprintf("port 0\ntls-port %d\ntls-cert-file %s/%s.crt\ntls-key-file %s/%s.key\n"
                      "tls-auth-clients no\ntls-ca-cert-file %s\n"
                      "user farm on >secret ~{transcode}* +@all\nuser default off\n",
                      port, folder, rows[i].name, folder, rows[i].name, trust);
        pid_t pid = start(rows[i].name, NULL, config);
        cleanup(free_ptr) char *url = xasprintf("rediss://farm@localhost:%d", port);
        cleanup(queue_close) struct queue *q = NULL;
        struct queue_options options = {.retry_us = 5000000};
        int r = queue_open(url, &options, &q, &e);
        if (r != rows[i].want)
            fail_msg("%s: %s", rows[i].name, r < 0 ? e.msg : "was trusted");
        if (!r) {
            assert_int_equal(submit(q, "j"), 1);
            cleanup(lease_free) struct lease *l = NULL;
            assert_int_equal(queue_lease(q, TASK_CLASS_WORKER, "w", 300000, &l, &e), 1);
        } else {
            assert_non_null(strstr(e.msg, "mismatch"));
        }
        stop(pid);
    }
    unsetenv("TRANSCODE_REDIS_PASSWORD");
}
#else
static void test_tls(void **state)
{
    (void)state;
    struct queue *q = NULL;
    int port = free_port();
    cleanup(free_ptr) char *config = xasprintf("port %d\n", port);
    pid_t pid = start("plain", NULL, config);
    wait_for(port, "PING", "PONG");
    cleanup(free_ptr) char *url = xasprintf("rediss://127.0.0.1:%d", port);
    assert_int_equal(queue_open(url, NULL, &q, &e), -ERR_CONFIG);
    assert_non_null(strstr(e.msg, "built without it"));
    stop(pid);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentinel), cmocka_unit_test(test_tls), cmocka_unit_test(test_loading),
        cmocka_unit_test(test_misconf), cmocka_unit_test(test_cluster)};
    log_init(LOG_ERROR, "test");
    if (!mkdtemp(folder))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cleanup(free_ptr) char *command = xasprintf("rm -rf %s", folder);
    return system(command) ? 1 : failed;
}
