#include "cli/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/format.h"
#include "cli/table.h"
#include "common/cleanup.h"
#include "dispatcher/report.h"
#include "pipelines/plan/thumbnails.h"

static void report_free(struct report **r)
{
    bind_free(&report_type, r);
}

static void add_row(struct table *t, const struct report_rendition *r)
{
    char average[FORMAT_MAX], peak[FORMAT_MAX], bytes[FORMAT_MAX];
    table_cell(t, "%s", r->name);
    if (r->kind == REPORT_VIDEO) {
        table_cell(t, "%dx%d", r->width, r->height);
        table_cell(t, "%.6g", rational_to_double(r->frame_rate));
    } else {
        table_cell(t, "%s", r->language ? r->language : "audio");
        table_cell(t, "-");
    }
    table_cell(t, "%s", r->codecs ? r->codecs : "?");
    table_cell(t, "%s", format_bps(r->average_bps, average));
    table_cell(t, "%s", format_bps(r->peak_bps, peak));
    table_cell(t, "%" PRId64, r->segments);
    table_cell(t, "%s", format_bytes(r->bytes, bytes));
}

static void print_repairs(const struct report *r)
{
    const struct {
        int64_t n;
        const char *what;
    } rows[] = {
        {r->repaired_missing, "missing"},
        {r->repaired_wrapped, "wrapped"},
        {r->repaired_jumps, "jumping"},
        {r->repaired_duplicates, "duplicate"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].n)
            printf("repaired: %" PRId64 " %s timestamps in the source\n", rows[i].n, rows[i].what);
}

static void print_speed(const struct job *job, const struct report *r)
{
    double wall_s = (double)(job->finished_us - job->created_us) / 1e6;
    char bytes[FORMAT_MAX];
    printf("%.2f s of media in %.1f s (%.2fx), %.1f s of CPU, %s", r->duration_s, wall_s,
           wall_s > 0 ? r->duration_s / wall_s : 0, r->cpu_s, format_bytes(r->bytes, bytes));
    if (r->frames_source)
        printf(", %" PRId64 " frames, decoded %.3f times", r->frames_source, r->waste);
    putchar('\n');
}

static void print_route(const struct report *r)
{
    if (!r->route || !r->chunks_fallen_back)
        return;
    printf("fallback: %" PRId64 " of %" PRId64 " chunks (decode %s, filters %s, encode %s): %s\n",
           r->chunks_fallen_back, r->chunks, route_place_names[r->route->decode],
           route_place_names[r->route->filter], route_place_names[r->route->encode], r->route->why);
}

int summary_print_report(const struct job *job, struct err *e)
{
    cleanup(report_free) struct report *r = NULL;
    if (!job->report)
        return 0;
    int kind = bind_parse(&report_type, job->report, strlen(job->report), "report", ERR_BUG, &r, e);
    if (kind < 0)
        return kind;
    cleanup(table_free) struct table *t =
        table_new("RENDITION|SIZE|>FPS|CODECS|>AVERAGE|>PEAK|>SEGMENTS|>BYTES");
    for (size_t i = 0; i < r->n_renditions; i++)
        add_row(t, &r->renditions[i]);
    table_print(t, stdout, "  ");
    print_speed(job, r);
    if (r->thumbnails)
        printf("%" PRId64 " thumbnails: %s/" THUMBNAILS_TRACK "\n", r->thumbnails,
               job->spec.output);
    print_repairs(r);
    print_route(r);
    if (r->is_truncated)
        puts("truncated: the source breaks off; this is as far as it goes");
    for (size_t i = 0; i < r->n_notes; i++)
        printf("note: %s\n", r->notes[i]);
    printf("%s/%s\n", job->spec.output, r->master);
    return 0;
}

int summary_print(const struct job *job, bool is_json, bool is_quiet, struct err *e)
{
    int r = cli_job_outcome(job, e);
    if (r < 0)
        return r;
    if (is_json)
        cli_print_json(job_to_json(job));
    else if (!is_quiet)
        return summary_print_report(job, e);
    return 0;
}
