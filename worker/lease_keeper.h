/*
 * When to renew a lease, and when not to any more: a lease is renewed only while its task makes
 * progress, so that a hung decoder or encoder loses it. Pure: time comes from the caller (monotonic
 * microseconds).
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct lease_keeper_limits {
    int64_t lease_us; /* length of a lease; renewed after a third */
    int64_t hang_us;  /* without progress: hung */
    int64_t task_us;  /* wall time of one task */
};

struct lease_keeper {
    struct lease_keeper_limits limits;
    bool is_working; /* else it waits for the agent, which is no hang and costs no task time */
    int64_t worked_from_us, progressed_us, renew_at_us;
    int64_t frames_in, frames_out;
};

enum lease_keeper_advice { KEEPER_WAIT, KEEPER_RENEW, KEEPER_HUNG, KEEPER_OVERTIME };

void lease_keeper_init(struct lease_keeper *k, const struct lease_keeper_limits *limits,
                       int64_t now_us);
void lease_keeper_work(struct lease_keeper *k, bool is_working, int64_t now_us);
/* Only numbers that have grown count as progress. */
void lease_keeper_progress(struct lease_keeper *k, int64_t frames_in, int64_t frames_out,
                           int64_t now_us);
void lease_keeper_alive(struct lease_keeper *k, int64_t now_us); /* other proof, such as a file */
enum lease_keeper_advice lease_keeper_check(const struct lease_keeper *k, int64_t now_us);
/* After a renewal went through, or after it has to be tried again. */
void lease_keeper_renewed(struct lease_keeper *k, int64_t now_us);
void lease_keeper_retry(struct lease_keeper *k, int64_t at_us);
int64_t lease_keeper_due_us(const struct lease_keeper *k); /* when to check next */
