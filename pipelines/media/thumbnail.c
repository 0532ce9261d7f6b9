#include "pipelines/media/thumbnail.h"

#include "common/cleanup.h"
#include "pipelines/media/kernels/host.h"
#include "pipelines/media/planes.h"

int thumbnail_params_make(const AVFrame *in, const AVFrame *out, struct thumbnail_params *ret,
                          int *ret_width, int *ret_height, struct err *e)
{
    const struct planes *from = planes_of(in), *to = planes_of(out);
    if (!from || !to || to->bytes != 1 || to->step != 1 || out->width > in->width ||
        out->height > in->height)
        return err_set(e, ERR_BUG, "thumbnail: format %d to %d, %dx%d to %dx%d", in->format,
                       out->format, in->width, in->height, out->width, out->height);
    *ret = (struct thumbnail_params){
        .in_bytes = from->bytes, .in_shift = from->shift, .in_bits = from->bits};
    for (int i = 0; i < 3; i++) {
        struct thumbnail_plane *p = &ret->planes[i];
        int halves = i ? 1 : 0;
        ret->in[i] = planes_data(from, in, i, &p->in_pitch);
        ret->out[i] = planes_data(to, out, i, &p->out_pitch);
        p->in_step = i ? from->step : 1;
        p->in_width = (in->width + halves) >> halves;
        p->in_height = (in->height + halves) >> halves;
        p->out_width = (out->width + halves) >> halves;
        p->out_height = (out->height + halves) >> halves;
    }
    *ret_width = out->width;
    *ret_height = out->height;
    return 0;
}

int thumbnail_frame(const AVFrame *in, int width, int height, AVFrame **ret, struct err *e)
{
    cleanup(av_frame_free) AVFrame *out = av_frame_alloc();
    if (!out)
        return err_set(e, ERR_RESOURCE, "thumbnail: out of memory");
    out->format = AV_PIX_FMT_YUV420P;
    out->width = width;
    out->height = height;
    struct thumbnail_params params;
    int threads_x, threads_y;
    if (av_frame_get_buffer(out, 0) < 0 || av_frame_copy_props(out, in) < 0)
        return err_set(e, ERR_RESOURCE, "thumbnail: out of memory");
    int status = thumbnail_params_make(in, out, &params, &threads_x, &threads_y, e);
    if (status < 0)
        return status;
    kernel_host_thumbnail(&params, threads_x, threads_y, 3);
    *ret = take(out);
    return 0;
}
