/* A directory for the files of one test program, gone when it exits. Thread: main only. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* The path of `name` in it (at most 8 results are valid at a time). */
const char *scratch_file(const char *name);
/* A file of these bytes there; returns its path. */
const char *scratch_write(const char *name, const void *bytes, size_t n);
/* The first `permille` of `from` as a new file. */
const char *scratch_cut(const char *name, const char *from, int permille);
/* Files one after the other. */
const char *scratch_join(const char *name, const char *a, const char *b);
int64_t scratch_size(const char *path);
