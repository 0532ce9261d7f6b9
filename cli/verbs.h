/* The verbs, one a file: cli/NAME.c defines verb_NAME. */
#pragma once
#include "cli/cli.h"

extern const struct opt_verb verb_run, verb_submit, verb_status, verb_list, verb_queue, verb_tenant,
    verb_watch, verb_doctor, verb_inspect, verb_cancel, verb_retry, verb_probe, verb_plan,
    verb_profiles, verb_worker, verb_dispatcher, verb_man, verb_completion, verb_session;
