#include "worker/gate.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/plan/manifest.h"
#include "pipelines/plan/plan.h"

struct file {
    char *key;
    int64_t bytes;
};

struct audio_payload {
    int64_t audio; /* index into plan->audio */
};
static const struct bind_field audio_payload_fields[] = {
    BIND(struct audio_payload, audio, BIND_INT64, .is_required = true, .min = 0, .max = 1 << 20),
    {0},
};
static const struct bind_struct audio_payload_type = {
    "an audio task's payload", sizeof(struct audio_payload), audio_payload_fields, NULL};

struct gate {
    const struct lease *lease;
    enum work work;
    struct rational segment;
    struct plan *plan;        /* video, audio */
    struct plan_chunk *chunk; /* video */
    size_t audio;             /* audio */
    void *files;              /* tsearch tree of struct file */
    int64_t bytes;
};

static const struct {
    enum task_kind kind;
    enum work work;
} works[] = {{TASK_PROBE, WORK_PROBE}, {TASK_VIDEO, WORK_VIDEO}, {TASK_AUDIO, WORK_AUDIO}};

/* ---- what the task is to make ---- */

static int parse(const struct bind_struct *type, const char *text, const char *name, void *ret,
                 struct err *e)
{
    if (!text)
        return err_set(e, ERR_BUG, "the task came without its %s", name);
    return bind_parse(type, text, strlen(text), name, ERR_BUG, ret, e);
}

static int read_profile(struct gate *g, struct err *e)
{
    struct profile *profile = NULL;
    int rc = parse(&profile_type, g->lease->spec.profile, "profile", &profile, e);
    if (rc < 0)
        return rc;
    g->segment = profile->segment;
    bind_free(&profile_type, &profile);
    return 0;
}

static int read_audio_payload(struct gate *g, struct err *e)
{
    struct audio_payload *payload = NULL;
    int rc = parse(&audio_payload_type, g->lease->payload, "payload", &payload, e);
    if (rc < 0)
        return rc;
    g->audio = (size_t)payload->audio;
    bind_free(&audio_payload_type, &payload);
    if (g->audio >= g->plan->n_audio)
        return err_set(e, ERR_BUG, "audio %zu is not in the plan, which has %zu", g->audio,
                       g->plan->n_audio);
    return 0;
}

static int read_records(struct gate *g, struct err *e)
{
    if (g->work == WORK_PROBE)
        return read_profile(g, e);
    int rc = parse(&plan_type, g->lease->plan, "plan", &g->plan, e);
    if (rc < 0)
        return rc;
    if (g->work == WORK_AUDIO)
        return read_audio_payload(g, e);
    return parse(&plan_chunk_type, g->lease->payload, "payload", &g->chunk, e);
}

int gate_open(const struct lease *lease, struct gate **ret, struct err *e)
{
    size_t row = 0, rows = sizeof works / sizeof works[0];
    while (row < rows && works[row].kind != lease->kind)
        row++;
    if (row == rows)
        return err_set(e, ERR_BUG, "a task of kind %s is not a worker's",
                       task_kind_names[lease->kind]);
    struct gate *g = xcalloc(1, sizeof *g);
    g->lease = lease;
    g->work = works[row].work;
    int rc = read_records(g, e);
    if (rc < 0)
        gate_free(&g);
    *ret = g;
    return rc;
}

static void file_free(void *file)
{
    free(((struct file *)file)->key);
    free(file);
}

void gate_free(struct gate **g)
{
    if (!*g)
        return;
    tdestroy((*g)->files, file_free);
    bind_free(&plan_type, &(*g)->plan);
    bind_free(&plan_chunk_type, &(*g)->chunk);
    free(*g);
    *g = NULL;
}

enum work gate_work(const struct gate *g)
{
    return g->work;
}

struct rational gate_segment(const struct gate *g)
{
    return g->segment;
}

size_t gate_audio(const struct gate *g)
{
    return g->audio;
}

/* ---- files ---- */

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->key, ((const struct file *)b)->key);
}

static bool is_folder(const struct gate *g, const char *folder, size_t n)
{
    if (g->work == WORK_AUDIO) {
        const char *name = g->plan->audio[g->audio].name;
        return strlen(name) == n && !strncmp(name, folder, n);
    }
    for (size_t i = 0; g->work == WORK_VIDEO && i < g->plan->n_renditions; i++) {
        const char *name = g->plan->renditions[i].name;
        if (strlen(name) == n && !strncmp(name, folder, n))
            return true;
    }
    return g->work == WORK_VIDEO && g->plan->thumbnails && strlen(THUMBNAILS_FOLDER) == n &&
           !strncmp(THUMBNAILS_FOLDER, folder, n);
}

int gate_add_file(struct gate *g, const char *key, int64_t bytes, int64_t max_output_bytes,
                  struct err *e)
{
    if (!is_folder(g, key, strcspn(key, "/")))
        return err_set(e, ERR_BUG, "the session announced %s, which is not of this task", key);
    g->bytes += bytes;
    if (g->bytes > max_output_bytes)
        return err_set(e, ERR_INPUT,
                       "the output of one task is over the limit max_output_bytes=%lld, raise it "
                       "with --limit",
                       (long long)max_output_bytes);
    struct file *file = xcalloc(1, sizeof *file);
    file->key = xstrdup(key);
    file->bytes = bytes;
    struct file **found = tsearch(file, &g->files, compare_files);
    if (found && *found == file)
        return 0;
    file_free(file);
    return err_set(e, ERR_BUG, "the session announced %s twice", key);
}

static int check_file(const struct gate *g, const char *folder, const char *name, int64_t bytes,
                      struct err *e)
{
    cleanup(free_ptr) char *key = xasprintf("%s/%s", folder, name ? name : "");
    struct file wanted = {.key = key};
    struct file **found = tfind(&wanted, &g->files, compare_files);
    if (!found)
        return err_set(e, ERR_BUG, "the result names %s, which was not delivered", key);
    if ((*found)->bytes != bytes)
        return err_set(e, ERR_BUG, "the result gives %s %lld bytes, %lld were delivered", key,
                       (long long)bytes, (long long)(*found)->bytes);
    return 0;
}

static int check_track_files(const struct gate *g, const struct manifest_track *t, struct err *e)
{
    int rc = t->init ? check_file(g, t->rendition, t->init, t->init_bytes, e) : 0;
    for (size_t i = 0; i < t->n_segments && rc == 0; i++)
        rc = check_file(g, t->rendition, t->segments[i].name, t->segments[i].bytes, e);
    return rc;
}

/* ---- pins ---- */

void gate_pins_clear(struct gate_pins *p)
{
    for (size_t i = 0; i < 2 * p->n_pairs; i++)
        free(p->strings[i]);
    free(p->strings);
    *p = (struct gate_pins){0};
}

static void pin(struct gate_pins *p, const char *kind, const char *rendition, const char *value)
{
    if (!value)
        return;
    p->strings = xrealloc_array(p->strings, 2 * (p->n_pairs + 1), sizeof *p->strings);
    p->strings[2 * p->n_pairs] =
        xasprintf("%s%s%s", kind, rendition ? "/" : "", rendition ? rendition : "");
    p->strings[2 * p->n_pairs + 1] = xstrdup(value);
    p->n_pairs++;
}

/* ---- the check ---- */

static int check_manifest(const struct gate *g, const struct manifest *m, struct err *e)
{
    int rc = g->work == WORK_VIDEO ? manifest_check_video(m, g->plan, g->chunk, e)
                                   : manifest_check_audio(m, g->plan, g->audio, e);
    for (size_t i = 0; i < m->n_tracks && rc == 0; i++)
        rc = check_track_files(g, &m->tracks[i], e);
    for (size_t i = 0; i < m->n_thumbnails && rc == 0; i++)
        rc = check_file(g, THUMBNAILS_FOLDER, m->thumbnails[i].name, m->thumbnails[i].bytes, e);
    return rc;
}

static int check_made(struct gate *g, const char *result, struct gate_pins *ret_pins, struct err *e)
{
    struct manifest *m = NULL;
    int rc = parse(&manifest_type, result, "manifest", &m, e);
    if (rc < 0)
        return rc;
    rc = check_manifest(g, m, e);
    for (size_t i = 0; i < m->n_tracks && rc == 0; i++) {
        pin(ret_pins, "init", m->tracks[i].rendition, m->tracks[i].init);
        pin(ret_pins, "params", m->tracks[i].rendition, m->tracks[i].parameter_sets);
    }
    if (rc == 0 && g->work == WORK_VIDEO)
        pin(ret_pins, "device", NULL, m->device);
    bind_free(&manifest_type, &m);
    return rc;
}

int gate_check(struct gate *g, const char *result, struct gate_pins *ret_pins, struct err *e)
{
    *ret_pins = (struct gate_pins){0};
    if (g->work != WORK_PROBE)
        return check_made(g, result, ret_pins, e);
    struct source *source = NULL;
    int rc = parse(&source_type, result, "source", &source, e);
    bind_free(&source_type, &source);
    return rc;
}
