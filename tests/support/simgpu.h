/*
 * Running a test on the simulated GPU (tests/simgpu/). Its libraries are found through
 * LD_LIBRARY_PATH, which a process reads when it starts, and their settings are read when they are
 * loaded: so a test program starts itself again, once to have the path, and once more for every
 * case that wants settings of its own.
 *
 *     static int decode_all(void) { ... return 0; }
 *     static const struct simgpu_part parts[] = {{"decode", decode_all}, {0}};
 *
 *     int main(int argc, char **argv) { return simgpu_main(argc, argv, parts, run_all); }
 *
 * and in a test: simgpu_run("decode", (const char *[]){"SIMGPU_MODEL=T4", NULL}, &stats).
 * Thread: main only.
 */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct simgpu_part {
    const char *name;
    int (*run)(void); /* the exit code */
};

/* Puts the simulator in place and runs `tests`, or, in a process that simgpu_start has started,
 * that part. Ends with 77 and a reason where no simulator was built. `parts` may be NULL. */
int simgpu_main(int argc, char **argv, const struct simgpu_part *parts, int (*tests)(void));

/* Starts a part in a process of its own; `settings` are "NAME=value", ended by NULL. */
pid_t simgpu_start(const char *part, const char *const settings[]);

/* Waits for it. Returns the exit code, or 128 + signal. `ret_stats` (may be NULL) is what the
 * simulator counted, NULL where the process wrote none; json_decref it. */
int simgpu_wait(pid_t pid, json_t **ret_stats);

/* Both. */
int simgpu_run(const char *part, const char *const settings[], json_t **ret_stats);

/* A number of the statistics; -1 when it is not there. */
int64_t simgpu_number(const json_t *stats, const char *group, const char *name);

/* A line that names what is still alive, "" for nothing; valid until the next call. */
const char *simgpu_leaks(const json_t *stats);

/* This process's own numbers, now; 0 before the driver is loaded. The group is as in
 * tests/simgpu/stats.h: 0 counters, 1 peaks, 2 live, 3 calls. */
int64_t simgpu_own(int group, const char *name);

/* The address of a function of the simulator itself, NULL before it is loaded. */
void *simgpu_function(const char *name);
