#include "cli/cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/storage.h"
#include "common/strbuf.h"

enum { RETRY_US = 5 * 1000 * 1000 }; /* a person is waiting */

static int segments_parse(const char *name, int *ret, struct err *e)
{
    static const char *const names[] = {[SEGMENTS_FMP4] = "fmp4", [SEGMENTS_TS] = "ts"};
    *ret = -1;
    if (!name)
        return 0;
    for (int i = SEGMENTS_FMP4; i <= SEGMENTS_TS; i++)
        if (!strcmp(name, names[i])) {
            *ret = i;
            return 0;
        }
    return err_set(e, ERR_USAGE, "--segments %s: expected fmp4 or ts", name);
}

int cli_profile_and_options(const struct cli_job_opts *opts, struct profile **ret_profile,
                            struct plan_options *ret_options, struct err *e)
{
    *ret_options = (struct plan_options){
        .chunk_seconds = opts->chunk_s,
        .allow_fallback = opts->allow_fallback,
        .allow_hdr_as_is = opts->allow_hdr_as_is,
        .allow_truncated = opts->allow_truncated,
        .allow_upscale = opts->allow_upscale,
    };
    int r = segments_parse(opts->segments, &ret_options->segments, e);
    return r < 0 ? r : profile_load(opts->profile, ret_profile, e);
}

static int input_prove(const char *input, struct err *e)
{
    cleanup(close_fd) int fd = -1;
    int64_t size;
    return storage_open(input, &fd, &size, e);
}

int cli_spec_make(const struct cli_job_opts *opts, const char *input, const char *output,
                  const char *id, struct job_spec *ret, struct err *e)
{
    struct profile *profile = NULL;
    struct plan_options options;
    *ret = (struct job_spec){.id = xstrdup(id)};
    int r;
    if ((r = cli_profile_and_options(opts, &profile, &options, e)) < 0 ||
        (r = storage_resolve(input, &ret->input, e)) < 0 || (r = input_prove(ret->input, e)) < 0 ||
        (r = storage_resolve(output, &ret->output, e)) < 0 ||
        (r = storage_prepare(ret->output, e)) < 0) {
        bind_free(&profile_type, &profile);
        cli_spec_free(ret);
        return r;
    }
    ret->profile = bind_dump(&profile_type, profile);
    ret->options = bind_dump(&plan_options_type, &options);
    bind_free(&profile_type, &profile);
    return 0;
}

void cli_spec_free(struct job_spec *spec)
{
    free(spec->id);
    free(spec->input);
    free(spec->output);
    free(spec->profile);
    free(spec->options);
    free(spec->tenant);
    *spec = (struct job_spec){0};
}

int cli_limits_make(const struct opt_list *values, struct limits *ret, struct err *e)
{
    limits_default(ret);
    for (size_t i = 0; i < values->n; i++) {
        int r = limits_set(ret, values->values[i], e);
        if (r < 0)
            return err_prefix(e, "--limit %s", values->values[i]);
    }
    return 0;
}

int cli_queue_open(const char *url, struct queue **ret, struct err *e)
{
    if (!url || !*url)
        return err_set(e, ERR_USAGE, "which queue? give --redis URL or set TRANSCODE_REDIS");
    return queue_open(url, &(struct queue_options){.retry_us = RETRY_US}, ret, e);
}

bool cli_job_has_ended(const struct job *job)
{
    return job->state == JOB_DONE || job->state == JOB_FAILED || job->state == JOB_CANCELLED;
}

int cli_job_outcome(const struct job *job, struct err *e)
{
    const char *reason = job->reason ? job->reason : "no reason is known";
    switch (job->state) {
    case JOB_DONE:
        return 0;
    case JOB_FAILED:
        return err_set(e, job->reason_kind ? job->reason_kind : ERR_BUG, "job %s failed: %s",
                       job->spec.id, reason);
    case JOB_CANCELLED:
        return err_set(e, ERR_CANCELLED, "job %s was cancelled", job->spec.id);
    default:
        return err_set(e, ERR_BUG, "job %s has not ended", job->spec.id);
    }
}

void cli_print_json(json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT);
    json_decref(value);
    puts(text ? text : "null");
    free(text);
}
