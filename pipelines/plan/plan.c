#include "pipelines/plan/plan.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/plan/build.h"

static void free_plan(struct plan **plan)
{
    bind_free(&plan_type, plan);
}

void plan_timeline(const struct plan *plan, struct timeline *ret)
{
    *ret = (struct timeline){
        .time_base = plan->time_base,
        .segment = plan->segment,
        .gop = plan->gop,
        .cfr = plan->cfr,
        .start = plan->start,
        .ref = plan->ref,
    };
}

/* The source was described by a session that parsed hostile bytes: its numbers must lie within what
 * the arithmetic holds exactly, and within what one job may cost. */
enum { SEGMENTS_MAX = 1000000, THUMBNAILS_MAX = 100000, FRAME_RATE_MAX = 1000000 };
static const int64_t ticks_max = INT64_MAX / 8;

static bool is_tick(int64_t t)
{
    return t > -ticks_max && t < ticks_max;
}

static bool is_base(struct rational base)
{
    return base.num > 0 && base.num <= INT32_MAX && base.den <= INT32_MAX;
}

static bool is_sound_video(const struct source_video *v)
{
    struct rational fastest = {FRAME_RATE_MAX, 1};
    return is_base(v->time_base) && is_tick(v->start) && is_tick(v->end) && v->end > v->start &&
           v->frames > 0 && v->frames < ticks_max && v->frame_rate.num >= 0 &&
           v->frame_rate.num <= INT32_MAX && v->frame_rate.den <= INT32_MAX &&
           rational_cmp(v->frame_rate, fastest) <= 0 && v->max_interval >= 0 &&
           is_tick(v->max_interval) && v->border_segment.num >= 0;
}

static bool is_sound(const struct source *source)
{
    struct rational longest = {INT32_MAX, 1};
    return is_base(source->origin_base) && is_tick(source->origin) && source->duration.num >= 0 &&
           rational_cmp(source->duration, longest) < 0 &&
           (!source->video || is_sound_video(source->video));
}

/* --- what is refused ---------------------------------------------------------------------------
 */

static int check_source(const struct source *source, const struct plan *plan, struct err *e)
{
    if (!is_sound(source))
        return err_set(e, ERR_INPUT, "source: its times or rates are out of range; remux it");
    if (!source->video && !source->n_audio)
        return err_set(e, ERR_INPUT, "source: it has neither video nor audio to encode");
    if (source->is_truncated && !plan->allow_truncated)
        return err_set(e, ERR_INPUT,
                       "source: it is truncated (%s); use a whole file, or finish what is there "
                       "with --allow-truncated",
                       source->truncated_reason ? source->truncated_reason : "it ends early");
    return 0;
}

/* MPEG-TS has no standard way to carry these. */
static int check_container(const struct plan *plan, struct err *e)
{
    static const char *const only_mp4[] = {"av1", "vp9", "opus", "flac", "vorbis"};
    if (plan->segments != SEGMENTS_TS)
        return 0;
    for (size_t i = 0; i < sizeof only_mp4 / sizeof *only_mp4; i++) {
        const char *encoder =
            plan->n_renditions && strstr(plan->encoder, only_mp4[i]) ? plan->encoder : NULL;
        for (size_t k = 0; k < plan->n_audio && !encoder; k++)
            if (strstr(plan->audio[k].encoder, only_mp4[i]))
                encoder = plan->audio[k].encoder;
        if (encoder)
            return err_set(e, ERR_CONFIG,
                           "profile: what %s makes does not fit into TS segments; use fmp4",
                           encoder);
    }
    return 0;
}

static int check_profile(const struct profile *profile, const struct source *source, struct err *e)
{
    bool makes_video = source->video && profile->n_renditions;
    bool makes_audio = source->n_audio && profile->n_audio;
    if (makes_video || makes_audio)
        return 0;
    return err_set(e, ERR_CONFIG, "profile %s: it has no %s entry, and the source is %s only",
                   profile->name ? profile->name : "(unnamed)",
                   source->video ? "renditions" : "audio", source->video ? "video" : "audio");
}

/* --- the timeline ------------------------------------------------------------------------------
 */

static struct rational slowest_grid(const struct plan *plan)
{
    struct rational slowest = {0, 1};
    for (size_t i = 0; i < plan->n_renditions; i++) {
        struct rational fps = plan->renditions[i].fps;
        if (rational_is_set(fps) && (!rational_is_set(slowest) || rational_cmp(fps, slowest) < 0))
            slowest = fps;
    }
    return slowest;
}

/* Whether each tick of a grid is the very time of a source frame. */
static bool is_grid_on_frames(const struct plan *plan, struct rational fps)
{
    if (!rational_is_set(plan->cfr))
        return false;
    struct rational start = rational_mul((struct rational){plan->start, 1}, plan->time_base);
    return rational_div(plan->cfr, fps).den == 1 && rational_mul(start, fps).den == 1;
}

/*
 * Frames that a chunk needs around its own. Deinterlacing looks one frame back and one ahead
 * (bwdif keeps exactly previous, current and next). A grid whose ticks fall between source frames
 * may open a chunk with the frame before its border, and that is always the one just before.
 */
static int64_t context_frames(const struct plan *plan)
{
    bool needs = plan->is_deinterlaced;
    for (size_t i = 0; i < plan->n_renditions; i++) {
        struct rational fps = plan->renditions[i].fps;
        needs = needs || (rational_is_set(fps) && !is_grid_on_frames(plan, fps));
    }
    return needs ? 1 : 0;
}

/*
 * The last frame's position: exact for a constant rate, else the earliest it can be (a frame lasts
 * at most max_interval). So a segment too few may be counted, which the last, open-ended chunk
 * takes in; never one that no frame falls into.
 */
static int64_t last_frame(const struct plan *plan, const struct source_video *v)
{
    int64_t last = v->end - v->max_interval - plan->origin;
    if (rational_is_set(plan->cfr)) {
        struct rational interval = {plan->cfr.den, plan->cfr.num};
        last =
            plan->start + rational_rescale(v->frames - 1, interval, plan->time_base, ROUND_NEAREST);
    }
    return last > plan->start ? last : plan->start;
}

static void set_video_timeline(const struct source *source, struct plan *plan)
{
    const struct source_video *v = source->video;
    plan->time_base = v->time_base;
    plan->origin = rational_rescale(source->origin, source->origin_base, v->time_base, ROUND_FLOOR);
    plan->start = v->start - plan->origin;
    plan->cfr = v->is_cfr && rational_is_set(v->frame_rate) ? v->frame_rate : plan->cfr;
    plan->ref = slowest_grid(plan);
    plan->context = context_frames(plan);
    struct timeline tl;
    plan_timeline(plan, &tl);
    int64_t n = timeline_segment(&tl, last_frame(plan, v)) + 1;
    plan->n_segments = n > 1 ? n : 1;
}

static void set_audio_timeline(const struct source *source, struct plan *plan)
{
    plan->time_base = (struct rational){1, source->audio[0].sample_rate};
    plan->origin =
        rational_rescale(source->origin, source->origin_base, plan->time_base, ROUND_FLOOR);
    int64_t n = rational_rescale(1, source->duration, plan->segment, ROUND_CEIL);
    plan->n_segments = n > 1 ? n : 1;
}

/* --- the whole ---------------------------------------------------------------------------------
 */

static struct plan *new_plan(const struct profile *profile, const struct source *source,
                             const struct plan_options *options)
{
    static const struct rational unset = {0, 1};
    struct plan *plan = xcalloc(1, sizeof *plan);
    *plan = (struct plan){
        .segments = options->segments < 0 ? profile->segments : options->segments,
        .encoder = xstrdup(profile->encoder),
        .preset = xstrdup(profile->preset),
        .pix_fmt = xstrdup(profile->pix_fmt),
        .segment = profile->segment,
        .gop = profile->gop,
        .cfr = unset,
        .ref = unset,
        .is_deinterlaced = source->video && source->video->is_interlaced &&
                           profile->deinterlace == DEINTERLACE_AUTO,
        .allow_truncated = profile->allow_truncated || options->allow_truncated,
        .allow_fallback = options->allow_fallback,
    };
    return plan;
}

static void add_source_notes(const struct source *source, struct plan *plan)
{
    if (source->is_truncated)
        build_note(plan, "the source is truncated (%s): finished as far as it goes",
                   source->truncated_reason ? source->truncated_reason : "it ends early");
    if (plan->n_renditions && plan->is_deinterlaced)
        build_note(plan, "the source is interlaced: deinterlaced, one frame for each two fields");
    if (plan->route && plan->route->why)
        build_note(plan, "not on %s (%s): %s", source->gpu->device, source->gpu->model,
                   plan->route->why);
    if (source->video && !plan->n_renditions)
        build_note(plan, "video left out: the profile has no renditions");
}

int plan_make(const struct profile *profile, const struct source *source,
              const struct plan_options *options, struct plan **ret, struct err *e)
{
    cleanup(free_plan) struct plan *plan = new_plan(profile, source, options);
    bool allow_upscale = profile->allow_upscale || options->allow_upscale;
    int rc = check_source(source, plan, e);
    if (rc == 0)
        rc = check_profile(profile, source, e);
    if (rc == 0 && source->video && profile->n_renditions)
        rc = build_ladder(profile, source->video, allow_upscale, plan, e);
    if (rc == 0 && plan->n_renditions && profile->thumbnails)
        rc = build_thumbnails(profile, source->video, plan, e);
    if (rc == 0 && plan->n_renditions)
        rc = build_hdr(options->allow_hdr_as_is ? HDR_AS_IS : profile->hdr, source->video, plan, e);
    if (rc == 0 && plan->n_renditions)
        rc = route_make(source->gpu, plan, source->video, &plan->route, e);
    if (rc < 0)
        return rc;
    build_audio(profile, source, plan);
    rc = check_container(plan, e);
    if (rc < 0)
        return rc;
    if (plan->n_renditions)
        set_video_timeline(source, plan);
    else
        set_audio_timeline(source, plan);
    if (plan->n_segments > SEGMENTS_MAX)
        return err_set(e, ERR_INPUT, "source: %lld segments are over the limit of %d",
                       (long long)plan->n_segments, SEGMENTS_MAX);
    if (plan->thumbnails && rational_cmp(rational_div(source->duration, plan->thumbnails->every),
                                         (struct rational){THUMBNAILS_MAX, 1}) > 0)
        return err_set(
            e, ERR_CONFIG,
            "profile: a source this long would have more than %d thumbnails; raise every",
            THUMBNAILS_MAX);
    add_source_notes(source, plan);
    *ret = take(plan);
    return 0;
}
