/*
 * CUDA contexts: which are live, on which device, and each thread's stack of them, whose top is
 * current. A context takes SIM_CONTEXT_MIB of its device's memory.
 */
#pragma once
#include <ffnvcodec/dynlink_cuda.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SIM_CONTEXT_MIB = 128 }; /* device memory that a context takes */

/* Device of a live context, else -1; NULL is not one. Any thread. */
int sim_context_device(CUcontext context);

/* Device of the calling thread's current context, else -1. */
int sim_context_current_device(void);

/* The calling thread's current context, which may have been destroyed since; NULL: none. */
CUcontext sim_context_current(void);

/* 0, or SIM_ERR_OUT_OF_MEMORY. Not made current. */
CUresult sim_context_new(int device, CUcontext *ret);

/* These return SIM_ERR_INVALID_CONTEXT for what is not live, or not there. */
CUresult sim_context_free(CUcontext context);
CUresult sim_context_push(CUcontext context);
CUresult sim_context_pop(CUcontext *ret);

#ifdef __cplusplus
}
#endif
