/* What the tests of the plan share: sources and profiles written as YAML. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/bind.h"
#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/plan/plan.h"

static inline void *fixture_read(const struct bind_struct *type, const char *text)
{
    void *object = NULL;
    struct err e = {0};
    if (bind_parse(type, text, strlen(text), "fixture", ERR_BUG, &object, &e) < 0)
        fail_msg("%s", e.msg);
    return object;
}

__attribute__((format(printf, 1, 2), unused)) static struct source *fixture_source(const char *fmt,
                                                                                   ...)
{
    struct strbuf b = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vprintf(&b, fmt, ap);
    va_end(ap);
    struct source *source = fixture_read(&source_type, b.s);
    strbuf_free(&b);
    if (!rational_is_set(source->origin_base))
        source->origin_base = source->video ? source->video->time_base : (struct rational){1, 1000};
    return source;
}

/* A constant-rate video of n frames in 1/90000. */
__attribute__((unused)) static struct source *fixture_video(int width, int height,
                                                            struct rational rate, int64_t frames)
{
    struct rational base = {1, 90000}, interval = {rate.den, rate.num};
    int64_t end = rational_rescale(frames, interval, base, ROUND_NEAREST);
    return fixture_source(
        "{video: {width: %d, height: %d, time_base: 1/90000, end: %lld, "
        "frames: %lld, frame_rate: %lld/%lld, is_cfr: true, max_interval: %lld}, "
        "duration: %lld/90000}",
        width, height, (long long)end, (long long)frames, (long long)rate.num, (long long)rate.den,
        (long long)rational_rescale(1, interval, base, ROUND_CEIL), (long long)end);
}

/* Borders of a source with a keyframe every `gop` frames, measured for segments of d. */
__attribute__((unused)) static void fixture_borders(struct source *source, int64_t gop,
                                                    struct rational d)
{
    struct source_video *v = source->video;
    struct rational interval = {v->frame_rate.den, v->frame_rate.num};
    v->border_segment = d;
    v->borders = xrealloc_array(
        NULL, 2 + (size_t)rational_rescale(v->frames, interval, d, ROUND_CEIL), sizeof *v->borders);
    for (int64_t k = 1;; k++) {
        int64_t first = rational_rescale(k, d, interval, ROUND_CEIL); /* frame at the border */
        if (first >= v->frames)
            return;
        int64_t key = first - first % gop;
        v->borders[v->n_borders++] = (struct source_border){
            .key_pts = v->start + rational_rescale(key, interval, v->time_base, ROUND_NEAREST),
            .frames = first - key};
    }
}

__attribute__((unused)) static struct plan *fixture_plan(const char *profile_yaml,
                                                         const struct source *source)
{
    struct profile *profile = fixture_read(&profile_type, profile_yaml);
    struct plan *plan = NULL;
    struct err e = {0};
    if (plan_make(profile, source, &(struct plan_options){.segments = -1}, &plan, &e) < 0)
        fail_msg("%s", e.msg);
    bind_free(&profile_type, &profile);
    return plan;
}

static inline void fixture_free_source(struct source **s)
{
    bind_free(&source_type, s);
}

static inline void fixture_free_plan(struct plan **p)
{
    bind_free(&plan_type, p);
}

static inline void fixture_free_profile(struct profile **p)
{
    bind_free(&profile_type, p);
}
