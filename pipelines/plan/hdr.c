/*
 * What becomes of an HDR source. An SDR ladder is what profiles ask for and screens have, so the
 * default is to tone-map (pipelines/media/tonemap.c says how). All of it is decided here, from what
 * the probe measured: a chunk must not look for metadata of its own, since not every keyframe
 * repeats it.
 */
#include <string.h>

#include "pipelines/plan/build.h"

enum { PEAK_NITS = 1000, PEAK_NITS_MAX = 10000, WHITE_NITS = 203 };

static const char *hdr_name(const struct source_video *v)
{
    static const char *const transfers[][2] = {{"smpte2084", "PQ"}, {"arib-std-b67", "HLG"}};
    for (size_t i = 0; v && v->color_transfer && i < 2; i++)
        if (!strcmp(v->color_transfer, transfers[i][0]))
            return transfers[i][1];
    return NULL;
}

static bool is_hlg(const struct source_video *v)
{
    return !strcmp(v->color_transfer, "arib-std-b67");
}

/* The brightest the source gets, in cd/m2. HLG has no peak of its own: it is shown as its nominal
 * screen shows it. What a PQ source claims below SDR's white leaves nothing to map. */
static int peak_nits(const struct source_video *v)
{
    int peak = v->max_cll > 0 ? v->max_cll : v->mastering_nits;
    if (is_hlg(v) || peak <= 0 || peak > PEAK_NITS_MAX)
        return PEAK_NITS;
    return peak > WHITE_NITS ? peak : WHITE_NITS;
}

static bool is_bt2020(const struct source_video *v)
{
    return (!v->color_space || !strcmp(v->color_space, "bt2020nc")) &&
           (!v->color_primaries || !strcmp(v->color_primaries, "bt2020"));
}

/* Viewers' seek bars are SDR, whatever the screen: thumbnails of a ladder that stays HDR are
 * tone-mapped where that is possible. */
static void map_thumbnails(const struct source_video *v, struct plan *plan)
{
    bool is_10_bit = !strcmp(plan->pix_fmt, "yuv420p10le") || !strcmp(plan->pix_fmt, "p010le");
    if (!plan->thumbnails)
        return;
    plan->thumbnails->is_tonemapped = is_bt2020(v) && is_10_bit && v->bit_depth == 10;
    if (plan->thumbnails->is_tonemapped)
        plan->peak_nits = peak_nits(v);
    else
        build_note(plan, "thumbnails show the HDR picture as it is: tone mapping takes 10 bits and "
                         "BT.2020 only");
}

int build_hdr(int policy, const struct source_video *v, struct plan *plan, struct err *e)
{
    const char *name = hdr_name(v);
    if (!name)
        return 0;
    if (policy == HDR_REFUSE)
        return err_set(e, ERR_INPUT,
                       "source: it is HDR (%s), which the profile refuses; set hdr: tonemap in it, "
                       "or encode the source untouched with --allow-hdr-as-is",
                       name);
    if (policy == HDR_AS_IS) {
        plan->is_hdr_as_is = true;
        build_note(plan, "the source is HDR (%s) and is encoded without tone mapping", name);
        map_thumbnails(v, plan);
        return 0;
    }
    if (!is_bt2020(v))
        return err_set(e, ERR_INPUT,
                       "source: it is HDR (%s) with the matrix %s and the primaries %s, but tone "
                       "mapping takes bt2020nc and bt2020 only; encode it untouched with "
                       "--allow-hdr-as-is",
                       name, v->color_space ? v->color_space : "unknown",
                       v->color_primaries ? v->color_primaries : "unknown");
    if (!build_is_kernel_format(plan->pix_fmt))
        return err_set(
            e, ERR_CONFIG,
            "profile: tone mapping makes yuv420p and yuv420p10le, not pix_fmt %s; encode "
            "the source untouched with --allow-hdr-as-is",
            plan->pix_fmt);
    plan->is_tonemapped = true;
    plan->peak_nits = peak_nits(v);
    build_note(plan, "%s is tone-mapped to SDR, from a peak of %d cd/m2",
               is_hlg(v) ? "HDR (HLG)" : "HDR10 (PQ)", plan->peak_nits);
    return 0;
}

const char *plan_video_range(const struct plan *plan, const struct source_video *v)
{
    const char *name = hdr_name(v);
    return name && !plan->is_tonemapped ? name : "SDR";
}
