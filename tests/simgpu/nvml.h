/*
 * The part of NVML that is simulated. No package has nvml.h; the API is public and its names,
 * values and layouts are fixed, so that these few declarations say it all. A client loads
 * libnvidia-ml.so.1 and finds the functions by name.
 */
#ifndef TESTS_SIMGPU_NVML_H
#define TESTS_SIMGPU_NVML_H

typedef struct nvmlDevice_st *nvmlDevice_t;

typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_LIBRARY_NOT_FOUND = 12,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_UNKNOWN = 999,
} nvmlReturn_t;

enum {
    NVML_DEVICE_NAME_V2_BUFFER_SIZE = 96,
    NVML_DEVICE_UUID_V2_BUFFER_SIZE = 96,
    NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE = 80,
    NVML_DEVICE_MIG_DISABLE = 0,
    NVML_DEVICE_MIG_ENABLE = 1,
};

typedef enum {
    NVML_CLOCK_GRAPHICS = 0,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEM = 2,
    NVML_CLOCK_VIDEO = 3,
} nvmlClockType_t;

typedef struct {
    unsigned long long total, free, used; /* bytes */
} nvmlMemory_t;

typedef struct {
    unsigned gpu, memory; /* per cent */
} nvmlUtilization_t;

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device;
    unsigned pciDeviceId, pciSubSystemId; /* device << 16 | vendor */
    char busId[32];
} nvmlPciInfo_t;

typedef struct { /* of the _v3 functions */
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId; /* all ones outside of MIG */
} nvmlProcessInfo_t;

typedef enum {
    NVML_ENCODER_QUERY_H264 = 0,
    NVML_ENCODER_QUERY_HEVC = 1,
    NVML_ENCODER_QUERY_AV1 = 2,
} nvmlEncoderType_t;

typedef struct {
    unsigned sessionId, pid, vgpuInstance;
    nvmlEncoderType_t codecType;
    unsigned hResolution, vResolution, averageFps, averageLatency; /* µs */
} nvmlEncoderSessionInfo_t;

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlInitWithFlags(unsigned flags);
nvmlReturn_t nvmlShutdown(void);
const char *nvmlErrorString(nvmlReturn_t code);
nvmlReturn_t nvmlSystemGetDriverVersion(char *ret, unsigned room);
nvmlReturn_t nvmlSystemGetNVMLVersion(char *ret, unsigned room);
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *ret);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *ret);
nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *ret, unsigned room);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *ret);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *ret);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *ret);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *ret);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *ret);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *ret, unsigned room);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *ret, unsigned room);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *ret);
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *ret);
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *ret_major,
                                                int *ret_minor);
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *ret_now, unsigned *ret_pending);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *ret);
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *ret_mhz);
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                       unsigned *ret_mhz);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *ret);
nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned *ret, unsigned *ret_us);
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned *ret, unsigned *ret_us);
nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned *ret_sessions,
                                       unsigned *ret_fps, unsigned *ret_latency_us);
nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned *count,
                                          nvmlEncoderSessionInfo_t *ret);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                     nvmlProcessInfo_t *ret);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                        nvmlProcessInfo_t *ret);

#endif
