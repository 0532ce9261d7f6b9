/*
 * HEVC: video, sequence and picture parameter sets are made of the parameters. Slices cannot follow
 * as they are: a slice header may name a reference picture set of the sequence parameter set by its
 * number, and those sets are not passed. So each header is written anew with a set of its own, made
 * of the references that the parameters name. That moves all behind it by some bits; to keep the
 * entropy coded data on whole bytes, as many reserved bits as it takes are put in, which the
 * picture parameter set can announce (up to seven).
 *
 * Scaling lists go into the picture parameter set, so that the sequence parameter set never changes
 * within a sequence: the software decoder would begin a new one.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/nvdec_codec.h"

enum {
    REFS_MAX = 16,
    PPS_MAX = 64,
    IDR_W_RADL = 19,
    IDR_N_LP = 20,
    IRAP_FIRST = 16,
    IRAP_LAST = 23
};

static void put_profile(struct bits *b, const struct nvdec_stream *s, const CUVIDHEVCPICPARAMS *h)
{
    bool is_plain =
        s->chroma_format == 1 && h->bit_depth_luma_minus8 <= 2 && !h->sps_range_extension_flag;
    uint32_t profile = !is_plain ? 4 : h->bit_depth_luma_minus8 ? 2 : 1;
    bits_put(b, 8, profile); /* main tier */
    bits_put(b, 32, 1u << (31 - profile));
    bits_put(b, 4, 9); /* progressive, frames only */
    bits_put(b, 32, 0);
    bits_put(b, 12, 0);
    bits_put(b, 8, 186); /* level 6.2 */
}

/* One sub-layer; pictures come out as soon as they are decoded. */
static void put_ordering(struct bits *b)
{
    bits_put(b, 1, 1);
    bits_ue(b, REFS_MAX - 1);
    bits_ue(b, 0);
    bits_ue(b, 0);
}

static void put_vps(const struct nvdec_stream *s, const CUVIDHEVCPICPARAMS *h, struct bits *out)
{
    struct bits b = {0};
    bits_put(&b, 4, 0);
    bits_put(&b, 2, 3);
    bits_put(&b, 6, 0);
    bits_put(&b, 3, 0);
    bits_put(&b, 1, 1);
    bits_put(&b, 16, 0xffff);
    put_profile(&b, s, h);
    put_ordering(&b);
    bits_put(&b, 6, 0);
    bits_ue(&b, 0);
    bits_put(&b, 2, 0); /* no timing, no extension */
    bits_trailing(&b);
    bits_nal(out, (const uint8_t[]){32 << 1, 1}, 2, &b);
    bits_free(&b);
}

static void put_sps_range(struct bits *b, const CUVIDHEVCPICPARAMS *h)
{
    bits_put(b, 1, h->sps_range_extension_flag);
    if (!h->sps_range_extension_flag)
        return;
    bits_put(b, 8, 0x80); /* this extension and no other */
    bits_put(b, 1, h->transform_skip_rotation_enabled_flag);
    bits_put(b, 1, h->transform_skip_context_enabled_flag);
    bits_put(b, 1, h->implicit_rdpcm_enabled_flag);
    bits_put(b, 1, h->explicit_rdpcm_enabled_flag);
    bits_put(b, 1, h->extended_precision_processing_flag);
    bits_put(b, 1, h->intra_smoothing_disabled_flag);
    bits_put(b, 1, h->high_precision_offsets_enabled_flag);
    bits_put(b, 1, h->persistent_rice_adaptation_enabled_flag);
    bits_put(b, 1, h->cabac_bypass_alignment_enabled_flag);
}

static void put_pcm(struct bits *b, const CUVIDHEVCPICPARAMS *h)
{
    bits_put(b, 1, h->pcm_enabled_flag);
    if (!h->pcm_enabled_flag)
        return;
    bits_put(b, 4, h->pcm_sample_bit_depth_luma_minus1);
    bits_put(b, 4, h->pcm_sample_bit_depth_chroma_minus1);
    bits_ue(b, h->log2_min_pcm_luma_coding_block_size_minus3);
    bits_ue(b, h->log2_diff_max_min_pcm_luma_coding_block_size);
    bits_put(b, 1, h->pcm_loop_filter_disabled_flag);
}

static void put_sps(const struct nvdec_stream *s, const CUVIDHEVCPICPARAMS *h, struct bits *out)
{
    struct bits b = {0};
    bits_put(&b, 4, 0);
    bits_put(&b, 3, 0);
    bits_put(&b, 1, 1);
    put_profile(&b, s, h);
    bits_ue(&b, 0);
    bits_ue(&b, (uint32_t)s->chroma_format);
    if (s->chroma_format == 3)
        bits_put(&b, 1, h->separate_colour_plane_flag);
    bits_ue(&b, (uint32_t)h->pic_width_in_luma_samples);
    bits_ue(&b, (uint32_t)h->pic_height_in_luma_samples);
    bits_put(&b, 1, 0); /* no cropping */
    bits_ue(&b, h->bit_depth_luma_minus8);
    bits_ue(&b, h->bit_depth_chroma_minus8);
    bits_ue(&b, h->log2_max_pic_order_cnt_lsb_minus4);
    put_ordering(&b);
    bits_ue(&b, h->log2_min_luma_coding_block_size_minus3);
    bits_ue(&b, h->log2_diff_max_min_luma_coding_block_size);
    bits_ue(&b, h->log2_min_transform_block_size_minus2);
    bits_ue(&b, h->log2_diff_max_min_transform_block_size);
    bits_ue(&b, h->max_transform_hierarchy_depth_inter);
    bits_ue(&b, h->max_transform_hierarchy_depth_intra);
    bits_put(&b, 1, h->scaling_list_enable_flag);
    if (h->scaling_list_enable_flag)
        bits_put(&b, 1, 0); /* in the picture parameter set */
    bits_put(&b, 1, h->amp_enabled_flag);
    bits_put(&b, 1, h->sample_adaptive_offset_enabled_flag);
    put_pcm(&b, h);
    bits_ue(&b, 0); /* no reference picture sets */
    bits_put(&b, 1, h->long_term_ref_pics_present_flag);
    if (h->long_term_ref_pics_present_flag)
        bits_ue(&b, 0);
    bits_put(&b, 1, h->sps_temporal_mvp_enabled_flag);
    bits_put(&b, 1, h->strong_intra_smoothing_enabled_flag);
    bits_put(&b, 1, 0); /* no VUI */
    put_sps_range(&b, h);
    bits_trailing(&b);
    bits_nal(out, (const uint8_t[]){33 << 1, 1}, 2, &b);
    bits_free(&b);
}

/* `dc` < 0: the size has none of its own. */
static void put_list(struct bits *b, const uint8_t *list, int size, int dc)
{
    int last = 8;
    bits_put(b, 1, 1);
    if (dc >= 0) {
        bits_se(b, dc - 8);
        last = dc;
    }
    for (int i = 0; i < size; i++) {
        bits_se(b, (int8_t)(list[i] - last));
        last = list[i];
    }
}

static void put_scaling(struct bits *b, const CUVIDHEVCPICPARAMS *h)
{
    bits_put(b, 1, h->scaling_list_enable_flag);
    if (!h->scaling_list_enable_flag)
        return;
    for (int i = 0; i < 6; i++)
        put_list(b, h->ScalingList4x4[i], 16, -1);
    for (int i = 0; i < 6; i++)
        put_list(b, h->ScalingList8x8[i], 64, -1);
    for (int i = 0; i < 6; i++)
        put_list(b, h->ScalingList16x16[i], 64, h->ScalingListDCCoeff16x16[i]);
    for (int i = 0; i < 2; i++)
        put_list(b, h->ScalingList32x32[i], 64, h->ScalingListDCCoeff32x32[i]);
}

static void put_tiles(struct bits *b, const CUVIDHEVCPICPARAMS *h)
{
    bits_put(b, 1, h->tiles_enabled_flag);
    bits_put(b, 1, h->entropy_coding_sync_enabled_flag);
    if (!h->tiles_enabled_flag)
        return;
    bits_ue(b, h->num_tile_columns_minus1);
    bits_ue(b, h->num_tile_rows_minus1);
    bits_put(b, 1, 0); /* sizes follow, all but the last */
    for (int i = 0; i < h->num_tile_columns_minus1; i++)
        bits_ue(b, h->column_width_minus1[i]);
    for (int i = 0; i < h->num_tile_rows_minus1; i++)
        bits_ue(b, h->row_height_minus1[i]);
    bits_put(b, 1, h->loop_filter_across_tiles_enabled_flag);
}

static void put_pps_range(struct bits *b, const CUVIDHEVCPICPARAMS *h)
{
    bits_put(b, 1, h->pps_range_extension_flag);
    if (!h->pps_range_extension_flag)
        return;
    bits_put(b, 8, 0x80);
    if (h->transform_skip_enabled_flag)
        bits_ue(b, h->log2_max_transform_skip_block_size_minus2);
    bits_put(b, 1, h->cross_component_prediction_enabled_flag);
    bits_put(b, 1, h->chroma_qp_offset_list_enabled_flag);
    if (h->chroma_qp_offset_list_enabled_flag) {
        bits_ue(b, h->diff_cu_chroma_qp_offset_depth);
        bits_ue(b, h->chroma_qp_offset_list_len_minus1);
        for (int i = 0; i <= h->chroma_qp_offset_list_len_minus1; i++) {
            bits_se(b, h->cb_qp_offset_list[i]);
            bits_se(b, h->cr_qp_offset_list[i]);
        }
    }
    bits_ue(b, h->log2_sao_offset_scale_luma);
    bits_ue(b, h->log2_sao_offset_scale_chroma);
}

static void put_pps(const CUVIDHEVCPICPARAMS *h, uint32_t id, int reserved_bits, struct bits *out)
{
    struct bits b = {0};
    bits_ue(&b, id);
    bits_ue(&b, 0);
    bits_put(&b, 1, h->dependent_slice_segments_enabled_flag);
    bits_put(&b, 1, h->output_flag_present_flag);
    bits_put(&b, 3, (uint32_t)reserved_bits);
    bits_put(&b, 1, h->sign_data_hiding_enabled_flag);
    bits_put(&b, 1, h->cabac_init_present_flag);
    bits_ue(&b, h->num_ref_idx_l0_default_active_minus1);
    bits_ue(&b, h->num_ref_idx_l1_default_active_minus1);
    bits_se(&b, h->init_qp_minus26);
    bits_put(&b, 1, h->constrained_intra_pred_flag);
    bits_put(&b, 1, h->transform_skip_enabled_flag);
    bits_put(&b, 1, h->cu_qp_delta_enabled_flag);
    if (h->cu_qp_delta_enabled_flag)
        bits_ue(&b, h->diff_cu_qp_delta_depth);
    bits_se(&b, h->pps_cb_qp_offset);
    bits_se(&b, h->pps_cr_qp_offset);
    bits_put(&b, 1, h->pps_slice_chroma_qp_offsets_present_flag);
    bits_put(&b, 1, h->weighted_pred_flag);
    bits_put(&b, 1, h->weighted_bipred_flag);
    bits_put(&b, 1, h->transquant_bypass_enabled_flag);
    put_tiles(&b, h);
    bits_put(&b, 1, h->loop_filter_across_slices_enabled_flag);
    bits_put(&b, 1, 1); /* deblocking control */
    bits_put(&b, 1, h->deblocking_filter_override_enabled_flag);
    bits_put(&b, 1, h->pps_deblocking_filter_disabled_flag);
    if (!h->pps_deblocking_filter_disabled_flag) {
        bits_se(&b, h->pps_beta_offset_div2);
        bits_se(&b, h->pps_tc_offset_div2);
    }
    put_scaling(&b, h);
    bits_put(&b, 1, h->lists_modification_present_flag);
    bits_ue(&b, h->log2_parallel_merge_level_minus2);
    bits_put(&b, 1, h->slice_segment_header_extension_present_flag);
    put_pps_range(&b, h);
    bits_trailing(&b);
    bits_nal(out, (const uint8_t[]){34 << 1, 1}, 2, &b);
    bits_free(&b);
}

/* One reference of the picture, by its distance. */
struct ref {
    int delta; /* in picture order count */
    bool is_used;
};

/* Nearest first on both sides. */
static int by_distance(const void *a, const void *b)
{
    return abs(((const struct ref *)a)->delta) - abs(((const struct ref *)b)->delta);
}

static bool is_listed(const unsigned char *list, int count, int i)
{
    for (int j = 0; j < count; j++)
        if (list[j] == i)
            return true;
    return false;
}

static void put_short_term(struct bits *b, const CUVIDPICPARAMS *p)
{
    const CUVIDHEVCPICPARAMS *h = &p->CodecSpecific.hevc;
    struct ref side[2][REFS_MAX];
    int count[2] = {0, 0};
    for (int i = 0; i < REFS_MAX; i++) {
        if (h->RefPicIdx[i] < 0 || h->RefPicIdx[i] == p->CurrPicIdx || h->IsLongTerm[i])
            continue;
        int delta = h->PicOrderCntVal[i] - h->CurrPicOrderCntVal, later = delta > 0;
        bool is_used = is_listed(h->RefPicSetStCurrBefore, h->NumPocStCurrBefore, i) ||
                       is_listed(h->RefPicSetStCurrAfter, h->NumPocStCurrAfter, i);
        side[later][count[later]++] = (struct ref){delta, is_used};
    }
    bits_put(b, 1, 0); /* a set of its own */
    bits_ue(b, (uint32_t)count[0]);
    bits_ue(b, (uint32_t)count[1]);
    for (int later = 0; later < 2; later++) {
        int last = 0;
        qsort(side[later], (size_t)count[later], sizeof side[0][0], by_distance);
        for (int i = 0; i < count[later]; i++) {
            bits_ue(b, (uint32_t)(abs(side[later][i].delta - last) - 1));
            bits_put(b, 1, side[later][i].is_used);
            last = side[later][i].delta;
        }
    }
}

/* With the whole distance, not the low bits alone, so that each names one picture. Distances are
 * coded as steps that cannot go back: false when the order asks for that. */
static bool put_long_term(struct bits *b, const CUVIDPICPARAMS *p)
{
    const CUVIDHEVCPICPARAMS *h = &p->CodecSpecific.hevc;
    int order[REFS_MAX], count = 0, last = 0;
    for (int i = 0; i < h->NumPocLtCurr; i++)
        order[count++] = h->RefPicSetLtCurr[i];
    for (int i = 0; i < REFS_MAX && count < REFS_MAX; i++)
        if (h->RefPicIdx[i] >= 0 && h->IsLongTerm[i] &&
            !is_listed(h->RefPicSetLtCurr, h->NumPocLtCurr, i))
            order[count++] = i;
    int bits = h->log2_max_pic_order_cnt_lsb_minus4 + 4;
    bits_ue(b, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        int poc = h->PicOrderCntVal[order[i]];
        int cycle = (h->CurrPicOrderCntVal >> bits) - (poc >> bits);
        bits_put(b, bits, (uint32_t)poc & ((1u << bits) - 1));
        bits_put(b, 1, i < h->NumPocLtCurr);
        bits_put(b, 1, 1);
        if (cycle < last)
            return false;
        bits_ue(b, (uint32_t)(cycle - last));
        last = cycle;
    }
    return true;
}

/* Behind the reference picture sets of a slice header. */
static void skip_sets(struct bits_at *r, const CUVIDHEVCPICPARAMS *h)
{
    if (bits_get(r, 1))
        r->at += (size_t)bits_for(h->num_short_term_ref_pic_sets);
    else
        r->at += (size_t)h->NumBitsForShortTermRPSInSlice;
    if (!h->long_term_ref_pics_present_flag)
        return;
    uint32_t by_number = h->num_long_term_ref_pics_sps ? bits_get_ue(r) : 0;
    uint32_t count = by_number + bits_get_ue(r);
    for (uint32_t i = 0; i < count && i < 2 * REFS_MAX; i++) {
        r->at += i < by_number ? (size_t)bits_for(h->num_long_term_ref_pics_sps)
                               : (size_t)h->log2_max_pic_order_cnt_lsb_minus4 + 5;
        if (bits_get(r, 1))
            bits_get_ue(r);
    }
}

static int address_bits(const CUVIDHEVCPICPARAMS *h)
{
    int log2_ctb =
        3 + h->log2_min_luma_coding_block_size_minus3 + h->log2_diff_max_min_luma_coding_block_size;
    int ctb = 1 << log2_ctb;
    int columns = (h->pic_width_in_luma_samples + ctb - 1) / ctb;
    int rows = (h->pic_height_in_luma_samples + ctb - 1) / ctb;
    return bits_for((uint32_t)(columns * rows));
}

/* A slice, taken apart. */
struct slice {
    uint8_t header[2];
    struct bits payload; /* as it came, unescaped */
    uint32_t pps;
    bool is_dependent, is_idr;
    size_t reserved_at, sets_at, sets_end; /* places in the payload */
};

static void read_slice(const CUVIDPICPARAMS *p, unsigned i, struct slice *ret)
{
    const CUVIDHEVCPICPARAMS *h = &p->CodecSpecific.hevc;
    size_t bytes;
    const uint8_t *data = nvdec_slice(p, i, &bytes);
    *ret = (struct slice){.header = {data[3], data[4]}};
    bits_unescape(&ret->payload, data + 5, bytes - 5);
    struct bits_at r = {.b = &ret->payload};
    int type = ret->header[0] >> 1 & 0x3f;
    ret->is_idr = type == IDR_W_RADL || type == IDR_N_LP;
    bool is_first = bits_get(&r, 1);
    if (type >= IRAP_FIRST && type <= IRAP_LAST)
        bits_get(&r, 1);
    ret->pps = bits_get_ue(&r);
    if (!is_first) {
        ret->is_dependent = h->dependent_slice_segments_enabled_flag && bits_get(&r, 1);
        r.at += (size_t)address_bits(h);
    }
    ret->reserved_at = r.at;
    r.at += h->num_extra_slice_header_bits;
    bits_get_ue(&r); /* type */
    r.at += h->output_flag_present_flag + 2u * h->separate_colour_plane_flag;
    if (!ret->is_idr)
        r.at += (size_t)h->log2_max_pic_order_cnt_lsb_minus4 + 4;
    ret->sets_at = r.at;
    if (!ret->is_idr)
        skip_sets(&r, h);
    ret->sets_end = r.at;
}

static void copy_until(struct bits *b, struct bits_at *r, size_t end)
{
    while (r->at < end)
        bits_put(b, 1, bits_get(r, 1));
}

/* The slice with other reserved bits and other sets. */
static void put_slice(const struct slice *s, const CUVIDHEVCPICPARAMS *h, int reserved_bits,
                      const struct bits *sets, struct bits *out)
{
    struct bits b = {0};
    struct bits_at r = {.b = &s->payload}, set = {.b = sets};
    if (!s->is_dependent) {
        copy_until(&b, &r, s->reserved_at);
        bits_put(&b, reserved_bits, 0);
        r.at += h->num_extra_slice_header_bits;
        copy_until(&b, &r, s->sets_at);
        copy_until(&b, &set, s->is_idr ? 0 : sets->count);
        r.at = s->sets_end;
    }
    bits_copy_rest(&b, &r);
    bits_nal(out, s->header, 2, &b);
    bits_free(&b);
}

/* How many reserved bits keep the slice's data on whole bytes. */
static int reserved_bits(const struct slice *s, const CUVIDHEVCPICPARAMS *h,
                         const struct bits *sets)
{
    long grown = s->is_idr ? 0 : (long)sets->count - (long)(s->sets_end - s->sets_at);
    return (int)(((h->num_extra_slice_header_bits - grown) % 8 + 8) % 8);
}

bool nvdec_hevc_write(const struct nvdec_stream *s, const CUVIDPICPARAMS *p, struct bits *out)
{
    const CUVIDHEVCPICPARAMS *h = &p->CodecSpecific.hevc;
    bool is_written[PPS_MAX] = {0}, is_ok = true;
    int reserved = 0;
    struct bits sets = {0};
    put_short_term(&sets, p);
    if (h->long_term_ref_pics_present_flag)
        is_ok = put_long_term(&sets, p);
    put_vps(s, h, out);
    put_sps(s, h, out);
    for (unsigned i = 0; i < p->nNumSlices && is_ok; i++) {
        struct slice slice;
        read_slice(p, i, &slice);
        int needs = slice.is_dependent ? reserved : reserved_bits(&slice, h, &sets);
        if (i == 0)
            reserved = needs;
        is_ok = slice.pps < PPS_MAX && needs == reserved;
        if (is_ok && !is_written[slice.pps])
            put_pps(h, slice.pps, reserved, out);
        if (is_ok) {
            is_written[slice.pps] = true;
            put_slice(&slice, h, reserved, &sets, out);
        }
        bits_free(&slice.payload);
    }
    bits_free(&sets);
    return is_ok;
}

bool nvdec_hevc_is_restart(const CUVIDPICPARAMS *p)
{
    const CUVIDHEVCPICPARAMS *h = &p->CodecSpecific.hevc;
    for (int i = 0; i < REFS_MAX; i++)
        if (h->RefPicIdx[i] >= 0 && h->RefPicIdx[i] != p->CurrPicIdx)
            return false;
    return h->IrapPicFlag;
}
