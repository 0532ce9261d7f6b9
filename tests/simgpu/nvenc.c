/*
 * libnvidia-encode.so.1: the two exported entry points, the function list, sessions, and what a
 * client may ask of one. Pictures are in nvenc_encode.c and nvenc_surface.c, the tables of what the
 * engine can do in nvenc_codec.c, the coders behind in nvenc_{h264,hevc,av1}.c.
 *
 * SIMGPU_NVENC_API ("13.0") is the newest API that the driver speaks. Only the low bits of a
 * struct's version, which carry the API's, are looked at; every struct keeps its offsets from 11.1
 * to 13.0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/context.h"
#include "tests/simgpu/nvenc_session.h"

struct version {
    int major, minor;
};

static struct version supported(void)
{
    struct version v = {13, 0};
    const char *text = getenv("SIMGPU_NVENC_API");
    if (text && *text && sscanf(text, "%d.%d", &v.major, &v.minor) != 2)
        sim_die("SIMGPU_NVENC_API=%s is not a version such as 12.1", text);
    return v;
}

/* major | minor << 24, as apiVersion and the low bits of every struct's version have it. */
static bool is_supported(uint32_t api)
{
    struct version v = supported();
    int major = api & 0xff, minor = api >> 24 & 0xf;
    return major < v.major || (major == v.major && minor <= v.minor);
}

NVENCSTATUS NvEncodeAPIGetMaxSupportedVersion(uint32_t *ret)
{
    int code = sim_call_encoder(__func__, SIM_ASK);
    if (code)
        return (NVENCSTATUS)code;
    *ret = (uint32_t)(supported().major << 4 | supported().minor);
    return NV_ENC_SUCCESS;
}

static NVENCSTATUS nvEncOpenEncodeSessionEx(NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS *params,
                                            void **ret)
{
    int code = sim_call_encoder(__func__, SIM_WORK);
    if (code)
        return (NVENCSTATUS)code;
    if (!is_supported(params->apiVersion))
        return NV_ENC_ERR_INVALID_VERSION;
    if (params->deviceType != NV_ENC_DEVICE_TYPE_CUDA)
        return NV_ENC_ERR_UNSUPPORTED_DEVICE;
    int device = sim_context_device(params->device);
    if (device < 0)
        return NV_ENC_ERR_INVALID_DEVICE;
    const struct sim_gpu *gpu = sim_gpu_get(device);
    if (!gpu->engines[SIM_NVENC].count)
        return NV_ENC_ERR_UNSUPPORTED_DEVICE;
    struct nvenc_session *s = calloc(1, sizeof *s);
    if (!s)
        return NV_ENC_ERR_OUT_OF_MEMORY;
    s->device = device;
    s->gpu = gpu;
    s->queue_end = &s->queue;
    s->pending_end = &s->pending;
    NVENCSTATUS status = nvenc_session_add(s);
    if (status)
        free(s);
    else
        *ret = s;
    return status;
}

static NVENCSTATUS nvEncDestroyEncoder(void *encoder)
{
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter(__func__, SIM_CLOSE, encoder, &s);
    if (status)
        return status;
    nvenc_leave(s, NV_ENC_SUCCESS, NULL);
    nvenc_session_remove(s);
    return NV_ENC_SUCCESS;
}

/* What "how many" and "which" ask of a session and, but for codecs, of one of its codecs. */
union list {
    GUID guids[8];
    NV_ENC_BUFFER_FORMAT formats[4];
};
typedef int list_fill(const struct sim_gpu *gpu, enum nvenc_codec codec, union list *ret);

static int fill_codecs(const struct sim_gpu *gpu, enum nvenc_codec codec, union list *ret)
{
    (void)codec;
    return nvenc_codec_list(gpu, ret->guids);
}

static int fill_profiles(const struct sim_gpu *gpu, enum nvenc_codec codec, union list *ret)
{
    return nvenc_codec_profiles(gpu, codec, ret->guids);
}

static int fill_formats(const struct sim_gpu *gpu, enum nvenc_codec codec, union list *ret)
{
    return nvenc_codec_formats(gpu, codec, ret->formats);
}

static int fill_presets(const struct sim_gpu *gpu, enum nvenc_codec codec, union list *ret)
{
    (void)gpu, (void)codec;
    for (int i = 0; i < NVENC_PRESETS; i++)
        ret->guids[i] = nvenc_preset_guid(i + 1);
    return NVENC_PRESETS;
}

/* Gives at most `room` entries of `each` bytes, and how many: with a `ret`, those given. */
static NVENCSTATUS give_list(const char *function, void *encoder, const GUID *guid, list_fill *fill,
                             void *ret, size_t each, uint32_t room, uint32_t *ret_n)
{
    struct nvenc_session *s;
    enum nvenc_codec codec = NVENC_H264;
    union list all;
    NVENCSTATUS status = nvenc_enter(function, SIM_ASK, encoder, &s);
    if (status)
        return status;
    if (guid && !nvenc_codec_find(s->gpu, *guid, &codec))
        return nvenc_leave(s, NV_ENC_ERR_UNSUPPORTED_PARAM, "codec not supported on this device");
    uint32_t n = (uint32_t)fill(s->gpu, codec, &all);
    *ret_n = ret && n > room ? room : n;
    if (ret)
        memcpy(ret, &all, *ret_n * each);
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}

static NVENCSTATUS nvEncGetEncodeGUIDCount(void *encoder, uint32_t *ret)
{
    return give_list(__func__, encoder, NULL, fill_codecs, NULL, 0, 0, ret);
}

static NVENCSTATUS nvEncGetEncodeGUIDs(void *encoder, GUID *ret, uint32_t room, uint32_t *ret_n)
{
    return give_list(__func__, encoder, NULL, fill_codecs, ret, sizeof *ret, room, ret_n);
}

static NVENCSTATUS nvEncGetEncodeProfileGUIDCount(void *encoder, GUID guid, uint32_t *ret)
{
    return give_list(__func__, encoder, &guid, fill_profiles, NULL, 0, 0, ret);
}

static NVENCSTATUS nvEncGetEncodeProfileGUIDs(void *encoder, GUID guid, GUID *ret, uint32_t room,
                                              uint32_t *ret_n)
{
    return give_list(__func__, encoder, &guid, fill_profiles, ret, sizeof *ret, room, ret_n);
}

static NVENCSTATUS nvEncGetInputFormatCount(void *encoder, GUID guid, uint32_t *ret)
{
    return give_list(__func__, encoder, &guid, fill_formats, NULL, 0, 0, ret);
}

static NVENCSTATUS nvEncGetInputFormats(void *encoder, GUID guid, NV_ENC_BUFFER_FORMAT *ret,
                                        uint32_t room, uint32_t *ret_n)
{
    return give_list(__func__, encoder, &guid, fill_formats, ret, sizeof *ret, room, ret_n);
}

static NVENCSTATUS nvEncGetEncodePresetCount(void *encoder, GUID guid, uint32_t *ret)
{
    return give_list(__func__, encoder, &guid, fill_presets, NULL, 0, 0, ret);
}

static NVENCSTATUS nvEncGetEncodePresetGUIDs(void *encoder, GUID guid, GUID *ret, uint32_t room,
                                             uint32_t *ret_n)
{
    return give_list(__func__, encoder, &guid, fill_presets, ret, sizeof *ret, room, ret_n);
}

static NVENCSTATUS nvEncGetEncodeCaps(void *encoder, GUID guid, NV_ENC_CAPS_PARAM *params, int *ret)
{
    struct nvenc_session *s;
    enum nvenc_codec codec;
    NVENCSTATUS status = nvenc_enter(__func__, SIM_ASK, encoder, &s);
    if (status)
        return status;
    if (!nvenc_codec_find(s->gpu, guid, &codec))
        return nvenc_leave(s, NV_ENC_ERR_UNSUPPORTED_PARAM, "codec not supported on this device");
    *ret = nvenc_codec_capability(s->gpu, codec, params->capsToQuery);
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}

static NVENCSTATUS give_preset(const char *function, void *encoder, GUID guid, GUID preset,
                               NV_ENC_TUNING_INFO tuning, NV_ENC_PRESET_CONFIG *ret)
{
    struct nvenc_session *s;
    enum nvenc_codec codec;
    NVENCSTATUS status = nvenc_enter(function, SIM_ASK, encoder, &s);
    if (status)
        return status;
    int number = nvenc_preset_number(preset);
    if (!nvenc_codec_find(s->gpu, guid, &codec) || !number)
        return nvenc_leave(s, NV_ENC_ERR_UNSUPPORTED_PARAM, "no such preset of this codec");
    if (tuning == NV_ENC_TUNING_INFO_LOSSLESS)
        return nvenc_leave(s, NV_ENC_ERR_UNSUPPORTED_PARAM, "lossless is not simulated");
    nvenc_preset_config(codec, number, tuning, &ret->presetCfg);
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}

static NVENCSTATUS nvEncGetEncodePresetConfig(void *encoder, GUID guid, GUID preset,
                                              NV_ENC_PRESET_CONFIG *ret)
{
    return give_preset(__func__, encoder, guid, preset, NV_ENC_TUNING_INFO_HIGH_QUALITY, ret);
}

static NVENCSTATUS nvEncGetEncodePresetConfigEx(void *encoder, GUID guid, GUID preset,
                                                NV_ENC_TUNING_INFO tuning,
                                                NV_ENC_PRESET_CONFIG *ret)
{
    return give_preset(__func__, encoder, guid, preset, tuning, ret);
}

/* Work is done when EncodePicture returns, so that there is no stream to order it in. */
static NVENCSTATUS nvEncSetIOCudaStreams(void *encoder, NV_ENC_CUSTREAM_PTR in,
                                         NV_ENC_CUSTREAM_PTR out)
{
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter(__func__, SIM_WORK, encoder, &s);
    if (status)
        return status;
    return nvenc_leave(s, in && out ? NV_ENC_SUCCESS : NV_ENC_ERR_INVALID_PTR, NULL);
}

/* The text stays valid until the session's next call that fails. */
static const char *nvEncGetLastErrorString(void *encoder)
{
    struct nvenc_session *s;
    if (nvenc_enter(__func__, SIM_ASK, encoder, &s))
        return "";
    nvenc_leave(s, NV_ENC_SUCCESS, NULL);
    return s->error;
}

/* The list's other functions stay NULL, as those do that a driver is too old for. */
NVENCSTATUS NvEncodeAPICreateInstance(NV_ENCODE_API_FUNCTION_LIST *list)
{
    int code = sim_call_encoder(__func__, SIM_WORK);
    if (code)
        return (NVENCSTATUS)code;
    if (!list)
        return NV_ENC_ERR_INVALID_PTR;
    if (!is_supported(list->version))
        return NV_ENC_ERR_INVALID_VERSION;
    list->nvEncOpenEncodeSessionEx = nvEncOpenEncodeSessionEx;
    list->nvEncDestroyEncoder = nvEncDestroyEncoder;
    list->nvEncGetEncodeGUIDCount = nvEncGetEncodeGUIDCount;
    list->nvEncGetEncodeGUIDs = nvEncGetEncodeGUIDs;
    list->nvEncGetEncodeProfileGUIDCount = nvEncGetEncodeProfileGUIDCount;
    list->nvEncGetEncodeProfileGUIDs = nvEncGetEncodeProfileGUIDs;
    list->nvEncGetInputFormatCount = nvEncGetInputFormatCount;
    list->nvEncGetInputFormats = nvEncGetInputFormats;
    list->nvEncGetEncodeCaps = nvEncGetEncodeCaps;
    list->nvEncGetEncodePresetCount = nvEncGetEncodePresetCount;
    list->nvEncGetEncodePresetGUIDs = nvEncGetEncodePresetGUIDs;
    list->nvEncGetEncodePresetConfig = nvEncGetEncodePresetConfig;
    list->nvEncGetEncodePresetConfigEx = nvEncGetEncodePresetConfigEx;
    list->nvEncInitializeEncoder = nvEncInitializeEncoder;
    list->nvEncReconfigureEncoder = nvEncReconfigureEncoder;
    list->nvEncGetSequenceParams = nvEncGetSequenceParams;
    list->nvEncCreateInputBuffer = nvEncCreateInputBuffer;
    list->nvEncDestroyInputBuffer = nvEncDestroyInputBuffer;
    list->nvEncLockInputBuffer = nvEncLockInputBuffer;
    list->nvEncUnlockInputBuffer = nvEncUnlockInputBuffer;
    list->nvEncCreateBitstreamBuffer = nvEncCreateBitstreamBuffer;
    list->nvEncDestroyBitstreamBuffer = nvEncDestroyBitstreamBuffer;
    list->nvEncEncodePicture = nvEncEncodePicture;
    list->nvEncLockBitstream = nvEncLockBitstream;
    list->nvEncUnlockBitstream = nvEncUnlockBitstream;
    list->nvEncRegisterResource = nvEncRegisterResource;
    list->nvEncUnregisterResource = nvEncUnregisterResource;
    list->nvEncMapInputResource = nvEncMapInputResource;
    list->nvEncUnmapInputResource = nvEncUnmapInputResource;
    list->nvEncSetIOCudaStreams = nvEncSetIOCudaStreams;
    list->nvEncGetLastErrorString = nvEncGetLastErrorString;
    return NV_ENC_SUCCESS;
}
