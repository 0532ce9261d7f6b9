/*
 * Where sources are read from and outputs are written to, chosen by URL. One row of the table in
 * storage.c for each scheme; today: plain paths and file://. Objects appear whole or not at all.
 * Keys are relative, without "." components or hidden names; others are ERR_BUG. Errors: ERR_USAGE
 * an unknown scheme or malformed URL; ERR_RESOURCE a full disk; ERR_TRANSIENT an I/O error or a
 * server away; ERR_CONFIG what else cannot be written. Thread: any; no shared state. The agent and
 * the dispatcher use it, a session never.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* Opens a source for reading; *ret_fd is close-on-exec, seekable, the caller's. Refuses what is not
 * a regular file. ERR_INPUT: missing, unreadable, not a file, empty. */
int storage_open(const char *url, int *ret_fd, int64_t *ret_size_bytes, struct err *e);

/* Moves the finished local file `path` to `key` ("v1080p/0001.m4s") below the output `base`: a
 * rename where both lie on one file system, else copy, fsync, rename. The local file is gone
 * afterwards. An object of that name is replaced atomically. */
int storage_put_file(const char *base, const char *key, const char *path, struct err *e);

int storage_put_bytes(const char *base, const char *key, const void *bytes, size_t n,
                      struct err *e);

/* Removes what writers into `folder` of the output ("": the output itself) left when they were
 * killed. For when all that is wanted has been written: who still writes there fails. */
void storage_sweep(const char *base, const char *folder);

/* 1 there (size to *ret_size_bytes, may be NULL), 0 not there, <0 error. */
int storage_stat(const char *base, const char *key, int64_t *ret_size_bytes, struct err *e);

/* Creates `base` (and its parents) and proves that it can be written to. */
int storage_prepare(const char *base, struct err *e);

/* An absolute, normalised form of a path or URL, so that it means the same in every process (caller
 * frees). */
int storage_resolve(const char *url, char **ret, struct err *e);
