/*
 * One session as the agent sees it: a child process, the channel to it, and the last lines it wrote
 * to stderr. The child gets /dev/null, a pipe for stderr and the channel, an environment of a few
 * harmless names, a process group of its own (a terminal's Ctrl-C is the agent's business), and
 * dies with the thread that started it. Thread: main.
 */
#pragma once
#include <poll.h>

#include "worker/protocol.h"

struct session_process;

struct session_process_options {
    const char *exe; /* NULL: this program */
    int number;
    const char *device;
    bool is_test; /* it tests the device first */
    const struct limits *limits;
    int scratch_fd; /* its scratch root; borrowed */
};

/* Starts it and sends the start message; it is ready once its hello came. */
int session_process_start(const struct session_process_options *options,
                          struct session_process **ret, struct err *e);

/* Descriptors to poll, and what to do when poll is back. */
enum { SESSION_POLLFDS = 2 };
void session_process_pollfds(struct session_process *p, struct pollfd ret[SESSION_POLLFDS]);
/* Reads stderr, sends what waits to be sent. */
void session_process_pump(struct session_process *p, const struct pollfd fds[SESSION_POLLFDS]);

/* As message_receive, message_send: -ERR_TRANSIENT when the process is gone. */
int session_process_receive(struct session_process *p, struct message *ret, struct err *e);
int session_process_send(struct session_process *p, enum message_kind kind, const void *body,
                         const int *fds, struct err *e);

int session_process_pid(const struct session_process *p);
/* Kills it if it still runs and waits for it. Returns how it ended: "killed by signal 9 (Killed)",
 * "exit code 1"; borrowed. */
const char *session_process_kill(struct session_process *p);
void session_process_forget_log(struct session_process *p);            /* before a new task */
const char *session_process_log_tail(const struct session_process *p); /* borrowed, may be "" */
void session_process_quit(struct session_process *p); /* asks it to; only free may follow */
/* Asks it to quit, and kills it when it does not within a moment. */
void session_process_free(struct session_process **p);
