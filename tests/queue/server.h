/* A redis-server of the test's own on a Unix socket that stays the same when the server is killed
 * and started again: what embedded_redis cannot do. appendfsync always. */
#pragma once
#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "queue/queue.h"

/* The value of a call that fills the test's own `struct err e`; a failed one fails the test. */
#define ok(call)                                                         \
    ({                                                                   \
        e = (struct err){0};                                             \
        __auto_type r_ = (call);                                         \
        if (r_ < 0)                                                      \
            fail_msg("%s:%d: %s: %s", __FILE__, __LINE__, #call, e.msg); \
        r_;                                                              \
    })

struct server {
    char folder[64], socket[96], url[112];
    pid_t pid;
    redisContext *admin; /* the test's own look at the keys */
};

/* Forks the server; delay_us: it comes up that much later. The forking thread must live on. */
static inline void server_spawn(struct server *s, int64_t delay_us)
{
    if (!s->folder[0]) {
        /* In memory where that can be: what SIGKILL takes away is the same, and a sync costs less.
         */
        bool has_shm = access("/dev/shm", W_OK) == 0;
        sprintf(s->folder, "%s/transcode-test-XXXXXX", has_shm ? "/dev/shm" : "/tmp");
        assert_non_null(mkdtemp(s->folder));
        snprintf(s->socket, sizeof s->socket, "%s/redis", s->folder);
        snprintf(s->url, sizeof s->url, "unix://%s", s->socket);
    }
    s->pid = fork();
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        clock_sleep_us(delay_us);
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", s->socket, "--dir",
               s->folder, "--appendonly", "yes", "--appendfsync", "always", "--save", "",
               "--maxmemory-policy", "noeviction", "--logfile", "redis.log", (char *)NULL);
        _exit(127);
    }
}

static inline void server_connect(struct server *s)
{
    for (int i = 0; i < 5000; i++) {
        redisReply *pong = NULL;
        s->admin = redisConnectUnix(s->socket);
        if (s->admin && !s->admin->err)
            pong = redisCommand(s->admin, "PING");
        bool is_up = pong && pong->type == REDIS_REPLY_STATUS;
        if (pong)
            freeReplyObject(pong);
        if (is_up)
            return;
        redisFree(s->admin);
        s->admin = NULL;
        clock_sleep_us(2000);
    }
    fail_msg("redis-server did not start in %s", s->folder);
}

static inline void server_start(struct server *s)
{
    server_spawn(s, 0);
    server_connect(s);
}

static inline void server_kill(struct server *s)
{
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    redisFree(s->admin);
    s->admin = NULL;
}

static inline void server_remove(struct server *s)
{
    server_kill(s);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", s->folder);
    assert_int_equal(system(command), 0);
    s->folder[0] = 0;
}

/* Loads a script from a file; sha: what to call it by. */
static inline void server_load(struct server *s, const char *path, char sha[41])
{
    static char text[32768];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    redisReply *r = redisCommand(s->admin, "SCRIPT LOAD %s", text);
    if (r->type != REDIS_REPLY_STRING)
        fail_msg("%s: %s", path, r->str);
    memcpy(sha, r->str, 41);
    freeReplyObject(r);
}

/* Runs a command on the side and returns its reply as a number. */
static inline long long __attribute__((format(printf, 2, 3)))
server_do(struct server *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    redisReply *r = redisvCommand(s->admin, fmt, ap);
    va_end(ap);
    assert_non_null(r);
    if (r->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", fmt, r->str);
    long long n = r->type == REDIS_REPLY_INTEGER               ? r->integer
                  : r->type == REDIS_REPLY_STRING && r->str[0] ? atoll(r->str)
                  : r->type == REDIS_REPLY_ARRAY               ? (long long)r->elements
                                                               : 0;
    freeReplyObject(r);
    return n;
}
