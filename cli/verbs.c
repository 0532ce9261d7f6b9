/* The one table of verbs, in the order of --help. */
#include "cli/verbs.h"

const struct opt_verb *const cli_verbs[] = {
    &verb_run,    &verb_submit,     &verb_status,  &verb_list,    &verb_queue,
    &verb_tenant, &verb_watch,      &verb_cancel,  &verb_retry,   &verb_probe,
    &verb_plan,   &verb_profiles,   &verb_doctor,  &verb_worker,  &verb_dispatcher,
    &verb_man,    &verb_completion, &verb_session, &verb_inspect, NULL,
};

const struct opt cli_common_opts[] = {
    {.name = "log-level",
     .type = OPT_STRING,
     .offset = offsetof(struct cli_common, log_level),
     .argument = "LEVEL",
     .env = "TRANSCODE_LOG_LEVEL",
     .complete = "error warning info debug",
     .help = "how much to say on stderr: error, warning, info or debug"},
    {.name = "json",
     .type = OPT_FLAG,
     .offset = offsetof(struct cli_common, is_json),
     .help = "print the result, or the error, as JSON on stdout"},
    {0},
};
