/* Making test clips: one function a stage, a struct for the clip in the making. */
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswresample/swresample.h>
#include <libswscale/swscale.h>
#include <math.h>
#include <string.h>

#include "common/cleanup.h"
#include "pipelines/media/compat.h"
#include "tests/support/clip.h"
#include "tests/support/clip_picture.h"
#include "tests/support/clip_sound.h"

/* x265 keeps a little memory of every encoder it closes, which LeakSanitizer would report as ours.
 */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libx265\n";
}

struct track {
    AVStream *stream;
    AVCodecContext *encoder;
    AVFrame *frame;
    double end_seconds; /* audio */
    int64_t next;       /* video: frame number; audio: sample, both from the clip's start */
    int64_t end;
    bool is_done;
    const struct clip_audio *audio;
    double hz;
    SwrContext *swr;
    struct SwsContext *sws;
    AVFrame *drawn; /* video: before conversion to the encoder's format */
};

struct clip {
    const struct clip_options *o;
    int width, height, frames;
    AVRational fps, time_base;
    AVFormatContext *out;
    struct track tracks[1 + CLIP_AUDIO_MAX];
    int n_tracks;
    AVPacket *packet;
};

static int fail(struct err *e, const char *what, int averror)
{
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(averror, text, sizeof text);
    return err_set(e, ERR_BUG, "clip: %s: %s", what, text);
}

static void clip_free(struct clip *c)
{
    for (int i = 0; i < c->n_tracks; i++) {
        struct track *t = &c->tracks[i];
        avcodec_free_context(&t->encoder);
        av_frame_free(&t->frame);
        av_frame_free(&t->drawn);
        swr_free(&t->swr);
        sws_freeContext(t->sws);
    }
    av_packet_free(&c->packet);
    if (c->out)
        avio_closep(&c->out->pb);
    avformat_free_context(c->out);
}

/* ---- opening ---- */

static enum AVPixelFormat choose_pix_fmt(const struct clip_options *o, const AVCodec *codec)
{
    if (o->pix_fmt)
        return av_get_pix_fmt(o->pix_fmt);
    const enum AVPixelFormat *list = compat_codec_pix_fmts(codec);
    for (const enum AVPixelFormat *p = list; p && *p != AV_PIX_FMT_NONE; p++)
        if (*p == AV_PIX_FMT_YUV420P || *p == AV_PIX_FMT_YUVJ420P)
            return *p;
    return list ? list[0] : AV_PIX_FMT_YUV420P;
}

static int color_value(const char *name, int (*from_name)(const char *), int fallback)
{
    return name ? from_name(name) : fallback;
}

static void set_color(const struct clip_options *o, AVCodecContext *enc)
{
    enc->color_primaries =
        color_value(o->color_primaries, av_color_primaries_from_name, AVCOL_PRI_UNSPECIFIED);
    enc->color_trc =
        color_value(o->color_transfer, av_color_transfer_from_name, AVCOL_TRC_UNSPECIFIED);
    enc->colorspace = color_value(o->color_space, av_color_space_from_name, AVCOL_SPC_UNSPECIFIED);
    enc->color_range = color_value(o->color_range, av_color_range_from_name,
                                   enc->pix_fmt == AV_PIX_FMT_YUVJ420P ? AVCOL_RANGE_JPEG
                                                                       : AVCOL_RANGE_UNSPECIFIED);
}

/* The GOP structure, in each encoder's own words. */
static void set_gop(const struct clip *c, const AVCodec *codec, AVCodecContext *enc,
                    AVDictionary **options)
{
    const struct clip_options *o = c->o;
    int gop = o->gop ? o->gop : (int)lrint(av_q2d(c->fps));
    enc->gop_size = gop == 1 && strcmp(codec->name, "libx264") != 0 ? 0 : gop;
    enc->max_b_frames = o->b_frames;
    if (!strcmp(codec->name, "libx264")) {
        char params[128];
        snprintf(params, sizeof params, "scenecut=0:open-gop=%d:b-pyramid=%s:b-adapt=0",
                 o->is_open_gop, o->is_pyramid ? "normal" : "none");
        av_dict_set(options, "x264-params", params, 0);
        av_dict_set_int(options, "keyint_min", gop, 0);
        av_dict_set(options, "preset", "veryfast", 0);
    } else if (!strcmp(codec->name, "libx265")) {
        char params[128];
        snprintf(params, sizeof params,
                 "log-level=error:scenecut=0:open-gop=%d:bframes=%d:keyint=%d", o->is_open_gop,
                 o->b_frames, gop);
        av_dict_set(options, "x265-params", params, 0);
        av_dict_set(options, "preset", "ultrafast", 0);
    } else if (!strcmp(codec->name, "mpeg2video") || !strcmp(codec->name, "mpeg4")) {
        if (!o->is_open_gop)
            enc->flags |= AV_CODEC_FLAG_CLOSED_GOP;
        av_dict_set(options, "sc_threshold", "1000000000", 0);
        enc->bit_rate = 2000000;
    } else if (!strncmp(codec->name, "libvpx", 6)) {
        av_dict_set(options, "deadline", "realtime", 0);
        av_dict_set(options, "cpu-used", "8", 0);
        enc->bit_rate = 1000000;
    } else if (!strcmp(codec->name, "libsvtav1")) {
        av_dict_set(options, "preset", "12", 0);
    }
}

static void set_rotation(AVStream *st, int rotation)
{
    uint8_t *m = compat_stream_side_data_new(st, AV_PKT_DATA_DISPLAYMATRIX, 9 * sizeof(int32_t));
    if (m)
        av_display_rotation_set((int32_t *)(void *)m, rotation);
}

static int open_encoder(struct clip *c, struct track *t, const AVCodec *codec,
                        AVDictionary **options, struct err *e)
{
    if (c->out->oformat->flags & AVFMT_GLOBALHEADER)
        t->encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    t->encoder->strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL;
    int r = avcodec_open2(t->encoder, codec, options);
    av_dict_free(options);
    if (r < 0)
        return fail(e, codec->name, r);
    if (!(t->stream = avformat_new_stream(c->out, NULL)))
        return fail(e, "stream", AVERROR(ENOMEM));
    t->stream->time_base = t->encoder->time_base;
    r = avcodec_parameters_from_context(t->stream->codecpar, t->encoder);
    return r < 0 ? fail(e, codec->name, r) : 0;
}

static int open_video_frames(const struct clip *c, struct track *t, struct err *e)
{
    bool is_sideways = c->o->rotation % 180 != 0;
    int w = is_sideways ? c->height : c->width, h = is_sideways ? c->width : c->height;
    AVFrame **frames[] = {&t->drawn, &t->frame};
    for (int i = 0; i < 2; i++) {
        AVFrame *f = *frames[i] = av_frame_alloc();
        if (!f)
            return fail(e, "frame", AVERROR(ENOMEM));
        f->width = w;
        f->height = h;
        f->format = i == 0 ? AV_PIX_FMT_YUV420P : t->encoder->pix_fmt;
        int r = av_frame_get_buffer(f, 0);
        if (r < 0)
            return fail(e, "frame", r);
    }
    t->sws = sws_getContext(w, h, AV_PIX_FMT_YUV420P, w, h, t->encoder->pix_fmt, SWS_BILINEAR, NULL,
                            NULL, NULL);
    return t->sws ? 0 : fail(e, "swscale", AVERROR(EINVAL));
}

static int open_video(struct clip *c, struct err *e)
{
    const struct clip_options *o = c->o;
    const AVCodec *codec = avcodec_find_encoder_by_name(o->codec ? o->codec : "libx264");
    if (!codec)
        return err_set(e, ERR_BUG, "clip: no encoder %s", o->codec);
    struct track *t = &c->tracks[c->n_tracks++];
    if (!(t->encoder = avcodec_alloc_context3(codec)))
        return fail(e, "encoder", AVERROR(ENOMEM));
    bool is_sideways = o->rotation % 180 != 0;
    AVCodecContext *enc = t->encoder;
    enc->width = is_sideways ? c->height : c->width;
    enc->height = is_sideways ? c->width : c->height;
    enc->pix_fmt = choose_pix_fmt(o, codec);
    enc->time_base = c->time_base;
    enc->framerate = o->pts ? (AVRational){0, 1} : c->fps;
    enc->thread_count = 2;
    if (rational_is_set(o->sample_aspect))
        enc->sample_aspect_ratio =
            (AVRational){(int)o->sample_aspect.num, (int)o->sample_aspect.den};
    if (o->is_interlaced) {
        enc->flags |= AV_CODEC_FLAG_INTERLACED_DCT | AV_CODEC_FLAG_INTERLACED_ME;
        enc->field_order = o->is_bottom_first ? AV_FIELD_BB : AV_FIELD_TT;
    }
    set_color(o, enc);
    AVDictionary *options = NULL;
    set_gop(c, codec, enc, &options);
    if (o->video_options)
        av_dict_parse_string(&options, o->video_options, "=", ":", 0);
    int r = open_encoder(c, t, codec, &options, e);
    if (r < 0)
        return r;
    t->stream->sample_aspect_ratio = enc->sample_aspect_ratio;
    t->stream->avg_frame_rate = enc->framerate;
    if (o->rotation)
        set_rotation(t->stream, o->rotation);
    t->end = c->frames;
    return open_video_frames(c, t, e);
}

static double video_seconds(const struct clip *c)
{
    if (!c->o->pts)
        return c->frames * av_q2d(av_inv_q(c->fps));
    int64_t last = c->o->pts[c->frames - 1] - c->o->pts[0];
    return (double)last * av_q2d(c->time_base) + av_q2d(av_inv_q(c->fps));
}

static int open_resampler(struct track *t, struct err *e)
{
    AVCodecContext *enc = t->encoder;
    int r = swr_alloc_set_opts2(&t->swr, &enc->ch_layout, enc->sample_fmt, enc->sample_rate,
                                &enc->ch_layout, AV_SAMPLE_FMT_FLTP, enc->sample_rate, 0, NULL);
    if (r >= 0)
        r = swr_init(t->swr);
    return r < 0 ? fail(e, "swresample", r) : 0;
}

static int open_audio(struct clip *c, int index, struct err *e)
{
    const struct clip_audio *a = &c->o->audio[index];
    const AVCodec *codec = avcodec_find_encoder_by_name(a->codec ? a->codec : "aac");
    if (!codec)
        return err_set(e, ERR_BUG, "clip: no encoder %s", a->codec);
    struct track *t = &c->tracks[c->n_tracks++];
    t->audio = a;
    t->hz = 440 + 110 * index;
    if (!(t->encoder = avcodec_alloc_context3(codec)))
        return fail(e, "encoder", AVERROR(ENOMEM));
    AVCodecContext *enc = t->encoder;
    enc->sample_rate = a->sample_rate ? a->sample_rate : 48000;
    enc->time_base = (AVRational){1, enc->sample_rate};
    av_channel_layout_default(&enc->ch_layout, a->channels ? a->channels : 2);
    const enum AVSampleFormat *fmts = compat_codec_sample_fmts(codec);
    enc->sample_fmt = fmts ? fmts[0] : AV_SAMPLE_FMT_FLTP;
    enc->bit_rate = 64000 * enc->ch_layout.nb_channels;
    AVDictionary *options = NULL;
    int r = open_encoder(c, t, codec, &options, e);
    if (r < 0)
        return r;
    if (a->language)
        av_dict_set(&t->stream->metadata, "language", a->language, 0);
    if (a->title)
        av_dict_set(&t->stream->metadata, "title", a->title, 0);
    t->stream->disposition = a->is_default ? AV_DISPOSITION_DEFAULT : 0;
    double end = a->end_seconds > 0 ? a->end_seconds : video_seconds(c);
    t->next = llrint(a->start_seconds * enc->sample_rate);
    t->end = llrint(end * enc->sample_rate);
    return open_resampler(t, e);
}

/* ---- encoding ---- */

/* What every timestamp is shifted by, in ticks of tb. */
static int64_t shift(const struct clip *c, AVRational tb)
{
    return av_rescale_q(c->o->start_90k, (AVRational){1, 90000}, tb) +
           llrint(c->o->start_seconds / av_q2d(tb));
}

/* To the next picture, which not every encoder says; the last one is shown as long as the first. */
static int64_t picture_duration(const struct clip *c, int64_t pts)
{
    const int64_t *list = c->o->pts;
    if (!list)
        return av_rescale_q(1, av_inv_q(c->fps), c->time_base);
    for (int i = 0; i + 1 < c->frames; i++)
        if (list[i] == pts)
            return list[i + 1] - pts;
    return c->frames > 1 ? list[1] - list[0] : 1;
}

static int drain(struct clip *c, struct track *t, struct err *e)
{
    for (;;) {
        int r = avcodec_receive_packet(t->encoder, c->packet);
        if (r == AVERROR(EAGAIN))
            return 0;
        if (r == AVERROR_EOF) {
            t->is_done = true;
            return 0;
        }
        if (r < 0)
            return fail(e, "encode", r);
        AVRational tb = t->stream->time_base;
        if (!t->audio)
            c->packet->duration = picture_duration(c, c->packet->pts);
        av_packet_rescale_ts(c->packet, t->encoder->time_base, tb);
        c->packet->pts += shift(c, tb);
        c->packet->dts += shift(c, tb);
        c->packet->stream_index = t->stream->index;
        r = av_interleaved_write_frame(c->out, c->packet);
        if (r < 0)
            return fail(e, "write", r);
    }
}

static int send(struct clip *c, struct track *t, AVFrame *frame, struct err *e)
{
    int r = avcodec_send_frame(t->encoder, frame);
    return r < 0 ? fail(e, "encode", r) : drain(c, t, e);
}

static int step_video(struct clip *c, struct track *t, struct err *e)
{
    if (t->next == t->end)
        return send(c, t, NULL, e);
    const struct clip_canvas canvas = {.width = c->width,
                                       .height = c->height,
                                       .rotation = c->o->rotation,
                                       .is_interlaced = c->o->is_interlaced,
                                       .is_bottom_first = c->o->is_bottom_first};
    int r = av_frame_make_writable(t->frame);
    if (r < 0)
        return fail(e, "frame", r);
    clip_draw(&canvas, t->drawn, t->next);
    sws_scale(t->sws, (const uint8_t *const *)t->drawn->data, t->drawn->linesize, 0,
              t->drawn->height, t->frame->data, t->frame->linesize);
    compat_frame_set_interlaced(t->frame, c->o->is_interlaced, !c->o->is_bottom_first);
    t->frame->pts =
        c->o->pts ? c->o->pts[t->next] : av_rescale_q(t->next, av_inv_q(c->fps), c->time_base);
    t->next++;
    return send(c, t, t->frame, e);
}

static int step_audio(struct clip *c, struct track *t, struct err *e)
{
    int64_t left = t->end - t->next;
    if (left <= 0)
        return send(c, t, NULL, e);
    int n = t->encoder->frame_size ? t->encoder->frame_size : 1024;
    if (left < n)
        n = (int)left;
    cleanup(av_frame_free) AVFrame *floats = av_frame_alloc();
    cleanup(av_frame_free) AVFrame *frame = av_frame_alloc();
    if (!floats || !frame)
        return fail(e, "frame", AVERROR(ENOMEM));
    AVFrame *both[] = {floats, frame};
    for (int i = 0; i < 2; i++) {
        both[i]->format = i == 0 ? AV_SAMPLE_FMT_FLTP : t->encoder->sample_fmt;
        both[i]->nb_samples = n;
        both[i]->sample_rate = t->encoder->sample_rate;
        av_channel_layout_copy(&both[i]->ch_layout, &t->encoder->ch_layout);
        int r = av_frame_get_buffer(both[i], 0);
        if (r < 0)
            return fail(e, "frame", r);
    }
    for (int i = 0; i < n; i++)
        for (int ch = 0; ch < floats->ch_layout.nb_channels; ch++)
            ((float *)(void *)floats->extended_data[ch])[i] =
                (float)clip_sample(t->next + i, t->encoder->sample_rate, t->hz);
    int r =
        swr_convert(t->swr, frame->extended_data, n, (const uint8_t **)floats->extended_data, n);
    if (r < 0)
        return fail(e, "swresample", r);
    frame->pts = t->next;
    t->next += n;
    return send(c, t, frame, e);
}

/* The track that is furthest behind in time. */
static struct track *next_track(struct clip *c)
{
    struct track *best = NULL;
    double best_at = 0;
    for (int i = 0; i < c->n_tracks; i++) {
        struct track *t = &c->tracks[i];
        double at = t->audio ? (double)t->next / t->encoder->sample_rate
                             : (double)t->next * av_q2d(av_inv_q(c->fps));
        if (!t->is_done && (!best || at < best_at)) {
            best = t;
            best_at = at;
        }
    }
    return best;
}

/* ---- the cover: one JPEG as an attached picture ---- */

static int add_cover_stream(struct clip *c, struct err *e)
{
    AVStream *st = avformat_new_stream(c->out, NULL);
    if (!st)
        return fail(e, "cover", AVERROR(ENOMEM));
    st->codecpar->codec_type = AVMEDIA_TYPE_VIDEO;
    st->codecpar->codec_id = AV_CODEC_ID_MJPEG;
    st->codecpar->width = st->codecpar->height = 64;
    st->codecpar->format = AV_PIX_FMT_YUVJ420P;
    st->disposition = AV_DISPOSITION_ATTACHED_PIC;
    st->time_base = (AVRational){1, 90000};
    return 0;
}

static int encode_cover(AVCodecContext *enc, AVFrame *frame, AVPacket *packet)
{
    enc->width = frame->width = 64;
    enc->height = frame->height = 64;
    enc->pix_fmt = AV_PIX_FMT_YUVJ420P;
    frame->format = AV_PIX_FMT_YUVJ420P;
    enc->time_base = (AVRational){1, 25};
    int r = avcodec_open2(enc, NULL, NULL);
    if (r >= 0)
        r = av_frame_get_buffer(frame, 0);
    if (r < 0)
        return r;
    clip_draw(&(struct clip_canvas){.width = 64, .height = 64}, frame, 0);
    frame->pts = 0;
    if ((r = avcodec_send_frame(enc, frame)) < 0 || (r = avcodec_send_frame(enc, NULL)) < 0)
        return r;
    return avcodec_receive_packet(enc, packet);
}

static int write_cover(struct clip *c, struct err *e)
{
    AVCodecContext *enc = avcodec_alloc_context3(avcodec_find_encoder(AV_CODEC_ID_MJPEG));
    cleanup(av_frame_free) AVFrame *frame = av_frame_alloc();
    int r = enc && frame ? encode_cover(enc, frame, c->packet) : AVERROR(ENOMEM);
    avcodec_free_context(&enc);
    if (r >= 0) {
        c->packet->stream_index = (int)c->out->nb_streams - 1;
        r = av_interleaved_write_frame(c->out, c->packet);
    }
    return r < 0 ? fail(e, "cover", r) : 0;
}

/* ---- the whole ---- */

static int open_all(struct clip *c, const char *path, struct err *e)
{
    int r = avformat_alloc_output_context2(&c->out, NULL, c->o->format, path);
    if (r < 0)
        return fail(e, path, r);
    if (!(c->packet = av_packet_alloc()))
        return fail(e, path, AVERROR(ENOMEM));
    /* times are written as they were asked for, but FLV has no sign bit to write them with */
    if (strcmp(c->out->oformat->name, "flv") != 0)
        c->out->avoid_negative_ts = AVFMT_AVOID_NEG_TS_DISABLED;
    if (!c->o->is_audio_only && (r = open_video(c, e)) < 0)
        return r;
    for (int i = 0; i < c->o->n_audio; i++)
        if ((r = open_audio(c, i, e)) < 0)
            return r;
    if (c->o->has_cover && (r = add_cover_stream(c, e)) < 0)
        return r;
    AVDictionary *options = NULL;
    if (c->o->muxer_options)
        av_dict_parse_string(&options, c->o->muxer_options, "=", ":", 0);
    r = avio_open(&c->out->pb, path, AVIO_FLAG_WRITE);
    if (r >= 0)
        r = avformat_write_header(c->out, &options);
    av_dict_free(&options);
    return r < 0 ? fail(e, path, r) : 0;
}

static int make(struct clip *c, const char *path, struct err *e)
{
    int r = open_all(c, path, e);
    if (r == 0 && c->o->has_cover)
        r = write_cover(c, e);
    struct track *t;
    while (r == 0 && (t = next_track(c)))
        r = t->audio ? step_audio(c, t, e) : step_video(c, t, e);
    if (r == 0 && (r = av_write_trailer(c->out)) < 0)
        r = fail(e, path, r);
    return r < 0 ? r : 0;
}

int clip_make(const char *path, const struct clip_options *o, struct err *e)
{
    struct clip c = {.o = o,
                     .width = o->width ? o->width : 320,
                     .height = o->height ? o->height : 180,
                     .frames = o->frames ? o->frames : 50};
    c.fps = rational_is_set(o->fps) ? (AVRational){(int)o->fps.num, (int)o->fps.den}
                                    : (AVRational){25, 1};
    c.time_base = rational_is_set(o->time_base)
                      ? (AVRational){(int)o->time_base.num, (int)o->time_base.den}
                      : av_inv_q(c.fps);
    int r = make(&c, path, e);
    clip_free(&c);
    return r;
}
