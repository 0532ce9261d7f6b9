/*
 * What every entry point does first: it is counted, and the fault rules have their say.
 *
 *     CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes)
 *     {
 *         CUresult rc = sim_call(__func__, SIM_WORK);
 *         if (rc)
 *             return rc;
 *
 * SIMGPU_FAULT is a comma list of rules:
 *
 *     call@N=ACTION    this process's Nth call of the entry point (from 1)
 *     call@N+=ACTION   the Nth and all later ones
 *     call#N=ACTION, call#N+=ACTION
 *                      the same, counted over all processes that share SIMGPU_STATE
 *     ACTION           from the first call of any entry point but cuInit on
 *
 *     D:RULE           the same, but only for calls made while a context of device D is current
 *
 * with ACTION one of
 *
 *     CODE             the call does nothing and returns this number
 *     lost:CODE        the context is poisoned: from here on all work returns CODE; what tears down
 *                      (pop, destroy, free, unmap) and what only asks (names, counts) goes on
 *     dead:CODE        from here on every entry point returns CODE
 *     hang             the call never returns
 *
 * NVENC functions are named as in the function list ("nvEncEncodePicture"), and have codes of their
 * own: sim_call_encoder turns `lost` and `dead` codes into what NVENC says then.
 */
#pragma once
#include <ffnvcodec/dynlink_cuda.h>
#include <stdbool.h>

enum sim_call_class {
    SIM_ASK,   /* facts: devices, names, versions */
    SIM_CLOSE, /* push and pop, destroy, free, unmap */
    SIM_WORK,  /* all else */
};

/* CUDA's codes beyond the three that ffnvcodec's header has. */
#define SIM_ERR_INVALID_VALUE           ((CUresult)1)
#define SIM_ERR_OUT_OF_MEMORY           ((CUresult)2)
#define SIM_ERR_NOT_INITIALIZED         ((CUresult)3)
#define SIM_ERR_DEINITIALIZED           ((CUresult)4)
#define SIM_ERR_NO_DEVICE               ((CUresult)100)
#define SIM_ERR_INVALID_DEVICE          ((CUresult)101)
#define SIM_ERR_INVALID_IMAGE           ((CUresult)200)
#define SIM_ERR_INVALID_CONTEXT         ((CUresult)201)
#define SIM_ERR_MAP_FAILED              ((CUresult)205)
#define SIM_ERR_NO_BINARY_FOR_GPU       ((CUresult)209)
#define SIM_ERR_UNSUPPORTED_PTX_VERSION ((CUresult)222)
#define SIM_ERR_INVALID_SOURCE          ((CUresult)300)
#define SIM_ERR_INVALID_HANDLE          ((CUresult)400)
#define SIM_ERR_NOT_FOUND               ((CUresult)500)
#define SIM_ERR_ILLEGAL_ADDRESS         ((CUresult)700)
#define SIM_ERR_LAUNCH_FAILED           ((CUresult)719)
#define SIM_ERR_NOT_SUPPORTED           ((CUresult)801)

/* 0: go on, else return this. Any thread. */
CUresult sim_call(const char *entry_point, enum sim_call_class class);

/* The same for an NVENC function: a rule's plain code is an NVENCSTATUS already; a context lost or
 * dead is NV_ENC_ERR_GENERIC (20), as is everything that the driver cannot explain. */
int sim_call_encoder(const char *function, enum sim_call_class class);

/* Makes the context lost, as an illegal access in a kernel does. */
void sim_call_lose(CUresult code);

/* Ends the process: a simulator that cannot go on says why. */
__attribute__((noreturn, format(printf, 1, 2))) void sim_die(const char *format, ...);
