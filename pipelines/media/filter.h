/*
 * Pictures between decoder and encoders, through libavfilter. One struct filter is a chain with one
 * input and one output, built from the first frame it gets and built again when the frames change
 * (a stream may change its size in the middle). Thread: one.
 */
#pragma once
#include <libavutil/frame.h>

#include "common/err.h"
#include "common/rational.h"

struct filter;

/* graph: libavfilter description, borrowed; "" passes frames through untouched. time_base: of the
 * frames' pts, in and out. device: where hwupload brings them; borrowed, NULL when there is none.
 */
struct filter *filter_new(const char *graph, struct rational time_base, AVBufferRef *device);
void filter_free(struct filter **f);

/* Takes the frame's reference (the frame is blank afterwards); NULL: end of stream. */
int filter_send(struct filter *f, AVFrame *frame, struct err *e);
/* 1 and a frame, 0: send more, AVERROR_EOF, -kind. */
int filter_receive(struct filter *f, AVFrame *ret, struct err *e);
