#include "tests/simgpu/nvdec_codec.h"

/* VP8 and VP9 pictures arrive whole, with their headers. */
static bool write_whole(const struct nvdec_stream *s, const CUVIDPICPARAMS *p, struct bits *out)
{
    (void)s;
    bits_bytes(out, p->pBitstreamData, p->nBitstreamDataLen);
    return true;
}

/* Not here: AV1 (only its tiles arrive; a frame header cannot be made of the parameters alone),
 * MPEG-4 (the time scale that direct mode needs is not passed), VC-1, JPEG. */
static const struct nvdec_codec codecs[] = {
    {cudaVideoCodec_MPEG1, AV_CODEC_ID_MPEG1VIDEO, nvdec_mpeg1_write, NULL, false},
    {cudaVideoCodec_MPEG2, AV_CODEC_ID_MPEG2VIDEO, nvdec_mpeg2_write, NULL, false},
    {cudaVideoCodec_H264, AV_CODEC_ID_H264, nvdec_h264_write, nvdec_h264_is_restart, true},
    {cudaVideoCodec_HEVC, AV_CODEC_ID_HEVC, nvdec_hevc_write, nvdec_hevc_is_restart, false},
    {cudaVideoCodec_VP8, AV_CODEC_ID_VP8, write_whole, NULL, false},
    {cudaVideoCodec_VP9, AV_CODEC_ID_VP9, write_whole, NULL, false},
};

const struct nvdec_codec *nvdec_codec_find(cudaVideoCodec id)
{
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
        if (codecs[i].id == id)
            return &codecs[i];
    return NULL;
}

const uint8_t *nvdec_slice(const CUVIDPICPARAMS *p, unsigned i, size_t *ret_bytes)
{
    unsigned start = p->pSliceDataOffsets[i];
    unsigned end = i + 1 < p->nNumSlices ? p->pSliceDataOffsets[i + 1] : p->nBitstreamDataLen;
    *ret_bytes = end - start;
    return p->pBitstreamData + start;
}

const uint8_t nvdec_zigzag4[16] = {0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15};

const uint8_t nvdec_zigzag8[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};
