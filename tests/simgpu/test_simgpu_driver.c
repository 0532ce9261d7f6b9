/*
 * The simulated driver by itself: ffnvcodec's loader finds all it wants, device memory is out of
 * the CPU's reach and counted, faults come when they are told to, and what dead processes held is
 * free again.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/scratch.h"
#include "tests/support/simgpu.h"

#if __has_include(<ffnvcodec/dynlink_loader.h>)
#include <ffnvcodec/dynlink_loader.h>

#define CHECK(x)                                            \
    do {                                                    \
        if (!(x)) {                                         \
            fprintf(stderr, "line %d: %s\n", __LINE__, #x); \
            return 1;                                       \
        }                                                   \
    } while (0)

static CudaFunctions *cu;
static CUcontext context;

static int open_device(void)
{
    CUdevice device;
    CHECK(cuda_load_functions(&cu, NULL) == 0);
    CHECK(cu->cuInit(0) == 0);
    CHECK(cu->cuDeviceGet(&device, 0) == 0);
    return (int)cu->cuCtxCreate(&context, 0, device);
}

static int close_device(void)
{
    CHECK(cu->cuCtxDestroy(context) == 0);
    cuda_free_functions(&cu);
    return 0;
}

/* Every symbol of the loader's, and those that later loaders want too. */
static void test_symbols(void **state)
{
    (void)state;
    static const char *const later[] = {"cuArrayCreate_v2",   "cuCtxGetCurrent",
                                        "cuDriverGetVersion", "cuStreamWaitEvent",
                                        "cuMemGetInfo_v2",    "cuDeviceGetUuid"};
    CudaFunctions *cuda = NULL;
    CuvidFunctions *cuvid = NULL;
    assert_int_equal(cuda_load_functions(&cuda, NULL), 0);
    assert_int_equal(cuvid_load_functions(&cuvid, NULL), 0);
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        assert_non_null(dlsym(cuda->lib, later[i]));
    assert_non_null(cuvid->cuvidGetDecoderCaps);
    cuda_free_functions(&cuda);
    cuvid_free_functions(&cuvid);
}

/* The signal that ends a child which does this to an address; 0: none. */
static int signal_of(volatile char *address, bool is_write)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* not the sanitizer's report */
        if (is_write)
            *address = 1;
        _exit(*address == 77);
    }
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static int part_memory(void)
{
    enum { BYTES = 1 << 20 };
    CUdeviceptr a, b;
    static char host[BYTES], back[BYTES];
    CHECK(open_device() == 0);
    CHECK(cu->cuMemAlloc(&a, BYTES) == 0 && cu->cuMemAlloc(&b, BYTES) == 0);
    CHECK(signal_of((char *)a, false) == SIGSEGV && signal_of((char *)b + 5, true) == SIGSEGV);
    CHECK(signal_of(host, true) == 0);
    for (int i = 0; i < BYTES; i++)
        host[i] = (char)(i * 7 + i / 251);
    CHECK(cu->cuMemcpyHtoD(a, host, BYTES) == 0);
    CHECK(cu->cuMemcpyDtoD(b, a, BYTES) == 0);
    CHECK(cu->cuMemcpyDtoH(back, b, BYTES) == 0 && memcmp(host, back, BYTES) == 0);
    /* One byte beyond, from beyond, and after it is gone. */
    CHECK(cu->cuMemcpyHtoD(a + 1, host, BYTES) == 1);
    CHECK(cu->cuMemcpyDtoH(back, b + BYTES, 1) == 1);
    CHECK(cu->cuMemcpyHtoD((CUdeviceptr)back, host, 1) == 1);
    CHECK(cu->cuMemFree(a) == 0 && cu->cuMemFree(a) == 1 && cu->cuMemFree(b + 1) == 1);
    CHECK(cu->cuMemcpyDtoH(back, a, 1) == 1);
    /* A rectangle whose last row ends with the allocation. */
    CUDA_MEMCPY2D r = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = host,
                       .srcPitch = 300,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = b + 512,
                       .dstPitch = 512,
                       .WidthInBytes = 300,
                       .Height = BYTES / 512 - 1};
    CHECK(cu->cuMemcpy2D(&r) == 0);
    r.Height++;
    CHECK(cu->cuMemcpy2D(&r) == 1);
    return close_device(); /* b leaks */
}

static void test_memory(void **state)
{
    (void)state;
    json_t *stats;
    assert_int_equal(simgpu_run("memory", NULL, &stats), 0);
    assert_int_equal(simgpu_number(stats, "counters", "htod_bytes"), (1 << 20) + 300 * 2047);
    assert_int_equal(simgpu_number(stats, "counters", "dtod_bytes"), 1 << 20);
    assert_int_equal(simgpu_number(stats, "counters", "dtoh_bytes"), 1 << 20);
    assert_int_equal(simgpu_number(stats, "calls", "cuMemFree_v2"), 3);
    assert_string_equal(simgpu_leaks(stats), "memory 1 ");
    json_decref(stats);
}

static int part_fork(void)
{
    int status;
    CHECK(open_device() == 0);
    pid_t pid = fork();
    if (pid == 0) {
        CUdeviceptr p;
        _exit(cu->cuMemAlloc(&p, 1) == 3 && cu->cuInit(0) == 3 ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    CHECK(status == 0);
    return close_device();
}

static void test_fork(void **state)
{
    (void)state;
    assert_int_equal(simgpu_run("fork", NULL, NULL), 0);
}

/* Takes 60 of 100 MiB beyond the context's own, says so, and waits to be killed. */
static int part_hold(void)
{
    CUdeviceptr p;
    CHECK(open_device() == 0);
    CHECK(cu->cuMemAlloc(&p, 60 << 20) == 0);
    FILE *ready = fopen(getenv("READY"), "w");
    CHECK(ready && fclose(ready) == 0);
    for (;;)
        pause();
}

static int part_want(void)
{
    CUdeviceptr p;
    int rc = open_device();
    if (rc)
        return rc;
    rc = (int)cu->cuMemAlloc(&p, 60 << 20);
    if (rc == 0)
        cu->cuMemFree(p);
    close_device();
    return rc;
}

/* Memory is one for all processes, and free again when its holder was killed. */
static void test_shared_memory(void **state)
{
    (void)state;
    char file[512], ready[512];
    snprintf(file, sizeof file, "SIMGPU_STATE=%s", scratch_file("state"));
    snprintf(ready, sizeof ready, "READY=%s", scratch_file("ready"));
    const char *settings[] = {file, ready, "SIMGPU_MEM_MIB=356", NULL};
    pid_t holder = simgpu_start("hold", settings);
    for (int i = 0; access(scratch_file("ready"), F_OK) < 0; i++) {
        assert_true(i < 2000);
        usleep(10000);
    }
    assert_int_equal(simgpu_run("want", settings, NULL), 2);
    assert_int_equal(simgpu_run("want", (const char *[]){"SIMGPU_MEM_MIB=356", NULL}, NULL), 0);
    kill(holder, SIGKILL);
    assert_int_equal(simgpu_wait(holder, NULL), 128 + SIGKILL);
    assert_int_equal(simgpu_run("want", settings, NULL), 0);
}

/* Three allocations and a free; the exit code is a digit for each: 0 fine, 1 failed. */
static int part_three(void)
{
    CUdeviceptr p[3] = {0};
    int digits = 0;
    if (open_device())
        return 9;
    for (int i = 0; i < 3; i++)
        digits = digits * 2 + (cu->cuMemAlloc(&p[i], 4096) != 0);
    digits = digits * 2 + (cu->cuMemFree(p[0]) != 0);
    return digits;
}

static void test_faults(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int code; /* bits: allocations 1, 2, 3, the free; 9: no device */
    } cases[] = {
        {"SIMGPU_FAULT=", 0x0},
        {"SIMGPU_FAULT=cuMemAlloc_v2@2=2", 0x4},
        {"SIMGPU_FAULT=cuMemAlloc_v2@2+=2", 0x6},
        {"SIMGPU_FAULT=cuMemAlloc_v2@1=2,cuMemAlloc_v2@3=999", 0xa},
        {"SIMGPU_FAULT=cuMemAlloc_v2@2=lost:700", 0x6},
        {"SIMGPU_FAULT=cuMemAlloc_v2@2=dead:999", 0x7},
        {"SIMGPU_FAULT=lost:999", 9},
        {"SIMGPU_FAULT=cuDeviceGet@1=101", 9},
        {"SIMGPU_DEVICES=0", 9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *settings[] = {cases[i].rule, NULL};
        int code = simgpu_run("three", settings, NULL);
        if (code != cases[i].code)
            fail_msg("%s: %#x, expected %#x", cases[i].rule, code, cases[i].code);
    }
}

/* call#N counts over all processes of a state: the second process meets the fault, no other. */
static void test_fault_of_all(void **state)
{
    (void)state;
    char file[512];
    snprintf(file, sizeof file, "SIMGPU_STATE=%s", scratch_file("counted"));
    const char *settings[] = {file, "SIMGPU_FAULT=cuMemAlloc_v2#5=2", NULL};
    assert_int_equal(simgpu_run("three", settings, NULL), 0x0);
    assert_int_equal(simgpu_run("three", settings, NULL), 0x4);
    assert_int_equal(simgpu_run("three", settings, NULL), 0x0);
}

static void test_hang(void **state)
{
    (void)state;
    pid_t pid = simgpu_start("three", (const char *[]){"SIMGPU_FAULT=cuMemAlloc_v2@2=hang", NULL});
    usleep(700000);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    kill(pid, SIGKILL);
    assert_int_equal(simgpu_wait(pid, NULL), 128 + SIGKILL);
}

static int part_model(void)
{
    char name[100];
    int major, minor, count;
    CHECK(open_device() == 0);
    CHECK(cu->cuDeviceGetCount(&count) == 0 && count == 2);
    CHECK(cu->cuDeviceGetName(name, sizeof name, 0) == 0 && strcmp(name, "Tesla T4") == 0);
    CHECK(cu->cuDeviceGetName(name, sizeof name, 1) == 0 && strcmp(name, "NVIDIA H200") == 0);
    CHECK(cu->cuDeviceGetName(name, sizeof name, 2) == 101);
    CHECK(cu->cuDeviceComputeCapability(&major, &minor, 0) == 0 && major == 7 && minor == 5);
    return close_device();
}

static void test_models(void **state)
{
    (void)state;
    const char *settings[] = {"SIMGPU_MODEL=T4,H200", "SIMGPU_DEVICES=2", NULL};
    json_t *stats;
    assert_int_equal(simgpu_run("model", settings, &stats), 0);
    assert_string_equal(simgpu_leaks(stats), "");
    json_decref(stats);
    assert_int_equal(simgpu_run("three", (const char *[]){"SIMGPU_MODEL=GTX", NULL}, NULL),
                     128 + SIGABRT);
}

static int load(const char *ptx)
{
    CUmodule module;
    CUresult rc = cu->cuModuleLoadData(&module, ptx);
    CUfunction f;
    if (rc)
        return (int)rc;
    CHECK(cu->cuModuleGetFunction(&f, module, "Subsample_Nearest_nv12_nv12") == 500);
    CHECK(cu->cuModuleGetFunction(&f, module, "yadif_uchar") == 0);
    return (int)cu->cuModuleUnload(module);
}

/* A kernel is there only when the module has it; a module only when driver and device can run it.
 */
static int part_modules(void)
{
    CHECK(open_device() == 0);
    CHECK(load(".version 6.0\n.target sm_75\n.visible .entry yadif_uchar(\n.param .u64 a\n)") == 0);
    CHECK(load(".version 6.0\n.target sm_90\n") == 209);
    CHECK(load(".version 99.0\n.target sm_50\n") == 222);
    CHECK(load("hello") == 200);
    return close_device();
}

static void test_modules(void **state)
{
    (void)state;
    json_t *stats;
    assert_int_equal(simgpu_run("modules", NULL, &stats), 0);
    assert_string_equal(simgpu_leaks(stats), "");
    json_decref(stats);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_symbols), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_fork),    cmocka_unit_test(test_shared_memory),
        cmocka_unit_test(test_faults),  cmocka_unit_test(test_fault_of_all),
        cmocka_unit_test(test_hang),    cmocka_unit_test(test_models),
        cmocka_unit_test(test_modules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

static const struct simgpu_part parts[] = {
    {"memory", part_memory}, {"fork", part_fork},   {"hold", part_hold},       {"want", part_want},
    {"three", part_three},   {"model", part_model}, {"modules", part_modules}, {0},
};

int main(int argc, char **argv)
{
    return simgpu_main(argc, argv, parts, run_all);
}

#else
int main(int argc, char **argv)
{
    return simgpu_main(argc, argv, NULL, NULL);
}
#endif
