/* One session for one probe, without a queue. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/rational.h"
#include "common/storage.h"
#include "common/strbuf.h"
#include "worker/agent.h"
#include "worker/lease_keeper.h"
#include "worker/scratch.h"
#include "worker/session_process.h"

struct probe {
    struct session_process *process;
    struct lease_keeper keeper;
    char *result;
};

/* 1: the answer is there, 0: not yet. */
static int handle(struct probe *p, const struct message *m, struct err *e)
{
    const struct message_progress *progress = m->body;
    const struct message_fail *fail = m->body;
    const struct message_done *done = m->body;
    switch (m->kind) {
    case MESSAGE_DONE:
        p->result = xstrdup(done->result);
        return 1;
    case MESSAGE_FAIL:
        return err_set(e, err_kind_parse(fail->kind), "%s", fail->message);
    case MESSAGE_PROGRESS:
        lease_keeper_progress(&p->keeper, progress->frames_in, progress->frames_out,
                              clock_mono_us());
        return 0;
    default:
        return 0;
    }
}

static int hear(struct probe *p, struct err *e)
{
    for (;;) {
        cleanup(message_clear) struct message m = {0};
        int rc = session_process_receive(p->process, &m, e);
        if (rc == 0)
            return 0;
        if (rc > 0)
            rc = handle(p, &m, e);
        else if (rc == -ERR_TRANSIENT)
            return err_set(e, ERR_TRANSIENT, "the session that probed it ended: %s",
                           session_process_kill(p->process));
        if (rc)
            return rc;
    }
}

static int check_time(const struct probe *p, struct err *e)
{
    switch (lease_keeper_check(&p->keeper, clock_mono_us())) {
    case KEEPER_HUNG:
        return err_set(e, ERR_TRANSIENT, "the probe made no progress for max_silence_s=%lld",
                       (long long)(p->keeper.limits.hang_us / 1000000));
    case KEEPER_OVERTIME:
        return err_set(e, ERR_INPUT,
                       "the probe ran over the limit max_task_s=%lld, raise it with "
                       "--limit",
                       (long long)(p->keeper.limits.task_us / 1000000));
    default:
        return 0;
    }
}

static int wait_for_answer(struct probe *p, struct err *e)
{
    for (;;) {
        struct pollfd fds[SESSION_POLLFDS];
        session_process_pollfds(p->process, fds);
        if (poll(fds, SESSION_POLLFDS, 1000) > 0)
            session_process_pump(p->process, fds);
        int rc = hear(p, e);
        if (rc == 0)
            rc = check_time(p, e);
        if (rc)
            return rc < 0 ? rc : 0;
    }
}

static int probe(struct probe *p, const char *device, const struct limits *limits,
                 struct rational segment, int input_fd, const struct scratch *scratch,
                 struct err *e)
{
    cleanup(close_fd) int root_fd = -1, task_fd = -1;
    int rc = scratch_make(scratch, "session", &root_fd, e);
    if (rc == 0)
        rc = scratch_make_at(root_fd, "task", &task_fd, e);
    const struct session_process_options options = {
        .device = device, .limits = limits, .scratch_fd = root_fd};
    if (rc == 0)
        rc = session_process_start(&options, &p->process, e);
    const struct message_task task = {
        .job = "probe", .task = "probe", .work = WORK_PROBE, .segment = segment};
    if (rc == 0)
        rc = session_process_send(p->process, MESSAGE_TASK, &task, (int[]){input_fd, task_fd}, e);
    return rc < 0 ? rc : wait_for_answer(p, e);
}

int agent_probe(const char *input, const char *device, const struct limits *limits,
                const char *segment, char **ret_source, struct err *e)
{
    struct rational grid;
    if (rational_parse(segment, &grid) < 0)
        return err_set(e, ERR_USAGE, "segment length %s: expected seconds, such as 6", segment);
    cleanup(close_fd) int input_fd = -1;
    cleanup(scratch_close) struct scratch *scratch = NULL;
    int64_t size;
    int rc = storage_open(input, &input_fd, &size, e);
    if (rc < 0)
        return rc;
    rc = scratch_open(NULL, &scratch, e);
    if (rc < 0)
        return rc;
    struct probe p = {0};
    const int64_t silence_us = limits->max_silence_s * 1000000; /* there is no lease to renew */
    const struct lease_keeper_limits times = {silence_us, silence_us, limits->max_task_s * 1000000};
    lease_keeper_init(&p.keeper, &times, clock_mono_us());
    lease_keeper_work(&p.keeper, true, clock_mono_us());
    rc = probe(&p, device, limits, grid, input_fd, scratch, e);
    session_process_free(&p.process);
    *ret_source = p.result;
    return rc;
}
