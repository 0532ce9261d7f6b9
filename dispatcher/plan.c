/*
 * The plan task: source and profile in, plan and tasks out; nothing but arithmetic. The tasks are
 * streamed into the queue one by one, so that a long film costs no more memory than its chunks.
 *
 * Audio goes first: a track is one task of its own length that no other session can share, so that
 * started last it would be the tail everybody waits for.
 */
#include "pipelines/plan/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "dispatcher/task.h"

static void source_free(struct source **s)
{
    bind_free(&source_type, s);
}

static void profile_free(struct profile **p)
{
    bind_free(&profile_type, p);
}

static void plan_free(struct plan **p)
{
    bind_free(&plan_type, p);
}

static void options_free(struct plan_options **o)
{
    bind_free(&plan_options_type, o);
}

struct task_stream {
    const struct plan_chunk *chunks;
    size_t n_chunks, n_audio, next;
    double frame_cost; /* of one source frame */
    int64_t audio_cost;
    char id[32];
    char *payload;
};

/* What tenants are charged: the pixels that are read and made, in megapixel-seconds at 30 frames a
 * second; a track of sound as if each second of it were a picture of 20,000 pixels. */
static void estimate_costs(struct task_stream *s, const struct plan *plan,
                           const struct source *source)
{
    double pixels = source->video ? (double)source->video->width * source->video->height : 0;
    for (size_t i = 0; i < plan->n_renditions; i++)
        pixels += (double)plan->renditions[i].width * plan->renditions[i].height;
    s->frame_cost = pixels / 30e6;
    s->audio_cost = (int64_t)(rational_to_double(source->duration) * 0.02);
}

static int task_next(void *arg, struct task_spec *ret)
{
    struct task_stream *s = arg;
    free(s->payload);
    s->payload = NULL;
    size_t i = s->next++;
    if (i < s->n_audio) {
        snprintf(s->id, sizeof s->id, "audio/%zu", i);
        s->payload = xasprintf("{\"audio\": %zu}", i);
        *ret = (struct task_spec){s->id, TASK_AUDIO, s->payload, 0, s->audio_cost};
        return 1;
    }
    i -= s->n_audio;
    if (i >= s->n_chunks)
        return 0;
    snprintf(s->id, sizeof s->id, "video/%06" PRId64, s->chunks[i].index);
    s->payload = bind_dump(&plan_chunk_type, &s->chunks[i]);
    *ret = (struct task_spec){s->id, TASK_VIDEO, s->payload, s->chunks[i].frames,
                              (int64_t)((double)s->chunks[i].frames * s->frame_cost)};
    return 1;
}

static int parse(const struct bind_struct *type, const char *text, const char *what, void *ret,
                 struct err *e)
{
    if (!text)
        return err_set(e, ERR_BUG, "%s: the job has none", what);
    return bind_parse(type, text, strlen(text), what, ERR_BUG, ret, e);
}

int dispatcher_plan(struct queue *q, const struct lease *lease, struct err *e)
{
    cleanup(source_free) struct source *source = NULL;
    cleanup(profile_free) struct profile *profile = NULL;
    cleanup(options_free) struct plan_options *options = NULL;
    cleanup(plan_free) struct plan *plan = NULL;
    cleanup(free_ptr) struct plan_chunk *chunks = NULL;
    cleanup(free_ptr) char *text = NULL;
    struct task_stream stream = {0};
    int r;
    if ((r = parse(&source_type, lease->source, "source", &source, e)) < 0 ||
        (r = parse(&profile_type, lease->spec.profile, "profile", &profile, e)) < 0 ||
        (r = parse(&plan_options_type, lease->spec.options, "options", &options, e)) < 0 ||
        (r = plan_make(profile, source, options, &plan, e)) < 0 ||
        (r = plan_chunks(plan, source, options->chunk_seconds, &chunks, &stream.n_chunks, e)) < 0)
        return r;
    stream.chunks = chunks;
    stream.n_audio = plan->n_audio;
    estimate_costs(&stream, plan, source);
    text = bind_dump(&plan_type, plan);
    r = queue_commit_plan(q, lease, text, task_next, &stream, e);
    free(stream.payload);
    return r;
}
