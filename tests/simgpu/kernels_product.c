/*
 * The product's kernels in the simulated driver: their host build, on aliases of the device memory
 * that their argument points to. Linked with the `kernels` library of the product's build.
 */
#include <string.h>

#include "pipelines/media/kernels/host.h"
#include "tests/simgpu/call.h"
#include "tests/simgpu/kernel.h"
#include "tests/simgpu/memory.h"

enum { PARAMS_MAX = 1024 };

static CUresult run(const struct sim_launch *launch)
{
    const struct kernel_host *k = kernel_host_table;
    while (k->name && strcmp(k->name, launch->name))
        k++;
    if (!k->name || k->params_bytes > PARAMS_MAX)
        return SIM_ERR_NOT_FOUND;
    union {
        CUdeviceptr pointers[PARAMS_MAX / sizeof(CUdeviceptr)];
        unsigned char bytes[PARAMS_MAX];
    } params;
    memcpy(params.bytes, launch->params[0], k->params_bytes);
    for (int i = 0; i < k->n_pointers; i++) {
        void *alias = params.pointers[i] ? sim_mem_alias(params.pointers[i]) : NULL;
        if (params.pointers[i] && !alias)
            return SIM_ERR_ILLEGAL_ADDRESS;
        params.pointers[i] = (CUdeviceptr)(uintptr_t)alias;
    }
    k->run(params.bytes, (int)(launch->grid.x * launch->block.x),
           (int)(launch->grid.y * launch->block.y), (int)(launch->grid.z * launch->block.z));
    return CUDA_SUCCESS;
}

const struct sim_kernel sim_kernels_product[] = {
    {"tonemap", run},
    {"thumbnail", run},
    {"turn", run},
    {NULL, NULL},
};
