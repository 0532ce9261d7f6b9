/* Private to queue/: what a struct queue is, and how its calls read replies. */
#pragma once
#include "queue/queue.h"
#include "queue/script.h"

/* The hash tag: all keys begin with it, so that a cluster keeps them in one slot. */
#define QUEUE_PREFIX "{transcode}"

struct queue {
    struct connection *connection;
    struct script_set *scripts;
    struct queue_options options;
    char client[33];    /* random; names this connection's calls to the scripts */
    uint64_t ops;       /* numbers those of submit, cancel, retry */
    uint64_t leases;    /* numbers those of lease */
    bool is_unsettled;  /* the last lease call ended without an answer: ask with the same number */
    bool is_woken;      /* the lease call to come follows a token of the wake list */
    int64_t kept_us;    /* when this connection last did housekeeping */
    struct lease *last; /* the job's part of the last lease whose plan was there: not sent again */
    char *seen_job;     /* of the last snapshot */
    int64_t seen_us;    /* when that was updated: what queue_job_wait waits past */
};

/* Runs a script whose reply must be an array of at least min_elements. */
int queue_script(struct queue *q, const char *name, const struct request *argv, size_t min_elements,
                 redisReply **ret, struct err *e);
/* The i-th element as a number (also where it came as text), or as an owned string (NULL: nil). */
int64_t reply_int(const redisReply *array, size_t i);
char *reply_string(const redisReply *array, size_t i);

/* ERR_USAGE: not 1 to QUEUE_ID_MAX of [A-Za-z0-9._-]. what: "job id", "tenant". */
int queue_check_name(const char *what, const char *name, struct err *e);
