/*
 * What the verbs share: the table of verbs, the options every verb has, and the few helpers that
 * several need. A verb is one thin file: its option table, its opt_verb, its run function.
 *
 * A verb's run function returns 0, -kind (one line on stderr, exit code by err_exit_code), or a
 * positive exit code of its own (the message, if there is one, is printed all the same).
 * Thread: main.
 */
#pragma once
#include "common/opt.h"
#include "pipelines/media/limits.h"
#include "pipelines/plan/plan.h"
#include "queue/queue.h"

/* Stopped by a signal with the work given back: somebody else, or a later run, goes on with it. */
enum { CLI_EXIT_DRAINED = 6 };

extern const struct opt_verb *const cli_verbs[]; /* NULL at the end; verbs.c */

struct cli_common { /* first member of every verb's option struct */
    const char *log_level;
    bool is_json;
};
extern const struct opt cli_common_opts[];

/* What a job is made of, for run, submit and plan. */
struct cli_job_opts {
    const char *profile, *segments;
    double chunk_s;
    bool allow_fallback, allow_hdr_as_is, allow_truncated, allow_upscale;
};

/* Rows of option tables that several verbs have. */
#define CLI_OPT_REDIS(S)                                                                  \
    {                                                                                     \
        .name = "redis", .letter = 'r', .type = OPT_STRING, .offset = offsetof(S, redis), \
        .argument = "URL", .env = "TRANSCODE_REDIS",                                      \
        .help = "the queue: redis://[:PASSWORD@]HOST:PORT[/DB] or unix:///PATH/TO/SOCKET" \
    }
#define CLI_OPT_LIMIT(S)                                                                     \
    {                                                                                        \
        .name = "limit", .type = OPT_LIST, .offset = offsetof(S, limits),                    \
        .argument = "NAME=VALUE",                                                            \
        .help = "what a source may cost, e.g. max_pixels=100000000; may be given repeatedly" \
    }
#define CLI_OPT_DEVICE(S)                                                                       \
    {                                                                                           \
        .name = "device", .letter = 'd', .type = OPT_STRING, .offset = offsetof(S, device),     \
        .argument = "DEVICE", .fallback = "cpu", .complete = "cpu cuda auto",                   \
        .help = "what decodes, scales and encodes: cpu; cuda or cuda:N; auto, a GPU where one " \
                "works"                                                                         \
    }
#define CLI_OPT_SESSIONS(S)                                                                  \
    {                                                                                        \
        .name = "sessions", .letter = 'n', .type = OPT_INT, .offset = offsetof(S, sessions), \
        .argument = "N", .min = 0, .max = 256, .help = "tasks run at once; 0: one a core"    \
    }
#define CLI_OPTS_JOB(S)                                                                      \
    {.name = "profile",                                                                      \
     .letter = 'p',                                                                          \
     .type = OPT_STRING,                                                                     \
     .offset = offsetof(S, job.profile),                                                     \
     .argument = "NAME|FILE",                                                                \
     .fallback = "h264",                                                                     \
     .complete = "profile",                                                                  \
     .help = "the ladder and packaging: a built-in name or a YAML file"},                    \
        {.name = "chunk",                                                                    \
         .type = OPT_SECONDS,                                                                \
         .offset = offsetof(S, job.chunk_s),                                                 \
         .argument = "SECONDS",                                                              \
         .max = 86400,                                                                       \
         .help = "source time in one unit of video work; by itself about 30 to 60 s"},       \
        {.name = "segments",                                                                 \
         .type = OPT_STRING,                                                                 \
         .offset = offsetof(S, job.segments),                                                \
         .argument = "fmp4|ts",                                                              \
         .complete = "fmp4 ts",                                                              \
         .help = "kind of segments, instead of the profile's"},                              \
        {.name = "allow-fallback",                                                           \
         .type = OPT_FLAG,                                                                   \
         .offset = offsetof(S, job.allow_fallback),                                          \
         .help = "do on the CPU what the GPU cannot decode, filter or encode, and say so"},  \
        {.name = "allow-hdr-as-is",                                                          \
         .type = OPT_FLAG,                                                                   \
         .offset = offsetof(S, job.allow_hdr_as_is),                                         \
         .help = "keep PQ and HLG as they are, instead of mapping them to SDR"},             \
        {.name = "allow-truncated",                                                          \
         .type = OPT_FLAG,                                                                   \
         .offset = offsetof(S, job.allow_truncated),                                         \
         .help = "finish a source that breaks off as far as it goes, and say so"},           \
    {                                                                                        \
        .name = "allow-upscale", .type = OPT_FLAG, .offset = offsetof(S, job.allow_upscale), \
        .help = "make renditions larger than the source"                                     \
    }

/* job.c */
int cli_profile_and_options(const struct cli_job_opts *opts, struct profile **ret_profile,
                            struct plan_options *ret_options, struct err *e);
/* Resolved paths, profile and options as a record (cli_spec_free). Opens the input to prove that it
 * can be read, and makes the output directory. id may be NULL. */
int cli_spec_make(const struct cli_job_opts *opts, const char *input, const char *output,
                  const char *id, struct job_spec *ret, struct err *e);
void cli_spec_free(struct job_spec *spec);
int cli_limits_make(const struct opt_list *values, struct limits *ret, struct err *e);
int cli_queue_open(const char *url, struct queue **ret, struct err *e); /* url may be NULL */
bool cli_job_has_ended(const struct job *job);
/* 0 for a finished job, else -kind of what ended it. */
int cli_job_outcome(const struct job *job, struct err *e);
/* Compact JSON and a newline on stdout; takes the reference. */
void cli_print_json(json_t *value);

/* watch.c: waits until the job has ended, drawing progress. tick (may be NULL) is called several
 * times a second and ends the wait by returning non-zero, which is returned. *ret_job: the last
 * snapshot, also then (job_free), or NULL. */
struct progress;
int cli_watch(struct queue *q, const char *id, struct progress *progress,
              int (*tick)(void *arg, struct err *e), void *arg, struct job **ret_job,
              struct err *e);
