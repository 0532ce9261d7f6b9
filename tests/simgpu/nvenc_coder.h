/*
 * The software coders behind NVENC. One writes exactly one packet a picture, in coding order,
 * depends on nothing but settings, pictures and types, and lags the input by a number of pictures
 * that is always the same. Not for two threads at once.
 */
#ifndef TESTS_SIMGPU_NVENC_CODER_H
#define TESTS_SIMGPU_NVENC_CODER_H

#include <stddef.h>
#include <stdint.h>

#include "tests/simgpu/nvenc_settings.h"

enum nvenc_type { NVENC_IDR, NVENC_I, NVENC_P, NVENC_B };

/* Planar 4:2:0 of the settings' bit depth: 8, or 10 in the low bits of 16. */
struct nvenc_picture {
    uint8_t *planes[3];
    int strides[3]; /* bytes */
};

struct nvenc_packet {
    const uint8_t *data; /* borrowed from the coder until the next call */
    size_t size;
    int64_t index; /* of its picture */
    enum nvenc_type type;
    int qp;
};

struct nvenc_coder {
    /* NULL: the library refuses the settings. */
    void *(*open)(const struct nvenc_settings *settings);

    /* Parameter sets as in band; returns their size, 0 when they do not fit or cannot be made. */
    size_t (*headers)(void *coder, uint8_t *ret, size_t room);

    /* Takes a picture (NULL: no more come, drain), which it copies; indices rise by one. A B that
     * is last before an IDR or the end comes out as P. Returns 1 with a packet, 0 with none, -1. */
    int (*encode)(void *coder, const struct nvenc_picture *picture, int64_t index,
                  enum nvenc_type type, struct nvenc_packet *ret);

    void (*close)(void *coder);
};

extern const struct nvenc_coder nvenc_coder_h264, nvenc_coder_hevc;
#ifdef SIMGPU_AV1
extern const struct nvenc_coder nvenc_coder_av1;
#endif

const struct nvenc_coder *nvenc_coder_get(enum nvenc_codec codec);

/* A buffer that grows, for coders whose library gives a packet in pieces. */
struct nvenc_bytes {
    uint8_t *data;
    size_t size, room;
};
void nvenc_bytes_add(struct nvenc_bytes *b, const void *data, size_t size);

#endif
