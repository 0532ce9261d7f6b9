/* Entry points that the loader wants to find and that are not modelled: NVIDIA's own demultiplexer
 * and parser (FFmpeg's *_cuvid decoders; its hwaccels parse for themselves). Each says so. */
#include <ffnvcodec/dynlink_cuda.h>
#include <ffnvcodec/dynlink_cuviddec.h>
#include <ffnvcodec/dynlink_nvcuvid.h>

#include "tests/simgpu/call.h"

tcuvidCreateVideoSource cuvidCreateVideoSource;
tcuvidCreateVideoSourceW cuvidCreateVideoSourceW;
tcuvidDestroyVideoSource cuvidDestroyVideoSource;
tcuvidSetVideoSourceState cuvidSetVideoSourceState;
tcuvidGetVideoSourceState cuvidGetVideoSourceState;
tcuvidGetSourceVideoFormat cuvidGetSourceVideoFormat;
tcuvidGetSourceAudioFormat cuvidGetSourceAudioFormat;
tcuvidCreateVideoParser cuvidCreateVideoParser;
tcuvidParseVideoData cuvidParseVideoData;
tcuvidDestroyVideoParser cuvidDestroyVideoParser;

static CUresult absent(const char *entry_point)
{
    CUresult rc = sim_call(entry_point, SIM_WORK);
    return rc ? rc : SIM_ERR_NOT_SUPPORTED;
}

CUresult cuvidCreateVideoSource(CUvideosource *ret, const char *name, CUVIDSOURCEPARAMS *params)
{
    (void)ret, (void)name, (void)params;
    return absent(__func__);
}

CUresult cuvidCreateVideoSourceW(CUvideosource *ret, const wchar_t *name, CUVIDSOURCEPARAMS *params)
{
    (void)ret, (void)name, (void)params;
    return absent(__func__);
}

CUresult cuvidDestroyVideoSource(CUvideosource source)
{
    (void)source;
    return absent(__func__);
}

CUresult cuvidSetVideoSourceState(CUvideosource source, cudaVideoState state)
{
    (void)source, (void)state;
    return absent(__func__);
}

cudaVideoState cuvidGetVideoSourceState(CUvideosource source)
{
    (void)source;
    absent(__func__);
    return cudaVideoState_Error;
}

CUresult cuvidGetSourceVideoFormat(CUvideosource source, CUVIDEOFORMAT *ret, unsigned flags)
{
    (void)source, (void)ret, (void)flags;
    return absent(__func__);
}

CUresult cuvidGetSourceAudioFormat(CUvideosource source, CUAUDIOFORMAT *ret, unsigned flags)
{
    (void)source, (void)ret, (void)flags;
    return absent(__func__);
}

CUresult cuvidCreateVideoParser(CUvideoparser *ret, CUVIDPARSERPARAMS *params)
{
    (void)ret, (void)params;
    return absent(__func__);
}

CUresult cuvidParseVideoData(CUvideoparser parser, CUVIDSOURCEDATAPACKET *packet)
{
    (void)parser, (void)packet;
    return absent(__func__);
}

CUresult cuvidDestroyVideoParser(CUvideoparser parser)
{
    (void)parser;
    return absent(__func__);
}
