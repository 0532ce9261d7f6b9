/*
 * The one rule that mends timestamps (I6), applied to packets as they leave the demuxer, in file
 * order:
 *
 *  wrapped     MPEG timestamps have 33 bits. libavformat unwraps them (repair.c says how); packets
 *              beyond the wrap are counted here, nothing else is done.
 *  missing     No pts but a dts: where nothing is reordered pts = dts; else the i-th picture in
 *              output order gets the dts of the packet that pushes it out of the reorder buffer, as
 *              libav's decoders do. Neither: the last packet's dts plus its duration.
 *  jumps       MPEG-TS/PS only: a dts more than REPAIR_BACK_S before or REPAIR_AHEAD_S after the
 *              place where its stream goes on (and, forward, away from all other streams) is a
 *              discontinuity: it is shifted to that place, and all streams with it, each from its
 *              own first packet behind the discontinuity.
 *  duplicates  A picture with a pts that one of the last REPAIR_WINDOW had gets the next free tick.
 *
 * Packets may be held back (at most REPAIR_WINDOW a stream) until their pts is known; each stream
 * keeps its order. Thread: one.
 */
#pragma once
#include <libavformat/avformat.h>
#include <stdbool.h>

#define REPAIR_WINDOW  64
#define REPAIR_BACK_S  1
#define REPAIR_AHEAD_S 10

struct repair_counts { /* packets, since the last reset; jumps: discontinuities */
    int64_t missing, wrapped, jumps, duplicates;
    /* Some video repair depended on what came before: a reader that starts in the middle would mend
     * it differently. */
    bool is_stateful;
};

struct repair;

struct repair *repair_new(const AVFormatContext *format); /* borrowed, must outlive it */
void repair_free(struct repair **r);
void repair_reset(struct repair *r); /* the next packet comes from another place: all forgotten */

/* One packet in (moved away from pkt), then any number out: true and a packet, or false: push more.
 * At the end of the input push NULL once and pull the rest. */
void repair_push(struct repair *r, AVPacket *pkt);
bool repair_pull(struct repair *r, AVPacket *ret);

const struct repair_counts *repair_counts(const struct repair *r);
