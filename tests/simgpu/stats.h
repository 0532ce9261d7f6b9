/*
 * What this process has done with its GPUs, written as JSON at its exit to the file SIMGPU_STATS
 * (`%p` in the name is the process id):
 *
 *     {"pid": 7, "counters": {"htod_bytes": 0, ...}, "peak": {"memory_bytes": ...},
 *      "live": {"memory": 0, ...}, "calls": {"cuMemAlloc_v2": 12, ...}}
 *
 * `live` is the number of objects by kind that exist at that moment: what is not 0 has leaked.
 * The file is opened and mapped when the process first uses the simulator, so that a process that
 * has closed itself off since can still write it. A process that ends by a signal or _exit leaves
 * an empty file.
 */
#pragma once
#include <stdint.h>

enum sim_stats_group { SIM_COUNTERS, SIM_PEAK, SIM_LIVE, SIM_CALLS, SIM_STATS_GROUPS };

/* Adds to the number of that name (a string that lives as long as the process) and returns the new
 * value. Counters in use: htod_bytes, dtoh_bytes, dtod_bytes, htoh_bytes, kernels, frames_decoded,
 * frames_mapped, frames_encoded. Live in use: context, memory, array, stream, event, module,
 * texture, decoder, mapped_frame, ctx_lock, encoder, encoder_input, encoder_output,
 * encoder_resource, encoder_mapping. Any thread. */
int64_t sim_stats_add(enum sim_stats_group group, const char *name, int64_t n);

/* Raises the number to at least that value. */
void sim_stats_peak(const char *name, int64_t value);

int64_t sim_stats_get(enum sim_stats_group group, const char *name);
