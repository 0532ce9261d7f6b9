/*
 * Why a resend is safe. A connection that drops after the command was sent leaves open whether the
 * server ran it. The scripts are written so that it does not matter (a token, an op number or a
 * lease nonce makes the second run answer as the first), so the connection can treat "not sent" and
 * "not answered" alike: connect again, send again.
 */
#include "queue/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "queue/address.h"
#include "queue/tls.h"

enum {
    CONNECT_US = 2000000,
    SENTINEL_US = 500000, /* for one sentinel to be reached and to answer */
    ANSWER_US = 5000000,  /* for a reply, beyond the time a command may block */
    BACKOFF_BASE_US = 20000,
    BACKOFF_MAX_US = 1000000,
};

struct connection {
    struct address address;
    char *name;
    int64_t retry_us;
    redisContext *context; /* NULL: not connected */
    int wake_fd;           /* -1: none */
};

/* Error replies that say something about the server, not about the call. */
static const struct {
    const char *code;
    enum err_kind kind;
} error_codes[] = {
    {"LOADING", ERR_TRANSIENT},    {"READONLY", ERR_TRANSIENT}, {"CLUSTERDOWN", ERR_TRANSIENT},
    {"MISCONF", ERR_TRANSIENT},    {"OOM", ERR_TRANSIENT},      {"MASTERDOWN", ERR_TRANSIENT},
    {"BUSY", ERR_TRANSIENT},       {"TRYAGAIN", ERR_TRANSIENT}, {"UNBLOCKED", ERR_TRANSIENT},
    {"NOREPLICAS", ERR_TRANSIENT}, {"ERR max", ERR_TRANSIENT}, /* ... number of clients reached */
    {"NOAUTH", ERR_CONFIG},        {"WRONGPASS", ERR_CONFIG},   {"NOPERM", ERR_CONFIG},
};

/* A code stands first, or behind a dash where Redis 6 quotes an error from inside a script. */
static bool has_code(const char *text, const char *code)
{
    size_t n = strlen(code);
    for (const char *p = text; (p = strstr(p, code)); p += n)
        if ((p == text || p[-1] == '-') && (p[n] == ' ' || !p[n]))
            return true;
    return false;
}

static enum err_kind classify(const char *text)
{
    for (size_t i = 0; i < sizeof error_codes / sizeof error_codes[0]; i++)
        if (has_code(text, error_codes[i].code))
            return error_codes[i].kind;
    return ERR_BUG;
}

void reply_free(redisReply **reply)
{
    if (*reply)
        freeReplyObject(*reply);
    *reply = NULL;
}

int connection_new(const char *url, int64_t retry_us, int wake_fd, struct connection **ret,
                   struct err *e)
{
    struct address address;
    int r = address_parse(url, &address, e);
    if (!r)
        r = address_add_password(&address, e);
    if (r < 0) {
        address_free(&address);
        return r;
    }
    struct connection *c = xcalloc(1, sizeof *c);
    c->address = address;
    c->retry_us = retry_us;
    c->wake_fd = wake_fd > 0 ? wake_fd : -1;
    c->name = xstrdup(url);
    log_redact(c->name);
    *ret = c;
    return 0;
}

static void disconnect(struct connection *c)
{
    if (c->context)
        redisFree(c->context);
    c->context = NULL;
}

void connection_free(struct connection **c)
{
    if (!*c)
        return;
    disconnect(*c);
    address_free(&(*c)->address);
    free((*c)->name);
    free(*c);
    *c = NULL;
}

const char *connection_name(const struct connection *c)
{
    return c->name;
}

static struct timeval timeval_of(int64_t us)
{
    return (struct timeval){us / 1000000, us % 1000000};
}

/* hiredis writes without MSG_NOSIGNAL: a connection closed by the server must not end the process.
 * Blocked around the write only, so that the program's own handling of SIGPIPE stays as it is. */
static void sigpipe_block(sigset_t *ret_before)
{
    sigset_t pipe_only;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, ret_before);
}

static void sigpipe_restore(const sigset_t *before)
{
    if (sigismember(before, SIGPIPE))
        return;
    int saved_errno = errno;
    sigset_t pipe_only;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigtimedwait(&pipe_only, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, before, NULL);
    errno = saved_errno;
}

static int send_request(struct connection *c, const struct request *head,
                        const struct request *tail)
{
    char count[32];
    int n = snprintf(count, sizeof count, "*%zu\r\n", head->n + (tail ? tail->n : 0));
    sigset_t before;
    sigpipe_block(&before);
    int is_sent = 0;
    int r = redisAppendFormattedCommand(c->context, count, (size_t)n);
    if (!r)
        r = redisAppendFormattedCommand(c->context, head->wire.s, head->wire.len);
    if (!r && tail && tail->n)
        r = redisAppendFormattedCommand(c->context, tail->wire.s, tail->wire.len);
    while (!r && !is_sent)
        r = redisBufferWrite(c->context, &is_sent);
    sigpipe_restore(&before);
    return r;
}

/* Waits while the command may block in the server. True: the caller is to wait no longer. */
static bool is_woken(const struct connection *c, int64_t block_us)
{
    struct pollfd fds[] = {{.fd = c->context->fd, .events = POLLIN},
                           {.fd = c->wake_fd, .events = POLLIN}};
    int64_t deadline = clock_mono_us() + block_us, left;
    while ((left = deadline - clock_mono_us()) > 0 && poll(fds, 2, (int)(left / 1000) + 1) < 0)
        ; /* a signal */
    return fds[1].revents && !fds[0].revents;
}

/* One exchange on the open connection; drops it when it fails, and when it is given up (*ret NULL):
 * the reply would come to the next one. */
static int exchange(struct connection *c, const struct request *head, const struct request *tail,
                    int64_t block_us, redisReply **ret, struct err *e)
{
    void *reply = NULL;
    int r = send_request(c, head, tail);
    if (!r && block_us > 0 && is_woken(c, block_us)) {
        disconnect(c);
        return 0;
    }
    if (!r)
        r = redisGetReply(c->context, &reply);
    if (!r && reply) {
        *ret = reply;
        return 0;
    }
    bool is_timeout = c->context->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK);
    r = err_set(e, ERR_TRANSIENT, "%s", is_timeout ? "no answer in time" : c->context->errstr);
    disconnect(c);
    return r;
}

/* Turns an error reply into an error; NOSCRIPT is the caller's to handle. */
static int examine(struct connection *c, redisReply **reply, struct err *e)
{
    if (!*reply || (*reply)->type != REDIS_REPLY_ERROR || has_code((*reply)->str, "NOSCRIPT"))
        return 0;
    enum err_kind kind = classify((*reply)->str);
    int r = err_set(e, kind, "%s", (*reply)->str);
    reply_free(reply);
    if (kind == ERR_TRANSIENT)
        disconnect(c); /* the name may lead to another server by now */
    return r;
}

/* AUTH and SELECT: what they refuse is wrong in the URL, unless the server is only starting. */
static int greet(struct connection *c, const struct request *command, struct err *e)
{
    cleanup(reply_free) redisReply *reply = NULL;
    int r = exchange(c, command, NULL, 0, &reply, e);
    if (!r)
        r = examine(c, &reply, e);
    return r == -ERR_BUG ? err_set(e, ERR_CONFIG, "%s: check the queue's URL", e->msg) : r;
}

static int authenticate(struct connection *c, struct err *e)
{
    const struct address *a = &c->address;
    int r = 0;
    if (a->password) {
        cleanup(request_free) struct request auth = {0};
        request_string(&auth, "AUTH");
        if (a->user)
            request_string(&auth, a->user);
        request_string(&auth, a->password);
        r = greet(c, &auth, e);
    }
    if (!r && a->db) {
        cleanup(request_free) struct request select = {0};
        request_string(&select, "SELECT");
        request_int(&select, a->db);
        r = greet(c, &select, e);
    }
    return r;
}

/* Opens c->context to a socket or host; nothing is said on it yet. */
static int dial(struct connection *c, const struct address_host *to, int64_t limit_us,
                struct err *e)
{
    struct timeval limit = timeval_of(limit_us);
    c->context = to ? redisConnectWithTimeout(to->host, to->port, limit)
                    : redisConnectUnixWithTimeout(c->address.path, limit);
    if (!c->context || c->context->err) {
        int r = err_set(e, ERR_TRANSIENT, "%s", c->context ? c->context->errstr : "out of memory");
        disconnect(c);
        return r;
    }
    fcntl(c->context->fd, F_SETFD, FD_CLOEXEC); /* never a session's */
    if (to)
        redisEnableKeepAlive(c->context);
    redisSetTimeout(c->context, timeval_of(limit_us));
    return 0;
}

/* Asks one sentinel for the master. */
static int ask_sentinel(struct connection *c, const struct address_host *sentinel,
                        struct address_host *ret, struct err *e)
{
    cleanup(request_free) struct request ask = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    int r = dial(c, sentinel, SENTINEL_US, e);
    if (r < 0)
        return r;
    request_strings(&ask, "SENTINEL", "get-master-addr-by-name", c->address.service, NULL);
    r = exchange(c, &ask, NULL, 0, &reply, e);
    disconnect(c);
    if (r < 0)
        return r;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
        return err_set(e, ERR_TRANSIENT, "sentinel %s:%d knows no master \"%s\"%s%s",
                       sentinel->host, sentinel->port, c->address.service,
                       reply->type == REDIS_REPLY_ERROR ? ": " : "",
                       reply->type == REDIS_REPLY_ERROR ? reply->str : "");
    ret->host = xstrdup(reply->element[0]->str);
    ret->port = atoi(reply->element[1]->str);
    return 0;
}

/* A sentinel may not have heard yet that a master is one no longer. */
static int expect_master(struct connection *c, struct err *e)
{
    cleanup(request_free) struct request ask = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    request_string(&ask, "ROLE");
    int r = exchange(c, &ask, NULL, 0, &reply, e);
    if (!r)
        r = examine(c, &reply, e);
    if (r < 0)
        return r;
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements && reply->element[0]->str &&
        !strcmp(reply->element[0]->str, "master"))
        return 0;
    return err_set(e, ERR_TRANSIENT, "the master that the sentinels name is none (yet)");
}

/* Opens a connection to whoever is the master now; *ret_host: its name, for TLS; caller frees. */
static int find_server(struct connection *c, char **ret_host, struct err *e)
{
    const struct address *a = &c->address;
    int r = -1;
    if (!a->n_sentinels) {
        *ret_host = xstrdup(a->host.host);
        return dial(c, a->path ? NULL : &a->host, CONNECT_US, e);
    }
    struct address_host master = {0};
    for (size_t i = 0; i < a->n_sentinels && r < 0; i++)
        r = ask_sentinel(c, &a->sentinels[i], &master, e);
    if (!r)
        r = dial(c, &master, CONNECT_US, e);
    *ret_host = master.host;
    return r;
}

static int connect_once(struct connection *c, struct err *e)
{
    cleanup(free_ptr) char *host = NULL;
    int r = find_server(c, &host, e);
    if (!r && c->address.is_tls)
        r = tls_start(c->context, host, e);
    if (!r)
        r = authenticate(c, e);
    if (!r && c->address.n_sentinels)
        r = expect_master(c, e);
    if (r < 0)
        disconnect(c);
    else
        redisSetTimeout(c->context, timeval_of(ANSWER_US));
    return r;
}

static int call_once(struct connection *c, const struct request *head, const struct request *tail,
                     int64_t block_us, redisReply **ret, struct err *e)
{
    if (!c->context) {
        int r = connect_once(c, e);
        if (r < 0)
            return r;
    }
    int r = exchange(c, head, tail, block_us, ret, e);
    return r < 0 ? r : examine(c, ret, e);
}

int connection_call(struct connection *c, const struct request *head, const struct request *tail,
                    int64_t block_us, redisReply **ret, struct err *e)
{
    struct err why = {0};
    int64_t failed_at = 0;
    *ret = NULL;
    for (unsigned attempt = 0;; attempt++) {
        int r = call_once(c, head, tail, block_us, ret, &why);
        if (!r)
            return 0;
        if (r != -ERR_TRANSIENT)
            return err_set(e, why.kind, "queue %s: %s", c->name, why.msg);
        int64_t now = clock_mono_us();
        if (!failed_at)
            failed_at = now;
        int64_t left = failed_at + c->retry_us - now;
        if (left <= 0)
            break;
        log_debug("queue %s: %s: trying again", c->name, why.msg);
        int64_t pause = clock_backoff_us(attempt, BACKOFF_BASE_US, BACKOFF_MAX_US);
        clock_sleep_us(pause < left ? pause : left);
    }
    return err_set(e, ERR_TRANSIENT,
                   "queue %s: %s (tried for %.1f s): check that this Redis runs and takes writes, "
                   "then try again",
                   c->name, why.msg, (double)c->retry_us / 1e6);
}

/* The value of a line "name:value" of INFO, up to its end; NULL when there is no such line. */
static char *info_field(const char *info, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = info; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, name, n) && line[n] == ':') {
            const char *value = line + n + 1;
            return xasprintf("%.*s", (int)strcspn(value, "\r\n"), value);
        }
    }
    return NULL;
}

/* Whether snapshots are on; also where the server does not say (CONFIG is often not permitted, and
 * such services keep data by other means). */
static bool has_snapshots(struct connection *c)
{
    cleanup(request_free) struct request get = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    request_strings(&get, "CONFIG", "GET", "save", NULL);
    struct err ignored = {0};
    if (call_once(c, &get, NULL, 0, &reply, &ignored) < 0)
        return true;
    return reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || reply->element[1]->len > 0;
}

static void warn_volatile(struct connection *c, const char *info)
{
    static atomic_flag is_warned = ATOMIC_FLAG_INIT;
    cleanup(free_ptr) char *aof = info_field(info, "aof_enabled");
    if (aof && !strcmp(aof, "0") && !has_snapshots(c) && !atomic_flag_test_and_set(&is_warned))
        log_warning("queue %s: this Redis keeps nothing on disk: jobs are lost when it ends; set "
                    "appendonly yes",
                    c->name);
}

int connection_check(struct connection *c, struct err *e)
{
    cleanup(request_free) struct request command = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    request_string(&command, "INFO");
    int r = connection_call(c, &command, NULL, 0, &reply, e);
    if (r < 0)
        return r;
    cleanup(free_ptr) char *version = NULL;
    cleanup(free_ptr) char *policy = NULL;
    const char *info = reply->str ? reply->str : "";
    version = info_field(info, "redis_version"); /* Valkey gives the Redis it is compatible with */
    policy = info_field(info, "maxmemory_policy");
    int major = 0, minor = 0;
    if (!version || sscanf(version, "%d.%d", &major, &minor) != 2)
        return err_set(e, ERR_CONFIG, "queue %s: INFO tells no redis_version: is it a Redis?",
                       c->name);
    if (major < 6 || (major == 6 && minor < 2))
        return err_set(e, ERR_CONFIG, "queue %s: Redis %s is too old: use 6.2 or later, or Valkey",
                       c->name, version);
    if (policy && strcmp(policy, "noeviction"))
        return err_set(e, ERR_CONFIG,
                       "queue %s: maxmemory-policy is %s, which may evict jobs: set it to "
                       "noeviction",
                       c->name, policy);
    warn_volatile(c, info);
    return 0;
}
