#include "queue/embedded.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strbuf.h"
#include "queue/connection.h"

enum {
    SOCKET_PATH_MAX = 107, /* sun_path without its zero */
    START_US = 60000000,   /* a data set of an earlier run may have to be loaded */
    STOP_US = 5000000,
    POLL_US = 5000,
};

struct embedded_redis {
    pid_t pid; /* 0: not running */
    char *folder, *socket, *url, *log;
};

static int make_folder(struct embedded_redis *r, struct err *e)
{
    const char *tmp = getenv("TMPDIR");
    if (!tmp || tmp[0] != '/' || strlen(tmp) + sizeof "/transcode-XXXXXX/redis" > SOCKET_PATH_MAX)
        tmp = "/tmp";
    char *folder = xasprintf("%s/transcode-XXXXXX", tmp);
    if (!mkdtemp(folder)) {
        free(folder);
        return err_set(e, ERR_RESOURCE, "redis-server: no folder for its socket in %s: %s", tmp,
                       strerror(errno));
    }
    r->folder = folder;
    r->socket = xasprintf("%s/redis", folder);
    r->url = xasprintf("unix://%s", r->socket);
    return 0;
}

/* In the child: becomes the server, or writes errno to `report` (close-on-exec). */
static void exec_server(const struct embedded_redis *r, const char *dir, pid_t parent, int report)
{
    static const char *const programs[] = {"redis-server", "valkey-server", NULL};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1); /* it died before the line above */
    int out = open(r->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int in = open("/dev/null", O_RDONLY);
    if (out >= 0 && in >= 0) {
        dup2(in, 0);
        dup2(out, 1);
        dup2(out, 2);
    }
    for (int i = 0; programs[i]; i++)
        execlp(programs[i], programs[i], "--port", "0", "--unixsocket", r->socket,
               "--unixsocketperm", "700", "--dir", dir, "--appendonly", "yes", "--appendfsync",
               "everysec", "--save", "", "--maxmemory-policy", "noeviction", "--daemonize", "no",
               "--loglevel", "notice", (char *)NULL);
    int why = errno;
    if (write(report, &why, sizeof why) < 0)
        _exit(1);
    _exit(127);
}

static int spawn(struct embedded_redis *r, const char *dir, struct err *e)
{
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC))
        return err_set(e, ERR_RESOURCE, "redis-server: %s", strerror(errno));
    pid_t parent = getpid();
    r->pid = fork();
    if (r->pid == 0)
        exec_server(r, dir, parent, pipes[1]);
    close(pipes[1]);
    cleanup(close_fd) int report = pipes[0];
    if (r->pid < 0) {
        r->pid = 0;
        return err_set(e, ERR_RESOURCE, "redis-server cannot be started: %s", strerror(errno));
    }
    int why = 0;
    if (read(report, &why, sizeof why) != sizeof why)
        return 0; /* closed by exec */
    waitpid(r->pid, NULL, 0);
    r->pid = 0;
    if (why == ENOENT)
        return err_set(e, ERR_CONFIG,
                       "redis-server is not on PATH: apt-get install redis-server, or name a Redis "
                       "with --redis");
    return err_set(e, ERR_CONFIG, "redis-server cannot be started: %s", strerror(why));
}

/* 1 ready, 0 not yet. */
static int is_ready(const struct embedded_redis *r)
{
    redisContext *c = redisConnectUnixWithTimeout(r->socket, (struct timeval){1, 0});
    redisReply *reply = NULL;
    if (c && !c->err) {
        redisSetTimeout(c, (struct timeval){1, 0});
        reply = redisCommand(c, "PING");
    }
    int is = reply && reply->type == REDIS_REPLY_STATUS;
    if (reply)
        freeReplyObject(reply);
    if (c)
        redisFree(c);
    return is;
}

static int wait_ready(struct embedded_redis *r, struct err *e)
{
    int64_t give_up = clock_mono_us() + START_US;
    while (!is_ready(r)) {
        int status;
        if (waitpid(r->pid, &status, WNOHANG) == r->pid) {
            r->pid = 0;
            return err_set(e, ERR_CONFIG, "redis-server ended while it started: see %s", r->log);
        }
        if (clock_mono_us() > give_up)
            return err_set(e, ERR_TRANSIENT, "redis-server is not ready after %d s: see %s",
                           START_US / 1000000, r->log);
        clock_sleep_us(POLL_US);
    }
    return 0;
}

int embedded_redis_start(const char *dir, struct embedded_redis **ret, struct err *e)
{
    cleanup(embedded_redis_stop) struct embedded_redis *r = xcalloc(1, sizeof *r);
    r->log = xasprintf("%s/redis.log", dir);
    int rc = make_folder(r, e);
    if (!rc)
        rc = spawn(r, dir, e);
    if (!rc)
        rc = wait_ready(r, e);
    if (!rc)
        *ret = take(r);
    return rc;
}

const char *embedded_redis_url(const struct embedded_redis *r)
{
    return r->url;
}

int embedded_redis_pid(const struct embedded_redis *r)
{
    return r->pid;
}

/* Told by a command it ends at once; of a signal it hears with its next timer. */
static void end_process(pid_t pid, const char *socket)
{
    redisContext *c = redisConnectUnixWithTimeout(socket, (struct timeval){1, 0});
    if (c && !c->err) {
        redisSetTimeout(c, (struct timeval){1, 0});
        redisReply *refused = redisCommand(c, "SHUTDOWN");
        reply_free(&refused);
    }
    if (c)
        redisFree(c);
    kill(pid, SIGTERM);
    for (int64_t give_up = clock_mono_us() + STOP_US; clock_mono_us() < give_up;) {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            return;
        clock_sleep_us(POLL_US);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

void embedded_redis_stop(struct embedded_redis **redis)
{
    struct embedded_redis *r = *redis;
    if (!r)
        return;
    if (r->pid > 0)
        end_process(r->pid, r->socket);
    if (r->socket)
        unlink(r->socket);
    if (r->folder)
        rmdir(r->folder);
    free(r->folder);
    free(r->socket);
    free(r->url);
    free(r->log);
    free(r);
    *redis = NULL;
}
