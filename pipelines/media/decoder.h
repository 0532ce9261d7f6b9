/* One video decoder: packets in, frames out in display order, times in ticks from the job's origin.
 * It is opened anew after a seek: a flushed one is not always as good (FFmpeg 7.1's HEVC), and
 * nothing would be saved, since libavcodec gives a GPU's decoder back at a flush. Thread: one. */
#pragma once
#include <libavformat/avformat.h>

#include "common/err.h"
#include "pipelines/media/device.h"
#include "pipelines/media/limits.h"

struct decoder;

/* stream: of the open input; origin: in the stream's time base, subtracted from every pts. device:
 * borrowed, where frames are decoded to and nowhere else (I13); surfaces: of a GPU's pool that
 * others hold at once. */
int decoder_open(const AVStream *stream, int64_t origin, const struct device *device, int surfaces,
                 const struct limits *limits, struct decoder **ret, struct err *e);
void decoder_close(struct decoder **d);

/* NULL: end of stream. Damaged data is not an error: it is counted. is_unneeded: frames of this
 * packet will be dropped, so that those nothing refers to need not be decoded. */
int decoder_send(struct decoder *d, const AVPacket *pkt, bool is_unneeded, struct err *e);
/* 1 and a frame whose pts is strictly above the last one's; 0: send more; AVERROR_EOF; -kind. */
int decoder_receive(struct decoder *d, AVFrame *frame, struct err *e);

int64_t decoder_frames(const struct decoder *d); /* decoded since open */
int64_t decoder_errors(const struct decoder *d); /* damaged packets */
