#include "worker/run.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/storage.h"
#include "common/strbuf.h"
#include "worker/outfile.h"

struct run *run_new(uint64_t id, struct lease *lease, const struct lease_keeper_limits *limits,
                    int64_t now_us)
{
    struct run *r = xcalloc(1, sizeof *r);
    r->id = id;
    r->lease = lease;
    r->dir_fd = r->root_fd = -1;
    lease_keeper_init(&r->keeper, limits, now_us);
    return r;
}

void run_free(struct run **r)
{
    if (!*r)
        return;
    struct err e;
    if ((*r)->dir_fd >= 0 && scratch_remove_at((*r)->root_fd, (*r)->name, &e) < 0)
        log_warning("%s", e.msg);
    close_fd(&(*r)->dir_fd);
    gate_free(&(*r)->gate);
    gate_pins_clear(&(*r)->pins);
    lease_free(&(*r)->lease);
    free((*r)->log_tail);
    free((*r)->result);
    free(*r);
    *r = NULL;
}

int run_begin(struct run *r, int root_fd, struct message_task *ret_task, int ret_fds[2],
              int64_t now_us, struct err *e)
{
    const struct lease *l = r->lease;
    int64_t size;
    int rc = gate_open(l, &r->gate, e);
    if (rc < 0)
        return rc;
    snprintf(r->name, sizeof r->name, "task%llu", (unsigned long long)r->id);
    r->root_fd = root_fd;
    rc = scratch_make_at(root_fd, r->name, &r->dir_fd, e);
    if (rc < 0)
        return rc;
    rc = storage_open(l->spec.input, &ret_fds[0], &size, e);
    if (rc < 0)
        return rc;
    ret_fds[1] = r->dir_fd;
    *ret_task = (struct message_task){.job = l->job,
                                      .task = l->task,
                                      .work = gate_work(r->gate),
                                      .audio = (int64_t)gate_audio(r->gate),
                                      .source = l->source,
                                      .plan = l->plan,
                                      .payload = l->payload,
                                      .segment = gate_segment(r->gate)};
    r->state = RUN_WORKING;
    r->begun_us = now_us;
    lease_keeper_work(&r->keeper, true, now_us);
    return 0;
}

int run_take_file(struct run *r, const struct message_file *file, int64_t max_output_bytes,
                  const struct scratch *scratch, struct delivery *delivery, struct err *e)
{
    char name[64];
    snprintf(name, sizeof name, "%llu-%u", (unsigned long long)r->id, r->n_files);
    int rc = outfile_claim(r->dir_fd, file->path, file->bytes, scratch_outbox_fd(scratch), name, e);
    if (rc == 0)
        rc = gate_add_file(r->gate, file->path, file->bytes, max_output_bytes, e);
    if (rc < 0)
        return rc;
    struct delivery_item *item = xcalloc(1, sizeof *item);
    item->run = r->id;
    item->base = xstrdup(r->lease->spec.output);
    item->key = xstrdup(file->path);
    item->path = xasprintf("%s/%s", scratch_outbox(scratch), name);
    r->n_files++;
    r->n_delivering++;
    delivery_put(delivery, item);
    return 0;
}

int run_finish(struct run *r, const char *result, int64_t now_us, struct err *e)
{
    int rc = gate_check(r->gate, result, &r->pins, e);
    if (rc < 0)
        return rc;
    r->result = xstrdup(result);
    run_decide(r, VERDICT_COMMIT, NULL, NULL);
    lease_keeper_work(&r->keeper, false, now_us);
    if (r->n_delivering)
        r->state = RUN_DELIVERING;
    else
        run_settle_from(r, now_us);
    return 0;
}

int run_delivered(struct run *r, const struct delivery_item *item, int64_t now_us, struct err *e)
{
    r->n_delivering--;
    if (item->rc < 0) {
        *e = item->err;
        return item->rc;
    }
    if (r->state == RUN_DELIVERING && !r->n_delivering)
        run_settle_from(r, now_us);
    return 0;
}

void run_decide(struct run *r, enum run_verdict verdict, const struct err *why,
                const char *log_tail)
{
    r->verdict = verdict;
    if (why)
        r->why = *why;
    if (log_tail) {
        free(r->log_tail);
        r->log_tail = xstrdup(log_tail);
    }
}

void run_settle_from(struct run *r, int64_t now_us)
{
    r->state = r->verdict == VERDICT_NONE ? RUN_OVER : RUN_SETTLING;
    r->act_at_us = now_us;
}

static int tell(struct run *r, struct queue *q, struct err *e)
{
    switch (r->verdict) {
    case VERDICT_COMMIT:
        return queue_commit(q, r->lease, r->result, (const char *const *)r->pins.strings,
                            r->pins.n_pairs, e);
    case VERDICT_FAIL:
        return queue_fail(q, r->lease, &r->why, r->log_tail ? r->log_tail : "", e);
    case VERDICT_RELEASE:
        return queue_release(q, r->lease, e);
    case VERDICT_NONE:
        break;
    }
    return LEASE_HELD;
}

static void log_end(const struct run *r, int state)
{
    static const char *const ends[] = {
        [VERDICT_NONE] = "dropped",
        [VERDICT_COMMIT] = "committed",
        [VERDICT_FAIL] = "failed",
        [VERDICT_RELEASE] = "given back",
    };
    const struct lease *l = r->lease;
    double seconds = r->begun_us ? (double)(clock_mono_us() - r->begun_us) / 1e6 : 0;
    if (state != LEASE_HELD && r->verdict != VERDICT_RELEASE)
        log_warning("job %s: %s: attempt %d came too late, its lease is gone", l->job, l->task,
                    l->attempt);
    else if (r->verdict == VERDICT_FAIL)
        log_warning("job %s: %s: attempt %d failed: %s", l->job, l->task, l->attempt, r->why.msg);
    else
        log_info("job %s: %s: %s after %.1f s", l->job, l->task, ends[r->verdict], seconds);
}

int run_settle(struct run *r, struct queue *q, struct err *e)
{
    int rc = tell(r, q, e);
    if (rc == -ERR_TRANSIENT)
        return rc;
    if (rc == LEASE_CANCELLED && r->verdict != VERDICT_RELEASE) {
        r->verdict = VERDICT_RELEASE;
        return 0;
    }
    if (rc < 0 && r->verdict == VERDICT_COMMIT) {
        run_decide(r, VERDICT_FAIL, e, NULL);
        return 0;
    }
    if (rc < 0)
        log_error("job %s: %s: %s; its lease will lapse", r->lease->job, r->lease->task, e->msg);
    else
        log_end(r, rc);
    r->state = RUN_OVER;
    return 0;
}

int64_t run_frames_done(const struct run *r)
{
    return r->lease->kind == TASK_VIDEO ? r->keeper.frames_in : 0;
}
