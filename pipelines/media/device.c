#include "pipelines/media/device.h"

#include <libavfilter/avfilter.h>
#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/avlog.h"
#include "pipelines/media/device_cuda.h"

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
    bool turns, shares_frames;
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
        .turns = true,
        .shares_frames = true,
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
    },
};

struct device {
    const struct kind *kind;
    char *name;
    char *model; /* "NVIDIA L4"; NULL on the CPU */
    AVBufferRef *context;
};

static int open_kind(const struct kind *kind, int index, struct device **ret, struct err *e)
{
    cleanup(device_close) struct device *d = xcalloc(1, sizeof *d);
    d->kind = kind;
    if (kind->type == AV_HWDEVICE_TYPE_NONE) {
        d->name = xstrdup(kind->name);
        *ret = take(d);
        return 0;
    }
    d->name = xasprintf("%s:%d", kind->name, index);
    char number[16];
    snprintf(number, sizeof number, "%d", index);
    avlog_clear();
    int status = av_hwdevice_ctx_create(&d->context, kind->type, number, NULL, 0);
    if (status < 0)
        return err_set(e, ERR_DEVICE, "device %s: %s; use --device cpu", d->name,
                       avlog_reason(status));
    device_cuda_preload();
    status = device_cuda_model(d->context, &d->model, e);
    if (status < 0)
        return err_prefix(e, "device %s", d->name);
    *ret = take(d);
    return 0;
}

int device_open(const char *name, struct device **ret, struct err *e)
{
    if (!strcmp(name, "auto"))
        return open_kind(&kinds[1], 0, ret, e) == 0 ? 0 : open_kind(&kinds[0], 0, ret, e);
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
    av_buffer_unref(&d->context);
    free(d->name);
    free(d->model);
    free_ptr(pp);
}

const char *device_name(const struct device *d)
{
    return d->name;
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

static int deinterlacer(const struct device *d, const char **ret, struct err *e)
{
    for (size_t i = 0; (*ret = d->kind->deinterlacers[i]); i++)
        if (avfilter_get_by_name(*ret))
            return 0;
    return err_set(e, ERR_DEVICE, "device %s: no deinterlacing filter in this libavfilter",
                   d->name);
}

int device_prefilter(const struct device *d, const struct plan *plan, const struct source_video *v,
                     char **ret, struct err *e)
{
    cleanup(strbuf_free) struct strbuf g = {0};
    const char *name;
    int status = plan->is_deinterlaced ? deinterlacer(d, &name, e) : 0;
    if (status < 0)
        return status;
    if (plan->is_deinterlaced)
        strbuf_printf(&g, "%s=mode=send_frame:deint=all,", name);
    if ((v->is_flipped || v->rotation) && !d->kind->turns)
        return err_set(e, ERR_DEVICE,
                       "device %s: the picture must be turned, which is not possible there; use "
                       "--device cpu",
                       d->name);
    if (v->is_flipped)
        strbuf_puts(&g, "hflip,");
    strbuf_puts(&g, v->rotation == 90    ? "transpose=clock,"
                    : v->rotation == 180 ? "hflip,vflip,"
                    : v->rotation == 270 ? "transpose=cclock,"
                                         : "");
    bool is_full = v->color_range && !strcmp(v->color_range, "pc");
    if (!device_is_gpu(d) && (is_full || (v->pix_fmt && !strncmp(v->pix_fmt, "yuvj", 4))))
        strbuf_puts(&g, "scale=out_range=tv,");
    const char *pix_fmt = plan->is_tonemapped ? "yuv420p10le" : plan->pix_fmt;
    bool is_same = v->pix_fmt && !strcmp(v->pix_fmt, pix_fmt);
    if (device_is_gpu(d)) /* each size is converted by its scaler; 8-bit HDR is rare but made */
        is_same = !plan->is_tonemapped || v->bit_depth >= 10;
    if (g.len || !is_same)
        strbuf_printf(&g, d->kind->convert, surface_format(d, pix_fmt));
    *ret = strbuf_take(&g);
    return 0;
}

char *device_scaler(const struct device *d, const struct plan *plan, int width, int height)
{
    return xasprintf(d->kind->scale, width, height, surface_format(d, plan->pix_fmt));
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

char *device_class(const struct device *d, const char *encoder)
{
    return xasprintf("%s%s%s %s %s", d->kind->name, d->model ? " " : "", d->model ? d->model : "",
                     encoder, av_version_info());
}
