#include "worker/delivery.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/storage.h"
#include "common/strbuf.h"
#include "worker/mailbox.h"

struct delivery {
    struct mailbox *in, *out;
    pthread_t thread;
    atomic_bool is_stopped;
};

void delivery_item_free(void *item)
{
    struct delivery_item *i = item;
    free(i->base);
    free(i->key);
    free(i->path);
    free(i);
}

static void *run(void *arg)
{
    struct delivery *d = arg;
    struct delivery_item *item;
    while ((item = mailbox_wait(d->in))) {
        if (d->is_stopped)
            item->rc = err_set(&item->err, ERR_CANCELLED, "the worker stops");
        else
            item->rc = storage_put_file(item->base, item->key, item->path, &item->err);
        if (item->rc < 0)
            unlink(
                item->path); /* nobody asks for it again: the task's next attempt makes it anew */
        mailbox_put(d->out, item);
    }
    return NULL;
}

int delivery_start(struct delivery **ret, struct err *e)
{
    struct delivery *d = xcalloc(1, sizeof *d);
    d->in = mailbox_new();
    d->out = mailbox_new();
    if (pthread_create(&d->thread, NULL, run, d)) {
        mailbox_free(&d->in, delivery_item_free);
        mailbox_free(&d->out, delivery_item_free);
        free(d);
        return err_set(e, ERR_RESOURCE, "cannot start the thread that delivers files");
    }
    *ret = d;
    return 0;
}

void delivery_free(struct delivery **d)
{
    if (!*d)
        return;
    (*d)->is_stopped = true;
    mailbox_close((*d)->in);
    pthread_join((*d)->thread, NULL);
    mailbox_free(&(*d)->in, delivery_item_free);
    mailbox_free(&(*d)->out, delivery_item_free);
    free(*d);
    *d = NULL;
}

void delivery_put(struct delivery *d, struct delivery_item *item)
{
    mailbox_put(d->in, item);
}

struct delivery_item *delivery_take(struct delivery *d)
{
    return mailbox_take(d->out);
}

int delivery_fd(const struct delivery *d)
{
    return mailbox_fd(d->out);
}
