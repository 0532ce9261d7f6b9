/*
 * The tables of what NVENC offers. Capability values are those that a Turing or later card of the
 * data centre reports, as far as libav* and the product ask; speeds are the application note's
 * frames per second at 1080p for Ada (the even presets lie half way between their neighbours).
 */
#include "tests/simgpu/nvenc_codec.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH_MIN_H264 = 145, HEIGHT_MIN_H264 = 49, WIDTH_MIN_HEVC = 129, HEIGHT_MIN_HEVC = 33 };
enum { B_REF_EACH = 1, B_REF_MIDDLE = 2 };
enum { MODES = NV_ENC_PARAMS_RC_VBR | NV_ENC_PARAMS_RC_CBR }; /* CONSTQP is 0 */

static const struct {
    const GUID *guid; /* NULL: this build has no coder for it */
    uint32_t bit, bit_10;
    const GUID *profiles[4];
    int fps[NVENC_PRESETS]; /* of P1..P7 */
} codecs[NVENC_CODECS] = {
    [NVENC_H264] = {&NV_ENC_CODEC_H264_GUID,
                    SIM_H264,
                    0,
                    {&NV_ENC_H264_PROFILE_BASELINE_GUID, &NV_ENC_H264_PROFILE_MAIN_GUID,
                     &NV_ENC_H264_PROFILE_HIGH_GUID},
                    {885, 766, 647, 465, 283, 247, 211}},
    [NVENC_HEVC] = {&NV_ENC_CODEC_HEVC_GUID,
                    SIM_HEVC,
                    SIM_HEVC_10,
                    {&NV_ENC_HEVC_PROFILE_MAIN_GUID, &NV_ENC_HEVC_PROFILE_MAIN10_GUID},
                    {1037, 872, 706, 559, 411, 296, 181}},
#ifdef SIMGPU_AV1
    [NVENC_AV1] = {&NV_ENC_CODEC_AV1_GUID,
                   SIM_AV1,
                   SIM_AV1_10,
                   {&NV_ENC_AV1_PROFILE_MAIN_GUID},
                   {741, 645, 549, 495, 440, 382, 323}},
#endif
};

enum { FPS_REFERENCE = 465 }; /* H.264 at P4: the speed that a model's mpps means */

static const struct {
    NV_ENC_CAPS which;
    int value[NVENC_CODECS];
} capabilities[] = {
    {NV_ENC_CAPS_NUM_MAX_BFRAMES, {4, 5, 7}},
    {NV_ENC_CAPS_SUPPORTED_RATECONTROL_MODES, {MODES, MODES, MODES}},
    {NV_ENC_CAPS_SUPPORT_CABAC, {1, 0, 0}},
    {NV_ENC_CAPS_SUPPORT_QPELMV, {1, 1, 1}},
    {NV_ENC_CAPS_SUPPORT_BDIRECT_MODE, {1, 0, 0}},
    {NV_ENC_CAPS_SUPPORT_ADAPTIVE_TRANSFORM, {1, 0, 0}},
    {NV_ENC_CAPS_LEVEL_MAX, {NV_ENC_LEVEL_H264_62, NV_ENC_LEVEL_HEVC_62, 23}},
    {NV_ENC_CAPS_LEVEL_MIN, {NV_ENC_LEVEL_H264_1, NV_ENC_LEVEL_HEVC_1, 0}},
    {NV_ENC_CAPS_WIDTH_MAX, {4096, 8192, 8192}},
    {NV_ENC_CAPS_HEIGHT_MAX, {4096, 8192, 8192}},
    {NV_ENC_CAPS_WIDTH_MIN, {WIDTH_MIN_H264, WIDTH_MIN_HEVC, WIDTH_MIN_HEVC}},
    {NV_ENC_CAPS_HEIGHT_MIN, {HEIGHT_MIN_H264, HEIGHT_MIN_HEVC, HEIGHT_MIN_HEVC}},
    {NV_ENC_CAPS_MB_NUM_MAX, {65536, 262144, 262144}},
    {NV_ENC_CAPS_MB_PER_SEC_MAX, {983040, 983040, 983040}},
    {NV_ENC_CAPS_SUPPORT_DYN_BITRATE_CHANGE, {1, 1, 1}},
    {NV_ENC_CAPS_SUPPORT_CUSTOM_VBV_BUF_SIZE, {1, 1, 1}},
    {NV_ENC_CAPS_SUPPORT_LOOKAHEAD, {1, 1, 1}},
    {NV_ENC_CAPS_SUPPORT_TEMPORAL_AQ, {1, 1, 1}},
    {NV_ENC_CAPS_SUPPORT_WEIGHTED_PREDICTION, {1, 1, 0}},
    {NV_ENC_CAPS_SUPPORT_BFRAME_REF_MODE, {B_REF_MIDDLE, B_REF_EACH | B_REF_MIDDLE, B_REF_MIDDLE}},
    {NV_ENC_CAPS_SUPPORT_MULTIPLE_REF_FRAMES, {1, 1, 1}},
};

bool nvenc_guid_equal(GUID a, GUID b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool has_codec(const struct sim_gpu *gpu, int codec)
{
    return codecs[codec].guid && gpu->engines[SIM_NVENC].codecs & codecs[codec].bit;
}

int nvenc_codec_list(const struct sim_gpu *gpu, GUID ret[NVENC_CODECS])
{
    int n = 0;
    for (int i = 0; i < NVENC_CODECS; i++)
        if (has_codec(gpu, i))
            ret[n++] = *codecs[i].guid;
    return n;
}

bool nvenc_codec_find(const struct sim_gpu *gpu, GUID guid, enum nvenc_codec *ret)
{
    for (int i = 0; i < NVENC_CODECS; i++)
        if (has_codec(gpu, i) && nvenc_guid_equal(*codecs[i].guid, guid)) {
            *ret = i;
            return true;
        }
    return false;
}

static bool has_10_bit(const struct sim_gpu *gpu, enum nvenc_codec codec)
{
    return gpu->engines[SIM_NVENC].codecs & codecs[codec].bit_10;
}

int nvenc_codec_capability(const struct sim_gpu *gpu, enum nvenc_codec codec, NV_ENC_CAPS which)
{
    if (which == NV_ENC_CAPS_SUPPORT_10BIT_ENCODE)
        return has_10_bit(gpu, codec);
    if (which == NV_ENC_CAPS_NUM_ENCODER_ENGINES)
        return gpu->engines[SIM_NVENC].count;
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++)
        if (capabilities[i].which == which)
            return capabilities[i].value[codec];
    return 0;
}

int nvenc_codec_profiles(const struct sim_gpu *gpu, enum nvenc_codec codec, GUID ret[8])
{
    int n = 0;
    ret[n++] = NV_ENC_CODEC_PROFILE_AUTOSELECT_GUID;
    for (const GUID *const *p = codecs[codec].profiles; *p; p++)
        if (has_10_bit(gpu, codec) || !nvenc_guid_equal(**p, NV_ENC_HEVC_PROFILE_MAIN10_GUID))
            ret[n++] = **p;
    return n;
}

int nvenc_codec_formats(const struct sim_gpu *gpu, enum nvenc_codec codec,
                        NV_ENC_BUFFER_FORMAT ret[4])
{
    int n = 0;
    ret[n++] = NV_ENC_BUFFER_FORMAT_NV12;
    ret[n++] = NV_ENC_BUFFER_FORMAT_YV12;
    ret[n++] = NV_ENC_BUFFER_FORMAT_IYUV;
    if (has_10_bit(gpu, codec))
        ret[n++] = NV_ENC_BUFFER_FORMAT_YUV420_10BIT;
    return n;
}

GUID nvenc_preset_guid(int preset)
{
    const GUID guids[NVENC_PRESETS] = {
        NV_ENC_PRESET_P1_GUID, NV_ENC_PRESET_P2_GUID, NV_ENC_PRESET_P3_GUID, NV_ENC_PRESET_P4_GUID,
        NV_ENC_PRESET_P5_GUID, NV_ENC_PRESET_P6_GUID, NV_ENC_PRESET_P7_GUID,
    };
    return guids[preset - 1];
}

int nvenc_preset_number(GUID guid)
{
    for (int i = 1; i <= NVENC_PRESETS; i++)
        if (nvenc_guid_equal(nvenc_preset_guid(i), guid))
            return i;
    return 0;
}

/* B-frames that a preset uses by itself, when it is tuned for quality. */
static int preset_b_frames(enum nvenc_codec codec, int preset)
{
    int first = codec == NVENC_H264 ? 3 : 2; /* P3 and on for H.264, P2 and on for HEVC */
    return codec != NVENC_AV1 && preset >= first ? 2 : 0;
}

void nvenc_preset_config(enum nvenc_codec codec, int preset, NV_ENC_TUNING_INFO tuning,
                         NV_ENC_CONFIG *ret)
{
    bool is_low_latency =
        tuning == NV_ENC_TUNING_INFO_LOW_LATENCY || tuning == NV_ENC_TUNING_INFO_ULTRA_LOW_LATENCY;
    ret->profileGUID = NV_ENC_CODEC_PROFILE_AUTOSELECT_GUID;
    ret->gopLength = is_low_latency ? NVENC_INFINITE_GOPLENGTH : 250;
    ret->frameIntervalP = is_low_latency ? 1 : preset_b_frames(codec, preset) + 1;
    ret->frameFieldMode = NV_ENC_PARAMS_FRAME_FIELD_MODE_FRAME;
    ret->rcParams.rateControlMode = NV_ENC_PARAMS_RC_VBR;
    ret->rcParams.constQP = (NV_ENC_QP){.qpInterP = 28, .qpInterB = 31, .qpIntra = 25};
    if (codec == NVENC_H264) {
        ret->encodeCodecConfig.h264Config.idrPeriod = ret->gopLength;
        ret->encodeCodecConfig.h264Config.chromaFormatIDC = 1;
    } else if (codec == NVENC_HEVC) {
        ret->encodeCodecConfig.hevcConfig.idrPeriod = ret->gopLength;
        ret->encodeCodecConfig.hevcConfig.chromaFormatIDC = 1;
    }
#ifdef SIMGPU_AV1
    else {
        ret->encodeCodecConfig.av1Config.idrPeriod = ret->gopLength;
        ret->encodeCodecConfig.av1Config.chromaFormatIDC = 1;
    }
#endif
}

double nvenc_codec_cost(enum nvenc_codec codec, int preset)
{
    if (getenv("SIMGPU_NVENC_MPPS"))
        return 1.0;
    return (double)FPS_REFERENCE / codecs[codec].fps[preset - 1];
}
