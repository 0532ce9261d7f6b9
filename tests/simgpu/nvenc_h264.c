/*
 * H.264 through x264's own API: opening libx264 through libavcodec would deadlock, since libavcodec
 * holds its lock while NVENC is opened. Everything that x264 would decide by looking ahead is off,
 * so that picture types are the caller's and the lag is the number of B-frames.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <x264.h>

#include "tests/simgpu/nvenc_coder.h"

struct h264 {
    x264_t *x264;
    struct nvenc_bytes packet;
};

static void set_rate(x264_param_t *p, const struct nvenc_settings *s)
{
    switch (s->rate) {
    case NVENC_RATE_QP:
        p->rc.i_rc_method = X264_RC_CQP;
        p->rc.i_qp_constant = s->qp.p;
        p->rc.f_ip_factor = (float)exp2((s->qp.p - s->qp.i) / 6.0);
        p->rc.f_pb_factor = (float)exp2((s->qp.b - s->qp.p) / 6.0);
        break;
    case NVENC_RATE_QUALITY:
        p->rc.i_rc_method = X264_RC_CRF;
        p->rc.f_rf_constant = (float)s->quality;
        break;
    case NVENC_RATE_VBR:
    case NVENC_RATE_CBR:
        p->rc.i_rc_method = X264_RC_ABR;
        p->rc.i_bitrate = (int)(s->average_bps / 1000);
        break;
    }
    p->rc.i_vbv_max_bitrate = (int)(s->max_bps / 1000);
    p->rc.i_vbv_buffer_size = (int)(s->vbv_bits / 1000);
    if (s->qp_min >= 0)
        p->rc.i_qp_min = s->qp_min;
    if (s->qp_max >= 0)
        p->rc.i_qp_max = s->qp_max;
}

static void set_stream(x264_param_t *p, const struct nvenc_settings *s)
{
    p->i_width = s->width;
    p->i_height = s->height;
    p->i_csp = X264_CSP_I420;
    p->i_bitdepth = 8;
    p->i_fps_num = (uint32_t)s->fps_num;
    p->i_fps_den = (uint32_t)s->fps_den;
    p->vui.i_sar_width = s->sar_num;
    p->vui.i_sar_height = s->sar_den;
    p->i_level_idc = s->level ? s->level : -1;
    p->b_annexb = 1;
    p->b_repeat_headers = s->repeats_headers;
    p->b_aud = s->has_aud;
    p->b_cabac = !s->is_cavlc;
    p->i_slice_count = s->slices;
    if (s->colour.is_present) {
        p->vui.i_vidformat = s->colour.format;
        p->vui.b_fullrange = s->colour.is_full;
    }
    if (s->colour.has_description) {
        p->vui.i_colorprim = s->colour.primaries;
        p->vui.i_transfer = s->colour.transfer;
        p->vui.i_colmatrix = s->colour.matrix;
    }
}

static void set_order(x264_param_t *p, const struct nvenc_settings *s)
{
    p->i_threads = 1;
    p->i_lookahead_threads = 1;
    p->i_sync_lookahead = 0;
    p->b_deterministic = 1;
    p->b_cpu_independent = 1;
    p->b_vfr_input = 0;
    p->i_keyint_max = X264_KEYINT_MAX_INFINITE;
    p->i_scenecut_threshold = 0;
    p->b_open_gop = 0;
    p->i_bframe = s->interval_p > 1 ? s->interval_p - 1 : 0;
    p->i_bframe_adaptive = X264_B_ADAPT_NONE;
    p->i_bframe_pyramid = s->is_b_reference ? X264_B_PYRAMID_NORMAL : X264_B_PYRAMID_NONE;
    p->rc.i_lookahead = 0;
    p->rc.b_mb_tree = 0;
    p->analyse.i_weighted_pred = X264_WEIGHTP_NONE;
}

static void *open_h264(const struct nvenc_settings *s)
{
    static const char *const profiles[] = {
        [NVENC_PROFILE_AUTO] = "high", [NVENC_PROFILE_BASELINE] = "baseline",
        [NVENC_PROFILE_MAIN] = "main", [NVENC_PROFILE_HIGH] = "high",
        [NVENC_PROFILE_MAIN10] = NULL,
    };
    x264_param_t p;
    if (!profiles[s->profile] || x264_param_default_preset(&p, "veryfast", NULL))
        return NULL;
    p.i_log_level = X264_LOG_NONE;
    set_order(&p, s);
    set_stream(&p, s);
    set_rate(&p, s);
    if (x264_param_apply_profile(&p, profiles[s->profile]))
        return NULL;
    struct h264 *c = calloc(1, sizeof *c);
    if (c && !(c->x264 = x264_encoder_open(&p))) {
        free(c);
        c = NULL;
    }
    x264_param_cleanup(&p);
    return c;
}

static void take(struct h264 *c, const x264_nal_t *nals, int n)
{
    c->packet.size = 0;
    for (int i = 0; i < n; i++)
        if (nals[i].i_type != NAL_SEI)
            nvenc_bytes_add(&c->packet, nals[i].p_payload, (size_t)nals[i].i_payload);
}

static size_t headers(void *coder, uint8_t *ret, size_t room)
{
    struct h264 *c = coder;
    x264_nal_t *nals;
    int n;
    if (x264_encoder_headers(c->x264, &nals, &n) < 0)
        return 0;
    take(c, nals, n);
    if (c->packet.size > room)
        return 0;
    memcpy(ret, c->packet.data, c->packet.size);
    return c->packet.size;
}

static enum nvenc_type type_of(const x264_picture_t *p)
{
    switch (p->i_type) {
    case X264_TYPE_IDR:
        return NVENC_IDR;
    case X264_TYPE_I:
    case X264_TYPE_KEYFRAME:
        return NVENC_I;
    case X264_TYPE_P:
        return NVENC_P;
    default:
        return NVENC_B;
    }
}

static int encode(void *coder, const struct nvenc_picture *picture, int64_t index,
                  enum nvenc_type type, struct nvenc_packet *ret)
{
    static const int types[] = {
        [NVENC_IDR] = X264_TYPE_IDR,
        [NVENC_I] = X264_TYPE_I,
        [NVENC_P] = X264_TYPE_P,
        [NVENC_B] = X264_TYPE_B,
    };
    struct h264 *c = coder;
    x264_picture_t in, out;
    x264_nal_t *nals;
    int n;
    if (picture) {
        x264_picture_init(&in);
        in.i_type = types[type];
        in.i_pts = index;
        in.img.i_csp = X264_CSP_I420;
        in.img.i_plane = 3;
        for (int i = 0; i < 3; i++) {
            in.img.plane[i] = picture->planes[i];
            in.img.i_stride[i] = picture->strides[i];
        }
    } else if (!x264_encoder_delayed_frames(c->x264)) {
        return 0;
    }
    int size = x264_encoder_encode(c->x264, &nals, &n, picture ? &in : NULL, &out);
    if (size <= 0)
        return size;
    take(c, nals, n);
    *ret = (struct nvenc_packet){c->packet.data, c->packet.size, out.i_pts, type_of(&out),
                                 out.i_qpplus1 - 1};
    return 1;
}

static void close_h264(void *coder)
{
    struct h264 *c = coder;
    x264_encoder_close(c->x264);
    free(c->packet.data);
    free(c);
}

const struct nvenc_coder nvenc_coder_h264 = {open_h264, headers, encode, close_h264};
