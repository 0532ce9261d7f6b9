/*
 * The master playlist. Every video rendition is listed once. Each audio rendition is a group that
 * holds one entry a track; with several groups the lower video rungs go with the lower groups, as
 * Apple recommends, rather than every pair being listed. Variants come in descending order, but for
 * the first: players start with the one that is listed first, and 2 Mbit/s is what Apple advises to
 * start with, so the variant nearest to it leads.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "pipelines/plan/language.h"
#include "pipelines/plan/playlist.h"

enum { START_BPS = 2000000, VERSION = 7 };

struct group { /* the audio entries first .. end-1 of the plan: one audio rendition, every track */
    const char *id;
    size_t first, end;
    int64_t peak_bps, average_bps; /* of its costliest track */
    bool is_used;
};

struct variant {
    struct playlist *playlist; /* video; or the audio of an audio-only presentation */
    struct group *group;       /* NULL: none */
    int64_t average_bps;
};

struct master {
    const struct plan *plan;
    struct playlist *const *audio;
    struct group *groups;
    size_t n_groups;
    struct variant *variants;
    size_t n_variants;
    bool has_video;
    struct strbuf text;
};

static void free_master(struct master *m)
{
    free(m->groups);
    free(m->variants);
    strbuf_free(&m->text);
}

/* Inside quotes no quote and no control character may stand (RFC 8216, 4.2). */
static void add_quoted(struct strbuf *b, const char *key, const char *value)
{
    strbuf_printf(b, ",%s=\"", key);
    for (const char *c = value; *c; c++) {
        char safe = *c == '"' ? '\'' : (unsigned char)*c < ' ' || *c == 0x7f ? ' ' : *c;
        strbuf_add(b, &safe, 1);
    }
    strbuf_puts(b, "\"");
}

static void add_uri(struct strbuf *b, const struct playlist *p)
{
    strbuf_printf(b, "%s/" PLAYLIST_NAME, playlist_track(p)->rendition);
}

/* --- audio groups ------------------------------------------------------------------------------
 */

static void collect_groups(struct master *m, size_t n_audio)
{
    m->groups = xcalloc(n_audio, sizeof *m->groups);
    for (size_t i = 0; i < n_audio; i++) {
        const struct plan_audio *a = &m->plan->audio[i];
        struct group *g = m->n_groups ? &m->groups[m->n_groups - 1] : NULL;
        if (!g || strcmp(g->id, a->group)) {
            g = &m->groups[m->n_groups++];
            *g = (struct group){.id = a->group, .first = i};
        }
        g->end = i + 1;
        int64_t peak = playlist_peak_bps(m->audio[i]);
        int64_t average = playlist_average_bps(m->audio[i]);
        g->peak_bps = peak > g->peak_bps ? peak : g->peak_bps;
        g->average_bps = average > g->average_bps ? average : g->average_bps;
    }
}

static int by_group_rate(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->average_bps != y->average_bps)
        return x->average_bps < y->average_bps ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

/* Whether an entry before this one in the group speaks the same language; a player could not
 * choose between two of them by itself. */
static bool is_language_taken(const struct plan *plan, const struct group *g, size_t i)
{
    const char *tag = language_tag(plan->audio[i].language);
    for (size_t k = g->first; k < i; k++) {
        const char *other = language_tag(plan->audio[k].language);
        if (tag == other || (tag && other && !strcmp(tag, other)))
            return true;
    }
    return false;
}

/* NAMEs must differ within a group. */
static char *entry_name(const struct plan *plan, const struct group *g, size_t i)
{
    const struct plan_audio *a = &plan->audio[i];
    const char *tag = language_tag(a->language);
    if (a->title && *a->title) {
        bool is_taken = false;
        for (size_t k = g->first; k < g->end; k++)
            is_taken = is_taken ||
                       (k != i && plan->audio[k].title && !strcmp(plan->audio[k].title, a->title));
        return is_taken ? xasprintf("%s (%zu)", a->title, i - g->first + 1) : xstrdup(a->title);
    }
    if (tag && !is_language_taken(plan, g, i))
        return xstrdup(tag);
    return xasprintf("Audio %zu", i - g->first + 1);
}

static void add_media(struct master *m, const struct group *g)
{
    struct strbuf *b = &m->text;
    for (size_t i = g->first; i < g->end; i++) {
        const struct plan_audio *a = &m->plan->audio[i];
        const char *tag = language_tag(a->language);
        bool is_auto = a->is_default || !is_language_taken(m->plan, g, i);
        cleanup(free_ptr) char *name = entry_name(m->plan, g, i);
        strbuf_puts(b, "#EXT-X-MEDIA:TYPE=AUDIO");
        add_quoted(b, "GROUP-ID", g->id);
        add_quoted(b, "NAME", name);
        if (tag)
            add_quoted(b, "LANGUAGE", tag);
        strbuf_printf(b, ",DEFAULT=%s,AUTOSELECT=%s", a->is_default ? "YES" : "NO",
                      is_auto ? "YES" : "NO");
        strbuf_printf(b, ",CHANNELS=\"%d\",URI=\"", playlist_track(m->audio[i])->channels);
        add_uri(b, m->audio[i]);
        strbuf_puts(b, "\"\n");
    }
}

/* --- variants ----------------------------------------------------------------------------------
 */

static int by_rate_up(const void *a, const void *b)
{
    const struct variant *x = a, *y = b;
    if (x->average_bps != y->average_bps)
        return x->average_bps < y->average_bps ? -1 : 1;
    return strcmp(playlist_track(x->playlist)->rendition, playlist_track(y->playlist)->rendition);
}

static void collect_video(struct master *m, struct playlist *const *video, size_t n)
{
    m->variants = xcalloc(n, sizeof *m->variants);
    m->n_variants = n;
    for (size_t i = 0; i < n; i++)
        m->variants[i] = (struct variant){video[i], NULL, playlist_average_bps(video[i])};
    qsort(m->variants, n, sizeof *m->variants, by_rate_up);
    for (size_t i = 0; i < n && m->n_groups; i++) {
        size_t top = m->n_groups - 1, steps = n - 1;
        size_t g = steps ? (2 * i * top + steps) / (2 * steps) : top;
        m->variants[i].group = &m->groups[g];
        m->groups[g].is_used = true;
    }
}

/* Audio only: each group is a variant, played through its default track; a group of one track needs
 * no EXT-X-MEDIA. */
static void collect_audio_only(struct master *m)
{
    m->variants = xcalloc(m->n_groups, sizeof *m->variants);
    m->n_variants = m->n_groups;
    for (size_t i = 0; i < m->n_groups; i++) {
        struct group *g = &m->groups[i];
        size_t chosen = g->first;
        for (size_t k = g->first; k < g->end; k++)
            if (m->plan->audio[k].is_default)
                chosen = k;
        g->is_used = g->end - g->first > 1;
        m->variants[i] = (struct variant){m->audio[chosen], g, g->average_bps};
    }
    qsort(m->variants, m->n_variants, sizeof *m->variants, by_rate_up);
}

/* From ascending: the nearest to START_BPS first, the others descending. */
static void order_variants(struct master *m)
{
    size_t start = 0, n = m->n_variants;
    for (size_t i = 1; i < n; i++)
        if (llabs(m->variants[i].average_bps - START_BPS) <
            llabs(m->variants[start].average_bps - START_BPS))
            start = i;
    struct variant *ordered = xcalloc(n, sizeof *ordered);
    size_t k = 0;
    ordered[k++] = m->variants[start];
    for (size_t i = n; i-- > 0;)
        if (i != start)
            ordered[k++] = m->variants[i];
    free(m->variants);
    m->variants = ordered;
}

/* The video codec, then each codec of the group once. */
static void add_codecs(struct master *m, const struct variant *v)
{
    struct strbuf list = {0};
    if (m->has_video)
        strbuf_puts(&list, playlist_track(v->playlist)->codecs);
    for (size_t i = v->group ? v->group->first : 0; v->group && i < v->group->end; i++) {
        const char *codec = playlist_track(m->audio[i])->codecs;
        size_t k = v->group->first;
        while (k < i && strcmp(playlist_track(m->audio[k])->codecs, codec))
            k++;
        if (k == i)
            strbuf_printf(&list, "%s%s", list.len ? "," : "", codec);
    }
    add_quoted(&m->text, "CODECS", list.s);
    strbuf_free(&list);
}

static void add_picture(struct master *m, const struct variant *v)
{
    const struct manifest_track *t = playlist_track(v->playlist);
    static const struct rational thousandth = {1, 1000};
    int64_t rate = rational_rescale(1, playlist_frame_rate(v->playlist), thousandth, ROUND_NEAREST);
    strbuf_printf(&m->text, ",RESOLUTION=%dx%d,FRAME-RATE=%" PRId64 ".%03" PRId64, t->width,
                  t->height, rate / 1000, rate % 1000);
    strbuf_printf(&m->text, ",VIDEO-RANGE=%s", t->video_range ? t->video_range : "SDR");
}

static void add_variant(struct master *m, const struct variant *v)
{
    struct strbuf *b = &m->text;
    int64_t peak = m->has_video ? playlist_peak_bps(v->playlist) : 0;
    int64_t average = m->has_video ? playlist_average_bps(v->playlist) : 0;
    if (v->group) {
        peak += v->group->peak_bps;
        average += v->group->average_bps;
    }
    strbuf_printf(b, "#EXT-X-STREAM-INF:BANDWIDTH=%" PRId64 ",AVERAGE-BANDWIDTH=%" PRId64, peak,
                  average);
    add_codecs(m, v);
    if (m->has_video)
        add_picture(m, v);
    if (v->group && v->group->is_used)
        add_quoted(b, "AUDIO", v->group->id);
    strbuf_puts(b, ",CLOSED-CAPTIONS=NONE\n");
    add_uri(b, v->playlist);
    strbuf_puts(b, "\n");
}

/* --- the whole ---------------------------------------------------------------------------------
 */

static int check_all_there(const struct plan *plan, struct playlist *const *video, size_t n_video,
                           struct playlist *const *audio, size_t n_audio, struct err *e)
{
    if (n_video != plan->n_renditions || n_audio != plan->n_audio || n_video + n_audio == 0)
        return err_set(e, ERR_BUG,
                       "master playlist: %zu video and %zu audio playlists, planned "
                       "%zu and %zu",
                       n_video, n_audio, plan->n_renditions, plan->n_audio);
    for (size_t i = 0; i < n_video + n_audio; i++) {
        const struct playlist *p = i < n_video ? video[i] : audio[i - n_video];
        const char *name = i < n_video ? plan->renditions[i].name : plan->audio[i - n_video].name;
        const struct manifest_track *t = playlist_track(p);
        if (!t || strcmp(t->rendition, name) || playlist_peak_bps(p) <= 0)
            return err_set(e, ERR_BUG, "master playlist: %s is not finished", name);
    }
    return 0;
}

int playlist_master(const struct plan *plan, struct playlist *const *video, size_t n_video,
                    struct playlist *const *audio, size_t n_audio, char **ret, struct err *e)
{
    cleanup(free_master) struct master m = {.plan = plan, .audio = audio, .has_video = n_video > 0};
    int rc = check_all_there(plan, video, n_video, audio, n_audio, e);
    if (rc < 0)
        return rc;
    collect_groups(&m, n_audio);
    qsort(m.groups, m.n_groups, sizeof *m.groups, by_group_rate);
    if (m.has_video)
        collect_video(&m, video, n_video);
    else
        collect_audio_only(&m);
    order_variants(&m);
    strbuf_printf(&m.text, "#EXTM3U\n#EXT-X-VERSION:%d\n#EXT-X-INDEPENDENT-SEGMENTS\n", VERSION);
    for (size_t i = 0; i < m.n_groups; i++)
        if (m.groups[i].is_used)
            add_media(&m, &m.groups[i]);
    for (size_t i = 0; i < m.n_variants; i++)
        add_variant(&m, &m.variants[i]);
    *ret = strbuf_take(&m.text);
    return 0;
}
