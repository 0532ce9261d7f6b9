/* The driver and what surrounds it, without touching a GPU more than the driver itself does. */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/trial.h"
#include "worker/inspect_inside.h"
#include "worker/nvml.h"

static const struct {
    const char *name, *what;
} libraries[] = {
    {"libcuda.so.1", "CUDA"},
    {"libnvcuvid.so.1", "decoding"},
    {"libnvidia-encode.so.1", "encoding"},
    {"libnvidia-ml.so.1", "telling models and load"},
    {"libnvidia-ptxjitcompiler.so.1", "kernels"},
};
enum { LIBRARIES = sizeof libraries / sizeof libraries[0], CUDA = 0, NVCUVID, ENCODE, ML };

/* Errors of CUDA that have one usual cause. */
static const struct {
    const char *name, *hint;
} hints[] = {
    {"CUDA_ERROR_NO_DEVICE",
     "no GPU may be used: see CUDA_VISIBLE_DEVICES, and in a container NVIDIA_VISIBLE_DEVICES"},
    {"CUDA_ERROR_SYSTEM_NOT_READY", "on a machine with NVSwitch, start nvidia-fabricmanager"},
    {"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "libcuda.so.1 is not of the driver that is loaded: reboot, or take it out of the container"},
    {"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
     "a CUDA compatibility package stands before the driver's libcuda.so.1: remove it"},
    {"CUDA_ERROR_UNKNOWN",
     "often /dev/nvidia-uvm is missing (nvidia-modprobe -u), or a container has lost its devices"},
};

#define PROBLEM(s, ...) inspect_problem(&(s)->problems, &(s)->n_problems, __VA_ARGS__)

static void step(struct inspect_system *s, const char *name)
{
    inspect_step(&inspect_system_type, s, &s->step, name);
}

static void find_libraries(struct inspect_system *s)
{
    s->libraries = xcalloc(LIBRARIES, sizeof *s->libraries);
    for (size_t i = 0; i < LIBRARIES; i++) {
        struct inspect_library *l = &s->libraries[s->n_libraries++];
        l->name = xstrdup(libraries[i].name);
        l->is_there = dlopen(libraries[i].name, RTLD_LAZY | RTLD_LOCAL) != NULL;
        l->reason = l->is_there ? NULL : xstrdup(dlerror());
    }
}

static const char *container_kind(void)
{
    if (getenv("KUBERNETES_SERVICE_HOST"))
        return "Kubernetes";
    if (access("/run/.containerenv", F_OK) == 0)
        return "podman";
    return access("/.dockerenv", F_OK) == 0 ? "Docker" : NULL;
}

/* A driver whose video libraries are missing while CUDA is there: the container toolkit mounts them
 * only for the capability "video". */
static void judge_libraries(struct inspect_system *s)
{
    const char *capabilities = getenv("NVIDIA_DRIVER_CAPABILITIES");
    if (!s->libraries[CUDA].is_there)
        return;
    for (int i = NVCUVID; i <= ENCODE; i++)
        if (!s->libraries[i].is_there)
            PROBLEM(s,
                    "%s is not here, so that there is no %s on the GPU: in a container, set "
                    "NVIDIA_DRIVER_CAPABILITIES=compute,video,utility (it is %s); else install the "
                    "driver's package with it",
                    libraries[i].name, libraries[i].what, capabilities ? capabilities : "not set");
    if (!s->libraries[ML].is_there)
        PROBLEM(s,
                "%s is not here: models and load of GPUs cannot be told; in a container, "
                "NVIDIA_DRIVER_CAPABILITIES must have utility",
                libraries[ML].name);
}

static void ask_nvml(struct inspect_system *s)
{
    cleanup(nvml_close) struct nvml *nvml = NULL;
    struct err e = {0};
    if (!s->libraries[ML].is_there)
        return;
    int rc = nvml_open(&nvml, &e);
    if (rc == 0) {
        s->driver = xstrdup(nvml_driver_version(nvml));
        int cuda = nvml_cuda_version(nvml);
        s->cuda = cuda ? xasprintf("%d.%d", cuda / 1000, cuda % 1000 / 10) : NULL;
        rc = nvml_count(nvml, &s->gpus, &e);
    }
    for (int i = 0; rc == 0 && i < s->gpus; i++) {
        struct nvml_device *device;
        rc = nvml_get(nvml, i, &device, &e);
    }
    if (rc < 0)
        PROBLEM(s, "%s", e.msg);
}

static char *api_text(int api)
{
    return xasprintf("%d.%d", api >> 4, api & 15);
}

static void judge_cuda(struct inspect_system *s, const char *message)
{
    if (!s->libraries[CUDA].is_there) {
        PROBLEM(s, s->gpus ? "libcuda.so.1 is not here: in a container, NVIDIA_DRIVER_CAPABILITIES "
                             "must have compute,video"
                           : "there is no NVIDIA driver here: only the CPU can be used");
        return;
    }
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (strstr(message, hints[i].name)) {
            PROBLEM(s, "%s (%s)", message, hints[i].hint);
            return;
        }
    PROBLEM(s, "%s", message);
}

static void ask_driver(struct inspect_system *s)
{
    struct trial_driver d;
    struct err e = {0};
    int rc = trial_driver(&d, &e);
    s->nvenc_api = d.nvenc_api ? api_text(d.nvenc_api) : NULL;
    s->nvenc_api_needed = api_text(d.nvenc_api_needed);
    s->driver_needed = xstrdup(d.driver_needed);
    s->cuda_devices = d.cuda_devices;
    if (rc < 0)
        judge_cuda(s, e.msg);
    else if (!d.cuda_devices)
        judge_cuda(s, "CUDA: CUDA_ERROR_NO_DEVICE");
    else if (s->gpus > d.cuda_devices)
        PROBLEM(s, "%d of %d GPUs may be used here: see CUDA_VISIBLE_DEVICES", d.cuda_devices,
                s->gpus);
    if (d.nvenc_api && d.nvenc_api < d.nvenc_api_needed)
        PROBLEM(s,
                "the driver is too old to encode: its NVENC API is %s and %s is needed; update it "
                "to %s or newer",
                s->nvenc_api, s->nvenc_api_needed, s->driver_needed);
}

/* MPS lets processes share a GPU's shader cores at the same time. Its control daemon listens on a
 * socket in a directory that all of its clients must name alike. */
static void find_mps(struct inspect_system *s)
{
    const char *dir = getenv("CUDA_MPS_PIPE_DIRECTORY");
    dir = dir && *dir ? dir : "/tmp/nvidia-mps";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n = snprintf(address.sun_path, sizeof address.sun_path, "%s/control", dir);
    if (n < 0 || (size_t)n >= sizeof address.sun_path || access(address.sun_path, F_OK) < 0) {
        s->mps = xasprintf("off (no control daemon in %s)", dir);
        return;
    }
    cleanup(close_fd) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0 && errno == ECONNREFUSED) {
        s->mps = xasprintf("off (the control daemon of %s is dead)", dir);
        PROBLEM(s,
                "%s is left from an MPS control daemon that is dead: start nvidia-cuda-mps-control "
                "-d, or remove the directory",
                dir);
        return;
    }
    s->mps = xasprintf("on (control daemon in %s)", dir);
}

void inspect_the_system(void)
{
    struct inspect_system *s = xcalloc(1, sizeof *s);
    s->container = xstrdup(container_kind());
    step(s, "look for MPS");
    find_mps(s);
    step(s, "load the driver's libraries");
    find_libraries(s);
    judge_libraries(s);
    step(s, "start NVML");
    ask_nvml(s);
    step(s, "start CUDA");
    ask_driver(s);
    step(s, NULL);
    bind_free(&inspect_system_type, &s);
}
