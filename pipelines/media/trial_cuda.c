#include "pipelines/media/trial_cuda.h"

#include <ffnvcodec/dynlink_loader.h>
#include <libavutil/hwcontext.h>
#include <libavutil/hwcontext_cuda.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"

static const struct {
    const char *codec;
    cudaVideoCodec id;
    int bits;
} streams[] = {
    {"mpeg2video", cudaVideoCodec_MPEG2, 8}, {"mpeg4", cudaVideoCodec_MPEG4, 8},
    {"vc1", cudaVideoCodec_VC1, 8},          {"h264", cudaVideoCodec_H264, 8},
    {"h264", cudaVideoCodec_H264, 10},       {"hevc", cudaVideoCodec_HEVC, 8},
    {"hevc", cudaVideoCodec_HEVC, 10},       {"vp8", cudaVideoCodec_VP8, 8},
    {"vp9", cudaVideoCodec_VP9, 8},          {"vp9", cudaVideoCodec_VP9, 10},
    {"av1", cudaVideoCodec_AV1, 8},          {"av1", cudaVideoCodec_AV1, 10},
};

/* The oldest Linux driver of each NVENC API, by NVIDIA's release notes. */
static const struct {
    int api;
    const char *driver;
} drivers[] = {
    {0xb0, "455.28"},    {0xb1, "470.57.02"}, {0xc0, "520.56.06"},
    {0xc1, "530.41.03"}, {0xc2, "550.54.14"}, {0xd0, "570.0"},
};

/* What several functions need: the driver with the device's context current. */
struct current {
    CudaFunctions *f;
    CuvidFunctions *cuvid;
    NvencFunctions *nvenc;
    CUvideoctxlock lock;
    CUcontext context;
    bool is_pushed;
};

static void leave(struct current *c)
{
    CUcontext popped;
    if (c->lock)
        c->cuvid->cuvidCtxLockDestroy(c->lock);
    if (c->is_pushed)
        c->f->cuCtxPopCurrent(&popped);
    nvenc_free_functions(&c->nvenc);
    cuvid_free_functions(&c->cuvid);
    cuda_free_functions(&c->f);
}

static int fail(const CudaFunctions *f, CUresult r, const char *what, struct err *e)
{
    const char *name = NULL;
    f->cuGetErrorName(r, &name);
    return err_set(e, ERR_DEVICE, "%s: %s", what, name ? name : "unknown CUDA error");
}

static int enter(const struct device *device, struct current *c, struct err *e)
{
    const AVHWDeviceContext *hw = (const void *)device_context(device)->data;
    c->context = ((const AVCUDADeviceContext *)hw->hwctx)->cuda_ctx;
    if (cuda_load_functions(&c->f, NULL) < 0)
        return err_set(e, ERR_DEVICE, "libcuda.so.1 cannot be loaded");
    CUresult r = c->f->cuCtxPushCurrent(c->context);
    c->is_pushed = r == CUDA_SUCCESS;
    return c->is_pushed ? 0 : fail(c->f, r, "cuCtxPushCurrent", e);
}

/* ---- decoders ---- */

static int open_decoder(struct current *c, size_t stream, const CUVIDDECODECAPS *caps,
                        struct err *e)
{
    CUvideodecoder decoder;
    int width = caps->nMinWidth > 640 ? caps->nMinWidth : 640;
    int height = caps->nMinHeight > 368 ? caps->nMinHeight : 368;
    CUVIDDECODECREATEINFO info = {
        .ulWidth = (tcu_ulong)width,
        .ulHeight = (tcu_ulong)height,
        .ulTargetWidth = (tcu_ulong)width,
        .ulTargetHeight = (tcu_ulong)height,
        .ulNumDecodeSurfaces = 4,
        .ulNumOutputSurfaces = 1,
        .CodecType = streams[stream].id,
        .ChromaFormat = cudaVideoChromaFormat_420,
        .bitDepthMinus8 = (tcu_ulong)streams[stream].bits - 8,
        .OutputFormat =
            streams[stream].bits > 8 ? cudaVideoSurfaceFormat_P016 : cudaVideoSurfaceFormat_NV12,
        .DeinterlaceMode = cudaVideoDeinterlaceMode_Weave,
        .ulCreationFlags = cudaVideoCreate_PreferCUVID,
        .vidLock = c->lock,
    };
    CUresult r = c->cuvid->cuvidCreateDecoder(&decoder, &info);
    if (r != CUDA_SUCCESS)
        return fail(c->f, r, "cuvidCreateDecoder", e);
    c->cuvid->cuvidDestroyDecoder(decoder);
    return 0;
}

static int try_decoder(struct current *c, size_t stream, struct trial_engines *engines,
                       struct err *e)
{
    CUVIDDECODECAPS caps = {.eCodecType = streams[stream].id,
                            .eChromaFormat = cudaVideoChromaFormat_420,
                            .nBitDepthMinus8 = (unsigned)streams[stream].bits - 8};
    CUresult r =
        c->cuvid->cuvidGetDecoderCaps ? c->cuvid->cuvidGetDecoderCaps(&caps) : CUDA_SUCCESS;
    if (r != CUDA_SUCCESS)
        return fail(c->f, r, "cuvidGetDecoderCaps", e);
    if (c->cuvid->cuvidGetDecoderCaps && !caps.bIsSupported)
        return err_set(e, ERR_DEVICE, "this GPU does not decode it");
    if (caps.nNumNVDECs > engines->nvdec)
        engines->nvdec = caps.nNumNVDECs;
    return open_decoder(c, stream, &caps, e);
}

/* How many encode engines: asked of a session, which only a GPU that has one opens. */
static int count_nvenc(struct current *c)
{
    NV_ENCODE_API_FUNCTION_LIST f = {.version = NV_ENCODE_API_FUNCTION_LIST_VER};
    NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS open = {.version =
                                                     NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS_VER,
                                                 .deviceType = NV_ENC_DEVICE_TYPE_CUDA,
                                                 .device = c->context,
                                                 .apiVersion = NVENCAPI_VERSION};
    NV_ENC_CAPS_PARAM param = {.version = NV_ENC_CAPS_PARAM_VER,
                               .capsToQuery = NV_ENC_CAPS_NUM_ENCODER_ENGINES};
    void *session = NULL;
    int n = 0;
    if (nvenc_load_functions(&c->nvenc, NULL) < 0 ||
        c->nvenc->NvEncodeAPICreateInstance(&f) != NV_ENC_SUCCESS)
        return 0;
    bool is_open = f.nvEncOpenEncodeSessionEx(&open, &session) == NV_ENC_SUCCESS;
    if (is_open &&
        f.nvEncGetEncodeCaps(session, NV_ENC_CODEC_H264_GUID, &param, &n) != NV_ENC_SUCCESS)
        n = 0;
    if (session) /* which a refused one leaves behind, too */
        f.nvEncDestroyEncoder(session);
    return n;
}

size_t trial_cuda_decoders(const struct device *device, struct trial ret[TRIALS_MAX],
                           struct trial_engines *ret_engines)
{
    cleanup(leave) struct current c = {0};
    struct err broken = {0};
    int rc = enter(device, &c, &broken);
    if (rc == 0 && cuvid_load_functions(&c.cuvid, NULL) < 0)
        rc = err_set(&broken, ERR_DEVICE,
                     "libnvcuvid.so.1 cannot be loaded (in a container: "
                     "NVIDIA_DRIVER_CAPABILITIES must have video)");
    if (rc == 0 && c.cuvid->cuvidCtxLockCreate(&c.lock, c.context) != CUDA_SUCCESS)
        rc = err_set(&broken, ERR_DEVICE, "cuvidCtxLockCreate failed");
    size_t n = sizeof streams / sizeof *streams;
    for (size_t i = 0; i < n; i++) {
        struct err e = broken;
        int status = rc < 0 ? rc : try_decoder(&c, i, ret_engines, &e);
        ret[i] = (struct trial){
            .codec = streams[i].codec, .bits = streams[i].bits, .is_open = status == 0};
        snprintf(ret[i].reason, sizeof ret[i].reason, "%.*s", (int)sizeof ret[i].reason - 1, e.msg);
    }
    if (c.is_pushed)
        ret_engines->nvenc = count_nvenc(&c);
    return n;
}

/* ---- the driver ---- */

static int nvenc_api(void)
{
    NvencFunctions *nvenc = NULL;
    uint32_t version = 0;
    if (nvenc_load_functions(&nvenc, NULL) == 0 &&
        nvenc->NvEncodeAPIGetMaxSupportedVersion(&version) != NV_ENC_SUCCESS)
        version = 0;
    nvenc_free_functions(&nvenc);
    return (int)version;
}

int trial_driver(struct trial_driver *ret, struct err *e)
{
    CudaFunctions *f = NULL;
    *ret = (struct trial_driver){
        .nvenc_api_needed = NVENCAPI_MAJOR_VERSION << 4 | NVENCAPI_MINOR_VERSION,
        .driver_needed = "the newest",
    };
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (drivers[i].api == ret->nvenc_api_needed)
            ret->driver_needed = drivers[i].driver;
    ret->nvenc_api = nvenc_api();
    if (cuda_load_functions(&f, NULL) < 0)
        return err_set(e, ERR_DEVICE, "CUDA: libcuda.so.1 cannot be loaded");
    CUresult r = f->cuInit(0);
    int rc = r == CUDA_SUCCESS ? 0 : fail(f, r, "CUDA: cuInit", e);
    if (rc == 0 && (r = f->cuDeviceGetCount(&ret->cuda_devices)) != CUDA_SUCCESS)
        rc = fail(f, r, "CUDA: cuDeviceGetCount", e);
    cuda_free_functions(&f);
    return rc;
}

int trial_identity(const struct device *device, char ret_bus_id[32], char ret_compute[16],
                   struct err *e)
{
    static const CUdevice_attribute where[] = {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
                                               CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
                                               CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID};
    cleanup(leave) struct current c = {0};
    CUdevice cuda = 0;
    int major = 0, minor = 0, at[3] = {0};
    int rc = enter(device, &c, e);
    if (rc < 0)
        return rc;
    CUresult r = c.f->cuCtxGetDevice(&cuda);
    for (int i = 0; i < 3 && r == CUDA_SUCCESS; i++)
        r = c.f->cuDeviceGetAttribute(&at[i], where[i], cuda);
    if (r == CUDA_SUCCESS)
        r = c.f->cuDeviceComputeCapability(&major, &minor, cuda);
    if (r != CUDA_SUCCESS)
        return fail(c.f, r, "ask the GPU who it is", e);
    snprintf(ret_bus_id, 32, "%08X:%02X:%02X.0", (unsigned)at[0], (unsigned)at[1], (unsigned)at[2]);
    snprintf(ret_compute, 16, "%d.%d", major, minor);
    return 0;
}
