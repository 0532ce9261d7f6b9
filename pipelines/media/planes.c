#include "pipelines/media/planes.h"

#include <libavutil/hwcontext.h>

static const struct planes layouts[] = {
    {AV_PIX_FMT_YUV420P, 8, 1, 0, 1},
    {AV_PIX_FMT_NV12, 8, 1, 0, 2},
    {AV_PIX_FMT_YUV420P10, 10, 2, 0, 1},
    {AV_PIX_FMT_P010, 10, 2, 6, 2},
};

const struct planes *planes_of(const AVFrame *frame)
{
    enum AVPixelFormat format = frame->format;
    if (frame->hw_frames_ctx)
        format = ((const AVHWFramesContext *)(const void *)frame->hw_frames_ctx->data)->sw_format;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].format == format)
            return &layouts[i];
    return NULL;
}

uint8_t *planes_data(const struct planes *p, const AVFrame *frame, int component, int *ret_pitch)
{
    int plane = p->step == 2 && component ? 1 : component;
    *ret_pitch = frame->linesize[plane];
    return frame->data[plane] + (component == 2 && p->step == 2 ? p->bytes : 0);
}
