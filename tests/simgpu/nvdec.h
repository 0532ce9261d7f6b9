/* What the files of NVDEC share beyond the codecs. */
#pragma once
#include <ffnvcodec/dynlink_cuda.h>
#include <ffnvcodec/dynlink_cuviddec.h>
#include <libavutil/frame.h>
#include <stdbool.h>

#include "tests/simgpu/call.h"

/* sim_call, and a current context. 0: go on, else return this. */
CUresult nvdec_enter(const char *entry_point, enum sim_call_class class);

/* Fills in what the device can do for the IN members; all zero when it cannot. */
void nvdec_caps_fill(int device, CUVIDDECODECAPS *caps);

/* The same with a picture size. */
bool nvdec_is_supported(int device, CUVIDDECODECAPS *caps, unsigned width, unsigned height);

/* A mapped picture: NV12, or P016 with the values in the upper bits. */
struct nvdec_picture {
    uint8_t *data;
    size_t pitch;
    unsigned width, height; /* even: the card rounds up, and chroma begins after that */
    bool is_deep;
};

/* From planar or semi-planar 4:2:0 of 8 to 16 bits; black where the frame has no buffers. */
void nvdec_picture_fill(const struct nvdec_picture *to, const AVFrame *from);
