#include "worker/protocol.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"

const char *const work_names[] = {"probe", "video", "audio", NULL};

static const struct bind_field start_fields[] = {
    BIND(struct message_start, protocol, BIND_INT, .is_required = true),
    BIND(struct message_start, number, BIND_INT, .is_required = true),
    BIND(struct message_start, log_level, BIND_INT, .min = LOG_ERROR, .max = LOG_DEBUG),
    BIND(struct message_start, device, BIND_STRING, .is_required = true),
    BIND(struct message_start, is_test, BIND_BOOL),
    BIND_SUB(struct message_start, limits, limits_type, .is_required = true),
    {0},
};
static const struct bind_struct start_type = {"a start message", sizeof(struct message_start),
                                              start_fields, NULL};

static const struct bind_field hello_fields[] = {
    BIND(struct message_hello, protocol, BIND_INT, .is_required = true),
    BIND(struct message_hello, version, BIND_STRING, .is_required = true),
    BIND(struct message_hello, device, BIND_STRING, .is_required = true),
    BIND(struct message_hello, choice, BIND_STRING),
    BIND(struct message_hello, sandbox, BIND_STRING, .is_required = true),
    BIND(struct message_hello, missing, BIND_STRING),
    {0},
};
static const struct bind_struct hello_type = {"a hello message", sizeof(struct message_hello),
                                              hello_fields, NULL};

static const struct bind_field task_fields[] = {
    BIND(struct message_task, job, BIND_STRING, .is_required = true),
    BIND(struct message_task, task, BIND_STRING, .is_required = true),
    BIND(struct message_task, tenant, BIND_STRING),
    BIND(struct message_task, work, BIND_ENUM, .is_required = true, .names = work_names),
    BIND(struct message_task, audio, BIND_INT64, .min = 0, .max = INT32_MAX),
    BIND(struct message_task, source, BIND_STRING),
    BIND(struct message_task, plan, BIND_STRING),
    BIND(struct message_task, payload, BIND_STRING),
    BIND(struct message_task, segment, BIND_RATIONAL),
    {0},
};
static const struct bind_struct task_type = {"a task message", sizeof(struct message_task),
                                             task_fields, NULL};

static const struct bind_field progress_fields[] = {
    BIND(struct message_progress, frames_in, BIND_INT64, .is_required = true),
    BIND(struct message_progress, frames_out, BIND_INT64, .is_required = true),
    {0},
};
static const struct bind_struct progress_type = {
    "a progress message", sizeof(struct message_progress), progress_fields, NULL};

static const struct bind_field file_fields[] = {
    BIND(struct message_file, path, BIND_STRING, .is_required = true),
    BIND(struct message_file, bytes, BIND_INT64, .is_required = true, .min = 0, .max = INT64_MAX),
    {0},
};
static const struct bind_struct file_type = {"a file message", sizeof(struct message_file),
                                             file_fields, NULL};

static const struct bind_field done_fields[] = {
    BIND(struct message_done, result, BIND_STRING, .is_required = true),
    {0},
};
static const struct bind_struct done_type = {"a done message", sizeof(struct message_done),
                                             done_fields, NULL};

static const struct bind_field fail_fields[] = {
    BIND(struct message_fail, kind, BIND_STRING, .is_required = true),
    BIND(struct message_fail, message, BIND_STRING, .is_required = true),
    BIND(struct message_fail, is_broken, BIND_BOOL),
    {0},
};
static const struct bind_struct fail_type = {"a fail message", sizeof(struct message_fail),
                                             fail_fields, NULL};

static const struct {
    const char *name;
    enum message_side from;
    size_t n_fds;
    const struct bind_struct *type; /* NULL: no body */
} kinds[] = {
    [MESSAGE_START] = {"start", SIDE_AGENT, 1, &start_type},
    [MESSAGE_TASK] = {"task", SIDE_AGENT, 2, &task_type},
    [MESSAGE_CANCEL] = {"cancel", SIDE_AGENT, 0, NULL},
    [MESSAGE_QUIT] = {"quit", SIDE_AGENT, 0, NULL},
    [MESSAGE_HELLO] = {"hello", SIDE_SESSION, 0, &hello_type},
    [MESSAGE_PROGRESS] = {"progress", SIDE_SESSION, 0, &progress_type},
    [MESSAGE_FILE] = {"file", SIDE_SESSION, 0, &file_type},
    [MESSAGE_DONE] = {"done", SIDE_SESSION, 0, &done_type},
    [MESSAGE_FAIL] = {"fail", SIDE_SESSION, 0, &fail_type},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *const side_names[] = {"agent", "session"};

const char *message_name(enum message_kind kind)
{
    return (unsigned)kind < KINDS ? kinds[kind].name : "unknown";
}

void message_clear(struct message *m)
{
    if (m->body)
        bind_free(kinds[m->kind].type, &m->body);
    for (size_t i = 0; i < m->n_fds; i++)
        close_fd(&m->fds[i]);
    m->n_fds = 0;
}

int message_send(struct channel *c, enum message_kind kind, const void *body, const int *fds,
                 struct err *e)
{
    json_t *json = json_object();
    json_object_set_new(json, "kind", json_string(kinds[kind].name));
    if (kinds[kind].type)
        json_object_set_new(json, "body", bind_write(kinds[kind].type, body));
    cleanup(free_ptr) char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (!text)
        return err_set(e, ERR_BUG, "a %s message cannot be written as JSON", kinds[kind].name);
    return channel_send(c, text, strlen(text), fds, kinds[kind].n_fds, e);
}

/* The row of a message's kind, or -1. */
static int find_kind(const struct value *v, enum message_side from)
{
    const struct value *name = value_get(v, "kind");
    for (int k = 0; name && name->kind == VALUE_SCALAR && k < KINDS; k++)
        if (kinds[k].from == from && !strcmp(kinds[k].name, name->scalar))
            return k;
    return -1;
}

static int parse(struct channel_frame *f, enum message_side from, struct message *ret,
                 struct err *e)
{
    cleanup(value_free) struct value *v = NULL;
    int rc = value_parse(f->text, f->n, "message", ERR_BUG, &v, e);
    if (rc < 0)
        return rc;
    int k = v->kind == VALUE_MAP ? find_kind(v, from) : -1;
    if (k < 0)
        return err_set(e, ERR_BUG, "a message that no %s may send", side_names[from]);
    if (f->n_fds != kinds[k].n_fds)
        return err_set(e, ERR_BUG, "a %s message came with %zu descriptors, not %zu", kinds[k].name,
                       f->n_fds, kinds[k].n_fds);
    ret->kind = k;
    if (!kinds[k].type)
        return 0;
    const struct value *body = value_get(v, "body");
    if (!body)
        return err_set(e, ERR_BUG, "a %s message without a body", kinds[k].name);
    return bind_read(kinds[k].type, body, kinds[k].name, ERR_BUG, NULL, NULL, &ret->body, e);
}

int message_receive(struct channel *c, enum message_side from, struct message *ret, struct err *e)
{
    *ret = (struct message){.fds = {-1, -1}};
    cleanup(channel_frame_clear) struct channel_frame f;
    int rc = channel_receive(c, &f, e);
    if (rc <= 0)
        return rc;
    rc = parse(&f, from, ret, e);
    if (rc < 0)
        return rc;
    memcpy(ret->fds, f.fds, sizeof ret->fds);
    ret->n_fds = f.n_fds;
    f.n_fds = 0;
    return 1;
}
