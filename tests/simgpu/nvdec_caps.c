/* What a model's decode engines can do. */
#include <string.h>

#include "tests/simgpu/context.h"
#include "tests/simgpu/gpu.h"
#include "tests/simgpu/nvdec.h"
#include "tests/simgpu/nvdec_codec.h"

tcuvidGetDecoderCaps cuvidGetDecoderCaps;

static const struct limits {
    cudaVideoCodec codec;
    unsigned depth_minus8;
    uint32_t needs; /* of enum sim_codec */
    unsigned min_width, min_height, max_width, max_height;
} limits[] = {
    {cudaVideoCodec_MPEG1, 0, SIM_MPEG1, 48, 16, 4080, 4080},
    {cudaVideoCodec_MPEG2, 0, SIM_MPEG2, 48, 16, 4080, 4080},
    {cudaVideoCodec_H264, 0, SIM_H264, 48, 16, 4096, 4096},
    {cudaVideoCodec_H264, 2, SIM_H264_10, 48, 16, 4096, 4096},
    {cudaVideoCodec_HEVC, 0, SIM_HEVC, 144, 144, 8192, 8192},
    {cudaVideoCodec_HEVC, 2, SIM_HEVC_10, 144, 144, 8192, 8192},
    {cudaVideoCodec_HEVC, 4, SIM_HEVC_12, 144, 144, 8192, 8192},
    {cudaVideoCodec_VP8, 0, SIM_VP8, 48, 16, 4096, 4096},
    {cudaVideoCodec_VP9, 0, SIM_VP9, 128, 128, 8192, 8192},
    {cudaVideoCodec_VP9, 2, SIM_VP9_10, 128, 128, 8192, 8192},
    {cudaVideoCodec_VP9, 4, SIM_VP9_12, 128, 128, 8192, 8192},
};

static const struct limits *find(int device, const CUVIDDECODECAPS *caps)
{
    const struct sim_engines *nvdec = &sim_gpu_get(device)->engines[SIM_NVDEC];
    if (caps->eChromaFormat != cudaVideoChromaFormat_420 || !nvdec_codec_find(caps->eCodecType) ||
        nvdec->count == 0)
        return NULL;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].codec == caps->eCodecType &&
            limits[i].depth_minus8 == caps->nBitDepthMinus8 && limits[i].needs & nvdec->codecs)
            return &limits[i];
    return NULL;
}

void nvdec_caps_fill(int device, CUVIDDECODECAPS *caps)
{
    const struct limits *l = find(device, caps);
    size_t out = offsetof(CUVIDDECODECAPS, bIsSupported);
    memset((char *)caps + out, 0, offsetof(CUVIDDECODECAPS, reserved3) - out);
    if (!l)
        return;
    caps->bIsSupported = 1;
    caps->nNumNVDECs = (unsigned char)sim_gpu_get(device)->engines[SIM_NVDEC].count;
    caps->nOutputFormatMask =
        (unsigned short)(1 << cudaVideoSurfaceFormat_NV12 | (l->depth_minus8 > 0)
                                                                << cudaVideoSurfaceFormat_P016);
    caps->nMinWidth = (unsigned short)l->min_width;
    caps->nMinHeight = (unsigned short)l->min_height;
    caps->nMaxWidth = l->max_width;
    caps->nMaxHeight = l->max_height;
    caps->nMaxMBCount = l->max_width * l->max_height / 256;
}

bool nvdec_is_supported(int device, CUVIDDECODECAPS *caps, unsigned width, unsigned height)
{
    nvdec_caps_fill(device, caps);
    return caps->bIsSupported && width >= caps->nMinWidth && height >= caps->nMinHeight &&
           width <= caps->nMaxWidth && height <= caps->nMaxHeight &&
           (uint64_t)width * height / 256 <= caps->nMaxMBCount;
}

CUresult cuvidGetDecoderCaps(CUVIDDECODECAPS *caps)
{
    CUresult rc = nvdec_enter(__func__, SIM_WORK);
    if (!rc)
        nvdec_caps_fill(sim_context_current_device(), caps);
    return rc;
}
