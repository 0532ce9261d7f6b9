/* Contexts of one's own, and each device's primary context, which is counted. */
#include <pthread.h>

#include "tests/simgpu/context.h"
#include "tests/simgpu/cuda.h"
#include "tests/simgpu/gpu.h"
#include "tests/simgpu/memory.h"

tcuCtxCreate_v2 cuCtxCreate_v2;
tcuCtxSetLimit cuCtxSetLimit;
tcuCtxPushCurrent_v2 cuCtxPushCurrent_v2;
tcuCtxPopCurrent_v2 cuCtxPopCurrent_v2;
tcuCtxDestroy_v2 cuCtxDestroy_v2;
tcuCtxGetDevice cuCtxGetDevice;
tcuDevicePrimaryCtxRetain cuDevicePrimaryCtxRetain;
tcuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2;
tcuDevicePrimaryCtxSetFlags cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2;
tcuDevicePrimaryCtxGetState cuDevicePrimaryCtxGetState;
tcuDevicePrimaryCtxReset cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2;
CUresult cuCtxGetCurrent(CUcontext *ret);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSynchronize(void);

CUresult cuCtxCreate_v2(CUcontext *ret, unsigned flags, CUdevice dev)
{
    (void)flags;
    CUresult rc = cuda_enter(__func__, SIM_WORK, CUDA_INIT);
    if (rc)
        return rc;
    if (!sim_gpu_get(dev))
        return SIM_ERR_INVALID_DEVICE;
    rc = sim_context_new(dev, ret);
    return rc ? rc : sim_context_push(*ret);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    CUresult rc = cuda_enter(__func__, SIM_CLOSE, CUDA_INIT);
    if (rc)
        return rc;
    if (context && sim_context_current() == context)
        sim_context_pop(NULL);
    return sim_context_free(context);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CUresult rc = cuda_enter(__func__, SIM_CLOSE, CUDA_INIT);
    return rc ? rc : sim_context_push(context);
}

CUresult cuCtxPopCurrent_v2(CUcontext *ret)
{
    CUresult rc = cuda_enter(__func__, SIM_CLOSE, CUDA_INIT);
    return rc ? rc : sim_context_pop(ret);
}

CUresult cuCtxGetCurrent(CUcontext *ret)
{
    CUresult rc = cuda_enter(__func__, SIM_ASK, CUDA_INIT);
    if (!rc)
        *ret = sim_context_current();
    return rc;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult rc = cuda_enter(__func__, SIM_CLOSE, CUDA_INIT);
    if (rc)
        return rc;
    if (sim_context_current())
        sim_context_pop(NULL);
    return context ? sim_context_push(context) : CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *ret)
{
    CUresult rc = cuda_enter(__func__, SIM_ASK, CUDA_IN_CONTEXT);
    if (!rc)
        *ret = sim_context_current_device();
    return rc;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    (void)limit;
    (void)value;
    return cuda_enter(__func__, SIM_WORK, CUDA_IN_CONTEXT);
}

CUresult cuCtxSynchronize(void)
{
    return cuda_enter(__func__, SIM_WORK, CUDA_IN_CONTEXT);
}

static struct primary {
    CUcontext context;
    int users;
    unsigned flags;
} primaries[SIM_DEVICES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult enter(const char *entry_point, enum sim_call_class class, CUdevice dev)
{
    CUresult rc = cuda_enter(entry_point, class, CUDA_INIT);
    return rc || sim_gpu_get(dev) ? rc : SIM_ERR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice dev)
{
    CUresult rc = enter(__func__, SIM_WORK, dev);
    if (rc)
        return rc;
    pthread_mutex_lock(&lock);
    struct primary *p = &primaries[dev];
    if (!p->context)
        rc = sim_context_new(dev, &p->context);
    if (!rc) {
        p->users++;
        *ret = p->context;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static CUresult release(CUdevice dev, int users)
{
    pthread_mutex_lock(&lock);
    struct primary *p = &primaries[dev];
    CUresult rc = p->users ? CUDA_SUCCESS : SIM_ERR_INVALID_CONTEXT;
    if (!rc)
        p->users -= users ? users : p->users;
    if (p->context && p->users == 0) {
        sim_context_free(p->context);
        p->context = NULL;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
    CUresult rc = enter(__func__, SIM_CLOSE, dev);
    return rc ? rc : release(dev, 1);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
    CUresult rc = enter(__func__, SIM_CLOSE, dev);
    if (rc)
        return rc;
    sim_mem_free_all(dev);
    release(dev, 0);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned flags)
{
    CUresult rc = enter(__func__, SIM_ASK, dev);
    if (!rc)
        primaries[dev].flags = flags;
    return rc;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned *ret_flags, int *ret_is_active)
{
    CUresult rc = enter(__func__, SIM_ASK, dev);
    if (rc)
        return rc;
    *ret_flags = primaries[dev].flags;
    *ret_is_active = primaries[dev].context != NULL;
    return rc;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    return cuDevicePrimaryCtxRelease(dev);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    return cuDevicePrimaryCtxReset(dev);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned flags)
{
    return cuDevicePrimaryCtxSetFlags(dev, flags);
}
