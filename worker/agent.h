/*
 * The agent: the worker's parent process. Leases tasks, feeds sessions, renews leases while they
 * make progress, ships finished files to the output, commits or fails. Never parses media. Thread:
 * main.
 */
#pragma once
#include <stdbool.h>

#include "common/err.h"
#include "pipelines/media/limits.h"

struct agent_options {
    const char *redis_url;
    const char *device;  /* "cpu", "cuda:1", "auto", or several: "cuda:0,cuda:1" */
    const char *scratch; /* directory for the sessions' files; NULL: $TMPDIR or /tmp */
    int sessions;        /* 0: one a core */
    double grace_s;      /* SIGTERM: time for running tasks to finish; < 0: default 25 */
    double quarantine_s; /* a GPU's first; 0: with no GPU left the agent ends */
    struct limits limits;
    double lease_s;          /* of a task, renewed after a third; 0: default 30 */
    const char *session_exe; /* program that is run as `session`; NULL: this one */
};

#define AGENT_SESSIONS_MAX 64
#define AGENT_DEVICES_MAX  16

/* Catches signals itself (process_signals_catch). Serves until SIGTERM or SIGINT (drain: stop
 * leasing, finish within grace_s, release the rest), a second one: at once. Returns 0 when drained
 * idle, ERR_CANCELLED when work was given back (exit code 6 is the verb's business), or -kind:
 * ERR_DEVICE when no device ever worked, or with quarantine_s 0 when none is left. */
int agent_run(const struct agent_options *options, struct err *e);

/* Runs one probe in a sandboxed session on `device` without a queue, for `transcode probe` and
 * `plan`. segment: seconds, as rational_parse. *ret_source: JSON text of struct source, caller
 * frees. */
int agent_probe(const char *input, const char *device, const struct limits *limits,
                const char *segment, char **ret_source, struct err *e);
