#include "pipelines/media/tonemap_cuda.h"

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/kernel_cuda.h"

struct tonemap_cuda {
    const struct tonemap *tonemap;
    const struct device *device;
    struct kernel_cuda *kernel;
    void *tables;        /* on the device */
    AVBufferRef *frames; /* of the output */
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

int tonemap_cuda_frame(struct tonemap_cuda *c, const char *pix_fmt, AVFrame *frame, struct err *e)
{
    struct tonemap_params params;
    int width, height;
    cleanup(av_frame_free) AVFrame *out = av_frame_alloc();
    if (!out)
        return err_set(e, ERR_RESOURCE, "tone mapping: out of memory");
    int rc = device_surface(c->device, pix_fmt, frame->width, frame->height, &c->frames, out, e);
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
