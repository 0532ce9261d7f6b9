/*
 * The commit gate (I12): what a leased task is to make, and whether what a session says it made may
 * be committed. The session is not trusted: its result is parsed against the record's table and
 * checked against the plan, and every file that it names must have been announced by this very
 * attempt with that many bytes. Pure; thread: one at a time.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "queue/queue.h"
#include "worker/protocol.h"

struct gate;

struct gate_pins { /* for queue_commit: n_pairs pairs of name, value; owned */
    char **strings;
    size_t n_pairs;
};
void gate_pins_clear(struct gate_pins *p);

/* Reads the lease's records (profile, plan, payload); the lease must stay. ERR_BUG when they are
 * not what the kind of task needs. */
int gate_open(const struct lease *lease, struct gate **ret, struct err *e);
void gate_free(struct gate **g);

enum work gate_work(const struct gate *g);
struct rational gate_segment(const struct gate *g); /* probe: that the profile asks for */
size_t gate_audio(const struct gate *g);            /* audio: index into the plan's */

/* Notes a file that is on its way to the output; its key is "<folder>/<file>". ERR_BUG: no folder
 * of this task's, or announced twice. ERR_INPUT: more than max_output_bytes in all. */
int gate_add_file(struct gate *g, const char *key, int64_t bytes, int64_t max_output_bytes,
                  struct err *e);

/* 0 and *ret_pins, or ERR_BUG naming the first fault. */
int gate_check(struct gate *g, const char *result, struct gate_pins *ret_pins, struct err *e);
