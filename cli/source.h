/* Measuring a source without a queue, for probe and plan: in a sandboxed session, as a worker
 * would. Thread: main. */
#pragma once
#include "cli/cli.h"

/* segment: the grid for which borders are measured. Both results are the caller's: the record
 * (bind_free) and the resolved path. */
int source_measure(const char *input, const char *device, const struct opt_list *limits,
                   struct rational segment, struct source **ret, char **ret_path, struct err *e);
