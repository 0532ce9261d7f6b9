/* cuInit, devices and what they say of themselves. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/simgpu/context.h"
#include "tests/simgpu/cuda.h"
#include "tests/simgpu/gpu.h"
#include "tests/simgpu/memory.h"

tcuInit cuInit;
tcuDeviceGetCount cuDeviceGetCount;
tcuDeviceGet cuDeviceGet;
tcuDeviceGetAttribute cuDeviceGetAttribute;
tcuDeviceGetName cuDeviceGetName;
tcuDeviceGetUuid cuDeviceGetUuid;
tcuDeviceComputeCapability cuDeviceComputeCapability;
CUresult cuDriverGetVersion(int *ret);
CUresult cuDeviceTotalMem_v2(size_t *ret, CUdevice dev);
CUresult cuDeviceGetPCIBusId(char *ret, int size, CUdevice dev);

static pid_t initialised_by; /* CUDA does not survive a fork */

CUresult cuda_enter(const char *entry_point, enum sim_call_class class, enum cuda_need need)
{
    CUresult rc = sim_call(entry_point, class);
    if (rc)
        return rc;
    if (need >= CUDA_INIT && initialised_by != getpid())
        return SIM_ERR_NOT_INITIALIZED;
    if (need >= CUDA_IN_CONTEXT && sim_context_current_device() < 0)
        return SIM_ERR_INVALID_CONTEXT;
    return CUDA_SUCCESS;
}

/* cuda_enter, and the device's model. */
static CUresult enter(const char *entry_point, CUdevice dev, const struct sim_gpu **ret)
{
    CUresult rc = cuda_enter(entry_point, SIM_ASK, CUDA_INIT);
    *ret = rc ? NULL : sim_gpu_get(dev);
    return rc || *ret ? rc : SIM_ERR_INVALID_DEVICE;
}

CUresult cuInit(unsigned flags)
{
    CUresult rc = cuda_enter(__func__, SIM_ASK, CUDA_ALWAYS);
    if (rc)
        return rc;
    if (flags)
        return SIM_ERR_INVALID_VALUE;
    if (initialised_by && initialised_by != getpid())
        return SIM_ERR_NOT_INITIALIZED;
    if (sim_gpu_count() == 0)
        return SIM_ERR_NO_DEVICE;
    int64_t used, total;
    sim_mem_usage(0, &used, &total); /* opens what must be open before a sandbox closes */
    sim_mem_is_device(0);
    initialised_by = getpid();
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *ret)
{
    CUresult rc = cuda_enter(__func__, SIM_ASK, CUDA_ALWAYS);
    if (!rc)
        *ret = sim_driver_version();
    return rc;
}

CUresult cuDeviceGetCount(int *ret)
{
    CUresult rc = cuda_enter(__func__, SIM_ASK, CUDA_INIT);
    if (!rc)
        *ret = sim_gpu_count();
    return rc;
}

CUresult cuDeviceGet(CUdevice *ret, int ordinal)
{
    const struct sim_gpu *gpu;
    CUresult rc = enter(__func__, ordinal, &gpu);
    if (!rc)
        *ret = ordinal;
    return rc;
}

CUresult cuDeviceGetName(char *ret, int size, CUdevice dev)
{
    const struct sim_gpu *gpu;
    CUresult rc = enter(__func__, dev, &gpu);
    if (!rc)
        snprintf(ret, (size_t)size, "%s", gpu->name);
    return rc;
}

CUresult cuDeviceGetUuid(CUuuid *ret, CUdevice dev)
{
    const struct sim_gpu *gpu;
    CUresult rc = enter(__func__, dev, &gpu);
    if (!rc)
        sim_gpu_uuid(dev, (uint8_t *)ret->bytes);
    return rc;
}

CUresult cuDeviceGetPCIBusId(char *ret, int size, CUdevice dev)
{
    const struct sim_gpu *gpu;
    char id[32];
    CUresult rc = enter(__func__, dev, &gpu);
    if (rc)
        return rc;
    sim_gpu_pci_bus_id(dev, id);
    snprintf(ret, (size_t)size, "%s", id + 4); /* a four-digit domain here, eight in NVML */
    return rc;
}

CUresult cuDeviceComputeCapability(int *ret_major, int *ret_minor, CUdevice dev)
{
    const struct sim_gpu *gpu;
    CUresult rc = enter(__func__, dev, &gpu);
    if (rc)
        return rc;
    *ret_major = gpu->cc_major;
    *ret_minor = gpu->cc_minor;
    return rc;
}

CUresult cuDeviceTotalMem_v2(size_t *ret, CUdevice dev)
{
    const struct sim_gpu *gpu;
    CUresult rc = enter(__func__, dev, &gpu);
    if (!rc)
        *ret = (size_t)gpu->memory_mib << 20;
    return rc;
}

/* Those of ffnvcodec's list; any other number is an invalid value. */
CUresult cuDeviceGetAttribute(int *ret, CUdevice_attribute attribute, CUdevice dev)
{
    const struct sim_gpu *gpu;
    CUresult rc = enter(__func__, dev, &gpu);
    if (rc)
        return rc;
    const struct {
        CUdevice_attribute attribute;
        int value;
    } facts[] = {
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, gpu->clock_khz},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu->sm_count},
        {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, dev + 1},
        {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
        {CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 0},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu->cc_major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu->cc_minor},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0},
        {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, 0},
        {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, dev},
    };
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (facts[i].attribute == attribute) {
            *ret = facts[i].value;
            return CUDA_SUCCESS;
        }
    return SIM_ERR_INVALID_VALUE;
}
