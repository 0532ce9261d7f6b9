/*
 * The records of the queue. A job is one source to one output under one profile; its tasks are what
 * workers and dispatchers lease. Owner: x_free, or bind_free with the type.
 */
#pragma once
#include "common/bind.h"

enum job_state {
    JOB_PROBING,
    JOB_PLANNING,
    JOB_RUNNING,
    JOB_PUBLISHING,
    JOB_DONE,
    JOB_FAILED,
    JOB_CANCELLED
};
extern const char *const job_state_names[]; /* "probing", ..., NULL at the end */

enum task_kind { TASK_PROBE, TASK_PLAN, TASK_VIDEO, TASK_AUDIO, TASK_PUBLISH };
extern const char *const task_kind_names[];
enum task_class { TASK_CLASS_WORKER /* probe, video, audio */, TASK_CLASS_DISPATCHER };
enum task_class task_kind_class(enum task_kind kind);

struct job_spec {         /* what submit stores; immutable */
    char *id;             /* [A-Za-z0-9._-]{1,64}; generated where the user gave none */
    char *input, *output; /* resolved (storage_resolve) */
    char *profile;        /* the whole profile as JSON text */
    char *options;        /* struct plan_options as JSON text, opaque to the queue */
    char *tenant;         /* [A-Za-z0-9._-]{1,64}; NULL: "default" */
    int priority;         /* 0 to 100: the higher goes first; 50 is normal */
    int64_t deadline_us;  /* from its submission: a job that has not ended then fails; 0: none */
    int64_t keep_us;      /* the job is forgotten so long after its end; 0: QUEUE_KEEP_US */
};
extern const struct bind_struct job_spec_type;

struct job { /* a snapshot */
    struct job_spec spec;
    enum job_state state;
    enum err_kind reason_kind;
    char *reason;                                /* of failure or cancellation; NULL */
    int64_t created_us, updated_us, finished_us; /* Redis wall time; 0: not yet */
    int64_t deadline_us;                         /* likewise; 0: none */
    int64_t tasks, tasks_done, tasks_running;
    int64_t frames_total,
        frames_done;     /* source frames of all video tasks, incl. running progress */
    char *source, *plan; /* JSON text or NULL */
    char *report;        /* JSON the publisher stored, or NULL */
};
void job_free(struct job **job);
json_t *job_to_json(const struct job *job); /* for --json; source, plan, report as objects */

struct task_spec { /* one task to be created */
    char *id;      /* within the job: "probe", "plan", "video/0012", "audio/0", "publish" */
    enum task_kind kind;
    char *payload;  /* JSON text: the kind's parameters */
    int64_t weight; /* source frames, for progress */
    int64_t cost;   /* what its tenant is charged: estimated megapixel-seconds; at least 1 */
};
