/*
 * libnvidia-ml.so.1: what the machine's GPUs are and how busy, out of the models, the engine clock
 * and the state that all processes share. Every function asks the fault rules by its own name;
 * `nvmlDeviceGetCount_v2@1+=999` is a container whose devices a daemon reload has taken away.
 *
 * SIMGPU_MIG=1        MIG is on, on models that have it
 * SIMGPU_MPS=PID      an MPS server with that process id serves the processes on the GPUs
 *
 * There is no model of the shader cores: nvmlDeviceGetUtilizationRates is always 0.
 */
#include "tests/simgpu/nvml.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/call.h"
#include "tests/simgpu/engine.h"
#include "tests/simgpu/memory.h"
#include "tests/simgpu/state.h"

enum { SAMPLING_US = 1000000 };

struct nvmlDevice_st {
    char unused;
};

static struct nvmlDevice_st handles[SIM_DEVICES_MAX];
static atomic_int users;

/* Begins each call; 0, or what it returns. */
static nvmlReturn_t enter(const char *function)
{
    CUresult code = sim_call(function, SIM_ASK);
    if (code)
        return (nvmlReturn_t)code;
    return users ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

struct device {
    int index;
    const struct sim_gpu *gpu;
};

/* The same for a call about a device, with what it is. */
static nvmlReturn_t enter_device(const char *function, nvmlDevice_t device, struct device *ret)
{
    nvmlReturn_t code = enter(function);
    if (code)
        return code;
    ret->index = (int)(device - handles);
    if (device < handles || ret->index >= sim_gpu_count())
        return NVML_ERROR_INVALID_ARGUMENT;
    ret->gpu = sim_gpu_get(ret->index);
    return NVML_SUCCESS;
}

static nvmlReturn_t answer(char *ret, unsigned room, const char *text)
{
    if (!ret)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(ret, text);
    return NVML_SUCCESS;
}

static nvmlReturn_t add_user(const char *function)
{
    CUresult code = sim_call(function, SIM_ASK);
    if (!code)
        users++;
    return (nvmlReturn_t)code;
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return add_user(__func__);
}

nvmlReturn_t nvmlInit_v2(void)
{
    return add_user(__func__);
}

nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t code = enter(__func__);
    if (!code)
        users--;
    return code;
}

const char *nvmlErrorString(nvmlReturn_t code)
{
    static const struct {
        nvmlReturn_t code;
        const char *text;
    } texts[] = {
        {NVML_SUCCESS, "Success"},
        {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
        {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
        {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
        {NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
        {NVML_ERROR_NOT_FOUND, "Not Found"},
        {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
        {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
        {NVML_ERROR_TIMEOUT, "Timeout"},
        {NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"},
        {NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
        {NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
        {NVML_ERROR_RESET_REQUIRED, "GPU requires restart"},
        {NVML_ERROR_LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].code == code)
            return texts[i].text;
    return "Unknown Error";
}

/* The oldest driver branch that speaks the NVENC API that the simulated one is set to. */
static const char *driver_version(void)
{
    static const struct {
        const char *api, *driver;
    } branches[] = {
        {"11.0", "455.28"},    {"11.1", "470.57.02"}, {"12.0", "520.56.06"},
        {"12.1", "530.41.03"}, {"12.2", "550.54.14"}, {"13.0", "570.133.20"},
    };
    const char *api = getenv("SIMGPU_NVENC_API");
    for (size_t i = 0; api && i < sizeof branches / sizeof branches[0]; i++)
        if (strcmp(branches[i].api, api) == 0)
            return branches[i].driver;
    return "570.133.20";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *ret, unsigned room)
{
    nvmlReturn_t code = enter(__func__);
    return code ? code : answer(ret, room, driver_version());
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *ret, unsigned room)
{
    char text[96];
    nvmlReturn_t code = enter(__func__);
    snprintf(text, sizeof text, "12.%s", driver_version());
    return code ? code : answer(ret, room, text);
}

static nvmlReturn_t give_cuda_version(const char *function, int *ret)
{
    nvmlReturn_t code = enter(function);
    if (!code)
        *ret = sim_driver_version();
    return code;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *ret)
{
    return give_cuda_version(__func__, ret);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *ret)
{
    return give_cuda_version(__func__, ret);
}

static unsigned mps_server(void)
{
    const char *pid = getenv("SIMGPU_MPS");
    return pid ? (unsigned)strtoul(pid, NULL, 10) : 0;
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *ret, unsigned room)
{
    char path[64], name[256] = "";
    nvmlReturn_t code = enter(__func__);
    if (code)
        return code;
    if (pid && pid == mps_server())
        return answer(ret, room, "nvidia-cuda-mps-server");
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return NVML_ERROR_NOT_FOUND;
    name[fread(name, 1, sizeof name - 1, f)] = 0; /* its first word: the rest is behind a NUL */
    fclose(f);
    return answer(ret, room, name);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *ret)
{
    nvmlReturn_t code = enter(__func__);
    if (!code)
        *ret = (unsigned)sim_gpu_count();
    return code;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *ret)
{
    nvmlReturn_t code = enter(__func__);
    if (code)
        return code;
    if (index >= (unsigned)sim_gpu_count())
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret = &handles[index];
    return NVML_SUCCESS;
}

static void uuid_text(int device, char ret[NVML_DEVICE_UUID_V2_BUFFER_SIZE])
{
    uint8_t b[16];
    sim_gpu_uuid(device, b);
    int at = sprintf(ret, "GPU-");
    for (int i = 0; i < 16; i++)
        at += sprintf(ret + at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", b[i]);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *ret)
{
    char own[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    nvmlReturn_t code = enter(__func__);
    if (code)
        return code;
    for (int i = 0; i < sim_gpu_count(); i++) {
        uuid_text(i, own);
        if (strcmp(own, uuid) == 0) {
            *ret = &handles[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *ret)
{
    char own[32];
    nvmlReturn_t code = enter(__func__);
    if (code)
        return code;
    for (int i = 0; i < sim_gpu_count(); i++) {
        sim_gpu_pci_bus_id(i, own);
        if (strcasecmp(own, bus_id) == 0 || strcasecmp(own + 4, bus_id) == 0) {
            *ret = &handles[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t give_index(const char *function, nvmlDevice_t device, unsigned *ret)
{
    struct device d;
    nvmlReturn_t code = enter_device(function, device, &d);
    if (!code)
        *ret = (unsigned)d.index;
    return code;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *ret)
{
    return give_index(__func__, device, ret);
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *ret)
{
    return give_index(__func__, device, ret);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *ret, unsigned room)
{
    struct device d;
    nvmlReturn_t code = enter_device(__func__, device, &d);
    return code ? code : answer(ret, room, d.gpu->name);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *ret, unsigned room)
{
    struct device d;
    char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    nvmlReturn_t code = enter_device(__func__, device, &d);
    if (code)
        return code;
    uuid_text(d.index, text);
    return answer(ret, room, text);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *ret)
{
    struct device d;
    nvmlReturn_t code = enter_device(__func__, device, &d);
    if (code)
        return code;
    *ret = (nvmlPciInfo_t){.pciDeviceId = d.gpu->pci_device_id};
    sim_gpu_pci_bus_id(d.index, ret->busId);
    snprintf(ret->busIdLegacy, sizeof ret->busIdLegacy, "%.12s", ret->busId + 4);
    sscanf(ret->busId, "%x:%x:%x", &ret->domain, &ret->bus, &ret->device);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *ret_major, int *ret_minor)
{
    struct device d;
    nvmlReturn_t code = enter_device(__func__, device, &d);
    if (code)
        return code;
    *ret_major = d.gpu->cc_major;
    *ret_minor = d.gpu->cc_minor;
    return NVML_SUCCESS;
}

/* MIG is on the big chips of Ampere and later, which have no graphics, and on the RTX PRO 6000. */
static bool has_mig(const struct sim_gpu *gpu)
{
    return gpu->cc_minor == 0 && gpu->cc_major >= 8;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *ret_now, unsigned *ret_pending)
{
    struct device d;
    const char *mig = getenv("SIMGPU_MIG");
    nvmlReturn_t code = enter_device(__func__, device, &d);
    if (code)
        return code;
    if (!has_mig(d.gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    *ret_now = mig && strcmp(mig, "1") == 0 ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
    *ret_pending = *ret_now;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *ret)
{
    struct device d;
    int64_t used, total;
    nvmlReturn_t code = enter_device(__func__, device, &d);
    if (code)
        return code;
    sim_mem_usage(d.index, &used, &total);
    *ret = (nvmlMemory_t){.total = (unsigned long long)total,
                          .free = (unsigned long long)(total - used),
                          .used = (unsigned long long)used};
    return NVML_SUCCESS;
}

/* The video clock follows the graphics clock at about 0.8 on all of the models. */
static nvmlReturn_t give_clock(const char *function, nvmlDevice_t device, nvmlClockType_t type,
                               unsigned *ret_mhz)
{
    struct device d;
    nvmlReturn_t code = enter_device(function, device, &d);
    if (code)
        return code;
    unsigned mhz = (unsigned)d.gpu->clock_khz / 1000;
    switch (type) {
    case NVML_CLOCK_GRAPHICS:
    case NVML_CLOCK_SM:
        *ret_mhz = mhz;
        return NVML_SUCCESS;
    case NVML_CLOCK_VIDEO:
        *ret_mhz = mhz * 8 / 10;
        return NVML_SUCCESS;
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *ret_mhz)
{
    return give_clock(__func__, device, type, ret_mhz);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *ret_mhz)
{
    return give_clock(__func__, device, type, ret_mhz);
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *ret)
{
    struct device d;
    nvmlReturn_t code = enter_device(__func__, device, &d);
    if (!code)
        *ret = (nvmlUtilization_t){0, 0};
    return code;
}

static nvmlReturn_t give_utilisation(const char *function, nvmlDevice_t device,
                                     enum sim_engine_kind engine, unsigned *ret, unsigned *ret_us)
{
    struct device d;
    nvmlReturn_t code = enter_device(function, device, &d);
    if (code)
        return code;
    *ret = (unsigned)sim_engine_utilisation(engine, d.index);
    *ret_us = SAMPLING_US;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned *ret, unsigned *ret_us)
{
    return give_utilisation(__func__, device, SIM_NVENC, ret, ret_us);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned *ret, unsigned *ret_us)
{
    return give_utilisation(__func__, device, SIM_NVDEC, ret, ret_us);
}

static nvmlEncoderSessionInfo_t session_info(const struct sim_process *p,
                                             const struct sim_encoder *e)
{
    int64_t life_ns = e->last_ns - e->opened_ns;
    return (nvmlEncoderSessionInfo_t){
        .sessionId = (unsigned)e->id,
        .pid = (unsigned)p->pid,
        .codecType = (nvmlEncoderType_t)e->codec,
        .hResolution = (unsigned)e->width,
        .vResolution = (unsigned)e->height,
        .averageFps = life_ns > 0 ? (unsigned)(e->frames * 1000000000LL / life_ns) : 0,
        .averageLatency = e->frames ? (unsigned)(e->latency_ns / e->frames / 1000) : 0,
    };
}

enum { SESSIONS_MAX = SIM_PROCESSES_MAX * SIM_ENCODERS_MAX };

static unsigned list_sessions(int device, nvmlEncoderSessionInfo_t ret[SESSIONS_MAX])
{
    unsigned n = 0;
    struct sim_state *s = sim_state_lock();
    for (int i = 0; i < SIM_PROCESSES_MAX; i++)
        for (int k = 0; k < SIM_ENCODERS_MAX; k++) {
            const struct sim_encoder *e = &s->processes[i].encoders[k];
            if (e->id && e->device == device)
                ret[n++] = session_info(&s->processes[i], e);
        }
    sim_state_unlock();
    return n;
}

/* NVML's way to give a list: *count is the room and becomes the number there are. */
static nvmlReturn_t give_list(const void *all, unsigned n, size_t each, unsigned *count, void *ret)
{
    bool fits = n <= (ret ? *count : 0);
    *count = n;
    if (fits && n)
        memcpy(ret, all, n * each);
    return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned *ret_sessions,
                                       unsigned *ret_fps, unsigned *ret_latency_us)
{
    struct device d;
    nvmlEncoderSessionInfo_t all[SESSIONS_MAX];
    nvmlReturn_t code = enter_device(__func__, device, &d);
    if (code)
        return code;
    unsigned n = list_sessions(d.index, all), fps = 0, latency = 0;
    for (unsigned i = 0; i < n; i++) {
        fps += all[i].averageFps;
        latency += all[i].averageLatency;
    }
    *ret_sessions = n;
    *ret_fps = n ? fps / n : 0;
    *ret_latency_us = n ? latency / n : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned *count,
                                          nvmlEncoderSessionInfo_t *ret)
{
    struct device d;
    nvmlEncoderSessionInfo_t all[SESSIONS_MAX];
    nvmlReturn_t code = enter_device(__func__, device, &d);
    if (code)
        return code;
    unsigned n = list_sessions(d.index, all);
    return give_list(all, n, sizeof all[0], count, ret);
}

/* Processes that hold memory of the device. */
static unsigned list_processes(int device, nvmlProcessInfo_t ret[SIM_PROCESSES_MAX])
{
    unsigned n = 0;
    struct sim_state *s = sim_state_lock();
    for (int i = 0; i < SIM_PROCESSES_MAX; i++) {
        const struct sim_process *p = &s->processes[i];
        if (p->pid && p->share[device].memory_bytes)
            ret[n++] = (nvmlProcessInfo_t){
                (unsigned)p->pid, (unsigned long long)p->share[device].memory_bytes, ~0U, ~0U};
    }
    sim_state_unlock();
    return n;
}

/* Under MPS the server is the process that computes, and those that it serves are its own list. */
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                     nvmlProcessInfo_t *ret)
{
    struct device d;
    nvmlProcessInfo_t all[SIM_PROCESSES_MAX];
    nvmlReturn_t code = enter_device(__func__, device, &d);
    if (code)
        return code;
    unsigned n = list_processes(d.index, all);
    if (mps_server()) {
        n = 1;
        all[0] = (nvmlProcessInfo_t){mps_server(), 0, ~0U, ~0U};
    }
    return give_list(all, n, sizeof all[0], count, ret);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                        nvmlProcessInfo_t *ret)
{
    struct device d;
    nvmlProcessInfo_t all[SIM_PROCESSES_MAX];
    nvmlReturn_t code = enter_device(__func__, device, &d);
    if (code)
        return code;
    unsigned n = mps_server() ? list_processes(d.index, all) : 0;
    return give_list(all, n, sizeof all[0], count, ret);
}
