#include "tests/simgpu/nvenc_coder.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/call.h"

const struct nvenc_coder *nvenc_coder_get(enum nvenc_codec codec)
{
    static const struct nvenc_coder *const coders[NVENC_CODECS] = {
        [NVENC_H264] = &nvenc_coder_h264,
        [NVENC_HEVC] = &nvenc_coder_hevc,
#ifdef SIMGPU_AV1
        [NVENC_AV1] = &nvenc_coder_av1,
#endif
    };
    return coders[codec];
}

void nvenc_bytes_add(struct nvenc_bytes *b, const void *data, size_t size)
{
    if (b->size + size > b->room) {
        b->room = 2 * (b->size + size);
        b->data = realloc(b->data, b->room);
        if (!b->data)
            sim_die("no memory for a packet of %zu bytes", b->room);
    }
    memcpy(b->data + b->size, data, size);
    b->size += size;
}
