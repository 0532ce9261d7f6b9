/* Time. Monotonic for intervals, wall for people. Any thread. */
#pragma once
#include <stdint.h>

int64_t clock_mono_us(void);
int64_t clock_wall_us(void);                          /* since 1970-01-01 UTC */
void clock_sleep_us(int64_t us);                      /* returns early when a signal arrives */
void clock_format_utc(int64_t wall_us, char ret[32]); /* 2026-01-02T03:04:05.678Z */
/* Exponential back-off with full jitter: uniform in [base/2, base]·2^attempt, at most max. */
int64_t clock_backoff_us(unsigned attempt, int64_t base_us, int64_t max_us);
