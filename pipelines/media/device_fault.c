#include "pipelines/media/device_fault.h"

#include <ffnvcodec/dynlink_loader.h>
#include <libavutil/hwcontext.h>
#include <libavutil/hwcontext_cuda.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/strbuf.h"
#include "pipelines/media/avlog.h"

/* By the words of the driver that libav logs; its numbers say less: NVENC's "out of memory" is how
 * the driver refuses a session too many, and "incompatible client key" is the other way. */
static const struct {
    const char *words, *way_out;
} capacity[] = {
    {"OpenEncodeSessionEx failed: out of memory",
     "the GPU's encoder sessions or memory are used up: run fewer sessions"},
    {"incompatible client key", "the GPU's encoder sessions are used up: run fewer sessions"},
    {"out of memory", "the GPU's memory is used up: run fewer sessions"},
    {"CUDA_ERROR_OUT_OF_MEMORY", "the GPU's memory is used up: run fewer sessions"},
    {"Cannot allocate memory", "the GPU's memory is used up: run fewer sessions"},
};

enum err_kind device_fault_kind(int averror, enum err_kind otherwise)
{
    return averror == AVERROR(ENOMEM)    ? ERR_RESOURCE
           : averror == AVERROR_EXTERNAL ? ERR_DEVICE
                                         : otherwise;
}

int device_fault(bool is_gpu, enum err_kind otherwise, int averror, struct err *e, const char *fmt,
                 ...)
{
    char what[ERR_MSG_MAX / 2];
    const char *reason = avlog_reason(averror);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    for (size_t i = 0; is_gpu && i < sizeof capacity / sizeof capacity[0]; i++)
        if (strstr(reason, capacity[i].words))
            return err_set(e, ERR_RESOURCE, "%s: %s; %s", what, reason, capacity[i].way_out);
    return err_set(e, device_fault_kind(averror, otherwise), "%s: %s", what, reason);
}

/* An empty piece of work, waited for. */
static CUresult try_cuda(const AVCUDADeviceContext *cuda, CudaFunctions *f)
{
    CUcontext popped;
    CUresult r = f->cuCtxPushCurrent(cuda->cuda_ctx);
    if (r != CUDA_SUCCESS)
        return r;
    r = f->cuStreamSynchronize(cuda->stream);
    f->cuCtxPopCurrent(&popped);
    return r;
}

bool device_is_broken(const struct device *d, struct err *why)
{
    CudaFunctions *f = NULL;
    const char *name = NULL;
    if (!d || !device_is_gpu(d) || cuda_load_functions(&f, NULL) < 0)
        return false;
    const AVHWDeviceContext *hw = (AVHWDeviceContext *)(void *)device_context(d)->data;
    CUresult r = try_cuda(hw->hwctx, f);
    if (r != CUDA_SUCCESS) {
        f->cuGetErrorName(r, &name);
        why->kind = ERR_DEVICE;
        err_prefix(why, "device %s is lost (%s)", device_name(d), name ? name : "unknown error");
    }
    cuda_free_functions(&f);
    return r != CUDA_SUCCESS;
}
