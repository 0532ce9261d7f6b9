#include "worker/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"

/* NVML's interface is fixed by name, number and layout; these are as in NVIDIA's nvml.h. */
enum {
    SUCCESS = 0,
    NOT_SUPPORTED = 3,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    GPU_IS_LOST = 15,
    RESET_REQUIRED = 16,
    OPERATING_SYSTEM = 17,
    VERSION_MISMATCH = 18,
    UNKNOWN = 999,
};

struct memory {
    unsigned long long total, free, used;
};

struct functions {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_text)(int code);
    int (*driver_version)(char *ret, unsigned room);
    int (*cuda_version)(int *ret);
    int (*count)(unsigned *ret);
    int (*by_index)(unsigned index, struct nvml_device **ret);
    int (*by_bus_id)(const char *bus_id, struct nvml_device **ret);
    int (*name)(struct nvml_device *device, char *ret, unsigned room);
    int (*uuid)(struct nvml_device *device, char *ret, unsigned room);
    int (*memory)(struct nvml_device *device, struct memory *ret);
    int (*mig)(struct nvml_device *device, unsigned *ret_now, unsigned *ret_pending);
    int (*mps_processes)(struct nvml_device *device, unsigned *n, void *ret);
    int (*encoder_load)(struct nvml_device *device, unsigned *ret_percent, unsigned *ret_us);
    int (*decoder_load)(struct nvml_device *device, unsigned *ret_percent, unsigned *ret_us);
    int (*encoder_stats)(struct nvml_device *device, unsigned *ret_sessions, unsigned *ret_fps,
                         unsigned *ret_latency_us);
};

static const struct {
    const char *name;
    size_t offset;
    bool is_optional; /* younger than the drivers we can work with */
} symbols[] = {
    {"nvmlInit_v2", offsetof(struct functions, init), false},
    {"nvmlShutdown", offsetof(struct functions, shutdown), false},
    {"nvmlErrorString", offsetof(struct functions, error_text), false},
    {"nvmlSystemGetDriverVersion", offsetof(struct functions, driver_version), false},
    {"nvmlSystemGetCudaDriverVersion_v2", offsetof(struct functions, cuda_version), true},
    {"nvmlDeviceGetCount_v2", offsetof(struct functions, count), false},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct functions, by_index), false},
    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct functions, by_bus_id), false},
    {"nvmlDeviceGetName", offsetof(struct functions, name), false},
    {"nvmlDeviceGetUUID", offsetof(struct functions, uuid), false},
    {"nvmlDeviceGetMemoryInfo", offsetof(struct functions, memory), false},
    {"nvmlDeviceGetMigMode", offsetof(struct functions, mig), true},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v3", offsetof(struct functions, mps_processes), true},
    {"nvmlDeviceGetEncoderUtilization", offsetof(struct functions, encoder_load), false},
    {"nvmlDeviceGetDecoderUtilization", offsetof(struct functions, decoder_load), false},
    {"nvmlDeviceGetEncoderStats", offsetof(struct functions, encoder_stats), false},
};

struct nvml {
    void *library;
    struct functions f;
    bool is_initialised;
    char driver[80];
    int cuda;
};

/* What to do about those errors that have one usual cause. */
static const struct {
    int code;
    const char *hint;
} hints[] = {
    {DRIVER_NOT_LOADED, "the kernel module is not loaded: modprobe nvidia, or install the driver"},
    {GPU_IS_LOST, "the GPU has fallen off the bus: see dmesg for Xid errors, and reset or reboot"},
    {RESET_REQUIRED, "the GPU needs a reset: nvidia-smi --gpu-reset, or reboot"},
    {OPERATING_SYSTEM, "the operating system keeps the device away: see the cgroup's device rules"},
    {VERSION_MISMATCH,
     "the driver was updated under a running kernel module: unload the module, or reboot"},
    {UNKNOWN,
     "in a container this comes from lost device permissions, as after systemctl daemon-reload on "
     "the host: start the container again, and give it its devices by CDI or --device"},
};

/* code 0: 0. Else -ERR_DEVICE. */
static int check(const struct nvml *n, int code, const char *call, struct err *e)
{
    if (code == SUCCESS)
        return 0;
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (hints[i].code == code)
            return err_set(e, ERR_DEVICE, "NVML: %s: %s (%s)", call, n->f.error_text(code),
                           hints[i].hint);
    return err_set(e, ERR_DEVICE, "NVML: %s: %s", call, n->f.error_text(code));
}

static int load(struct nvml *n, struct err *e)
{
    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->library)
        return err_set(e, ERR_DEVICE, "NVML: %s", dlerror());
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *symbol = dlsym(n->library, symbols[i].name);
        if (!symbol && !symbols[i].is_optional)
            return err_set(e, ERR_DEVICE, "NVML: this driver has no %s: update it",
                           symbols[i].name);
        memcpy((char *)&n->f + symbols[i].offset, &symbol, sizeof symbol);
    }
    return 0;
}

int nvml_open(struct nvml **ret, struct err *e)
{
    cleanup(nvml_close) struct nvml *n = xcalloc(1, sizeof *n);
    int rc = load(n, e);
    if (rc == 0)
        rc = check(n, n->f.init(), "start", e);
    if (rc < 0)
        return rc;
    n->is_initialised = true;
    if (n->f.driver_version(n->driver, sizeof n->driver) != SUCCESS)
        n->driver[0] = 0;
    if (!n->f.cuda_version || n->f.cuda_version(&n->cuda) != SUCCESS)
        n->cuda = 0;
    *ret = take(n);
    return 0;
}

void nvml_close(struct nvml **pp)
{
    struct nvml *n = *pp;
    if (!n)
        return;
    if (n->is_initialised)
        n->f.shutdown();
    if (n->library)
        dlclose(n->library);
    free_ptr(pp);
}

const char *nvml_driver_version(const struct nvml *n)
{
    return n->driver;
}

int nvml_cuda_version(const struct nvml *n)
{
    return n->cuda;
}

int nvml_count(const struct nvml *n, int *ret, struct err *e)
{
    unsigned count = 0;
    int rc = check(n, n->f.count(&count), "count the GPUs", e);
    *ret = (int)count;
    return rc;
}

int nvml_get(const struct nvml *n, int index, struct nvml_device **ret, struct err *e)
{
    return check(n, n->f.by_index((unsigned)index, ret), "open a GPU", e);
}

int nvml_find(const struct nvml *n, const char *bus_id, struct nvml_device **ret, struct err *e)
{
    return check(n, n->f.by_bus_id(bus_id, ret), "find the GPU by its PCI address", e);
}

static enum nvml_mig read_mig(const struct nvml *n, struct nvml_device *device)
{
    unsigned now, pending;
    if (!n->f.mig || n->f.mig(device, &now, &pending) != SUCCESS)
        return NVML_MIG_NONE;
    return now ? NVML_MIG_ON : NVML_MIG_OFF;
}

/* Asked without room for the list, it says how long the list would be. */
static int count_mps_clients(const struct nvml *n, struct nvml_device *device)
{
    unsigned count = 0;
    int code = n->f.mps_processes ? n->f.mps_processes(device, &count, NULL) : NOT_SUPPORTED;
    return code == SUCCESS || code == INSUFFICIENT_SIZE ? (int)count : 0;
}

int nvml_read_facts(const struct nvml *n, struct nvml_device *device, struct nvml_facts *ret,
                    struct err *e)
{
    struct memory memory = {0};
    *ret = (struct nvml_facts){0};
    int rc = check(n, n->f.name(device, ret->model, sizeof ret->model), "name", e);
    if (rc == 0)
        rc = check(n, n->f.uuid(device, ret->uuid, sizeof ret->uuid), "UUID", e);
    if (rc == 0)
        rc = check(n, n->f.memory(device, &memory), "memory", e);
    if (rc < 0)
        return rc;
    ret->memory_bytes = (int64_t)memory.total;
    ret->mig = read_mig(n, device);
    ret->mps_clients = count_mps_clients(n, device);
    return 0;
}

/* A GPU without the engine, or one cut up by MIG, does not tell its load. */
static int read_number(const struct nvml *n, int code, const unsigned *value, const char *call,
                       int *ret, struct err *e)
{
    *ret = code == SUCCESS ? (int)*value : -1;
    return code == NOT_SUPPORTED ? 0 : check(n, code, call, e);
}

int nvml_read_load(const struct nvml *n, struct nvml_device *device, struct nvml_load *ret,
                   struct err *e)
{
    struct memory memory = {0};
    unsigned value = 0, period_us, fps, latency_us;
    *ret = (struct nvml_load){0};
    int rc = read_number(n, n->f.encoder_load(device, &value, &period_us), &value, "encoder load",
                         &ret->encoder_percent, e);
    if (rc == 0)
        rc = read_number(n, n->f.decoder_load(device, &value, &period_us), &value, "decoder load",
                         &ret->decoder_percent, e);
    if (rc == 0)
        rc = read_number(n, n->f.encoder_stats(device, &value, &fps, &latency_us), &value,
                         "encoder sessions", &ret->encoder_sessions, e);
    if (rc == 0)
        rc = check(n, n->f.memory(device, &memory), "memory", e);
    ret->memory_used_bytes = (int64_t)memory.used;
    return rc;
}
