#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/format.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "common/cleanup.h"

#define STATES "probing planning running publishing done failed cancelled"

enum { PAGE = 100, MAX = 10000 };

struct list_options {
    struct cli_common common;
    const char *redis, *state, *tenant, *after;
    int64_t max;
};

struct listing {
    struct table *table; /* for people */
    json_t *array;       /* for machines */
    int64_t n, max;
};

static void listing_free(struct listing *l)
{
    table_free(&l->table);
    json_decref(l->array);
}

static void add_row(struct table *t, const struct job *job)
{
    char created[FORMAT_MAX];
    bool has_frames = job->frames_total > 0;
    int64_t done = has_frames ? job->frames_done : job->tasks_done;
    int64_t all = has_frames ? job->frames_total : job->tasks;
    table_cell(t, "%s", job->spec.id);
    table_cell(t, "%s", job_state_names[job->state]);
    table_cell(t, "%" PRId64 " %%", job->state == JOB_DONE ? 100 : all ? 100 * done / all : 0);
    table_cell(t, "%s", format_utc(job->created_us, created));
    table_cell(t, "%s", job->reason ? job->reason : job->spec.input);
}

static int add_job(void *arg, const struct job *job)
{
    struct listing *l = arg;
    if (l->array) {
        json_array_append_new(l->array, job_to_json(job));
    } else {
        add_row(l->table, job);
    }
    return ++l->n >= l->max;
}

static int check_state(const char *state, struct err *e)
{
    for (int i = 0; state && job_state_names[i]; i++)
        if (!strcmp(state, job_state_names[i]))
            return 0;
    return state ? err_set(e, ERR_USAGE, "--state %s: expected one of " STATES, state) : 0;
}

/* The cursor behind a job that was listed. */
static int find_cursor(struct queue *q, const char *after, int64_t *ret, struct err *e)
{
    cleanup(job_free) struct job *job = NULL;
    int r = after ? queue_job_get(q, after, &job, e) : 0;
    if (r < 0)
        return err_prefix(e, "--after");
    *ret = job ? job->created_us : 0;
    return 0;
}

static int list_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)argc, (void)argv;
    const struct list_options *o = arg;
    cleanup(queue_close) struct queue *q = NULL;
    cleanup(listing_free) struct listing l = {.max = o->max};
    const struct queue_filter filter = {o->state, o->tenant};
    int64_t cursor = 0;
    int r = check_state(o->state, e);
    if (!r)
        r = cli_queue_open(o->redis, &q, e);
    if (!r)
        r = find_cursor(q, o->after, &cursor, e);
    if (r < 0)
        return r;
    if (o->common.is_json)
        l.array = json_array();
    else
        l.table = table_new("ID|STATE|>DONE|CREATED|INPUT OR REASON");
    do {
        if ((r = queue_job_list(q, &cursor, PAGE, &filter, add_job, &l, e)) < 0)
            return r;
    } while (cursor && l.n < l.max);
    if (l.array)
        cli_print_json(take(l.array));
    else
        table_print(l.table, stdout, "");
    return 0;
}

static const struct opt options[] = {
    CLI_OPT_REDIS(struct list_options),
    {.name = "max",
     .letter = 'n',
     .type = OPT_INT,
     .offset = offsetof(struct list_options, max),
     .argument = "N",
     .fallback = "50",
     .min = 1,
     .max = MAX,
     .help = "show at most N jobs, the newest"},
    {.name = "state",
     .letter = 's',
     .type = OPT_STRING,
     .offset = offsetof(struct list_options, state),
     .argument = "STATE",
     .complete = STATES,
     .help = "only jobs in this state: " STATES},
    {.name = "tenant",
     .letter = 't',
     .type = OPT_STRING,
     .offset = offsetof(struct list_options, tenant),
     .argument = "NAME",
     .help = "only jobs of this tenant"},
    {.name = "after",
     .letter = 'a',
     .type = OPT_STRING,
     .offset = offsetof(struct list_options, after),
     .argument = "ID",
     .help = "go on after this job, the last one of the page before"},
    {0},
};

const struct opt_verb verb_list = {
    .name = "list",
    .positionals = "",
    .summary = "list the jobs, newest first",
    .opts = options,
    .size = sizeof(struct list_options),
    .run = list_run,
};
