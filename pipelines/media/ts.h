/* One MPEG-TS segment (ISO/IEC 13818-1) through libavformat's muxer: PAT and PMT first, continuity
 * counters that join any other segment's (ts_counters.h). */
#pragma once
#include <libavcodec/avcodec.h>

#include "common/err.h"
#include "common/strbuf.h"

/* Packets in decode order, pts and dts (≤ pts) in time_base from the origin. Appends the whole
 * segment. */
int ts_write_segment(struct strbuf *out, const AVCodecParameters *par, AVRational time_base,
                     const char *language, AVPacket *const *packets, size_t n, struct err *e);
