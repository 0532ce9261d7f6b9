/*
 * A place for one session: its scratch root, the process that is in it now, and the task that it
 * runs. A process that ends is replaced, with back-off while it ends before it was ready.
 * Thread: main.
 */
#pragma once
#include "worker/quarantine.h"
#include "worker/run.h"
#include "worker/session_process.h"

struct slot_device { /* what several slots share */
    char *name;      /* "auto" until the first session tells which */
    bool has_worked; /* some session had it */
    struct quarantine quarantine;
};

struct slot {
    int number;
    struct slot_device *device; /* borrowed */
    int root_fd;
    struct session_process *process; /* NULL: to be started at start_at_us */
    bool is_ready;                   /* its hello came */
    bool is_testing;                 /* it was told to test its device */
    bool has_more;                   /* messages that were received and not yet handled */
    struct run *run;                 /* borrowed; NULL: idle */
    char *job, *tenant;              /* of the last task in this process; NULL: none yet */
    unsigned early_ends;             /* in a row, before hello */
    int64_t start_at_us, ready_by_us;
};

struct slot_options {
    const char *exe;
    const struct limits *limits;
};

int slot_open(struct slot *s, int number, struct slot_device *device, const struct scratch *scratch,
              struct err *e);
void slot_close(struct slot *s);

/* Starts the process when that is due. -kind: it could not be, and will be tried again. */
int slot_start(struct slot *s, const struct slot_options *options, int64_t now_us, struct err *e);
void slot_end(struct slot *s, int64_t now_us); /* kills the process */

/* Ready for a task; not so while its device is suspect, whoever tests it. */
bool slot_is_free(const struct slot *s);
/* How well a free slot suits a lease: < 0 not without a new process (a session is never used again
 * for another tenant), more the more it has open already. */
int slot_fitness(const struct slot *s, const struct lease *lease);
/* Gives the run to the session. */
int slot_assign(struct slot *s, struct run *r, int64_t now_us, struct err *e);
