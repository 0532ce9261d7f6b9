/* Measures a source: reads it once from start to end without decoding more than a few frames. */
#pragma once
#include "common/rational.h"
#include "pipelines/media/input.h"
#include "pipelines/plan/source.h"

/* segment: the grid D for which chunk borders are measured. progress (may be NULL) gets bytes read.
 * Memory: one border per D seconds of source, nothing per packet. */
int probe_source(struct input *in, const struct limits *limits, struct rational segment,
                 void (*progress)(void *arg, int64_t bytes), void *arg, struct source **ret,
                 struct err *e);
