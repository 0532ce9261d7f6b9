/*
 * The queue: typed wrappers around one Lua script each (queue/lua/, embedded). State lives in Redis
 * under one hash tag; every change is one script, called by SHA with EVAL as the fallback for
 * NOSCRIPT; every script may be repeated safely. Thread: a struct queue is one connection for one
 * thread.
 *
 * Errors: ERR_TRANSIENT when Redis is away or answers LOADING, READONLY, CLUSTERDOWN, MISCONF (the
 * call has reconnected and retried with back-off inside `retry_us` first); ERR_CONFIG when the
 * server must not be used (maxmemory-policy, too old); ERR_BUG on a reply that cannot be.
 */
#pragma once
#include <stdbool.h>

#include "queue/job.h"

struct queue;

/* Defaults, and limits of what a caller may store (ERR_USAGE beyond them). */
#define QUEUE_LEASE_US     30000000
#define QUEUE_RETRY_US     10000000
#define QUEUE_MAX_ATTEMPTS 5
#define QUEUE_KEEP_US      (7 * 86400 * 1000000LL)
#define QUEUE_TENANT       "default"
#define QUEUE_PRIORITY     50 /* normal; low is 25, high is 75 */
#define QUEUE_PRIORITY_MAX 100
#define QUEUE_OPEN_MAX     100000    /* open jobs of a tenant that has no cap of its own */
#define QUEUE_ID_MAX       64        /* characters of the id of a job or task, of a tenant's name */
#define QUEUE_URL_MAX      8192      /* bytes of input, output */
#define QUEUE_PROFILE_MAX  (1 << 20) /* bytes of profile, options */
#define QUEUE_RESULT_MAX   (16 << 20) /* bytes of one result or plan */
#define QUEUE_LOG_MAX      8192       /* bytes of a log tail that are kept */
#define QUEUE_REAP_MAX     1000       /* tasks that one queue_reap moves */

struct queue_options { /* zero: the default */
    int64_t lease_us;
    int64_t retry_us; /* how long a call retries while Redis is away */
    int max_attempts; /* of the tasks of the jobs submitted here */
    int wake_fd;      /* while it is readable, no call waits for a task or a change; the caller's */
};

/* url: see queue/address.h. */
int queue_open(const char *url, const struct queue_options *options, struct queue **ret,
               struct err *e);
void queue_close(struct queue **q);

/* Creates the job and its probe task, or finds the job of that id. 1: created, 0: it was there
 * already (same spec), ERR_USAGE: the id is taken by a different spec, ERR_RESOURCE: busy, the
 * tenant has as many jobs open as it may. spec->id NULL: generated into *ret_id (caller frees) in
 * every case. */
int queue_submit(struct queue *q, const struct job_spec *spec, char **ret_id, struct err *e);

struct lease {
    char *job, *task; /* ids */
    enum task_kind kind;
    int64_t token;     /* fencing number, strictly increasing per queue */
    int attempt;       /* from 1; counted at lease */
    bool is_exclusive; /* lost twice before: run it alone in the worker */
    char *payload;     /* JSON */
    struct job_spec spec;
    char *source, *plan; /* JSON text or NULL */
    int64_t created;     /* of the job: tells it from another of the same id */
};
void lease_free(struct lease **lease);

enum lease_state { LEASE_HELD = 0, LEASE_LOST = 1, LEASE_CANCELLED = 2 };

/* Claims the next task of the class, blocking up to wait_us (0: do not block). 1 and *ret, or 0:
 * none. Does a little of queue_reap's work in passing. Signals do not end the wait: callers that
 * must notice them give a wake_fd. */
int queue_lease(struct queue *q, enum task_class class, const char *worker, int64_t wait_us,
                struct lease **ret, struct err *e);

/* The rest return an enum lease_state (≥ 0) or -kind. A stale token changes nothing and is
 * LEASE_LOST; a task whose job was cancelled is LEASE_CANCELLED: stop and release. */
int queue_renew(struct queue *q, const struct lease *l, int64_t frames_done, struct err *e);

/* Stores the result exactly once, and in the same script creates what follows: probe → plan task,
 * last of video/audio → publish task, publish → job done (result is the report). `pins`: pairs
 * "name", "value" ("init/1080p", hash): the first commit of a name pins its value; a different
 * value makes the commit ERR_DEVICE and changes nothing. n_pins pairs. Repeating a commit that went
 * through is HELD. */
int queue_commit(struct queue *q, const struct lease *l, const char *result_json,
                 const char *const *pins, size_t n_pins, struct err *e);

/* Commit of a plan task: stores the plan and enqueues the tasks, in batches with bounded memory;
 * the job turns to running when the last batch is in. Safe to repeat from the start. next(arg,
 * &spec) yields task i (borrowed until the next call), returns 1, or 0 at the end. */
int queue_commit_plan(struct queue *q, const struct lease *l, const char *plan_json,
                      int (*next)(void *arg, struct task_spec *ret), void *arg, struct err *e);

/* Gives a failed task back: permanent kinds (err_is_permanent) fail the job at once; others are
 * delayed with back-off until max_attempts, then fail the job. worker and the log tail are kept
 * with it. */
int queue_fail(struct queue *q, const struct lease *l, const struct err *why, const char *log_tail,
               struct err *e);
int queue_release(struct queue *q, const struct lease *l,
                  struct err *e); /* no attempt is charged */

/* Gives back every lease of the queue, no attempt charged: for a queue whose workers are all known
 * to be dead. Returns how many, or -kind. */
int queue_release_all(struct queue *q, struct err *e);

/* Any process, any time: requeues lapsed leases and promotes delayed tasks, at most `max`; returns
 * how many, or -kind. */
int queue_reap(struct queue *q, int max, struct err *e);

int queue_cancel(struct queue *q, const char *id, struct err *e); /* 1 cancelled, 0 already ended */
int queue_retry(struct queue *q, const char *id,
                struct err *e); /* failed or cancelled → goes on; 1/0 */
int queue_job_get(struct queue *q, const char *id, struct job **ret,
                  struct err *e); /* ERR_USAGE: no such job */
struct queue_filter {
    const char *state, *tenant; /* NULL: any */
};
/* Newest first, paged: *cursor 0 to begin, 0 at the end; filter may be NULL. fn returns non-zero to
 * stop. The large fields are left out: spec.profile, spec.options, source, plan, report are NULL.
 * 0 or -kind. */
int queue_job_list(struct queue *q, int64_t *cursor, int max, const struct queue_filter *filter,
                   int (*fn)(void *arg, const struct job *job), void *arg, struct err *e);
/* Results of the committed video or audio tasks in the order of the plan, fetched in batches; fn
 * gets id and JSON text, may use `q`, and returns 0, non-zero to stop, -kind to fail. 0 or -kind.
 * (The results of probe, plan and publish are in struct job.) */
int queue_results(struct queue *q, const char *job, enum task_kind kind,
                  int (*fn)(void *arg, const char *task, const char *result, struct err *e),
                  void *arg, struct err *e);
/* Sleeps until the job changes or wait_us passed. A change since queue_job_get of the same job on
 * the same queue counts, so that get, wait, get, ... misses nothing. 0 or -kind. */
int queue_job_wait(struct queue *q, const char *id, int64_t wait_us, struct err *e);

/* Live tasks (XLEN of the depth stream): what KEDA scales on. */
int64_t queue_depth(struct queue *q, struct err *e);

/* What a worker says of itself, kept for so long; NULL: it ends. status: what operators see in
 * queue_overview, at most QUEUE_STATUS_MAX bytes of JSON; borrowed. 0 or -kind. */
#define QUEUE_STATUS_MAX 65536
int queue_worker_tell(struct queue *q, const char *worker, const json_t *status, int64_t keep_us,
                      struct err *e);

/* What the queue holds now: counts of all, and up to QUEUE_SHOW_MAX each of lanes (class, priority,
 * tenant, tasks, age of the oldest job), leases (task, worker, attempt, progress, age), dead
 * letters (task, worker, reason, log), tenants and workers (worker, and what it told). *ret: the
 * caller's. */
#define QUEUE_SHOW_MAX 500
int queue_overview(struct queue *q, json_t **ret, struct err *e);

struct queue_tenant {
    int64_t weight;      /* of its share among the tenants of one priority; 1 */
    int64_t running_max; /* worker tasks at once; 0: no cap */
    int64_t open_max;    /* jobs that have not ended; beyond them submit says busy */
    int64_t running, open;
};
/* Sets the first three where they are >= 0, and reads all. */
int queue_tenant_set(struct queue *q, const char *name, const struct queue_tenant *set,
                     struct queue_tenant *ret, struct err *e);
