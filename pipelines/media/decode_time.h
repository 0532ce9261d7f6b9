/* When each packet of a segment is to be decoded. Pure. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/*
 * pts[0..n): presentation times in decode order, of a segment whose first packet is also the first
 * shown. `delay`: by how much presentation is put off to leave time for reordering (ticks, ≥ 0).
 * Writes dts[i], such that dts[0] = pts[0], times rise strictly, stay below the segment's end, and
 * dts[i] ≤ pts[i] + delay.
 *
 * The i-th packet is due at the i-th smallest pts: then the durations between decode times are the
 * true durations of frames, and segments join without knowing of each other. Where frames are
 * spaced so unevenly that this would be too late for one still to come, it is due just in time for
 * that.
 */
void decode_time_schedule(const int64_t *pts, size_t n, int64_t delay, int64_t *dts);
