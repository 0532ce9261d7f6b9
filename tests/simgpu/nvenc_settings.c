/*
 * Reading NV_ENC_INITIALIZE_PARAMS. Only what libav* sets is read; a request that would change the
 * stream in a way the coders cannot do is refused, as a driver refuses what the engine lacks.
 */
#include "tests/simgpu/nvenc_settings.h"

enum { CBR_MODES = 0x02 | 0x08 | 0x10 }; /* with the two that API 12 has no longer */

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Display aspect ratio to that of a sample. AV1 has the render size there instead. */
static void read_aspect(const NV_ENC_INITIALIZE_PARAMS *p, struct nvenc_settings *ret)
{
    int64_t num = (int64_t)p->darWidth * p->encodeHeight;
    int64_t den = (int64_t)p->darHeight * p->encodeWidth;
    int64_t divisor = greatest_divisor(num, den);
    if (!num || !den || num / divisor > UINT16_MAX || den / divisor > UINT16_MAX)
        return;
    ret->sar_num = (int)(num / divisor);
    ret->sar_den = (int)(den / divisor);
}

/* The buffer without which a bit rate limit means nothing is one second of it, unless given. */
static void read_rate(const NV_ENC_RC_PARAMS *rc, struct nvenc_settings *ret)
{
    ret->qp_min = rc->enableMinQP ? (int)rc->minQP.qpInterP : -1;
    ret->qp_max = rc->enableMaxQP ? (int)rc->maxQP.qpInterP : -1;
    ret->qp.i = (int)rc->constQP.qpIntra;
    ret->qp.p = (int)rc->constQP.qpInterP;
    ret->qp.b = (int)rc->constQP.qpInterB;
    ret->quality = rc->targetQuality + rc->targetQualityLSB / 256.0;
    ret->lookahead = rc->enableLookahead ? rc->lookaheadDepth : 0;
    ret->average_bps = rc->averageBitRate;
    if (rc->rateControlMode == NV_ENC_PARAMS_RC_CONSTQP) {
        ret->rate = NVENC_RATE_QP;
        return;
    }
    ret->max_bps = rc->maxBitRate;
    if (rc->rateControlMode & CBR_MODES) {
        ret->rate = NVENC_RATE_CBR;
        ret->max_bps = ret->average_bps;
    } else if (ret->quality > 0 || !ret->average_bps) {
        ret->rate = NVENC_RATE_QUALITY;
        ret->quality = ret->quality > 0 ? ret->quality : 26;
    } else {
        ret->rate = NVENC_RATE_VBR;
    }
    if (ret->max_bps)
        ret->vbv_bits = rc->vbvBufferSize ? rc->vbvBufferSize : ret->max_bps;
}

static void read_colour(const NV_ENC_CONFIG_H264_VUI_PARAMETERS *vui, struct nvenc_settings *ret)
{
    ret->colour.is_present = vui->videoSignalTypePresentFlag;
    ret->colour.format = (int)vui->videoFormat;
    ret->colour.is_full = (int)vui->videoFullRangeFlag;
    ret->colour.has_description = vui->colourDescriptionPresentFlag;
    ret->colour.primaries = (int)vui->colourPrimaries;
    ret->colour.transfer = (int)vui->transferCharacteristics;
    ret->colour.matrix = (int)vui->colourMatrix;
}

static const char *read_h264(const NV_ENC_CONFIG_H264 *c, struct nvenc_settings *ret)
{
    if (c->chromaFormatIDC > 1 || c->qpPrimeYZeroTransformBypassFlag)
        return "4:4:4 and lossless are not simulated";
    if (c->enableIntraRefresh || c->separateColourPlaneFlag)
        return "intra refresh and separate planes are not simulated";
    if (c->sliceMode != 3 && c->sliceModeData)
        return "slices are simulated by number only";
    ret->level = (int)c->level;
    ret->slices = (int)c->sliceModeData;
    ret->is_cavlc = c->entropyCodingMode == NV_ENC_H264_ENTROPY_CODING_MODE_CAVLC;
    ret->has_aud = c->outputAUD;
    ret->repeats_headers = c->repeatSPSPPS || !c->disableSPSPPS;
    ret->is_b_reference = c->useBFramesAsRef != NV_ENC_BFRAME_REF_MODE_DISABLED;
    read_colour(&c->h264VUIParameters, ret);
    return NULL;
}

static const char *read_hevc(const NV_ENC_CONFIG_HEVC *c, struct nvenc_settings *ret)
{
    if (c->chromaFormatIDC > 1)
        return "4:4:4 is not simulated";
    if (c->enableIntraRefresh)
        return "intra refresh is not simulated";
    if (c->sliceModeData > 1)
        return "slices are not simulated for HEVC";
#if NVENCAPI_MAJOR_VERSION >= 13
    ret->bit_depth = c->outputBitDepth == NV_ENC_BIT_DEPTH_10 ? 10 : 8;
#else
    ret->bit_depth = 8 + (int)c->pixelBitDepthMinus8;
#endif
    ret->level = (int)c->level;
    ret->tier = (int)c->tier;
    ret->has_aud = c->outputAUD;
    ret->repeats_headers = c->repeatSPSPPS || !c->disableSPSPPS;
    ret->is_b_reference = c->useBFramesAsRef != NV_ENC_BFRAME_REF_MODE_DISABLED;
    read_colour(&c->hevcVUIParameters, ret);
    return NULL;
}

#ifdef SIMGPU_AV1
static const char *read_av1(const NV_ENC_CONFIG_AV1 *c, struct nvenc_settings *ret)
{
    if (c->chromaFormatIDC > 1)
        return "4:4:4 is not simulated";
    if (c->enableIntraRefresh || c->outputAnnexBFormat)
        return "intra refresh and Annex B are not simulated";
#if NVENCAPI_MAJOR_VERSION >= 13
    ret->bit_depth = c->outputBitDepth == NV_ENC_BIT_DEPTH_10 ? 10 : 8;
#else
    ret->bit_depth = 8 + (int)c->pixelBitDepthMinus8;
#endif
    ret->level = (int)c->level;
    ret->tier = (int)c->tier;
    ret->repeats_headers = true;
    ret->sar_num = ret->sar_den = 0;
    ret->colour.is_present = ret->colour.has_description = true;
    ret->colour.is_full = (int)c->colorRange;
    ret->colour.primaries = (int)c->colorPrimaries;
    ret->colour.transfer = (int)c->transferCharacteristics;
    ret->colour.matrix = (int)c->matrixCoefficients;
    return NULL;
}
#endif

static const char *read_codec(const NV_ENC_CODEC_CONFIG *c, struct nvenc_settings *ret)
{
    switch (ret->codec) {
    case NVENC_H264:
        return read_h264(&c->h264Config, ret);
    case NVENC_HEVC:
        return read_hevc(&c->hevcConfig, ret);
#ifdef SIMGPU_AV1
    case NVENC_AV1:
        return read_av1(&c->av1Config, ret);
#endif
    default:
        return "no such codec";
    }
}

static const char *read_profile(GUID guid, struct nvenc_settings *ret)
{
    static const struct {
        const GUID *guid;
        enum nvenc_profile profile;
    } profiles[] = {
        {&NV_ENC_CODEC_PROFILE_AUTOSELECT_GUID, NVENC_PROFILE_AUTO},
        {&NV_ENC_H264_PROFILE_BASELINE_GUID, NVENC_PROFILE_BASELINE},
        {&NV_ENC_H264_PROFILE_MAIN_GUID, NVENC_PROFILE_MAIN},
        {&NV_ENC_H264_PROFILE_HIGH_GUID, NVENC_PROFILE_HIGH},
        {&NV_ENC_HEVC_PROFILE_MAIN_GUID, NVENC_PROFILE_MAIN},
        {&NV_ENC_HEVC_PROFILE_MAIN10_GUID, NVENC_PROFILE_MAIN10},
#ifdef SIMGPU_AV1
        {&NV_ENC_AV1_PROFILE_MAIN_GUID, NVENC_PROFILE_MAIN},
#endif
    };
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++)
        if (nvenc_guid_equal(*profiles[i].guid, guid)) {
            ret->profile = profiles[i].profile;
            return NULL;
        }
    return "unknown or unsupported profile";
}

static const char *check_size(const struct sim_gpu *gpu, const struct nvenc_settings *s)
{
    if (s->width < nvenc_codec_capability(gpu, s->codec, NV_ENC_CAPS_WIDTH_MIN) ||
        s->height < nvenc_codec_capability(gpu, s->codec, NV_ENC_CAPS_HEIGHT_MIN))
        return "frame dimension less than the minimum supported value";
    if (s->width > nvenc_codec_capability(gpu, s->codec, NV_ENC_CAPS_WIDTH_MAX) ||
        s->height > nvenc_codec_capability(gpu, s->codec, NV_ENC_CAPS_HEIGHT_MAX))
        return "frame dimension greater than the maximum supported value";
    if (s->width % 2 || s->height % 2)
        return "odd frame dimension";
    return NULL;
}

static const char *check_gpu(const struct sim_gpu *gpu, const struct nvenc_settings *s)
{
    if (s->interval_p - 1 > nvenc_codec_capability(gpu, s->codec, NV_ENC_CAPS_NUM_MAX_BFRAMES))
        return "too many B-frames";
    if (s->bit_depth != 8 &&
        (s->bit_depth != 10 ||
         !nvenc_codec_capability(gpu, s->codec, NV_ENC_CAPS_SUPPORT_10BIT_ENCODE)))
        return "bit depth not supported";
    if (s->profile == NVENC_PROFILE_BASELINE && s->interval_p > 1)
        return "B-frames in the baseline profile";
    return NULL;
}

NVENCSTATUS nvenc_settings_read(const NV_ENC_INITIALIZE_PARAMS *p, const struct sim_gpu *gpu,
                                struct nvenc_settings *ret, const char **ret_why)
{
    *ret = (struct nvenc_settings){.bit_depth = 8, .slices = 1};
    *ret_why = "codec not supported on this device";
    if (!nvenc_codec_find(gpu, p->encodeGUID, &ret->codec))
        return NV_ENC_ERR_UNSUPPORTED_PARAM;
    *ret_why = "unknown preset";
    ret->preset = nvenc_preset_number(p->presetGUID);
    if (!ret->preset)
        return NV_ENC_ERR_UNSUPPORTED_PARAM;

    NV_ENC_CONFIG own = {0};
    const NV_ENC_CONFIG *c = p->encodeConfig;
    if (!c) {
        nvenc_preset_config(ret->codec, ret->preset, p->tuningInfo, &own);
        c = &own;
    }
    ret->width = (int)p->encodeWidth;
    ret->height = (int)p->encodeHeight;
    ret->fps_num = p->frameRateNum && p->frameRateDen ? (int)p->frameRateNum : 30;
    ret->fps_den = p->frameRateNum && p->frameRateDen ? (int)p->frameRateDen : 1;
    ret->gop_length = c->gopLength == NVENC_INFINITE_GOPLENGTH ? 0 : c->gopLength;
    ret->interval_p = c->frameIntervalP;
    if (ret->interval_p <= 0) { /* intra only */
        ret->gop_length = ret->interval_p = 1;
    }
    *ret_why = check_size(gpu, ret);
    if (*ret_why)
        return NV_ENC_ERR_INVALID_PARAM;
    read_aspect(p, ret);
    read_rate(&c->rcParams, ret);
    *ret_why = !p->enablePTD || p->enableEncodeAsync ? "only synchronous, with the driver's types"
               : c->frameFieldMode == NV_ENC_PARAMS_FRAME_FIELD_MODE_FIELD
                   ? "field encoding is not supported"
                   : read_codec(&c->encodeCodecConfig, ret);
    if (!*ret_why)
        *ret_why = read_profile(c->profileGUID, ret);
    if (!*ret_why)
        *ret_why = check_gpu(gpu, ret);
    return *ret_why ? NV_ENC_ERR_UNSUPPORTED_PARAM : NV_ENC_SUCCESS;
}
