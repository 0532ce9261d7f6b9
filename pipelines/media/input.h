/*
 * An open source: one file descriptor, demuxed by libavformat with whitelists of demuxers and
 * codecs, and no protocol at all: bytes come from pread() on the descriptor, so that a playlist or
 * concat script in disguise can open nothing else. Timestamps of the packets handed out are
 * repaired (repair.h). Thread: one. A session keeps it open from task to task of one job.
 */
#pragma once
#include <libavformat/avformat.h>

#include "common/err.h"
#include "pipelines/media/limits.h"

struct input;

/* Opens fd (borrowed; must stay open). ERR_INPUT with a reason a person understands: unknown
 * format, encrypted, no streams, over a limit. cancel: polled while blocking, may be NULL. */
int input_open(int fd, const struct limits *limits, bool (*is_cancelled)(void *), void *arg,
               struct input **ret, struct err *e);
void input_close(struct input **in);

/* The streams as they were found: a copy without the demuxer, valid until input_close. Set
 * stream->discard here to choose among those that are read. */
AVFormatContext *input_format(struct input *in);
/* Frames a second as libavformat guesses them; {0, 1}: unknown. */
AVRational input_frame_rate(const struct input *in, int stream);

/* From now on only this stream is read, or all: the others' discard is set, and the memory that a
 * demuxer holds for them is given back where it is worth opening the source anew, which loses the
 * position: seek next. After a failure the input can only be closed. */
#define INPUT_ALL (-1)
int input_select(struct input *in, int stream, struct err *e);
/* Bytes that libavformat's index of the source takes, of all streams. */
int64_t input_index_bytes(const struct input *in);

int64_t input_size(const struct input *in);     /* bytes */
int64_t input_position(const struct input *in); /* bytes, of the last read */

/* Repairs since the last input_seek(INT64_MIN), or the opening. */
struct repair_counts;
const struct repair_counts *input_repairs(const struct input *in);
/* For a source whose repairs depend on what came before (source_video.is_sequential): from now on
 * every input_seek goes to the very start. */
void input_set_sequential(struct input *in, bool is_sequential);

/* Next packet of a stream that is not discarded, repaired: pts and dts are set, in the stream's
 * time base, video pts are distinct. 0; AVERROR_EOF at the end; -kind.
 *
 * Which pts frames have once decoded (with AVCodecContext.pkt_timebase set): video frames the pts
 * of their packet. Packets before the start of an edit list come flagged AV_PKT_FLAG_DISCARD: they
 * must be decoded, and libavcodec drops their frames itself. Audio before the first audible sample
 * (encoder priming) carries AV_PKT_DATA_SKIP_SAMPLES, or for Opus in Matroska the codec's own
 * delay: libavcodec drops those samples and moves the frame's pts to the first one it keeps, which
 * is source_audio.start. */
int input_read(struct input *in, AVPacket *pkt, struct err *e);
/* Whether the end that input_read met was a broken or missing part of the file, and why (borrowed).
 */
const char *input_truncation(const struct input *in);

/* Positions the input so that the last keyframe of `stream` with a pts at or before `pts` (ticks of
 * the stream, repaired) is still ahead; the next packet of that stream is a keyframe. INT64_MIN:
 * the very start, of all streams. Never lands too late: it falls back to earlier points and at last
 * to the start. Other streams' packets between there and that keyframe may be missing, except from
 * the start. */
int input_seek(struct input *in, int stream, int64_t pts, struct err *e);
/* input_open on the same descriptor again is never needed: input_seek(INT64_MIN) rewinds. */
