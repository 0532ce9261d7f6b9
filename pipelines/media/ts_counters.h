/*
 * Continuity counters across segments (ISO/IEC 13818-1 §2.4.3.3). They count each PID's packets
 * modulo 16 and must go on from segment to segment, but a chunk cannot know how many packets came
 * before. So every segment is brought to a multiple of 16 packets in each PID: then each one starts
 * at 0 and ends at 15, and any two join. Tables are repeated; packets of a stream are split in two,
 * with stuffing. Pure.
 */
#pragma once
#include "common/err.h"
#include "common/strbuf.h"

/* segment: whole 188-byte packets, as libavformat's muxer writes them; replaced. */
int ts_align_counters(struct strbuf *segment, struct err *e);
