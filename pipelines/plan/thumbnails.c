#include "pipelines/plan/thumbnails.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/strbuf.h"

static const struct rational millisecond = {1, 1000};

/* The first step that begins at or after segment k. */
static int64_t first_step(const struct timeline *tl, int64_t k, struct rational every)
{
    return timeline_step(tl, timeline_segment_start(tl, k) - 1, every) + 1;
}

void thumbnails_share(const struct plan *plan, const struct plan_chunk *chunk, int64_t *ret_first,
                      int64_t *ret_end)
{
    struct timeline tl;
    struct rational every = plan->thumbnails->every;
    plan_timeline(plan, &tl);
    *ret_first = first_step(&tl, chunk->first_segment, every);
    *ret_end =
        chunk->end_segment == INT64_MAX ? INT64_MAX : first_step(&tl, chunk->end_segment, every);
}

/* --- the check ---------------------------------------------------------------------------------
 */

struct share {
    struct timeline timeline;
    struct rational every;
    int64_t first, end;
    bool is_dense; /* each step has a frame: a constant rate, nothing lost */
};

static const char *fault_of(const struct share *s, const struct manifest_thumbnail *t,
                            int64_t previous)
{
    if (t->index <= previous || t->index >= s->end)
        return "it is not of this chunk, or out of order";
    if (s->is_dense && t->index != previous + 1)
        return "one before it is missing";
    if (timeline_step(&s->timeline, t->start, s->every) != t->index)
        return "it shows a frame of another time";
    if (t->bytes <= 0)
        return "it has no bytes";
    if (!t->name || !*t->name || strchr(t->name, '/'))
        return "its file name is missing or holds a slash";
    return NULL;
}

/* Of a constant rate every step has a frame, from that of the first frame on; but a step may be
 * shorter than a frame. */
static void set_density(struct share *s, const struct manifest *m, const struct plan *plan)
{
    struct rational one = {1, 1};
    s->is_dense = rational_is_set(plan->cfr) && !m->damaged &&
                  rational_cmp(rational_div(one, plan->cfr), s->every) <= 0;
    int64_t start = timeline_step(&s->timeline, plan->start, s->every);
    if (s->first < start)
        s->first = start;
}

int thumbnails_check(const struct manifest *m, const struct plan *plan,
                     const struct plan_chunk *chunk, struct err *e)
{
    if (!plan->thumbnails)
        return !m->n_thumbnails
                   ? 0
                   : err_set(e, ERR_BUG, "%zu thumbnails, planned none", m->n_thumbnails);
    struct share s = {.every = plan->thumbnails->every};
    plan_timeline(plan, &s.timeline);
    thumbnails_share(plan, chunk, &s.first, &s.end);
    set_density(&s, m, plan);
    int64_t previous = s.first - 1;
    for (size_t i = 0; i < m->n_thumbnails; i++) {
        const char *fault = fault_of(&s, &m->thumbnails[i], previous);
        previous = m->thumbnails[i].index;
        if (fault)
            return err_set(e, ERR_BUG, "thumbnail %" PRId64 ": %s", previous, fault);
    }
    if (s.is_dense && !m->is_truncated && s.end != INT64_MAX && previous + 1 < s.end)
        return err_set(e, ERR_BUG, "thumbnail %" PRId64 " is missing", previous + 1);
    return 0;
}

/* --- the track ---------------------------------------------------------------------------------
 */

struct thumbnails_track {
    struct rational every;
    struct strbuf text;
    int64_t index; /* of the cue that waits for its end */
    char *name;    /* NULL: none yet */
    int64_t end_ms;
};

struct thumbnails_track *thumbnails_track_new(const struct plan *plan)
{
    struct thumbnails_track *t = xcalloc(1, sizeof *t);
    t->every = plan->thumbnails->every;
    strbuf_puts(&t->text, "WEBVTT\n");
    return t;
}

void thumbnails_track_free(struct thumbnails_track **t)
{
    if (!*t)
        return;
    strbuf_free(&(*t)->text);
    free((*t)->name);
    free(*t);
    *t = NULL;
}

static int64_t step_ms(const struct thumbnails_track *t, int64_t k)
{
    return rational_rescale(k, t->every, millisecond, ROUND_FLOOR);
}

static void add_time(struct strbuf *b, int64_t ms)
{
    strbuf_printf(b, "%02" PRId64 ":%02" PRId64 ":%02" PRId64 ".%03" PRId64, ms / 3600000,
                  ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
}

static void close_cue(struct thumbnails_track *t, int64_t end_ms)
{
    if (!t->name)
        return;
    strbuf_puts(&t->text, "\n");
    add_time(&t->text, step_ms(t, t->index));
    strbuf_puts(&t->text, " --> ");
    add_time(&t->text, end_ms);
    strbuf_printf(&t->text, "\n%s\n", t->name);
    free(t->name);
    t->name = NULL;
}

int thumbnails_track_add(struct thumbnails_track *t, const struct manifest *m, struct err *e)
{
    for (size_t i = 0; i < m->n_thumbnails; i++) {
        const struct manifest_thumbnail *next = &m->thumbnails[i];
        if (next->index < 0 || (t->name && next->index <= t->index) || !next->name)
            return err_set(e, ERR_BUG, "thumbnail %" PRId64 " does not follow", next->index);
        close_cue(t, step_ms(t, next->index));
        t->index = next->index;
        t->name = xstrdup(next->name);
    }
    if (m->n_tracks)
        t->end_ms =
            rational_rescale(m->tracks[0].end, m->tracks[0].time_base, millisecond, ROUND_CEIL);
    return 0;
}

char *thumbnails_track_finish(struct thumbnails_track *t)
{
    int64_t least = t->name ? step_ms(t, t->index) + 1 : 0;
    close_cue(t, t->end_ms > least ? t->end_ms : least);
    return strbuf_take(&t->text);
}
