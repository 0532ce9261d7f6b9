#include "worker/mailbox.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/strbuf.h"

struct node {
    struct node *next;
    void *item;
};

struct mailbox {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    struct node *first, **last;
    bool is_closed;
    int fd; /* its count is not zero exactly while first is not NULL */
};

struct mailbox *mailbox_new(void)
{
    struct mailbox *m = xcalloc(1, sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    m->last = &m->first;
    m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->fd < 0) {
        perror("transcode: eventfd");
        abort();
    }
    return m;
}

void mailbox_free(struct mailbox **m, void (*free_item)(void *item))
{
    if (!*m)
        return;
    for (void *item; (item = mailbox_take(*m));)
        free_item(item);
    pthread_cond_destroy(&(*m)->changed);
    pthread_mutex_destroy(&(*m)->lock);
    close((*m)->fd);
    free(*m);
    *m = NULL;
}

int mailbox_fd(const struct mailbox *m)
{
    return m->fd;
}

void mailbox_put(struct mailbox *m, void *item)
{
    struct node *node = xcalloc(1, sizeof *node);
    node->item = item;
    pthread_mutex_lock(&m->lock);
    if (!m->first)
        eventfd_write(m->fd, 1);
    *m->last = node;
    m->last = &node->next;
    pthread_cond_signal(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

static void *take_locked(struct mailbox *m)
{
    struct node *node = m->first;
    if (!node)
        return NULL;
    m->first = node->next;
    if (!m->first) {
        eventfd_t count;
        m->last = &m->first;
        eventfd_read(m->fd, &count);
    }
    void *item = node->item;
    free(node);
    return item;
}

void *mailbox_take(struct mailbox *m)
{
    pthread_mutex_lock(&m->lock);
    void *item = take_locked(m);
    pthread_mutex_unlock(&m->lock);
    return item;
}

void *mailbox_wait(struct mailbox *m)
{
    pthread_mutex_lock(&m->lock);
    while (!m->first && !m->is_closed)
        pthread_cond_wait(&m->changed, &m->lock);
    void *item = take_locked(m);
    pthread_mutex_unlock(&m->lock);
    return item;
}

void mailbox_close(struct mailbox *m)
{
    pthread_mutex_lock(&m->lock);
    m->is_closed = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}
