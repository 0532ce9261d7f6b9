#include "common/clock.h"

#include <stdio.h>
#include <sys/random.h>
#include <time.h>

static int64_t now_us(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return ts.tv_sec * 1000000LL + ts.tv_nsec / 1000;
}

int64_t clock_mono_us(void)
{
    return now_us(CLOCK_MONOTONIC);
}

int64_t clock_wall_us(void)
{
    return now_us(CLOCK_REALTIME);
}

void clock_sleep_us(int64_t us)
{
    if (us > 0)
        nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

void clock_format_utc(int64_t wall_us, char ret[32])
{
    time_t s = wall_us / 1000000;
    struct tm tm;
    gmtime_r(&s, &tm);
    size_t n = strftime(ret, 32, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(ret + n, 32 - n, ".%03dZ", (int)(wall_us / 1000 % 1000));
}

int64_t clock_backoff_us(unsigned attempt, int64_t base_us, int64_t max_us)
{
    int64_t top = base_us;
    while (attempt-- > 0 && top > 0 && top < max_us)
        top *= 2;
    if (top > max_us)
        top = max_us;
    uint32_t r = 0;
    if (getrandom(&r, sizeof r, 0) != sizeof r)
        r = UINT32_MAX / 2;
    return top / 2 + (int64_t)((double)r / UINT32_MAX * (double)(top - top / 2));
}
