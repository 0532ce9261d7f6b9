/*
 * The agent's loop. One thread owns all runs, slots and the queue connection that renews, commits
 * and fails; it sleeps in one poll over the sessions' channels, the leaser's and the delivery's
 * mailboxes and the signal descriptor. Nothing in it waits for a session or for the output, and
 * while Redis is away it is asked once a second only: sessions go on, verdicts are kept.
 *
 * Everything that can happen to a run ends in run_decide (what the queue will be told) and
 * run_settle_from (from when on); only `settle` talks to the queue about the end. So a lease that
 * was lost meanwhile, a session that died after it was done, or a Redis that comes back late need
 * no paths of their own.
 */
#include "worker/agent.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/process.h"
#include "common/strbuf.h"
#include "worker/leaser.h"
#include "worker/slot.h"

enum {
    GRACE_S = 25,
    OPEN_US = 10000000,      /* for which Redis may be away at the start */
    CALL_RETRY_US = 200000,  /* for which one call retries: the loop must not stand still */
    AWAY_PAUSE_US = 1000000, /* between calls while Redis is away */
    CANCEL_US = 5000000,     /* for a session to stop when asked, then it is killed */
    LAST_WORDS_US = 3000000, /* at the end, to give leases back while Redis is away */
    TICK_US = 500000,        /* longest sleep */
    EARLY_ENDS_MAX = 5,      /* sessions that end before they are ready: no use in going on */
    MESSAGES_A_TURN = 64,    /* of one session */
    FIXED_POLLFDS = 3,
    TELL_US = 10000000, /* between two reports to the queue, which forgets after three */
};

struct agent {
    const struct agent_options *options;
    struct slot_options slot_options;
    struct lease_keeper_limits keeper_limits; /* the length of a lease is there, too */
    struct scratch *scratch;
    struct queue *queue;
    struct leaser *leaser;
    struct delivery *delivery;
    struct slot_device devices[AGENT_DEVICES_MAX];
    int n_devices;
    struct slot slots[AGENT_SESSIONS_MAX];
    int n_slots;
    char *name; /* in the queue */
    int64_t tell_at_us;
    struct run *runs;
    uint64_t last_id;
    int64_t queue_away_until_us;
    bool is_draining, has_given_back, has_warned;
    int64_t drain_until_us;
    struct err fatal; /* kind 0: none */
};

/* ---- runs ---- */

static struct run *find_run(struct agent *a, uint64_t id)
{
    struct run *r = a->runs;
    while (r && r->id != id)
        r = r->next;
    return r;
}

static struct slot *find_slot(struct agent *a, const struct run *r)
{
    for (int i = 0; i < a->n_slots; i++)
        if (a->slots[i].run == r)
            return &a->slots[i];
    return NULL;
}

static bool has_exclusive(const struct agent *a)
{
    for (const struct run *r = a->runs; r; r = r->next)
        if (r->lease->is_exclusive)
            return true;
    return false;
}

static void remove_over(struct agent *a)
{
    for (struct run **at = &a->runs; *at;) {
        struct run *r = *at;
        if (r->state != RUN_OVER) {
            at = &r->next;
            continue;
        }
        struct slot *s = find_slot(a, r);
        if (s)
            s->run = NULL;
        *at = r->next;
        run_free(&r);
    }
}

static bool is_in_session(const struct run *r)
{
    return r && (r->state == RUN_WORKING || r->state == RUN_STOPPING);
}

/* Decides a run that may be in a session, which is asked to stop. */
static void stop_run(struct agent *a, struct run *r, enum run_verdict verdict,
                     const struct err *why, int64_t now_us)
{
    struct slot *s = find_slot(a, r);
    run_decide(r, verdict, why, s && s->process ? session_process_log_tail(s->process) : NULL);
    if (r->state != RUN_WORKING) {
        if (r->state != RUN_STOPPING)
            run_settle_from(r, now_us);
        return;
    }
    r->state = RUN_STOPPING;
    r->act_at_us = now_us + CANCEL_US;
    lease_keeper_work(&r->keeper, false, now_us);
    session_process_send(s->process, MESSAGE_CANCEL, NULL, NULL, NULL); /* or receive tells */
}

/* ---- devices ---- */

static bool is_gpu(const struct slot_device *d)
{
    return strcmp(d->name, "cpu") != 0;
}

/* NULL: some device may get work, now or when its test has passed. */
static const struct slot_device *last_closed(const struct agent *a, int64_t now_us)
{
    const struct slot_device *last = &a->devices[0];
    for (int i = 0; i < a->n_devices; i++) {
        if (!quarantine_is_closed(&a->devices[i].quarantine, now_us))
            return NULL;
        if (a->devices[i].quarantine.until_us > last->quarantine.until_us)
            last = &a->devices[i];
    }
    return last;
}

/* A device is in quarantine from now on. With none left, what waits here goes to other workers. */
static void on_closed(struct agent *a, const struct slot_device *d, int64_t now_us)
{
    const struct quarantine *q = &d->quarantine;
    bool is_last = last_closed(a, now_us) != NULL, has_worked = false;
    for (int i = 0; i < a->n_devices; i++)
        has_worked |= a->devices[i].has_worked;
    a->tell_at_us = now_us;
    if (is_last && (!has_worked || a->options->quarantine_s <= 0))
        a->fatal = q->why;
    else
        log_warning("%s gets no work for %.0f s%s: %s", d->name,
                    (double)(q->until_us - now_us) / 1e6, is_last ? ", and there is no other" : "",
                    q->why.msg);
    for (struct run *r = a->runs; is_last && r; r = r->next)
        if (r->state == RUN_WAITING)
            stop_run(a, r, VERDICT_RELEASE, NULL, now_us);
}

/* A session had trouble that may be its GPU's: whoever starts there next tests it first. */
static void suspect(struct agent *a, struct slot *s, const struct err *why, int64_t now_us)
{
    if (!is_gpu(s->device))
        return;
    quarantine_suspect(&s->device->quarantine, why);
    a->tell_at_us = now_us;
}

/* Trouble that is its GPU's, in a task of the job or, NULL, at its start. */
static void blame(struct agent *a, struct slot *s, const char *job, const struct err *why,
                  int64_t now_us)
{
    struct quarantine *q = &s->device->quarantine;
    bool is_closed = !s->device->has_worked;
    if (!is_gpu(s->device))
        return;
    if (is_closed)
        quarantine_close(q, why, now_us);
    else
        is_closed = quarantine_strike(q, job, why, now_us);
    a->tell_at_us = now_us;
    if (is_closed)
        on_closed(a, s->device, now_us);
}

/* What the end of a session tells of its device. */
static void weigh_end(struct agent *a, struct slot *s, bool was_ready, const struct err *why,
                      const char *tail, int64_t now_us)
{
    const struct slot_device *d = s->device;
    bool has_worked = is_gpu(d) && d->has_worked;
    if (was_ready && !d->quarantine.is_suspect)
        suspect(a, s, why, now_us);
    else if (!was_ready && (why->kind == ERR_DEVICE || (has_worked && why->kind != ERR_RESOURCE)))
        blame(a, s, NULL, why, now_us);
    else if (!was_ready && !has_worked && s->early_ends >= EARLY_ENDS_MAX)
        err_set(&a->fatal, ERR_RESOURCE, "sessions end before they are ready: %s: %s", why->msg,
                tail);
}

/* ---- sessions ---- */

/* Ends a slot's process; why: what it did, NULL: it ended by itself. A run that was in it is
 * decided by that, unless it was before. */
static void end_session(struct agent *a, struct slot *s, enum err_kind kind, const char *why,
                        int64_t now_us)
{
    struct err e, reason;
    struct run *r = s->run;
    int pid = session_process_pid(s->process);
    cleanup(free_ptr) char *how = xstrdup(session_process_kill(s->process));
    cleanup(free_ptr) char *tail = xstrdup(session_process_log_tail(s->process));
    bool was_ready = s->is_ready;
    slot_end(s, now_us);
    err_set(&e, kind, "session %d (pid %d) %s%s", s->number, pid,
            why ? "" : "ended: ", why ? why : how);
    err_set(&reason, kind, "%s", why && !was_ready ? why : e.msg);
    weigh_end(a, s, was_ready, &reason, tail, now_us);
    if (!a->fatal.kind) /* which is told last */
        log_warning("%s", e.msg);
    if (r && r->state == RUN_WORKING)
        run_decide(r, VERDICT_FAIL, &e, tail);
    if (is_in_session(r))
        run_settle_from(r, now_us);
}

/* ---- what sessions say ---- */

static int on_hello(struct agent *a, struct slot *s, const void *body, int64_t now_us,
                    struct err *e)
{
    const struct message_hello *hello = body;
    struct slot_device *d = s->device;
    if (hello->protocol != PROTOCOL_VERSION || s->is_ready)
        return err_set(e, ERR_BUG, "an unexpected hello");
    if (d->has_worked && strcmp(d->name, hello->device))
        return err_set(e, ERR_DEVICE, "got %s where others got %s", hello->device, d->name);
    if (!d->has_worked) {
        log_info("sessions work on %s", hello->device);
        if (hello->choice)
            log_warning("device %s", hello->choice); /* nobody should have to look for it */
        free(d->name);
        d->name = xstrdup(hello->device);
    }
    if (s->is_testing) {
        log_warning("%s passed its test and gets work", d->name);
        quarantine_passed(&d->quarantine);
        a->tell_at_us = now_us;
    }
    s->is_ready = d->has_worked = true;
    s->early_ends = 0;
    log_debug("session %d is ready, version %s, confined by %s", s->number, hello->version,
              hello->sandbox);
    if (hello->missing && !a->has_warned)
        log_warning("sessions are confined by %s only; not to be had here: %s", hello->sandbox,
                    hello->missing);
    a->has_warned |= hello->missing != NULL;
    return 0;
}

static int on_progress(struct agent *a, struct slot *s, const void *body, int64_t now_us,
                       struct err *e)
{
    const struct message_progress *progress = body;
    (void)a;
    (void)e;
    lease_keeper_progress(&s->run->keeper, progress->frames_in, progress->frames_out, now_us);
    return 0;
}

static int on_file(struct agent *a, struct slot *s, const void *body, int64_t now_us, struct err *e)
{
    struct run *r = s->run;
    if (r->state != RUN_WORKING)
        return 0; /* it is being stopped: the file goes with its directory */
    lease_keeper_alive(&r->keeper, now_us);
    return run_take_file(r, body, a->options->limits.max_output_bytes, a->scratch, a->delivery, e);
}

static int on_done(struct agent *a, struct slot *s, const void *body, int64_t now_us, struct err *e)
{
    const struct message_done *done = body;
    (void)a;
    if (s->run->state == RUN_WORKING)
        return run_finish(s->run, done->result, now_us, e);
    run_settle_from(s->run, now_us);
    return 0;
}

static int on_fail(struct agent *a, struct slot *s, const void *body, int64_t now_us, struct err *e)
{
    const struct message_fail *fail = body;
    struct err why;
    err_set(&why, err_kind_parse(fail->kind), "%s", fail->message);
    if (!is_in_session(s->run)) { /* at its start */
        if (!s->device->has_worked && err_is_permanent(why.kind))
            a->fatal = why;
        return err_set(e, why.kind, "%s", why.msg);
    }
    if (s->run->state == RUN_WORKING)
        run_decide(s->run, VERDICT_FAIL, &why, session_process_log_tail(s->process));
    run_settle_from(s->run, now_us);
    if (!is_gpu(s->device) || (why.kind != ERR_DEVICE && why.kind != ERR_BUG))
        return 0;
    if (fail->is_broken)
        blame(a, s, s->run->lease->job, &why, now_us);
    else
        suspect(a, s, &why, now_us);
    return err_set(e, why.kind, "is not used again after trouble on %s", s->device->name);
}

static const struct {
    int (*handle)(struct agent *a, struct slot *s, const void *body, int64_t now_us, struct err *e);
    bool needs_run; /* one that is working or being stopped */
} handlers[] = {
    [MESSAGE_HELLO] = {on_hello, false}, [MESSAGE_PROGRESS] = {on_progress, true},
    [MESSAGE_FILE] = {on_file, true},    [MESSAGE_DONE] = {on_done, true},
    [MESSAGE_FAIL] = {on_fail, false},
};

static int handle_message(struct agent *a, struct slot *s, const struct message *m, int64_t now_us,
                          struct err *e)
{
    if (handlers[m->kind].needs_run && !is_in_session(s->run))
        return err_set(e, ERR_BUG, "sent %s without a task", message_name(m->kind));
    return handlers[m->kind].handle(a, s, m->body, now_us, e);
}

/* Handles what has come, some at a time so that no session keeps the others waiting. */
static void hear_session(struct agent *a, struct slot *s, int64_t now_us)
{
    s->has_more = false; /* in the channel's own buffer, of which poll knows nothing */
    for (int i = 0; s->process; i++) {
        cleanup(message_clear) struct message m = {0};
        struct err e;
        if (i == MESSAGES_A_TURN) {
            s->has_more = true;
            return;
        }
        int rc = session_process_receive(s->process, &m, &e);
        if (rc == 0)
            return;
        if (rc > 0)
            rc = handle_message(a, s, &m, now_us, &e);
        if (rc == -ERR_TRANSIENT)
            end_session(a, s, ERR_TRANSIENT, NULL, now_us);
        else if (rc < 0)
            end_session(a, s, e.kind, e.msg, now_us);
    }
}

/* ---- slots ---- */

/* A device that is suspect is tested by one session; the others wait for what it finds. */
static bool may_start(const struct agent *a, const struct slot *s)
{
    bool is_tested = false;
    for (int i = 0; i < a->n_slots; i++)
        is_tested |=
            a->slots[i].device == s->device && a->slots[i].process && !a->slots[i].is_ready;
    return !is_tested || !s->device->quarantine.is_suspect;
}

static void start_sessions(struct agent *a, int64_t now_us)
{
    for (int i = 0; i < a->n_slots && !a->is_draining; i++) {
        struct slot *s = &a->slots[i];
        struct err e;
        if (quarantine_is_closed(&s->device->quarantine, now_us)) {
            if (s->process && !s->run)
                slot_end(s, now_us);
            continue;
        }
        if (may_start(a, s) && slot_start(s, &a->slot_options, now_us, &e) < 0) {
            if (s->early_ends >= EARLY_ENDS_MAX)
                a->fatal = e;
            else
                log_warning("%s", e.msg);
        }
        if (s->process && !s->is_ready && now_us >= s->ready_by_us)
            end_session(a, s, ERR_TRANSIENT, "was not ready in time", now_us);
    }
}

static struct slot *best_slot(struct agent *a, const struct run *r)
{
    struct slot *best = NULL;
    int best_fitness = 0;
    for (int i = 0; i < a->n_slots; i++) {
        struct slot *s = &a->slots[i];
        if (!slot_is_free(s))
            continue;
        int fitness = slot_fitness(s, r->lease);
        if (!best || fitness > best_fitness) {
            best = s;
            best_fitness = fitness;
        }
    }
    return best;
}

static void assign(struct agent *a, struct run *r, int64_t now_us)
{
    struct err e;
    if (r->lease->is_exclusive && (a->runs != r || r->next))
        return; /* it waits until it is alone */
    struct slot *s = best_slot(a, r);
    if (!s)
        return;
    if (slot_fitness(s, r->lease) < 0) {
        slot_end(s, now_us); /* a new process comes, and the run still waits for it */
        return;
    }
    log_info("job %s: %s: attempt %d begins in session %d", r->lease->job, r->lease->task,
             r->lease->attempt, s->number);
    if (slot_assign(s, r, now_us, &e) == 0)
        return;
    run_decide(r, VERDICT_FAIL, &e, NULL);
    run_settle_from(r, now_us);
}

static void assign_all(struct agent *a, int64_t now_us)
{
    for (struct run *r = a->runs; r; r = r->next)
        if (r->state == RUN_WAITING)
            assign(a, r, now_us);
}

/* ---- leases ---- */

static void begin_run(struct agent *a, struct lease *lease, int64_t now_us)
{
    bool is_unwanted = a->is_draining || has_exclusive(a);
    struct run *r = run_new(++a->last_id, lease, &a->keeper_limits, now_us);
    struct run **last = &a->runs;
    while (*last)
        last = &(*last)->next;
    *last = r;
    if (!is_unwanted)
        return;
    run_decide(r, VERDICT_RELEASE, NULL,
               NULL); /* it was on its way when the agent stopped asking */
    run_settle_from(r, now_us);
}

static void take_leases(struct agent *a, int64_t now_us)
{
    for (struct leaser_item *item; (item = leaser_take(a->leaser));) {
        if (item->lease)
            begin_run(a, take(item->lease), now_us);
        else
            a->fatal = item->err;
        leaser_item_free(item);
    }
    int n = 0;
    for (int i = 0; i < a->n_slots; i++)
        n += slot_is_free(&a->slots[i]);
    for (const struct run *r = a->runs; r; r = r->next)
        n -= r->state == RUN_WAITING;
    leaser_want(a->leaser, a->is_draining || has_exclusive(a) || n < 0 ? 0 : n);
}

/* Notes that Redis is away. */
static void queue_is_away(struct agent *a, const struct err *e)
{
    int64_t now_us = clock_mono_us();
    if (now_us > a->queue_away_until_us + 2 * AWAY_PAUSE_US)
        log_warning("%s; sessions go on, trying again", e->msg);
    a->queue_away_until_us = now_us + AWAY_PAUSE_US;
}

static void renew(struct agent *a, struct run *r, int64_t now_us)
{
    struct err e;
    if (now_us < a->queue_away_until_us) {
        lease_keeper_retry(&r->keeper, a->queue_away_until_us);
        return;
    }
    int rc = queue_renew(a->queue, r->lease, run_frames_done(r), &e);
    if (rc == LEASE_HELD) {
        lease_keeper_renewed(&r->keeper, now_us);
    } else if (rc == LEASE_LOST) {
        log_warning("job %s: %s: attempt %d lost its lease", r->lease->job, r->lease->task,
                    r->lease->attempt);
        stop_run(a, r, VERDICT_NONE, NULL, now_us);
    } else if (rc == LEASE_CANCELLED) {
        log_info("job %s: %s: the job was cancelled", r->lease->job, r->lease->task);
        stop_run(a, r, VERDICT_RELEASE, NULL, now_us);
    } else {
        queue_is_away(a, &e);
        lease_keeper_retry(&r->keeper, now_us + AWAY_PAUSE_US);
    }
}

static void keep_lease(struct agent *a, struct run *r, int64_t now_us)
{
    char why[128];
    const struct lease_keeper_limits *limits = &r->keeper.limits;
    enum lease_keeper_advice advice = lease_keeper_check(&r->keeper, now_us);
    if (advice == KEEPER_RENEW) {
        renew(a, r, now_us);
    } else if (advice == KEEPER_HUNG) {
        struct err hung;
        err_set(&hung, ERR_DEVICE, "a task made no progress for %lld s",
                (long long)(limits->hang_us / 1000000));
        blame(a, find_slot(a, r), r->lease->job, &hung, now_us);
        snprintf(why, sizeof why, "made no progress for max_silence_s=%lld",
                 (long long)(limits->hang_us / 1000000));
        end_session(a, find_slot(a, r), ERR_TRANSIENT, why, now_us);
    } else if (advice == KEEPER_OVERTIME) {
        snprintf(why, sizeof why, "ran over the limit max_task_s=%lld, raise it with --limit",
                 (long long)(limits->task_us / 1000000));
        end_session(a, find_slot(a, r), ERR_INPUT, why, now_us);
    }
}

static void settle(struct agent *a, struct run *r, int64_t now_us)
{
    struct err e;
    if (now_us < r->act_at_us || now_us < a->queue_away_until_us)
        return;
    while (r->state == RUN_SETTLING && run_settle(r, a->queue, &e) == 0)
        ;
    if (r->state == RUN_OVER)
        return;
    queue_is_away(a, &e);
    r->act_at_us = now_us + AWAY_PAUSE_US;
}

static void tend_runs(struct agent *a, int64_t now_us)
{
    for (struct run *r = a->runs; r; r = r->next) {
        if (r->state == RUN_STOPPING && now_us >= r->act_at_us)
            end_session(a, find_slot(a, r), ERR_TRANSIENT, "did not stop when asked", now_us);
        if (r->state != RUN_SETTLING && r->state != RUN_STOPPING && r->state != RUN_OVER)
            keep_lease(a, r, now_us);
        if (r->state == RUN_SETTLING)
            settle(a, r, now_us);
    }
    remove_over(a);
}

static void take_deliveries(struct agent *a, int64_t now_us)
{
    for (struct delivery_item *item; (item = delivery_take(a->delivery));) {
        struct run *r = find_run(a, item->run);
        struct err e;
        if (r && run_delivered(r, item, now_us, &e) < 0 &&
            (r->state == RUN_WORKING || r->state == RUN_DELIVERING))
            stop_run(a, r, VERDICT_FAIL, &e, now_us);
        delivery_item_free(item);
    }
}

/* ---- drain ---- */

static void begin_drain(struct agent *a, int64_t now_us)
{
    double grace_s = a->options->grace_s < 0 ? GRACE_S : a->options->grace_s;
    a->is_draining = true;
    a->drain_until_us = now_us + (int64_t)(grace_s * 1e6);
    leaser_want(a->leaser, 0);
    for (struct run *r = a->runs; r; r = r->next)
        if (r->state == RUN_WAITING)
            stop_run(a, r, VERDICT_RELEASE, NULL, now_us);
    if (a->runs)
        log_info("stopping: running tasks have %g s to finish", grace_s);
}

static void look_for_signals(struct agent *a, int64_t now_us)
{
    int n = process_signal_count_and_clear();
    if ((n || a->fatal.kind) && !a->is_draining)
        begin_drain(a, now_us);
    if (n > 1)
        a->drain_until_us = now_us;
}

/* The time is over: ends every session at work; what is not done is given back. */
static void give_back(struct agent *a, int64_t now_us)
{
    for (struct run *r = a->runs; r; r = r->next) {
        struct slot *s = find_slot(a, r);
        bool was_in_session = is_in_session(r);
        if (r->state == RUN_WORKING || r->state == RUN_DELIVERING) {
            a->has_given_back = true;
            stop_run(a, r, VERDICT_RELEASE, NULL, now_us);
        }
        if (was_in_session)
            end_session(a, s, ERR_CANCELLED, "was stopped with the worker", now_us);
    }
}

/* ---- the loop ---- */

static int64_t next_due_us(const struct agent *a, int64_t now_us)
{
    int64_t due_us = now_us + TICK_US;
    for (const struct run *r = a->runs; r; r = r->next) {
        int64_t at_us = r->state == RUN_STOPPING || r->state == RUN_SETTLING
                            ? r->act_at_us
                            : lease_keeper_due_us(&r->keeper);
        due_us = at_us < due_us ? at_us : due_us;
    }
    if (a->is_draining && a->drain_until_us < due_us)
        due_us = a->drain_until_us;
    for (int i = 0; i < a->n_slots; i++)
        due_us = a->slots[i].has_more ? now_us : due_us;
    return due_us;
}

static void sleep_and_hear(struct agent *a)
{
    struct pollfd fds[FIXED_POLLFDS + AGENT_SESSIONS_MAX * SESSION_POLLFDS] = {
        {.fd = process_signal_fd(), .events = POLLIN},
        {.fd = leaser_fd(a->leaser), .events = POLLIN},
        {.fd = delivery_fd(a->delivery), .events = POLLIN},
    };
    struct slot *of[AGENT_SESSIONS_MAX];
    int n = 0;
    for (int i = 0; i < a->n_slots; i++) {
        if (!a->slots[i].process)
            continue;
        session_process_pollfds(a->slots[i].process, &fds[FIXED_POLLFDS + n * SESSION_POLLFDS]);
        of[n++] = &a->slots[i];
    }
    int64_t now_us = clock_mono_us(), wait_us = next_due_us(a, now_us) - now_us;
    int wait_ms = wait_us > 0 ? (int)(wait_us / 1000) + 1 : 0;
    if (poll(fds, (nfds_t)(FIXED_POLLFDS + n * SESSION_POLLFDS), wait_ms) < 0)
        return; /* a signal */
    now_us = clock_mono_us();
    for (int i = 0; i < n; i++) {
        const struct pollfd *p = &fds[FIXED_POLLFDS + i * SESSION_POLLFDS];
        session_process_pump(of[i]->process, p);
        if (of[i]->has_more || p[0].revents & (POLLIN | POLLHUP | POLLERR))
            hear_session(a, of[i], now_us);
    }
}

static void turn(struct agent *a)
{
    sleep_and_hear(a);
    int64_t now_us = clock_mono_us();
    look_for_signals(a, now_us);
    take_deliveries(a, now_us);
    tend_runs(a, now_us);
    start_sessions(a, now_us);
    take_leases(a, now_us);
    assign_all(a, now_us);
    tend_runs(a, now_us); /* what failed at its assignment */
}

static int count_working(const struct agent *a)
{
    int n = 0;
    for (int i = 0; i < a->n_slots; i++)
        n += is_in_session(a->slots[i].run);
    return n;
}

static void show_title(const struct agent *a)
{
    const struct slot_device *closed = last_closed(a, clock_mono_us());
    process_title_set("agent, %d of %d sessions at work%s%s%s", count_working(a), a->n_slots,
                      closed ? ", quarantined: " : "", closed ? closed->name : "",
                      a->is_draining ? ", stopping" : "");
}

/* ---- what the queue is told of this worker ---- */

static json_t *device_status(const struct slot_device *d, int64_t now_us)
{
    const struct quarantine *q = &d->quarantine;
    json_t *o = json_pack("{s:s, s:s, s:i}", "device", d->name, "state",
                          quarantine_state(q, now_us), "strikes", q->n_strikes);
    if (quarantine_is_closed(q, now_us))
        json_object_set_new(o, "for_s", json_integer((q->until_us - now_us) / 1000000));
    if (q->why.kind) {
        cleanup(free_ptr) char *reason = xstrdup(q->why.msg);
        log_redact(reason);
        json_object_set_new(o, "reason", json_string(reason));
    }
    return o;
}

static void tell_status(struct agent *a, int64_t now_us)
{
    struct err e;
    if (now_us < a->tell_at_us || now_us < a->queue_away_until_us)
        return;
    a->tell_at_us = now_us + TELL_US;
    json_t *devices = json_array();
    for (int i = 0; i < a->n_devices; i++)
        json_array_append_new(devices, device_status(&a->devices[i], now_us));
    json_t *o = json_pack("{s:i, s:i, s:b, s:o}", "sessions", a->n_slots, "at_work",
                          count_working(a), "is_draining", a->is_draining, "devices", devices);
    if (queue_worker_tell(a->queue, a->name, o, 3 * TELL_US, &e) < 0)
        queue_is_away(a, &e);
    json_decref(o);
}

static void serve(struct agent *a)
{
    struct err e;
    while (!a->is_draining || (a->runs && clock_mono_us() < a->drain_until_us)) {
        turn(a);
        tell_status(a, clock_mono_us());
        show_title(a);
    }
    give_back(a, clock_mono_us());
    leaser_stop(a->leaser);
    int64_t until_us = clock_mono_us() + LAST_WORDS_US;
    do {
        take_leases(a, clock_mono_us());
        tend_runs(a, clock_mono_us());
        if (a->runs)
            clock_sleep_us(20000);
    } while (a->runs && clock_mono_us() < until_us);
    queue_worker_tell(a->queue, a->name, NULL, 0, &e); /* or it is forgotten by itself */
}

/* ---- start and end ---- */

static int cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return 1;
    return CPU_COUNT(&set);
}

static int open_queue(struct agent *a, struct err *e)
{
    const struct queue_options options = {.lease_us = a->keeper_limits.lease_us,
                                          .retry_us = CALL_RETRY_US};
    int64_t until_us = clock_mono_us() + OPEN_US;
    int rc;
    for (unsigned i = 0;; i++) {
        rc = queue_open(a->options->redis_url, &options, &a->queue, e);
        if (rc != -ERR_TRANSIENT || clock_mono_us() > until_us || process_signal_count())
            return rc;
        clock_sleep_us(clock_backoff_us(i, 100000, 1000000));
    }
}

static int open_leaser(struct agent *a, struct err *e)
{
    char host[64] = "worker";
    gethostname(host, sizeof host - 1);
    a->name = xasprintf("%s:%d", host, (int)getpid());
    const struct leaser_options options = {a->options->redis_url, a->name,
                                           a->keeper_limits.lease_us};
    return leaser_start(&options, &a->leaser, e);
}

/* "cuda:0,cuda:1": sessions are dealt out to them in turn. */
static int open_devices(struct agent *a, struct err *e)
{
    cleanup(free_ptr) char *names = xstrdup(a->options->device);
    char *rest = NULL;
    double first_s = a->options->quarantine_s;
    for (char *n = strtok_r(names, ",", &rest); n; n = strtok_r(NULL, ",", &rest)) {
        if (a->n_devices == AGENT_DEVICES_MAX)
            return err_set(e, ERR_USAGE, "more than %d devices", AGENT_DEVICES_MAX);
        struct slot_device *d = &a->devices[a->n_devices++];
        d->name = xstrdup(n);
        d->quarantine.first_us = first_s > 0 ? (int64_t)(first_s * 1e6) : QUARANTINE_MAX_US;
    }
    return a->n_devices ? 0 : err_set(e, ERR_USAGE, "no device is named");
}

static int open_slots(struct agent *a, struct err *e)
{
    int wanted = a->options->sessions > 0 ? a->options->sessions : cores();
    if (wanted > AGENT_SESSIONS_MAX)
        wanted = AGENT_SESSIONS_MAX;
    if (wanted < a->n_devices)
        wanted = a->n_devices;
    int rc = 0;
    for (; a->n_slots < wanted && rc == 0; a->n_slots++)
        rc = slot_open(&a->slots[a->n_slots], a->n_slots, &a->devices[a->n_slots % a->n_devices],
                       a->scratch, e);
    return rc;
}

static int open_all(struct agent *a, struct err *e)
{
    int rc = open_devices(a, e);
    if (rc == 0)
        rc = scratch_open(a->options->scratch, &a->scratch, e);
    if (rc == 0)
        rc = open_slots(a, e);
    if (rc == 0)
        start_sessions(a, clock_mono_us()); /* they get ready while the queue is opened */
    if (rc == 0)
        rc = open_queue(a, e);
    if (rc == 0)
        rc = delivery_start(&a->delivery, e);
    if (rc == 0)
        rc = open_leaser(a, e);
    return rc;
}

static void close_all(struct agent *a)
{
    leaser_free(&a->leaser);
    delivery_free(&a->delivery);
    for (struct run *next; a->runs; a->runs = next) {
        next = a->runs->next;
        run_free(&a->runs);
    }
    for (int i = 0; i < a->n_slots; i++) /* all at once: the end of one takes a moment */
        if (a->slots[i].process)
            session_process_quit(a->slots[i].process);
    for (int i = 0; i < a->n_slots; i++)
        slot_close(&a->slots[i]);
    for (int i = 0; i < a->n_devices; i++)
        free(a->devices[i].name);
    free(a->name);
    queue_close(&a->queue);
    scratch_close(&a->scratch);
}

int agent_run(const struct agent_options *options, struct err *e)
{
    struct agent *a = xcalloc(1, sizeof *a);
    int64_t lease_us = options->lease_s > 0 ? (int64_t)(options->lease_s * 1e6) : QUEUE_LEASE_US;
    a->options = options;
    a->slot_options = (struct slot_options){options->session_exe, &options->limits};
    a->keeper_limits = (struct lease_keeper_limits){
        lease_us, options->limits.max_silence_s * 1000000, options->limits.max_task_s * 1000000};
    process_signals_catch();
    int rc = open_all(a, e);
    if (rc == 0) {
        log_info("worker ready: %d sessions on %s", a->n_slots, options->device);
        serve(a);
    }
    if (rc == 0 && a->fatal.kind)
        rc = err_set(e, a->fatal.kind, "%s", a->fatal.msg);
    else if (rc == 0 && a->has_given_back)
        rc = err_set(e, ERR_CANCELLED, "stopped: unfinished work was given back to the queue");
    close_all(a);
    free(a);
    return rc;
}
