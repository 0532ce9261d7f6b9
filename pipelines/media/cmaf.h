/* CMAF (ISO/IEC 23000-19) boxes: an init segment, and one media segment from a list of samples.
 * Pure, but for libavformat's mp4 muxer, which writes the init segment's sample entry. */
#pragma once
#include <libavcodec/avcodec.h>
#include <stdbool.h>

#include "common/err.h"
#include "common/strbuf.h"

/* Appends ftyp + moov for one track. `first`: its first packet, which AC-3 and E-AC-3 need for
 * their configuration box; may be NULL for others. delay: what media times are ahead of
 * presentation times (reordering of video, priming of audio), written as an edit list. */
int cmaf_write_init(struct strbuf *out, const AVCodecParameters *par, AVRational time_base,
                    int64_t delay, const AVPacket *first, const char *language, struct err *e);

struct cmaf_sample {
    int64_t pts, dts; /* media time: pts ≥ dts */
    bool is_key;
    size_t size; /* bytes in the segment's payload, in decode order */
};

/* Appends styp + moof + mdat. Samples in decode order; end: dts of the next segment's first sample.
 * is_video: per-sample flags and composition offsets are written. */
void cmaf_write_segment(struct strbuf *out, int64_t sequence, const struct cmaf_sample *samples,
                        size_t n, int64_t end, bool is_video, const struct strbuf *payload);
