/*
 * What a device can encode and decode, found by doing it (one frame) or by opening it, since
 * neither an encoder's name nor a table of models tells what this driver on this card in this
 * container will do. Thread: one.
 */
#pragma once
#include <stddef.h>

#include "pipelines/media/device.h"

const char *trial_ffmpeg_version(void); /* "7.1.5" */

enum { TRIALS_MAX = 32 };

struct trial {
    const char *codec; /* encoders: libav's name, "hevc_nvenc"; decoders: the codec, "hevc" */
    int bits;
    bool is_open;
    char reason[256]; /* why not */
};

struct trial_engines { /* of the GPU; 0: none, or the driver does not say */
    int nvenc, nvdec;
};

size_t trial_encoders(const struct device *device, struct trial ret[TRIALS_MAX]);
/* On a GPU by its driver alone; on the CPU by libavcodec. */
size_t trial_decoders(const struct device *device, struct trial ret[TRIALS_MAX],
                      struct trial_engines *ret_engines);

struct trial_driver {
    int nvenc_api, nvenc_api_needed; /* major * 16 + minor; nvenc_api 0: the library is not there */
    const char *driver_needed;       /* the oldest one with that API: "470.57.02" */
    int cuda_devices;                /* that this process may see */
};
/* ERR_DEVICE with the reason when CUDA does not start or sees no device; *ret is filled as far as
 * it goes. May hang with the driver. */
int trial_driver(struct trial_driver *ret, struct err *e);

/* "00000000:01:00.0", as NVML spells it; "8.9". Of a device that is a GPU. */
int trial_identity(const struct device *device, char ret_bus_id[32], char ret_compute[16],
                   struct err *e);
