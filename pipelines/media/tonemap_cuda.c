#include "pipelines/media/tonemap_cuda.h"

#include <ffnvcodec/dynlink_loader.h>
#include <libavutil/hwcontext.h>
#include <libavutil/hwcontext_cuda.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/avlog.h"
#include "pipelines/media/ptx.h"

enum { BLOCK_WIDTH = 32, BLOCK_HEIGHT = 8 };

struct tonemap_cuda {
    const struct tonemap *tonemap;
    const struct device *device;
    AVBufferRef *context; /* keeps the CUDA context alive */
    CudaFunctions *f;
    CUcontext cuda;
    CUstream stream;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr tables;
    AVBufferRef *frames; /* of the output; made for the first frame's size */
    int width, height;
};

static int check(const struct tonemap_cuda *c, CUresult r, const char *call, struct err *e)
{
    const char *name = NULL;
    if (r == CUDA_SUCCESS)
        return 0;
    c->f->cuGetErrorName(r, &name);
    return err_set(e, ERR_DEVICE, "device %s: tone mapping: %s: %s", device_name(c->device), call,
                   name ? name : "unknown error");
}

static int load(struct tonemap_cuda *c, const char *ptx, struct err *e)
{
    const struct tonemap_tables *tables = tonemap_tables(c->tonemap);
    int rc = check(c, c->f->cuModuleLoadData(&c->module, ptx), "cuModuleLoadData", e);
    if (rc == 0)
        rc = check(c, c->f->cuModuleGetFunction(&c->kernel, c->module, "tonemap"),
                   "cuModuleGetFunction", e);
    if (rc == 0)
        rc = check(c, c->f->cuMemAlloc(&c->tables, sizeof *tables), "cuMemAlloc", e);
    if (rc == 0)
        rc = check(c, c->f->cuMemcpyHtoD(c->tables, tables, sizeof *tables), "cuMemcpyHtoD", e);
    return rc;
}

int tonemap_cuda_new(const struct tonemap *t, const struct device *device,
                     struct tonemap_cuda **ret, struct err *e)
{
    const char *ptx;
    CUcontext popped;
    int rc = ptx_find("tonemap", &ptx, e);
    if (rc < 0)
        return rc;
    cleanup(tonemap_cuda_free) struct tonemap_cuda *c = xcalloc(1, sizeof *c);
    c->tonemap = t;
    c->device = device;
    c->context = av_buffer_ref(device_context(device));
    if (!c->context || cuda_load_functions(&c->f, NULL) < 0)
        return err_set(e, ERR_DEVICE, "device %s: the driver cannot be loaded",
                       device_name(device));
    const AVCUDADeviceContext *cuda = ((AVHWDeviceContext *)c->context->data)->hwctx;
    c->cuda = cuda->cuda_ctx;
    c->stream = cuda->stream;
    if ((rc = check(c, c->f->cuCtxPushCurrent(c->cuda), "cuCtxPushCurrent", e)) < 0)
        return rc;
    rc = load(c, ptx, e);
    c->f->cuCtxPopCurrent(&popped);
    if (rc == 0)
        *ret = take(c);
    return rc;
}

void tonemap_cuda_free(struct tonemap_cuda **pp)
{
    struct tonemap_cuda *c = *pp;
    CUcontext popped;
    if (!c)
        return;
    if (c->cuda && c->f->cuCtxPushCurrent(c->cuda) == CUDA_SUCCESS) {
        if (c->tables)
            c->f->cuMemFree(c->tables);
        if (c->module)
            c->f->cuModuleUnload(c->module);
        c->f->cuCtxPopCurrent(&popped);
    }
    cuda_free_functions(&c->f);
    av_buffer_unref(&c->frames);
    av_buffer_unref(&c->context);
    free_ptr(pp);
}

static int launch(struct tonemap_cuda *c, struct tonemap_params *params, const AVFrame *in,
                  struct err *e)
{
    void *arguments[] = {params};
    CUcontext popped;
    int width, height;
    tonemap_threads(in, &width, &height);
    int rc = check(c, c->f->cuCtxPushCurrent(c->cuda), "cuCtxPushCurrent", e);
    if (rc < 0)
        return rc;
    rc = check(c,
               c->f->cuLaunchKernel(c->kernel, (unsigned)(width + BLOCK_WIDTH - 1) / BLOCK_WIDTH,
                                    (unsigned)(height + BLOCK_HEIGHT - 1) / BLOCK_HEIGHT, 1,
                                    BLOCK_WIDTH, BLOCK_HEIGHT, 1, 0, c->stream, arguments, NULL),
               "cuLaunchKernel", e);
    c->f->cuCtxPopCurrent(&popped);
    return rc;
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
    cleanup(av_frame_free) AVFrame *out = av_frame_alloc();
    if (!out)
        return err_set(e, ERR_RESOURCE, "tone mapping: out of memory");
    int rc = get_output(c, pix_fmt, frame, out, e);
    if (rc == 0)
        rc = tonemap_params_make(c->tonemap, frame, out,
                                 (const struct tonemap_tables *)(uintptr_t)c->tables, &params, e);
    if (rc == 0)
        rc = launch(c, &params, frame, e);
    if (rc == 0)
        rc = tonemap_describe(frame, out, e);
    if (rc == 0) {
        av_frame_unref(frame);
        av_frame_move_ref(frame, out);
    }
    return rc;
}
