/* What a job has come to, for a person: where the master is, the renditions as they were measured,
 * speed, waste and notes. Thread: main. */
#pragma once
#include <stdbool.h>

#include "queue/job.h"

/* Prints the ended job (with is_json as JSON; nothing when is_quiet and not is_json) and returns
 * its outcome: 0, or -kind with the reason in *e. A failed job prints nothing: the error says it,
 * and with --json main prints that as JSON. */
int summary_print(const struct job *job, bool is_json, bool is_quiet, struct err *e);
/* The table of renditions and the notes of a stored report. */
int summary_print_report(const struct job *job, struct err *e);
