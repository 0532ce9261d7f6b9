/*
 * The agent's directory for files in the making: "transcode-scratch-XXXXXX" below a base, with one
 * root a session and an outbox that no session can reach. It is locked (flock) while its agent
 * lives, so that the next agent can tell the leftovers of a dead one and remove them. Thread: main.
 */
#pragma once
#include "common/err.h"

#define SCRATCH_DEPTH_MAX \
    16 /* of directories that are removed; deeper ones are left, with an error */

struct scratch;

/* base: NULL for $TMPDIR or /tmp. ERR_RESOURCE when nothing can be made there. */
int scratch_open(const char *base, struct scratch **ret, struct err *e);
void scratch_close(struct scratch **s); /* removes all of it */

const char *scratch_outbox(const struct scratch *s); /* path */
int scratch_outbox_fd(const struct scratch *s);      /* borrowed */

/* A new empty directory `name` in the scratch directory or below `parent_fd`; *ret_fd is the
 * caller's. One that is there already is emptied. */
int scratch_make(const struct scratch *s, const char *name, int *ret_fd, struct err *e);
int scratch_make_at(int parent_fd, const char *name, int *ret_fd, struct err *e);

/* Removes a file or a whole directory without following links; what is not there is fine. */
int scratch_remove_at(int parent_fd, const char *name, struct err *e);
