/*
 * Kernels by name. cuModuleGetFunction looks here for a C function that does what the kernel of
 * that name does on the card; a name that is in no table is CUDA_ERROR_NOT_FOUND.
 *
 * A table is an array ended by a row without name. Kernels of ours, compiled for the host from
 * the same .cu files, are in a table named sim_kernels_product, made next to them and linked into
 * libcuda.so.1; FFmpeg's are in kernels_ffmpeg.c. A name that ends in * stands for all that begin
 * so.
 */
#pragma once
#include <ffnvcodec/dynlink_cuda.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sim_dim {
    unsigned x, y, z;
};

struct sim_launch {
    const char *name;      /* of the kernel that was launched */
    const char *signature; /* its parameters as the PTX has them: l 64 bits, i 32, f float, ... */
    struct sim_dim grid, block;
    void **params; /* params[i] points to the i-th argument, as in cuLaunchKernel */
};

/* Does the whole launch: every thread of every block. Device pointers in its arguments are used
 * through sim_mem_alias or sim_mem_rows, texture objects through sim_texture_get. 0, or the code
 * that the launch ends with (SIM_ERR_ILLEGAL_ADDRESS poisons the context, as on the card). */
typedef CUresult sim_kernel_run(const struct sim_launch *launch);

struct sim_kernel {
    const char *name;
    sim_kernel_run *run;
};

extern const struct sim_kernel sim_kernels_ffmpeg[];

/* Weak: NULL-sized when nobody links one. */
extern const struct sim_kernel sim_kernels_product[] __attribute__((weak));

/* A texture object over pitched device memory; arrays are not modelled. */
struct sim_texture {
    const void *data; /* alias of the first texel */
    size_t pitch_bytes;
    int width, height;  /* texels */
    int channels;       /* 1, 2, 4 */
    int channel_bytes;  /* 1, 2, 4 */
    bool is_float;      /* texels are floats */
    bool is_integer;    /* CU_TRSF_READ_AS_INTEGER: the value itself, else 0..1 */
    bool is_linear;     /* CU_TR_FILTER_MODE_LINEAR */
    bool is_normalized; /* coordinates 0..1 */
    CUaddress_mode address[2];
};

/* NULL: no such live texture. */
const struct sim_texture *sim_texture_get(CUtexObject texture);

/* tex2D<float4>: what the card's texture unit gives at (x, y), where texel centres are at .5; not
 * normalised values are as stored when is_integer, else divided by the type's largest value. */
void sim_texture_fetch(const struct sim_texture *t, float x, float y, float ret[4]);

#ifdef __cplusplus
}
#endif
