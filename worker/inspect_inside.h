/* What the two kinds of inspecting processes share. */
#pragma once
#include "worker/inspect.h"

/* Writes the record as one line of JSON on stdout, before a step that may never end. step NULL: it
 * is complete. */
void inspect_step(const struct bind_struct *type, void *record, char **step_of_record,
                  const char *step);

__attribute__((format(printf, 3, 4))) void inspect_problem(char ***problems, size_t *n,
                                                           const char *fmt, ...);

void inspect_the_system(void);
void inspect_the_device(const char *device, int64_t speed_us);
