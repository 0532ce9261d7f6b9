#include "pipelines/media/encoder_codec.h"

#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/device_fault.h"

/*
 * What each encoder needs so that a chunk can join its neighbours: keyframes only where they are
 * asked for, closed GOPs, parameter sets that do not depend on the content, and output that does
 * not depend on the number of cores. Profiles may add options, but these stand.
 */
static const char *const nvenc_presets[][2] = {
    {"ultrafast", "p1"}, {"superfast", "p2"}, {"veryfast", "p3"}, {"faster", "p4"},
    {"fast", "p4"},      {"medium", "p5"},    {"slow", "p6"},     {"slower", "p7"},
    {"veryslow", "p7"},  {NULL, NULL},
};
#define NVENC_OPTIONS "forced-idr=1", "no-scenecut=1", "strict_gop=1", "g=1000000000", "rc=vbr"

static const struct encoder_kind {
    const char *name;
    const char *params_key; /* the private option that takes "key=value:key=value" */
    const char *params;
    const char *options[5];          /* "key=value" */
    const char *crf_key;             /* the option for constant quality */
    const char *const (*presets)[2]; /* of libx264 and libx265 to this encoder's; NULL: the same */
    bool is_gop_encoder; /* cannot be told where keyframes go: a new encoder for each GOP */
} kinds[] = {
    {"libx264",
     "x264-params",
     "keyint=infinite:scenecut=0:open-gop=0:stitchable=1",
     {"forced-idr=1"},
     "crf",
     NULL,
     false},
    {"libx265",
     "x265-params",
     "keyint=-1:scenecut=0:open-gop=0:repeat-headers=0:info=0:frame-threads=1:pools=none:"
     "log-level=error",
     {"forced-idr=1"},
     "crf",
     NULL,
     false},
    {"libsvtav1", "svtav1-params", "keyint=-1:lp=1", {NULL}, "crf", NULL, true},
    {"h264_nvenc", NULL, NULL, {NVENC_OPTIONS}, "cq", nvenc_presets, false},
    {"hevc_nvenc", NULL, NULL, {NVENC_OPTIONS}, "cq", nvenc_presets, false},
    {"av1_nvenc", NULL, NULL, {NVENC_OPTIONS}, "cq", nvenc_presets, false},
};

struct encoder_codec {
    const struct encoder_kind *kind;
    char *rendition, *device; /* for messages */
    bool is_gpu, is_open;
    const AVCodec *codec;
    AVCodecContext *ctx;
    AVDictionary *options; /* until it is opened */
    char *key;             /* all that the bytes depend on */
};

static const struct encoder_kind *find_kind(const char *name)
{
    static const struct encoder_kind other = {"", NULL, NULL, {"forced-idr=1"}, "crf", NULL, false};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return &other;
}

static void set_option(const struct encoder_kind *kind, AVDictionary **d, const char *key_value)
{
    const char *eq = strchr(key_value, '=');
    if (!eq)
        return;
    cleanup(free_ptr) char *key = xasprintf("%.*s", (int)(eq - key_value), key_value);
    if (kind->params_key && !strcmp(key, kind->params_key)) {
        AVDictionaryEntry *base = av_dict_get(*d, key, NULL, 0);
        cleanup(free_ptr) char *both = xasprintf("%s:%s", eq + 1, base ? base->value : "");
        av_dict_set(d, key, both, 0); /* ours last: the last one counts */
        return;
    }
    av_dict_set(d, key, eq + 1, 0);
}

static const char *preset_of(const struct encoder_kind *kind, const char *preset)
{
    for (size_t i = 0; kind->presets && kind->presets[i][0]; i++)
        if (!strcmp(kind->presets[i][0], preset))
            return kind->presets[i][1];
    return preset;
}

static void set_options(const struct encoder_codec_options *o, const struct encoder_kind *kind,
                        AVDictionary **d)
{
    const struct plan_rendition *r = o->rendition;
    if (kind->params_key)
        av_dict_set(d, kind->params_key, kind->params, 0);
    for (size_t i = 0; i < sizeof kind->options / sizeof kind->options[0]; i++)
        if (kind->options[i])
            set_option(kind, d, kind->options[i]);
    if (o->plan->preset)
        av_dict_set(d, "preset", preset_of(kind, o->plan->preset), 0);
    if (r->encoder_profile)
        av_dict_set(d, "profile", r->encoder_profile, 0);
    if (r->level)
        av_dict_set(d, "level", r->level, 0);
    if (r->crf >= 0) {
        char crf[32];
        snprintf(crf, sizeof crf, "%g", r->crf);
        av_dict_set(d, kind->crf_key, crf, 0);
    }
    for (size_t i = 0; i < r->n_options; i++)
        set_option(kind, d, r->options[i]);
}

static void set_colour(AVCodecContext *ctx, const struct plan *plan, const struct source_video *v)
{
    int n;
    ctx->color_range = AVCOL_RANGE_MPEG;
    if (plan->is_tonemapped) {
        ctx->color_primaries = AVCOL_PRI_BT709;
        ctx->color_trc = AVCOL_TRC_BT709;
        ctx->colorspace = AVCOL_SPC_BT709;
        return;
    }
    if (v->color_primaries && (n = av_color_primaries_from_name(v->color_primaries)) >= 0)
        ctx->color_primaries = n;
    if (v->color_transfer && (n = av_color_transfer_from_name(v->color_transfer)) >= 0)
        ctx->color_trc = n;
    if (v->color_space && (n = av_color_space_from_name(v->color_space)) >= 0 && n != AVCOL_SPC_RGB)
        ctx->colorspace = n;
}

static AVRational to_av(struct rational r)
{
    return (AVRational){(int)r.num, (int)r.den};
}

static int set_context(const struct encoder_codec_options *o, AVCodecContext *ctx, struct err *e)
{
    const struct plan *plan = o->plan;
    const struct plan_rendition *r = o->rendition;
    ctx->width = r->width;
    ctx->height = r->height;
    ctx->pix_fmt =
        device_is_gpu(o->device) ? device_pix_fmt(o->device) : av_get_pix_fmt(plan->pix_fmt);
    ctx->time_base = to_av(r->time_base);
    ctx->framerate = to_av(rational_is_set(r->fps) ? r->fps : o->source->frame_rate);
    ctx->sample_aspect_ratio = (AVRational){1, 1};
    ctx->flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_CLOSED_GOP;
    ctx->thread_count = 1; /* the same bytes on any number of cores; sessions fill the cores */
    ctx->bit_rate = r->crf >= 0 ? 0 : r->bitrate;
    ctx->rc_max_rate = r->maxrate;
    ctx->rc_buffer_size = (int)r->bufsize;
    set_colour(ctx, plan, o->source);
    return device_frames(o->device, plan->pix_fmt, r->width, r->height, &ctx->hw_frames_ctx, e);
}

static char *key_of(const struct encoder_codec *c, const char *pix_fmt)
{
    const AVCodecContext *ctx = c->ctx;
    struct strbuf key = {0};
    strbuf_printf(&key, "%s %s %s %s %dx%d tb=%d/%d fps=%d/%d", c->rendition, c->device,
                  c->codec->name, pix_fmt, ctx->width, ctx->height, ctx->time_base.num,
                  ctx->time_base.den, ctx->framerate.num, ctx->framerate.den);
    strbuf_printf(&key, " %lld/%lld/%d colour=%d/%d/%d", (long long)ctx->bit_rate,
                  (long long)ctx->rc_max_rate, ctx->rc_buffer_size, ctx->color_primaries,
                  ctx->color_trc, ctx->colorspace);
    const AVDictionaryEntry *option = NULL;
    while ((option = av_dict_get(c->options, "", option, AV_DICT_IGNORE_SUFFIX)))
        strbuf_printf(&key, " %s=%s", option->key, option->value);
    return strbuf_take(&key);
}

int encoder_codec_new(const struct encoder_codec_options *o, struct encoder_codec **ret,
                      struct err *e)
{
    const char *name;
    int status = device_encoder(o->device, o->plan->encoder, &name, e);
    if (status < 0)
        return status;
    const AVCodec *codec = avcodec_find_encoder_by_name(name);
    if (!codec)
        return err_set(e, ERR_DEVICE, "encoder %s is not in this build of libavcodec", name);
    cleanup(encoder_codec_free) struct encoder_codec *c = xcalloc(1, sizeof *c);
    c->kind = find_kind(name);
    c->rendition = xstrdup(o->rendition->name);
    c->device = xstrdup(device_name(o->device));
    c->is_gpu = device_is_gpu(o->device);
    c->codec = codec;
    c->ctx = avcodec_alloc_context3(codec);
    if (!c->ctx)
        return err_set(e, ERR_RESOURCE, "%s: out of memory", c->rendition);
    if ((status = set_context(o, c->ctx, e)) < 0)
        return status;
    set_options(o, c->kind, &c->options);
    c->key = key_of(c, o->plan->pix_fmt);
    *ret = take(c);
    return 0;
}

int encoder_codec_open(struct encoder_codec *c, struct err *e)
{
    if (c->is_open)
        return 0;
    int status = avcodec_open2(c->ctx, c->codec, &c->options);
    if (status < 0) /* on a GPU: no engine, no session left, no memory */
        return device_fault(c->is_gpu, c->is_gpu ? ERR_DEVICE : ERR_CONFIG, status, e,
                            "%s: encoder %s does not open on %s", c->rendition, c->codec->name,
                            c->device);
    c->is_open = true;
    const AVDictionaryEntry *unknown = av_dict_get(c->options, "", NULL, AV_DICT_IGNORE_SUFFIX);
    return unknown ? err_set(e, ERR_CONFIG, "%s: encoder %s has no option \"%s\"", c->rendition,
                             c->codec->name, unknown->key)
                   : 0;
}

bool encoder_codec_equals(const struct encoder_codec *a, const struct encoder_codec *b)
{
    return !strcmp(a->key, b->key);
}

AVCodecContext *encoder_codec_context(struct encoder_codec *c)
{
    return c->ctx;
}

const char *encoder_codec_name(const struct encoder_codec *c)
{
    return c->codec->name;
}

bool encoder_codec_is_gop_encoder(const struct encoder_codec *c)
{
    return c->kind->is_gop_encoder;
}

/* SVT-AV1 hangs when freed in mid-stream. */
static void drain(struct encoder_codec *c)
{
    AVPacket *pkt = av_packet_alloc();
    avcodec_send_frame(c->ctx, NULL);
    while (pkt && avcodec_receive_packet(c->ctx, pkt) >= 0)
        av_packet_unref(pkt);
    av_packet_free(&pkt);
}

void encoder_codec_free(struct encoder_codec **pp)
{
    struct encoder_codec *c = *pp;
    if (!c)
        return;
    if (c->is_open && c->kind->is_gop_encoder)
        drain(c);
    avcodec_free_context(&c->ctx);
    av_dict_free(&c->options);
    free(c->rendition);
    free(c->device);
    free(c->key);
    free_ptr(pp);
}
