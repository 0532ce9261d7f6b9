/* The inside of common/storage.h: what one kind of storage does. Each function gets the URL or path
 * as the user wrote it; keys have been checked. Returns and errors as in common/storage.h. */
#pragma once
#include "common/storage.h"

struct storage_backend {
    int (*open)(const char *url, int *ret_fd, int64_t *ret_size_bytes, struct err *e);
    int (*put_file)(const char *base, const char *key, const char *path, struct err *e);
    int (*put_bytes)(const char *base, const char *key, const void *bytes, size_t n, struct err *e);
    void (*sweep)(const char *base, const char *folder);
    int (*stat)(const char *base, const char *key, int64_t *ret_size_bytes, struct err *e);
    int (*prepare)(const char *base, struct err *e);
    int (*resolve)(const char *url, char **ret, struct err *e);
};

extern const struct storage_backend storage_file; /* storage_file.c */
