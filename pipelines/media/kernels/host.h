/*
 * The kernels as C functions of the same names, compiled from the same sources: what the CPU device
 * runs, and what the simulated driver runs in place of PTX. Thread: any, nothing is shared.
 */
#pragma once
#include <stddef.h>

struct kernel_host {
    const char *name;    /* as in the PTX */
    size_t params_bytes; /* size of its one argument, a struct of kernels/params.h */
    int n_pointers;      /* which that argument begins with */
    void (*run)(const void *params, int width, int height, int depth); /* threads in all */
};

extern const struct kernel_host kernel_host_table[]; /* ends with a NULL name */

void kernel_host_tonemap(const void *params, int width, int height, int depth);
void kernel_host_thumbnail(const void *params, int width, int height, int depth);
void kernel_host_turn(const void *params, int width, int height, int depth);
