#include "pipelines/media/thumbnail_cuda.h"

#include <libavutil/imgutils.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/kernel_cuda.h"
#include "pipelines/media/thumbnail.h"

struct thumbnail_cuda {
    struct kernel_cuda *kernel;
    uint8_t *memory; /* on the device: the picture, plane after plane */
    AVFrame *out;    /* describes it: data are addresses of the device */
    size_t size;
};

int thumbnail_cuda_new(const struct device *device, int width, int height,
                       struct thumbnail_cuda **ret, struct err *e)
{
    cleanup(thumbnail_cuda_free) struct thumbnail_cuda *c = xcalloc(1, sizeof *c);
    c->out = av_frame_alloc();
    if (!c->out)
        return err_set(e, ERR_RESOURCE, "thumbnail: out of memory");
    c->out->format = AV_PIX_FMT_YUV420P;
    c->out->width = width;
    c->out->height = height;
    c->size = (size_t)av_image_get_buffer_size(AV_PIX_FMT_YUV420P, width, height, 1);
    void *memory;
    int rc = kernel_cuda_new(device, "thumbnail", "thumbnail", &c->kernel, e);
    if (rc == 0)
        rc = kernel_cuda_memory(c->kernel, NULL, c->size, &memory, e);
    if (rc < 0)
        return rc;
    c->memory = memory;
    av_image_fill_arrays(c->out->data, c->out->linesize, c->memory, AV_PIX_FMT_YUV420P, width,
                         height, 1);
    *ret = take(c);
    return 0;
}

void thumbnail_cuda_free(struct thumbnail_cuda **c)
{
    if (!*c)
        return;
    av_frame_free(&(*c)->out);
    kernel_cuda_free(&(*c)->kernel);
    free_ptr(c);
}

int thumbnail_cuda_frame(struct thumbnail_cuda *c, const AVFrame *in, AVFrame **ret, struct err *e)
{
    struct thumbnail_params params;
    int width, height;
    cleanup(av_frame_free) AVFrame *out = NULL;
    int rc = thumbnail_picture(in, c->out->width, c->out->height, &out, e);
    if (rc == 0)
        rc = thumbnail_params_make(in, c->out, &params, &width, &height, e);
    if (rc == 0)
        rc = kernel_cuda_launch(c->kernel, &params, width, height, 3, e);
    if (rc == 0)
        rc = kernel_cuda_read(c->kernel, c->memory, out->data[0], c->size, e);
    if (rc == 0)
        *ret = take(out);
    return rc;
}
