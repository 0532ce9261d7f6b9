/*
 * H.264: a sequence and a picture parameter set are made of the parameters, the slices follow as
 * they are. The picture parameter set gets the number by which the slices ask for it.
 *
 * What the parameters do not carry: slice groups (FMO) are refused; so are B slices under picture
 * order count type 1, whose offsets are missing and on whose distances their prediction depends.
 */
#include <string.h>

#include "tests/simgpu/nvdec_codec.h"

enum { PPS_MAX = 256, SLICE_B = 1 };

static void put_sps(const struct nvdec_stream *s, const CUVIDPICPARAMS *p, struct bits *out)
{
    const CUVIDH264PICPARAMS *h = &p->CodecSpecific.h264;
    struct bits b = {0};
    bool is_deep = h->bit_depth_luma_minus8 || h->bit_depth_chroma_minus8;
    bits_put(&b, 8, s->chroma_format == 1 ? (is_deep ? 110 : 100) : 244); /* profile */
    bits_put(&b, 8, 0);
    bits_put(&b, 8, 52); /* level */
    bits_ue(&b, 0);
    bits_ue(&b, (uint32_t)s->chroma_format);
    if (s->chroma_format == 3)
        bits_put(&b, 1, h->residual_colour_transform_flag);
    bits_ue(&b, h->bit_depth_luma_minus8);
    bits_ue(&b, h->bit_depth_chroma_minus8);
    bits_put(&b, 1, h->qpprime_y_zero_transform_bypass_flag);
    bits_put(&b, 1, 0); /* scaling matrices are in the picture parameter set */
    bits_ue(&b, (uint32_t)h->log2_max_frame_num_minus4);
    bits_ue(&b, (uint32_t)h->pic_order_cnt_type);
    if (h->pic_order_cnt_type == 0) {
        bits_ue(&b, (uint32_t)h->log2_max_pic_order_cnt_lsb_minus4);
    } else if (h->pic_order_cnt_type == 1) {
        bits_put(&b, 1, (uint32_t)h->delta_pic_order_always_zero_flag);
        bits_se(&b, 0);
        bits_se(&b, 0);
        bits_ue(&b, 0);
    }
    bits_ue(&b, (uint32_t)h->num_ref_frames);
    bits_put(&b, 1, 1); /* gaps in frame numbers are allowed */
    bits_ue(&b, (uint32_t)p->PicWidthInMbs - 1);
    bits_ue(&b, (uint32_t)(p->FrameHeightInMbs >> !h->frame_mbs_only_flag) - 1);
    bits_put(&b, 1, (uint32_t)h->frame_mbs_only_flag);
    if (!h->frame_mbs_only_flag) /* not asked in field pictures: constant where it can be */
        bits_put(&b, 1, h->MbaffFrameFlag || p->field_pic_flag);
    bits_put(&b, 1, (uint32_t)h->direct_8x8_inference_flag);
    bits_put(&b, 2, 0); /* no cropping, no VUI */
    bits_trailing(&b);
    bits_nal(out, (const uint8_t[]){0x67}, 1, &b);
    bits_free(&b);
}

static void put_list(struct bits *b, const uint8_t *matrix, const uint8_t *scan, int size)
{
    int last = 8;
    bits_put(b, 1, 1);
    for (int i = 0; i < size; i++) {
        int value = matrix[scan[i]];
        bits_se(b, (int8_t)(value - last));
        last = value;
    }
}

static void put_pps(const CUVIDPICPARAMS *p, uint32_t id, struct bits *out)
{
    const CUVIDH264PICPARAMS *h = &p->CodecSpecific.h264;
    struct bits b = {0};
    bits_ue(&b, id);
    bits_ue(&b, 0);
    bits_put(&b, 1, (uint32_t)h->entropy_coding_mode_flag);
    bits_put(&b, 1, (uint32_t)h->pic_order_present_flag);
    bits_ue(&b, 0); /* one slice group */
    bits_ue(&b, (uint32_t)h->num_ref_idx_l0_active_minus1);
    bits_ue(&b, (uint32_t)h->num_ref_idx_l1_active_minus1);
    bits_put(&b, 1, (uint32_t)h->weighted_pred_flag);
    bits_put(&b, 2, (uint32_t)h->weighted_bipred_idc);
    bits_se(&b, h->pic_init_qp_minus26);
    bits_se(&b, h->pic_init_qs_minus26);
    bits_se(&b, h->chroma_qp_index_offset);
    bits_put(&b, 1, (uint32_t)h->deblocking_filter_control_present_flag);
    bits_put(&b, 1, (uint32_t)h->constrained_intra_pred_flag);
    bits_put(&b, 1, (uint32_t)h->redundant_pic_cnt_present_flag);
    bits_put(&b, 1, (uint32_t)h->transform_8x8_mode_flag);
    bits_put(&b, 1, 1);
    for (int i = 0; i < 6; i++)
        put_list(&b, h->WeightScale4x4[i], nvdec_zigzag4, 16);
    for (int i = 0; i < 2 && h->transform_8x8_mode_flag; i++)
        put_list(&b, h->WeightScale8x8[i], nvdec_zigzag8, 64);
    bits_se(&b, h->second_chroma_qp_index_offset);
    bits_trailing(&b);
    bits_nal(out, (const uint8_t[]){0x68}, 1, &b);
    bits_free(&b);
}

struct slice_start {
    uint32_t type, pps;
};

static struct slice_start read_slice(const uint8_t *data, size_t bytes)
{
    struct bits b = {0};
    struct bits_at r = {.b = &b};
    struct slice_start start;
    if (bytes > 4)
        bits_unescape(&b, data + 4, bytes - 4 < 32 ? bytes - 4 : 32);
    bits_get_ue(&r); /* first macroblock */
    start.type = bits_get_ue(&r) % 5;
    start.pps = bits_get_ue(&r);
    bits_free(&b);
    return start;
}

bool nvdec_h264_write(const struct nvdec_stream *s, const CUVIDPICPARAMS *p, struct bits *out)
{
    const CUVIDH264PICPARAMS *h = &p->CodecSpecific.h264;
    bool is_written[PPS_MAX] = {0};
    if (h->num_slice_groups_minus1)
        return false;
    put_sps(s, p, out);
    for (unsigned i = 0; i < p->nNumSlices; i++) {
        size_t bytes;
        const uint8_t *data = nvdec_slice(p, i, &bytes);
        struct slice_start start = read_slice(data, bytes);
        if (start.pps >= PPS_MAX || (h->pic_order_cnt_type == 1 && start.type == SLICE_B))
            return false;
        if (!is_written[start.pps])
            put_pps(p, start.pps, out);
        is_written[start.pps] = true;
    }
    bits_bytes(out, p->pBitstreamData, p->nBitstreamDataLen);
    return true;
}

bool nvdec_h264_is_restart(const CUVIDPICPARAMS *p)
{
    const CUVIDH264PICPARAMS *h = &p->CodecSpecific.h264;
    for (int i = 0; i < 16; i++)
        if (h->dpb[i].used_for_reference)
            return false;
    return !p->second_field;
}
