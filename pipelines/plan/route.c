#include "pipelines/plan/route.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/plan/plan.h"

const char *route_chroma(const char *pix_fmt)
{
    static const char *const names[][2] = {
        {"420", "4:2:0"},  {"nv12", "4:2:0"}, {"p010", "4:2:0"}, {"p016", "4:2:0"},
        {"422", "4:2:2"},  {"nv16", "4:2:2"}, {"p210", "4:2:2"}, {"444", "4:4:4"},
        {"nv24", "4:4:4"}, {"gbr", "4:4:4"},  {"rgb", "4:4:4"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strstr(pix_fmt, names[i][0]))
            return names[i][1];
    return "other";
}

bool route_is_turned(const struct source_video *v)
{
    return v->rotation || v->is_flipped;
}

bool route_is_full_range(const struct source_video *v)
{
    return (v->color_range && !strcmp(v->color_range, "pc")) ||
           (v->pix_fmt && !strncmp(v->pix_fmt, "yuvj", 4));
}

/* ---- what a stage cannot do there: the reason, or NULL (the caller frees) ---- */

static bool is_within(int width, int height, int min_width, int min_height, int max_width,
                      int max_height)
{
    return width >= min_width && height >= min_height && width <= max_width && height <= max_height;
}

static char *check_kernels(const struct route_gpu *gpu, const char *work)
{
    return gpu->no_kernels ? xasprintf("%s: %s", work, gpu->no_kernels) : NULL;
}

/* The engine counts in coded samples, which all codecs round up to 8 at least. */
static char *check_decoder(const struct route_decoder *d, const struct source_video *v)
{
    int width = (int)(((int64_t)v->width + 7) / 8 * 8);
    int height = (int)(((int64_t)v->height + 7) / 8 * 8);
    int64_t blocks = (int64_t)width * height / 256;
    if (is_within(width, height, d->min_width, d->min_height, d->max_width, d->max_height) &&
        blocks <= d->max_blocks)
        return NULL;
    return xasprintf("NVDEC does not decode %s of %dx%d, only %dx%d to %dx%d and %lld Mpixel",
                     d->codec, v->width, v->height, d->min_width, d->min_height, d->max_width,
                     d->max_height, (long long)(d->max_blocks * 256 / 1000000));
}

/* The pre-filter runs where pictures are decoded. */
static char *check_prefilter(const struct route_gpu *gpu, const struct plan *plan,
                             const struct source_video *v)
{
    if (plan->is_deinterlaced && gpu->no_deinterlacer)
        return xasprintf("deinterlacing: %s", gpu->no_deinterlacer);
    return route_is_turned(v) || route_is_full_range(v)
               ? check_kernels(gpu, "turning or range conversion")
               : NULL;
}

static char *check_decode(const struct route_gpu *gpu, const struct plan *plan,
                          const struct source_video *v)
{
    const char *codec = v->codec ? v->codec : "unknown";
    const char *chroma = route_chroma(v->pix_fmt ? v->pix_fmt : "");
    bool is_codec = false;
    if (gpu->no_decoder)
        return xstrdup(gpu->no_decoder);
    for (size_t i = 0; i < gpu->n_decoders; i++) {
        const struct route_decoder *d = &gpu->decoders[i];
        if (strcmp(d->codec, codec) != 0)
            continue;
        is_codec = true;
        if (strcmp(d->chroma, chroma) != 0 || d->bits != v->bit_depth)
            continue;
        char *why = check_decoder(d, v);
        return why ? why : check_prefilter(gpu, plan, v);
    }
    return is_codec ? xasprintf("NVDEC does not decode %s %s of %d bits (%s)", codec, chroma,
                                v->bit_depth, v->pix_fmt ? v->pix_fmt : "unknown")
                    : xasprintf("NVDEC does not decode %s", codec);
}

static bool is_surface(const char *pix_fmt)
{
    static const char *const formats[] = {"yuv420p", "nv12", "yuv420p10le", "p010le"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (!strcmp(pix_fmt, formats[i]))
            return true;
    return false;
}

/* Neither is worth anything there without the other. */
static char *check_format(const struct plan *plan)
{
    return is_surface(plan->pix_fmt)
               ? NULL
               : xasprintf("4:2:0 of 8 or 10 bits is made there, not pix_fmt %s", plan->pix_fmt);
}

static char *check_filter(const struct route_gpu *gpu, const struct plan *plan)
{
    char *why = check_format(plan);
    return why || !plan->is_tonemapped ? why : check_kernels(gpu, "tone mapping");
}

/* NULL: not given. */
static const char *option(const struct plan_rendition *r, const char *key)
{
    size_t n = strlen(key);
    for (size_t i = 0; i < r->n_options; i++)
        if (!strncmp(r->options[i], key, n) && r->options[i][n] == '=')
            return r->options[i] + n + 1;
    return NULL;
}

static char *check_rendition(const struct route_encoder *enc, const struct plan_rendition *r)
{
    const char *b_frames = option(r, "bf"), *b_references = option(r, "b_ref_mode");
    if (!is_within(r->width, r->height, enc->min_width, enc->min_height, enc->max_width,
                   enc->max_height))
        return xasprintf("rendition %s: %s does not encode %dx%d, only %dx%d to %dx%d", r->name,
                         enc->name, r->width, r->height, enc->min_width, enc->min_height,
                         enc->max_width, enc->max_height);
    if (b_frames && atoi(b_frames) > enc->max_b_frames)
        return xasprintf("rendition %s: %s makes at most %d B-frames in a row, not %s", r->name,
                         enc->name, enc->max_b_frames, b_frames);
    if (b_references && strcmp(b_references, "disabled") != 0 && strcmp(b_references, "0") != 0 &&
        !enc->has_b_references)
        return xasprintf("rendition %s: %s has no B-frames as reference (b_ref_mode)", r->name,
                         enc->name);
    return NULL;
}

static const struct route_encoder *find_encoder(const struct route_gpu *gpu, const char *name)
{
    for (size_t i = 0; i < gpu->n_encoders; i++)
        if (!strcmp(name, gpu->encoders[i].name) || !strcmp(name, gpu->encoders[i].stands_for))
            return &gpu->encoders[i];
    return NULL;
}

static char *check_encode(const struct route_gpu *gpu, const struct plan *plan)
{
    const struct route_encoder *enc = find_encoder(gpu, plan->encoder);
    char *why = NULL;
    if (!enc)
        return xasprintf("nothing there does the work of %s", plan->encoder);
    if (enc->missing)
        return xasprintf("%s: %s", enc->name, enc->missing);
    if ((why = check_format(plan)))
        return why;
    if (strstr(plan->pix_fmt, "10") && !enc->has_10_bit)
        return xasprintf("%s does not encode 10 bits (pix_fmt %s)", enc->name, plan->pix_fmt);
    for (size_t i = 0; i < plan->n_renditions && !why; i++)
        why = check_rendition(enc, &plan->renditions[i]);
    return why;
}

/* ---- the route ---- */

enum { STAGES = 3 };

static char *explain(char *const whys[STAGES])
{
    static const char *const stages[STAGES] = {"decode", "filters", "encode"};
    cleanup(strbuf_free) struct strbuf b = {0};
    for (int i = 0; i < STAGES; i++)
        if (whys[i])
            strbuf_printf(&b, "%s%s: %s", b.len ? "; " : "", stages[i], whys[i]);
    return b.len ? strbuf_take(&b) : NULL;
}

/* Decode goes with filters and filters with decode and encode, so that no picture crosses twice. */
static struct route *route_of(char *const whys[STAGES])
{
    struct route *r = xcalloc(1, sizeof *r);
    r->encode = whys[2] ? ROUTE_CPU : ROUTE_GPU;
    r->decode = whys[0] || whys[1] ? ROUTE_CPU : ROUTE_GPU;
    r->filter =
        whys[1] || (r->decode == ROUTE_CPU && r->encode == ROUTE_CPU) ? ROUTE_CPU : ROUTE_GPU;
    r->why = explain(whys);
    return r;
}

int route_make(const struct route_gpu *gpu, const struct plan *plan,
               const struct source_video *video, struct route **ret, struct err *e)
{
    char *whys[STAGES] = {0};
    if (gpu) {
        whys[0] = check_decode(gpu, plan, video);
        whys[1] = check_filter(gpu, plan);
        whys[2] = check_encode(gpu, plan);
        *ret = route_of(whys);
    } else {
        *ret = xcalloc(1, sizeof **ret);
    }
    for (int i = 0; i < STAGES; i++)
        free(whys[i]);
    const struct route_encoder *enc = gpu ? find_encoder(gpu, plan->encoder) : NULL;
    bool is_only_gpu = enc && !strcmp(enc->name, plan->encoder); /* the profile insists on it */
    bool is_refused =
        (*ret)->why && (!plan->allow_fallback || (is_only_gpu && (*ret)->encode == ROUTE_CPU));
    if (!is_refused)
        return 0;
    err_set(e, ERR_DEVICE, "device %s (%s): %s; %s", gpu->device, gpu->model, (*ret)->why,
            is_only_gpu
                ? "use a profile whose encoder both have, or another GPU"
                : "do that part on the CPU with --allow-fallback, or all with --device cpu");
    bind_free(&route_type, ret);
    return -ERR_DEVICE;
}
