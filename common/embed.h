/* Files compiled into the binary by embed_files() in common/embed.cmake. */
#pragma once
#include <stddef.h>

struct embed_file {
    const char *name; /* the file's stem; NULL ends the table */
    const char *text; /* zero-terminated */
    size_t size;      /* bytes, without the zero */
};

/* One table for each call of embed_files(); immutable, any thread. */
extern const struct embed_file queue_lua[];
extern const struct embed_file profile_builtin[];
