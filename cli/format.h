/* Numbers for people, into a caller's buffer that is also returned. Pure. */
#pragma once
#include <stdint.h>

enum { FORMAT_MAX = 48 };

const char *format_bytes(int64_t bytes, char ret[FORMAT_MAX]);  /* 12.3 MB */
const char *format_bps(int64_t bps, char ret[FORMAT_MAX]);      /* 7.80 Mb/s, 145 kb/s */
const char *format_clock(double seconds, char ret[FORMAT_MAX]); /* 0:07, 1:02:03 */
const char *format_utc(int64_t wall_us, char ret[FORMAT_MAX]); /* 2026-01-02 03:04:05Z, "-" for 0 */
