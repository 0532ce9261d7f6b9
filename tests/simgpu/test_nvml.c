/* What NVML says of the simulated machine, to a client that finds it by dlopen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "tests/simgpu/nvml.h"
#include "tests/support/nvenc_clip.h"
#include "tests/support/simgpu.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* --- in the child ---------------------------------------------------------------------------- */

static void *lib;

/* The function of that name, of the type that nvml.h declares. */
#define NVML(name) ((__typeof__(&name))find(#name))

static void *find(const char *name)
{
    if (!lib)
        lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    nvenc_check(lib, "%s", dlerror());
    void *symbol = dlsym(lib, name);
    nvenc_check(symbol, "%s", name);
    return symbol;
}

#define MUST(call)                                                     \
    do {                                                               \
        nvmlReturn_t code = (call);                                    \
        nvenc_check(code == NVML_SUCCESS, "%s: %d", #call, (int)code); \
    } while (0)

static nvmlDevice_t open_device(unsigned index)
{
    nvmlDevice_t device;
    MUST(NVML(nvmlInit_v2)());
    MUST(NVML(nvmlDeviceGetHandleByIndex_v2)(index, &device));
    return device;
}

/* SIMGPU_MODEL=L4,H200, two devices. */
static int inventory(void)
{
    unsigned count, now, pending, mhz;
    int major, minor, cuda;
    char text[96], short_text[4];
    nvmlPciInfo_t pci;
    nvmlMemory_t memory;
    nvmlDevice_t by_uuid, by_bus;
    nvenc_check(NVML(nvmlDeviceGetCount_v2)(&count) == NVML_ERROR_UNINITIALIZED);
    nvmlDevice_t l4 = open_device(0), h200 = open_device(1);
    nvenc_check(NVML(nvmlDeviceGetHandleByIndex_v2)(2, &by_bus) == NVML_ERROR_INVALID_ARGUMENT);
    MUST(NVML(nvmlDeviceGetCount_v2)(&count));
    nvenc_check(count == 2);
    MUST(NVML(nvmlDeviceGetName)(l4, text, sizeof text));
    nvenc_check(strcmp(text, "NVIDIA L4") == 0, "%s", text);
    nvenc_check(NVML(nvmlDeviceGetName)(l4, short_text, sizeof short_text) ==
                NVML_ERROR_INSUFFICIENT_SIZE);
    MUST(NVML(nvmlDeviceGetUUID)(h200, text, sizeof text));
    nvenc_check(strlen(text) == 40 && strncmp(text, "GPU-", 4) == 0, "%s", text);
    MUST(NVML(nvmlDeviceGetHandleByUUID)(text, &by_uuid));
    MUST(NVML(nvmlDeviceGetPciInfo_v3)(h200, &pci));
    MUST(NVML(nvmlDeviceGetHandleByPciBusId_v2)(pci.busId, &by_bus));
    nvenc_check(by_uuid == h200 && by_bus == h200 && (pci.pciDeviceId & 0xffff) == 0x10de);
    MUST(NVML(nvmlDeviceGetCudaComputeCapability)(l4, &major, &minor));
    nvenc_check(major == 8 && minor == 9);
    MUST(NVML(nvmlDeviceGetMemoryInfo)(l4, &memory));
    nvenc_check(memory.total > 22ULL << 30 && memory.free + memory.used == memory.total);
    MUST(NVML(nvmlDeviceGetClockInfo)(l4, NVML_CLOCK_VIDEO, &mhz));
    nvenc_check(mhz > 500);
    nvenc_check(NVML(nvmlDeviceGetMigMode)(l4, &now, &pending) == NVML_ERROR_NOT_SUPPORTED);
    MUST(NVML(nvmlDeviceGetMigMode)(h200, &now, &pending));
    nvenc_check(now == NVML_DEVICE_MIG_ENABLE);
    MUST(NVML(nvmlSystemGetDriverVersion)(text, sizeof text));
    nvenc_check(strcmp(text, "470.57.02") == 0, "%s", text);
    MUST(NVML(nvmlSystemGetCudaDriverVersion_v2)(&cuda));
    nvenc_check(cuda >= 11000);
    return 0;
}

/* While sessions are open NVML shows them, their memory and their process; afterwards nothing. */
static int sessions(void)
{
    struct nvenc_clip c[2];
    struct nvenc_clip_options o[] = {
        {.encoder = "h264_nvenc", .options = "bf=0", .format = AV_PIX_FMT_NV12},
        {.encoder = "hevc_nvenc",
         .options = "bf=0",
         .format = AV_PIX_FMT_NV12,
         .width = 192,
         .height = 108},
    };
    nvmlDevice_t device = open_device(0);
    nvmlEncoderSessionInfo_t info[4];
    nvmlProcessInfo_t process[4];
    nvmlMemory_t memory;
    unsigned n = 0, fps, latency;
    nvenc_check(NVML(nvmlDeviceGetEncoderSessions)(device, &n, NULL) == NVML_SUCCESS && n == 0);
    for (int i = 0; i < 2; i++) {
        nvenc_clip_open(&c[i], &o[i]);
        nvenc_clip_encode(&c[i], 30);
    }
    MUST(NVML(nvmlDeviceGetEncoderStats)(device, &n, &fps, &latency));
    nvenc_check(n == 2 && fps > 0 && latency > 0, "%u sessions %u fps %u us", n, fps, latency);
    n = 1;
    nvenc_check(NVML(nvmlDeviceGetEncoderSessions)(device, &n, info) ==
                    NVML_ERROR_INSUFFICIENT_SIZE &&
                n == 2);
    MUST(NVML(nvmlDeviceGetEncoderSessions)(device, &n, info));
    nvenc_check(info[0].pid == (unsigned)getpid() && info[0].hResolution == 320 &&
                info[0].codecType == NVML_ENCODER_QUERY_H264);
    nvenc_check(info[1].hResolution == 192 && info[1].vResolution == 108 &&
                info[1].codecType == NVML_ENCODER_QUERY_HEVC &&
                info[1].sessionId != info[0].sessionId);
    MUST(NVML(nvmlDeviceGetMemoryInfo)(device, &memory));
    nvenc_check(memory.used > 700ULL << 20, "%llu bytes", memory.used);
    n = COUNT(process);
    MUST(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &n, process));
    nvenc_check(n == 1 && process[0].pid == (unsigned)getpid() &&
                process[0].usedGpuMemory == memory.used);
    for (int i = 0; i < 2; i++)
        nvenc_clip_close(&c[i]);
    n = 0;
    MUST(NVML(nvmlDeviceGetEncoderSessions)(device, &n, NULL));
    MUST(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &n, NULL));
    MUST(NVML(nvmlDeviceGetMemoryInfo)(device, &memory));
    nvenc_check(n == 0 && memory.used == 0, "%u processes, %llu bytes", n, memory.used);
    return 0;
}

/* SIMGPU_MPS=4321 */
static int mps(void)
{
    struct nvenc_clip c;
    struct nvenc_clip_options o = {.encoder = "h264_nvenc", .format = AV_PIX_FMT_NV12};
    nvmlDevice_t device = open_device(0);
    nvmlProcessInfo_t process[4];
    char name[64];
    unsigned n = COUNT(process);
    nvenc_clip_open(&c, &o);
    MUST(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &n, process));
    nvenc_check(n == 1 && process[0].pid == 4321);
    MUST(NVML(nvmlSystemGetProcessName)(process[0].pid, name, sizeof name));
    nvenc_check(strcmp(name, "nvidia-cuda-mps-server") == 0, "%s", name);
    n = COUNT(process);
    MUST(NVML(nvmlDeviceGetMPSComputeRunningProcesses_v3)(device, &n, process));
    nvenc_check(n == 1 && process[0].pid == (unsigned)getpid());
    MUST(NVML(nvmlSystemGetProcessName)(process[0].pid, name, sizeof name));
    nvenc_check(strcmp(name, "mps") == 0, "%s", name);
    nvenc_clip_close(&c);
    return 0;
}

/* SIMGPU_FAULT=nvmlDeviceGetCount_v2@2+=999: what a container sees after a daemon reload. */
static int unknown_error(void)
{
    unsigned n;
    MUST(NVML(nvmlInit_v2)());
    MUST(NVML(nvmlDeviceGetCount_v2)(&n));
    for (int i = 0; i < 3; i++)
        nvenc_check(NVML(nvmlDeviceGetCount_v2)(&n) == NVML_ERROR_UNKNOWN);
    nvenc_check(strcmp(NVML(nvmlErrorString)(NVML_ERROR_UNKNOWN), "Unknown Error") == 0);
    MUST(NVML(nvmlShutdown)());
    nvenc_check(NVML(nvmlShutdown)() == NVML_ERROR_UNINITIALIZED);
    return 0;
}

static const struct simgpu_part parts[] = {
    {"inventory", inventory},
    {"sessions", sessions},
    {"mps", mps},
    {"unknown_error", unknown_error},
    {0},
};

/* --- in the test ----------------------------------------------------------------------------- */

static void need(const char *encoder)
{
    if (nvenc_clip_can(encoder))
        return;
    print_message("the simulated NVENC or libav's %s is not here\n", encoder);
    skip();
}

static void must(const char *part, const char *const settings[])
{
    assert_int_equal(simgpu_run(part, settings, NULL), 0);
}

static void machine_is_as_modelled(void **state)
{
    (void)state;
    must("inventory", (const char *[]){"SIMGPU_MODEL=L4,H200", "SIMGPU_DEVICES=2", "SIMGPU_MIG=1",
                                       "SIMGPU_NVENC_API=11.1", NULL});
}

static void sessions_are_shown(void **state)
{
    (void)state;
    need("h264_nvenc");
    must("sessions", NULL);
}

static void mps_server_is_shown(void **state)
{
    (void)state;
    need("h264_nvenc");
    must("mps", (const char *[]){"SIMGPU_MPS=4321", NULL});
}

static void devices_can_vanish(void **state)
{
    (void)state;
    must("unknown_error", (const char *[]){"SIMGPU_FAULT=nvmlDeviceGetCount_v2@2+=999", NULL});
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_is_as_modelled),
        cmocka_unit_test(sessions_are_shown),
        cmocka_unit_test(mps_server_is_shown),
        cmocka_unit_test(devices_can_vanish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return simgpu_main(argc, argv, parts, run_all);
}
