#include "pipelines/media/kernel_cuda.h"

#include <ffnvcodec/dynlink_loader.h>
#include <libavutil/hwcontext.h>
#include <libavutil/hwcontext_cuda.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/ptx.h"

enum { BLOCK_WIDTH = 32, BLOCK_HEIGHT = 8, MEMORY_MAX = 1 };

struct kernel_cuda {
    const struct device *device;
    const char *work;
    AVBufferRef *context; /* keeps the CUDA context alive */
    CudaFunctions *f;
    CUcontext cuda;
    CUstream stream;
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory[MEMORY_MAX];
    size_t n_memory;
};

static int check(const struct kernel_cuda *k, CUresult r, const char *call, struct err *e)
{
    const char *name = NULL;
    if (r == CUDA_SUCCESS)
        return 0;
    k->f->cuGetErrorName(r, &name);
    return err_set(e, ERR_DEVICE, "device %s: %s: %s: %s", device_name(k->device), k->work, call,
                   name ? name : "unknown error");
}

static int enter(struct kernel_cuda *k, struct err *e)
{
    return check(k, k->f->cuCtxPushCurrent(k->cuda), "cuCtxPushCurrent", e);
}

static int leave(struct kernel_cuda *k, int rc)
{
    CUcontext popped;
    k->f->cuCtxPopCurrent(&popped);
    return rc;
}

static int load(struct kernel_cuda *k, const char *name, const char *ptx, struct err *e)
{
    int rc = enter(k, e);
    if (rc < 0)
        return rc;
    rc = check(k, k->f->cuModuleLoadData(&k->module, ptx), "cuModuleLoadData", e);
    if (rc == 0)
        rc = check(k, k->f->cuModuleGetFunction(&k->function, k->module, name),
                   "cuModuleGetFunction", e);
    return leave(k, rc);
}

int kernel_cuda_new(const struct device *device, const char *name, const char *work,
                    struct kernel_cuda **ret, struct err *e)
{
    const char *ptx;
    int rc = ptx_find(name, &ptx, e);
    if (rc < 0)
        return rc;
    cleanup(kernel_cuda_free) struct kernel_cuda *k = xcalloc(1, sizeof *k);
    k->device = device;
    k->work = work;
    k->context = av_buffer_ref(device_context(device));
    if (!k->context || cuda_load_functions(&k->f, NULL) < 0)
        return err_set(e, ERR_DEVICE, "device %s: the driver cannot be loaded",
                       device_name(device));
    const AVCUDADeviceContext *cuda = ((AVHWDeviceContext *)k->context->data)->hwctx;
    k->cuda = cuda->cuda_ctx;
    k->stream = cuda->stream;
    rc = load(k, name, ptx, e);
    if (rc == 0)
        *ret = take(k);
    return rc;
}

void kernel_cuda_free(struct kernel_cuda **pp)
{
    struct kernel_cuda *k = *pp;
    if (!k)
        return;
    if (k->cuda && k->f->cuCtxPushCurrent(k->cuda) == CUDA_SUCCESS) {
        while (k->n_memory)
            k->f->cuMemFree(k->memory[--k->n_memory]);
        if (k->module)
            k->f->cuModuleUnload(k->module);
        leave(k, 0);
    }
    cuda_free_functions(&k->f);
    av_buffer_unref(&k->context);
    free_ptr(pp);
}

int kernel_cuda_memory(struct kernel_cuda *k, const void *data, size_t size, void **ret,
                       struct err *e)
{
    CUdeviceptr at;
    if (k->n_memory == MEMORY_MAX)
        return err_set(e, ERR_BUG, "%s: more device memory than is kept", k->work);
    int rc = enter(k, e);
    if (rc < 0)
        return rc;
    rc = check(k, k->f->cuMemAlloc(&at, size), "cuMemAlloc", e);
    if (rc == 0) {
        k->memory[k->n_memory++] = at;
        *ret = (void *)(uintptr_t)at;
    }
    if (rc == 0 && data)
        rc = check(k, k->f->cuMemcpyHtoD(at, data, size), "cuMemcpyHtoD", e);
    return leave(k, rc);
}

static unsigned blocks(int threads, int in_block)
{
    return (unsigned)((threads + in_block - 1) / in_block);
}

int kernel_cuda_launch(struct kernel_cuda *k, void *params, int width, int height, int depth,
                       struct err *e)
{
    void *arguments[] = {params};
    int rc = enter(k, e);
    if (rc < 0)
        return rc;
    rc = check(k,
               k->f->cuLaunchKernel(k->function, blocks(width, BLOCK_WIDTH),
                                    blocks(height, BLOCK_HEIGHT), (unsigned)depth, BLOCK_WIDTH,
                                    BLOCK_HEIGHT, 1, 0, k->stream, arguments, NULL),
               "cuLaunchKernel", e);
    return leave(k, rc);
}

int kernel_cuda_read(struct kernel_cuda *k, const void *from, void *ret, size_t size, struct err *e)
{
    int rc = enter(k, e);
    if (rc < 0)
        return rc;
    rc = check(k, k->f->cuMemcpyDtoHAsync(ret, (CUdeviceptr)(uintptr_t)from, size, k->stream),
               "cuMemcpyDtoHAsync", e);
    if (rc == 0)
        rc = check(k, k->f->cuStreamSynchronize(k->stream), "cuStreamSynchronize", e);
    return leave(k, rc);
}
