/*
 * Processes: what this one is called, how it is asked to stop, and how it starts others. Linux.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/* --- title ----------------------------------------------------------------------------------- */

/* To be called first in main(), before anything keeps a pointer into argv or the environment: moves
 * both elsewhere, so that the title can lie where ps reads the command line. Returns the moved
 * argv, which stands in for the given one from there on (never freed). */
char **process_title_init(int argc, char **argv);

/* Shows "transcode: TEXT" in ps and top -c, and TEXT (its first 15 bytes) as the name in plain top.
 * Cut where the room ends. Without process_title_init only the latter. Thread: main, whose name
 * it sets; no allocation, no system call but prctl(PR_SET_NAME), so that it works in a sandbox. */
void process_title_set(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- being asked to stop --------------------------------------------------------------------- */

/* From here on SIGTERM, SIGINT and SIGHUP are counted instead of ending the process (SIGHUP not if
 * it was ignored, as nohup does) and interrupt blocking calls (EINTR); SIGPIPE is ignored. */
void process_signals_catch(void);

/* How many came so far: 0 go on, 1 finish what is begun, 2 or more at once. Any thread. */
int process_signal_count(void);

/* Readable (POLLIN) when a signal has come that process_signal_count_and_clear() has not yet
 * counted; for poll loops. -1 before process_signals_catch. Not to be read or closed. */
int process_signal_fd(void);
int process_signal_count_and_clear(void); /* process_signal_count(), and the fd is quiet again */

/* --- starting others ------------------------------------------------------------------------- */

struct process_fd {
    int parent; /* descriptor here; stays the caller's */
    int child;  /* its number there */
};

struct process_spawn {
    const char *path;        /* looked for on PATH where it has no '/'; NULL: this very program */
    const char *const *argv; /* NULL-terminated */
    const char *const *env;  /* NULL-terminated; NULL: as here */
    /* What the child has open. 0, 1 and 2 not named here are as in the parent (with parent = -1:
     * /dev/null); all else is closed. */
    const struct process_fd *fds;
    size_t n_fds;
    /* Sent to the child when the *thread* that spawned it ends (PR_SET_PDEATHSIG), so spawn from a
     * thread that lives as long as the process. 0: none. */
    int death_signal;
    bool is_own_group; /* a process group of its own: Ctrl-C in the terminal does not reach it */
};

/* The child starts with default signal actions and an empty signal mask. Returns once it runs the
 * new program. ERR_CONFIG: no such program, or not executable; ERR_RESOURCE: no process or memory.
 * Any thread. */
int process_spawn(const struct process_spawn *spawn, pid_t *ret_pid, struct err *e);

/* Waits up to timeout_us (0: only looks, < 0: without end) for the child to end. 1: ended and
 * reaped, *ret_status (may be NULL) as of waitpid (exit code 127 if another had reaped it); 0:
 * still running. Signals do not cut it short. */
int process_wait(pid_t pid, int64_t timeout_us, int *ret_status);

/* Sends the signal, waits up to grace_us, then SIGKILL; reaps. Returns the wait status. */
int process_stop(pid_t pid, int sig, int64_t grace_us);

/* "exit code 3", "killed by signal 9 (Killed)". */
void process_status_text(int status, char ret[64]);
