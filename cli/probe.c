#include <inttypes.h>
#include <stdio.h>

#include "cli/format.h"
#include "cli/source.h"
#include "cli/verbs.h"
#include "common/cleanup.h"

struct probe_options {
    struct cli_common common;
    struct opt_list limits;
};

static void source_free(struct source **s)
{
    bind_free(&source_type, s);
}

static const char *or_unknown(const char *s)
{
    return s ? s : "?";
}

static double seconds(int64_t ticks, struct rational time_base)
{
    return (double)ticks * rational_to_double(time_base);
}

static void print_video(const struct source_video *v)
{
    printf("video      stream %d: %s %s, %dx%d, %s %d bit, %s\n", v->stream, or_unknown(v->codec),
           or_unknown(v->profile), v->width, v->height, or_unknown(v->pix_fmt), v->bit_depth,
           v->is_interlaced ? "interlaced" : "progressive");
    printf("           %" PRId64 " frames, %.6g fps %s, %.6f to %.6f s\n", v->frames,
           rational_to_double(v->frame_rate), v->is_cfr ? "constant" : "variable",
           seconds(v->start, v->time_base), seconds(v->end, v->time_base));
    printf("           colour %s/%s/%s %s%s\n", or_unknown(v->color_primaries),
           or_unknown(v->color_transfer), or_unknown(v->color_space), or_unknown(v->color_range),
           v->has_open_gop ? ", open GOPs" : "");
    if (v->rotation || v->is_flipped)
        printf("           shown turned by %d degrees%s\n", v->rotation,
               v->is_flipped ? " and mirrored" : "");
    if (rational_is_set(v->sample_aspect) && v->sample_aspect.num != v->sample_aspect.den)
        printf("           pixel aspect %" PRId64 ":%" PRId64 "\n", v->sample_aspect.num,
               v->sample_aspect.den);
}

static void print_audio(const struct source_audio *a)
{
    printf("audio      stream %d: %s, %d Hz, %s, %.6f to %.6f s%s%s%s\n", a->stream,
           or_unknown(a->codec), a->sample_rate, or_unknown(a->layout),
           seconds(a->start, a->time_base), seconds(a->end, a->time_base), a->language ? ", " : "",
           a->language ? a->language : "", a->is_default ? ", default" : "");
}

static void print_source(const char *path, const struct source *s)
{
    char bytes[FORMAT_MAX];
    printf("input      %s\n", path);
    printf("container  %s, %s\n", or_unknown(s->container), format_bytes(s->size_bytes, bytes));
    printf("duration   %.6f s measured", rational_to_double(s->duration));
    if (rational_is_set(s->claimed_duration))
        printf(", %.6f s claimed", rational_to_double(s->claimed_duration));
    putchar('\n');
    if (s->video)
        print_video(s->video);
    for (size_t i = 0; i < s->n_audio; i++)
        print_audio(&s->audio[i]);
    int64_t repaired =
        s->repaired_missing + s->repaired_wrapped + s->repaired_jumps + s->repaired_duplicates;
    if (repaired)
        printf("repaired   %" PRId64 " timestamps: %" PRId64 " missing, %" PRId64
               " wrapped, %" PRId64 " jumping, %" PRId64 " duplicate\n",
               repaired, s->repaired_missing, s->repaired_wrapped, s->repaired_jumps,
               s->repaired_duplicates);
    if (s->is_truncated)
        printf("truncated  %s\n", or_unknown(s->truncated_reason));
    for (size_t i = 0; i < s->n_notes; i++)
        printf("note       %s\n", s->notes[i]);
}

static int probe_run(const void *arg, int argc, char **argv, struct err *e)
{
    (void)argc;
    const struct probe_options *o = arg;
    cleanup(source_free) struct source *source = NULL;
    cleanup(free_ptr) char *path = NULL;
    int r = source_measure(argv[0], "cpu", &o->limits, (struct rational){6, 1}, &source, &path, e);
    if (r < 0)
        return r;
    if (o->common.is_json)
        cli_print_json(bind_write(&source_type, source));
    else
        print_source(path, source);
    return 0;
}

static const struct opt options[] = {CLI_OPT_LIMIT(struct probe_options), {0}};

const struct opt_verb verb_probe = {
    .name = "probe",
    .positionals = "INPUT",
    .min_args = 1,
    .max_args = 1,
    .summary = "measure a source",
    .details =
        "Everything shown is measured by reading the file, not taken from its headers, unless "
        "it says \"claimed\".",
    .opts = options,
    .size = sizeof(struct probe_options),
    .run = probe_run,
};
