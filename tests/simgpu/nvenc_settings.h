/*
 * What an encoder is asked to do, read from the driver API's parameters into words of our own, so
 * that the coders know nothing of that API and of its versions.
 */
#ifndef TESTS_SIMGPU_NVENC_SETTINGS_H
#define TESTS_SIMGPU_NVENC_SETTINGS_H

#include <ffnvcodec/nvEncodeAPI.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/simgpu/nvenc_codec.h"

enum nvenc_profile {
    NVENC_PROFILE_AUTO,
    NVENC_PROFILE_BASELINE,
    NVENC_PROFILE_MAIN,
    NVENC_PROFILE_HIGH,
    NVENC_PROFILE_MAIN10,
};

enum nvenc_rate {
    NVENC_RATE_QP,      /* qp[] */
    NVENC_RATE_QUALITY, /* quality, and max_bps where there is one */
    NVENC_RATE_VBR,     /* average_bps and max_bps */
    NVENC_RATE_CBR,     /* average_bps */
};

struct nvenc_settings {
    enum nvenc_codec codec;
    int preset; /* 1..7 */
    int width, height, bit_depth;
    int sar_num, sar_den; /* 0: not known */
    int fps_num, fps_den;
    enum nvenc_profile profile;
    int level, tier; /* as the codec's headers have them; level 0: choose */

    int64_t gop_length; /* frames from IDR to IDR, 0: no end */
    int interval_p;     /* frames from anchor to anchor: B-frames + 1 */
    bool is_b_reference;
    int lookahead;

    enum nvenc_rate rate;
    struct {
        int i, p, b;
    } qp;
    int qp_min, qp_max; /* -1: none */
    double quality;
    int64_t average_bps, max_bps, vbv_bits; /* 0: none */

    int slices;
    bool is_cavlc, has_aud;
    bool repeats_headers; /* in band with each IDR; else only in nvEncGetSequenceParams */

    struct {
        bool is_present, has_description;
        int format, is_full, primaries, transfer, matrix;
    } colour;
};

/* NV_ENC_SUCCESS, or the status that the driver gives with the reason in ret_why. */
NVENCSTATUS nvenc_settings_read(const NV_ENC_INITIALIZE_PARAMS *params, const struct sim_gpu *gpu,
                                struct nvenc_settings *ret, const char **ret_why);

#endif
