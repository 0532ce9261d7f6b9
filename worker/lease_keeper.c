#include "worker/lease_keeper.h"

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void lease_keeper_init(struct lease_keeper *k, const struct lease_keeper_limits *limits,
                       int64_t now_us)
{
    *k = (struct lease_keeper){.limits = *limits};
    lease_keeper_renewed(k, now_us); /* leasing is the first renewal */
}

void lease_keeper_work(struct lease_keeper *k, bool is_working, int64_t now_us)
{
    k->is_working = is_working;
    k->worked_from_us = k->progressed_us = now_us;
}

void lease_keeper_progress(struct lease_keeper *k, int64_t frames_in, int64_t frames_out,
                           int64_t now_us)
{
    if (frames_in <= k->frames_in && frames_out <= k->frames_out)
        return;
    k->frames_in = frames_in > k->frames_in ? frames_in : k->frames_in;
    k->frames_out = frames_out > k->frames_out ? frames_out : k->frames_out;
    lease_keeper_alive(k, now_us);
}

void lease_keeper_alive(struct lease_keeper *k, int64_t now_us)
{
    k->progressed_us = now_us;
}

enum lease_keeper_advice lease_keeper_check(const struct lease_keeper *k, int64_t now_us)
{
    if (k->is_working && now_us - k->progressed_us >= k->limits.hang_us)
        return KEEPER_HUNG;
    if (k->is_working && now_us - k->worked_from_us >= k->limits.task_us)
        return KEEPER_OVERTIME;
    return now_us >= k->renew_at_us ? KEEPER_RENEW : KEEPER_WAIT;
}

void lease_keeper_renewed(struct lease_keeper *k, int64_t now_us)
{
    k->renew_at_us = now_us + k->limits.lease_us / 3;
}

void lease_keeper_retry(struct lease_keeper *k, int64_t at_us)
{
    k->renew_at_us = at_us;
}

int64_t lease_keeper_due_us(const struct lease_keeper *k)
{
    if (!k->is_working)
        return k->renew_at_us;
    int64_t stop_us =
        earlier(k->progressed_us + k->limits.hang_us, k->worked_from_us + k->limits.task_us);
    return earlier(k->renew_at_us, stop_us);
}
