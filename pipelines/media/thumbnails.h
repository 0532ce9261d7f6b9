/*
 * The thumbnails of a chunk (pipelines/plan/thumbnails.h says which), made in its decode pass from
 * the frames that are wanted and from no others: made small by a kernel where the frame is, so that
 * on a GPU only the small picture comes down, and written as JPEG files beside the segments.
 * Thread: one.
 */
#pragma once
#include <libavutil/frame.h>

#include "pipelines/media/device.h"
#include "pipelines/media/output.h"

struct thumbnails;

/* For any number of chunks, kernels stay loaded. All are borrowed and must outlive it. NULL where
 * the plan has none, which all functions take. */
struct thumbnails *thumbnails_new(const struct plan *plan, const struct source_video *video,
                                  const struct device *device);
void thumbnails_free(struct thumbnails **t);

/* The next chunk; where files go (`to`: name and bytes are set here). */
int thumbnails_begin(struct thumbnails *t, const struct plan_chunk *chunk, struct output_folder to,
                     struct err *e);

/* Whether the frame at `at` (ticks from the origin), after those that were made, is one. It may lie
 * beyond the chunk, where the rate varies; then it is the first that does. */
bool thumbnails_want(const struct thumbnails *t, int64_t at);
/* frame: the wanted one as the ladder gets it, its pts in ticks from the origin, tone-mapped where
 * the plan says so; not changed. */
int thumbnails_make(struct thumbnails *t, const AVFrame *frame, struct err *e);

/* Ends the chunk: hands what was made to its manifest. */
void thumbnails_finish(struct thumbnails *t, struct manifest *m);
