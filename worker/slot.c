#include "worker/slot.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strbuf.h"

enum {
    START_MAX_US = 30000000,  /* from the start of a process to its hello */
    RESTART_BASE_US = 100000, /* back-off between starts that fail */
    RESTART_MAX_US = 10000000,
};

int slot_open(struct slot *s, int number, struct slot_device *device, const struct scratch *scratch,
              struct err *e)
{
    char name[32];
    *s = (struct slot){.number = number, .device = device, .root_fd = -1};
    snprintf(name, sizeof name, "session%d", number);
    return scratch_make(scratch, name, &s->root_fd, e);
}

static void forget(struct slot *s)
{
    free_ptr(&s->job);
    free_ptr(&s->tenant);
}

void slot_close(struct slot *s)
{
    session_process_free(&s->process);
    close_fd(&s->root_fd);
    forget(s);
}

int slot_start(struct slot *s, const struct slot_options *options, int64_t now_us, struct err *e)
{
    if (s->process || now_us < s->start_at_us)
        return 0;
    const struct session_process_options process = {.exe = options->exe,
                                                    .number = s->number,
                                                    .device = s->device->name,
                                                    .is_test = s->device->quarantine.is_suspect,
                                                    .limits = options->limits,
                                                    .scratch_fd = s->root_fd};
    s->is_ready = false;
    s->is_testing = process.is_test;
    s->ready_by_us = now_us + START_MAX_US;
    int rc = session_process_start(&process, &s->process, e);
    if (rc < 0)
        s->start_at_us =
            now_us + clock_backoff_us(s->early_ends++, RESTART_BASE_US, RESTART_MAX_US);
    return rc;
}

void slot_end(struct slot *s, int64_t now_us)
{
    session_process_kill(s->process);
    session_process_free(&s->process);
    forget(s);
    s->start_at_us = now_us;
    if (!s->is_ready)
        s->start_at_us += clock_backoff_us(s->early_ends++, RESTART_BASE_US, RESTART_MAX_US);
    s->is_ready = s->has_more = false;
}

bool slot_is_free(const struct slot *s)
{
    return s->process && s->is_ready && !s->run && !s->device->quarantine.is_suspect;
}

int slot_fitness(const struct slot *s, const struct lease *lease)
{
    if (s->tenant && strcmp(s->tenant, lease->spec.tenant))
        return -1;
    return s->job && !strcmp(s->job, lease->job) ? 2 : s->job ? 0 : 1;
}

int slot_assign(struct slot *s, struct run *r, int64_t now_us, struct err *e)
{
    struct message_task task;
    int fds[2];
    int rc = run_begin(r, s->root_fd, &task, fds, now_us, e);
    if (rc < 0)
        return rc;
    task.tenant = r->lease->spec.tenant;
    session_process_forget_log(s->process);
    rc = session_process_send(s->process, MESSAGE_TASK, &task, fds, e);
    close_fd(&fds[0]);
    if (rc < 0)
        return rc;
    forget(s);
    s->job = xstrdup(r->lease->job);
    s->tenant = xstrdup(r->lease->spec.tenant);
    s->run = r;
    return 0;
}
