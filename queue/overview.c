/* The operator's view: what the queue holds, and what each tenant may. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "queue/handle.h"

/* A row of a reply as an object: the i-th key for the i-th element. A key that begins with '#' is a
 * number; one that begins with '@' a time, shown as an age in seconds. */
static json_t *row_to_json(const redisReply *row, const char *const *keys, int64_t now_us)
{
    json_t *o = json_object();
    for (size_t i = 0; keys[i] && i < row->elements; i++) {
        cleanup(free_ptr) char *text = reply_string(row, i);
        double age_s = (double)(now_us - reply_int(row, i)) / 1e6;
        if (keys[i][0] == '#')
            json_object_set_new(o, keys[i] + 1, json_integer(reply_int(row, i)));
        else if (keys[i][0] == '@')
            json_object_set_new(o, keys[i] + 1, json_real(age_s));
        else
            json_object_set_new(o, keys[i], json_string(text ? text : ""));
    }
    return o;
}

static json_t *rows_to_json(const redisReply *rows, const char *const *keys, int64_t now_us)
{
    json_t *array = json_array();
    for (size_t i = 0; rows->type == REDIS_REPLY_ARRAY && i < rows->elements; i++)
        if (rows->element[i]->type == REDIS_REPLY_ARRAY)
            json_array_append_new(array, row_to_json(rows->element[i], keys, now_us));
    return array;
}

/* "kind\nreason\nlog" of each dead letter becomes three members. */
static void split_whys(json_t *dead)
{
    size_t i;
    json_t *o;
    json_array_foreach(dead, i, o)
    {
        const char *why = json_string_value(json_object_get(o, "why"));
        const char *reason = strchrnul(why, '\n');
        const char *log = *reason ? strchrnul(reason + 1, '\n') : reason;
        json_object_set_new(o, "kind", json_stringn(why, (size_t)(reason - why)));
        json_object_set_new(o, "reason",
                            *reason ? json_stringn(reason + 1, (size_t)(log - reason - 1))
                                    : json_string(""));
        json_object_set_new(o, "log", json_string(*log ? log + 1 : ""));
        json_object_del(o, "why");
    }
}

/* What each worker told becomes members of its row. */
static void read_statuses(json_t *workers)
{
    size_t i;
    json_t *o;
    json_array_foreach(workers, i, o)
    {
        const char *text = json_string_value(json_object_get(o, "status"));
        json_t *status = json_loads(text ? text : "", 0, NULL);
        json_object_del(o, "status");
        json_object_update_missing(o, status);
        json_decref(status);
    }
}

int queue_worker_tell(struct queue *q, const char *worker, const json_t *status, int64_t keep_us,
                      struct err *e)
{
    cleanup(request_free) struct request argv = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    cleanup(free_ptr) char *text = status ? json_dumps(status, JSON_COMPACT) : NULL;
    if (text && strlen(text) > QUEUE_STATUS_MAX)
        return err_set(e, ERR_USAGE, "worker %s: its status is too long", worker);
    request_string(&argv, worker);
    request_string(&argv, text);
    request_int(&argv, text ? keep_us : 0);
    return queue_script(q, "worker", &argv, 0, &reply, e);
}

int queue_overview(struct queue *q, json_t **ret, struct err *e)
{
    enum { NOW, DEPTH, DELAYED, LEASES, DEAD, JOBS, LISTS, LISTS_N = 5 };
    static const char *const counts[] = {[DEPTH] = "depth",
                                         [DELAYED] = "delayed",
                                         [LEASES] = "leased",
                                         [DEAD] = "dead",
                                         [JOBS] = "jobs"};
    static const char *const lanes[] = {"class", "#priority", "tenant", "#tasks", "@age_s", NULL};
    static const char *const leases[] = {"task",    "worker", "#attempt",   "#frames_done",
                                         "#frames", "@age_s", "@overdue_s", NULL};
    static const char *const dead[] = {"task", "@age_s", "worker", "#attempts", "why", NULL};
    static const char *const tenants[] = {
        "tenant", "#weight", "#running_max", "#open_max", "#running", "#open", NULL};
    static const char *const workers[] = {"worker", "status", NULL};
    static const struct {
        const char *name;
        const char *const *keys;
    } lists[LISTS_N] = {{"lanes", lanes},
                        {"leases", leases},
                        {"dead_letters", dead},
                        {"tenants", tenants},
                        {"workers", workers}};
    cleanup(request_free) struct request argv = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    request_int(&argv, QUEUE_SHOW_MAX);
    int r = queue_script(q, "overview", &argv, LISTS + LISTS_N, &reply, e);
    if (r < 0)
        return r;
    json_t *o = *ret = json_object();
    for (size_t i = DEPTH; i < LISTS; i++)
        json_object_set_new(o, counts[i], json_integer(reply_int(reply, i)));
    for (size_t i = 0; i < LISTS_N; i++)
        json_object_set_new(
            o, lists[i].name,
            rows_to_json(reply->element[LISTS + i], lists[i].keys, reply_int(reply, NOW)));
    split_whys(json_object_get(o, "dead_letters"));
    read_statuses(json_object_get(o, "workers"));
    return 0;
}

static void add_setting(struct request *argv, int64_t value)
{
    if (value >= 0)
        request_int(argv, value);
    else
        request_string(argv, "");
}

static int64_t setting(const redisReply *reply, size_t i, int64_t fallback)
{
    return reply->element[i]->len ? reply_int(reply, i) : fallback;
}

int queue_tenant_set(struct queue *q, const char *name, const struct queue_tenant *set,
                     struct queue_tenant *ret, struct err *e)
{
    cleanup(request_free) struct request argv = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    int r = queue_check_name("tenant", name, e);
    if (!r && set->weight == 0)
        r = err_set(e, ERR_USAGE, "tenant %s: a weight is at least 1", name);
    if (r < 0)
        return r;
    request_string(&argv, name);
    add_setting(&argv, set->weight);
    add_setting(&argv, set->running_max);
    add_setting(&argv, set->open_max);
    r = queue_script(q, "tenant", &argv, 5, &reply, e);
    if (r < 0)
        return r;
    *ret = (struct queue_tenant){setting(reply, 0, 1), setting(reply, 1, 0),
                                 setting(reply, 2, QUEUE_OPEN_MAX), reply_int(reply, 3),
                                 reply_int(reply, 4)};
    return 0;
}
