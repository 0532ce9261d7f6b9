/* A source opened for a test, and its packets as a list. Failures fail the cmocka test. */
#pragma once
#include "pipelines/media/input.h"
#include "pipelines/plan/source.h"
#include "tests/support/clip.h"

struct opened {
    int fd;
    struct limits limits;
    struct input *in;
    struct err err;
};

/* Makes a clip named `name` in the scratch directory; returns its path. */
const char *clip_in_scratch(const char *name, const struct clip_options *options);

/* 0 or -kind, message in o->err; close in any case. limits: NULL for the defaults. */
int opened_try(struct opened *o, const char *path, const struct limits *limits);
void opened_must(struct opened *o, const char *path);
void opened_close(struct opened *o);

struct packet_list {
    struct packet_entry {
        int stream, flags;
        int64_t pts, dts;
    } * v;
    size_t n;
};

/* Reads to the end. stream < 0: all. */
void packets_read(struct opened *o, int stream, struct packet_list *ret);
void packets_free(struct packet_list *l);

/* Opens, probes with segments of `segment` seconds, closes. */
int probe_path(const char *path, const struct limits *limits, int segment, struct source **ret,
               struct err *e);
