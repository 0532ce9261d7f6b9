/*
 * One leased task from the lease to what the queue is told in the end.
 *
 *     waiting -> working -> delivering -> settling -> over
 *                   \-> stopping ------------^
 *
 * waiting: for a session. working: in one. stopping: told to stop, not yet quiet. delivering: done,
 * files on their way to the output. settling: the queue has to be told; repeated while Redis is
 * away. Thread: main.
 */
#pragma once
#include "queue/queue.h"
#include "worker/delivery.h"
#include "worker/gate.h"
#include "worker/lease_keeper.h"
#include "worker/scratch.h"

enum run_state { RUN_WAITING, RUN_WORKING, RUN_STOPPING, RUN_DELIVERING, RUN_SETTLING, RUN_OVER };

enum run_verdict {               /* what the queue is told */
                   VERDICT_NONE, /* nothing: the lease is another's now */
                   VERDICT_COMMIT,
                   VERDICT_FAIL, /* why, log_tail */
                   VERDICT_RELEASE,
};

struct run {
    struct run *next;
    uint64_t id;
    struct lease *lease;
    struct lease_keeper keeper;
    enum run_state state;
    enum run_verdict verdict;
    struct err why;
    char *log_tail;
    char *result;
    struct gate *gate;
    struct gate_pins pins;
    char name[32];       /* of its directory in the session's root */
    int root_fd, dir_fd; /* root_fd: the session's, borrowed */
    unsigned n_files, n_delivering;
    int64_t begun_us;
    int64_t act_at_us; /* stopping: when to kill; settling: when to try again */
};

/* Takes the lease over. */
struct run *run_new(uint64_t id, struct lease *lease, const struct lease_keeper_limits *limits,
                    int64_t now_us);
void run_free(struct run **r); /* removes its directory */

/* Opens the input and the directory below root_fd, and fills *ret_task (borrows from the run) and
 * the two descriptors of the task message; ret_fds[0] is the caller's, ret_fds[1] the run's. */
int run_begin(struct run *r, int root_fd, struct message_task *ret_task, int ret_fds[2],
              int64_t now_us, struct err *e);

/* A file that its session announced: checked, moved to the outbox, given to the delivery. */
int run_take_file(struct run *r, const struct message_file *file, int64_t max_output_bytes,
                  const struct scratch *scratch, struct delivery *delivery, struct err *e);
/* Its session is done: through the gate, then delivering or settling. */
int run_finish(struct run *r, const char *result, int64_t now_us, struct err *e);
/* One of its files has arrived (or not: returns the error). */
int run_delivered(struct run *r, const struct delivery_item *item, int64_t now_us, struct err *e);

/* Decides the end, unless it is decided already by the queue (a lost lease stays lost). */
void run_decide(struct run *r, enum run_verdict verdict, const struct err *why,
                const char *log_tail);
/* The session is quiet, or there was none: the queue can be told. */
void run_settle_from(struct run *r, int64_t now_us);
/* Tells the queue. 0: over, or decided anew and still to be told; -ERR_TRANSIENT: try again. */
int run_settle(struct run *r, struct queue *q, struct err *e);

/* frames_done for the queue: of video tasks only. */
int64_t run_frames_done(const struct run *r);
