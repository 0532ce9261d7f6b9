/*
 * Pictures that go into NVENC: input buffers in system memory and registered CUDA device memory,
 * mapped for use. All formats have their planes one after the other: NV12 and P010 as luma rows and
 * rows of chroma pairs of the same pitch; YV12 and IYUV as luma and two chroma planes of half the
 * pitch, V or U first.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/memory.h"
#include "tests/simgpu/nvenc_session.h"
#include "tests/simgpu/stats.h"

enum { PITCH_ALIGN = 256 };

static int bytes_per_sample(NV_ENC_BUFFER_FORMAT format)
{
    switch (format) {
    case NV_ENC_BUFFER_FORMAT_NV12:
    case NV_ENC_BUFFER_FORMAT_YV12:
    case NV_ENC_BUFFER_FORMAT_IYUV:
        return 1;
    case NV_ENC_BUFFER_FORMAT_YUV420_10BIT:
        return 2;
    default:
        return 0; /* not one that the simulator takes */
    }
}

static size_t rows_of(const struct nvenc_surface *s)
{
    return (size_t)s->height + s->height / 2;
}

/* The picture's bytes for the CPU; NULL when the device memory is not there (any more). */
static const uint8_t *bytes_of(const struct nvenc_surface *s)
{
    if (!s->is_registered)
        return s->bytes;
    size_t width = (size_t)s->width * bytes_per_sample(s->format);
    if (s->format == NV_ENC_BUFFER_FORMAT_YV12 || s->format == NV_ENC_BUFFER_FORMAT_IYUV)
        return sim_mem_range(s->device, (size_t)s->pitch * rows_of(s) - (s->pitch - s->width) / 2);
    return sim_mem_rows(s->device, s->pitch, width, rows_of(s));
}

static struct nvenc_surface *find(struct nvenc_session *s, const void *handle, bool is_registered)
{
    struct nvenc_surface *at = s->surfaces;
    while (at && (at != handle || at->is_registered != is_registered))
        at = at->next;
    return at;
}

static struct nvenc_surface *find_mapped(struct nvenc_session *s, const void *handle)
{
    struct nvenc_surface *at = s->surfaces;
    while (at && (&at->mapping != handle || !at->is_mapped))
        at = at->next;
    return at;
}

struct nvenc_surface *nvenc_surface_input(struct nvenc_session *s, const void *handle)
{
    struct nvenc_surface *surface = find(s, handle, false);
    return surface ? surface : find_mapped(s, handle);
}

void nvenc_surface_free(struct nvenc_surface *surface)
{
    free(surface->bytes);
    free(surface);
}

static void unlink_surface(struct nvenc_session *s, struct nvenc_surface *surface)
{
    struct nvenc_surface **at = &s->surfaces;
    while (*at != surface)
        at = &(*at)->next;
    *at = surface->next;
    nvenc_surface_free(surface);
}

static struct nvenc_surface *add(struct nvenc_session *s, struct nvenc_surface surface)
{
    struct nvenc_surface *copy = malloc(sizeof *copy);
    if (!copy)
        sim_die("no memory for a surface");
    *copy = surface;
    copy->next = s->surfaces;
    s->surfaces = copy;
    return copy;
}

size_t nvenc_picture_bytes(int width, int height, int depth)
{
    return (size_t)width * height * 3 / 2 * (depth > 8 ? 2 : 1);
}

/* Copies `n` samples that are `step` apart. P010 has its bits on top, we have them below. */
static void copy_row(const uint8_t *in, int in_bytes, int step, uint8_t *out, int depth, int n)
{
    if (in_bytes == 1 && depth == 8) {
        for (int i = 0; i < n; i++)
            out[i] = in[i * step];
    } else {
        for (int i = 0; i < n; i++) {
            unsigned value = in_bytes == 1 ? in[i * step] << 8 : ((const uint16_t *)in)[i * step];
            if (depth == 8)
                out[i] = (uint8_t)(value >> 8);
            else
                ((uint16_t *)out)[i] = (uint16_t)(value >> (16 - depth));
        }
    }
}

/* Where a surface has a plane: its first sample, bytes from row to row, samples from one to the
 * next. */
struct plane {
    const uint8_t *data;
    int pitch, step;
};

static struct plane plane_of(const struct nvenc_surface *s, const uint8_t *bytes, int plane)
{
    const uint8_t *chroma = bytes + (size_t)s->pitch * s->height;
    if (plane == 0)
        return (struct plane){bytes, s->pitch, 1};
    if (s->format == NV_ENC_BUFFER_FORMAT_NV12 || s->format == NV_ENC_BUFFER_FORMAT_YUV420_10BIT)
        return (struct plane){chroma + (plane - 1) * bytes_per_sample(s->format), s->pitch, 2};
    bool is_second = (plane == 2) == (s->format == NV_ENC_BUFFER_FORMAT_IYUV);
    size_t size = (size_t)s->pitch / 2 * (s->height / 2);
    return (struct plane){chroma + (is_second ? size : 0), s->pitch / 2, 1};
}

bool nvenc_surface_read(const struct nvenc_surface *in, int width, int height, int depth,
                        uint8_t *room, struct nvenc_picture *ret)
{
    const uint8_t *bytes = bytes_of(in);
    if (!bytes || in->width < width || in->height < height)
        return false;
    for (int i = 0; i < 3; i++) {
        struct plane plane = plane_of(in, bytes, i);
        int w = i ? width / 2 : width, h = i ? height / 2 : height;
        ret->planes[i] = room;
        ret->strides[i] = w * (depth > 8 ? 2 : 1);
        for (int y = 0; y < h; y++, room += ret->strides[i])
            copy_row(plane.data + (size_t)y * plane.pitch, bytes_per_sample(in->format), plane.step,
                     room, depth, w);
    }
    return true;
}

NVENCSTATUS nvEncCreateInputBuffer(void *encoder, NV_ENC_CREATE_INPUT_BUFFER *params)
{
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter_ready(__func__, SIM_WORK, encoder, &s);
    if (status)
        return status;
    struct nvenc_surface surface = {
        .format = params->bufferFmt, .width = (int)params->width, .height = (int)params->height};
    int sample = bytes_per_sample(surface.format);
    if (!sample)
        return nvenc_leave(s, NV_ENC_ERR_UNSUPPORTED_PARAM, "buffer format not supported");
    surface.pitch = (surface.width * sample + PITCH_ALIGN - 1) / PITCH_ALIGN * PITCH_ALIGN;
    surface.bytes = calloc(rows_of(&surface), surface.pitch);
    if (!surface.bytes)
        return nvenc_leave(s, NV_ENC_ERR_OUT_OF_MEMORY, "no memory for an input buffer");
    params->inputBuffer = add(s, surface);
    sim_stats_add(SIM_LIVE, "encoder_input", 1);
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}

NVENCSTATUS nvEncDestroyInputBuffer(void *encoder, NV_ENC_INPUT_PTR buffer)
{
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter(__func__, SIM_CLOSE, encoder, &s);
    if (status)
        return status;
    struct nvenc_surface *surface = find(s, buffer, false);
    if (!surface)
        return nvenc_leave(s, NV_ENC_ERR_INVALID_PARAM, "no such input buffer");
    unlink_surface(s, surface);
    sim_stats_add(SIM_LIVE, "encoder_input", -1);
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}

NVENCSTATUS nvEncLockInputBuffer(void *encoder, NV_ENC_LOCK_INPUT_BUFFER *params)
{
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter(__func__, SIM_WORK, encoder, &s);
    if (status)
        return status;
    struct nvenc_surface *surface = find(s, params->inputBuffer, false);
    if (!surface || surface->is_locked)
        return nvenc_leave(s, NV_ENC_ERR_INVALID_PARAM, "no such input buffer, or it is locked");
    surface->is_locked = true;
    params->bufferDataPtr = surface->bytes;
    params->pitch = (uint32_t)surface->pitch;
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}

/* From here on the picture is the engine's: it crosses the bus. */
NVENCSTATUS nvEncUnlockInputBuffer(void *encoder, NV_ENC_INPUT_PTR buffer)
{
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter(__func__, SIM_WORK, encoder, &s);
    if (status)
        return status;
    struct nvenc_surface *surface = find(s, buffer, false);
    if (!surface || !surface->is_locked)
        return nvenc_leave(s, NV_ENC_ERR_INVALID_PARAM, "no such locked input buffer");
    surface->is_locked = false;
    sim_stats_add(SIM_COUNTERS, "htod_bytes",
                  (int64_t)(surface->width * bytes_per_sample(surface->format) * rows_of(surface)));
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}

NVENCSTATUS nvEncRegisterResource(void *encoder, NV_ENC_REGISTER_RESOURCE *params)
{
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter_ready(__func__, SIM_WORK, encoder, &s);
    if (status)
        return status;
    struct nvenc_surface surface = {.format = params->bufferFormat,
                                    .width = (int)params->width,
                                    .height = (int)params->height,
                                    .pitch = (int)params->pitch,
                                    .is_registered = true,
                                    .device = (CUdeviceptr)(uintptr_t)params->resourceToRegister};
    if (params->resourceType != NV_ENC_INPUT_RESOURCE_TYPE_CUDADEVICEPTR ||
        !bytes_per_sample(surface.format))
        return nvenc_leave(s, NV_ENC_ERR_UNSUPPORTED_PARAM, "only CUDA device memory, 4:2:0");
    if (sim_mem_device(surface.device) != s->device || !bytes_of(&surface))
        return nvenc_leave(s, NV_ENC_ERR_RESOURCE_REGISTER_FAILED,
                           "not a picture in this device's memory");
    params->registeredResource = add(s, surface);
    sim_stats_add(SIM_LIVE, "encoder_resource", 1);
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}

NVENCSTATUS nvEncUnregisterResource(void *encoder, NV_ENC_REGISTERED_PTR resource)
{
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter(__func__, SIM_CLOSE, encoder, &s);
    if (status)
        return status;
    struct nvenc_surface *surface = find(s, resource, true);
    if (!surface)
        return nvenc_leave(s, NV_ENC_ERR_RESOURCE_NOT_REGISTERED, "no such resource");
    if (surface->is_mapped)
        return nvenc_leave(s, NV_ENC_ERR_INVALID_CALL, "the resource is still mapped");
    unlink_surface(s, surface);
    sim_stats_add(SIM_LIVE, "encoder_resource", -1);
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}

NVENCSTATUS nvEncMapInputResource(void *encoder, NV_ENC_MAP_INPUT_RESOURCE *params)
{
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter(__func__, SIM_WORK, encoder, &s);
    if (status)
        return status;
    struct nvenc_surface *surface = find(s, params->registeredResource, true);
    if (!surface)
        return nvenc_leave(s, NV_ENC_ERR_RESOURCE_NOT_REGISTERED, "no such resource");
    if (surface->is_mapped)
        return nvenc_leave(s, NV_ENC_ERR_MAP_FAILED, "the resource is mapped already");
    surface->is_mapped = true;
    params->mappedResource = &surface->mapping;
    params->mappedBufferFmt = surface->format;
    sim_stats_add(SIM_LIVE, "encoder_mapping", 1);
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}

NVENCSTATUS nvEncUnmapInputResource(void *encoder, NV_ENC_INPUT_PTR mapped)
{
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter(__func__, SIM_CLOSE, encoder, &s);
    if (status)
        return status;
    struct nvenc_surface *surface = find_mapped(s, mapped);
    if (!surface)
        return nvenc_leave(s, NV_ENC_ERR_RESOURCE_NOT_MAPPED, "the resource is not mapped");
    surface->is_mapped = false;
    sim_stats_add(SIM_LIVE, "encoder_mapping", -1);
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}
