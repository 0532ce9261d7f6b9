#include "worker/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/process.h"
#include "common/strbuf.h"
#include "pipelines/media/avlog.h"
#include "worker/inspect_inside.h"

enum {
    OUTPUT_MAX = 4 << 20, /* bytes of one process, dozens of records */
    KILL_WAIT_US = 2000000,
};

/* How many times faster than the CPU a GPU must be to be believed. */
static const double TIMES_CPU_MIN = 1.2;

/* ---- the child's side ---- */

void inspect_step(const struct bind_struct *type, void *record, char **step_of_record,
                  const char *step)
{
    free(*step_of_record);
    *step_of_record = xstrdup(step);
    cleanup(free_ptr) char *line = bind_dump(type, record);
    printf("%s\n", line);
    fflush(stdout);
}

void inspect_problem(char ***problems, size_t *n, const char *fmt, ...)
{
    struct strbuf b = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vprintf(&b, fmt, ap);
    va_end(ap);
    *problems = xrealloc_array(*problems, *n + 1, sizeof **problems);
    (*problems)[(*n)++] = strbuf_take(&b);
}

void inspect_main(const char *part, int64_t speed_us)
{
    avlog_init();
    if (!strcmp(part, "system"))
        inspect_the_system();
    else
        inspect_the_device(part, speed_us);
    _exit(0);
}

/* ---- the parent's side ---- */

struct child {
    pid_t pid;
    int fd; /* its stdout */
    struct strbuf out;
};

static int start(const char *part, const struct inspect_options *o, struct child *c, struct err *e)
{
    char speed[32];
    snprintf(speed, sizeof speed, "%.3f", (double)o->speed_us / 1e6);
    const char *const argv[] = {"transcode", "inspect", part, "--speed", speed, NULL};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(e, ERR_RESOURCE, "inspect %s: pipe: %s", part, strerror(errno));
    cleanup(close_fd) int child_end = ends[1];
    c->fd = ends[0];
    const struct process_fd fds[] = {{-1, 0}, {child_end, 1}, {-1, 2}};
    const struct process_spawn spawn = {
        .argv = argv, .fds = fds, .n_fds = 3, .death_signal = SIGKILL, .is_own_group = true};
    return process_spawn(&spawn, &c->pid, e);
}

/* Until it closes its stdout. false: the time is over, or it says too much. */
static bool read_all(struct child *c, int64_t timeout_us)
{
    int64_t end_us = clock_mono_us() + timeout_us;
    char bytes[4096];
    for (;;) {
        int64_t left_us = end_us - clock_mono_us();
        struct pollfd p = {.fd = c->fd, .events = POLLIN};
        if (left_us <= 0 || c->out.len > OUTPUT_MAX)
            return false;
        if (poll(&p, 1, (int)(left_us / 1000) + 1) <= 0)
            continue;
        ssize_t n = read(c->fd, bytes, sizeof bytes);
        if (n <= 0)
            return true;
        strbuf_add(&c->out, bytes, (size_t)n);
    }
}

/* How it ended, unless well; the caller frees. */
static char *end(struct child *c, bool is_in_time, int64_t timeout_us)
{
    char how[64];
    int status = 0;
    if (is_in_time && process_wait(c->pid, KILL_WAIT_US, &status)) {
        process_status_text(status, how);
        return status ? xstrdup(how) : NULL;
    }
    kill(-c->pid, SIGKILL);
    if (process_wait(c->pid, KILL_WAIT_US, NULL))
        return xasprintf("no answer within %.0f s", (double)timeout_us / 1e6);
    return xasprintf("no answer within %.0f s, and it cannot be killed: the driver is stuck in the "
                     "kernel, which takes a reboot",
                     (double)timeout_us / 1e6);
}

/* The last line that is whole; "{}": none came. */
static const char *last_record(struct strbuf *out)
{
    char *last = out->s ? strrchr(out->s, '\n') : NULL;
    if (!last)
        return "{}";
    *last = 0;
    char *before = strrchr(out->s, '\n');
    return before ? before + 1 : out->s;
}

/* Runs the process of a part. *ret_end: how it ended, unless well (caller frees). */
static int inspect(const char *part, const struct bind_struct *type,
                   const struct inspect_options *o, void *ret, char **ret_end, struct err *e)
{
    struct child c = {.fd = -1};
    int rc = start(part, o, &c, e);
    if (rc == 0) {
        bool is_in_time = read_all(&c, o->timeout_us);
        *ret_end = end(&c, is_in_time, o->timeout_us);
        const char *text = last_record(&c.out);
        rc = bind_parse(type, text, strlen(text), part, ERR_BUG, ret, e);
    }
    close_fd(&c.fd);
    strbuf_free(&c.out);
    return rc;
}

/* What remains to be said of a record whose process ended badly. */
static char *failure_of(char *failure, const char *step, const char *how)
{
    if (!how)
        return failure;
    free(failure);
    return xasprintf("%s: %s", step ? step : "start", how);
}

int inspect_system(const struct inspect_options *o, struct inspect_system **ret, struct err *e)
{
    cleanup(free_ptr) char *how = NULL;
    int rc = inspect("system", &inspect_system_type, o, ret, &how, e);
    if (rc == 0)
        (*ret)->failure = failure_of((*ret)->failure, (*ret)->step, how);
    return rc;
}

int inspect_device(const char *device, const struct inspect_options *o, struct inspect_device **ret,
                   struct err *e)
{
    cleanup(free_ptr) char *how = NULL;
    int rc = inspect(device, &inspect_device_type, o, ret, &how, e);
    if (rc < 0)
        return rc;
    struct inspect_device *d = *ret;
    if (!d->device)
        d->device = xstrdup(device);
    d->failure = failure_of(d->failure, d->step, how);
    d->is_usable = d->is_usable && !d->failure;
    return 0;
}

void inspect_compare(struct inspect_device *gpu, const struct inspect_device *cpu)
{
    bool both_encode = gpu->encode_fps > 0 && cpu && cpu->encode_fps > 0;
    if (!cpu || gpu->decode_fps <= 0 || cpu->decode_fps <= 0)
        return;
    double gpu_s = 1 / gpu->decode_fps + (both_encode ? 1 / gpu->encode_fps : 0);
    double cpu_s = 1 / cpu->decode_fps + (both_encode ? 1 / cpu->encode_fps : 0);
    gpu->times_cpu = cpu_s / gpu_s;
    if (gpu->times_cpu < TIMES_CPU_MIN)
        inspect_problem(
            &gpu->problems, &gpu->n_problems,
            "the same work takes %.1f times as long on one core of the CPU: this GPU is "
            "probably not used, or it is throttled or busy",
            gpu->times_cpu);
}

char *inspect_find_program(const char *name)
{
    const char *path = getenv("PATH");
    for (const char *p = path ? path : ""; *p;) {
        size_t n = strcspn(p, ":");
        cleanup(free_ptr) char *file = xasprintf("%.*s/%s", (int)n, p, name);
        if (access(file, X_OK) == 0)
            return take(file);
        p += n + (p[n] == ':');
    }
    return NULL;
}
