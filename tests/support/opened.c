#include "tests/support/opened.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/strbuf.h"
#include "pipelines/media/probe.h"
#include "tests/support/scratch.h"

const char *clip_in_scratch(const char *name, const struct clip_options *options)
{
    const char *path = scratch_file(name);
    struct err e = {0};
    if (clip_make(path, options, &e) < 0)
        fail_msg("%s: %s", name, e.msg);
    return path;
}

int opened_try(struct opened *o, const char *path, const struct limits *limits)
{
    *o = (struct opened){0};
    limits_default(&o->limits);
    if (limits)
        o->limits = *limits;
    o->fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(o->fd >= 0);
    return input_open(o->fd, &o->limits, NULL, NULL, &o->in, &o->err);
}

void opened_must(struct opened *o, const char *path)
{
    if (opened_try(o, path, NULL) < 0)
        fail_msg("%s: %s", path, o->err.msg);
}

void opened_close(struct opened *o)
{
    input_close(&o->in);
    close(o->fd);
}

void packets_read(struct opened *o, int stream, struct packet_list *ret)
{
    AVPacket *pkt = av_packet_alloc();
    size_t cap = 0;
    int r;
    *ret = (struct packet_list){0};
    while ((r = input_read(o->in, pkt, &o->err)) == 0) {
        if (stream < 0 || pkt->stream_index == stream) {
            if (ret->n == cap)
                ret->v = xrealloc_array(ret->v, cap = cap ? cap * 2 : 64, sizeof *ret->v);
            ret->v[ret->n++] = (struct packet_entry){
                .stream = pkt->stream_index, .flags = pkt->flags, .pts = pkt->pts, .dts = pkt->dts};
        }
        av_packet_unref(pkt);
    }
    av_packet_free(&pkt);
    if (r != AVERROR_EOF)
        fail_msg("%s", o->err.msg);
}

void packets_free(struct packet_list *l)
{
    free(l->v);
    *l = (struct packet_list){0};
}

int probe_path(const char *path, const struct limits *limits, int segment, struct source **ret,
               struct err *e)
{
    struct opened o;
    *ret = NULL;
    int r = opened_try(&o, path, limits);
    if (r == 0)
        r = probe_source(o.in, &o.limits, (struct rational){segment, 1}, NULL, NULL, ret, &o.err);
    *e = o.err;
    opened_close(&o);
    return r;
}
