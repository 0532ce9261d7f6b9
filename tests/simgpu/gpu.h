/*
 * The GPU models that the simulator can be: what is on the card, and what is not.
 *
 * Engine counts, memory, compute capability and codecs are those of the real cards (NVIDIA's video
 * encode and decode support matrix); pixel rates are a model of the right order, nothing measured.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { SIM_DEVICES_MAX = 8, SIM_ENGINES_MAX = 8 };

enum sim_engine_kind { SIM_NVENC, SIM_NVDEC, SIM_ENGINE_KINDS };

/* Bits of what an engine can do; without suffix: 8 bit 4:2:0. */
enum sim_codec {
    SIM_MPEG1 = 1 << 0,
    SIM_MPEG2 = 1 << 1,
    SIM_MPEG4 = 1 << 2,
    SIM_VC1 = 1 << 3,
    SIM_H264 = 1 << 4,
    SIM_H264_10 = 1 << 5,
    SIM_HEVC = 1 << 6,
    SIM_HEVC_10 = 1 << 7,
    SIM_HEVC_12 = 1 << 8,
    SIM_VP8 = 1 << 9,
    SIM_VP9 = 1 << 10,
    SIM_VP9_10 = 1 << 11,
    SIM_VP9_12 = 1 << 12,
    SIM_AV1 = 1 << 13,
    SIM_AV1_10 = 1 << 14,
    SIM_JPEG = 1 << 15,
    SIM_422 = 1 << 16, /* 4:2:2 of H.264 and HEVC */
    SIM_444 = 1 << 17, /* 4:4:4 of HEVC (decode), of H.264 and HEVC (encode) */
};

struct sim_engines {
    int count;       /* 0: the part is not on the card */
    double mpps;     /* of one engine, 10^6 pixels per second; 0: takes no time */
    uint32_t codecs; /* of enum sim_codec */
};

struct sim_gpu {
    const char *key;  /* as in SIMGPU_MODEL: "L4" */
    const char *name; /* as the driver says it: "NVIDIA L4" */
    int cc_major, cc_minor;
    int sm_count, clock_khz;
    int64_t memory_mib;
    uint32_t pci_device_id; /* device << 16 | vendor, as NVML has it */
    struct sim_engines engines[SIM_ENGINE_KINDS];
    int max_sessions; /* NVENC sessions at once, 0: no limit but memory */
};

/* Number of devices (SIMGPU_DEVICES, 1 unless set, 0 is allowed). */
int sim_gpu_count(void);

/* Model of a device with what the environment changes (SIMGPU_MODEL, a comma list of which device i
 * is entry i modulo its length; SIMGPU_MEM_MIB, SIMGPU_MAX_SESSIONS, SIMGPU_NVENC_ENGINES,
 * SIMGPU_NVENC_MPPS, SIMGPU_NVDEC_ENGINES, SIMGPU_NVDEC_MPPS). NULL: no such device. An unknown
 * model ends the process with a message. */
const struct sim_gpu *sim_gpu_get(int device);

/* "GPU-5e1d0000-0000-0000-0000-00000000000N", and "00000000:0N:00.0". */
void sim_gpu_uuid(int device, uint8_t ret_bytes[16]);
void sim_gpu_pci_bus_id(int device, char ret[32]);

/* Version of the driver's CUDA API, as cuDriverGetVersion has it: 12020. */
int sim_driver_version(void);
