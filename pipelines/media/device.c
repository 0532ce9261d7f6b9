#include "pipelines/media/device.h"

#include <libavfilter/avfilter.h>
#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/avlog.h"
#include "pipelines/media/device_cuda.h"
#include "pipelines/media/device_fault.h"
#include "pipelines/media/device_kernels.h"

struct kind {
    const char *name;
    enum AVHWDeviceType type;
    enum AVPixelFormat pix_fmt;
    const char
        *encoders[4][2]; /* of the profile, of this device; unlisted: as takes_any_encoder says */
    bool takes_any_encoder;
    const char *deinterlacers[3]; /* the first that this libavfilter has */
    const char *scale;            /* printf: width, height, pixel format */
    const char *convert;          /* printf: pixel format */
    bool filters_all;             /* turns, mirrors, and brings full range to video range */
    bool shares_frames;
    const struct device_kernels_kind *kernels;
};

static const struct kind kinds[] = {
    {
        .name = "cpu",
        .type = AV_HWDEVICE_TYPE_NONE,
        .pix_fmt = AV_PIX_FMT_NONE,
        .takes_any_encoder = true,
        .deinterlacers = {"bwdif"},
        .scale = "scale=%d:%d:flags=bicubic,setsar=1",
        .convert = "format=%s",
        .filters_all = true,
        .shares_frames = true,
        .kernels = &device_kernels_cpu,
    },
    {
        .name = "cuda",
        .type = AV_HWDEVICE_TYPE_CUDA,
        .pix_fmt = AV_PIX_FMT_CUDA,
        .encoders = {{"libx264", "h264_nvenc"},
                     {"libx265", "hevc_nvenc"},
                     {"libsvtav1", "av1_nvenc"}},
        .deinterlacers = {"bwdif_cuda", "yadif_cuda"},
        .scale = "scale_cuda=%d:%d:format=%s:passthrough=0",
        .convert = "scale_cuda=format=%s",
        .kernels = &device_kernels_cuda,
    },
};
enum { KIND_CPU, KIND_CUDA };

struct device {
    const struct kind *kind;
    char *name;
    AVBufferRef *context;
    struct route_gpu *gpu; /* what it can do; NULL on the CPU */
    struct device *cpu;    /* of a GPU: where stages go that it cannot do */
    char *choice;          /* what "auto" took and why */
};

static int find_deinterlacer(const struct kind *kind, const char **ret, struct err *e)
{
    for (size_t i = 0; (*ret = kind->deinterlacers[i]); i++)
        if (avfilter_get_by_name(*ret))
            return 0;
    return err_set(e, ERR_DEVICE, "%s has no deinterlacing filter in this libavfilter", kind->name);
}

static struct device *new_device(const struct kind *kind, char *name)
{
    struct device *d = xcalloc(1, sizeof *d);
    d->kind = kind;
    d->name = name;
    return d;
}

static int fail_open(const struct device *d, int index, int status, struct err *e)
{
    int n = device_cuda_count();
    if (index >= n && n > 0)
        return err_set(e, ERR_DEVICE, "device %s: there is no such GPU, the last one here is %s:%d",
                       d->name, d->kind->name, n - 1);
    return device_fault(device_is_gpu(d), ERR_DEVICE, status, e,
                        "device %s: does not open, use --device cpu", d->name);
}

static int open_kind(const struct kind *kind, int index, struct device **ret, struct err *e)
{
    if (kind->type == AV_HWDEVICE_TYPE_NONE) {
        *ret = new_device(kind, xstrdup(kind->name));
        return 0;
    }
    cleanup(device_close) struct device *d =
        new_device(kind, xasprintf("%s:%d", kind->name, index));
    d->cpu = new_device(&kinds[KIND_CPU], xstrdup(kinds[KIND_CPU].name));
    char number[16];
    snprintf(number, sizeof number, "%d", index);
    avlog_clear();
    int status = av_hwdevice_ctx_create(&d->context, kind->type, number, NULL, 0);
    if (status < 0)
        return fail_open(d, index, status, e);
    device_cuda_preload();
    status = device_cuda_gpu(d->context, d->name, &d->gpu, e);
    if (status < 0)
        return err_prefix(e, "device %s", d->name);
    const char *deinterlacer;
    struct err none;
    if (find_deinterlacer(kind, &deinterlacer, &none) < 0)
        d->gpu->no_deinterlacer = xstrdup(none.msg);
    *ret = take(d);
    return 0;
}

/* Why this GPU could not be all there is; NULL: it could. Borrowed. */
static const char *lacks(const struct route_gpu *gpu)
{
    if (gpu->no_decoder)
        return gpu->no_decoder;
    for (size_t i = 0; i < gpu->n_encoders; i++)
        if (!gpu->encoders[i].missing)
            return NULL;
    return gpu->encoders[0].missing;
}

static int open_auto(struct device **ret, struct err *e)
{
    cleanup(device_close) struct device *d = NULL;
    struct err why;
    int status = open_kind(&kinds[KIND_CUDA], 0, &d, &why);
    if (status == 0 && lacks(d->gpu))
        status =
            err_set(&why, ERR_DEVICE, "device %s (%s): %s", d->name, d->gpu->model, lacks(d->gpu));
    if (status == 0) {
        d->choice =
            xasprintf("auto: device %s (%s), which decodes and encodes", d->name, d->gpu->model);
        *ret = take(d);
        return 0;
    }
    status = open_kind(&kinds[KIND_CPU], 0, ret, e);
    if (status == 0)
        (*ret)->choice = xasprintf("auto: device cpu, because of %s", why.msg);
    return status;
}

int device_open(const char *name, struct device **ret, struct err *e)
{
    if (!strcmp(name, "auto"))
        return open_auto(ret, e);
    size_t length = strcspn(name, ":");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char *end = NULL;
        if (strlen(kinds[i].name) != length || strncmp(kinds[i].name, name, length) != 0)
            continue;
        long index = name[length] ? strtol(name + length + 1, &end, 10) : 0;
        bool is_number = !name[length] || (end != name + length + 1 && !*end);
        bool is_one_of_many = kinds[i].type != AV_HWDEVICE_TYPE_NONE || !name[length];
        if (is_number && is_one_of_many && index >= 0 && index < 1024)
            return open_kind(&kinds[i], (int)index, ret, e);
    }
    return err_set(e, ERR_USAGE, "device %s: expected cpu, cuda, cuda:N or auto", name);
}

void device_close(struct device **pp)
{
    struct device *d = *pp;
    if (!d)
        return;
    device_close(&d->cpu);
    av_buffer_unref(&d->context);
    bind_free(&route_gpu_type, &d->gpu);
    free(d->name);
    free(d->choice);
    free_ptr(pp);
}

const char *device_name(const struct device *d)
{
    return d->name;
}

const struct route_gpu *device_gpu(const struct device *d)
{
    return d->gpu;
}

const char *device_choice(const struct device *d)
{
    return d->choice;
}

const struct device_kernels_kind *device_kernels_kind(const struct device *d)
{
    return d->kind->kernels;
}

bool device_is_gpu(const struct device *d)
{
    return d->kind->type != AV_HWDEVICE_TYPE_NONE;
}

AVBufferRef *device_context(const struct device *d)
{
    return d->context;
}

enum AVPixelFormat device_pix_fmt(const struct device *d)
{
    return d->kind->pix_fmt;
}

bool device_shares_frames(const struct device *d)
{
    return d->kind->shares_frames;
}

int device_encoder(const struct device *d, const char *encoder, const char **ret, struct err *e)
{
    *ret = d->kind->takes_any_encoder ? encoder : NULL;
    for (size_t i = 0; d->kind->encoders[i][0]; i++)
        if (!strcmp(encoder, d->kind->encoders[i][0]) || !strcmp(encoder, d->kind->encoders[i][1]))
            *ret = d->kind->encoders[i][1];
    if (*ret && avcodec_find_encoder_by_name(*ret))
        return 0;
    return err_set(e, ERR_DEVICE, "device %s: %s %s; choose another encoder or --device cpu",
                   d->name, *ret ? "this libavcodec has no" : "nothing here does the work of",
                   *ret ? *ret : encoder);
}

/* Semi-planar formats are what the video engines work on. */
static const char *surface_format(const struct device *d, const char *pix_fmt)
{
    if (!device_is_gpu(d))
        return pix_fmt;
    const AVPixFmtDescriptor *desc = av_pix_fmt_desc_get(av_get_pix_fmt(pix_fmt));
    return desc && desc->comp[0].depth > 8 ? "p010le" : "nv12";
}

/* Whether the decoder's surfaces have that format already. */
static bool is_decoded_as(const struct source_video *v, const char *surface)
{
    bool is_8 = v->bit_depth == 8, is_10 = v->bit_depth == 10;
    return v->pix_fmt && !strcmp(route_chroma(v->pix_fmt), "4:2:0") &&
           !strcmp(surface, is_8    ? "nv12"
                            : is_10 ? "p010le"
                                    : "");
}

/* On the CPU encoders share the pre-filter's frames; on a GPU each size is a copy that its scaler
 * converts, and only our kernels must have what they know. */
static bool needs_convert(const struct device_route *route, const struct plan *plan,
                          const struct source_video *v, const char *pix_fmt)
{
    if (!device_is_gpu(route->decode))
        return device_is_gpu(route->filter) || !v->pix_fmt || strcmp(v->pix_fmt, pix_fmt) != 0;
    bool is_for_kernels = plan->is_tonemapped || route_is_turned(v) || route_is_full_range(v);
    return is_for_kernels && !is_decoded_as(v, pix_fmt);
}

static void add_turns(struct strbuf *g, const struct source_video *v)
{
    if (v->is_flipped)
        strbuf_puts(g, "hflip,");
    strbuf_puts(g, v->rotation == 90    ? "transpose=clock,"
                   : v->rotation == 180 ? "hflip,vflip,"
                   : v->rotation == 270 ? "transpose=cclock,"
                                        : "");
    if (route_is_full_range(v))
        strbuf_puts(g, "scale=out_range=tv,");
}

int device_prefilter(const struct device_route *route, const struct plan *plan,
                     const struct source_video *v, char **ret, struct err *e)
{
    cleanup(strbuf_free) struct strbuf g = {0};
    const struct device *d = route->decode;
    const char *name, *pix_fmt = plan->is_tonemapped ? "yuv420p10le" : plan->pix_fmt;
    int status = plan->is_deinterlaced ? find_deinterlacer(d->kind, &name, e) : 0;
    if (status < 0)
        return err_prefix(e, "device %s", d->name);
    if (plan->is_deinterlaced)
        strbuf_printf(&g, "%s=mode=send_frame:deint=all,", name);
    if (d->kind->filters_all)
        add_turns(&g, v);
    pix_fmt = surface_format(route->filter, pix_fmt);
    if (g.len || needs_convert(route, plan, v, pix_fmt))
        strbuf_printf(&g, d->kind->convert, pix_fmt);
    if (device_is_gpu(route->filter) && !device_is_gpu(d))
        strbuf_puts(&g, ",hwupload");
    *ret = strbuf_take(&g);
    return 0;
}

char *device_scaler(const struct device *d, const struct plan *plan, int width, int height)
{
    return xasprintf(d->kind->scale, width, height, surface_format(d, plan->pix_fmt));
}

char *device_hand_over(const struct device_route *route, const struct plan *plan)
{
    bool is_from_gpu = device_is_gpu(route->filter), is_to_gpu = device_is_gpu(route->encode);
    if (is_from_gpu && !is_to_gpu)
        return xasprintf("hwdownload,format=%s,format=%s",
                         surface_format(route->filter, plan->pix_fmt), plan->pix_fmt);
    if (!is_from_gpu && is_to_gpu)
        return xasprintf("format=%s,hwupload", surface_format(route->encode, plan->pix_fmt));
    return xstrdup("");
}

/* The frame that was just decoded, the one that waits for its successor, and one in between; a
 * deinterlacer keeps the one before, too, while it has the next. */
int device_surfaces(const struct plan *plan)
{
    return plan->is_deinterlaced ? 4 : 3;
}

int device_frames(const struct device *d, const char *pix_fmt, int width, int height,
                  AVBufferRef **ret, struct err *e)
{
    *ret = NULL;
    if (!d->context)
        return 0;
    AVBufferRef *ref = av_hwframe_ctx_alloc(d->context);
    int status = AVERROR(ENOMEM);
    if (ref) {
        AVHWFramesContext *frames = (AVHWFramesContext *)ref->data;
        frames->format = d->kind->pix_fmt;
        frames->sw_format = av_get_pix_fmt(surface_format(d, pix_fmt));
        frames->width = width;
        frames->height = height;
        status = av_hwframe_ctx_init(ref);
    }
    if (status < 0) {
        av_buffer_unref(&ref);
        return err_set(e, ERR_DEVICE, "device %s: frames of %dx%d: %s", d->name, width, height,
                       avlog_reason(status));
    }
    *ret = ref;
    return 0;
}

int device_surface(const struct device *d, const char *pix_fmt, int width, int height,
                   AVBufferRef **pool, AVFrame *ret, struct err *e)
{
    const AVHWFramesContext *old = *pool ? (const void *)(*pool)->data : NULL;
    int status = 0;
    if (!old || old->width != width || old->height != height) {
        av_buffer_unref(pool);
        status = device_frames(d, pix_fmt, width, height, pool, e);
    }
    if (status < 0)
        return status;
    status = av_hwframe_get_buffer(*pool, ret, 0);
    return status < 0 ? err_set(e, ERR_DEVICE, "device %s: a surface of %dx%d: %s", d->name, width,
                                height, avlog_reason(status))
                      : 0;
}

int device_route(const struct device *d, const struct plan *plan, const struct source_video *v,
                 struct device_route *ret, struct err *e)
{
    *ret = (struct device_route){0};
    int status = route_make(d->gpu, plan, v, &ret->record, e);
    if (status < 0)
        return status;
    ret->decode = d->cpu && ret->record->decode == ROUTE_CPU ? d->cpu : d;
    ret->filter = d->cpu && ret->record->filter == ROUTE_CPU ? d->cpu : d;
    ret->encode = d->cpu && ret->record->encode == ROUTE_CPU ? d->cpu : d;
    return 0;
}

void device_route_clear(struct device_route *route)
{
    bind_free(&route_type, &route->record);
}

char *device_class(const struct device_route *route, const char *encoder)
{
    const struct device *const stages[] = {route->decode, route->filter, route->encode};
    cleanup(strbuf_free) struct strbuf b = {0};
    strbuf_puts(&b, route->encode->kind->name);
    if (route->encode->gpu)
        strbuf_printf(&b, " %s", route->encode->gpu->model);
    for (int i = 0; i < 2; i++)
        if (stages[i] != route->encode)
            strbuf_printf(&b, " (%s on %s%s%s)", i ? "filters" : "decode", stages[i]->kind->name,
                          stages[i]->gpu ? " " : "", stages[i]->gpu ? stages[i]->gpu->model : "");
    strbuf_printf(&b, " %s %s", encoder, av_version_info());
    return strbuf_take(&b);
}
