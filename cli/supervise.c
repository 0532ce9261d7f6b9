#include "cli/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/process.h"
#include "common/strbuf.h"

enum {
    RESTARTS_MAX = 3, /* of one child in one run */
    LINE_BYTES = 4096,
    POLL_US = 10 * 1000,
};

struct child {
    char **argv; /* argv[0]: the verb */
    pid_t pid;   /* 0: not running */
    int log_fd;  /* its stderr; non-blocking */
    int restarts;
    char line[LINE_BYTES];
    size_t len;
    char *last_words; /* the error with which it ended */
};

struct supervisor {
    struct child **children;
    size_t n;
    void (*say)(void *arg, const char *line);
    void *arg;
};

struct supervisor *supervisor_new(void (*say)(void *arg, const char *line), void *arg)
{
    struct supervisor *s = xcalloc(1, sizeof *s);
    s->say = say;
    s->arg = arg;
    return s;
}

static int spawn(struct child *c, struct err *e)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(e, ERR_RESOURCE, "%s: pipe: %s", c->argv[1], strerror(errno));
    struct process_fd fds[] = {{-1, STDIN_FILENO}, {-1, STDOUT_FILENO}, {ends[1], STDERR_FILENO}};
    struct process_spawn child = {
        .argv = (const char *const *)c->argv,
        .fds = fds,
        .n_fds = sizeof fds / sizeof fds[0],
        .death_signal = SIGTERM,
        .is_own_group = true,
    };
    int r = process_spawn(&child, &c->pid, e);
    close(ends[1]);
    if (r < 0) {
        c->pid = 0;
        close(ends[0]);
        return err_prefix(e, "%s", c->argv[1]);
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    c->log_fd = ends[0];
    return 0;
}

int supervisor_start(struct supervisor *s, const char *const *argv, struct err *e)
{
    struct child *c = xcalloc(1, sizeof *c);
    size_t n = 0;
    while (argv[n])
        n++;
    c->argv = xcalloc(n + 2, sizeof *c->argv);
    c->argv[0] = xstrdup("transcode");
    for (size_t i = 0; i < n; i++)
        c->argv[i + 1] = xstrdup(argv[i]);
    c->log_fd = -1;
    s->children = xrealloc_array(s->children, s->n + 1, sizeof *s->children);
    s->children[s->n++] = c;
    return spawn(c, e);
}

static void say_last_words(struct supervisor *s, struct child *c)
{
    if (c->last_words)
        s->say(s->arg, c->last_words);
    free_ptr(&c->last_words);
}

/* An error that ends a child is "transcode: VERB: ..." (cli/main.c): kept, to be told once. */
static void pass_line(struct supervisor *s, struct child *c)
{
    cleanup(free_ptr) char *prefix = xasprintf("%s: %s: ", c->argv[0], c->argv[1]);
    c->line[c->len] = 0;
    if (!strncmp(c->line, prefix, strlen(prefix))) {
        say_last_words(s, c);
        c->last_words = xstrdup(c->line + strlen(prefix));
    } else if (c->len) {
        s->say(s->arg, c->line);
    }
    c->len = 0;
}

static void pass_lines(struct supervisor *s, struct child *c)
{
    char bytes[LINE_BYTES];
    ssize_t n;
    while (c->log_fd >= 0 && (n = read(c->log_fd, bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < n; i++)
            if (bytes[i] == '\n' || c->len + 1 == sizeof c->line)
                pass_line(s, c);
            else
                c->line[c->len++] = bytes[i];
}

/* What is left of a dead child. */
static void close_log(struct supervisor *s, struct child *c)
{
    pass_lines(s, c);
    pass_line(s, c);
    close_fd(&c->log_fd);
}

static bool has_ended(struct child *c, int64_t wait_us, int *ret_status)
{
    if (!c->pid || !process_wait(c->pid, wait_us, ret_status))
        return false;
    c->pid = 0;
    return true;
}

static char *describe_end(const struct child *c, int status)
{
    char text[64];
    process_status_text(status, text);
    return xasprintf("the %s ended: %s", c->argv[1], text);
}

/* Exit codes after which the same command would end the same way. */
static enum err_kind kind_of_end(int status)
{
    static const enum err_kind kinds[] = {[2] = ERR_CONFIG, [3] = ERR_INPUT, [5] = ERR_DEVICE};
    size_t code = WIFEXITED(status) ? (size_t)WEXITSTATUS(status) : 0;
    return code < sizeof kinds / sizeof kinds[0] ? kinds[code] : ERR_NONE;
}

static bool is_temporary(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == err_exit_code(ERR_RESOURCE);
}

static int judge(struct supervisor *s, struct child *c, int status, struct err *e)
{
    cleanup(free_ptr) char *end = describe_end(c, status);
    enum err_kind kind = kind_of_end(status);
    if (kind) {
        err_set(e, kind, "%s", c->last_words ? c->last_words : end);
        free_ptr(&c->last_words);
        return -(int)kind;
    }
    say_last_words(s, c);
    if (c->restarts >= RESTARTS_MAX)
        return err_set(e, is_temporary(status) ? ERR_RESOURCE : ERR_BUG,
                       "%s, the %d. time; giving up", end, c->restarts + 1);
    cleanup(free_ptr) char *line = xasprintf("%s; starting it again", end);
    s->say(s->arg, line);
    return 1;
}

int supervisor_check(struct supervisor *s, struct err *e)
{
    int r = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct child *c = s->children[i];
        int status;
        pass_lines(s, c);
        if (!has_ended(c, 0, &status))
            continue;
        close_log(s, c);
        int verdict = judge(s, c, status, e);
        if (verdict < 0)
            return verdict;
        r = 1;
    }
    return r;
}

int supervisor_restart(struct supervisor *s, struct err *e)
{
    int r = 0;
    for (size_t i = 0; i < s->n && r >= 0; i++)
        if (!s->children[i]->pid) {
            s->children[i]->restarts++;
            r = spawn(s->children[i], e);
        }
    return r;
}

static void stop(struct supervisor *s, struct child *c, int64_t patience_us,
                 bool (*is_urgent)(void))
{
    int64_t deadline = clock_mono_us() + patience_us;
    int status;
    if (c->pid)
        kill(c->pid, SIGTERM);
    while (c->pid && !has_ended(c, POLL_US, &status)) {
        pass_lines(s, c);
        if (clock_mono_us() >= deadline || (is_urgent && is_urgent()))
            kill(-c->pid, SIGKILL);
    }
    close_log(s, c);
    say_last_words(s, c);
}

void supervisor_stop(struct supervisor *s, int64_t each_us, bool (*is_urgent)(void))
{
    for (size_t i = s->n; i-- > 0;)
        stop(s, s->children[i], each_us, is_urgent);
}

void supervisor_free(struct supervisor **s)
{
    if (!*s)
        return;
    supervisor_stop(*s, 0, NULL);
    for (size_t i = 0; i < (*s)->n; i++) {
        struct child *c = (*s)->children[i];
        for (size_t k = 0; c->argv[k]; k++)
            free(c->argv[k]);
        free(c->argv);
        free(c);
    }
    free((*s)->children);
    free(*s);
    *s = NULL;
}
