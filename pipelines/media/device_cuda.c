#include "pipelines/media/device_cuda.h"

/* The loader's header declares the driver API; libavutil's would want a toolkit's cuda.h. */
#include <dlfcn.h>
#include <ffnvcodec/dynlink_loader.h>
#include <libavutil/hwcontext.h>
#include <libavutil/hwcontext_cuda.h>

#include "common/strbuf.h"

int device_cuda_model(AVBufferRef *context, char **ret, struct err *e)
{
    const AVHWDeviceContext *hw = (AVHWDeviceContext *)context->data;
    const AVCUDADeviceContext *cuda = hw->hwctx;
    CudaFunctions *f = NULL;
    char name[128] = "";
    CUdevice device;
    CUcontext popped;
    if (cuda_load_functions(&f, NULL) < 0)
        return err_set(e, ERR_DEVICE, "libcuda.so.1 cannot be loaded");
    CUresult r = f->cuCtxPushCurrent(cuda->cuda_ctx);
    if (r == CUDA_SUCCESS) {
        r = f->cuCtxGetDevice(&device);
        if (r == CUDA_SUCCESS)
            r = f->cuDeviceGetName(name, sizeof name, device);
        f->cuCtxPopCurrent(&popped);
    }
    cuda_free_functions(&f);
    if (r != CUDA_SUCCESS)
        return err_set(e, ERR_DEVICE, "the driver does not name the GPU (CUDA error %d)", (int)r);
    *ret = xstrdup(name);
    return 0;
}

void device_cuda_preload(void)
{
    static const char *const libraries[] = {"libnvcuvid.so.1", "libnvidia-encode.so.1",
                                            "libnvidia-ptxjitcompiler.so.1"};
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        dlopen(libraries[i], RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
}
