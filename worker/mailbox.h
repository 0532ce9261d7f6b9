/*
 * A first-in first-out queue of pointers from thread to thread: what is put in belongs to whoever
 * takes it out. The receiver may block in mailbox_wait or poll mailbox_fd. Any thread.
 */
#pragma once
#include <stdint.h>

struct mailbox;

struct mailbox *mailbox_new(void); /* ends the process when there is no descriptor to be had */
void mailbox_free(struct mailbox **m, void (*free_item)(void *item)); /* no thread may use it */
int mailbox_fd(const struct mailbox *m); /* readable while something is in */

void mailbox_put(struct mailbox *m, void *item);
void *mailbox_take(struct mailbox *m); /* NULL: empty */
void *mailbox_wait(struct mailbox *m); /* NULL: closed and empty */
void mailbox_close(struct mailbox *m); /* wakes the waiting; what is in may still be taken */
