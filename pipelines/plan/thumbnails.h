/*
 * Thumbnails: small JPEG pictures for a player's seek bar, and the WebVTT track that names them.
 *
 * Thumbnail k is the first source frame at or after k*every within that step; a step in which no
 * frame begins (a source that stands still) has none, and the one before goes on. A chunk makes
 * those whose step begins within its segments. The frame may lie just beyond them where the rate
 * varies; it is then the very next one, so the chunk looks one frame further. So the list is a
 * function of the source's times and `every`, whatever the chunks (I2).
 *
 * One file a picture, not sprite sheets: a sheet of one chunk's pictures would show where the
 * chunks were cut, one of a fixed count would lie across chunks, and with `every` above the
 * segment's length one a segment is one a picture anyway. A film of three hours has 1080 of them at
 * 10 s, a tenth of what its ladder has in segments.
 *
 * Pure, but for the memory of the track's own text. Thread: one per object.
 */
#pragma once
#include "pipelines/plan/manifest.h"
#include "pipelines/plan/plan.h"

#define THUMBNAILS_TRACK THUMBNAILS_FOLDER "/thumbnails.vtt"

/* The chunk makes the thumbnails of steps *ret_first <= k < *ret_end; plan->thumbnails is set. */
void thumbnails_share(const struct plan *plan, const struct plan_chunk *chunk, int64_t *ret_first,
                      int64_t *ret_end);

/* What manifest_check_video asks of them. ERR_BUG names the first fault. */
int thumbnails_check(const struct manifest *m, const struct plan *plan,
                     const struct plan_chunk *chunk, struct err *e);

/* The WebVTT track in the making: a cue a picture, its payload the file's name (what players
 * expect), from k*every to the next one's, the last to the end of the video. plan: borrowed. */
struct thumbnails_track;
struct thumbnails_track *thumbnails_track_new(const struct plan *plan);
void thumbnails_track_free(struct thumbnails_track **t);
/* Appends those of the next manifest in order. ERR_BUG where they do not follow. */
int thumbnails_track_add(struct thumbnails_track *t, const struct manifest *m, struct err *e);
/* Ends the track: its whole text (caller frees). */
char *thumbnails_track_finish(struct thumbnails_track *t);
