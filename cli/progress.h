/* Progress of one job for a person: on a terminal one line redrawn a few times a second, else a
 * plain line every few seconds and at the end. Thread: main. */
#pragma once
#include <stdbool.h>
#include <stdio.h>

#include "queue/job.h"

struct progress;

struct progress *progress_new(FILE *out, bool is_quiet); /* out: borrowed */
void progress_free(struct progress **p);                 /* ends an open line */
void progress_update(struct progress *p, const struct job *job);
/* A line of its own (a child's warning), above the bar; shown even when quiet. */
void progress_say(struct progress *p, const char *line);
