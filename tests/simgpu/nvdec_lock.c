/* Context locks: a recursive mutex with a name. */
#include <ffnvcodec/dynlink_cuda.h>
#include <ffnvcodec/dynlink_cuviddec.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/simgpu/context.h"
#include "tests/simgpu/nvdec.h"
#include "tests/simgpu/stats.h"

tcuvidCtxLockCreate cuvidCtxLockCreate;
tcuvidCtxLockDestroy cuvidCtxLockDestroy;
tcuvidCtxLock cuvidCtxLock;
tcuvidCtxUnlock cuvidCtxUnlock;

struct _CUcontextlock_st {
    pthread_mutex_t mutex;
};

CUresult cuvidCtxLockCreate(CUvideoctxlock *ret, CUcontext context)
{
    CUresult rc = sim_call(__func__, SIM_WORK);
    if (rc)
        return rc;
    if (sim_context_device(context) < 0)
        return SIM_ERR_INVALID_CONTEXT;
    pthread_mutexattr_t attr;
    CUvideoctxlock l = calloc(1, sizeof *l);
    if (!l)
        sim_die("out of memory");
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&l->mutex, &attr);
    pthread_mutexattr_destroy(&attr);
    sim_stats_add(SIM_LIVE, "ctx_lock", 1);
    *ret = l;
    return CUDA_SUCCESS;
}

CUresult cuvidCtxLockDestroy(CUvideoctxlock l)
{
    CUresult rc = sim_call(__func__, SIM_CLOSE);
    if (rc || !l)
        return rc;
    pthread_mutex_destroy(&l->mutex);
    free(l);
    sim_stats_add(SIM_LIVE, "ctx_lock", -1);
    return CUDA_SUCCESS;
}

CUresult cuvidCtxLock(CUvideoctxlock l, unsigned flags)
{
    (void)flags;
    CUresult rc = sim_call(__func__, SIM_CLOSE);
    if (!rc)
        pthread_mutex_lock(&l->mutex);
    return rc;
}

CUresult cuvidCtxUnlock(CUvideoctxlock l, unsigned flags)
{
    (void)flags;
    CUresult rc = sim_call(__func__, SIM_CLOSE);
    if (!rc)
        pthread_mutex_unlock(&l->mutex);
    return rc;
}
