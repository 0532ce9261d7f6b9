#include "pipelines/media/thumbnail.h"

#include <libavutil/imgutils.h>

#include "common/cleanup.h"
#include "pipelines/media/kernels/host.h"
#include "pipelines/media/planes.h"

int thumbnail_params_make(const AVFrame *in, const AVFrame *out, struct thumbnail_params *ret,
                          int *ret_width, int *ret_height, struct err *e)
{
    const struct planes *from = planes_of(in), *to = planes_of(out);
    if (!from || !to || to->bytes != 1 || to->step != 1)
        return err_set(e, ERR_BUG, "thumbnail: format %d to %d", in->format, out->format);
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

int thumbnail_picture(const AVFrame *in, int width, int height, AVFrame **ret, struct err *e)
{
    cleanup(av_frame_free) AVFrame *out = av_frame_alloc();
    int size = av_image_get_buffer_size(AV_PIX_FMT_YUV420P, width, height, 1);
    if (!out || size < 0 || av_frame_copy_props(out, in) < 0 ||
        !(out->buf[0] = av_buffer_alloc((size_t)size)))
        return err_set(e, ERR_RESOURCE, "thumbnail: out of memory");
    out->format = AV_PIX_FMT_YUV420P;
    out->width = width;
    out->height = height;
    out->sample_aspect_ratio = (AVRational){1, 1};
    av_image_fill_arrays(out->data, out->linesize, out->buf[0]->data, AV_PIX_FMT_YUV420P, width,
                         height, 1);
    *ret = take(out);
    return 0;
}

int thumbnail_frame(const AVFrame *in, int width, int height, AVFrame **ret, struct err *e)
{
    struct thumbnail_params params;
    int threads_x, threads_y;
    cleanup(av_frame_free) AVFrame *out = NULL;
    int status = thumbnail_picture(in, width, height, &out, e);
    if (status >= 0)
        status = thumbnail_params_make(in, out, &params, &threads_x, &threads_y, e);
    if (status < 0)
        return status;
    kernel_host_thumbnail(&params, threads_x, threads_y, 3);
    *ret = take(out);
    return 0;
}
