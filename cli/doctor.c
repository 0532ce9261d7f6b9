#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/format.h"
#include "cli/verbs.h"
#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/trial.h"
#include "worker/inspect.h"

enum { GPUS_MAX = 64 };

struct doctor_options {
    struct cli_common common;
    const char *device, *redis;
    double speed_s, timeout_s;
};

struct findings {
    struct inspect_system *system; /* NULL: no GPU was asked for */
    struct inspect_device *gpus[GPUS_MAX], *cpu;
    size_t n_gpus;
    bool has_cpu;       /* else the CPU is only what GPUs are compared with */
    char *redis_server; /* NULL: none on PATH */
    json_t *workers;    /* of the queue that was named, with trouble on a device; else NULL */
    char *no_queue;     /* why they are not known */
};

static void findings_clear(struct findings *f)
{
    bind_free(&inspect_system_type, &f->system);
    for (size_t i = 0; i < f->n_gpus; i++)
        bind_free(&inspect_device_type, &f->gpus[i]);
    bind_free(&inspect_device_type, &f->cpu);
    free(f->redis_server);
    json_decref(f->workers);
    free(f->no_queue);
}

/* ---- find out ---- */

enum { ALL_GPUS = -1, NO_GPU = -2 };

static int choose(const char *device, int *ret_gpu, bool *ret_cpu, struct err *e)
{
    char rest;
    *ret_gpu = ALL_GPUS;
    *ret_cpu = !device || !strcmp(device, "auto");
    if (*ret_cpu || !strcmp(device, "cuda"))
        return 0;
    *ret_gpu = NO_GPU;
    *ret_cpu = !strcmp(device, "cpu");
    if (*ret_cpu)
        return 0;
    if (sscanf(device, "cuda:%d%c", ret_gpu, &rest) == 1 && *ret_gpu >= 0 && *ret_gpu < GPUS_MAX)
        return 0;
    return err_set(e, ERR_USAGE, "--device %s: expected cpu, cuda, cuda:N or auto (everything)",
                   device);
}

static int look_at_gpus(int gpu, const struct inspect_options *o, struct findings *f, struct err *e)
{
    int rc = inspect_system(o, &f->system, e);
    int first = gpu == ALL_GPUS ? 0 : gpu;
    int end = gpu == ALL_GPUS && rc == 0 ? f->system->cuda_devices : first + 1;
    for (int i = first; rc == 0 && i < end && f->n_gpus < GPUS_MAX; i++) {
        char name[32];
        snprintf(name, sizeof name, "cuda:%d", i);
        rc = inspect_device(name, o, &f->gpus[f->n_gpus], e);
        f->n_gpus += rc == 0;
    }
    return rc;
}

static void note_trouble(json_t *all, const json_t *worker)
{
    size_t i;
    json_t *device;
    json_array_foreach(json_object_get(worker, "devices"), i, device)
    {
        const char *state = json_string_value(json_object_get(device, "state"));
        if (state && strcmp(state, "working") != 0)
            json_array_append_new(all, json_pack("{s:O?, s:O?, s:s, s:O?}", "worker",
                                                 json_object_get(worker, "worker"), "device",
                                                 json_object_get(device, "device"), "state", state,
                                                 "reason", json_object_get(device, "reason")));
    }
}

/* What the workers of a queue say of their devices, where it is not that they work. */
static void ask_queue(const char *redis, struct findings *f)
{
    cleanup(queue_close) struct queue *q = NULL;
    struct err e = {0};
    json_t *all = NULL, *worker;
    size_t i;
    if (cli_queue_open(redis, &q, &e) < 0 || queue_overview(q, &all, &e) < 0) {
        f->no_queue = xstrdup(e.msg);
        return;
    }
    f->workers = json_array();
    json_array_foreach(json_object_get(all, "workers"), i, worker) note_trouble(f->workers, worker);
    json_decref(all);
}

static int find_out(const struct doctor_options *o, struct findings *f, struct err *e)
{
    const struct inspect_options inspect = {(int64_t)(o->speed_s * 1e6),
                                            (int64_t)((o->timeout_s + 2 * o->speed_s) * 1e6)};
    int gpu, rc;
    if ((rc = choose(o->device, &gpu, &f->has_cpu, e)) < 0)
        return rc;
    if (o->redis && *o->redis) /* first, since devices take their time */
        ask_queue(o->redis, f);
    if (gpu != NO_GPU && (rc = look_at_gpus(gpu, &inspect, f, e)) < 0)
        return rc;
    bool is_compared = f->n_gpus && inspect.speed_us;
    if ((f->has_cpu || is_compared) && (rc = inspect_device("cpu", &inspect, &f->cpu, e)) < 0)
        return rc;
    for (size_t i = 0; i < f->n_gpus && f->cpu; i++)
        inspect_compare(f->gpus[i], f->cpu);
    f->redis_server = inspect_find_program("redis-server");
    if (!f->redis_server)
        f->redis_server = inspect_find_program("valkey-server");
    return 0;
}

static bool is_any_usable(const struct findings *f)
{
    bool is_usable = f->has_cpu && f->cpu->is_usable;
    for (size_t i = 0; i < f->n_gpus; i++)
        is_usable |= f->gpus[i]->is_usable;
    return is_usable;
}

/* ---- show ---- */

static void print_problems(char **problems, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("  problem    %s\n", problems[i]);
}

static const char *or_unknown(const char *s)
{
    return s ? s : "unknown";
}

static void print_system(const struct inspect_system *s)
{
    printf("driver\n");
    if (s->driver || s->cuda || s->nvenc_api)
        printf("  version    %s, CUDA %s, NVENC API %s (%s needed: driver %s or newer)\n",
               or_unknown(s->driver), or_unknown(s->cuda), or_unknown(s->nvenc_api),
               or_unknown(s->nvenc_api_needed), or_unknown(s->driver_needed));
    for (size_t i = 0; i < s->n_libraries; i++)
        if (!s->libraries[i].is_there)
            printf("  missing    %s\n", s->libraries[i].name);
    printf("  GPUs       %d, of which this process may use %d\n", s->gpus, s->cuda_devices);
    if (s->container)
        printf("  container  %s\n", s->container);
    if (s->mps)
        printf("  MPS        %s\n", s->mps);
    if (s->failure)
        printf("  failed     %s\n", s->failure);
    print_problems(s->problems, s->n_problems);
}

static const char *depth(const struct inspect_coder *c)
{
    return c->bits > 8 ? " 10 bit" : "";
}

static void print_coders(const char *verb, const struct inspect_coder *all, size_t n)
{
    const char *before = " ";
    if (n)
        printf("  %-10s", verb);
    for (size_t i = 0; i < n; i++)
        if (all[i].works) {
            printf("%s%s%s", before, all[i].codec, depth(&all[i]));
            before = ", ";
        }
    if (n)
        puts(*before == ' ' ? " nothing" : "");
    for (size_t i = 0; i < n; i++)
        if (!all[i].works)
            printf("  %-10s not %s%s: %s\n", "", all[i].codec, depth(&all[i]),
                   or_unknown(all[i].reason));
}

static void print_identity(const struct inspect_device *d)
{
    char total[FORMAT_MAX], used[FORMAT_MAX];
    if (d->bus_id)
        printf("  is         %s, %s, %s used of %s, at %s, compute %s\n", or_unknown(d->model),
               or_unknown(d->uuid), format_bytes(d->memory_used_bytes, used),
               format_bytes(d->memory_bytes, total), d->bus_id, or_unknown(d->compute));
    if (d->nvenc_engines || d->nvdec_engines)
        printf("  engines    %d NVENC, %d NVDEC\n", d->nvenc_engines, d->nvdec_engines);
    if (d->mig || d->mps_clients)
        printf("  sharing    MIG %s, %d MPS clients\n", d->mig ? d->mig : "not on this model",
               d->mps_clients);
}

static void print_speed(const struct inspect_device *d)
{
    if (d->decode_fps <= 0)
        return;
    printf("  speed      ");
    if (d->encode_fps > 0)
        printf("encode %.0f fps, ", d->encode_fps);
    printf("decode and scale %.0f fps (1080p)", d->decode_fps);
    printf(d->times_cpu > 0 ? ": %.1f times one core of the CPU\n" : "\n", d->times_cpu);
    if (d->encoder_percent >= 0)
        printf("  load       encoder %d to %d %%\n", d->encoder_percent_before, d->encoder_percent);
    if (d->decoder_percent >= 0)
        printf("  load       decoder %d to %d %%\n", d->decoder_percent_before, d->decoder_percent);
}

static void print_device(const struct inspect_device *d)
{
    printf("%s: %s\n", d->device,
           !d->is_usable    ? "not usable"
           : d->has_encoder ? "usable"
                            : "usable to decode and filter, not to encode");
    print_identity(d);
    print_coders("encodes", d->encoders, d->n_encoders);
    print_coders("decodes", d->decoders, d->n_decoders);
    if (d->selftest)
        printf("  self-test  %s\n", d->selftest);
    if (d->confined)
        printf("  sandbox    %s%s%s: self-test %s\n", or_unknown(d->sandbox),
               d->sandbox_missing ? ", without " : "", d->sandbox_missing ? d->sandbox_missing : "",
               d->is_right_confined ? "right" : d->confined);
    print_speed(d);
    if (d->failure)
        printf("  failed     %s\n", d->failure);
    print_problems(d->problems, d->n_problems);
}

static void print_workers(const json_t *workers)
{
    size_t i;
    json_t *w;
    json_array_foreach(workers, i, w)
    {
        const char *reason = json_string_value(json_object_get(w, "reason"));
        printf("worker %s: %s is %s%s%s\n", json_string_value(json_object_get(w, "worker")),
               json_string_value(json_object_get(w, "device")),
               json_string_value(json_object_get(w, "state")), reason ? ": " : "",
               reason ? reason : "");
    }
}

static void print_findings(const struct findings *f)
{
    printf("transcode %s with FFmpeg %s\n", TRANSCODE_VERSION, trial_ffmpeg_version());
    printf("redis-server %s\n",
           f->redis_server
               ? f->redis_server
               : "is not on PATH: `transcode run` needs it (apt-get install redis-server)");
    if (f->system)
        print_system(f->system);
    for (size_t i = 0; i < f->n_gpus; i++)
        print_device(f->gpus[i]);
    if (f->has_cpu)
        print_device(f->cpu);
    print_workers(f->workers);
    if (f->no_queue)
        printf("workers are not known: %s\n", f->no_queue);
}

static json_t *findings_json(const struct findings *f)
{
    json_t *devices = json_array();
    for (size_t i = 0; i < f->n_gpus; i++)
        json_array_append_new(devices, bind_write(&inspect_device_type, f->gpus[i]));
    if (f->has_cpu)
        json_array_append_new(devices, bind_write(&inspect_device_type, f->cpu));
    return json_pack("{s:s, s:s, s:b, s:s?, s:o?, s:o, s:O?, s:s?}", "version", TRANSCODE_VERSION,
                     "ffmpeg", trial_ffmpeg_version(), "is_usable", is_any_usable(f),
                     "redis_server", f->redis_server, "system",
                     f->system ? bind_write(&inspect_system_type, f->system) : NULL, "devices",
                     devices, "workers", f->workers, "no_queue", f->no_queue);
}

static int doctor_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)argc, (void)argv;
    const struct doctor_options *o = arg;
    cleanup(findings_clear) struct findings f = {0};
    int rc = find_out(o, &f, e);
    if (rc < 0)
        return rc;
    if (o->common.is_json)
        cli_print_json(findings_json(&f));
    else
        print_findings(&f);
    return is_any_usable(&f) ? 0 : err_exit_code(ERR_DEVICE);
}

static const struct opt options[] = {
    {.name = "device",
     .letter = 'd',
     .type = OPT_STRING,
     .offset = offsetof(struct doctor_options, device),
     .argument = "DEVICE",
     .complete = "cpu cuda auto",
     .help = "what to look at: cpu; cuda, all GPUs; cuda:N; by itself everything"},
    {.name = "speed",
     .type = OPT_SECONDS,
     .offset = offsetof(struct doctor_options, speed_s),
     .argument = "SECONDS",
     .fallback = "1.5",
     .max = 3600,
     .help = "length of each measurement of speed; 0: none"},
    {.name = "timeout",
     .type = OPT_SECONDS,
     .offset = offsetof(struct doctor_options, timeout_s),
     .argument = "SECONDS",
     .fallback = "60",
     .min = 1,
     .max = 3600,
     .help = "time for each device besides that, after which its driver is taken to be wedged"},
    CLI_OPT_REDIS(struct doctor_options),
    {0},
};

const struct opt_verb verb_doctor = {
    .name = "doctor",
    .positionals = "",
    .summary = "find out what devices are here, and whether they really work",
    .details =
        "Each device encodes, decodes and scales a few pictures made here, which must come back "
        "right, in the open and inside a session's sandbox; each of its encoders and decoders is "
        "opened; its speed and, on a GPU, its load are watched. Every device is looked at by a "
        "process of its own, so that a wedged driver cannot hang the rest.\n\n"
        "With --redis, devices that the workers of that queue have in quarantine are shown, too. "
        "The exit code is 5 when nothing of what was looked at is usable.",
    .opts = options,
    .size = sizeof(struct doctor_options),
    .run = doctor_run,
};
