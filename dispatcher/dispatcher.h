/*
 * The dispatcher: leases plan and publish tasks, reaps lapsed leases. Ordinary idempotent work, so
 * any number of dispatchers may run. No media code. Thread: main.
 */
#pragma once
#include "common/err.h"

struct dispatcher_options {
    const char *redis_url;
};

/* Serves until SIGTERM or SIGINT. */
int dispatcher_run(const struct dispatcher_options *options, struct err *e);
