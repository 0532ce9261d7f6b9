#include "worker/leaser.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/strbuf.h"
#include "worker/mailbox.h"

enum {
    LEASE_WAIT_US = 1000000, /* of one blocking call */
    RETRY_US = 500000,       /* for which a call retries by itself */
    PAUSE_US = 500000,       /* between calls while Redis is away, doubled up to */
    PAUSE_MAX_US = 5000000,
};

struct leaser {
    struct queue *queue; /* the thread's alone */
    char *worker;
    pthread_t thread;
    bool is_running;
    struct mailbox *out;
    int stop_fd;            /* readable: a call that waits for a task returns */
    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* by the monotonic clock */
    int wanted;             /* counts a lease that is being asked for */
    int waiting;            /* leases put out and not taken yet */
    bool is_stopped;
};

void leaser_item_free(void *item)
{
    struct leaser_item *i = item;
    lease_free(&i->lease);
    free(i);
}

static void put(struct leaser *l, struct lease *lease, const struct err *e)
{
    struct leaser_item *item = xcalloc(1, sizeof *item);
    item->lease = lease;
    if (e)
        item->err = *e;
    mailbox_put(l->out, item);
}

/* Sleeps until something is wanted. False: stop. */
static bool wait_for_want(struct leaser *l)
{
    pthread_mutex_lock(&l->lock);
    while (!l->wanted && !l->is_stopped)
        pthread_cond_wait(&l->changed, &l->lock);
    bool go_on = !l->is_stopped;
    pthread_mutex_unlock(&l->lock);
    return go_on;
}

static void hand_over(struct leaser *l, struct lease *lease)
{
    pthread_mutex_lock(&l->lock);
    if (l->wanted)
        l->wanted--;
    l->waiting++;
    put(l, lease, NULL);
    pthread_mutex_unlock(&l->lock);
}

static void pause_us(struct leaser *l, int64_t us)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + us % 1000000 * 1000;
    until.tv_sec += us / 1000000 + ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    pthread_mutex_lock(&l->lock);
    while (!l->is_stopped && pthread_cond_timedwait(&l->changed, &l->lock, &until) == 0)
        ; /* woken by a new number, which is not what this waits for */
    pthread_mutex_unlock(&l->lock);
}

static void *run(void *arg)
{
    struct leaser *l = arg;
    unsigned failures = 0;
    while (wait_for_want(l)) {
        struct lease *lease = NULL;
        struct err e;
        int rc = queue_lease(l->queue, TASK_CLASS_WORKER, l->worker, LEASE_WAIT_US, &lease, &e);
        if (rc > 0)
            hand_over(l, lease);
        if (rc >= 0) {
            failures = 0;
            continue;
        }
        if (e.kind != ERR_TRANSIENT) {
            put(l, NULL, &e);
            return NULL;
        }
        if (!failures)
            log_warning("%s; trying again", e.msg);
        pause_us(l, clock_backoff_us(failures++, PAUSE_US, PAUSE_MAX_US));
    }
    return NULL;
}

int leaser_start(const struct leaser_options *options, struct leaser **ret, struct err *e)
{
    cleanup(leaser_free) struct leaser *l = xcalloc(1, sizeof *l);
    l->worker = xstrdup(options->worker);
    l->out = mailbox_new();
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&l->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    l->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const struct queue_options queue_options = {
        .lease_us = options->lease_us, .retry_us = RETRY_US, .wake_fd = l->stop_fd};
    int rc = queue_open(options->redis_url, &queue_options, &l->queue, e);
    if (rc < 0)
        return rc;
    if (l->stop_fd < 0 || pthread_create(&l->thread, NULL, run, l))
        return err_set(e, ERR_RESOURCE, "cannot start the thread that leases tasks");
    l->is_running = true;
    *ret = take(l);
    return 0;
}

void leaser_stop(struct leaser *l)
{
    if (!l->is_running)
        return;
    pthread_mutex_lock(&l->lock);
    l->is_stopped = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    eventfd_write(l->stop_fd, 1);
    pthread_join(l->thread, NULL);
    l->is_running = false;
}

void leaser_free(struct leaser **l)
{
    if (!*l)
        return;
    leaser_stop(*l);
    mailbox_free(&(*l)->out, leaser_item_free);
    queue_close(&(*l)->queue);
    close_fd(&(*l)->stop_fd);
    pthread_cond_destroy(&(*l)->changed);
    pthread_mutex_destroy(&(*l)->lock);
    free((*l)->worker);
    free(*l);
    *l = NULL;
}

int leaser_fd(const struct leaser *l)
{
    return mailbox_fd(l->out);
}

struct leaser_item *leaser_take(struct leaser *l)
{
    struct leaser_item *item = mailbox_take(l->out);
    if (item && item->lease) {
        pthread_mutex_lock(&l->lock);
        l->waiting--;
        pthread_mutex_unlock(&l->lock);
    }
    return item;
}

void leaser_want(struct leaser *l, int n)
{
    pthread_mutex_lock(&l->lock);
    l->wanted = n > l->waiting ? n - l->waiting : 0;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}
