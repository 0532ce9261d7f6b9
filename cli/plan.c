#include "pipelines/plan/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/format.h"
#include "cli/source.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "common/cleanup.h"

struct plan_verb_options {
    struct cli_common common;
    const char *device;
    struct cli_job_opts job;
    struct opt_list limits;
};

struct planning { /* all that is shown */
    struct profile *profile;
    struct source *source;
    char *path;
    struct plan *plan;
    struct plan_chunk *chunks;
    size_t n_chunks;
    char *command;
};

static void planning_free(struct planning *p)
{
    bind_free(&profile_type, &p->profile);
    bind_free(&source_type, &p->source);
    bind_free(&plan_type, &p->plan);
    free(p->path);
    free(p->chunks);
    free(p->command);
}

static void print_renditions(const struct plan *plan)
{
    char rate[FORMAT_MAX];
    cleanup(table_free) struct table *t = table_new("RENDITION|SIZE|>FPS|ENCODER|>BIT RATE");
    for (size_t i = 0; i < plan->n_renditions; i++) {
        const struct plan_rendition *r = &plan->renditions[i];
        table_cell(t, "%s", r->name);
        table_cell(t, "%dx%d", r->width, r->height);
        table_cell(t, rational_is_set(r->fps) ? "%.6g" : "source", rational_to_double(r->fps));
        table_cell(t, "%s", plan->encoder);
        table_cell(t, "%s", r->bitrate ? format_bps(r->bitrate, rate) : "by quality");
    }
    for (size_t i = 0; i < plan->n_audio; i++) {
        const struct plan_audio *a = &plan->audio[i];
        table_cell(t, "%s", a->name);
        table_cell(t, "%d ch", a->channels);
        table_cell(t, "%d Hz", a->sample_rate);
        table_cell(t, "%s", a->encoder);
        table_cell(t, "%s", a->bitrate ? format_bps(a->bitrate, rate) : "by quality");
    }
    table_print(t, stdout, "");
    if (plan->thumbnails)
        printf("thumbnails of %dx%d, every %g s\n", plan->thumbnails->width,
               plan->thumbnails->height, rational_to_double(plan->thumbnails->every));
}

static void print_chunks(const struct planning *p)
{
    cleanup(table_free) struct table *t = table_new(">CHUNK|>FROM SEGMENT|>TO|>FRAMES|SEEK TO");
    for (size_t i = 0; i < p->n_chunks; i++) {
        const struct plan_chunk *c = &p->chunks[i];
        table_cell(t, "%" PRId64, c->index);
        table_cell(t, "%" PRId64, c->first_segment);
        if (c->end_segment == INT64_MAX)
            table_cell(t, "end");
        else
            table_cell(t, "%" PRId64, c->end_segment - 1);
        table_cell(t, "%" PRId64, c->frames);
        if (c->seek_pts == INT64_MIN)
            table_cell(t, "start");
        else
            table_cell(t, "%.6f s", (double)c->seek_pts * rational_to_double(p->plan->time_base));
    }
    table_print(t, stdout, "");
}

/* Only a GPU makes it worth telling. */
static void print_route(const struct route *r, const struct route_gpu *gpu)
{
    const char *const names[] = {[ROUTE_CPU] = "cpu", [ROUTE_GPU] = gpu ? gpu->device : ""};
    if (r && gpu)
        printf("\ndecode on %s, filters on %s, encode on %s (%s)\n", names[r->decode],
               names[r->filter], names[r->encode], gpu->model);
}

static void print_planning(const struct planning *p)
{
    print_renditions(p->plan);
    if (p->n_chunks) {
        putchar('\n');
        print_chunks(p);
    }
    print_route(p->plan->route, p->source->gpu);
    printf("\ntasks: probe, plan, %zu video, %zu audio, publish\n", p->n_chunks, p->plan->n_audio);
    for (size_t i = 0; i < p->plan->n_notes; i++)
        printf("note: %s\n", p->plan->notes[i]);
    for (size_t i = 0; i < p->source->n_notes; i++)
        printf("note: %s\n", p->source->notes[i]);
    printf("\nmuch the same, in one process:\n%s\n", p->command);
}

static json_t *planning_to_json(const struct planning *p)
{
    json_t *chunks = json_array();
    for (size_t i = 0; i < p->n_chunks; i++)
        json_array_append_new(chunks, bind_write(&plan_chunk_type, &p->chunks[i]));
    return json_pack("{s:o, s:o, s:o, s:{s:i, s:i, s:I, s:I, s:i}, s:s}", "source",
                     bind_write(&source_type, p->source), "plan", bind_write(&plan_type, p->plan),
                     "chunks", chunks, "tasks", "probe", 1, "plan", 1, "video",
                     (json_int_t)p->n_chunks, "audio", (json_int_t)p->plan->n_audio, "publish", 1,
                     "command", p->command);
}

static int plan_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)argc;
    const struct plan_verb_options *o = arg;
    struct plan_options options;
    cleanup(planning_free) struct planning p = {0};
    int r;
    if ((r = cli_profile_and_options(&o->job, &p.profile, &options, e)) < 0 ||
        (r = source_measure(argv[0], o->device, &o->limits, p.profile->segment, &p.source, &p.path,
                            e)) < 0 ||
        (r = plan_make(p.profile, p.source, &options, &p.plan, e)) < 0 ||
        (r = plan_chunks(p.plan, p.source, options.chunk_seconds, &p.chunks, &p.n_chunks, e)) < 0)
        return r;
    p.command = plan_ffmpeg_command(p.plan, p.source, p.path, "OUT");
    if (o->common.is_json)
        cli_print_json(planning_to_json(&p));
    else
        print_planning(&p);
    return 0;
}

static const struct opt options_table[] = {
    CLI_OPTS_JOB(struct plan_verb_options),
    CLI_OPT_DEVICE(struct plan_verb_options),
    CLI_OPT_LIMIT(struct plan_verb_options),
    {0},
};

const struct opt_verb verb_plan = {
    .name = "plan",
    .positionals = "INPUT",
    .min_args = 1,
    .max_args = 1,
    .summary = "show what would be made of a source, and do nothing",
    .details = "Renditions, chunks, tasks, and the ffmpeg command that comes nearest to it.",
    .opts = options_table,
    .size = sizeof(struct plan_verb_options),
    .run = plan_run,
};
