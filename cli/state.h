/*
 * The state directory of a `run`, OUTDIR/.transcode: the queue's data and the files in the making,
 * there exactly as long as the run is unfinished. It lies in OUTDIR so that finished files are
 * moved, not copied, and so that --resume needs no more than OUTDIR. Thread: main.
 */
#pragma once
#include <stdbool.h>

#include "common/err.h"

struct state {
    char *dir, *redis, *scratch; /* absolute */
    int lock_fd;                 /* held while a run lives */
    bool is_new;                 /* nothing of an earlier run was there */
};

/* Opens or makes the state of `output` (resolved). 1: the output is finished already and --resume
 * has nothing to do. ERR_USAGE, with the way out: there is an unfinished run, or a finished output,
 * and neither flag was given; or another run is at work there. */
int state_open(const char *output, bool is_resume, bool is_force, struct state *ret, struct err *e);
void state_close(struct state *s); /* keeps it on disk for --resume */
/* Removes it from the disk, too. What cannot be removed is left there and said in *e. */
int state_remove(struct state *s, struct err *e);
