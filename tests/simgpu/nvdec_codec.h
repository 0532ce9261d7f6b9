/*
 * The codecs of NVDEC. The driver's user has parsed the stream and passes the parameters of one
 * picture and its slices; each codec here is a pure function that makes of them a stream of that
 * one picture, headers and all, which a software decoder understands. One file a codec.
 */
#pragma once
#include <ffnvcodec/dynlink_cuda.h>
#include <ffnvcodec/dynlink_cuviddec.h>
#include <libavcodec/codec_id.h>

#include "tests/simgpu/nvdec_bits.h"

/* What was said when the decoder was created. */
struct nvdec_stream {
    unsigned width, height; /* coded */
    int chroma_format;      /* cudaVideoChromaFormat: 1 is 4:2:0 */
};

struct nvdec_codec {
    cudaVideoCodec id;
    enum AVCodecID software;
    /* False when the picture uses what the parameters cannot tell: the decode fails. */
    bool (*write)(const struct nvdec_stream *s, const CUVIDPICPARAMS *p, struct bits *out);
    /* True for a picture before which nothing is referred to: the decoder forgets all. NULL: never.
     */
    bool (*is_restart)(const CUVIDPICPARAMS *p);
    /* The software decoder asks for the pictures it makes up for missing ones before it asks for
     * the picture itself; else after it. */
    bool is_last_buffer;
};

/* NULL: not modelled, whatever the model of GPU can do. */
const struct nvdec_codec *nvdec_codec_find(cudaVideoCodec id);

bool nvdec_h264_write(const struct nvdec_stream *s, const CUVIDPICPARAMS *p, struct bits *out);
bool nvdec_h264_is_restart(const CUVIDPICPARAMS *p);
bool nvdec_hevc_write(const struct nvdec_stream *s, const CUVIDPICPARAMS *p, struct bits *out);
bool nvdec_hevc_is_restart(const CUVIDPICPARAMS *p);
bool nvdec_mpeg1_write(const struct nvdec_stream *s, const CUVIDPICPARAMS *p, struct bits *out);
bool nvdec_mpeg2_write(const struct nvdec_stream *s, const CUVIDPICPARAMS *p, struct bits *out);

/* Slice i of a picture's data. */
const uint8_t *nvdec_slice(const CUVIDPICPARAMS *p, unsigned i, size_t *ret_bytes);

/* The zigzag scan of 4x4 and 8x8: place in the coded order -> place in the matrix. */
extern const uint8_t nvdec_zigzag4[16], nvdec_zigzag8[64];
