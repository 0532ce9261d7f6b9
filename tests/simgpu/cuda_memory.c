/*
 * Device memory and copies. Every copy is checked against the live allocations: one byte outside is
 * CUDA_ERROR_INVALID_VALUE, as the driver says it, and every byte that crosses is counted by
 * direction. Copies are done when the call returns, in whatever stream.
 */
#include <string.h>

#include "tests/simgpu/context.h"
#include "tests/simgpu/cuda.h"
#include "tests/simgpu/memory.h"
#include "tests/simgpu/stats.h"

tcuMemAlloc_v2 cuMemAlloc_v2;
tcuMemAllocPitch_v2 cuMemAllocPitch_v2;
tcuMemFree_v2 cuMemFree_v2;
tcuMemsetD8Async cuMemsetD8Async;
tcuMemcpy cuMemcpy;
tcuMemcpyAsync cuMemcpyAsync;
tcuMemcpy2D_v2 cuMemcpy2D_v2;
tcuMemcpy2DAsync_v2 cuMemcpy2DAsync_v2;
tcuMemcpyHtoD_v2 cuMemcpyHtoD_v2;
tcuMemcpyHtoDAsync_v2 cuMemcpyHtoDAsync_v2;
tcuMemcpyDtoH_v2 cuMemcpyDtoH_v2;
tcuMemcpyDtoHAsync_v2 cuMemcpyDtoHAsync_v2;
tcuMemcpyDtoD_v2 cuMemcpyDtoD_v2;
tcuMemcpyDtoDAsync_v2 cuMemcpyDtoDAsync_v2;
CUresult cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total);
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes);

enum { PITCH = 512 };

CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes)
{
    CUresult rc = cuda_enter(__func__, SIM_WORK, CUDA_IN_CONTEXT);
    return rc ? rc : sim_mem_alloc(sim_context_current_device(), bytes, ret);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *ret, size_t *ret_pitch, size_t width, size_t height,
                            unsigned element_size)
{
    CUresult rc = cuda_enter(__func__, SIM_WORK, CUDA_IN_CONTEXT);
    if (rc)
        return rc;
    if (element_size != 4 && element_size != 8 && element_size != 16)
        return SIM_ERR_INVALID_VALUE;
    *ret_pitch = (width + PITCH - 1) / PITCH * PITCH;
    return sim_mem_alloc(sim_context_current_device(), *ret_pitch * height, ret);
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    CUresult rc = cuda_enter(__func__, SIM_CLOSE, CUDA_IN_CONTEXT);
    return rc || !pointer ? rc : sim_mem_free(pointer);
}

CUresult cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
    CUresult rc = cuda_enter(__func__, SIM_WORK, CUDA_IN_CONTEXT);
    if (rc)
        return rc;
    int64_t used, total;
    sim_mem_usage(sim_context_current_device(), &used, &total);
    *ret_free = (size_t)(total - used);
    *ret_total = (size_t)total;
    return rc;
}

static CUresult fill(CUdeviceptr to, unsigned char value, size_t bytes)
{
    void *alias = sim_mem_range(to, bytes);
    if (!alias)
        return SIM_ERR_INVALID_VALUE;
    memset(alias, value, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes)
{
    CUresult rc = cuda_enter(__func__, SIM_WORK, CUDA_IN_CONTEXT);
    return rc ? rc : fill(to, value, bytes);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    CUresult rc = cuda_enter(__func__, SIM_WORK, CUDA_IN_CONTEXT);
    if (rc)
        return rc;
    return cuda_stream_is_valid(stream) ? fill(to, value, bytes) : SIM_ERR_INVALID_HANDLE;
}

/* A side of a copy: rows in device or in host memory. */
struct side {
    bool is_device;
    CUdeviceptr at; /* of the first byte copied */
    size_t pitch;
};

static void count(const struct side *to, const struct side *from, size_t bytes)
{
    static const char *const name[2][2] = {{"htoh_bytes", "dtoh_bytes"},
                                           {"htod_bytes", "dtod_bytes"}};
    sim_stats_add(SIM_COUNTERS, name[to->is_device][from->is_device], (int64_t)bytes);
}

static uint8_t *resolve(const struct side *side, size_t width, size_t rows)
{
    if (side->is_device)
        return sim_mem_rows(side->at, side->pitch, width, rows);
    return (uint8_t *)side->at; /* a host address, as a number */
}

static CUresult copy(struct side to, struct side from, size_t width, size_t rows)
{
    if (width == 0 || rows == 0)
        return CUDA_SUCCESS;
    uint8_t *out = resolve(&to, width, rows);
    const uint8_t *in = resolve(&from, width, rows);
    bool has_pitch = rows == 1 || (to.pitch >= width && from.pitch >= width);
    if (!out || !in || !has_pitch)
        return SIM_ERR_INVALID_VALUE;
    for (size_t y = 0; y < rows; y++)
        memmove(out + y * to.pitch, in + y * from.pitch, width);
    count(&to, &from, width * rows);
    return CUDA_SUCCESS;
}

static struct side device_side(CUdeviceptr at)
{
    return (struct side){.is_device = true, .at = at};
}

static struct side host_side(const void *at)
{
    return (struct side){.at = (CUdeviceptr)at};
}

/* With unified addressing the address says where it is. */
static struct side any_side(CUdeviceptr at)
{
    return (struct side){.is_device = sim_mem_is_device(at), .at = at};
}

static CUresult copy_bytes(const char *entry_point, CUstream stream, struct side to,
                           struct side from, size_t bytes)
{
    CUresult rc = cuda_enter(entry_point, SIM_WORK, CUDA_IN_CONTEXT);
    if (rc)
        return rc;
    return cuda_stream_is_valid(stream) ? copy(to, from, bytes, 1) : SIM_ERR_INVALID_HANDLE;
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_bytes(__func__, NULL, any_side(to), any_side(from), bytes);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_bytes(__func__, stream, any_side(to), any_side(from), bytes);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return copy_bytes(__func__, NULL, device_side(to), host_side(from), bytes);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return copy_bytes(__func__, stream, device_side(to), host_side(from), bytes);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    return copy_bytes(__func__, NULL, host_side(to), device_side(from), bytes);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_bytes(__func__, stream, host_side(to), device_side(from), bytes);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_bytes(__func__, NULL, device_side(to), device_side(from), bytes);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_bytes(__func__, stream, device_side(to), device_side(from), bytes);
}

/* Arrays are not modelled. */
static CUresult rectangle_side(CUmemorytype type, const void *host, CUdeviceptr device,
                               size_t pitch, size_t x, size_t y, struct side *ret)
{
    if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE)
        return SIM_ERR_NOT_SUPPORTED;
    *ret = type == CU_MEMORYTYPE_HOST ? host_side(host) : device_side(device);
    ret->pitch = pitch;
    ret->at += y * pitch + x;
    return CUDA_SUCCESS;
}

static CUresult copy_rectangle(const char *entry_point, CUstream stream, const CUDA_MEMCPY2D *c)
{
    struct side to, from;
    CUresult rc = cuda_enter(entry_point, SIM_WORK, CUDA_IN_CONTEXT);
    if (!rc && !cuda_stream_is_valid(stream))
        rc = SIM_ERR_INVALID_HANDLE;
    if (!rc)
        rc = rectangle_side(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch, c->dstXInBytes,
                            c->dstY, &to);
    if (!rc)
        rc = rectangle_side(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcPitch, c->srcXInBytes,
                            c->srcY, &from);
    return rc ? rc : copy(to, from, c->WidthInBytes, c->Height);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *c)
{
    return copy_rectangle(__func__, NULL, c);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
    return copy_rectangle(__func__, stream, c);
}
