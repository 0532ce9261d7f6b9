/* Files compiled into the binary by embed_files() in common/embed.cmake. */
#pragma once
#include <stddef.h>

struct embed_file {
    const char *name; /* the file's stem; NULL ends the table */
    const char *text; /* zero-terminated */
    size_t size;      /* bytes, without the zero */
};

/* One table for each call of embed_files() or embed_list(); immutable, any thread. */
extern const struct embed_file queue_lua[];
extern const struct embed_file profile_builtin[];
extern const struct embed_file kernel_ptx[]; /* empty: built without a CUDA compiler */
