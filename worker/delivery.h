/*
 * The thread that moves finished files to the output, so that a slow store delays neither sessions
 * nor leases. Files go in the order they were put in. Thread: main.
 */
#pragma once
#include <stdint.h>

#include "common/err.h"

struct delivery;

struct delivery_item {
    uint64_t run;            /* whose file it is, for the caller */
    char *base, *key, *path; /* as storage_put_file; owned */
    int rc;                  /* 0, or -kind and err */
    struct err err;
};
void delivery_item_free(void *item);

int delivery_start(struct delivery **ret, struct err *e);
/* Finishes what is under way, then stops; what was not begun is removed with the scratch. */
void delivery_free(struct delivery **d);

/* Takes the item over. Its local file is gone afterwards, also where the output refused it. */
void delivery_put(struct delivery *d, struct delivery_item *item);
struct delivery_item *delivery_take(struct delivery *d); /* one that is done, or NULL; caller's */
int delivery_fd(const struct delivery *d);               /* readable while some are done */
