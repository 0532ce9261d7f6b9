/*
 * The commit gate. What a manifest says is checked against itself, against the plan and, track by
 * track, against its siblings: renditions of one frame rate must have cut the same frames in the
 * same places. A fault is ERR_BUG: a session made something it should not have made.
 */
#include "pipelines/plan/manifest.h"

#include <string.h>

#include "pipelines/plan/plan.h"
#include "pipelines/plan/thumbnails.h"

typedef long long ll;

static bool is_equal(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static bool is_same(struct rational a, struct rational b)
{
    return rational_cmp(a, b) == 0;
}

/* --- one track against itself ------------------------------------------------------------------
 */

static int check_segment(const struct manifest_track *t, size_t i, bool is_video, int64_t expected,
                         struct err *e)
{
    const struct manifest_segment *s = &t->segments[i];
    const char *fault = NULL;
    if (i > 0 && s->index <= t->segments[i - 1].index)
        fault = "its index does not increase";
    else if (s->start != expected)
        fault = "it does not start where the one before ends";
    else if (s->duration <= 0)
        fault = "it has no duration";
    else if (s->frames <= 0)
        fault = "it has no frames";
    else if (s->bytes <= 0)
        fault = "it has no bytes";
    else if (!s->name || !*s->name || strchr(s->name, '/'))
        fault = "its file name is missing or holds a slash";
    else if (is_video && (s->keyframes < 1 || s->keyframes > s->frames))
        fault = "it does not start with a keyframe";
    if (!fault)
        return 0;
    return err_set(e, ERR_BUG, "%s: segment %lld (start %lld, expected %lld): %s", t->rendition,
                   (ll)s->index, (ll)s->start, (ll)expected, fault);
}

static int check_track(const struct manifest_track *t, const char *rendition, int segments,
                       bool is_video, bool may_be_empty, struct err *e)
{
    int64_t at = t->start, frames = 0, keyframes = 0;
    const char *fault = NULL;
    for (size_t i = 0; i < t->n_segments; i++) {
        int rc = check_segment(t, i, is_video, at, e);
        if (rc < 0)
            return rc;
        at += t->segments[i].duration;
        frames += t->segments[i].frames;
        keyframes += t->segments[i].keyframes;
    }
    if (!is_equal(t->rendition, rendition))
        fault = "expected this place to be another rendition's";
    else if (!t->n_segments && !may_be_empty)
        fault = "no segments";
    else if (at != t->end)
        fault = "its segments do not reach its end";
    else if (frames != t->frames || (is_video && keyframes != t->keyframes))
        fault = "its frames are not those of its segments";
    else if (t->time_base.num <= 0)
        fault = "no time base";
    else if (!t->codecs || !*t->codecs)
        fault = "no codecs";
    else if (!t->parameter_sets || !*t->parameter_sets)
        fault = "no hash of its parameter sets";
    else if (segments == SEGMENTS_FMP4 && (!t->init || !*t->init || strchr(t->init, '/')))
        fault = "no init segment";
    if (!fault)
        return 0;
    return err_set(e, ERR_BUG, "%s: %s", t->rendition ? t->rendition : rendition, fault);
}

/* --- against plan and chunk --------------------------------------------------------------------
 */

/* A segment may be missing only where no frame begins in it: with source timing at a variable
 * rate, and where the source is damaged. */
static int check_range(const struct manifest_track *t, const struct plan_chunk *chunk,
                       bool is_dense, bool is_truncated, struct err *e)
{
    int64_t first = t->segments[0].index, last = t->segments[t->n_segments - 1].index;
    bool is_last = chunk->end_segment == INT64_MAX;
    if (first < chunk->first_segment || last >= chunk->end_segment)
        return err_set(e, ERR_BUG,
                       "%s: segments %lld to %lld are not within the chunk's %lld to %lld",
                       t->rendition, (ll)first, (ll)last, (ll)chunk->first_segment,
                       (ll)chunk->end_segment - 1);
    if (!is_dense)
        return 0;
    if (last - first + 1 != (int64_t)t->n_segments ||
        (chunk->first_segment > 0 && first != chunk->first_segment) ||
        (!is_last && !is_truncated && last != chunk->end_segment - 1))
        return err_set(e, ERR_BUG, "%s: %zu segments from %lld to %lld do not fill the chunk",
                       t->rendition, t->n_segments, (ll)first, (ll)last);
    return 0;
}

static int check_rendition(const struct manifest *m, size_t i, const struct plan *plan,
                           const struct plan_chunk *chunk, struct err *e)
{
    const struct manifest_track *t = &m->tracks[i];
    const struct plan_rendition *r = &plan->renditions[i];
    bool is_dense = (rational_is_set(r->fps) || rational_is_set(plan->cfr)) && !m->damaged;
    int rc = check_track(t, r->name, plan->segments, true, !is_dense, e);
    if (rc < 0)
        return rc;
    if (t->width != r->width || t->height != r->height)
        return err_set(e, ERR_BUG, "%s: it is %dx%d, planned %dx%d", t->rendition, t->width,
                       t->height, r->width, r->height);
    if (plan->segments == SEGMENTS_FMP4 && !is_same(t->time_base, r->time_base))
        return err_set(e, ERR_BUG, "%s: its time base is 1/%lld, planned 1/%lld", t->rendition,
                       (ll)t->time_base.den, (ll)r->time_base.den);
    return t->n_segments ? check_range(t, chunk, is_dense, m->is_truncated, e) : 0;
}

/* Two renditions of one rate hold the same frames, cut alike (I1, I3). */
static int check_alike(const struct manifest_track *a, const struct manifest_track *b,
                       struct err *e)
{
    bool is_alike = a->n_segments == b->n_segments && a->start == b->start && a->end == b->end &&
                    a->frames == b->frames && a->keyframes == b->keyframes;
    for (size_t i = 0; is_alike && i < a->n_segments; i++) {
        const struct manifest_segment *s = &a->segments[i], *o = &b->segments[i];
        is_alike = s->index == o->index && s->start == o->start && s->duration == o->duration &&
                   s->frames == o->frames && s->keyframes == o->keyframes;
    }
    if (is_alike)
        return 0;
    return err_set(e, ERR_BUG,
                   "%s and %s: same frame rate, but their frames or segments differ "
                   "(%lld and %lld frames)",
                   a->rendition, b->rendition, (ll)a->frames, (ll)b->frames);
}

static int check_siblings(const struct manifest *m, const struct plan *plan, struct err *e)
{
    for (size_t i = 1; i < m->n_tracks; i++)
        for (size_t k = 0; k < i; k++) {
            if (!is_same(plan->renditions[i].fps, plan->renditions[k].fps))
                continue;
            int rc = check_alike(&m->tracks[k], &m->tracks[i], e);
            if (rc < 0)
                return rc;
            break;
        }
    return 0;
}

int manifest_check_video(const struct manifest *m, const struct plan *plan,
                         const struct plan_chunk *chunk, struct err *e)
{
    int rc = 0;
    if (m->chunk != chunk->index)
        rc = err_set(e, ERR_BUG, "manifest of chunk %lld", (ll)m->chunk);
    else if (m->is_truncated && !plan->allow_truncated)
        rc = err_set(e, ERR_INPUT,
                     "the source ended before its measured end; finish what is there "
                     "with --allow-truncated");
    else if (m->n_tracks != plan->n_renditions)
        rc = err_set(e, ERR_BUG, "%zu renditions, planned %zu", m->n_tracks, plan->n_renditions);
    for (size_t i = 0; rc == 0 && i < m->n_tracks; i++)
        rc = check_rendition(m, i, plan, chunk, e);
    if (rc == 0)
        rc = check_siblings(m, plan, e);
    if (rc == 0)
        rc = thumbnails_check(m, plan, chunk, e);
    return rc < 0 ? err_prefix(e, "chunk %lld", (ll)chunk->index) : 0;
}

int manifest_check_audio(const struct manifest *m, const struct plan *plan, size_t audio,
                         struct err *e)
{
    int rc = 0;
    if (audio >= plan->n_audio)
        return err_set(e, ERR_BUG, "audio %zu: the plan has %zu", audio, plan->n_audio);
    const struct plan_audio *a = &plan->audio[audio];
    if (m->n_tracks != 1)
        rc = err_set(e, ERR_BUG, "%zu tracks, expected one", m->n_tracks);
    else if (m->is_truncated && !plan->allow_truncated)
        rc = err_set(e, ERR_INPUT,
                     "the source ended before its measured end; finish what is there "
                     "with --allow-truncated");
    else
        rc = check_track(&m->tracks[0], a->name, plan->segments, false, false, e);
    if (rc == 0 && (m->tracks[0].channels < 1 || m->tracks[0].sample_rate < 1))
        rc = err_set(e, ERR_BUG, "no channels or sample rate");
    return rc < 0 ? err_prefix(e, "audio %s", a->name) : 0;
}

/* --- chunk to chunk ----------------------------------------------------------------------------
 */

static int check_track_join(const struct manifest_track *a, const struct manifest_track *b,
                            struct err *e)
{
    const struct {
        bool is_broken;
        const char *text;
    } rules[] = {
        {!is_equal(a->rendition, b->rendition), "renditions are not in the same order"},
        {!is_equal(a->init, b->init), "init segments differ"},
        {!is_equal(a->parameter_sets, b->parameter_sets), "parameter sets differ"},
        {!is_equal(a->codecs, b->codecs), "codecs differ"},
        {!is_same(a->time_base, b->time_base), "time bases differ"},
        {a->width != b->width || a->height != b->height, "sizes differ"},
        {!is_equal(a->video_range, b->video_range), "video ranges differ"},
        {a->end != b->start, "one does not start where the other ends"},
        {a->n_segments && b->n_segments &&
             a->segments[a->n_segments - 1].index >= b->segments[0].index,
         "segment indexes overlap"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].is_broken)
            return err_set(e, ERR_BUG, "%s: %s (end %lld, start %lld)", a->rendition, rules[i].text,
                           (ll)a->end, (ll)b->start);
    return 0;
}

int manifest_check_join(const struct manifest *a, const struct manifest *b, struct err *e)
{
    int rc = 0;
    if (a->n_tracks != b->n_tracks)
        rc = err_set(e, ERR_BUG, "%zu and %zu renditions", a->n_tracks, b->n_tracks);
    for (size_t i = 0; rc == 0 && i < a->n_tracks; i++)
        rc = check_track_join(&a->tracks[i], &b->tracks[i], e);
    return rc < 0 ? err_prefix(e, "chunks %lld and %lld", (ll)a->chunk, (ll)b->chunk) : 0;
}
