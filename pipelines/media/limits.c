#include "pipelines/media/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/strbuf.h"

#define LIMIT(name, fallback_, help_)                                                            \
    BIND(struct limits, name, BIND_INT64, .fallback = fallback_, .min = 1, .max = INT64_MAX / 2, \
         .help = help_)

static const struct bind_field fields[] = {
    LIMIT(max_pixels, "35389440", "pixels of one decoded picture (8192x4320)"),
    LIMIT(max_streams, "64", "streams in the container"),
    LIMIT(max_frames, "10368000", "video frames in the source (24 h at 120 fps)"),
    LIMIT(max_duration_s, "86400", "measured length of the source, seconds"),
    LIMIT(max_output_bytes, "214748364800", "output of one task, bytes"),
    LIMIT(max_task_s, "21600", "wall time of one task, seconds"),
    LIMIT(max_silence_s, "60", "wall time of one task without progress, seconds"),
    LIMIT(max_memory_bytes, "8589934592", "address space of a session on top of its start, bytes"),
    LIMIT(max_header_bytes, "33554432", "bytes read before the streams are known"),
    {0},
};

const struct bind_struct limits_type = {"limits", sizeof(struct limits), fields, NULL};

static int64_t *field_of(struct limits *l, const struct bind_field *f)
{
    return (int64_t *)(void *)((char *)l + f->offset);
}

void limits_default(struct limits *ret)
{
    for (const struct bind_field *f = fields; f->key; f++)
        *field_of(ret, f) = strtoll(f->fallback, NULL, 10);
}

static int unknown_name(const char *name, size_t n, struct err *e)
{
    struct strbuf names = {0};
    for (const struct bind_field *f = fields; f->key; f++)
        strbuf_printf(&names, "%s%s", f == fields ? "" : ", ", f->key);
    int r = err_set(e, ERR_USAGE, "limit %.*s is unknown; there are: %s", (int)n, name, names.s);
    strbuf_free(&names);
    return r;
}

int limits_set(struct limits *l, const char *name_value, struct err *e)
{
    const char *value = strchr(name_value, '=');
    if (!value)
        return err_set(e, ERR_USAGE, "limit '%s': expected NAME=NUMBER", name_value);
    size_t n = (size_t)(value++ - name_value);
    for (const struct bind_field *f = fields; f->key; f++) {
        if (strlen(f->key) != n || strncmp(f->key, name_value, n) != 0)
            continue;
        char *end;
        errno = 0;
        long long number = strtoll(value, &end, 10);
        if (errno || end == value || *end || number < f->min || number > f->max)
            return err_set(e, ERR_USAGE, "limit %s: expected a whole number from 1, got '%s'",
                           f->key, value);
        *field_of(l, f) = number;
        return 0;
    }
    return unknown_name(name_value, n, e);
}
