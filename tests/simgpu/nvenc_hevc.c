/*
 * HEVC through x265's own API, 8 and 10 bit, with nothing that looks ahead and one frame thread:
 * see nvenc_h264.c. With B-frames x265 insists on a lookahead that is longer than their run, which
 * adds to the lag; without it answers at once.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <x265.h>

#include "tests/simgpu/nvenc_coder.h"

struct hevc {
    const x265_api *api;
    x265_param *param;
    x265_encoder *x265;
    struct nvenc_bytes packet;
};

static void set_rate(x265_param *p, const struct nvenc_settings *s)
{
    switch (s->rate) {
    case NVENC_RATE_QP:
        p->rc.rateControlMode = X265_RC_CQP;
        p->rc.qp = s->qp.p;
        p->rc.ipFactor = exp2((s->qp.p - s->qp.i) / 6.0);
        p->rc.pbFactor = exp2((s->qp.b - s->qp.p) / 6.0);
        break;
    case NVENC_RATE_QUALITY:
        p->rc.rateControlMode = X265_RC_CRF;
        p->rc.rfConstant = s->quality;
        break;
    case NVENC_RATE_VBR:
    case NVENC_RATE_CBR:
        p->rc.rateControlMode = X265_RC_ABR;
        p->rc.bitrate = (int)(s->average_bps / 1000);
        break;
    }
    p->rc.vbvMaxBitrate = (int)(s->max_bps / 1000);
    p->rc.vbvBufferSize = (int)(s->vbv_bits / 1000);
    if (s->qp_min >= 0)
        p->rc.qpMin = s->qp_min;
    if (s->qp_max >= 0)
        p->rc.qpMax = s->qp_max;
    p->rc.cuTree = 0;
}

static void set_stream(x265_param *p, const struct nvenc_settings *s)
{
    p->sourceWidth = s->width;
    p->sourceHeight = s->height;
    p->internalCsp = X265_CSP_I420;
    p->fpsNum = (uint32_t)s->fps_num;
    p->fpsDenom = (uint32_t)s->fps_den;
    p->levelIdc = s->level / 3; /* general_level_idc is 30 times the level */
    p->bHighTier = s->tier;
    p->bAnnexB = 1;
    p->bRepeatHeaders = s->repeats_headers;
    p->bEnableAccessUnitDelimiters = s->has_aud;
    p->bEmitInfoSEI = 0;
    if (s->sar_num) {
        p->vui.aspectRatioIdc = X265_EXTENDED_SAR;
        p->vui.sarWidth = s->sar_num;
        p->vui.sarHeight = s->sar_den;
    }
    p->vui.bEnableVideoSignalTypePresentFlag = s->colour.is_present;
    p->vui.videoFormat = s->colour.format;
    p->vui.bEnableVideoFullRangeFlag = s->colour.is_full;
    p->vui.bEnableColorDescriptionPresentFlag = s->colour.has_description;
    p->vui.colorPrimaries = s->colour.primaries;
    p->vui.transferCharacteristics = s->colour.transfer;
    p->vui.matrixCoeffs = s->colour.matrix;
}

static void set_order(x265_param *p, const struct nvenc_settings *s)
{
    p->frameNumThreads = 1;
    p->bEnableWavefront = 0;
    p->keyframeMax = -1;
    p->scenecutThreshold = 0;
    p->bOpenGOP = 0;
    p->bframes = s->interval_p > 1 ? s->interval_p - 1 : 0;
    p->bFrameAdaptive = X265_B_ADAPT_NONE;
    p->bBPyramid = s->is_b_reference;
    p->lookaheadDepth = p->bframes ? p->bframes + 1 : 0;
    p->bEnableWeightedPred = 0;
}

static void close_hevc(void *coder)
{
    struct hevc *c = coder;
    if (c->x265)
        c->api->encoder_close(c->x265);
    if (c->param)
        c->api->param_free(c->param);
    free(c->packet.data);
    free(c);
}

/* x265 3.5 never frees a kilobyte or two that it takes here; a leak checker, where there is one, is
 * told to look away. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static x265_encoder *open_encoder(const struct hevc *c)
{
    if (__lsan_disable)
        __lsan_disable();
    c->api->param_parse(c->param, "pools", "none"); /* the field's type depends on the version */
    x265_encoder *x265 = c->api->encoder_open(c->param);
    if (__lsan_enable)
        __lsan_enable();
    return x265;
}

static void *open_hevc(const struct nvenc_settings *s)
{
    struct hevc *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->api = x265_api_get(s->bit_depth);
    c->param = c->api ? c->api->param_alloc() : NULL;
    if (!c->param || c->api->param_default_preset(c->param, "ultrafast", NULL))
        goto refused;
    c->param->logLevel = X265_LOG_NONE;
    set_order(c->param, s);
    set_stream(c->param, s);
    set_rate(c->param, s);
    if (c->api->param_apply_profile(c->param, s->bit_depth == 10 ? "main10" : "main"))
        goto refused;
    c->x265 = open_encoder(c);
    if (c->x265)
        return c;
refused:
    close_hevc(c);
    return NULL;
}

static void take(struct hevc *c, const x265_nal *nals, uint32_t n)
{
    c->packet.size = 0;
    for (uint32_t i = 0; i < n; i++)
        if (nals[i].type != NAL_UNIT_PREFIX_SEI && nals[i].type != NAL_UNIT_SUFFIX_SEI)
            nvenc_bytes_add(&c->packet, nals[i].payload, nals[i].sizeBytes);
}

static size_t headers(void *coder, uint8_t *ret, size_t room)
{
    struct hevc *c = coder;
    x265_nal *nals;
    uint32_t n;
    if (c->api->encoder_headers(c->x265, &nals, &n) < 0)
        return 0;
    take(c, nals, n);
    if (c->packet.size > room)
        return 0;
    memcpy(ret, c->packet.data, c->packet.size);
    return c->packet.size;
}

static enum nvenc_type type_of(const x265_picture *p)
{
    switch (p->sliceType) {
    case X265_TYPE_IDR:
        return NVENC_IDR;
    case X265_TYPE_I:
        return NVENC_I;
    case X265_TYPE_P:
        return NVENC_P;
    default:
        return NVENC_B;
    }
}

static int encode(void *coder, const struct nvenc_picture *picture, int64_t index,
                  enum nvenc_type type, struct nvenc_packet *ret)
{
    static const int types[] = {
        [NVENC_IDR] = X265_TYPE_IDR,
        [NVENC_I] = X265_TYPE_I,
        [NVENC_P] = X265_TYPE_P,
        [NVENC_B] = X265_TYPE_B,
    };
    struct hevc *c = coder;
    x265_picture in, out;
    x265_nal *nals;
    uint32_t n;
    c->api->picture_init(c->param, &in);
    c->api->picture_init(c->param, &out);
    if (picture) {
        in.sliceType = types[type];
        in.pts = index;
        for (int i = 0; i < 3; i++) {
            in.planes[i] = picture->planes[i];
            in.stride[i] = picture->strides[i];
        }
    }
    int got = c->api->encoder_encode(c->x265, &nals, &n, picture ? &in : NULL, &out);
    if (got <= 0)
        return got;
    take(c, nals, n);
    *ret = (struct nvenc_packet){c->packet.data, c->packet.size, out.pts, type_of(&out),
                                 (int)lround(out.frameData.qp)};
    return 1;
}

const struct nvenc_coder nvenc_coder_hevc = {open_hevc, headers, encode, close_hevc};
