#include "queue/job.h"

#include <stdlib.h>
#include <string.h>

const char *const job_state_names[] = {"probing", "planning", "running",   "publishing",
                                       "done",    "failed",   "cancelled", NULL};

const char *const task_kind_names[] = {"probe", "plan", "video", "audio", "publish", NULL};

enum task_class task_kind_class(enum task_kind kind)
{
    static const enum task_class classes[] = {
        [TASK_PROBE] = TASK_CLASS_WORKER,       [TASK_PLAN] = TASK_CLASS_DISPATCHER,
        [TASK_VIDEO] = TASK_CLASS_WORKER,       [TASK_AUDIO] = TASK_CLASS_WORKER,
        [TASK_PUBLISH] = TASK_CLASS_DISPATCHER,
    };
    return classes[kind];
}

static const struct bind_field job_spec_fields[] = {
    BIND(struct job_spec, id, BIND_STRING),
    BIND(struct job_spec, input, BIND_STRING, .is_required = true),
    BIND(struct job_spec, output, BIND_STRING, .is_required = true),
    BIND(struct job_spec, profile, BIND_STRING, .is_required = true),
    BIND(struct job_spec, options, BIND_STRING),
    BIND(struct job_spec, tenant, BIND_STRING),
    BIND(struct job_spec, priority, BIND_INT, .min = 0, .max = 100),
    BIND(struct job_spec, deadline_us, BIND_INT64),
    BIND(struct job_spec, keep_us, BIND_INT64),
    {0},
};
const struct bind_struct job_spec_type = {
    .name = "job", .size = sizeof(struct job_spec), .fields = job_spec_fields};

void job_free(struct job **job)
{
    struct job *j = *job;
    if (!j)
        return;
    free(j->spec.id);
    free(j->spec.input);
    free(j->spec.output);
    free(j->spec.profile);
    free(j->spec.options);
    free(j->spec.tenant);
    free(j->reason);
    free(j->source);
    free(j->plan);
    free(j->report);
    free(j);
    *job = NULL;
}

/* JSON text as the tree it stands for; text that is none stays text, so that nothing is hidden. */
static void set_tree(json_t *o, const char *key, const char *text)
{
    json_t *tree = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    if (text && !tree)
        tree = json_string(text);
    if (tree)
        json_object_set_new(o, key, tree);
}

static void set_string(json_t *o, const char *key, const char *text)
{
    json_object_set_new(o, key, text ? json_string(text) : json_null());
}

json_t *job_to_json(const struct job *job)
{
    json_t *o = json_object();
    set_string(o, "id", job->spec.id);
    set_string(o, "state", job_state_names[job->state]);
    set_string(o, "tenant", job->spec.tenant);
    json_object_set_new(o, "priority", json_integer(job->spec.priority));
    set_string(o, "input", job->spec.input);
    set_string(o, "output", job->spec.output);
    set_string(o, "reason_kind", job->reason_kind ? err_kind_name(job->reason_kind) : NULL);
    set_string(o, "reason", job->reason);
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {
        {"created_us", job->created_us},
        {"updated_us", job->updated_us},
        {"finished_us", job->finished_us},
        {"deadline_us", job->deadline_us},
        {"tasks", job->tasks},
        {"tasks_done", job->tasks_done},
        {"tasks_running", job->tasks_running},
        {"frames_total", job->frames_total},
        {"frames_done", job->frames_done},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        json_object_set_new(o, numbers[i].key, json_integer(numbers[i].value));
    set_tree(o, "profile", job->spec.profile);
    set_tree(o, "options", job->spec.options);
    set_tree(o, "source", job->source);
    set_tree(o, "plan", job->plan);
    set_tree(o, "report", job->report);
    return o;
}
