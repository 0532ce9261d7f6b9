/*
 * NVDEC: decoders. A picture is written as a stream of its own (nvdec_codec.h) and given to a
 * software decoder, which keeps the reference pictures. The result is not what that decoder puts
 * out, in display order, but the buffer it asked for while it had this picture: that one belongs to
 * CurrPicIdx. A second field finds its picture there already.
 *
 * Decoding is done in cuvidDecodePicture; the modelled engine takes its time, and
 * cuvidMapVideoFrame waits for it. Mapped surfaces are device memory and as many as were asked for;
 * decode surfaces are booked as device memory and lie in the software decoder's buffers.
 */
#include "tests/simgpu/nvdec.h"

#include <libavcodec/avcodec.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/call.h"
#include "tests/simgpu/context.h"
#include "tests/simgpu/engine.h"
#include "tests/simgpu/memory.h"
#include "tests/simgpu/nvdec_codec.h"
#include "tests/simgpu/stats.h"

tcuvidCreateDecoder cuvidCreateDecoder;
tcuvidDestroyDecoder cuvidDestroyDecoder;
tcuvidDecodePicture cuvidDecodePicture;
tcuvidGetDecodeStatus cuvidGetDecodeStatus;
tcuvidReconfigureDecoder cuvidReconfigureDecoder;
tcuvidMapVideoFrame64 cuvidMapVideoFrame64;
tcuvidUnmapVideoFrame64 cuvidUnmapVideoFrame64;

enum { SURFACES_MAX = 32, OUTPUTS_MAX = 64, PITCH = 512 };

struct surface {
    AVFrame *frame; /* without buffers: nothing has been decoded into it */
    cuvidDecodeStatus status;
    int64_t done_ns;
};

struct output {
    CUdeviceptr memory;
    bool is_mapped;
};

struct decoder {
    struct decoder *next;
    pthread_mutex_t lock;
    int device;
    const struct nvdec_codec *codec;
    struct nvdec_stream stream;
    AVCodecContext *software;
    AVFrame *shown; /* what the software decoder puts out; not used */
    struct surface surfaces[SURFACES_MAX];
    unsigned surface_count, output_count, width, height; /* of a mapped picture */
    struct output outputs[OUTPUTS_MAX];
    size_t pitch;
    bool is_deep; /* two bytes a sample */
    int64_t booked_bytes;
    int current; /* the surface being decoded, -1: none */
    struct sim_lane lane;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct decoder *live;

static struct decoder *find(CUvideodecoder handle)
{
    pthread_mutex_lock(&lock);
    struct decoder *d = live;
    while (d && d != handle)
        d = d->next;
    pthread_mutex_unlock(&lock);
    return d;
}

CUresult nvdec_enter(const char *entry_point, enum sim_call_class class)
{
    CUresult rc = sim_call(entry_point, class);
    return rc || sim_context_current_device() >= 0 ? rc : SIM_ERR_INVALID_CONTEXT;
}

/* nvdec_enter, and the decoder. */
static CUresult enter(const char *entry_point, enum sim_call_class class, CUvideodecoder handle,
                      struct decoder **ret)
{
    CUresult rc = nvdec_enter(entry_point, class);
    *ret = rc ? NULL : find(handle);
    return rc || *ret ? rc : SIM_ERR_INVALID_HANDLE;
}

/* The software decoder wants a buffer: for the current picture, or for one that it makes up. */
static int give_buffer(AVCodecContext *av, AVFrame *frame, int flags)
{
    struct decoder *d = av->opaque;
    int rc = avcodec_default_get_buffer2(av, frame, flags);
    if (rc < 0 || d->current < 0)
        return rc;
    struct surface *s = &d->surfaces[d->current];
    if (s->frame->buf[0] && !d->codec->is_last_buffer)
        return rc;
    av_frame_unref(s->frame);
    return av_frame_ref(s->frame, frame);
}

static CUresult open_software(struct decoder *d)
{
    const AVCodec *codec = avcodec_find_decoder(d->codec->software);
    d->software = codec ? avcodec_alloc_context3(codec) : NULL;
    d->shown = av_frame_alloc();
    if (!d->software || !d->shown)
        return SIM_ERR_NOT_SUPPORTED;
    d->software->opaque = d;
    d->software->get_buffer2 = give_buffer;
    d->software->thread_count = 1;
    d->software->thread_type = 0;
    d->software->apply_cropping = 0;
    d->software->width = (int)d->stream.width;
    d->software->height = (int)d->stream.height;
    return avcodec_open2(d->software, codec, NULL) < 0 ? SIM_ERR_NOT_SUPPORTED : CUDA_SUCCESS;
}

/* Bytes of a picture in 4:2:0, rows `pitch` apart. */
static size_t picture_bytes(const struct decoder *d)
{
    return d->pitch * (d->height + d->height / 2);
}

static CUresult take_memory(struct decoder *d)
{
    d->booked_bytes = (int64_t)(picture_bytes(d) * d->surface_count);
    CUresult rc = sim_mem_book(d->device, d->booked_bytes);
    if (rc)
        d->booked_bytes = 0;
    for (unsigned i = 0; i < d->output_count && !rc; i++)
        rc = sim_mem_alloc(d->device, picture_bytes(d), &d->outputs[i].memory);
    for (unsigned i = 0; i < d->surface_count && !rc; i++)
        if (!(d->surfaces[i].frame = av_frame_alloc()))
            sim_die("out of memory");
    return rc;
}

static void free_decoder(struct decoder *d)
{
    avcodec_free_context(&d->software);
    av_frame_free(&d->shown);
    for (unsigned i = 0; i < SURFACES_MAX; i++)
        av_frame_free(&d->surfaces[i].frame);
    for (unsigned i = 0; i < OUTPUTS_MAX; i++) {
        if (d->outputs[i].memory)
            sim_mem_free(d->outputs[i].memory);
        sim_stats_add(SIM_LIVE, "mapped_frame", -d->outputs[i].is_mapped);
    }
    sim_mem_book(d->device, -d->booked_bytes);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* Scaling and cropping in the decoder are not modelled: what comes out is what is coded, the sizes
 * rounded up to even ones. */
static CUresult check_create(const CUVIDDECODECREATEINFO *info)
{
    const CUVIDDECODECREATEINFO *i = info;
    bool is_output_nv12 = i->OutputFormat == cudaVideoSurfaceFormat_NV12 ||
                          i->OutputFormat == cudaVideoSurfaceFormat_P016;
    bool is_whole = i->ulTargetWidth >= i->ulWidth && i->ulTargetWidth <= i->ulWidth + 1 &&
                    i->ulTargetHeight >= i->ulHeight && i->ulTargetHeight <= i->ulHeight + 1;
    if (i->ulNumDecodeSurfaces == 0 || i->ulNumDecodeSurfaces > SURFACES_MAX ||
        i->ulNumOutputSurfaces == 0 || i->ulNumOutputSurfaces > OUTPUTS_MAX)
        return SIM_ERR_INVALID_VALUE;
    if (!is_output_nv12 || !is_whole || i->DeinterlaceMode != cudaVideoDeinterlaceMode_Weave)
        return SIM_ERR_NOT_SUPPORTED;
    CUVIDDECODECAPS caps = {.eCodecType = i->CodecType,
                            .eChromaFormat = i->ChromaFormat,
                            .nBitDepthMinus8 = (unsigned)i->bitDepthMinus8};
    return nvdec_is_supported(sim_context_current_device(), &caps, (unsigned)i->ulWidth,
                              (unsigned)i->ulHeight)
               ? CUDA_SUCCESS
               : SIM_ERR_NOT_SUPPORTED;
}

static struct decoder *new_decoder(const CUVIDDECODECREATEINFO *info)
{
    struct decoder *d = calloc(1, sizeof *d);
    if (!d)
        sim_die("out of memory");
    pthread_mutex_init(&d->lock, NULL);
    d->device = sim_context_current_device();
    d->codec = nvdec_codec_find(info->CodecType);
    d->stream = (struct nvdec_stream){(unsigned)info->ulWidth, (unsigned)info->ulHeight,
                                      (int)info->ChromaFormat};
    d->surface_count = (unsigned)info->ulNumDecodeSurfaces;
    d->output_count = (unsigned)info->ulNumOutputSurfaces;
    d->width = (unsigned)(info->ulTargetWidth + 1) & ~1u;
    d->height = (unsigned)(info->ulTargetHeight + 1) & ~1u;
    d->is_deep = info->OutputFormat == cudaVideoSurfaceFormat_P016;
    d->pitch = (d->width * (d->is_deep ? 2 : 1) + PITCH - 1) / PITCH * PITCH;
    d->current = -1;
    return d;
}

CUresult cuvidCreateDecoder(CUvideodecoder *ret, CUVIDDECODECREATEINFO *info)
{
    CUresult rc = nvdec_enter(__func__, SIM_WORK);
    if (!rc)
        rc = check_create(info);
    if (rc)
        return rc;
    struct decoder *d = new_decoder(info);
    rc = open_software(d);
    if (!rc)
        rc = take_memory(d);
    if (rc) {
        free_decoder(d);
        return rc;
    }
    pthread_mutex_lock(&lock);
    d->next = live;
    live = d;
    pthread_mutex_unlock(&lock);
    sim_stats_add(SIM_LIVE, "decoder", 1);
    *ret = d;
    return CUDA_SUCCESS;
}

CUresult cuvidDestroyDecoder(CUvideodecoder handle)
{
    CUresult rc = nvdec_enter(__func__, SIM_CLOSE);
    if (rc)
        return rc;
    pthread_mutex_lock(&lock);
    struct decoder **at = &live;
    while (*at && *at != handle)
        at = &(*at)->next;
    struct decoder *d = *at;
    if (d)
        *at = d->next;
    pthread_mutex_unlock(&lock);
    if (!d)
        return SIM_ERR_INVALID_HANDLE;
    free_decoder(d);
    sim_stats_add(SIM_LIVE, "decoder", -1);
    return CUDA_SUCCESS;
}

/* Gives the stream to the software decoder and throws away what it puts out. */
static bool decode(struct decoder *d, const struct bits *stream)
{
    AVPacket *packet = av_packet_alloc();
    if (!packet || av_new_packet(packet, (int)(stream->count / 8)) < 0)
        sim_die("out of memory");
    memcpy(packet->data, stream->data, stream->count / 8);
    int rc = avcodec_send_packet(d->software, packet);
    av_packet_free(&packet);
    while (rc >= 0)
        rc = avcodec_receive_frame(d->software, d->shown);
    return rc == AVERROR(EAGAIN);
}

static CUresult decode_picture(struct decoder *d, const CUVIDPICPARAMS *p)
{
    struct surface *s = &d->surfaces[p->CurrPicIdx];
    struct bits stream = {0};
    if (d->codec->is_restart && d->codec->is_restart(p))
        avcodec_flush_buffers(d->software);
    if (!p->second_field) {
        av_frame_unref(s->frame);
        sim_stats_add(SIM_COUNTERS, "frames_decoded", 1);
    }
    bool is_writable = d->codec->write(&d->stream, p, &stream);
    d->current = p->second_field && s->frame->buf[0] ? -1 : p->CurrPicIdx;
    bool is_decoded = is_writable && decode(d, &stream) && s->frame->buf[0];
    d->current = -1;
    bits_free(&stream);
    s->status = is_decoded ? cuvidDecodeStatus_Success : cuvidDecodeStatus_Error;
    s->done_ns = sim_engine_submit(
        SIM_NVDEC, d->device,
        (int64_t)d->stream.width * d->stream.height / (p->field_pic_flag ? 2 : 1), &d->lane);
    return is_writable ? CUDA_SUCCESS : SIM_ERR_NOT_SUPPORTED;
}

CUresult cuvidDecodePicture(CUvideodecoder handle, CUVIDPICPARAMS *p)
{
    struct decoder *d;
    CUresult rc = enter(__func__, SIM_WORK, handle, &d);
    if (rc)
        return rc;
    if (p->CurrPicIdx < 0 || (unsigned)p->CurrPicIdx >= d->surface_count || !p->nBitstreamDataLen)
        return SIM_ERR_INVALID_VALUE;
    pthread_mutex_lock(&d->lock);
    rc = decode_picture(d, p);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

CUresult cuvidGetDecodeStatus(CUvideodecoder handle, int index, CUVIDGETDECODESTATUS *ret)
{
    struct decoder *d;
    CUresult rc = enter(__func__, SIM_WORK, handle, &d);
    if (rc)
        return rc;
    if (index < 0 || (unsigned)index >= d->surface_count)
        return SIM_ERR_INVALID_VALUE;
    pthread_mutex_lock(&d->lock);
    ret->decodeStatus = d->surfaces[index].status;
    pthread_mutex_unlock(&d->lock);
    return CUDA_SUCCESS;
}

CUresult cuvidReconfigureDecoder(CUvideodecoder handle, CUVIDRECONFIGUREDECODERINFO *info)
{
    (void)info;
    struct decoder *d;
    CUresult rc = enter(__func__, SIM_WORK, handle, &d);
    return rc ? rc : SIM_ERR_NOT_SUPPORTED;
}

static CUresult map_surface(struct decoder *d, const struct surface *s, struct output **ret)
{
    unsigned i = 0;
    while (i < d->output_count && d->outputs[i].is_mapped)
        i++;
    if (i == d->output_count)
        return SIM_ERR_MAP_FAILED;
    struct nvdec_picture picture = {
        .data = sim_mem_range(d->outputs[i].memory, picture_bytes(d)),
        .pitch = d->pitch,
        .width = d->width,
        .height = d->height,
        .is_deep = d->is_deep,
    };
    nvdec_picture_fill(&picture, s->frame);
    d->outputs[i].is_mapped = true;
    *ret = &d->outputs[i];
    return CUDA_SUCCESS;
}

CUresult cuvidMapVideoFrame64(CUvideodecoder handle, int index, unsigned long long *ret,
                              unsigned *ret_pitch, CUVIDPROCPARAMS *params)
{
    (void)params;
    struct decoder *d;
    struct output *output;
    CUresult rc = enter(__func__, SIM_WORK, handle, &d);
    if (rc)
        return rc;
    if (index < 0 || (unsigned)index >= d->surface_count)
        return SIM_ERR_INVALID_VALUE;
    pthread_mutex_lock(&d->lock);
    int64_t done_ns = d->surfaces[index].done_ns;
    rc = map_surface(d, &d->surfaces[index], &output);
    if (!rc) {
        *ret = output->memory;
        *ret_pitch = (unsigned)d->pitch;
    }
    pthread_mutex_unlock(&d->lock);
    if (rc)
        return rc;
    sim_stats_add(SIM_COUNTERS, "frames_mapped", 1);
    sim_stats_add(SIM_LIVE, "mapped_frame", 1);
    sim_engine_wait(done_ns);
    return CUDA_SUCCESS;
}

CUresult cuvidUnmapVideoFrame64(CUvideodecoder handle, unsigned long long pointer)
{
    struct decoder *d;
    CUresult rc = enter(__func__, SIM_CLOSE, handle, &d);
    if (rc)
        return rc;
    bool is_mapped = false;
    pthread_mutex_lock(&d->lock);
    for (unsigned i = 0; i < d->output_count; i++)
        if (d->outputs[i].memory == pointer && d->outputs[i].is_mapped) {
            d->outputs[i].is_mapped = false;
            is_mapped = true;
        }
    pthread_mutex_unlock(&d->lock);
    if (!is_mapped)
        return SIM_ERR_INVALID_VALUE;
    sim_stats_add(SIM_LIVE, "mapped_frame", -1);
    return CUDA_SUCCESS;
}
