/*
 * The dispatcher against a real redis-server: plan and publish, with a hand-made source and a
 * worker that is not one: it commits manifests made by arithmetic, as a good session would measure
 * them, or spoilt in one way. No media is touched.
 */
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/strbuf.h"
#include "dispatcher/dispatcher.h"
#include "dispatcher/report.h"
#include "dispatcher/task.h"
#include "pipelines/plan/manifest.h"
#include "pipelines/plan/playlist.h"
#include "queue/embedded.h"

enum {
    FPS = 25,
    TICKS = 512, /* of one frame, at 1/12800 s */
    FRAMES = 25 * 45 + 7,
    PACKET = 1024,
    SAMPLES = 48000 * 45,
    BYTES_PER_FRAME = 1000,
};

struct farm {
    char dir[64];
    char *output;
    struct embedded_redis *redis;
    struct queue *q;
    int n_chunks; /* video tasks of the job that reached publish */
};

static int setup(void **state)
{
    struct err e = {0};
    struct farm *f = xcalloc(1, sizeof *f);
    strcpy(f->dir, "/tmp/test_dispatcher.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->output = xasprintf("%s/out", f->dir);
    assert_int_equal(mkdir(f->output, 0755), 0);
    struct queue_options options = {.lease_us = 2000000, .retry_us = 2000000};
    if (embedded_redis_start(f->dir, &f->redis, &e) < 0 ||
        queue_open(embedded_redis_url(f->redis), &options, &f->q, &e) < 0)
        fail_msg("%s", e.msg);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct farm *f = *state;
    queue_close(&f->q);
    embedded_redis_stop(&f->redis);
    cleanup(free_ptr) char *command = xasprintf("rm -rf %s", f->dir);
    assert_int_equal(system(command), 0);
    free(f->output);
    free(f);
    return 0;
}

/* transfer NULL: audio only. */
static char *source_text(const char *transfer)
{
    bool is_hdr = transfer && !strcmp(transfer, "smpte2084");
    struct source_border borders[7];
    for (int k = 0; k < 7; k++)
        borders[k] = (struct source_border){.key_pts = (k + 1) * 6 * FPS * TICKS, .frames = 0};
    struct source_video video = {
        .codec = "h264",
        .profile = "High",
        .width = 960,
        .height = 540,
        .time_base = {1, FPS * TICKS},
        .end = FRAMES * TICKS,
        .frames = FRAMES,
        .frame_rate = {FPS, 1},
        .is_cfr = true,
        .max_interval = TICKS,
        .pix_fmt = "yuv420p",
        .bit_depth = 8,
        .color_transfer = (char *)transfer,
        .color_space = is_hdr ? "ictcp" : NULL, /* which tone mapping does not take */
        .border_segment = {6, 1},
        .borders = borders,
        .n_borders = 7,
    };
    struct source_audio audio = {
        .stream = 1,
        .codec = "aac",
        .sample_rate = 48000,
        .channels = 2,
        .layout = "stereo",
        .language = "deu",
        .is_default = true,
        .time_base = {1, 48000},
        .end = SAMPLES,
    };
    char *note = "a note of the probe";
    struct source source = {
        .container = "mov,mp4,m4a,3gp,3g2,mj2",
        .size_bytes = 12345678,
        .origin_base = {1, transfer ? FPS * TICKS : 48000},
        .duration = {45, 1},
        .video = transfer ? &video : NULL,
        .audio = &audio,
        .n_audio = 1,
        .repaired_missing = 3,
        .notes = &note,
        .n_notes = 1,
    };
    return bind_dump(&source_type, &source);
}

static void submit(struct farm *f, const char *id, double chunk_s)
{
    struct err e = {0};
    struct profile *profile = NULL;
    struct plan_options options = {.chunk_seconds = chunk_s, .segments = -1};
    if (profile_load("h264-fast", &profile, &e) < 0)
        fail_msg("%s", e.msg);
    profile->thumbnails = xcalloc(1, sizeof *profile->thumbnails);
    *profile->thumbnails = (struct profile_thumbnails){.every = {10, 1}, .height = 90};
    cleanup(free_ptr) char *profile_text = bind_dump(&profile_type, profile);
    cleanup(free_ptr) char *options_text = bind_dump(&plan_options_type, &options);
    cleanup(free_ptr) char *ret_id = NULL;
    struct job_spec spec = {.id = (char *)id,
                            .input = "/in.mp4",
                            .output = f->output,
                            .profile = profile_text,
                            .options = options_text};
    int r = queue_submit(f->q, &spec, &ret_id, &e);
    if (r != 1)
        fail_msg("submit: %d: %s", r, e.msg);
    assert_string_equal(ret_id, id);
    bind_free(&profile_type, &profile);
}

static struct lease *lease(struct farm *f, enum task_class class)
{
    struct err e = {0};
    struct lease *l = NULL;
    int r = queue_lease(f->q, class, "test", 3000000, &l, &e);
    if (r < 0)
        fail_msg("lease: %s", e.msg);
    return l;
}

static void commit(struct farm *f, const struct lease *l, const char *result)
{
    struct err e = {0};
    int r = queue_commit(f->q, l, result, NULL, 0, &e);
    if (r != LEASE_HELD)
        fail_msg("commit %s: %d: %s", l->task, r, e.msg);
}

static void commit_probe(struct farm *f, const char *transfer)
{
    cleanup(lease_free) struct lease *l = lease(f, TASK_CLASS_WORKER);
    assert_non_null(l);
    assert_int_equal(l->kind, TASK_PROBE);
    cleanup(free_ptr) char *text = source_text(transfer);
    commit(f, l, text);
}

/* Adds one frame or packet of `ticks` to the track's segment k. */
static void add_unit(struct manifest_track *t, int64_t k, int64_t start, int64_t ticks,
                     bool is_keyframe)
{
    if (!t->n_segments)
        t->start = start;
    if (!t->n_segments || t->segments[t->n_segments - 1].index != k) {
        t->segments = xrealloc_array(t->segments, t->n_segments + 1, sizeof *t->segments);
        t->segments[t->n_segments++] = (struct manifest_segment){
            .index = k, .start = start, .name = xasprintf("%06" PRId64 "-abcd.m4s", k)};
    }
    struct manifest_segment *s = &t->segments[t->n_segments - 1];
    s->duration += ticks;
    s->frames++;
    s->keyframes += is_keyframe;
    s->bytes += BYTES_PER_FRAME;
    t->frames++;
    t->keyframes += is_keyframe;
    t->end = start + ticks;
}

static void fill_video(struct manifest_track *t, const struct plan *plan,
                       const struct plan_rendition *r, const struct plan_chunk *chunk)
{
    struct timeline tl;
    plan_timeline(plan, &tl);
    assert_false(rational_is_set(r->fps)); /* 25 fps is below every cap of the profile */
    t->rendition = xstrdup(r->name);
    t->init = xstrdup("init-abcd.mp4");
    t->init_bytes = 700;
    t->codecs = xstrdup("avc1.64001f");
    t->parameter_sets = xstrdup("feed");
    t->time_base = r->time_base;
    t->width = r->width;
    t->height = r->height;
    t->video_range = xstrdup("SDR");
    for (int64_t i = 0; i < FRAMES; i++) {
        int64_t at = i * TICKS, k = timeline_segment(&tl, at);
        bool is_key = i == 0 || timeline_gop(&tl, at) != timeline_gop(&tl, at - TICKS);
        int64_t start = rational_rescale(at, plan->time_base, r->time_base, ROUND_NEAREST);
        int64_t end = rational_rescale(at + TICKS, plan->time_base, r->time_base, ROUND_NEAREST);
        if (k >= chunk->first_segment && k < chunk->end_segment)
            add_unit(t, k, start, end - start, is_key);
    }
}

/* Those of the times 0, 10, 20, 30 and 40 s that begin within the chunk. */
static void fill_thumbnails(struct manifest *m, const struct plan *plan,
                            const struct plan_chunk *chunk)
{
    struct timeline tl;
    plan_timeline(plan, &tl);
    for (int64_t at = 0; at < FRAMES * TICKS; at += 10 * FPS * TICKS) {
        int64_t k = timeline_segment(&tl, at), index = at / (10 * FPS * TICKS);
        if (k < chunk->first_segment || k >= chunk->end_segment)
            continue;
        m->thumbnails = xrealloc_array(m->thumbnails, m->n_thumbnails + 1, sizeof *m->thumbnails);
        m->thumbnails[m->n_thumbnails++] =
            (struct manifest_thumbnail){.index = index,
                                        .start = at,
                                        .bytes = 50,
                                        .name = xasprintf("%06" PRId64 "-abcd.jpg", index)};
    }
}

static void fill_audio(struct manifest_track *t, const struct plan *plan,
                       const struct plan_audio *a)
{
    t->rendition = xstrdup(a->name);
    t->init = xstrdup("init-abcd.mp4");
    t->init_bytes = 600;
    t->codecs = xstrdup("mp4a.40.2");
    t->parameter_sets = xstrdup("beef");
    t->time_base = (struct rational){1, a->sample_rate};
    t->channels = a->channels;
    t->sample_rate = a->sample_rate;
    t->priming = PACKET;
    int64_t packets = (SAMPLES + PACKET - 1) / PACKET;
    for (int64_t p = 0, k = 0; p < packets; p++) {
        if (p >= timeline_audio_packet(plan->segment, a->sample_rate, 0, PACKET, k + 1))
            k++;
        add_unit(t, k, p * PACKET, PACKET, false);
    }
}

static struct plan *plan_of(const struct lease *l)
{
    struct plan *plan = NULL;
    struct err e = {0};
    assert_non_null(l->plan);
    if (bind_parse(&plan_type, l->plan, strlen(l->plan), "plan", ERR_BUG, &plan, &e) < 0)
        fail_msg("%s", e.msg);
    return plan;
}

static struct manifest *manifest_for(const struct lease *l, const struct plan *plan)
{
    struct err e = {0};
    struct manifest *m = xcalloc(1, sizeof *m);
    m->chunk = -1;
    m->n_tracks = l->kind == TASK_VIDEO ? plan->n_renditions : 1;
    m->tracks = xcalloc(m->n_tracks, sizeof *m->tracks);
    m->wall_us = 250000;
    m->cpu_us = 500000;
    m->device = xstrdup("cpu test");
    if (l->kind == TASK_AUDIO) {
        size_t i;
        assert_int_equal(sscanf(l->payload, "{\"audio\": %zu}", &i), 1);
        assert_true(i < plan->n_audio);
        fill_audio(&m->tracks[0], plan, &plan->audio[i]);
        m->frames_source = m->frames_decoded = m->tracks[0].frames; /* packets: no video frames */
        return m;
    }
    struct plan_chunk *chunk = NULL;
    if (bind_parse(&plan_chunk_type, l->payload, strlen(l->payload), "chunk", ERR_BUG, &chunk, &e) <
        0)
        fail_msg("%s", e.msg);
    m->chunk = chunk->index;
    for (size_t i = 0; i < m->n_tracks; i++)
        fill_video(&m->tracks[i], plan, &plan->renditions[i], chunk);
    fill_thumbnails(m, plan, chunk);
    m->frames_source = m->tracks[0].frames;
    m->frames_decoded = m->tracks[0].frames + 5;
    bind_free(&plan_chunk_type, &chunk);
    return m;
}

/* Leases and commits all video and audio tasks; spoil (may be NULL) spoils the manifest of chunk 1.
 * Returns how many video tasks there were. */
static int work_all(struct farm *f, void (*spoil)(struct manifest *m))
{
    int n_video = 0;
    struct err e = {0};
    for (;;) {
        cleanup(lease_free) struct lease *l = NULL;
        if (queue_lease(f->q, TASK_CLASS_WORKER, "test", 0, &l, &e) != 1)
            break;
        struct plan *plan = plan_of(l);
        struct manifest *m = manifest_for(l, plan);
        n_video += l->kind == TASK_VIDEO;
        if (spoil && m->chunk == 1)
            spoil(m);
        cleanup(free_ptr) char *text = bind_dump(&manifest_type, m);
        commit(f, l, text);
        bind_free(&manifest_type, &m);
        bind_free(&plan_type, &plan);
    }
    return n_video;
}

static void run_plan(struct farm *f)
{
    struct err e = {0};
    cleanup(lease_free) struct lease *l = lease(f, TASK_CLASS_DISPATCHER);
    assert_non_null(l);
    assert_int_equal(l->kind, TASK_PLAN);
    int r = dispatcher_plan(f->q, l, &e);
    if (r != LEASE_HELD)
        fail_msg("plan: %d: %s", r, e.msg);
}

/* Up to where publish is ready. */
static struct lease *reach_publish(struct farm *f, void (*spoil)(struct manifest *m))
{
    submit(f, "job", 12);
    commit_probe(f, "bt709");
    run_plan(f);
    f->n_chunks = work_all(f, spoil);
    assert_true(f->n_chunks >= 3);
    struct lease *l = lease(f, TASK_CLASS_DISPATCHER);
    assert_non_null(l);
    assert_int_equal(l->kind, TASK_PUBLISH);
    return l;
}

static char *read_output(struct farm *f, const char *key)
{
    cleanup(free_ptr) char *path = xasprintf("%s/%s", f->output, key);
    cleanup(close_file) FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    struct strbuf b = {0};
    char bytes[4096];
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, file)) > 0;)
        strbuf_add(&b, bytes, n);
    return strbuf_take(&b);
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

static struct job *get_job(struct farm *f, const char *id)
{
    struct err e = {0};
    struct job *job = NULL;
    if (queue_job_get(f->q, id, &job, &e) < 0)
        fail_msg("%s", e.msg);
    return job;
}

static void check_report(const struct job *job, const struct plan *plan, int n_chunks)
{
    struct err e = {0};
    struct report *r = NULL;
    assert_non_null(job->report);
    if (bind_parse(&report_type, job->report, strlen(job->report), "report", ERR_BUG, &r, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(r->master, "master.m3u8");
    assert_int_equal(r->n_renditions, plan->n_renditions + plan->n_audio);
    assert_int_equal(r->frames_source, FRAMES);
    assert_int_equal(r->frames_decoded, FRAMES + n_chunks * 5);
    assert_true(r->waste > 1 && r->waste < 1.05);
    assert_int_equal(r->repaired_missing, 3);
    assert_false(r->is_truncated);
    assert_true(r->n_notes >= 1);
    double tasks = n_chunks + (double)plan->n_audio;
    assert_true(r->task_s > 0.249 * tasks && r->task_s < 0.251 * tasks);
    assert_true(r->cpu_s > 0.499 * tasks && r->cpu_s < 0.501 * tasks);
    for (size_t i = 0; i < plan->n_renditions; i++) {
        const struct report_rendition *v = &r->renditions[i];
        assert_string_equal(v->name, plan->renditions[i].name);
        assert_int_equal(v->kind, REPORT_VIDEO);
        assert_int_equal(v->segments, 8);
        assert_int_equal(v->frames, FRAMES);
        assert_int_equal(v->bytes, FRAMES * BYTES_PER_FRAME + 700);
        assert_true(v->duration_s > 45.27 && v->duration_s < 45.29);
        /* 25 frames of 1000 bytes a second */
        assert_int_equal(v->average_bps, 200000);
        assert_true(v->peak_bps >= v->average_bps && v->peak_bps < 210000);
        assert_true(rational_cmp(v->frame_rate, (struct rational){FPS, 1}) == 0);
    }
    assert_int_equal(r->renditions[plan->n_renditions].kind, REPORT_AUDIO);
    assert_string_equal(r->renditions[plan->n_renditions].language, "deu");
    int64_t bytes = 5 * 50;
    for (size_t i = 0; i < r->n_renditions; i++)
        bytes += r->renditions[i].bytes;
    assert_int_equal(r->thumbnails, 5);
    assert_int_equal(r->bytes, bytes);
    bind_free(&report_type, &r);
}

static void check_playlists(struct farm *f, const struct plan *plan)
{
    cleanup(free_ptr) char *master = read_output(f, "master.m3u8");
    assert_non_null(master);
    assert_int_equal(count(master, "#EXT-X-STREAM-INF:"), plan->n_renditions);
    assert_int_equal(count(master, "#EXT-X-MEDIA:"), plan->n_audio);
    for (size_t i = 0; i < plan->n_renditions; i++) {
        cleanup(free_ptr) char *key = xasprintf("%s/" PLAYLIST_NAME, plan->renditions[i].name);
        cleanup(free_ptr) char *text = read_output(f, key);
        assert_non_null(text);
        assert_non_null(strstr(master, key));
        assert_int_equal(count(text, "#EXTINF:"), 8);
        assert_non_null(strstr(text, "000007-abcd.m4s"));
        assert_non_null(strstr(text, "#EXT-X-ENDLIST"));
    }
}

static void check_thumbnails(struct farm *f)
{
    cleanup(free_ptr) char *text = read_output(f, "thumbnails/thumbnails.vtt");
    assert_non_null(text);
    assert_int_equal(count(text, " --> "), 5);
    assert_non_null(strstr(text, "00:00:40.000 --> 00:00:45.280\n000004-abcd.jpg\n"));
}

static void plan_and_publish(void **state)
{
    struct farm *f = *state;
    struct err e = {0};
    cleanup(lease_free) struct lease *l = reach_publish(f, NULL);
    cleanup(free_ptr) char *early = read_output(f, "master.m3u8");
    assert_null(early);
    int r = dispatcher_publish(f->q, l, &e);
    if (r != LEASE_HELD)
        fail_msg("publish: %d: %s", r, e.msg);
    cleanup(job_free) struct job *job = get_job(f, "job");
    assert_int_equal(job->state, JOB_DONE);
    struct plan *plan = plan_of(l);
    assert_true(plan->n_renditions >= 2);
    assert_int_equal(plan->n_audio, 1);
    check_report(job, plan, f->n_chunks);
    check_playlists(f, plan);
    check_thumbnails(f);
    bind_free(&plan_type, &plan);
}

/* Twice by two dispatchers: the same bytes, and the second commit is answered, not doubled. */
static void publish_again(void **state)
{
    struct farm *f = *state;
    struct err e = {0};
    cleanup(lease_free) struct lease *l = reach_publish(f, NULL);
    assert_int_equal(dispatcher_publish(f->q, l, &e), LEASE_HELD);
    cleanup(free_ptr) char *first = read_output(f, "master.m3u8");
    int r = dispatcher_publish(f->q, l, &e);
    assert_true(r == LEASE_HELD || r == LEASE_LOST);
    cleanup(free_ptr) char *second = read_output(f, "master.m3u8");
    assert_string_equal(first, second);
}

static void spoil_parameters(struct manifest *m)
{
    free(m->tracks[1].parameter_sets);
    m->tracks[1].parameter_sets = xstrdup("other");
}

static void spoil_join(struct manifest *m)
{
    m->tracks[0].start += 1;
    m->tracks[0].segments[0].start += 1;
    m->tracks[0].segments[0].duration -= 1;
}

static void spoil_order(struct manifest *m)
{
    m->chunk = 2;
}

static void spoil_thumbnails(struct manifest *m)
{
    m->thumbnails[0].index = 0; /* the chunk before has it */
}

static void spoil_name(struct manifest *m)
{
    free(m->tracks[0].rendition);
    m->tracks[0].rendition = xstrdup("another");
}

static void spoilt_manifests(void **state)
{
    struct farm *f = *state;
    static void (*const spoils[])(struct manifest * m) = {spoil_parameters, spoil_join, spoil_order,
                                                          spoil_name, spoil_thumbnails};
    for (size_t i = 0; i < sizeof spoils / sizeof spoils[0]; i++) {
        struct err e = {0};
        cleanup(lease_free) struct lease *l = reach_publish(f, spoils[i]);
        assert_int_equal(dispatcher_publish(f->q, l, &e), -ERR_BUG);
        assert_non_null(strstr(e.msg, "video/000001"));
        cleanup(free_ptr) char *master = read_output(f, "master.m3u8");
        assert_null(master);
        teardown(state);
        setup(state);
        f = *state;
    }
}

static void cancelled_before_publish(void **state)
{
    struct farm *f = *state;
    struct err e = {0};
    cleanup(lease_free) struct lease *l = reach_publish(f, NULL);
    assert_int_equal(queue_cancel(f->q, "job", &e), 1);
    int r = dispatcher_publish(f->q, l, &e);
    assert_true(r == LEASE_CANCELLED || r == LEASE_LOST);
    cleanup(free_ptr) char *master = read_output(f, "master.m3u8");
    assert_null(master);
}

/* A master is the last thing: where the track of thumbnails cannot be written, there is none. */
static void thumbnails_before_master(void **state)
{
    struct farm *f = *state;
    struct err e = {0};
    cleanup(free_ptr) char *folder = xasprintf("%s/thumbnails", f->output);
    cleanup(close_file) FILE *in_the_way = fopen(folder, "w");
    assert_non_null(in_the_way);
    cleanup(lease_free) struct lease *l = reach_publish(f, NULL);
    assert_true(dispatcher_publish(f->q, l, &e) < 0);
    assert_non_null(strstr(e.msg, "thumbnails"));
    cleanup(free_ptr) char *master = read_output(f, "master.m3u8");
    assert_null(master);
}

static void audio_only(void **state)
{
    struct farm *f = *state;
    struct err e = {0};
    submit(f, "job", 12);
    commit_probe(f, NULL);
    run_plan(f);
    assert_int_equal(work_all(f, NULL), 0);
    cleanup(lease_free) struct lease *l = lease(f, TASK_CLASS_DISPATCHER);
    assert_non_null(l);
    if (dispatcher_publish(f->q, l, &e) != LEASE_HELD)
        fail_msg("%s", e.msg);
    cleanup(free_ptr) char *master = read_output(f, "master.m3u8");
    assert_non_null(master);
    assert_true(count(master, "#EXT-X-STREAM-INF:") >= 1);
    assert_null(strstr(master, "avc1"));
    cleanup(job_free) struct job *job = get_job(f, "job");
    assert_int_equal(job->state, JOB_DONE);
    assert_non_null(strstr(job->report, "\"waste\":0.0"));
}

static void refused_source(void **state)
{
    struct farm *f = *state;
    struct err e = {0};
    submit(f, "job", 0);
    commit_probe(f, "smpte2084");
    cleanup(lease_free) struct lease *l = lease(f, TASK_CLASS_DISPATCHER);
    assert_int_equal(dispatcher_plan(f->q, l, &e), -ERR_INPUT);
    assert_non_null(strstr(e.msg, "allow-hdr-as-is"));
}

static pid_t start_dispatcher(struct farm *f)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct err e = {0};
        log_init(LOG_ERROR, "dispatcher");
        struct dispatcher_options options = {embedded_redis_url(f->redis)};
        _exit(dispatcher_run(&options, &e) == 0 ? 0 : 1);
    }
    assert_true(pid > 0);
    return pid;
}

static void stop_dispatcher(pid_t pid)
{
    int status;
    assert_int_equal(kill(pid, SIGTERM), 0);
    int64_t start_us = clock_mono_us();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(clock_mono_us() - start_us < 3000000);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void wait_for_state(struct farm *f, const char *id, enum job_state wanted)
{
    struct err e = {0};
    for (int i = 0; i < 100; i++) {
        cleanup(job_free) struct job *job = get_job(f, id);
        if (job->state == wanted)
            return;
        queue_job_wait(f->q, id, 100000, &e);
    }
    fail_msg("job %s did not come to be %s", id, job_state_names[wanted]);
}

/* The loop: plans, requeues a worker's lapsed lease, publishes, fails a bad source, stops. */
static void dispatcher_serves(void **state)
{
    struct farm *f = *state;
    pid_t pid = start_dispatcher(f);
    submit(f, "good", 12);
    struct lease *forgotten = lease(f, TASK_CLASS_WORKER); /* 2 s */
    assert_int_equal(forgotten->kind, TASK_PROBE);
    for (int i = 0; i < 3; i++) {
        cleanup(lease_free) struct lease *again = lease(f, TASK_CLASS_WORKER);
        if (!again)
            continue;
        assert_string_equal(again->task, "probe");
        assert_true(again->token > forgotten->token);
        cleanup(free_ptr) char *text = source_text("bt709");
        commit(f, again, text);
        break;
    }
    lease_free(&forgotten);
    wait_for_state(f, "good", JOB_RUNNING);
    work_all(f, NULL);
    wait_for_state(f, "good", JOB_DONE);
    submit(f, "bad", 12);
    commit_probe(f, "smpte2084");
    wait_for_state(f, "bad", JOB_FAILED);
    cleanup(job_free) struct job *bad = get_job(f, "bad");
    assert_int_equal(bad->reason_kind, ERR_INPUT);
    stop_dispatcher(pid);
}

int main(void)
{
    log_init(LOG_ERROR, "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plan_and_publish, setup, teardown),
        cmocka_unit_test_setup_teardown(publish_again, setup, teardown),
        cmocka_unit_test_setup_teardown(spoilt_manifests, setup, teardown),
        cmocka_unit_test_setup_teardown(cancelled_before_publish, setup, teardown),
        cmocka_unit_test_setup_teardown(thumbnails_before_master, setup, teardown),
        cmocka_unit_test_setup_teardown(audio_only, setup, teardown),
        cmocka_unit_test_setup_teardown(refused_source, setup, teardown),
        cmocka_unit_test_setup_teardown(dispatcher_serves, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
