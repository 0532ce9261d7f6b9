/*
 * Files that a session announces, taken out of its reach. The session is not trusted: the path must
 * have one exact form, no link is followed, and the file is moved to the agent's outbox *before* it
 * is looked at, so that nothing can be exchanged between the look and the delivery. Thread: any.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define OUTFILE_NAME_MAX 128 /* of the folder, and of the file */

/* Splits "<folder>/<file>" (both [A-Za-z0-9._-], not beginning with a dot, the file a segment's
 * name). Returns whether it has that form. */
bool outfile_split(const char *path, char ret_folder[OUTFILE_NAME_MAX + 1],
                   char ret_file[OUTFILE_NAME_MAX + 1]);

/* Moves `path` below task_fd to `name` in outbox_fd: a regular file with one name, of exactly
 * `bytes`. ERR_BUG: the session announced what it must not, or what is not there. */
int outfile_claim(int task_fd, const char *path, int64_t bytes, int outbox_fd, const char *name,
                  struct err *e);
