/*
 * Modules and kernels. A module is PTX text; its kernels are found by name in the tables of
 * kernel.h, and only when the text has an entry of that name, so that a kernel which a build has
 * forgotten is missing here as well. The entry's parameter list tells what the caller will pass,
 * which is how kernels of FFmpeg whose arguments changed between versions are told apart.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/context.h"
#include "tests/simgpu/cuda.h"
#include "tests/simgpu/gpu.h"
#include "tests/simgpu/kernel.h"
#include "tests/simgpu/stats.h"

tcuModuleLoadData cuModuleLoadData;
tcuModuleUnload cuModuleUnload;
tcuModuleGetFunction cuModuleGetFunction;
tcuModuleGetGlobal cuModuleGetGlobal;
tcuLaunchKernel cuLaunchKernel;
CUresult cuModuleLoadDataEx(CUmodule *ret, const void *image, unsigned count, CUjit_option *options,
                            void **values);

enum { PTX_ISA_MAX = 87, PARAMS_MAX = 32, NAME_MAX_BYTES = 256 };

struct CUfunc_st {
    CUfunction next;
    char name[NAME_MAX_BYTES];
    char signature[PARAMS_MAX + 1];
    const struct sim_kernel *kernel;
};

struct CUmod_st {
    CUmodule next;
    char *ptx;
    CUfunction functions;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUmodule live;

/* ".version 8.0" as 80, ".target sm_75" as 75; -1 when it is not there. */
static int directive(const char *ptx, const char *name, const char *before)
{
    const char *at = strstr(ptx, name);
    int major = 0, minor = 0;
    if (!at)
        return -1;
    at += strlen(name);
    at += strspn(at, " \t");
    if (strncmp(at, before, strlen(before)) != 0)
        return -1;
    int fields = sscanf(at + strlen(before), "%d.%d", &major, &minor);
    return fields < 1 ? -1 : fields == 1 ? major : major * 10 + minor;
}

static CUresult check_ptx(const char *ptx)
{
    const struct sim_gpu *gpu = sim_gpu_get(sim_context_current_device());
    int isa = directive(ptx, ".version", ""), target = directive(ptx, ".target", "sm_");
    if (isa < 0 || target < 0)
        return SIM_ERR_INVALID_IMAGE;
    if (isa > PTX_ISA_MAX)
        return SIM_ERR_UNSUPPORTED_PTX_VERSION;
    return target > gpu->cc_major * 10 + gpu->cc_minor ? SIM_ERR_NO_BINARY_FOR_GPU : CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *ret, const void *image)
{
    CUresult rc = cuda_enter(__func__, SIM_WORK, CUDA_IN_CONTEXT);
    if (rc)
        return rc;
    rc = check_ptx(image);
    if (rc)
        return rc;
    CUmodule m = calloc(1, sizeof *m);
    if (!m || !(m->ptx = strdup(image)))
        sim_die("out of memory");
    pthread_mutex_lock(&lock);
    m->next = live;
    live = m;
    pthread_mutex_unlock(&lock);
    sim_stats_add(SIM_LIVE, "module", 1);
    *ret = m;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *ret, const void *image, unsigned count, CUjit_option *options,
                            void **values)
{
    (void)count, (void)options, (void)values;
    return cuModuleLoadData(ret, image);
}

static CUmodule *find_module(CUmodule module)
{
    CUmodule *at = &live;
    while (*at && *at != module)
        at = &(*at)->next;
    return at;
}

CUresult cuModuleUnload(CUmodule module)
{
    CUresult rc = cuda_enter(__func__, SIM_CLOSE, CUDA_IN_CONTEXT);
    if (rc)
        return rc;
    pthread_mutex_lock(&lock);
    CUmodule *at = find_module(module);
    bool is_live = *at;
    if (is_live)
        *at = module->next;
    pthread_mutex_unlock(&lock);
    if (!is_live)
        return SIM_ERR_INVALID_HANDLE;
    for (CUfunction f = module->functions, next; f; f = next) {
        next = f->next;
        free(f);
    }
    free(module->ptx);
    free(module);
    sim_stats_add(SIM_LIVE, "module", -1);
    return CUDA_SUCCESS;
}

/* Where the parameter list of the entry of that name begins, or NULL. Here and below by memmem:
 * under AddressSanitizer each strstr costs the whole length of the text. */
static const char *find_entry(const char *ptx, const char *name)
{
    size_t length = strlen(name);
    const char *end = ptx + strlen(ptx);
    for (const char *at = ptx; (at = memmem(at, (size_t)(end - at), ".entry", strlen(".entry")));) {
        at += strlen(".entry");
        at += strspn(at, " \t\n");
        if (strncmp(at, name, length) == 0 && strchr("( \t\n", at[length]))
            return strchr(at, '(');
    }
    return NULL;
}

/* One letter a parameter: l 64 bits, i 32, h 16, b 8, f float, S a struct by value. */
static void read_signature(const char *list, char ret[PARAMS_MAX + 1])
{
    static const struct {
        const char *type;
        char letter;
    } letters[] = {{".u64", 'l'}, {".s64", 'l'}, {".b64", 'l'},  {".u32", 'i'}, {".s32", 'i'},
                   {".b32", 'i'}, {".f32", 'f'}, {".u16", 'h'},  {".s16", 'h'}, {".b16", 'h'},
                   {".u8", 'b'},  {".s8", 'b'},  {".align", 'S'}};
    int n = 0;
    const char *end = strchr(list, ')');
    for (const char *at = list;
         end && n < PARAMS_MAX &&
         (at = memmem(at, (size_t)(end - at), ".param", strlen(".param")));) {
        at += strlen(".param");
        at += strspn(at, " \t");
        char letter = '?';
        for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
            if (strncmp(at, letters[i].type, strlen(letters[i].type)) == 0)
                letter = letters[i].letter;
        ret[n++] = letter;
    }
    ret[n] = 0;
}

static const struct sim_kernel *find_kernel(const char *name)
{
    const struct sim_kernel *const tables[] = {sim_kernels_product, sim_kernels_ffmpeg};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const struct sim_kernel *k = tables[i]; k && k->name; k++) {
            size_t length = strlen(k->name);
            bool is_prefix = length && k->name[length - 1] == '*';
            if (is_prefix ? strncmp(k->name, name, length - 1) == 0 : strcmp(k->name, name) == 0)
                return k;
        }
    return NULL;
}

CUresult cuModuleGetFunction(CUfunction *ret, CUmodule module, const char *name)
{
    CUresult rc = cuda_enter(__func__, SIM_WORK, CUDA_IN_CONTEXT);
    if (rc)
        return rc;
    pthread_mutex_lock(&lock);
    bool is_live = *find_module(module);
    pthread_mutex_unlock(&lock);
    if (!is_live)
        return SIM_ERR_INVALID_HANDLE;
    const char *list = find_entry(module->ptx, name);
    const struct sim_kernel *kernel = find_kernel(name);
    if (!list || !kernel || strlen(name) >= NAME_MAX_BYTES)
        return SIM_ERR_NOT_FOUND;
    CUfunction f = calloc(1, sizeof *f);
    if (!f)
        sim_die("out of memory");
    snprintf(f->name, sizeof f->name, "%s", name);
    read_signature(list, f->signature);
    f->kernel = kernel;
    pthread_mutex_lock(&lock);
    f->next = module->functions;
    module->functions = f;
    pthread_mutex_unlock(&lock);
    *ret = f;
    return CUDA_SUCCESS;
}

/* No module of ours or of FFmpeg's scaler and deinterlacers has a global that the host sets. */
CUresult cuModuleGetGlobal(CUdeviceptr *ret, size_t *ret_bytes, CUmodule module, const char *name)
{
    (void)ret, (void)ret_bytes, (void)module, (void)name;
    CUresult rc = cuda_enter(__func__, SIM_WORK, CUDA_IN_CONTEXT);
    return rc ? rc : SIM_ERR_NOT_FOUND;
}

static bool is_launchable(struct sim_dim grid, struct sim_dim block)
{
    return grid.x && grid.y && grid.z && block.x && block.y && block.z && block.z <= 64 &&
           (uint64_t)block.x * block.y * block.z <= 1024 && grid.y <= 65535 && grid.z <= 65535;
}

CUresult cuLaunchKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **params, void **extra)
{
    (void)shared;
    CUresult rc = cuda_enter(__func__, SIM_WORK, CUDA_IN_CONTEXT);
    if (rc)
        return rc;
    if (!f || !cuda_stream_is_valid(stream))
        return SIM_ERR_INVALID_HANDLE;
    if (extra)
        return SIM_ERR_NOT_SUPPORTED;
    struct sim_launch launch = {
        .name = f->name,
        .signature = f->signature,
        .grid = {grid_x, grid_y, grid_z},
        .block = {block_x, block_y, block_z},
        .params = params,
    };
    if (!is_launchable(launch.grid, launch.block))
        return SIM_ERR_INVALID_VALUE;
    sim_stats_add(SIM_COUNTERS, "kernels", 1);
    rc = f->kernel->run(&launch);
    if (rc)
        sim_call_lose(rc);
    return rc;
}
