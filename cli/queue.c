#include <inttypes.h>
#include <stdio.h>

#include "cli/format.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "common/cleanup.h"

struct queue_verb_options {
    struct cli_common common;
    const char *redis;
};

static int64_t number(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static const char *age(const json_t *o, char ret[FORMAT_MAX])
{
    return format_clock(json_real_value(json_object_get(o, "age_s")), ret);
}

static void lane_row(struct table *t, const json_t *o)
{
    char buf[FORMAT_MAX];
    table_cell(t, "%s", text(o, "class"));
    table_cell(t, "%" PRId64, number(o, "priority"));
    table_cell(t, "%s", text(o, "tenant"));
    table_cell(t, "%" PRId64, number(o, "tasks"));
    table_cell(t, "%s", age(o, buf));
}

static void lease_row(struct table *t, const json_t *o)
{
    char buf[FORMAT_MAX];
    int64_t frames = number(o, "frames");
    table_cell(t, "%s", text(o, "task"));
    table_cell(t, "%s", text(o, "worker"));
    table_cell(t, "%" PRId64, number(o, "attempt"));
    table_cell(t, "%" PRId64 " %%", frames ? 100 * number(o, "frames_done") / frames : 0);
    table_cell(t, "%s", age(o, buf));
}

static void dead_row(struct table *t, const json_t *o)
{
    char buf[FORMAT_MAX];
    table_cell(t, "%s", text(o, "task"));
    table_cell(t, "%s", text(o, "worker"));
    table_cell(t, "%" PRId64, number(o, "attempts"));
    table_cell(t, "%s", age(o, buf));
    table_cell(t, "%s", text(o, "reason"));
}

static void tenant_row(struct table *t, const json_t *o)
{
    table_cell(t, "%s", text(o, "tenant"));
    table_cell(t, "%" PRId64, number(o, "open"));
    table_cell(t, "%" PRId64, number(o, "running"));
}

/* A row for each of its devices. */
static void worker_row(struct table *t, const json_t *o)
{
    size_t i;
    json_t *d;
    json_array_foreach(json_object_get(o, "devices"), i, d)
    {
        table_cell(t, "%s", text(o, "worker"));
        table_cell(t, "%" PRId64 " of %" PRId64, number(o, "at_work"), number(o, "sessions"));
        table_cell(t, "%s", text(d, "device"));
        table_cell(t, "%s", text(d, "state"));
        table_cell(t, "%s", text(d, "reason"));
    }
}

static const struct {
    const char *key, *title, *columns;
    void (*row)(struct table *t, const json_t *o);
} lists[] = {
    {"lanes", "ready", "FOR|>PRIORITY|TENANT|>TASKS|>OLDEST", lane_row},
    {"leases", "leased", "TASK|WORKER|>ATTEMPT|>DONE|>FOR", lease_row},
    {"dead_letters", "dead letters", "TASK|WORKER|>ATTEMPTS|>SINCE|REASON", dead_row},
    {"tenants", "tenants", "TENANT|>OPEN JOBS|>RUNNING TASKS", tenant_row},
    {"workers", "workers", "WORKER|>AT WORK|DEVICE|STATE|LAST TROUBLE", worker_row},
};

static void print_all(const json_t *all)
{
    printf("%" PRId64 " live tasks: %" PRId64 " leased, %" PRId64 " delayed; %" PRId64
           " dead letters; %" PRId64 " jobs known\n",
           number(all, "depth"), number(all, "leased"), number(all, "delayed"), number(all, "dead"),
           number(all, "jobs"));
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const json_t *rows = json_object_get(all, lists[i].key);
        cleanup(table_free) struct table *t = table_new(lists[i].columns);
        size_t k;
        json_t *o;
        if (!json_array_size(rows))
            continue;
        json_array_foreach((json_t *)rows, k, o) lists[i].row(t, o);
        printf("\n%s\n", lists[i].title);
        table_print(t, stdout, "  ");
    }
}

static int queue_verb_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)argc, (void)argv;
    const struct queue_verb_options *o = arg;
    cleanup(queue_close) struct queue *q = NULL;
    json_t *all = NULL;
    int r;
    if ((r = cli_queue_open(o->redis, &q, e)) < 0 || (r = queue_overview(q, &all, e)) < 0)
        return r;
    if (o->common.is_json) {
        cli_print_json(all);
    } else {
        print_all(all);
        json_decref(all);
    }
    return 0;
}

static const struct opt options[] = {CLI_OPT_REDIS(struct queue_verb_options), {0}};

const struct opt_verb verb_queue = {
    .name = "queue",
    .positionals = "",
    .summary = "show what waits, what runs where, and what was given up",
    .details =
        "At most 500 rows of each kind; the counts in the first line are of all. A dead letter "
        "is the task that failed its job; with --json its last log lines are shown, too.",
    .opts = options,
    .size = sizeof(struct queue_verb_options),
    .run = queue_verb_run,
};
