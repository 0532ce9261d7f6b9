/*
 * One track's packets to HLS segments: CMAF (ISO/IEC 14496-12, 23000-19) or MPEG-TS. Each segment
 * is one file in scratch, "<rendition>/<index>-<hash>.m4s", written whole under a temporary name,
 * hashed on the way, renamed, then announced through events->file.
 *
 * Timing is exact and independent of chunking (decode_time.h): in CMAF a segment's tfdt is the pts
 * of its first sample, and decode times are contiguous however frames are reordered. The reordering
 * delay of video and the priming of audio are an edit list in the init segment; in TS, decode times
 * run ahead by the delay, and primed packets lie before the origin.
 *
 * Thread: one packager belongs to one thread at a time; events->file is called from that thread.
 */
#pragma once
#include <libavcodec/avcodec.h>

#include "pipelines/media/task.h"

struct packager;

struct packager_options {
    const char *rendition; /* folder, created in scratch */
    int segments;          /* enum profile_segments */
    int scratch_fd;
    int64_t max_bytes; /* of all segments together; over it is ERR_INPUT */
    const struct task_events *events;
    const char *language; /* ISO 639-2, may be NULL */
};

/* encoder: opened with AV_CODEC_FLAG_GLOBAL_HEADER, read only during the call; its time_base is the
 * track's, its initial_padding the audio priming. */
int packager_open(const struct packager_options *options, const AVCodecContext *encoder,
                  struct packager **ret, struct err *e);
/* One packet in decode order, pts and duration in the track's time base, from the origin (audio:
 * the pts of the first packet is that of the first primed sample, which is start - priming).
 * segment: its index k; never decreasing, every change must come with a keyframe. The packet stays
 * the caller's. */
int packager_write(struct packager *p, const AVPacket *pkt, int64_t segment, struct err *e);
/* Ends the last segment at `end` (pts where the next frame would be) and fills *ret, all but
 * width, height, video_range, channels, sample_rate; strings owned by *ret. */
int packager_finish(struct packager *p, int64_t end, struct manifest_track *ret, struct err *e);
void packager_free(struct packager **p); /* unfinished: removes its temporary file */
