#include "pipelines/media/turn_cuda.h"

#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/kernel_cuda.h"
#include "pipelines/media/turn.h"

struct turn_cuda {
    const struct device *device;
    const struct source_video *video;
    struct kernel_cuda *kernel; /* NULL: no frame needed it yet */
    AVBufferRef *surfaces;
};

struct turn_cuda *turn_cuda_new(const struct device *device, const struct source_video *video)
{
    struct turn_cuda *t = xcalloc(1, sizeof *t);
    t->device = device;
    t->video = video;
    return t;
}

void turn_cuda_free(struct turn_cuda **t)
{
    if (!*t)
        return;
    kernel_cuda_free(&(*t)->kernel);
    av_buffer_unref(&(*t)->surfaces);
    free_ptr(t);
}

static bool is_upright(const struct turn_cuda *t, const AVFrame *frame)
{
    return !frame->crop_left && !frame->crop_top && !route_is_turned(t->video) &&
           !route_is_full_range(t->video);
}

static int turn(struct turn_cuda *t, const AVFrame *in, AVFrame *out, struct err *e)
{
    struct turn_params params;
    const AVHWFramesContext *surfaces = (void *)in->hw_frames_ctx->data;
    int width, height;
    turn_size(in, t->video, &width, &height);
    int rc = device_surface(t->device, av_get_pix_fmt_name(surfaces->sw_format), width, height,
                            &t->surfaces, out, e);
    if (rc == 0)
        rc = turn_params_make(in, out, t->video, &params, e);
    if (rc == 0)
        rc = kernel_cuda_launch(t->kernel, &params, width, height, 2, e);
    return rc == 0 ? turn_describe(in, t->video, out, e) : rc;
}

int turn_cuda_frame(struct turn_cuda *t, AVFrame *frame, struct err *e)
{
    if (is_upright(t, frame))
        return 0;
    cleanup(av_frame_free) AVFrame *out = av_frame_alloc();
    if (!out)
        return err_set(e, ERR_RESOURCE, "turn a picture: out of memory");
    int rc = t->kernel ? 0 : kernel_cuda_new(t->device, "turn", "turning", &t->kernel, e);
    if (rc == 0)
        rc = turn(t, frame, out, e);
    if (rc == 0) {
        av_frame_unref(frame);
        av_frame_move_ref(frame, out);
    }
    return rc;
}
