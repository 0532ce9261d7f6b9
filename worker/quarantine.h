/*
 * Which GPU gets work: one record for each that the agent's sessions use, so that a broken one does
 * not eat tasks and its neighbours go on.
 *
 *     trusted --trouble--> suspect --its test passes--> trusted
 *                             | third strike in the window
 *                             v
 *                         quarantined --the time is over--> suspect
 *
 * A suspect GPU is tested by the first session that starts on it, before any work. Strikes are
 * evidence against the GPU itself: a test that fails, a context that broke, a task that hung. One
 * job is one strike however often it fails, so that a source which breaks every GPU that touches it
 * does not take them all away. Strikes lapse with the window. After a quarantine the next strike
 * brings one of twice the length, until the GPU was well for a whole window.
 *
 * Pure: time comes from the caller (monotonic microseconds). Thread: main.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

enum {
    QUARANTINE_STRIKES = 3,
    QUARANTINE_WINDOW_US = 600000000,
    QUARANTINE_MAX_US = 2000000000, /* a bit over half an hour */
};

struct quarantine {
    int64_t first_us; /* length of the first one */
    bool is_suspect;
    int n_strikes;
    struct {
        int64_t at_us;
        char job[65]; /* "": a test */
    } strikes[QUARANTINE_STRIKES];
    int level;        /* quarantines in a row */
    int64_t until_us; /* 0: never quarantined */
    struct err why;   /* of the last trouble; kind 0: none yet */
};

/* The next session on it has to test it. */
void quarantine_suspect(struct quarantine *q, const struct err *why);
/* Evidence. job: that of the task, NULL: it was a test. True: that was one too many, and the GPU is
 * quarantined from now on. */
bool quarantine_strike(struct quarantine *q, const char *job, const struct err *why,
                       int64_t now_us);
/* Without waiting for more strikes. */
void quarantine_close(struct quarantine *q, const struct err *why, int64_t now_us);
void quarantine_passed(struct quarantine *q); /* a test */

bool quarantine_is_closed(const struct quarantine *q, int64_t now_us);
const char *quarantine_state(const struct quarantine *q, int64_t now_us); /* "working", ... */
