#include "tests/simgpu/context.h"

#include <pthread.h>
#include <stdlib.h>

#include "tests/simgpu/call.h"
#include "tests/simgpu/gpu.h"
#include "tests/simgpu/memory.h"
#include "tests/simgpu/stats.h"

enum { STACK_MAX = 64 };

struct CUctx_st {
    int device;
    CUcontext next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext live; /* a list */

/* Each thread has a stack of contexts; the top one is current. */
static _Thread_local CUcontext stack[STACK_MAX];
static _Thread_local int depth;

CUresult sim_context_new(int device, CUcontext *ret)
{
    CUresult rc = sim_mem_book(device, (int64_t)SIM_CONTEXT_MIB << 20);
    if (rc)
        return rc;
    CUcontext c = calloc(1, sizeof *c);
    if (!c)
        sim_die("out of memory");
    c->device = device;
    pthread_mutex_lock(&lock);
    c->next = live;
    live = c;
    pthread_mutex_unlock(&lock);
    sim_stats_add(SIM_LIVE, "context", 1);
    *ret = c;
    return CUDA_SUCCESS;
}

CUresult sim_context_free(CUcontext context)
{
    pthread_mutex_lock(&lock);
    CUcontext *at = &live;
    while (*at && *at != context)
        at = &(*at)->next;
    bool is_live = *at;
    if (is_live)
        *at = context->next;
    pthread_mutex_unlock(&lock);
    if (!is_live)
        return SIM_ERR_INVALID_CONTEXT;
    sim_mem_book(context->device, -((int64_t)SIM_CONTEXT_MIB << 20));
    sim_stats_add(SIM_LIVE, "context", -1);
    free(context);
    return CUDA_SUCCESS;
}

int sim_context_device(CUcontext context)
{
    pthread_mutex_lock(&lock);
    CUcontext c = live;
    while (c && c != context)
        c = c->next;
    int device = c ? c->device : -1;
    pthread_mutex_unlock(&lock);
    return device;
}

CUcontext sim_context_current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

int sim_context_current_device(void)
{
    return sim_context_device(sim_context_current());
}

CUresult sim_context_push(CUcontext context)
{
    if (sim_context_device(context) < 0)
        return SIM_ERR_INVALID_CONTEXT;
    if (depth == STACK_MAX)
        sim_die("more than %d contexts pushed by one thread", STACK_MAX);
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult sim_context_pop(CUcontext *ret)
{
    if (depth == 0)
        return SIM_ERR_INVALID_CONTEXT;
    depth--;
    if (ret)
        *ret = stack[depth];
    return CUDA_SUCCESS;
}
