/* The C arithmetic behind FFmpeg's kernels, and what its files share. */
#pragma once
#include <stdint.h>
#include <string.h>

#include "tests/simgpu/call.h"
#include "tests/simgpu/kernel.h"
#include "tests/simgpu/memory.h"

sim_kernel_run kernel_scale, kernel_yadif, kernel_bwdif;

/* The i-th argument of a launch. */
static inline uint64_t kernel_u64(const struct sim_launch *launch, int i)
{
    return *(const uint64_t *)launch->params[i];
}

static inline int kernel_int(const struct sim_launch *launch, int i)
{
    return *(const int *)launch->params[i];
}

static inline float kernel_float(const struct sim_launch *launch, int i)
{
    return *(const float *)launch->params[i];
}

/* A sample of 1 or 2 bytes. */
static inline int kernel_load(const uint8_t *row, size_t i, int bytes)
{
    return bytes == 2 ? ((const uint16_t *)row)[i] : row[i];
}

static inline void kernel_store(uint8_t *row, size_t i, int bytes, int value)
{
    if (bytes == 2)
        ((uint16_t *)row)[i] = (uint16_t)value;
    else
        row[i] = (uint8_t)value;
}

static inline int kernel_clamp(int n, int low, int high)
{
    return n < low ? low : n > high ? high : n;
}

/* Arguments changed: a kernel of an FFmpeg that this was not written for. */
static inline void kernel_expect(const struct sim_launch *launch, const char *signature)
{
    if (strcmp(launch->signature, signature) != 0)
        sim_die("kernel %s has the parameters %s, not %s: it is of an FFmpeg that is not modelled",
                launch->name, launch->signature, signature);
}
