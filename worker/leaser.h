/*
 * The thread that waits for tasks: it owns a queue connection of its own, since a lease may block.
 * The agent says how many tasks it wants now, and takes leases out of a mailbox.
 */
#pragma once
#include "queue/queue.h"

struct leaser;

struct leaser_options {
    const char *redis_url;
    const char *worker; /* name of this agent in the queue */
    int64_t lease_us;
};

struct leaser_item {     /* what comes: a lease, or why there will be no more */
    struct lease *lease; /* owned; NULL: see err */
    struct err err;
};
void leaser_item_free(void *item);

/* Opens its connection, then starts the thread. The URL is copied. */
int leaser_start(const struct leaser_options *options, struct leaser **ret, struct err *e);
/* Waits for the thread (about a second at most); leases that nobody took are in the mailbox until
 * leaser_free. */
void leaser_stop(struct leaser *l);
void leaser_free(struct leaser **l);

int leaser_fd(const struct leaser *l);             /* readable while something is in */
struct leaser_item *leaser_take(struct leaser *l); /* NULL: nothing */
/* How many more tasks can be begun now, leases in the mailbox included. Sets, not adds; a lease
 * that is being asked for at this moment may still come. */
void leaser_want(struct leaser *l, int n);
