#include "worker/session_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/process.h"
#include "common/strbuf.h"

extern char **environ;

enum {
    LOG_TAIL_MAX = 4096,   /* bytes of stderr kept for the failure record */
    LOG_LINE_MAX = 1024,   /* bytes of one line; longer ones are cut */
    QUIT_WAIT_US = 500000, /* before a session that was asked to quit is killed */
};

/* The environment that a session gets: nothing that could hold a secret. A name that ends in '*'
 * stands for all that begin so: a GPU's driver is set up by such variables. What else an operator's
 * driver needs is named in TRANSCODE_SESSION_ENV, separated by blanks. */
static const char environment[] = "LANG LC_ALL LC_CTYPE LD_LIBRARY_PATH CUDA_* NVIDIA_* "
                                  "ASAN_OPTIONS LSAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS";
enum { ENVIRONMENT_MAX = 64 }; /* variables */

struct session_process {
    int number;
    pid_t pid; /* 0 once it was waited for */
    struct channel *channel;
    int stderr_fd; /* -1 after its end */
    char line[LOG_LINE_MAX];
    size_t line_n;
    char tail[LOG_TAIL_MAX + 1];
    size_t tail_n;
    char end[64]; /* how it ended */
};

/* ---- start ---- */

static bool is_listed(const char *variable, const char *names)
{
    size_t length = strcspn(variable, "=");
    for (size_t n; *names; names += n + strspn(names + n, " ")) {
        n = strcspn(names, " ");
        bool is_prefix = n && names[n - 1] == '*';
        if (is_prefix ? length >= n - 1 && !strncmp(variable, names, n - 1)
                      : length == n && !strncmp(variable, names, n))
            return true;
    }
    return false;
}

static void make_environment(const char *env[ENVIRONMENT_MAX + 1])
{
    const char *more = getenv("TRANSCODE_SESSION_ENV");
    size_t n = 0;
    for (char **variable = environ; *variable && n < ENVIRONMENT_MAX; variable++)
        if (is_listed(*variable, environment) || (more && is_listed(*variable, more)))
            env[n++] = *variable;
    env[n] = NULL;
}

static int spawn(const struct session_process_options *options, struct session_process *p,
                 int stderr_fd, int channel_fd, struct err *e)
{
    static const char *const argv[] = {"transcode", "session", NULL};
    const struct process_fd fds[] = {
        {-1, STDIN_FILENO}, {-1, STDOUT_FILENO}, {stderr_fd, STDERR_FILENO}, {channel_fd, 3}};
    const char *env[ENVIRONMENT_MAX + 1];
    make_environment(env);
    const struct process_spawn child = {.path = options->exe,
                                        .argv = argv,
                                        .env = env,
                                        .fds = fds,
                                        .n_fds = sizeof fds / sizeof fds[0],
                                        .death_signal = SIGKILL,
                                        .is_own_group = true};
    return process_spawn(&child, &p->pid, e);
}

static int send_start(const struct session_process_options *options, struct session_process *p,
                      struct err *e)
{
    struct message_start start = {.protocol = PROTOCOL_VERSION,
                                  .number = p->number,
                                  .log_level = (int)log_level(),
                                  .device = (char *)options->device,
                                  .is_test = options->is_test,
                                  .limits = (struct limits *)options->limits};
    return message_send(p->channel, MESSAGE_START, &start, &options->scratch_fd, e);
}

int session_process_start(const struct session_process_options *options,
                          struct session_process **ret, struct err *e)
{
    cleanup(session_process_free) struct session_process *p = xcalloc(1, sizeof *p);
    p->number = options->number;
    p->stderr_fd = -1;
    int pair[2], pipe_fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set(e, ERR_RESOURCE, "session %d: socketpair: %s", p->number, strerror(errno));
    p->channel = channel_new(pair[0]);
    cleanup(close_fd) int channel_fd = pair[1];
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_set(e, ERR_RESOURCE, "session %d: pipe: %s", p->number, strerror(errno));
    p->stderr_fd = pipe_fds[0];
    cleanup(close_fd) int stderr_fd = pipe_fds[1];
    fcntl(p->stderr_fd, F_SETFL, O_NONBLOCK);
    int rc = spawn(options, p, stderr_fd, channel_fd, e);
    if (rc == 0)
        rc = send_start(options, p, e);
    if (rc == 0)
        *ret = take(p);
    return rc;
}

/* ---- what it writes to stderr ---- */

static void end_line(struct session_process *p)
{
    if (!p->line_n)
        return;
    p->line[p->line_n] = 0;
    log_debug("session %d: %s", p->number, p->line);
    log_redact(p->line);
    size_t n = strlen(p->line) + 1;
    if (p->tail_n + n > LOG_TAIL_MAX) {
        size_t drop = p->tail_n + n - LOG_TAIL_MAX;
        memmove(p->tail, p->tail + drop, p->tail_n - drop);
        p->tail_n -= drop;
    }
    memcpy(p->tail + p->tail_n, p->line, n - 1);
    p->tail[p->tail_n + n - 1] = '\n';
    p->tail_n += n;
    p->tail[p->tail_n] = 0;
    p->line_n = 0;
}

static void add_bytes(struct session_process *p, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '\n')
            end_line(p);
        else if (p->line_n < LOG_LINE_MAX - 1)
            p->line[p->line_n++] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
    }
}

static void read_stderr(struct session_process *p)
{
    char bytes[4096];
    for (int i = 0; p->stderr_fd >= 0 && i < 16; i++) { /* a flood must not hold the agent up */
        ssize_t n = read(p->stderr_fd, bytes, sizeof bytes);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            end_line(p);
            close_fd(&p->stderr_fd);
            return;
        }
        add_bytes(p, bytes, (size_t)n);
    }
}

void session_process_forget_log(struct session_process *p)
{
    p->tail_n = 0;
    p->tail[0] = 0;
}

const char *session_process_log_tail(const struct session_process *p)
{
    return p->tail;
}

/* ---- talk ---- */

void session_process_pollfds(struct session_process *p, struct pollfd ret[SESSION_POLLFDS])
{
    short out = channel_has_output(p->channel) ? POLLOUT : 0;
    ret[0] = (struct pollfd){.fd = channel_fd(p->channel), .events = POLLIN | out};
    ret[1] = (struct pollfd){.fd = p->stderr_fd, .events = POLLIN};
}

void session_process_pump(struct session_process *p, const struct pollfd fds[SESSION_POLLFDS])
{
    if (fds[1].revents)
        read_stderr(p);
    if (fds[0].revents & POLLOUT)
        channel_flush(p->channel, NULL); /* an error comes again from receive */
}

int session_process_receive(struct session_process *p, struct message *ret, struct err *e)
{
    return message_receive(p->channel, SIDE_SESSION, ret, e);
}

int session_process_send(struct session_process *p, enum message_kind kind, const void *body,
                         const int *fds, struct err *e)
{
    return message_send(p->channel, kind, body, fds, e);
}

int session_process_pid(const struct session_process *p)
{
    return p->pid;
}

/* ---- end ---- */

const char *session_process_kill(struct session_process *p)
{
    if (p->pid) {
        process_status_text(process_stop(p->pid, SIGKILL, 0), p->end);
        p->pid = 0;
        read_stderr(p);
    }
    return p->end;
}

void session_process_quit(struct session_process *p)
{
    channel_free(&p->channel); /* its end is as good as a word */
}

void session_process_free(struct session_process **p)
{
    if (!*p)
        return;
    session_process_quit(*p);
    if ((*p)->pid && process_wait((*p)->pid, QUIT_WAIT_US, NULL) == 1)
        (*p)->pid = 0;
    session_process_kill(*p);
    close_fd(&(*p)->stderr_fd);
    free(*p);
    *p = NULL;
}
