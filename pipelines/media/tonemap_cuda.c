#include "pipelines/media/tonemap_cuda.h"

#include <libavutil/hwcontext.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/avlog.h"
#include "pipelines/media/kernel_cuda.h"

struct tonemap_cuda {
    const struct tonemap *tonemap;
    const struct device *device;
    struct kernel_cuda *kernel;
    void *tables;        /* on the device */
    AVBufferRef *frames; /* of the output; made for the first frame's size */
    int width, height;
};

int tonemap_cuda_new(const struct tonemap *t, const struct device *device,
                     struct tonemap_cuda **ret, struct err *e)
{
    cleanup(tonemap_cuda_free) struct tonemap_cuda *c = xcalloc(1, sizeof *c);
    c->tonemap = t;
    c->device = device;
    int rc = kernel_cuda_new(device, "tonemap", "tone mapping", &c->kernel, e);
    if (rc == 0)
        rc = kernel_cuda_memory(c->kernel, tonemap_tables(t), sizeof(struct tonemap_tables),
                                &c->tables, e);
    if (rc == 0)
        *ret = take(c);
    return rc;
}

void tonemap_cuda_free(struct tonemap_cuda **c)
{
    if (!*c)
        return;
    kernel_cuda_free(&(*c)->kernel);
    av_buffer_unref(&(*c)->frames);
    free_ptr(c);
}

static int get_output(struct tonemap_cuda *c, const char *pix_fmt, const AVFrame *in, AVFrame *out,
                      struct err *e)
{
    if (!c->frames || c->width != in->width || c->height != in->height) {
        av_buffer_unref(&c->frames);
        int rc = device_frames(c->device, pix_fmt, in->width, in->height, &c->frames, e);
        if (rc < 0)
            return rc;
        c->width = in->width;
        c->height = in->height;
    }
    int status = av_hwframe_get_buffer(c->frames, out, 0);
    return status < 0 ? err_set(e, ERR_DEVICE, "device %s: a frame for tone mapping: %s",
                                device_name(c->device), avlog_reason(status))
                      : 0;
}

int tonemap_cuda_frame(struct tonemap_cuda *c, const char *pix_fmt, AVFrame *frame, struct err *e)
{
    struct tonemap_params params;
    int width, height;
    cleanup(av_frame_free) AVFrame *out = av_frame_alloc();
    if (!out)
        return err_set(e, ERR_RESOURCE, "tone mapping: out of memory");
    int rc = get_output(c, pix_fmt, frame, out, e);
    if (rc == 0)
        rc = tonemap_params_make(c->tonemap, frame, out, c->tables, &params, e);
    tonemap_threads(frame, &width, &height);
    if (rc == 0)
        rc = kernel_cuda_launch(c->kernel, &params, width, height, 1, e);
    if (rc == 0)
        rc = tonemap_describe(frame, out, e);
    if (rc == 0) {
        av_frame_unref(frame);
        av_frame_move_ref(frame, out);
    }
    return rc;
}
