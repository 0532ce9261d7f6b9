/* The two kinds of work a dispatcher does, each as one call on a leased task. Both end with their
 * own commit and may be repeated from the start by anyone. Return an enum lease_state (what the
 * queue said last) or -kind, and then the caller fails the task. Thread: that of `q`. */
#pragma once
#include "queue/queue.h"

int dispatcher_plan(struct queue *q, const struct lease *lease, struct err *e);
int dispatcher_publish(struct queue *q, const struct lease *lease, struct err *e);
