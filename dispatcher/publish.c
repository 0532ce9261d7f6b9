/*
 * The publish task: the manifests of a finished job in, playlists and report out.
 *
 * Manifests stream by in task order; what is kept is the playlist text of each rendition, the
 * manifest before (for the join), and sums. Every join is checked again here, though each commit
 * was checked alone: that two chunks fit is a fact about both. Media playlists are written first
 * and the master last, and the lease is asked once more before it, so that a cancelled job never
 * shows a master. Writing is idempotent: a second publisher writes the same bytes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/storage.h"
#include "common/strbuf.h"
#include "dispatcher/report.h"
#include "dispatcher/task.h"
#include "pipelines/plan/playlist.h"
#include "pipelines/plan/thumbnails.h"

enum { RENEW_US = 5 * 1000 * 1000 };

#define MASTER "master.m3u8"

struct track { /* one rendition in the making */
    const char *name;
    struct playlist *playlist;
    struct report_rendition *report; /* a row of publish.report */
};

struct publish {
    struct queue *q;
    const struct lease *lease;
    enum lease_state state; /* not HELD: somebody else's now, stop */
    int64_t renewed_us;
    struct plan *plan;
    struct source *source;
    struct track *tracks; /* n_renditions video, then n_audio audio */
    size_t n_tracks;
    struct thumbnails_track *thumbnails; /* NULL: the plan has none */
    struct manifest *last;               /* the video manifest before */
    int64_t n_chunks;
    size_t n_audio;
    struct report *report;
};

static void manifest_free(struct manifest **m)
{
    bind_free(&manifest_type, m);
}

static void publish_free(struct publish *p)
{
    for (size_t i = 0; i < p->n_tracks; i++)
        playlist_free(&p->tracks[i].playlist);
    free(p->tracks);
    thumbnails_track_free(&p->thumbnails);
    manifest_free(&p->last);
    bind_free(&plan_type, &p->plan);
    bind_free(&source_type, &p->source);
    bind_free(&report_type, &p->report);
}

/* Renews the lease when it is due. 0: go on; else the state is kept and -ERR_CANCELLED returned. */
static int hold(struct publish *p, bool is_now, struct err *e)
{
    int64_t now = clock_mono_us();
    if (!is_now && now - p->renewed_us < RENEW_US)
        return 0;
    p->renewed_us = now;
    int r = queue_renew(p->q, p->lease, 0, e);
    if (r <= 0)
        return r;
    p->state = r;
    return err_set(e, ERR_CANCELLED, "the lease is gone");
}

static void init_tracks(struct publish *p)
{
    const struct plan *plan = p->plan;
    struct report *report = p->report = xcalloc(1, sizeof *report);
    p->n_tracks = report->n_renditions = plan->n_renditions + plan->n_audio;
    p->tracks = xcalloc(p->n_tracks, sizeof *p->tracks);
    report->renditions = xcalloc(p->n_tracks, sizeof *report->renditions);
    for (size_t i = 0; i < p->n_tracks; i++) {
        bool is_video = i < plan->n_renditions;
        size_t a = i - plan->n_renditions;
        p->tracks[i] = (struct track){
            .name = is_video ? plan->renditions[i].name : plan->audio[a].name,
            .playlist = playlist_new(plan),
            .report = &report->renditions[i],
        };
        p->tracks[i].report->name = xstrdup(p->tracks[i].name);
        p->tracks[i].report->kind = is_video ? REPORT_VIDEO : REPORT_AUDIO;
        if (!is_video)
            p->tracks[i].report->language = xstrdup(plan->audio[a].language);
    }
    if (plan->thumbnails)
        p->thumbnails = thumbnails_track_new(plan);
}

static int add_track(struct track *t, const struct manifest_track *m, struct err *e)
{
    if (!m->rendition || strcmp(m->rendition, t->name))
        return err_set(e, ERR_BUG, "holds rendition %s where %s was planned",
                       m->rendition ? m->rendition : "(none)", t->name);
    int r = playlist_add(t->playlist, m, e);
    if (r < 0)
        return err_prefix(e, "%s", t->name);
    struct report_rendition *sum = t->report;
    if (!sum->segments)
        sum->bytes = m->init_bytes;
    for (size_t i = 0; i < m->n_segments; i++)
        sum->bytes += m->segments[i].bytes;
    sum->segments += (int64_t)m->n_segments;
    sum->frames += m->frames;
    sum->duration_s += (double)(m->end - m->start) * rational_to_double(m->time_base);
    return 0;
}

static int add_thumbnails(struct publish *p, const struct manifest *m, struct err *e)
{
    if (!p->thumbnails)
        return 0;
    for (size_t i = 0; i < m->n_thumbnails; i++)
        p->report->bytes += m->thumbnails[i].bytes;
    p->report->thumbnails += (int64_t)m->n_thumbnails;
    return thumbnails_track_add(p->thumbnails, m, e);
}

static void add_sums(struct report *sum, const struct manifest *m)
{
    sum->task_s += (double)m->wall_us / 1e6;
    sum->cpu_s += (double)m->cpu_us / 1e6;
    sum->damaged += m->damaged;
    sum->is_truncated |= m->is_truncated;
}

/* Chunks of one job have one route, which is part of their device class. */
static void add_route(struct report *sum, const struct route *route)
{
    sum->chunks++;
    if (route && route->why)
        sum->chunks_fallen_back++;
    if (route && !sum->route)
        sum->route = bind_copy(&route_type, route);
}

static int parse_manifest(const char *task, const char *text, size_t n_tracks,
                          struct manifest **ret, struct err *e)
{
    int r = bind_parse(&manifest_type, text, strlen(text), task, ERR_BUG, ret, e);
    if (r < 0)
        return r;
    if ((*ret)->n_tracks != n_tracks)
        return err_set(e, ERR_BUG, "%s: holds %zu tracks, %zu were planned", task, (*ret)->n_tracks,
                       n_tracks);
    return 0;
}

static int on_video(void *arg, const char *task, const char *result, struct err *e)
{
    struct publish *p = arg;
    cleanup(manifest_free) struct manifest *m = NULL;
    int r = parse_manifest(task, result, p->plan->n_renditions, &m, e);
    if (r < 0)
        return r;
    if (m->chunk != p->n_chunks)
        return err_set(e, ERR_BUG, "%s: is chunk %" PRId64 ", but chunk %" PRId64 " comes next",
                       task, m->chunk, p->n_chunks);
    if (p->last && manifest_check_join(p->last, m, e) < 0)
        return err_prefix(e, "%s", task);
    for (size_t i = 0; i < m->n_tracks; i++)
        if (add_track(&p->tracks[i], &m->tracks[i], e) < 0)
            return err_prefix(e, "%s", task);
    if (add_thumbnails(p, m, e) < 0)
        return err_prefix(e, "%s", task);
    add_sums(p->report, m);
    p->report->frames_decoded += m->frames_decoded;
    p->report->frames_source += m->frames_source;
    if (!p->report->device)
        p->report->device = xstrdup(m->device);
    add_route(p->report, m->route);
    p->n_chunks++;
    manifest_free(&p->last);
    p->last = take(m);
    return hold(p, false, e);
}

static int on_audio(void *arg, const char *task, const char *result, struct err *e)
{
    struct publish *p = arg;
    cleanup(manifest_free) struct manifest *m = NULL;
    size_t i;
    if (sscanf(task, "audio/%zu", &i) != 1 || i != p->n_audio || i >= p->plan->n_audio)
        return err_set(e, ERR_BUG, "%s: audio/%zu comes next", task, p->n_audio);
    int r = parse_manifest(task, result, 1, &m, e);
    if (r < 0)
        return r;
    if (add_track(&p->tracks[p->plan->n_renditions + i], &m->tracks[0], e) < 0)
        return err_prefix(e, "%s", task);
    add_sums(p->report, m);
    p->n_audio++;
    return hold(p, false, e);
}

static int read_manifests(struct publish *p, struct err *e)
{
    const char *job = p->lease->job;
    int r;
    if ((r = queue_results(p->q, job, TASK_VIDEO, on_video, p, e)) < 0 ||
        (r = queue_results(p->q, job, TASK_AUDIO, on_audio, p, e)) < 0)
        return r;
    if (p->plan->n_renditions && !p->n_chunks)
        return err_set(e, ERR_BUG, "no video was committed");
    if (p->n_audio != p->plan->n_audio)
        return err_set(e, ERR_BUG, "%zu of %zu audio tracks were committed", p->n_audio,
                       p->plan->n_audio);
    return 0;
}

static int write_media_playlist(struct publish *p, struct track *t, struct err *e)
{
    cleanup(free_ptr) char *text = NULL, *key = NULL;
    if (playlist_finish(t->playlist, &text, e) < 0)
        return err_prefix(e, "%s", t->name);
    key = xasprintf("%s/" PLAYLIST_NAME, t->name);
    int r = storage_put_bytes(p->lease->spec.output, key, text, strlen(text), e);
    if (r < 0)
        return r;
    const struct manifest_track *first = playlist_track(t->playlist);
    t->report->average_bps = playlist_average_bps(t->playlist);
    t->report->peak_bps = playlist_peak_bps(t->playlist);
    t->report->frame_rate = playlist_frame_rate(t->playlist);
    t->report->codecs = xstrdup(first->codecs);
    t->report->width = first->width;
    t->report->height = first->height;
    return hold(p, false, e);
}

static int write_thumbnails(struct publish *p, struct err *e)
{
    if (!p->thumbnails)
        return 0;
    cleanup(free_ptr) char *text = thumbnails_track_finish(p->thumbnails);
    return storage_put_bytes(p->lease->spec.output, THUMBNAILS_TRACK, text, strlen(text), e);
}

static int write_master(struct publish *p, struct err *e)
{
    cleanup(free_ptr) char *text = NULL;
    size_t n_video = p->plan->n_renditions;
    cleanup(free_ptr) struct playlist **lists = xcalloc(p->n_tracks, sizeof *lists);
    for (size_t i = 0; i < p->n_tracks; i++)
        lists[i] = p->tracks[i].playlist;
    int r;
    if ((r = playlist_master(p->plan, lists, n_video, lists + n_video, p->plan->n_audio, &text,
                             e)) < 0 ||
        (r = hold(p, true, e)) < 0)
        return r;
    return storage_put_bytes(p->lease->spec.output, MASTER, text, strlen(text), e);
}

static void add_note(struct report *r, const char *text)
{
    r->notes = xrealloc_array(r->notes, r->n_notes + 1, sizeof *r->notes);
    r->notes[r->n_notes++] = xstrdup(text);
}

static void finish_report(struct publish *p)
{
    struct report *r = p->report;
    const struct source *s = p->source;
    r->master = xstrdup(MASTER);
    for (size_t i = 0; i < r->n_renditions; i++) {
        r->segments += r->renditions[i].segments;
        r->bytes += r->renditions[i].bytes;
        if (r->renditions[i].duration_s > r->duration_s)
            r->duration_s = r->renditions[i].duration_s;
    }
    if (r->frames_source)
        r->waste = (double)r->frames_decoded / (double)r->frames_source;
    r->repaired_missing = s->repaired_missing;
    r->repaired_wrapped = s->repaired_wrapped;
    r->repaired_jumps = s->repaired_jumps;
    r->repaired_duplicates = s->repaired_duplicates;
    r->is_truncated |= s->is_truncated;
    if (s->truncated_reason)
        add_note(r, s->truncated_reason);
    for (size_t i = 0; i < p->plan->n_notes; i++)
        add_note(r, p->plan->notes[i]);
    for (size_t i = 0; i < s->n_notes; i++)
        add_note(r, s->notes[i]);
}

/* All is written: what attempts that were killed have left can go. */
static void sweep(const struct publish *p)
{
    const char *output = p->lease->spec.output;
    storage_sweep(output, "");
    for (size_t i = 0; i < p->n_tracks; i++)
        storage_sweep(output, p->tracks[i].name);
}

static int publish(struct publish *p, struct err *e)
{
    const struct lease *l = p->lease;
    if (!l->plan || !l->source)
        return err_set(e, ERR_BUG, "the job has no %s", l->plan ? "source" : "plan");
    int r;
    if ((r = bind_parse(&plan_type, l->plan, strlen(l->plan), "plan", ERR_BUG, &p->plan, e)) < 0 ||
        (r = bind_parse(&source_type, l->source, strlen(l->source), "source", ERR_BUG, &p->source,
                        e)) < 0)
        return r;
    init_tracks(p);
    if ((r = read_manifests(p, e)) < 0)
        return r;
    for (size_t i = 0; i < p->n_tracks; i++)
        if ((r = write_media_playlist(p, &p->tracks[i], e)) < 0)
            return r;
    if ((r = write_thumbnails(p, e)) < 0 || (r = write_master(p, e)) < 0)
        return r;
    sweep(p);
    finish_report(p);
    cleanup(free_ptr) char *text = bind_dump(&report_type, p->report);
    return queue_commit(p->q, l, text, NULL, 0, e);
}

int dispatcher_publish(struct queue *q, const struct lease *lease, struct err *e)
{
    cleanup(publish_free) struct publish p = {
        .q = q, .lease = lease, .renewed_us = clock_mono_us()};
    int r = publish(&p, e);
    return p.state != LEASE_HELD ? (int)p.state : r;
}
