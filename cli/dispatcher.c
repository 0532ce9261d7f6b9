#include "dispatcher/dispatcher.h"

#include "cli/verbs.h"
#include "common/log.h"

struct dispatcher_verb_options {
    struct cli_common common;
    const char *redis;
};

static int dispatcher_verb_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)argc, (void)argv;
    const struct dispatcher_verb_options *o = arg;
    if (!o->redis)
        return err_set(e, ERR_USAGE, "which queue? give --redis URL or set TRANSCODE_REDIS");
    log_init(o->common.log_level ? log_level() : LOG_INFO, "dispatcher");
    return dispatcher_run(&(struct dispatcher_options){.redis_url = o->redis}, e);
}

static const struct opt options[] = {CLI_OPT_REDIS(struct dispatcher_verb_options), {0}};

const struct opt_verb verb_dispatcher = {
    .name = "dispatcher",
    .positionals = "",
    .summary = "serve a queue: plan jobs, publish playlists, requeue lapsed work",
    .details = "Any number of dispatchers may serve one queue. Stops on SIGTERM or SIGINT.",
    .opts = options,
    .size = sizeof(struct dispatcher_verb_options),
    .run = dispatcher_verb_run,
};
