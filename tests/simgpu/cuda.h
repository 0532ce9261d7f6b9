/*
 * What the files of the driver API share. Their functions have no header: the types in ffnvcodec's
 * (tcuInit and so on) declare them, which also checks each signature.
 */
#pragma once
#include <ffnvcodec/dynlink_cuda.h>
#include <stdbool.h>

#include "tests/simgpu/call.h"

enum cuda_need {
    CUDA_ALWAYS,     /* works before cuInit */
    CUDA_INIT,       /* after cuInit, in the process that called it */
    CUDA_IN_CONTEXT, /* with a live current context */
};

/* sim_call, then what the entry point needs. 0: go on, else return this. */
CUresult cuda_enter(const char *entry_point, enum sim_call_class class, enum cuda_need need);

/* True for NULL, the two special handles of the default stream, and live streams. */
bool cuda_stream_is_valid(CUstream stream);
