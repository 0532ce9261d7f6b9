/*
 * One source picture in all the sizes of the ladder, each made at most once and only when a
 * rendition asks for it. Small sizes are scaled from a larger one that is already there, where the
 * picture does not suffer. Thread: one.
 */
#pragma once
#include <libavutil/frame.h>

#include "pipelines/media/device.h"

struct ladder;

/* route: scaled on its filter device and handed over to its encode device. */
struct ladder *ladder_new(const struct plan *plan, const struct device_route *route);
void ladder_free(struct ladder **l);

/* Makes `source` (borrowed until the next call) the picture that ladder_get scales. */
void ladder_set_source(struct ladder *l, AVFrame *source);

/* A reference to the current picture in the size of rendition r, into the blank frame *ret. */
int ladder_get(struct ladder *l, size_t r, AVFrame *ret, struct err *e);
