#include "cli/verbs.h"
#include "common/log.h"
#include "worker/agent.h"

struct worker_options {
    struct cli_common common;
    const char *redis, *device, *scratch;
    int64_t sessions;
    double grace_s, quarantine_s;
    struct opt_list limits;
};

static int worker_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)argc, (void)argv;
    const struct worker_options *o = arg;
    struct agent_options agent = {
        .redis_url = o->redis,
        .device = o->device,
        .scratch = o->scratch,
        .sessions = (int)o->sessions,
        .grace_s = o->grace_s,
        .quarantine_s = o->quarantine_s,
    };
    if (!o->redis)
        return err_set(e, ERR_USAGE, "which queue? give --redis URL or set TRANSCODE_REDIS");
    int r = cli_limits_make(&o->limits, &agent.limits, e);
    if (r < 0)
        return r;
    log_init(o->common.log_level ? log_level() : LOG_INFO, "worker");
    r = agent_run(&agent, e);
    return r == -ERR_CANCELLED ? CLI_EXIT_DRAINED : r;
}

static const struct opt options[] = {
    CLI_OPT_REDIS(struct worker_options),
    CLI_OPT_DEVICE(struct worker_options),
    CLI_OPT_SESSIONS(struct worker_options),
    {.name = "scratch",
     .type = OPT_STRING,
     .offset = offsetof(struct worker_options, scratch),
     .argument = "DIR",
     .env = "TRANSCODE_SCRATCH",
     .complete = "dir",
     .help = "directory for files in the making; on the output's file system they are moved, else "
             "copied"},
    {.name = "grace",
     .type = OPT_SECONDS,
     .offset = offsetof(struct worker_options, grace_s),
     .argument = "SECONDS",
     .fallback = "25",
     .max = 86400,
     .help = "on SIGTERM, time for running tasks to finish before they are given back"},
    {.name = "quarantine",
     .type = OPT_SECONDS,
     .offset = offsetof(struct worker_options, quarantine_s),
     .argument = "SECONDS",
     .fallback = "30",
     .max = 1800,
     .help = "time for which a GPU that failed again and again gets no work, doubled each time; 0: "
             "once no GPU is left, end with exit code 5"},
    CLI_OPT_LIMIT(struct worker_options),
    {0},
};

const struct opt_verb verb_worker = {
    .name = "worker",
    .positionals = "",
    .summary = "serve a queue: probe, encode and package on this machine",
    .details =
        "SIGTERM drains: nothing new is leased, running tasks get the grace time, the rest is "
        "given back to the queue and the exit code is 6. A second one stops at once.\n\n"
        "Several devices are served as --device cuda:0,cuda:1, each by its share of the sessions. "
        "After trouble on a GPU its session is ended, and the next one tests the GPU before it "
        "gets work. Three failures within ten minutes (each job counts once) put that GPU in "
        "quarantine; `transcode queue` shows it. With every GPU in quarantine nothing is leased "
        "until one passes its test.\n\n"
        "Sessions get no environment but locale, LD_LIBRARY_PATH, CUDA_* and NVIDIA_* variables, "
        "and "
        "those that TRANSCODE_SESSION_ENV names, separated by blanks.",
    .opts = options,
    .size = sizeof(struct worker_options),
    .run = worker_run,
};
