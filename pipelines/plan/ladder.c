/*
 * The ladder: which rungs a source gets, how large and at which frame rate.
 *
 * Size. The picture that counts is the one a viewer sees: after rotation and with square pixels. A
 * rung's width and height are a box the picture is scaled to fit into, its aspect kept; a rung that
 * gives one of them leaves the other side open. For vertical video the box is turned, so that
 * "1080p" means the short side either way.
 *
 * Which rungs. A rung that would enlarge the picture is left out, except by up to 1/20, where the
 * rung is made at the source's own size: 1916x1076 is a 1080p source. A source between two rungs
 * (1600x900) gets no rung of its own: a ladder's bit rates belong to its sizes. Only where no rung
 * would be left does the source get one at its own size, with the rates of the lowest.
 *
 * Rate. A grid of output ticks is used only where the policy needs one; otherwise every source
 * frame keeps its own time. A constant-rate source above a cap is divided by a whole number, so
 * that frames are dropped evenly; 0.1 % above a cap still counts as the cap, because 30 and
 * 30000/1001 are the same to a person.
 *
 * Ticks. Time scales are whole numbers of at most 2^31-1 (ISO/IEC 14496-12 has 32 bits), and every
 * source tick and every grid frame must be a whole number of output ticks. A time base num/den
 * becomes 1/den, a grid num/den frames/s becomes 1/num; scales under 10000 are doubled until they
 * reach it, because some players handle scales such as 25 badly.
 */
#include <stdlib.h>
#include <string.h>

#include "common/strbuf.h"
#include "pipelines/plan/build.h"

enum { TIME_SCALE_MIN = 10000 };

struct picture { /* as displayed */
    struct rational width, height;
};

static struct picture displayed(const struct source_video *v)
{
    struct rational width = {v->width, 1}, height = {v->height, 1};
    if (v->sample_aspect.num > 0)
        width = rational_mul(width, v->sample_aspect);
    if (v->rotation % 180)
        return (struct picture){height, width};
    return (struct picture){width, height};
}

/* The factor that makes the picture fill the rung's box; above 1 it would be enlarged. */
static struct rational factor_to_fit(const struct picture *p, const struct profile_rendition *r)
{
    bool is_box_vertical = r->width && r->height && r->width < r->height;
    bool is_turned = (rational_cmp(p->width, p->height) < 0) != is_box_vertical;
    int64_t w = is_turned ? r->height : r->width, h = is_turned ? r->width : r->height;
    struct rational by_width = rational_div((struct rational){w, 1}, p->width);
    struct rational by_height = rational_div((struct rational){h, 1}, p->height);
    if (!w || (h && rational_cmp(by_height, by_width) < 0))
        return by_height;
    return by_width;
}

static int even(struct rational length)
{
    int64_t half = rational_rescale(1, length, (struct rational){2, 1}, ROUND_NEAREST);
    return half < 1 ? 2 : half > INT32_MAX / 2 ? INT32_MAX - 1 : (int)(2 * half);
}

static const struct rational one = {1, 1};

/* Whether the rung is made, and by which factor. */
static bool is_kept(struct rational *factor, bool allow_upscale)
{
    static const struct rational a_little = {21, 20};
    if (allow_upscale || rational_cmp(*factor, one) <= 0)
        return true;
    if (rational_cmp(*factor, a_little) > 0)
        return false;
    *factor = one;
    return true;
}

/* --- frame rate and ticks ----------------------------------------------------------------------
 */

static struct rational output_rate(const struct profile_rendition *r, const struct source_video *v)
{
    static const struct rational unset = {0, 1}, tolerance = {1001, 1000};
    if (r->fps_policy == FPS_FIXED)
        return r->fps;
    struct rational most = rational_mul(r->fps, tolerance);
    if (r->fps_policy == FPS_SOURCE || rational_cmp(v->frame_rate, most) <= 0)
        return unset;
    if (!v->is_cfr)
        return r->fps;
    int64_t divisor = rational_rescale(1, v->frame_rate, most, ROUND_CEIL);
    return rational_div(v->frame_rate, (struct rational){divisor, 1});
}

static int output_time_base(struct rational fps, struct rational source, struct rational *ret,
                            struct err *e)
{
    int64_t scale = rational_is_set(fps) ? rational_make(fps.num, fps.den).num
                                         : rational_make(source.num, source.den).den;
    if (scale > INT32_MAX)
        return err_set(e, ERR_INPUT,
                       "video: its time scale %lld is over 2147483647 and cannot be written to MP4;"
                       " remux the source with a coarser one",
                       (long long)scale);
    while (scale < TIME_SCALE_MIN)
        scale *= 2;
    *ret = (struct rational){1, scale};
    return 0;
}

/* --- one rendition -----------------------------------------------------------------------------
 */

static char *default_name(const struct profile_rendition *r, int lines)
{
    struct strbuf b = {0};
    strbuf_printf(&b, lines ? "%dp" : "%dw", lines ? lines : r->width);
    if (r->bitrate)
        strbuf_printf(&b, "-%lldk", (long long)(r->bitrate + 500) / 1000);
    else
        strbuf_printf(&b, "-crf%g", r->crf);
    return strbuf_take(&b);
}

static void set_rates(const struct profile_rendition *r, struct plan_rendition *out)
{
    out->crf = r->crf;
    out->bitrate = r->bitrate;
    out->maxrate = r->maxrate ? r->maxrate : r->bitrate + r->bitrate / 2;
    out->bufsize = r->bufsize ? r->bufsize : 2 * (r->bitrate ? r->bitrate : out->maxrate);
}

static size_t key_length(const char *option)
{
    return strcspn(option, "=");
}

/* A later option of the same key replaces an earlier one in its place. */
static void add_option(struct plan_rendition *r, const char *option)
{
    size_t i = 0, n = key_length(option);
    while (i < r->n_options &&
           (key_length(r->options[i]) != n || strncmp(r->options[i], option, n)))
        i++;
    if (i == r->n_options) {
        r->options = xrealloc_array(r->options, i + 1, sizeof *r->options);
        r->options[r->n_options++] = NULL;
    }
    free(r->options[i]);
    r->options[i] = xstrdup(option);
}

static int add_rendition(const struct profile *profile, const struct profile_rendition *r,
                         const struct source_video *video, struct rational factor, bool is_own_size,
                         struct plan *plan, struct err *e)
{
    struct picture p = displayed(video);
    struct plan_rendition out = {
        .width = even(rational_mul(p.width, factor)),
        .height = even(rational_mul(p.height, factor)),
        .fps = output_rate(r, video),
        .encoder_profile = xstrdup(r->encoder_profile),
        .level = xstrdup(r->level),
    };
    int short_side = out.width < out.height ? out.width : out.height;
    char *name = r->name ? xstrdup(r->name) : default_name(r, is_own_size ? short_side : r->height);
    out.name = build_unique_name(plan, name);
    set_rates(r, &out);
    for (size_t i = 0; i < profile->n_options; i++)
        add_option(&out, profile->options[i]);
    for (size_t i = 0; i < r->n_options; i++)
        add_option(&out, r->options[i]);
    plan->renditions =
        xrealloc_array(plan->renditions, plan->n_renditions + 1, sizeof *plan->renditions);
    plan->renditions[plan->n_renditions] = out;
    return output_time_base(out.fps, video->time_base,
                            &plan->renditions[plan->n_renditions++].time_base, e);
}

/* --- the ladder --------------------------------------------------------------------------------
 */

/* Smallest box; of equal ones that with the lowest rate. */
static size_t lowest_rung(const struct profile *profile, const struct picture *p)
{
    size_t lowest = 0;
    for (size_t i = 1; i < profile->n_renditions; i++) {
        const struct profile_rendition *a = &profile->renditions[i];
        const struct profile_rendition *b = &profile->renditions[lowest];
        int order = rational_cmp(factor_to_fit(p, a), factor_to_fit(p, b));
        if (order < 0 || (!order && a->bitrate + a->maxrate < b->bitrate + b->maxrate))
            lowest = i;
    }
    return lowest;
}

int build_ladder(const struct profile *profile, const struct source_video *video,
                 bool allow_upscale, struct plan *plan, struct err *e)
{
    struct picture p = displayed(video);
    struct strbuf left_out = {0};
    int rc = 0;
    for (size_t i = 0; i < profile->n_renditions && rc == 0; i++) {
        const struct profile_rendition *r = &profile->renditions[i];
        struct rational factor = factor_to_fit(&p, r);
        if (is_kept(&factor, allow_upscale)) {
            rc = add_rendition(profile, r, video, factor, false, plan, e);
            continue;
        }
        char *name = r->name ? xstrdup(r->name) : default_name(r, r->height);
        strbuf_printf(&left_out, "%s%s", left_out.len ? ", " : "", name);
        free(name);
    }
    int width = even(p.width), height = even(p.height);
    if (rc == 0 && !plan->n_renditions) {
        size_t i = lowest_rung(profile, &p);
        rc = add_rendition(profile, &profile->renditions[i], video, one, true, plan, e);
        build_note(plan,
                   "one rendition at the source's own size %dx%d: every one of the profile's "
                   "is larger",
                   width, height);
    } else if (left_out.len) {
        build_note(plan, "left out, larger than the source (%dx%d): %s", width, height, left_out.s);
    }
    strbuf_free(&left_out);
    return rc;
}

/* --- thumbnails --------------------------------------------------------------------------------
 */

int build_thumbnails(const struct profile *profile, const struct source_video *video,
                     struct plan *plan, struct err *e)
{
    const struct profile_thumbnails *wanted = profile->thumbnails;
    if (!build_is_kernel_format(plan->pix_fmt))
        return err_set(
            e, ERR_CONFIG,
            "profile: thumbnails are made of yuv420p and yuv420p10le, not of pix_fmt %s; "
            "leave them out",
            plan->pix_fmt);
    struct picture p = displayed(video);
    struct rational factor =
        factor_to_fit(&p, &(struct profile_rendition){.height = wanted->height});
    if (rational_cmp(factor, one) > 0)
        factor = one;
    plan->thumbnails = xcalloc(1, sizeof *plan->thumbnails);
    *plan->thumbnails = (struct plan_thumbnails){.every = wanted->every,
                                                 .width = even(rational_mul(p.width, factor)),
                                                 .height = even(rational_mul(p.height, factor))};
    return 0;
}
