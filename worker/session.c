/*
 * A session's life: closed into its sandbox before it sees the first byte of a source, it runs one
 * task after another. While the next task is of the same job and file it keeps the input open, the
 * job's records parsed, and the stages of a video chunk warm (pipelines/media/warm.h). Whatever
 * fails, the next task starts afresh.
 *
 * The callbacks of a task come from several threads (never two events at once, but the input polls
 * for cancellation from its own), so the channel is behind a lock here.
 */
#include "worker/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/process.h"
#include "common/strbuf.h"
#include "pipelines/media/avlog.h"
#include "pipelines/media/device.h"
#include "pipelines/media/device_fault.h"
#include "pipelines/media/probe.h"
#include "pipelines/media/selftest.h"
#include "pipelines/media/task.h"
#include "worker/protocol.h"
#include "worker/sandbox.h"

enum {
    CHANNEL_FD = 3,
    PROGRESS_US = 200000, /* between two progress messages */
    CANCEL_US = 20000,    /* between two looks for a cancel message */
};

struct session {
    int number;
    struct device *device;
    struct limits limits;
    /* the input that is open, and whose it is */
    char *job;
    struct stat file;
    int input_fd;
    struct input *input;
    struct records { /* of a video or audio task */
        char *source_text, *plan_text;
        struct source *source;
        struct plan *plan;
    } records;
    struct warm warm;     /* made with that input and those records */
    pthread_mutex_t lock; /* guards the rest while a task runs */
    struct channel *channel;
    bool is_cancelled, is_gone; /* is_gone: no agent any more */
    int64_t next_progress_us, next_look_us;
    struct message_progress progress;
};

/* ---- the channel ---- */

static int send_all(struct session *s, enum message_kind kind, const void *body, struct err *e)
{
    int rc = message_send(s->channel, kind, body, NULL, e);
    while (rc == 0 && channel_has_output(s->channel)) {
        rc = channel_wait(s->channel, -1, e);
        if (rc >= 0)
            rc = channel_flush(s->channel, e);
    }
    return rc;
}

static int receive(struct session *s, struct message *ret, struct err *e)
{
    int rc;
    while ((rc = message_receive(s->channel, SIDE_AGENT, ret, e)) == 0)
        if ((rc = channel_wait(s->channel, -1, e)) < 0)
            return rc;
    return rc < 0 ? rc : 0;
}

/* Within a task: an agent that is gone cancels it. */
static void send_event(struct session *s, enum message_kind kind, const void *body)
{
    if (send_all(s, kind, body, NULL) < 0)
        s->is_gone = true;
}

static void look_for_cancel(struct session *s)
{
    struct message m;
    int rc = message_receive(s->channel, SIDE_AGENT, &m, NULL);
    if (rc < 0 || (rc > 0 && m.kind != MESSAGE_CANCEL))
        s->is_gone = true; /* or it sent what it may not send now: quit, which means the same */
    if (rc > 0)
        s->is_cancelled |= m.kind == MESSAGE_CANCEL;
    if (rc != 0)
        message_clear(&m);
}

static bool on_is_cancelled(void *arg)
{
    struct session *s = arg;
    pthread_mutex_lock(&s->lock);
    int64_t now_us = clock_mono_us();
    if (now_us >= s->next_look_us) {
        s->next_look_us = now_us + CANCEL_US;
        look_for_cancel(s);
    }
    bool is_cancelled = s->is_cancelled || s->is_gone;
    pthread_mutex_unlock(&s->lock);
    return is_cancelled;
}

static void on_file(void *arg, const char *path, int64_t bytes)
{
    struct session *s = arg;
    const struct message_file file = {(char *)path, bytes};
    pthread_mutex_lock(&s->lock);
    send_event(s, MESSAGE_FILE, &file);
    pthread_mutex_unlock(&s->lock);
}

static void on_progress(void *arg, int64_t frames_in, int64_t frames_out)
{
    struct session *s = arg;
    pthread_mutex_lock(&s->lock);
    s->progress = (struct message_progress){frames_in, frames_out};
    int64_t now_us = clock_mono_us();
    if (now_us >= s->next_progress_us) {
        s->next_progress_us = now_us + PROGRESS_US;
        send_event(s, MESSAGE_PROGRESS, &s->progress);
    }
    pthread_mutex_unlock(&s->lock);
}

static void on_bytes(void *arg, int64_t bytes)
{
    on_progress(arg, bytes, 0);
}

/* ---- the input ---- */

static void forget_records(struct session *s)
{
    struct records *r = &s->records;
    warm_forget(&s->warm);
    bind_free(&source_type, &r->source);
    bind_free(&plan_type, &r->plan);
    free_ptr(&r->source_text);
    free_ptr(&r->plan_text);
}

static void close_input(struct session *s)
{
    forget_records(s);
    input_close(&s->input);
    close_fd(&s->input_fd);
    free_ptr(&s->job);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Opens the message's input, or goes on with the one that is open; takes the descriptor over. */
static int use_input(struct session *s, struct message *m, struct err *e)
{
    const struct message_task *task = m->body;
    struct stat file;
    if (fstat(m->fds[0], &file) < 0)
        return err_set(e, ERR_BUG, "the input's descriptor: %s", strerror(errno));
    if (s->input && !strcmp(s->job, task->job) && is_same_file(&s->file, &file))
        return 0;
    close_input(s);
    s->job = xstrdup(task->job);
    s->file = file;
    s->input_fd = m->fds[0];
    m->fds[0] = -1;
    return input_open(s->input_fd, &s->limits, on_is_cancelled, s, &s->input, e);
}

/* ---- the work: each fills *ret with the result as JSON text ---- */

/* What is here, and so what the planner may count on. */
static void tell_device(const struct device *d, struct source *source)
{
    const char *choice = device_choice(d);
    if (device_gpu(d))
        source->gpu = bind_copy(&route_gpu_type, device_gpu(d));
    if (!choice)
        return;
    source->notes = xrealloc_array(source->notes, source->n_notes + 1, sizeof *source->notes);
    source->notes[source->n_notes++] = xasprintf("device %s", choice);
}

static int run_probe(struct session *s, const struct message_task *task, int scratch_fd, char **ret,
                     struct err *e)
{
    (void)scratch_fd;
    struct source *source = NULL;
    int rc = probe_source(s->input, &s->limits, task->segment, on_bytes, s, &source, e);
    if (rc < 0)
        return rc;
    tell_device(s->device, source);
    *ret = bind_dump(&source_type, source);
    bind_free(&source_type, &source);
    return 0;
}

static int parse(const struct bind_struct *type, const char *text, const char *name, void *ret,
                 struct err *e)
{
    if (!text)
        return err_set(e, ERR_BUG, "the task came without its %s", name);
    return bind_parse(type, text, strlen(text), name, ERR_BUG, ret, e);
}

static bool is_same_text(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

/* The task's source and plan, parsed now or for the task before. */
static int use_records(struct session *s, const struct message_task *task, struct err *e)
{
    struct records *r = &s->records;
    if (is_same_text(r->source_text, task->source) && is_same_text(r->plan_text, task->plan))
        return 0;
    forget_records(s);
    int rc = parse(&source_type, task->source, "source", &r->source, e);
    if (rc == 0)
        rc = parse(&plan_type, task->plan, "plan", &r->plan, e);
    if (rc < 0)
        return rc;
    r->source_text = xstrdup(task->source);
    r->plan_text = xstrdup(task->plan);
    return 0;
}

static int run_video(struct session *s, const struct message_task *task, int scratch_fd, char **ret,
                     struct err *e)
{
    struct plan_chunk *chunk = NULL;
    struct manifest *manifest = NULL;
    const struct task_events events = {s, on_file, on_progress, on_is_cancelled};
    int rc = use_records(s, task, e);
    if (rc == 0)
        rc = parse(&plan_chunk_type, task->payload, "payload", &chunk, e);
    if (rc == 0)
        rc = video_chunk_run(&s->warm, s->input, &s->limits, s->device, s->records.source,
                             s->records.plan, chunk, scratch_fd, &events, &manifest, e);
    if (rc == 0)
        *ret = bind_dump(&manifest_type, manifest);
    bind_free(&plan_chunk_type, &chunk);
    bind_free(&manifest_type, &manifest);
    return rc;
}

static int run_audio(struct session *s, const struct message_task *task, int scratch_fd, char **ret,
                     struct err *e)
{
    struct manifest *manifest = NULL;
    const struct task_events events = {s, on_file, on_progress, on_is_cancelled};
    int rc = use_records(s, task, e);
    if (rc == 0)
        rc = audio_track_run(s->input, &s->limits, s->records.source, s->records.plan,
                             (size_t)task->audio, scratch_fd, &events, &manifest, e);
    if (rc == 0)
        *ret = bind_dump(&manifest_type, manifest);
    bind_free(&manifest_type, &manifest);
    return rc;
}

static int (*const works[])(struct session *s, const struct message_task *task, int scratch_fd,
                            char **ret, struct err *e) = {
    [WORK_PROBE] = run_probe,
    [WORK_VIDEO] = run_video,
    [WORK_AUDIO] = run_audio,
};

/* ---- tasks ---- */

static int answer(struct session *s, int rc, char *result, struct err *why, struct err *e)
{
    bool is_broken = rc < 0 && device_is_broken(s->device, why);
    const struct message_done done = {result};
    const struct message_fail fail = {(char *)err_kind_name(why->kind), why->msg, is_broken};
    pthread_mutex_lock(&s->lock); /* nobody else is left, but the channel is behind it */
    rc = rc < 0 ? send_all(s, MESSAGE_FAIL, &fail, e) : send_all(s, MESSAGE_DONE, &done, e);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static int run_task(struct session *s, struct message *m, struct err *e)
{
    const struct message_task *task = m->body;
    cleanup(free_ptr) char *result = NULL;
    struct err why = {0};
    process_title_set("session %d %s %s/%s", s->number, device_name(s->device), task->job,
                      task->task);
    s->is_cancelled = false;
    s->next_progress_us = s->next_look_us = 0;
    int rc = use_input(s, m, &why);
    if (rc == 0)
        rc = works[task->work](s, task, m->fds[1], &result, &why);
    if (rc == 0 && !result)
        rc = err_set(&why, ERR_BUG, "the result cannot be written as JSON");
    if (rc < 0)
        close_input(s); /* whatever is wrong with it, the next task starts afresh */
    process_title_set("session %d %s idle", s->number, device_name(s->device));
    if (s->is_gone)
        return err_set(e, ERR_TRANSIENT, "the agent is gone");
    return answer(s, rc, result, &why, e);
}

/* 1: goes on, 0: quit. */
static int serve_message(struct session *s, struct message *m, struct err *e)
{
    if (m->kind == MESSAGE_QUIT)
        return 0;
    if (m->kind == MESSAGE_CANCEL)
        return 1; /* of a task that was done before it came */
    if (m->kind != MESSAGE_TASK)
        return err_set(e, ERR_BUG, "an unexpected %s message", message_name(m->kind));
    int rc = run_task(s, m, e);
    return rc < 0 ? rc : 1;
}

static int serve(struct session *s, struct err *e)
{
    for (;;) {
        cleanup(message_clear) struct message m;
        int rc = receive(s, &m, e);
        if (rc == 0)
            rc = serve_message(s, &m, e);
        if (rc <= 0)
            return rc;
    }
}

/* ---- start ---- */

static int say_hello(struct session *s, const struct sandbox_state *sandbox, struct err *e)
{
    cleanup(free_ptr) char *closed = sandbox_describe(sandbox);
    const struct message_hello hello = {.protocol = PROTOCOL_VERSION,
                                        .version = (char *)TRANSCODE_VERSION,
                                        .device = (char *)device_name(s->device),
                                        .choice = (char *)device_choice(s->device),
                                        .sandbox = closed,
                                        .missing =
                                            *sandbox->missing ? (char *)sandbox->missing : NULL};
    return send_all(s, MESSAGE_HELLO, &hello, e);
}

/* Only bytes made here are parsed, so that the sandbox can still be open. */
static int test_device(const struct device *device, struct err *e)
{
    struct selftest found;
    int rc = device_is_gpu(device) ? device_selftest(device, &found, e) : 0;
    return rc < 0 ? err_prefix(e, "device %s fails its test", device_name(device)) : 0;
}

static int start(struct session *s, struct err *e)
{
    cleanup(message_clear) struct message m;
    struct sandbox_state sandbox;
    int rc = receive(s, &m, e);
    if (rc < 0)
        return rc;
    const struct message_start *start = m.body;
    if (m.kind != MESSAGE_START || start->protocol != PROTOCOL_VERSION)
        return err_set(e, ERR_BUG, "agent and session are not of one version: restart the worker");
    s->number = start->number;
    s->limits = *start->limits;
    cleanup(free_ptr) char *tag = xasprintf("session %d", s->number);
    log_init(start->log_level, tag);
    avlog_init();
    sandbox_close_descriptors(m.fds[0]);
    rc = device_open(start->device, &s->device, e);
    if (rc == 0 && start->is_test)
        rc = test_device(s->device, e);
    if (rc < 0) {
        answer(s, rc, NULL, e, NULL);
        return rc;
    }
    process_title_set("session %d %s idle", s->number, device_name(s->device));
    rc = sandbox_enter(&s->limits, m.fds[0], device_is_gpu(s->device), &sandbox, e);
    return rc < 0 ? rc : say_hello(s, &sandbox, e);
}

int session_main(struct err *e)
{
    struct session s = {.input_fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};
    s.channel = channel_new(CHANNEL_FD);
    int rc = start(&s, e);
    if (rc == 0)
        rc = serve(&s, e);
    close_input(&s);
    warm_clear(&s.warm);
    channel_free(&s.channel);
    device_close(&s.device);
    return rc;
}
