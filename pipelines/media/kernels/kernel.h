/*
 * The dialect of the .cu files here. One source is compiled by three compilers: nvcc, clang with
 * neither the toolkit's headers nor its libraries, and, as C, the compiler of the product (host.c),
 * for the CPU device and for the simulated driver. So a kernel is a KERNEL_FUNCTION that does the
 * work of the thread at (x, y, z), in the C that all three read, and a __global__ one, for the
 * device only, that calls it.
 *
 * Where speed counts, numbers are of the types `whole` and `real`. On a device they are int and
 * float, one thread's; on the host vectors, one lane for each of KERNEL_LANES neighbouring threads.
 *
 * That the results agree to the bit rests on three habits: no library functions (curves are tables
 * made on the host), no fused multiply-add (-fmad=false, -ffp-contract=off), and of floats only
 * + - * / and conversions, which IEEE 754 rounds in one way everywhere.
 */
#pragma once
#include "pipelines/media/kernels/params.h"

/* --- where a thread is -------------------------------------------------------------------------
 */

#if defined(__CUDA__) || defined(__CUDACC__)
#define KERNEL_IS_DEVICE 1
#ifdef __NVCC__
#define KERNEL_AT(d) ((int)(blockIdx.d * blockDim.d + threadIdx.d))
#else
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define KERNEL_AT(d)                                                            \
    ((int)(__nvvm_read_ptx_sreg_ctaid_##d() * __nvvm_read_ptx_sreg_ntid_##d() + \
           __nvvm_read_ptx_sreg_tid_##d()))
#endif
#define KERNEL_FUNCTION static __device__ inline
#define KERNEL_UNROLL   _Pragma("unroll")
#else
#define KERNEL_FUNCTION static inline __attribute__((always_inline))
#define KERNEL_UNROLL   _Pragma("GCC unroll 8")
#endif

/* --- numbers -----------------------------------------------------------------------------------
 */

#ifdef KERNEL_IS_DEVICE
enum { KERNEL_LANES = 1 };
typedef int whole;
typedef float real;
#define KERNEL_LANE(v, l) (v)
#define KERNEL_REAL(v)    ((float)(v))
#define KERNEL_WHOLE(v)   ((int)(v)) /* towards 0 */
#else
enum { KERNEL_LANES = 4 };
typedef int32_t whole __attribute__((vector_size(16)));
typedef float real __attribute__((vector_size(16)));
#define KERNEL_LANE(v, l) ((v)[l])
#define KERNEL_REAL(v)    __builtin_convertvector(v, real)
#define KERNEL_WHOLE(v)   __builtin_convertvector(v, whole)
#endif

/* a < b ? a : b, and a > b ? a : b, in each lane. */
KERNEL_FUNCTION real least(real a, real b)
{
#if defined(KERNEL_IS_DEVICE)
    return a < b ? a : b;
#elif defined(__SSE__)
    return __builtin_ia32_minps(a, b);
#else
    whole is_a = a < b;
    return (real)((is_a & (whole)a) | (~is_a & (whole)b));
#endif
}

KERNEL_FUNCTION real most(real a, real b)
{
#if defined(KERNEL_IS_DEVICE)
    return a > b ? a : b;
#elif defined(__SSE__)
    return __builtin_ia32_maxps(a, b);
#else
    whole is_a = a > b;
    return (real)((is_a & (whole)a) | (~is_a & (whole)b));
#endif
}

/* Whether it is so in any lane; comparisons give 0 or all bits. */
KERNEL_FUNCTION int is_any(whole mask)
{
#if !defined(KERNEL_IS_DEVICE) && defined(__SSE__)
    return __builtin_ia32_movmskps((real)mask);
#else
    int any = 0;
    for (int l = 0; l < KERNEL_LANES; l++)
        any |= KERNEL_LANE(mask, l);
    return any;
#endif
}

KERNEL_FUNCTION whole bits_of(real v)
{
    union {
        real r;
        whole w;
    } u;
    u.r = v;
    return u.w;
}

/* A curve at the i-th of its points and `share` (0 to 1) of the way to the next. */
KERNEL_FUNCTION real look_up(const struct kernel_point *points, whole i, real share)
{
#ifdef KERNEL_IS_DEVICE
    return points[i].at + share * points[i].rise;
#else
    /* a point is 8 bytes, loaded as one number */
    typedef double two __attribute__((vector_size(16)));
    two low, high;
    for (int l = 0; l < 2; l++) {
        double a, b;
        __builtin_memcpy(&a, &points[(uint32_t)i[l]], sizeof a);
        __builtin_memcpy(&b, &points[(uint32_t)i[l + 2]], sizeof b);
        low[l] = a;
        high[l] = b;
    }
    real at = __builtin_shufflevector((real)low, (real)high, 0, 2, 4, 6);
    real rise = __builtin_shufflevector((real)low, (real)high, 1, 3, 5, 7);
    return at + share * rise;
#endif
}
