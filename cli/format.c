#include "cli/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"

static const char *scaled(int64_t n, const char *const units[4], char ret[FORMAT_MAX])
{
    double x = (double)n;
    int i = 0;
    for (; x >= 999.5 && i < 3; i++)
        x /= 1000;
    int decimals = i == 0 || x >= 100 ? 0 : x >= 10 ? 1 : 2;
    snprintf(ret, FORMAT_MAX, "%.*f %s", decimals, x, units[i]);
    return ret;
}

const char *format_bytes(int64_t bytes, char ret[FORMAT_MAX])
{
    static const char *const units[4] = {"B", "kB", "MB", "GB"};
    return scaled(bytes, units, ret);
}

const char *format_bps(int64_t bps, char ret[FORMAT_MAX])
{
    static const char *const units[4] = {"b/s", "kb/s", "Mb/s", "Gb/s"};
    return scaled(bps, units, ret);
}

const char *format_clock(double seconds, char ret[FORMAT_MAX])
{
    int64_t s = seconds > 0 ? (int64_t)(seconds + 0.5) : 0;
    int minutes = (int)(s / 60 % 60), rest = (int)(s % 60);
    if (s >= 3600)
        snprintf(ret, FORMAT_MAX, "%" PRId64 ":%02d:%02d", s / 3600, minutes, rest);
    else
        snprintf(ret, FORMAT_MAX, "%d:%02d", minutes, rest);
    return ret;
}

const char *format_utc(int64_t wall_us, char ret[FORMAT_MAX])
{
    char stamp[32] = "-";
    if (wall_us)
        clock_format_utc(wall_us, stamp);
    if (strlen(stamp) > 19) {
        stamp[10] = ' ';
        memcpy(stamp + 19, "Z", 2);
    }
    snprintf(ret, FORMAT_MAX, "%s", stamp);
    return ret;
}
