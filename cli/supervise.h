/*
 * The children of `run`: other verbs of this same program, each in a process group of its own (a
 * Ctrl-C reaches only the parent, which stops them in order) and dying with the parent. What they
 * say on stderr is passed on line by line. Thread: main.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

struct supervisor;

/* say: gets each line a child writes, and the supervisor's own remarks. */
struct supervisor *supervisor_new(void (*say)(void *arg, const char *line), void *arg);
/* Kills what is left. */
void supervisor_free(struct supervisor **s);

/* Starts argv (argv[0]: the verb's name, kept as the child's name; copied; NULL at the end). */
int supervisor_start(struct supervisor *s, const char *const *argv, struct err *e);
/* Passes on lines and looks for deaths. 0: all live; 1: some died, and supervisor_restart may start
 * them again; -kind: one died that would die again, or too often. Never blocks. */
int supervisor_check(struct supervisor *s, struct err *e);
int supervisor_restart(struct supervisor *s, struct err *e);
/* Asks the last started to end, then the one before it, and so on; kills each that has not ended in
 * time. is_urgent (may be NULL) is polled meanwhile: when true, kills at once. */
void supervisor_stop(struct supervisor *s, int64_t each_us, bool (*is_urgent)(void));
