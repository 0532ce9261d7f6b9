/*
 * Where to cut. A chunk is decoded from the last keyframe at or before its border, or from one that
 * is the first frame after it; frames between the keyframe and the border are decoded in vain. So
 * the cheapest cut is looked for: over all ways to divide the segments into chunks of about the
 * wanted length, the least
 *
 *     frames decoded in vain + 1/32 of a chunk's frames x (relative difference in length)^2,
 *
 * by dynamic programming over the borders. Lengths reach from half to one and a half times the
 * wanted one; where nobody asked for a length, to twice, because on a short video one border more
 * or less is much: 60 s with a keyframe every 10 s are best cut in the middle.
 *
 * Open GOPs need no earlier keyframe here: the pictures that lead an open GOP are shown before its
 * keyframe, hence before the border, and are dropped anyway. Only where frames before the border
 * are needed as context must the keyframe lie strictly before them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/plan/plan.h"

enum {
    TARGET_SECONDS = 48,  /* long enough that seeking and starting cost nothing, short enough to
                             spread one film over many sessions and to lose little in a crash */
    CHUNKS_MIN = 4,       /* of a short video: every session of a small machine has work */
    WINDOW_SEGMENTS = 64, /* borders tried on either side of the wanted one */
    COST_UNIT = 64,       /* costs count 1/64 frames */
    LENGTH_WEIGHT = 32,
};

struct cutter {
    const struct plan *plan;
    const struct source_video *video;
    struct timeline tl;
    int64_t first, n;             /* segments first .. n-1 hold frames */
    int64_t ideal_num, ideal_den; /* wanted length, segments */
    int64_t shortest, longest;    /* segments, but for the last chunk, which may be shorter */
    bool is_automatic;
    int64_t *waste, *cost, *from; /* by border; from: where the chunk that ends here begins */
};

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Frames before a time, at the average rate. */
static int64_t frames_before(const struct cutter *c, int64_t k, struct rational step)
{
    const struct source_video *v = c->video;
    int64_t length = v->end - v->start;
    int64_t t = rational_rescale(k, step, c->tl.time_base, ROUND_NEAREST) - c->tl.start;
    if (length <= 0 || t <= 0)
        return 0;
    struct rational rate = {v->frames, length}, one = {1, 1};
    return min64(v->frames, rational_rescale(t, rate, one, ROUND_NEAREST));
}

/* Whether decoding from that keyframe yields all that a chunk beginning with segment k needs. A
 * keyframe at or before k*D does: of a constant rate, where frames snap forward by up to half a
 * frame, the one before such a keyframe still snaps into the segment before. */
static bool is_early_enough(const struct cutter *c, int64_t key, int64_t frames, int64_t k)
{
    int64_t border = rational_rescale(k, c->tl.segment, c->tl.time_base, ROUND_FLOOR);
    if (key > border || frames < c->plan->context)
        return false;
    return !c->plan->context || timeline_segment(&c->tl, key) < k;
}

/* Whether a keyframe just after k*D is the first frame that a chunk beginning with segment k needs:
 * the frame before it, wherever its timestamp snaps to, belongs to the segment before. */
static bool is_first_needed(const struct cutter *c, int64_t key, int64_t k)
{
    int64_t before = key - 1;
    if (c->plan->context)
        return false;
    if (rational_is_set(c->tl.cfr))
        before = key - rational_rescale(1, rational_div((struct rational){1, 1}, c->tl.cfr),
                                        c->tl.time_base, ROUND_NEAREST);
    else
        before = min64(before, rational_rescale(k, c->tl.segment, c->tl.time_base, ROUND_CEIL) - 1);
    return timeline_segment(&c->tl, key) >= k && timeline_segment(&c->tl, before) < k;
}

/* Where decoding must start for border k, and how many frames are decoded before it. Borders may
 * have been measured for another segment length; then the nearest one before serves. */
static int64_t seek_point(const struct cutter *c, int64_t k, int64_t *ret_waste)
{
    const struct source_video *v = c->video;
    struct rational measured = v->border_segment;
    if (!rational_is_set(measured))
        measured = c->tl.segment;
    int64_t here = frames_before(c, k, c->tl.segment);
    int64_t j = rational_rescale(k, c->tl.segment, measured, ROUND_FLOOR);
    bool is_measured = rational_rescale(j, measured, c->tl.segment, ROUND_FLOOR) == k;
    if (is_measured && j > 0 && j <= (int64_t)v->n_borders) {
        int64_t key = v->borders[j - 1].next_key;
        if (key > v->borders[j - 1].key_pts && is_first_needed(c, key - c->plan->origin, k)) {
            *ret_waste = 0;
            return key;
        }
    }
    for (j = min64(j, (int64_t)v->n_borders); j > 0; j--) {
        const struct source_border *b = &v->borders[j - 1];
        if (b->key_pts < v->start || b->key_pts >= v->end) /* none known */
            continue;
        int64_t frames = min64(max64(b->frames, 0), v->frames);
        frames += max64(0, here - frames_before(c, j, measured));
        if (is_early_enough(c, b->key_pts - c->plan->origin, frames, k)) {
            *ret_waste = frames;
            return b->key_pts;
        }
    }
    *ret_waste = here;
    return INT64_MIN;
}

/* --- the wanted length -------------------------------------------------------------------------
 */

static void set_ideal(struct cutter *c, double chunk_seconds)
{
    int64_t n = c->n - c->first;
    double seconds = chunk_seconds > 0 ? chunk_seconds : TARGET_SECONDS;
    double wanted = round(seconds / rational_to_double(c->tl.segment));
    int64_t target = wanted < 1 ? 1 : wanted > (double)n ? n : (int64_t)wanted;
    c->is_automatic = chunk_seconds <= 0;
    c->ideal_num = target;
    c->ideal_den = 1;
    if (c->is_automatic) { /* whole chunks of even length, with none left over */
        target = min64(target, (n + CHUNKS_MIN - 1) / CHUNKS_MIN);
        c->ideal_num = n;
        c->ideal_den = (n + target - 1) / target;
    }
}

/* No chunk may be without a frame: a variable-rate source can be still for longer than a segment.
 */
static int64_t least_segments(const struct cutter *c)
{
    int64_t gap =
        rational_rescale(c->video->max_interval, c->tl.time_base, c->tl.segment, ROUND_FLOOR);
    return rational_is_set(c->tl.cfr) ? 1 : gap + 1 + (rational_is_set(c->tl.ref) ? 1 : 0);
}

static void set_lengths(struct cutter *c)
{
    int64_t ideal = c->ideal_num / c->ideal_den, least = least_segments(c);
    int64_t half = (c->ideal_num + 2 * c->ideal_den - 1) / (2 * c->ideal_den);
    int64_t most = (c->is_automatic ? 4 : 3) * c->ideal_num / (2 * c->ideal_den);
    c->shortest = max64(max64(half, ideal - WINDOW_SEGMENTS), least);
    c->longest = max64(min64(most, ideal + WINDOW_SEGMENTS), c->shortest);
}

/* --- the cheapest cut --------------------------------------------------------------------------
 */

/* An explicit length leaves a shorter rest at the end, as anybody would expect. */
static int64_t length_cost(const struct cutter *c, int64_t length, bool is_last)
{
    int64_t off = length * c->ideal_den - c->ideal_num;
    if (is_last && !c->is_automatic && off <= 0)
        return 0;
    int64_t frames = c->video->frames / (c->n - c->first) + 1; /* of a segment */
    return COST_UNIT / LENGTH_WEIGHT * frames * off * off / (c->ideal_num * c->ideal_den);
}

/* The best chunk that ends at border b. Of equal ones the shortest, so that long chunks come first
 * and sessions finish together. */
static void choose_chunk_before(struct cutter *c, int64_t b)
{
    int64_t shortest = b == c->n ? 1 : c->shortest;
    c->cost[b] = INT64_MAX;
    for (int64_t a = max64(c->first, b - c->longest); a <= b - shortest; a++) {
        if (c->cost[a] == INT64_MAX)
            continue;
        int64_t cost = c->cost[a] + c->waste[a] * COST_UNIT + length_cost(c, b - a, b == c->n);
        if (cost <= c->cost[b]) {
            c->cost[b] = cost;
            c->from[b] = a;
        }
    }
}

static void find_cheapest_cut(struct cutter *c)
{
    for (int64_t k = c->first + 1; k < c->n; k++)
        seek_point(c, k, &c->waste[k]);
    for (int64_t b = c->first + 1; b <= c->n; b++)
        choose_chunk_before(c, b);
}

static struct plan_chunk *list_chunks(const struct cutter *c, size_t *ret_n)
{
    size_t n = 0;
    for (int64_t b = c->n; b > c->first; b = c->from[b])
        n++;
    struct plan_chunk *chunks = xcalloc(n, sizeof *chunks);
    int64_t end = c->n;
    for (size_t i = n; i-- > 0; end = c->from[end]) {
        int64_t first = i ? c->from[end] : 0, waste;
        int64_t frames_end = i + 1 < n ? frames_before(c, end, c->tl.segment) : c->video->frames;
        chunks[i] = (struct plan_chunk){
            .index = (int64_t)i,
            .first_segment = first,
            .end_segment = i + 1 < n ? end : INT64_MAX,
            .seek_pts = i ? seek_point(c, first, &waste) : INT64_MIN,
            .frames = frames_end - (i ? frames_before(c, first, c->tl.segment) : 0),
        };
    }
    *ret_n = n;
    return chunks;
}

int plan_chunks(const struct plan *plan, const struct source *source, double chunk_seconds,
                struct plan_chunk **ret, size_t *ret_n, struct err *e)
{
    *ret = NULL;
    *ret_n = 0;
    if (!plan->n_renditions)
        return 0;
    if (!source->video)
        return err_set(e, ERR_BUG, "plan: it has renditions, but the source has no video");
    struct cutter c = {.plan = plan, .video = source->video, .n = plan->n_segments};
    plan_timeline(plan, &c.tl);
    c.first = min64(max64(timeline_segment(&c.tl, plan->start), 0), c.n - 1);
    cleanup(free_ptr) int64_t *table = xcalloc((size_t)c.n + 1, 3 * sizeof *table);
    c.waste = table;
    c.cost = table + c.n + 1;
    c.from = c.cost + c.n + 1;
    if (source->video->is_sequential || !source->video->n_borders) {
        c.from[c.n] = c.first; /* one chunk: nothing is known to start another from */
    } else {
        set_ideal(&c, chunk_seconds);
        set_lengths(&c);
        find_cheapest_cut(&c);
    }
    *ret = list_chunks(&c, ret_n);
    return 0;
}
