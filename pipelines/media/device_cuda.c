#include "pipelines/media/device_cuda.h"

/* The loader's header declares the driver API; libavutil's would want a toolkit's cuda.h. */
#include <dlfcn.h>
#include <ffnvcodec/dynlink_loader.h>
#include <libavutil/hwcontext.h>
#include <libavutil/hwcontext_cuda.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/compat.h"
#include "pipelines/media/ptx.h"

#define VIDEO_HINT "in a container, NVIDIA_DRIVER_CAPABILITIES must name video"

static const AVCUDADeviceContext *cuda_of(AVBufferRef *context)
{
    return ((const AVHWDeviceContext *)(const void *)context->data)->hwctx;
}

int device_cuda_count(void)
{
    CudaFunctions *f = NULL;
    int n = 0;
    if (cuda_load_functions(&f, NULL) < 0)
        return 0;
    if (f->cuInit(0) != CUDA_SUCCESS || f->cuDeviceGetCount(&n) != CUDA_SUCCESS)
        n = 0;
    cuda_free_functions(&f);
    return n;
}

/* ---- NVDEC ---- */

/* What libavcodec hands over to NVDEC; the driver says whether the card takes it. */
static const struct {
    const char *codec;
    cudaVideoCodec id;
    cudaVideoChromaFormat chroma;
    int bits;
} streams[] = {
    {"mpeg1video", cudaVideoCodec_MPEG1, cudaVideoChromaFormat_420, 8},
    {"mpeg2video", cudaVideoCodec_MPEG2, cudaVideoChromaFormat_420, 8},
    {"mpeg4", cudaVideoCodec_MPEG4, cudaVideoChromaFormat_420, 8},
    {"vc1", cudaVideoCodec_VC1, cudaVideoChromaFormat_420, 8},
    {"h264", cudaVideoCodec_H264, cudaVideoChromaFormat_420, 8},
    {"hevc", cudaVideoCodec_HEVC, cudaVideoChromaFormat_420, 8},
    {"hevc", cudaVideoCodec_HEVC, cudaVideoChromaFormat_420, 10},
    {"hevc", cudaVideoCodec_HEVC, cudaVideoChromaFormat_420, 12},
    {"hevc", cudaVideoCodec_HEVC, cudaVideoChromaFormat_444, 8},
    {"hevc", cudaVideoCodec_HEVC, cudaVideoChromaFormat_444, 10},
    {"hevc", cudaVideoCodec_HEVC, cudaVideoChromaFormat_444, 12},
    {"vp8", cudaVideoCodec_VP8, cudaVideoChromaFormat_420, 8},
    {"vp9", cudaVideoCodec_VP9, cudaVideoChromaFormat_420, 8},
    {"vp9", cudaVideoCodec_VP9, cudaVideoChromaFormat_420, 10},
    {"vp9", cudaVideoCodec_VP9, cudaVideoChromaFormat_420, 12},
    {"av1", cudaVideoCodec_AV1, cudaVideoChromaFormat_420, 8},
    {"av1", cudaVideoCodec_AV1, cudaVideoChromaFormat_420, 10},
};

static void add_decoder(struct route_gpu *gpu, size_t stream, const CUVIDDECODECAPS *caps)
{
    gpu->decoders = xrealloc_array(gpu->decoders, gpu->n_decoders + 1, sizeof *gpu->decoders);
    gpu->decoders[gpu->n_decoders++] = (struct route_decoder){
        .codec = xstrdup(streams[stream].codec),
        .chroma = xstrdup(caps->eChromaFormat == cudaVideoChromaFormat_444 ? "4:4:4" : "4:2:0"),
        .bits = streams[stream].bits,
        .min_width = caps->nMinWidth,
        .min_height = caps->nMinHeight,
        .max_width = (int)caps->nMaxWidth,
        .max_height = (int)caps->nMaxHeight,
        .max_blocks = caps->nMaxMBCount,
    };
}

static void ask_decoders(const CuvidFunctions *f, struct route_gpu *gpu)
{
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        CUVIDDECODECAPS caps = {
            .eCodecType = streams[i].id,
            .eChromaFormat = streams[i].chroma,
            .nBitDepthMinus8 = (unsigned)streams[i].bits - 8,
        };
        if (f->cuvidGetDecoderCaps(&caps) == CUDA_SUCCESS && caps.bIsSupported)
            add_decoder(gpu, i, &caps);
    }
}

static void find_decoders(struct route_gpu *gpu)
{
    CuvidFunctions *f = NULL;
    if (cuvid_load_functions(&f, NULL) < 0)
        gpu->no_decoder = xstrdup("libnvcuvid.so.1 cannot be loaded (" VIDEO_HINT ")");
    else if (!f->cuvidGetDecoderCaps)
        gpu->no_decoder = xstrdup("the driver is too old to say what it decodes");
    else
        ask_decoders(f, gpu);
    cuvid_free_functions(&f);
}

/* ---- NVENC ---- */

/* A GUID is 16 bytes: a type of the headers that some of them lack (AV1 came with API 12) is given
 * by its bytes. */
static const struct {
    const char *name, *stands_for;
    GUID guid;
} codings[] = {
    {"h264_nvenc",
     "libx264",
     {0x6bc82762, 0x4e63, 0x4ca4, {0xaa, 0x85, 0x1e, 0x50, 0xf3, 0x21, 0xf6, 0xbf}}},
    {"hevc_nvenc",
     "libx265",
     {0x790cdc88, 0x4522, 0x4d7b, {0x94, 0x25, 0xbd, 0xa9, 0x97, 0x5f, 0x76, 0x03}}},
    {"av1_nvenc",
     "libsvtav1",
     {0x0a352289, 0x0aa7, 0x4759, {0x86, 0x2d, 0x5d, 0x15, 0xcd, 0x16, 0xd2, 0x54}}},
};
enum { CODINGS = sizeof codings / sizeof codings[0], GUIDS_MAX = 32 };

struct nvenc {
    NvencFunctions *loaded;
    NV_ENCODE_API_FUNCTION_LIST f;
    void *session;
};

static void nvenc_close(struct nvenc *n)
{
    if (n->session)
        n->f.nvEncDestroyEncoder(n->session);
    nvenc_free_functions(&n->loaded);
}

/* Why no session opens, "" when one is open; the caller frees. NULL: error. */
static char *nvenc_open(struct nvenc *n, CUcontext cuda, struct err *e)
{
    uint32_t version = 0;
    if (nvenc_load_functions(&n->loaded, NULL) < 0)
        return xstrdup("libnvidia-encode.so.1 cannot be loaded (" VIDEO_HINT ")");
    n->loaded->NvEncodeAPIGetMaxSupportedVersion(&version);
    if (version < (NVENCAPI_MAJOR_VERSION << 4 | NVENCAPI_MINOR_VERSION))
        return xasprintf("the driver's NVENC API is %u.%u and this program needs %d.%d; update the "
                         "driver",
                         version >> 4, version & 15, NVENCAPI_MAJOR_VERSION,
                         NVENCAPI_MINOR_VERSION);
    n->f.version = NV_ENCODE_API_FUNCTION_LIST_VER;
    NVENCSTATUS status = n->loaded->NvEncodeAPICreateInstance(&n->f);
    NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS open = {
        .version = NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS_VER,
        .deviceType = NV_ENC_DEVICE_TYPE_CUDA,
        .device = cuda,
        .apiVersion = NVENCAPI_VERSION,
    };
    if (status == NV_ENC_SUCCESS)
        status = n->f.nvEncOpenEncodeSessionEx(&open, &n->session);
    if (status != NV_ENC_SUCCESS)
        n->session = NULL;
    switch (status) {
    case NV_ENC_SUCCESS:
        return xstrdup("");
    case NV_ENC_ERR_NO_ENCODE_DEVICE:
    case NV_ENC_ERR_UNSUPPORTED_DEVICE:
        return xstrdup("this GPU has no encoder (NVENC: unsupported device)");
    case NV_ENC_ERR_OUT_OF_MEMORY: /* so the driver says that its sessions are used up */
    case NV_ENC_ERR_INCOMPATIBLE_CLIENT_KEY:
        err_set(e, ERR_RESOURCE,
                "no NVENC session is left, or no memory for one (NVENC error %d); run fewer "
                "sessions on this GPU",
                (int)status);
        return NULL;
    default:
        return xasprintf("no NVENC session opens (NVENC error %d)", (int)status);
    }
}

static int capability(const struct nvenc *n, GUID guid, NV_ENC_CAPS which)
{
    NV_ENC_CAPS_PARAM param = {.version = NV_ENC_CAPS_PARAM_VER, .capsToQuery = which};
    int value = 0;
    return n->f.nvEncGetEncodeCaps(n->session, guid, &param, &value) == NV_ENC_SUCCESS ? value : 0;
}

static void ask_encoder(const struct nvenc *n, GUID guid, struct route_encoder *enc)
{
    enc->min_width = capability(n, guid, NV_ENC_CAPS_WIDTH_MIN);
    enc->min_height = capability(n, guid, NV_ENC_CAPS_HEIGHT_MIN);
    enc->max_width = capability(n, guid, NV_ENC_CAPS_WIDTH_MAX);
    enc->max_height = capability(n, guid, NV_ENC_CAPS_HEIGHT_MAX);
    enc->max_b_frames = capability(n, guid, NV_ENC_CAPS_NUM_MAX_BFRAMES);
    enc->has_10_bit = capability(n, guid, NV_ENC_CAPS_SUPPORT_10BIT_ENCODE) > 0;
    enc->has_b_references = capability(n, guid, NV_ENC_CAPS_SUPPORT_BFRAME_REF_MODE) > 0;
}

static bool has_coding(const struct nvenc *n, GUID guid)
{
    GUID guids[GUIDS_MAX];
    uint32_t count = 0;
    if (n->f.nvEncGetEncodeGUIDs(n->session, guids, GUIDS_MAX, &count) != NV_ENC_SUCCESS)
        return false;
    for (uint32_t i = 0; i < count && i < GUIDS_MAX; i++)
        if (!memcmp(&guids[i], &guid, sizeof guid))
            return true;
    return false;
}

static int find_encoders(CUcontext cuda, struct route_gpu *gpu, struct err *e)
{
    struct nvenc n = {0};
    cleanup(free_ptr) char *why = nvenc_open(&n, cuda, e);
    gpu->n_encoders = why ? CODINGS : 0;
    gpu->encoders = xcalloc(CODINGS, sizeof *gpu->encoders);
    for (size_t i = 0; i < gpu->n_encoders; i++) {
        struct route_encoder *enc = &gpu->encoders[i];
        enc->name = xstrdup(codings[i].name);
        enc->stands_for = xstrdup(codings[i].stands_for);
        if (*why)
            enc->missing = xstrdup(why);
        else if (!has_coding(&n, codings[i].guid))
            enc->missing = xstrdup("this GPU does not encode that codec");
        else if (!avcodec_find_encoder_by_name(enc->name))
            enc->missing = xstrdup("this libavcodec has no such encoder");
        else
            ask_encoder(&n, codings[i].guid, enc);
    }
    nvenc_close(&n);
    return why ? 0 : -(int)e->kind;
}

/* ---- the whole ---- */

static int find_model(const CudaFunctions *f, struct route_gpu *gpu, struct err *e)
{
    char name[128] = "";
    CUdevice device;
    CUresult r = f->cuCtxGetDevice(&device);
    if (r == CUDA_SUCCESS)
        r = f->cuDeviceGetName(name, sizeof name, device);
    gpu->model = xstrdup(name);
    return r == CUDA_SUCCESS
               ? 0
               : err_set(e, ERR_DEVICE, "the driver does not name the GPU (CUDA error %d)", (int)r);
}

static void find_kernels(struct route_gpu *gpu)
{
    const char *ptx;
    struct err why;
    if (ptx_find("tonemap", &ptx, &why) < 0)
        gpu->no_kernels = xstrdup(why.msg);
}

static void free_gpu(struct route_gpu **gpu)
{
    bind_free(&route_gpu_type, gpu);
}

int device_cuda_gpu(AVBufferRef *context, const char *name, struct route_gpu **ret, struct err *e)
{
    cleanup(free_gpu) struct route_gpu *gpu = xcalloc(1, sizeof *gpu);
    CudaFunctions *f = NULL;
    CUcontext popped;
    gpu->device = xstrdup(name);
    if (cuda_load_functions(&f, NULL) < 0)
        return err_set(e, ERR_DEVICE, "libcuda.so.1 cannot be loaded");
    int status = f->cuCtxPushCurrent(cuda_of(context)->cuda_ctx) == CUDA_SUCCESS
                     ? find_model(f, gpu, e)
                     : err_set(e, ERR_DEVICE, "the driver's context is dead");
    if (status == 0) {
        find_kernels(gpu);
        find_decoders(gpu);
        status = find_encoders(cuda_of(context)->cuda_ctx, gpu, e);
        f->cuCtxPopCurrent(&popped);
    }
    cuda_free_functions(&f);
    if (status == 0)
        *ret = take(gpu);
    return status;
}

void device_cuda_preload(void)
{
    static const char *const libraries[] = {"libnvcuvid.so.1", "libnvidia-encode.so.1",
                                            "libnvidia-ptxjitcompiler.so.1"};
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        dlopen(libraries[i], RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
}
