/*
 * MPEG-1 and MPEG-2 video: sequence, group and picture headers (and extensions) are made of the
 * parameters, the slices follow as they are. The second field of a picture gets only its picture
 * header, as in a stream.
 */
#include "tests/simgpu/nvdec_codec.h"

enum { PICTURE = 0x00, SEQUENCE = 0xb3, EXTENSION = 0xb5, GROUP = 0xb8, TYPE_P = 2, TYPE_B = 3 };

static void put_matrix(struct bits *b, const unsigned char *matrix)
{
    bits_put(b, 1, 1);
    for (int i = 0; i < 64; i++)
        bits_put(b, 8, matrix[nvdec_zigzag8[i]]);
}

static void put_sequence(const struct nvdec_stream *s, const CUVIDMPEG2PICPARAMS *m, struct bits *b)
{
    bits_start_code(b, SEQUENCE);
    bits_put(b, 12, s->width & 0xfff);
    bits_put(b, 12, s->height & 0xfff);
    bits_put(b, 4, 1); /* square pixels */
    bits_put(b, 4, 3); /* 25 pictures a second */
    bits_put(b, 18, 0x3ffff);
    bits_put(b, 1, 1);
    bits_put(b, 11, 0);
    put_matrix(b, m->QuantMatrixIntra);
    put_matrix(b, m->QuantMatrixInter);
}

/* An odd number of macroblock rows is only possible in a progressive sequence, whose parameters do
 * not say so; in any other picture the flag changes nothing. */
static bool is_progressive(const CUVIDPICPARAMS *p)
{
    return p->FrameHeightInMbs % 2;
}

static void put_sequence_extension(const struct nvdec_stream *s, const CUVIDPICPARAMS *p,
                                   struct bits *b)
{
    bits_start_code(b, EXTENSION);
    bits_put(b, 4, 1);
    bits_put(b, 8, 0x44); /* main profile, high level */
    bits_put(b, 1, is_progressive(p));
    bits_put(b, 2, 1); /* 4:2:0 */
    bits_put(b, 2, s->width >> 12);
    bits_put(b, 2, s->height >> 12);
    bits_put(b, 12, 0);
    bits_put(b, 1, 1);
    bits_put(b, 8, 0);
    bits_put(b, 1, 0);
    bits_put(b, 7, 0);
}

/* Closed, so that no B picture is left out for what came before it: who could not decode it has
 * not asked for it. */
static void put_group(struct bits *b)
{
    bits_start_code(b, GROUP);
    bits_put(b, 12, 0);
    bits_put(b, 1, 1);
    bits_put(b, 12, 0);
    bits_put(b, 2, 2);
    bits_align(b);
}

static void put_vector_code(struct bits *b, int is_full_pel, int f_code)
{
    bits_put(b, 1, (uint32_t)is_full_pel);
    bits_put(b, 3, (uint32_t)f_code);
}

static void put_picture(const CUVIDMPEG2PICPARAMS *m, bool is_mpeg1, struct bits *b)
{
    bits_start_code(b, PICTURE);
    bits_put(b, 10, 0);
    bits_put(b, 3, (uint32_t)m->picture_coding_type);
    bits_put(b, 16, 0xffff);
    if (m->picture_coding_type == TYPE_P || m->picture_coding_type == TYPE_B)
        put_vector_code(b, is_mpeg1 && m->full_pel_forward_vector, is_mpeg1 ? m->f_code[0][0] : 7);
    if (m->picture_coding_type == TYPE_B)
        put_vector_code(b, is_mpeg1 && m->full_pel_backward_vector, is_mpeg1 ? m->f_code[1][0] : 7);
    bits_put(b, 1, 0);
    bits_align(b);
}

static void put_picture_extension(const CUVIDPICPARAMS *p, struct bits *b)
{
    const CUVIDMPEG2PICPARAMS *m = &p->CodecSpecific.mpeg2;
    bits_start_code(b, EXTENSION);
    bits_put(b, 4, 8);
    for (int i = 0; i < 4; i++)
        bits_put(b, 4, (uint32_t)m->f_code[i / 2][i % 2]);
    bits_put(b, 2, (uint32_t)m->intra_dc_precision);
    bits_put(b, 2, !p->field_pic_flag ? 3 : p->bottom_field_flag ? 2 : 1);
    bits_put(b, 1, (uint32_t)m->top_field_first);
    bits_put(b, 1, (uint32_t)m->frame_pred_frame_dct);
    bits_put(b, 1, (uint32_t)m->concealment_motion_vectors);
    bits_put(b, 1, (uint32_t)m->q_scale_type);
    bits_put(b, 1, (uint32_t)m->intra_vlc_format);
    bits_put(b, 1, (uint32_t)m->alternate_scan);
    bits_put(b, 1, 0);
    bits_put(b, 1, is_progressive(p));
    bits_put(b, 1, is_progressive(p));
    bits_put(b, 1, 0);
    bits_align(b);
}

static bool write_picture(const struct nvdec_stream *s, const CUVIDPICPARAMS *p, bool is_mpeg1,
                          struct bits *out)
{
    const CUVIDMPEG2PICPARAMS *m = &p->CodecSpecific.mpeg2;
    if (!p->second_field) {
        put_sequence(s, m, out);
        if (!is_mpeg1)
            put_sequence_extension(s, p, out);
        put_group(out);
    }
    put_picture(m, is_mpeg1, out);
    if (!is_mpeg1)
        put_picture_extension(p, out);
    bits_bytes(out, p->pBitstreamData, p->nBitstreamDataLen);
    return true;
}

bool nvdec_mpeg1_write(const struct nvdec_stream *s, const CUVIDPICPARAMS *p, struct bits *out)
{
    return write_picture(s, p, true, out);
}

bool nvdec_mpeg2_write(const struct nvdec_stream *s, const CUVIDPICPARAMS *p, struct bits *out)
{
    return write_picture(s, p, false, out);
}
