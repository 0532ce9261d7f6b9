/*
 * Finished files in a folder of scratch: each is written under a temporary name, renamed, then
 * announced through events->file, so that it is there whole or not at all. Names hold a hash of
 * the bytes: two attempts can write one name only with the same bytes. Thread: one at a time.
 */
#pragma once
#include <stddef.h>

#include "pipelines/media/task.h"

enum { OUTPUT_HASH_DIGITS = 16 };

struct output_folder {
    const char *name; /* borrowed */
    int scratch_fd;
    int64_t max_bytes; /* of all files together, over it is ERR_INPUT; 0: no limit */
    const struct task_events *events;
    int64_t bytes; /* written so far */
};

/* Makes the folder where it is not there yet. */
int output_make_folder(const struct output_folder *f, struct err *e);
/* Writes "<stem>-<hash>.<ext>"; *ret_name: owned by the caller. */
int output_write(struct output_folder *f, const char *stem, const char *ext, const void *data,
                 size_t size, char **ret_name, struct err *e);

/* The first digits of the SHA-256 in hex, zero-terminated. */
void output_hash(const void *data, size_t size, char ret[OUTPUT_HASH_DIGITS + 1]);
