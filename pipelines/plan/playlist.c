/*
 * Media playlists. EXTINF has six decimals; to keep their sum true over any length, not each
 * duration is rounded but the end of each segment, and EXTINF is the difference of two rounded
 * ends.
 *
 * TARGETDURATION must be the same in all playlists of a presentation (RFC 8216, 6.2.4), though each
 * is written without knowing the others: it is the planned segment length plus a tenth of a second
 * (the frame or audio packet by which segments exceed it), rounded, and more only where a segment
 * is longer than that; playlist_target and playlist_raise_target bring the others along.
 */
#include "pipelines/plan/playlist.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MICROSECONDS = 1000000, VERSION_FMP4 = 7, VERSION_TS = 6 };

struct span { /* one segment, for the peak */
    int64_t ticks, bytes;
};

struct playlist {
    const struct plan *plan;
    struct manifest_track *track; /* the first one added, without its segments */
    int64_t begin, end;           /* ticks */
    int64_t last_index;
    int64_t frames, bytes;
    int64_t target; /* seconds */
    struct strbuf body;
    struct span *spans;
    size_t n_spans, room;
    int64_t peak_bps;
};

static int64_t to_us(const struct playlist *p, int64_t ticks)
{
    static const struct rational us = {1, MICROSECONDS};
    return rational_rescale(ticks, p->track->time_base, us, ROUND_NEAREST);
}

static int64_t rounded_seconds(int64_t us)
{
    return (us + MICROSECONDS / 2) / MICROSECONDS;
}

static void free_track(struct manifest_track **track)
{
    struct manifest_track *t = *track;
    if (!t)
        return;
    free(t->rendition);
    free(t->init);
    free(t->codecs);
    free(t->parameter_sets);
    free(t->video_range);
    free(t);
    *track = NULL;
}

static struct manifest_track *copy_track(const struct manifest_track *track)
{
    struct manifest_track *t = xcalloc(1, sizeof *t);
    *t = *track;
    t->rendition = xstrdup(track->rendition);
    t->init = xstrdup(track->init);
    t->codecs = xstrdup(track->codecs);
    t->parameter_sets = xstrdup(track->parameter_sets);
    t->video_range = xstrdup(track->video_range);
    t->segments = NULL;
    t->n_segments = 0;
    return t;
}

struct playlist *playlist_new(const struct plan *plan)
{
    static const struct rational us = {1, MICROSECONDS}, second = {1, 1};
    struct playlist *p = xcalloc(1, sizeof *p);
    p->plan = plan;
    p->last_index = INT64_MIN;
    int64_t planned = rational_rescale(1, plan->segment, us, ROUND_NEAREST);
    p->target = rational_rescale(planned + MICROSECONDS / 10, us, second, ROUND_NEAREST);
    return p;
}

void playlist_free(struct playlist **p)
{
    if (!*p)
        return;
    free_track(&(*p)->track);
    strbuf_free(&(*p)->body);
    free((*p)->spans);
    free(*p);
    *p = NULL;
}

/* --- adding ------------------------------------------------------------------------------------
 */

static int check_next(const struct playlist *p, const struct manifest_track *t, struct err *e)
{
    const struct manifest_track *first = p->track;
    const char *fault = NULL;
    if (t->start != p->end)
        fault = "a chunk does not start where the one before ends";
    else if (rational_cmp(t->time_base, first->time_base))
        fault = "time bases differ";
    else if (strcmp(t->rendition, first->rendition))
        fault = "another rendition's track";
    else if (!t->init != !first->init || (t->init && strcmp(t->init, first->init)))
        fault = "init segments differ";
    if (!fault)
        return 0;
    return err_set(e, ERR_BUG, "playlist %s: %s (end %" PRId64 ", start %" PRId64 ")",
                   first->rendition, fault, p->end, t->start);
}

static int add_segment(struct playlist *p, const struct manifest_segment *s, struct err *e)
{
    if (s->start != p->end || s->duration <= 0 || s->index <= p->last_index || s->bytes < 0 ||
        !s->name)
        return err_set(e, ERR_BUG, "playlist %s: segment %" PRId64 " does not follow",
                       p->track->rendition, s->index);
    int64_t from = to_us(p, p->end - p->begin);
    p->end += s->duration;
    p->last_index = s->index;
    int64_t us = to_us(p, p->end - p->begin) - from;
    if (rounded_seconds(us) > p->target)
        p->target = rounded_seconds(us);
    strbuf_printf(&p->body, "#EXTINF:%" PRId64 ".%06" PRId64 ",\n%s\n", us / MICROSECONDS,
                  us % MICROSECONDS, s->name);
    if (p->n_spans == p->room) {
        p->room = p->room ? 2 * p->room : 64;
        p->spans = xrealloc_array(p->spans, p->room, sizeof *p->spans);
    }
    p->spans[p->n_spans++] = (struct span){s->duration, s->bytes};
    p->frames += s->frames;
    p->bytes += s->bytes;
    return 0;
}

int playlist_add(struct playlist *p, const struct manifest_track *track, struct err *e)
{
    int rc = 0;
    if (!p->track) {
        if (track->time_base.num <= 0)
            return err_set(e, ERR_BUG, "playlist %s: no time base", track->rendition);
        p->track = copy_track(track);
        p->begin = p->end = track->start;
    } else {
        rc = check_next(p, track, e);
    }
    for (size_t i = 0; rc == 0 && i < track->n_segments; i++)
        rc = add_segment(p, &track->segments[i], e);
    if (rc == 0 && p->end != track->end)
        rc = err_set(e, ERR_BUG, "playlist %s: the segments do not reach the track's end",
                     track->rendition);
    return rc;
}

int64_t playlist_target(const struct playlist *p)
{
    return p->target;
}

void playlist_raise_target(struct playlist *p, int64_t seconds)
{
    if (seconds > p->target)
        p->target = seconds;
}

/* --- rates -------------------------------------------------------------------------------------
 */

/* bits/s, rounded up. */
static int64_t rate(const struct playlist *p, int64_t bytes, int64_t ticks)
{
    __int128 bits = (__int128)bytes * 8 * p->track->time_base.den;
    __int128 time = (__int128)ticks * p->track->time_base.num;
    return time > 0 ? (int64_t)((bits + time - 1) / time) : 0;
}

/* The largest rate of a run of segments lasting 0.5 to 1.5 target durations; a presentation too
 * short to have such a run counts as one. */
static int64_t peak(const struct playlist *p)
{
    static const struct rational half = {1, 2};
    int64_t shortest = rational_rescale(p->target, half, p->track->time_base, ROUND_CEIL);
    int64_t longest = rational_rescale(3 * p->target, half, p->track->time_base, ROUND_FLOOR);
    int64_t most = playlist_average_bps(p);
    for (size_t i = 0; i < p->n_spans; i++) {
        int64_t ticks = 0, bytes = 0;
        for (size_t k = i; k < p->n_spans; k++) {
            ticks += p->spans[k].ticks;
            bytes += p->spans[k].bytes;
            if (ticks > longest)
                break;
            int64_t bps = rate(p, bytes, ticks);
            if (ticks >= shortest && bps > most)
                most = bps;
        }
    }
    return most;
}

int64_t playlist_average_bps(const struct playlist *p)
{
    return rate(p, p->bytes, p->end - p->begin);
}

int64_t playlist_peak_bps(const struct playlist *p)
{
    return p->peak_bps;
}

const struct manifest_track *playlist_track(const struct playlist *p)
{
    return p->track;
}

struct rational playlist_frame_rate(const struct playlist *p)
{
    struct rational unset = {0, 1}, base = p->track->time_base;
    if (!p->track->width || p->end <= p->begin)
        return unset;
    struct rational duration = rational_mul((struct rational){p->end - p->begin, 1}, base);
    return rational_div((struct rational){p->frames, 1}, duration);
}

int playlist_finish(struct playlist *p, char **ret, struct err *e)
{
    if (!p->n_spans)
        return err_set(e, ERR_BUG, "playlist %s: no segments",
                       p->track ? p->track->rendition : "(none)");
    p->peak_bps = peak(p);
    struct strbuf b = {0};
    strbuf_printf(&b,
                  "#EXTM3U\n"
                  "#EXT-X-VERSION:%d\n"
                  "#EXT-X-TARGETDURATION:%" PRId64 "\n"
                  "#EXT-X-MEDIA-SEQUENCE:0\n"
                  "#EXT-X-PLAYLIST-TYPE:VOD\n"
                  "#EXT-X-INDEPENDENT-SEGMENTS\n",
                  p->track->init ? VERSION_FMP4 : VERSION_TS, p->target);
    if (p->track->init)
        strbuf_printf(&b, "#EXT-X-MAP:URI=\"%s\"\n", p->track->init);
    strbuf_add(&b, p->body.s, p->body.len);
    strbuf_puts(&b, "#EXT-X-ENDLIST\n");
    *ret = strbuf_take(&b);
    return 0;
}
