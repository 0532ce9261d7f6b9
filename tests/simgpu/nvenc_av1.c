/*
 * AV1 through SVT-AV1's API, 8 and 10 bit, in its low-delay structure: pictures come out one by one
 * in the order they went in, which libav* expects of AV1 (it has no decoding order of its own),
 * with nothing hidden. B-frames are accepted and coded as P; the protocol around them stays. In low
 * delay SVT-AV1 has no VBR, so that both VBR and CBR are its CBR.
 */
#include <stdlib.h>
#include <string.h>

#include <svt-av1/EbSvtAv1Enc.h>

#include "tests/simgpu/nvenc_coder.h"

enum { PRESET = 11 };

struct av1 {
    EbComponentType *svt;
    EbSvtAv1EncConfiguration config;
    struct nvenc_bytes packet;
};

/* The library writes its settings to stderr unless the environment says so, which it reads when an
 * encoder is opened. */
__attribute__((constructor)) static void keep_quiet(void)
{
    setenv("SVT_LOG", "0", 0);
}

static void set_rate(EbSvtAv1EncConfiguration *p, const struct nvenc_settings *s)
{
    switch (s->rate) {
    case NVENC_RATE_QP: /* NVENC has AV1's own 0..255, SVT-AV1 a table of 64 */
        p->rate_control_mode = SVT_AV1_RC_MODE_CQP_OR_CRF;
        p->enable_adaptive_quantization = 0;
        p->qp = (uint32_t)s->qp.p / 4;
        break;
    case NVENC_RATE_QUALITY:
        p->rate_control_mode = SVT_AV1_RC_MODE_CQP_OR_CRF;
        p->qp = s->quality < 1 ? 1 : s->quality > 63 ? 63 : (uint32_t)s->quality;
        p->max_bit_rate = (uint32_t)s->max_bps;
        break;
    case NVENC_RATE_VBR:
    case NVENC_RATE_CBR:
        p->rate_control_mode = SVT_AV1_RC_MODE_CBR;
        p->target_bit_rate = (uint32_t)s->average_bps;
        break;
    }
}

static void set_stream(EbSvtAv1EncConfiguration *p, const struct nvenc_settings *s)
{
    p->source_width = (uint32_t)s->width;
    p->source_height = (uint32_t)s->height;
    p->encoder_bit_depth = (uint32_t)s->bit_depth;
    p->encoder_color_format = EB_YUV420;
    p->frame_rate_numerator = (uint32_t)s->fps_num;
    p->frame_rate_denominator = (uint32_t)s->fps_den;
    p->color_primaries = (EbColorPrimaries)s->colour.primaries;
    p->transfer_characteristics = (EbTransferCharacteristics)s->colour.transfer;
    p->matrix_coefficients = (EbMatrixCoefficients)s->colour.matrix;
    p->color_range = s->colour.is_full ? EB_CR_FULL_RANGE : EB_CR_STUDIO_RANGE;
}

static void set_order(EbSvtAv1EncConfiguration *p)
{
    p->enc_mode = PRESET;
    p->pred_structure = SVT_AV1_PRED_LOW_DELAY_B;
    p->intra_refresh_type = SVT_AV1_KF_REFRESH;
    p->intra_period_length = -1;
    p->scene_change_detection = 0;
    p->look_ahead_distance = 0;
    p->enable_tf = 0;
    p->level_of_parallelism = 1;
}

/* Says that no more comes, if it has not been said, and waits for the library's last word. */
static void finish(struct av1 *c)
{
    EbBufferHeaderType eos = {.size = sizeof eos, .flags = EB_BUFFERFLAG_EOS}, *out;
    eos.pic_type = EB_AV1_INVALID_PICTURE;
    svt_av1_enc_send_picture(c->svt, &eos);
    for (bool is_last = false; !is_last && !svt_av1_enc_get_packet(c->svt, &out, 1);) {
        is_last = out->flags & EB_BUFFERFLAG_EOS;
        svt_av1_enc_release_out_buffer(&out);
    }
}

static void free_av1(struct av1 *c)
{
    svt_av1_enc_deinit(c->svt);
    svt_av1_enc_deinit_handle(c->svt);
    free(c->packet.data);
    free(c);
}

static void close_av1(void *coder)
{
    finish(coder);
    free_av1(coder);
}

static void *open_av1(const struct nvenc_settings *s)
{
    struct av1 *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    if (svt_av1_enc_init_handle(&c->svt, c, &c->config)) {
        free(c);
        return NULL;
    }
    set_order(&c->config);
    set_stream(&c->config, s);
    set_rate(&c->config, s);
    if (svt_av1_enc_set_parameter(c->svt, &c->config) || svt_av1_enc_init(c->svt)) {
        free_av1(c);
        return NULL;
    }
    return c;
}

static size_t headers(void *coder, uint8_t *ret, size_t room)
{
    struct av1 *c = coder;
    EbBufferHeaderType *header;
    if (svt_av1_enc_stream_header(c->svt, &header))
        return 0;
    size_t size = header->n_filled_len <= room ? header->n_filled_len : 0;
    memcpy(ret, header->p_buffer, size);
    svt_av1_enc_stream_header_release(header);
    return size;
}

static EbErrorType send(struct av1 *c, const struct nvenc_picture *picture, int64_t index,
                        enum nvenc_type type)
{
    int sample = c->config.encoder_bit_depth > 8 ? 2 : 1;
    EbSvtIOFormat planes = {.luma = picture->planes[0],
                            .cb = picture->planes[1],
                            .cr = picture->planes[2],
                            .y_stride = (uint32_t)(picture->strides[0] / sample),
                            .cb_stride = (uint32_t)(picture->strides[1] / sample),
                            .cr_stride = (uint32_t)(picture->strides[2] / sample),
                            .width = c->config.source_width,
                            .height = c->config.source_height,
                            .color_fmt = EB_YUV420,
                            .bit_depth = (EbBitDepth)c->config.encoder_bit_depth};
    EbBufferHeaderType in = {.size = sizeof in,
                             .p_buffer = (uint8_t *)&planes,
                             .n_filled_len = (uint32_t)picture->strides[0] * planes.height * 3 / 2,
                             .pts = index,
                             .pic_type = EB_AV1_INVALID_PICTURE};
    if (type == NVENC_IDR || type == NVENC_I)
        in.pic_type = EB_AV1_KEY_PICTURE;
    return svt_av1_enc_send_picture(c->svt, &in);
}

/* One packet a picture, at once: low delay has no lag, and the library's threads are waited for. */
static int encode(void *coder, const struct nvenc_picture *picture, int64_t index,
                  enum nvenc_type type, struct nvenc_packet *ret)
{
    struct av1 *c = coder;
    EbBufferHeaderType *out;
    if (!picture)
        return 0;
    if (send(c, picture, index, type) || svt_av1_enc_get_packet(c->svt, &out, 1))
        return -1;
    c->packet.size = 0;
    nvenc_bytes_add(&c->packet, out->p_buffer, out->n_filled_len);
    *ret = (struct nvenc_packet){c->packet.data, c->packet.size, out->pts,
                                 out->pic_type == EB_AV1_KEY_PICTURE ? NVENC_IDR : NVENC_P,
                                 (int)out->qp};
    svt_av1_enc_release_out_buffer(&out);
    return 1;
}

const struct nvenc_coder nvenc_coder_av1 = {open_av1, headers, encode, close_av1};
