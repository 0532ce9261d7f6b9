/*
 * Device memory. A device pointer is an address in a window that has no access rights, so that any
 * touch by the CPU is a fault, as on the card; the simulator works on an alias of it. Allocations
 * are a multiple of pages with a page of nothing between two, and count against the device's memory
 * across processes.
 */
#pragma once
#include <ffnvcodec/dynlink_cuda.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0, or 2 (CUDA_ERROR_OUT_OF_MEMORY), 1 (CUDA_ERROR_INVALID_VALUE: no bytes). Zeroed memory. */
CUresult sim_mem_alloc(int device, size_t bytes, CUdeviceptr *ret);

/* 0, or 1 when it is not the start of a live allocation. */
CUresult sim_mem_free(CUdeviceptr pointer);

/* Frees all that was allocated on a device by this process and is left (cuDevicePrimaryCtxReset).
 */
void sim_mem_free_all(int device);

/* Where the simulator reads and writes what is at a device pointer; NULL for what is not in the
 * window. Bytes outside a live allocation fault. */
void *sim_mem_alias(CUdeviceptr pointer);

/* The same with a check: NULL unless all the bytes lie in one live allocation. */
void *sim_mem_range(CUdeviceptr pointer, size_t bytes);

/* The same for `rows` rows of `width` bytes each, `pitch` apart; the last row need not be whole. */
void *sim_mem_rows(CUdeviceptr pointer, size_t pitch, size_t width, size_t rows);

/* True for an address in the window, live or not. */
bool sim_mem_is_device(CUdeviceptr pointer);

/* Device of a pointer in the window, else -1. */
int sim_mem_device(CUdeviceptr pointer);

/* Books (negative: gives back) device memory that has no address for the caller: an encoder's own
 * buffers, a context. 0 or CUDA_ERROR_OUT_OF_MEMORY (2). */
CUresult sim_mem_book(int device, int64_t bytes);

/* Bytes taken by all processes, and bytes there are. */
void sim_mem_usage(int device, int64_t *ret_used, int64_t *ret_total);

#ifdef __cplusplus
}
#endif
