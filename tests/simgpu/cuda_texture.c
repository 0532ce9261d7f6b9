/* Texture objects over pitched device memory, and the texture unit's arithmetic. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/simgpu/cuda.h"
#include "tests/simgpu/kernel.h"
#include "tests/simgpu/memory.h"
#include "tests/simgpu/stats.h"

tcuTexObjectCreate cuTexObjectCreate;
tcuTexObjectDestroy cuTexObjectDestroy;

enum { TEXTURES_MAX = 4096, NORMALIZED_COORDINATES = 2 };

/* A texture object is its index here plus one. */
static struct {
    bool is_live;
    struct sim_texture texture;
} textures[TEXTURES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult describe(const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *d,
                         struct sim_texture *ret)
{
    static const int channel_bytes[] = {[CU_AD_FORMAT_UNSIGNED_INT8] = 1,
                                        [CU_AD_FORMAT_UNSIGNED_INT16] = 2,
                                        [CU_AD_FORMAT_FLOAT] = 4};
    if (r->resType != CU_RESOURCE_TYPE_PITCH2D)
        return SIM_ERR_NOT_SUPPORTED;
    CUarray_format format = r->res.pitch2D.format;
    int bytes = format <= CU_AD_FORMAT_FLOAT ? channel_bytes[format] : 0;
    int channels = (int)r->res.pitch2D.numChannels;
    if (bytes == 0)
        return SIM_ERR_NOT_SUPPORTED;
    if (channels != 1 && channels != 2 && channels != 4)
        return SIM_ERR_INVALID_VALUE;
    *ret = (struct sim_texture){
        .pitch_bytes = r->res.pitch2D.pitchInBytes,
        .width = (int)r->res.pitch2D.width,
        .height = (int)r->res.pitch2D.height,
        .channels = channels,
        .channel_bytes = bytes,
        .is_float = format == CU_AD_FORMAT_FLOAT,
        .is_integer = d->flags & CU_TRSF_READ_AS_INTEGER,
        .is_linear = d->filterMode == CU_TR_FILTER_MODE_LINEAR,
        .is_normalized = d->flags & NORMALIZED_COORDINATES,
        .address = {d->addressMode[0], d->addressMode[1]},
    };
    ret->data = sim_mem_rows(r->res.pitch2D.devPtr, ret->pitch_bytes,
                             (size_t)ret->width * channels * bytes, (size_t)ret->height);
    /* The card wants 32 byte pitches and 512 byte starts; FFmpeg's chroma planes have both. */
    bool is_aligned = ret->pitch_bytes % 32 == 0 && r->res.pitch2D.devPtr % 32 == 0;
    return ret->data && is_aligned ? CUDA_SUCCESS : SIM_ERR_INVALID_VALUE;
}

CUresult cuTexObjectCreate(CUtexObject *ret, const CUDA_RESOURCE_DESC *resource,
                           const CUDA_TEXTURE_DESC *description,
                           const CUDA_RESOURCE_VIEW_DESC *view)
{
    (void)view;
    struct sim_texture texture;
    CUresult rc = cuda_enter(__func__, SIM_WORK, CUDA_IN_CONTEXT);
    if (!rc)
        rc = describe(resource, description, &texture);
    if (rc)
        return rc;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < TEXTURES_MAX && textures[i].is_live)
        i++;
    if (i == TEXTURES_MAX)
        sim_die("more than %d texture objects", TEXTURES_MAX);
    textures[i].is_live = true;
    textures[i].texture = texture;
    pthread_mutex_unlock(&lock);
    sim_stats_add(SIM_LIVE, "texture", 1);
    *ret = (CUtexObject)i + 1;
    return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject object)
{
    CUresult rc = cuda_enter(__func__, SIM_CLOSE, CUDA_IN_CONTEXT);
    if (rc)
        return rc;
    if (!sim_texture_get(object))
        return SIM_ERR_INVALID_VALUE;
    textures[object - 1].is_live = false;
    sim_stats_add(SIM_LIVE, "texture", -1);
    return CUDA_SUCCESS;
}

const struct sim_texture *sim_texture_get(CUtexObject object)
{
    if (object == 0 || object > TEXTURES_MAX || !textures[object - 1].is_live)
        return NULL;
    return &textures[object - 1].texture;
}

static int clamp(int n, int size)
{
    return n < 0 ? 0 : n >= size ? size - 1 : n;
}

/* One texel, as stored; outside, the nearest one: every address mode but clamp needs normalised
 * coordinates, which nobody here uses with it. */
static void texel(const struct sim_texture *t, int x, int y, float ret[4])
{
    const uint8_t *row = (const uint8_t *)t->data + (size_t)clamp(y, t->height) * t->pitch_bytes;
    size_t first = (size_t)clamp(x, t->width) * t->channels;
    for (int c = 0; c < t->channels; c++) {
        size_t i = first + c;
        ret[c] = t->is_float             ? ((const float *)row)[i]
                 : t->channel_bytes == 2 ? (float)((const uint16_t *)row)[i]
                                         : (float)row[i];
    }
}

/* Weights of the card's linear filter have 8 bits of fraction. */
static void fetch_linear(const struct sim_texture *t, float x, float y, float ret[4])
{
    float left = floorf(x - 0.5f), top = floorf(y - 0.5f);
    float wx = roundf((x - 0.5f - left) * 256) / 256, wy = roundf((y - 0.5f - top) * 256) / 256;
    float corner[2][2][4];
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 2; i++)
            texel(t, (int)left + i, (int)top + j, corner[j][i]);
    for (int c = 0; c < t->channels; c++)
        ret[c] = (1 - wy) * ((1 - wx) * corner[0][0][c] + wx * corner[0][1][c]) +
                 wy * ((1 - wx) * corner[1][0][c] + wx * corner[1][1][c]);
}

void sim_texture_fetch(const struct sim_texture *t, float x, float y, float ret[4])
{
    if (t->is_normalized) {
        x *= (float)t->width;
        y *= (float)t->height;
    }
    if (t->is_linear)
        fetch_linear(t, x, y, ret);
    else
        texel(t, (int)floorf(x), (int)floorf(y), ret);
    if (t->is_integer) {
        for (int c = 0; c < t->channels; c++)
            ret[c] = roundf(ret[c]);
    } else if (!t->is_float) {
        for (int c = 0; c < t->channels; c++)
            ret[c] /= t->channel_bytes == 2 ? 65535.0f : 255.0f;
    }
}
