/*
 * What agent and session say to each other: one table of message kinds, each with its direction,
 * its record and the descriptors that come with it. A message that is not in the table, comes from
 * the wrong side, or does not fit its record ends the session.
 *
 *     agent                      session
 *       start (scratch root)  ->
 *                             <-  hello | fail after the sandbox closed; the device cannot be had
 *       task (input, scratch) ->
 *                             <-  progress, file, ...
 *                             <-  done | fail  ready for the next task
 *       cancel                ->               answered by fail, or by done if that was under way
 *       quit                  ->               the session exits
 *
 * Thread: as the channel's.
 */
#pragma once
#include "common/bind.h"
#include "common/rational.h"
#include "pipelines/media/limits.h"
#include "worker/channel.h"

#define PROTOCOL_VERSION 1

enum message_kind {
    MESSAGE_START,
    MESSAGE_TASK,
    MESSAGE_CANCEL,
    MESSAGE_QUIT,
    MESSAGE_HELLO,
    MESSAGE_PROGRESS,
    MESSAGE_FILE,
    MESSAGE_DONE,
    MESSAGE_FAIL,
};

enum message_side { SIDE_AGENT, SIDE_SESSION };

enum work { WORK_PROBE, WORK_VIDEO, WORK_AUDIO }; /* what a session can do */
extern const char *const work_names[];

struct message_start { /* one descriptor: the scratch root, all of the file system it will see */
    int protocol, number;
    int log_level; /* enum log_level */
    char *device;
    bool is_test; /* the device is suspect: to be tested first */
    struct limits *limits;
};

struct message_hello {
    int protocol;
    char *version;
    char *device;  /* the one it has: "auto" is decided by the session */
    char *choice;  /* of "auto": which and why, for people; NULL: the device was named */
    char *sandbox; /* what is in force: "landlock 7, seccomp, rlimits" */
    char *missing; /* what could not be had, and why; NULL: nothing */
};

struct message_task { /* two descriptors: the input, and the task's directory below the root */
    char *job, *task, *tenant;
    int work;                      /* enum work */
    int64_t audio;                 /* WORK_AUDIO: index into the plan's audio */
    char *source, *plan, *payload; /* JSON; NULL where the work needs none */
    struct rational segment;       /* WORK_PROBE: the grid to measure borders for */
};

struct message_progress {
    int64_t frames_in, frames_out; /* or bytes read, or samples: anything that grows */
};

struct message_file {
    char *path; /* "<folder>/<file>" below the task's directory */
    int64_t bytes;
};

struct message_done {
    char *result; /* JSON: struct source or struct manifest */
};

struct message_fail {
    char *kind; /* err_kind_name */
    char *message;
    bool is_broken; /* the device is of no more use to this process */
};

struct message {
    enum message_kind kind;
    void *body; /* the kind's struct message_*, NULL for cancel and quit; owned */
    int fds[CHANNEL_FDS_MAX];
    size_t n_fds;
};
void message_clear(struct message *m); /* frees, closes; safe on a zeroed one */

const char *message_name(enum message_kind kind);

/* body: the kind's struct, borrowed; fds: as many as the table says, borrowed. Returns as
 * channel_send. */
int message_send(struct channel *c, enum message_kind kind, const void *body, const int *fds,
                 struct err *e);

/* Next message that `from` sent: 1 and *ret, 0: none yet, or -kind as channel_receive; ERR_BUG
 * also for a message that is not well formed. */
int message_receive(struct channel *c, enum message_side from, struct message *ret, struct err *e);
