/*
 * Starting other programs. Between fork and exec only async-signal-safe calls are made, since the
 * caller may have threads. The child's descriptors are first copied above all numbers in use, so
 * that no dup2 can hit a source that is still needed; a failure travels back through a pipe that a
 * successful exec closes.
 */
#include "common/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/process_inside.h"
#include "common/strbuf.h"

enum { FDS_MAX = 16, ROOM_BYTES = 128 };

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

struct child { /* all that it needs, made before the fork */
    const struct process_spawn *spawn;
    const char *path;
    char *const *env;
    pid_t parent;
    int error_fd;
};

static void reset_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    for (int sig = 1; sig < NSIG; sig++)
        sigaction(sig, &action, NULL); /* fails for those that cannot be set; so be it */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool is_listed(const struct process_spawn *s, int fd)
{
    for (size_t i = 0; i < s->n_fds; i++)
        if (s->fds[i].child == fd)
            return true;
    return false;
}

static void close_from(unsigned first)
{
    if (syscall(SYS_close_range, first, UINT_MAX, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    struct rlimit limit; /* a kernel before 5.11 */
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > 1 << 20)
        limit.rlim_cur = 1 << 20;
    for (unsigned fd = first; fd < limit.rlim_cur; fd++)
        fcntl((int)fd, F_SETFD, FD_CLOEXEC);
}

static int place_fds(struct child *c)
{
    const struct process_spawn *s = c->spawn;
    int copies[FDS_MAX], above = 3;
    for (size_t i = 0; i < s->n_fds; i++)
        if (s->fds[i].child >= above)
            above = s->fds[i].child + 1;
    if ((c->error_fd = fcntl(c->error_fd, F_DUPFD_CLOEXEC, above)) < 0)
        return -1;
    for (size_t i = 0; i < s->n_fds; i++) {
        int fd = s->fds[i].parent >= 0 ? s->fds[i].parent : open("/dev/null", O_RDWR | O_CLOEXEC);
        if ((copies[i] = fcntl(fd, F_DUPFD_CLOEXEC, above)) < 0)
            return -1;
    }
    for (size_t i = 0; i < s->n_fds; i++)
        if (dup2(copies[i], s->fds[i].child) < 0)
            return -1;
    for (int fd = 3; fd < above; fd++)
        if (!is_listed(s, fd))
            fcntl(fd, F_SETFD, FD_CLOEXEC);
    close_from((unsigned)above);
    return 0;
}

static void run_child(struct child *c)
{
    reset_signals();
    if (c->spawn->is_own_group)
        setpgid(0, 0);
    if (c->spawn->death_signal) {
        prctl(PR_SET_PDEATHSIG, c->spawn->death_signal);
        if (getppid() != c->parent)
            _exit(127); /* it died before that */
    }
    if (place_fds(c) == 0)
        execvpe(c->path, (char *const *)c->spawn->argv, c->env);
    ssize_t ignored = write(c->error_fd, &errno, sizeof errno);
    (void)ignored;
    _exit(127);
}

/* The environment of the child, with room for its title when it is this program. */
static char *const *make_env(const struct process_spawn *s, char ***ret_owned, char **ret_room)
{
    if (!s->env)
        return environ;
    if (s->path)
        return (char *const *)s->env;
    size_t n = 0;
    while (s->env[n])
        n++;
    *ret_room = xasprintf(PROCESS_TITLE_ROOM "%*s", ROOM_BYTES, "");
    *ret_owned = xcalloc(n + 2, sizeof **ret_owned);
    memcpy(*ret_owned, s->env, n * sizeof **ret_owned);
    (*ret_owned)[n] = *ret_room;
    return *ret_owned;
}

/* Signals are held back over the fork, so that no handler of this process runs in the child. */
static pid_t fork_child(struct child *c)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        run_child(c);
    int saved = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return pid;
}

static int exec_errno(int fd)
{
    int code = 0;
    ssize_t n;
    while ((n = read(fd, &code, sizeof code)) < 0 && errno == EINTR)
        ;
    return n == sizeof code ? code : 0;
}

int process_spawn(const struct process_spawn *spawn, pid_t *ret_pid, struct err *e)
{
    cleanup(free_ptr) char **env = NULL;
    cleanup(free_ptr) char *room = NULL;
    int ends[2];
    if (spawn->n_fds > FDS_MAX)
        return err_set(e, ERR_BUG, "%s: %zu descriptors to pass on, at most %d can be",
                       spawn->argv[0], spawn->n_fds, FDS_MAX);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(e, ERR_RESOURCE, "%s: cannot be started: pipe: %s", spawn->argv[0],
                       strerror(errno));
    cleanup(close_fd) int from_child = ends[0], to_parent = ends[1];
    struct child child = {.spawn = spawn,
                          .path = spawn->path ? spawn->path : "/proc/self/exe",
                          .env = make_env(spawn, &env, &room),
                          .parent = getpid(),
                          .error_fd = to_parent};
    pid_t pid = fork_child(&child);
    if (pid < 0)
        return err_set(e, ERR_RESOURCE, "%s: cannot be started: fork: %s", spawn->argv[0],
                       strerror(errno));
    close_fd(&to_parent);
    int code = exec_errno(from_child);
    if (!code) {
        *ret_pid = pid;
        return 0;
    }
    process_wait(pid, -1, NULL);
    bool is_missing = code == ENOENT || code == EACCES || code == ENOEXEC || code == ENOTDIR;
    return err_set(e, is_missing ? ERR_CONFIG : ERR_RESOURCE, "%s: cannot be started: %s",
                   child.path, strerror(code));
}

/* Sleeps until the process ends, or for so long; less where the kernel (before 5.3) or a sandbox
 * has no descriptors of processes, so that the caller looks often. */
static void sleep_with(int pid_fd, int64_t us)
{
    enum { LOOK_US = 5000 };
    if (pid_fd < 0)
        clock_sleep_us(us < LOOK_US ? us : LOOK_US);
    else
        poll(&(struct pollfd){.fd = pid_fd, .events = POLLIN}, 1, (int)(us / 1000) + 1);
}

int process_wait(pid_t pid, int64_t timeout_us, int *ret_status)
{
    int64_t start = clock_mono_us();
    cleanup(close_fd) int pid_fd = -1;
    for (;;) {
        int status = 0;
        pid_t r = waitpid(pid, &status, timeout_us < 0 ? 0 : WNOHANG);
        if (r == pid || (r < 0 && errno != EINTR)) { /* ECHILD: somebody else has reaped it */
            if (ret_status)
                *ret_status = r == pid ? status : 127 << 8;
            return 1;
        }
        if (timeout_us < 0)
            continue;
        int64_t left = timeout_us - (clock_mono_us() - start);
        if (left <= 0)
            return 0;
        if (pid_fd < 0)
            pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
        sleep_with(pid_fd, left);
    }
}

int process_stop(pid_t pid, int sig, int64_t grace_us)
{
    int status;
    kill(pid, sig);
    if (process_wait(pid, grace_us < 0 ? 0 : grace_us, &status))
        return status;
    kill(pid, SIGKILL);
    process_wait(pid, -1, &status);
    return status;
}

void process_status_text(int status, char ret[64])
{
    if (WIFEXITED(status)) {
        snprintf(ret, 64, "exit code %d", WEXITSTATUS(status));
        return;
    }
    const char *text = sigdescr_np(WTERMSIG(status));
    snprintf(ret, 64, "killed by signal %d (%s)", WTERMSIG(status), text ? text : "unknown");
}
