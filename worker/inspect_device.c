/*
 * One device: opened, asked, tried, tested, measured, and at last tested once more inside the
 * sandbox that a session lives in, since what works in the open may need a file that a session
 * cannot have. The process ends after that.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strbuf.h"
#include "pipelines/media/selftest.h"
#include "pipelines/media/trial.h"
#include "worker/inspect_inside.h"
#include "worker/nvml.h"
#include "worker/sandbox.h"

enum { LOOK_US = 50000 }; /* between two looks at the load */

static const struct selftest_work measured = {1920, 1080, 8, 0};

#define PROBLEM(d, ...) inspect_problem(&(d)->problems, &(d)->n_problems, __VA_ARGS__)

static void step(struct inspect_device *d, const char *name)
{
    inspect_step(&inspect_device_type, d, &d->step, name);
}

/* ---- what it is ---- */

struct view { /* NVML's view of it; NULL where it has none */
    struct nvml *nvml;
    struct nvml_device *device;
};

static void read_facts(struct inspect_device *d, const struct view *view)
{
    static const char *const modes[] = {NULL, "off", "on"};
    struct nvml_facts facts;
    struct nvml_load load;
    struct err e = {0};
    if (nvml_read_facts(view->nvml, view->device, &facts, &e) < 0 ||
        nvml_read_load(view->nvml, view->device, &load, &e) < 0) {
        PROBLEM(d, "%s", e.msg);
        return;
    }
    d->model = xstrdup(facts.model);
    d->uuid = xstrdup(facts.uuid);
    d->memory_bytes = facts.memory_bytes;
    d->memory_used_bytes = load.memory_used_bytes;
    d->mig = xstrdup(modes[facts.mig]);
    d->mps_clients = facts.mps_clients;
    if (facts.mig == NVML_MIG_ON)
        PROBLEM(d,
                "MIG is on: CUDA sees one instance, named by its UUID in CUDA_VISIBLE_DEVICES; "
                "only instances with media engines (profiles with +me, or the whole GPU) decode");
}

static void identify(struct inspect_device *d, const struct device *device, struct view *view)
{
    char bus_id[32], compute[16];
    struct err e = {0};
    if (trial_identity(device, bus_id, compute, &e) < 0) {
        PROBLEM(d, "%s", e.msg);
        return;
    }
    d->bus_id = xstrdup(bus_id);
    d->compute = xstrdup(compute);
    if (nvml_open(&view->nvml, &e) < 0 || nvml_find(view->nvml, bus_id, &view->device, &e) < 0)
        PROBLEM(d, "%s", e.msg);
    else
        read_facts(d, view);
}

/* ---- what it can ---- */

static void keep_trials(const struct trial *trials, size_t n, struct inspect_coder **ret,
                        size_t *ret_n)
{
    *ret = xcalloc(n, sizeof **ret);
    for (size_t i = 0; i < n; i++)
        (*ret)[i] = (struct inspect_coder){
            .codec = xstrdup(trials[i].codec),
            .bits = trials[i].bits,
            .works = trials[i].is_open,
            .reason = trials[i].is_open ? NULL : xstrdup(trials[i].reason),
        };
    *ret_n = n;
}

static void try_coders(struct inspect_device *d, const struct device *device)
{
    struct trial trials[TRIALS_MAX];
    struct trial_engines engines;
    step(d, "open its decoders");
    size_t n = trial_decoders(device, trials, &engines);
    keep_trials(trials, n, &d->decoders, &d->n_decoders);
    d->nvenc_engines = engines.nvenc;
    d->nvdec_engines = engines.nvdec;
    step(d, "open its encoders");
    n = trial_encoders(device, trials);
    keep_trials(trials, n, &d->encoders, &d->n_encoders);
}

/* ---- whether it works ---- */

static bool test(const struct device *device, char **ret_text, bool *ret_has_encoder)
{
    struct selftest s;
    struct err e = {0};
    bool is_right = device_selftest(device, &s, &e) == 0;
    *ret_text = is_right ? xasprintf("%d pictures encoded by %s, decoded, scaled: right (parts are "
                                     "off by %.1f of 255 at most)",
                                     s.frames, s.encoder, s.worst)
                         : xstrdup(e.msg);
    if (ret_has_encoder)
        *ret_has_encoder = s.has_encoder;
    return is_right;
}

/* Watches the load while the main thread works; the highest counts. */
struct watch {
    const struct view *view;
    pthread_t thread;
    atomic_bool is_over;
    struct nvml_load before, peak;
    int seen; /* how often it could be read */
};

static void *watch(void *arg)
{
    struct watch *w = arg;
    while (!w->is_over) {
        struct nvml_load now;
        if (nvml_read_load(w->view->nvml, w->view->device, &now, NULL) == 0) {
            w->seen++;
            if (now.encoder_percent > w->peak.encoder_percent)
                w->peak.encoder_percent = now.encoder_percent;
            if (now.decoder_percent > w->peak.decoder_percent)
                w->peak.decoder_percent = now.decoder_percent;
        }
        clock_sleep_us(LOOK_US);
    }
    return NULL;
}

static void judge_load(struct inspect_device *d, const char *engine, double fps, int before,
                       int peak)
{
    if (fps > 0 && before >= 0 && peak <= before)
        PROBLEM(d,
                "the %s's load was not seen to rise (%d %% before, at most %d %% while it worked): "
                "the pictures may have been made elsewhere",
                engine, before, peak);
}

static void keep_load(struct inspect_device *d, const struct watch *w)
{
    d->encoder_percent = w->peak.encoder_percent;
    d->decoder_percent = w->peak.decoder_percent;
    d->encoder_percent_before = w->before.encoder_percent;
    d->decoder_percent_before = w->before.decoder_percent;
    judge_load(d, "encoder", d->encode_fps, d->encoder_percent_before, d->encoder_percent);
    judge_load(d, "decoder", d->decode_fps, d->decoder_percent_before, d->decoder_percent);
}

static void measure(struct inspect_device *d, const struct device *device, const struct view *view,
                    int64_t speed_us)
{
    struct selftest s;
    struct err e = {0};
    struct watch w = {.view = view, .peak = {-1, -1, -1, 0}};
    struct selftest_work work = measured;
    work.min_us = speed_us;
    bool is_watched = view->device &&
                      nvml_read_load(view->nvml, view->device, &w.before, NULL) == 0 &&
                      pthread_create(&w.thread, NULL, watch, &w) == 0;
    int rc = device_selftest_work(device, &work, &s, &e);
    w.is_over = true;
    if (is_watched)
        pthread_join(w.thread, NULL);
    if (rc < 0) {
        PROBLEM(d, "%dx%d: %s", work.width, work.height, e.msg);
        return;
    }
    d->encode_fps = s.encode_fps;
    d->decode_fps = s.decode_fps;
    if (is_watched && w.seen)
        keep_load(d, &w);
}

static void test_confined(struct inspect_device *d, const struct device *device)
{
    struct limits limits;
    struct sandbox_state state;
    struct err e = {0};
    limits_default(&limits);
    if (sandbox_enter(&limits, -1, device_is_gpu(device), &state, &e) < 0) {
        d->confined = xstrdup(e.msg);
        return;
    }
    d->sandbox = sandbox_describe(&state);
    d->sandbox_missing = *state.missing ? xstrdup(state.missing) : NULL;
    d->is_right_confined = test(device, &d->confined, NULL);
}

static void examine(struct inspect_device *d, const struct device *device, struct view *view,
                    int64_t speed_us)
{
    if (device_is_gpu(device)) {
        step(d, "ask who it is");
        identify(d, device, view);
    }
    try_coders(d, device);
    step(d, "test it with pictures");
    d->is_right = test(device, &d->selftest, &d->has_encoder);
    if (d->is_right && speed_us > 0) {
        step(d, "measure its speed");
        measure(d, device, view, speed_us);
    }
    if (d->is_right) {
        step(d, "test it inside the sandbox");
        test_confined(d, device);
    }
    d->is_usable = d->is_right && d->is_right_confined;
    if (d->is_usable && !d->has_encoder)
        PROBLEM(d, "it has no encoder that works: it serves decoding and filters, and jobs only "
                   "with --allow-fallback");
}

void inspect_the_device(const char *name, int64_t speed_us)
{
    struct inspect_device *d = xcalloc(1, sizeof *d);
    struct device *device = NULL;
    struct view view = {0};
    struct err e = {0};
    d->device = xstrdup(name);
    d->encoder_percent = d->decoder_percent = -1;
    d->encoder_percent_before = d->decoder_percent_before = -1;
    step(d, "open it");
    if (device_open(name, &device, &e) < 0)
        d->failure = xstrdup(e.msg);
    else
        examine(d, device, &view, speed_us);
    step(d, NULL);
}
