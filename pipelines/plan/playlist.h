/*
 * HLS playlists (RFC 8216, and draft-pantos-hls-rfc8216bis for VIDEO-RANGE) written from manifests
 * alone. Streaming: the segments of a media playlist are added chunk after chunk, so that memory
 * does not grow with more than the playlist's own text and 16 bytes a segment.
 */
#pragma once
#include "common/strbuf.h"
#include "pipelines/plan/manifest.h"
#include "pipelines/plan/plan.h"

/* A media playlist lies in its rendition's folder, beside the segments, under this name; the master
 * lies one level above. */
#define PLAYLIST_NAME "index.m3u8"

/* One rendition's media playlist in the making, and its measured rates. */
struct playlist;

/* plan: borrowed, must outlive the playlist. */
struct playlist *playlist_new(const struct plan *plan);
void playlist_free(struct playlist **p);
/* Appends one track of the next manifest in order. ERR_BUG where it does not join. */
int playlist_add(struct playlist *p, const struct manifest_track *track, struct err *e);
/* Seconds of EXT-X-TARGETDURATION. All playlists of a presentation must have the same: before any
 * is finished, raise each to the largest of all. They differ only where a variable-rate source
 * stands still for longer than a segment. */
int64_t playlist_target(const struct playlist *p);
void playlist_raise_target(struct playlist *p, int64_t seconds);
/* Ends the playlist: *ret is its whole text (caller frees). */
int playlist_finish(struct playlist *p, char **ret, struct err *e);

/* After playlist_finish. Peak as RFC 8216 section 4.1 defines it (the largest rate of any
 * contiguous run of segments lasting 0.5 to 1.5 target durations), average over all; bits/s,
 * rounded up. */
int64_t playlist_peak_bps(const struct playlist *p);
int64_t playlist_average_bps(const struct playlist *p);
const struct manifest_track *playlist_track(const struct playlist *p); /* first added, borrowed */
struct rational playlist_frame_rate(
    const struct playlist *p); /* frames / duration; unset for audio */

/* The master playlist over finished media playlists: n_video in the order of plan->renditions,
 * n_audio in that of plan->audio. Caller frees *ret. */
int playlist_master(const struct plan *plan, struct playlist *const *video, size_t n_video,
                    struct playlist *const *audio, size_t n_audio, char **ret, struct err *e);
