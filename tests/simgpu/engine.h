/*
 * The clock of the fixed-function engines. A piece of work goes to the engine of its kind that is
 * free first, of all that the device has, and takes pixels / rate; all processes that share
 * SIMGPU_STATE share the engines. One lane (an encoder session, a decoder) has one piece in work at
 * a time, so that a single session cannot be faster than one engine.
 *
 * Give work where the API takes it (EncodePicture, DecodePicture) and wait where the real driver
 * does (LockBitstream, MapVideoFrame).
 */
#pragma once
#include <stdint.h>

#include "tests/simgpu/gpu.h"

/* One a session or decoder; zero it at first. Guarded by the state's own lock. */
struct sim_lane {
    int64_t ready_ns; /* when its last piece is done */
};

/* Gives a piece of work; returns when it will be done, CLOCK_MONOTONIC in ns (now, when the rate is
 * 0). The lane may be NULL. */
int64_t sim_engine_submit(enum sim_engine_kind kind, int device, int64_t pixels,
                          struct sim_lane *lane);

/* Sleeps until then. */
void sim_engine_wait(int64_t done_ns);

/* Both. */
void sim_engine_run(enum sim_engine_kind kind, int device, int64_t pixels, struct sim_lane *lane);

/* Busy per cent (0..100) of all engines of the kind over the last second, as NVML shows it. */
int sim_engine_utilisation(enum sim_engine_kind kind, int device);
