/*
 * Every difference between the versions of FFmpeg that we build with (5.1 to the newest), and
 * nothing else: no other file may test a libav version.
 */
#pragma once
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/version.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* AVIOContext's write callback got a const buffer in libavformat 61. */
#if LIBAVFORMAT_VERSION_MAJOR >= 61
typedef const uint8_t compat_avio_byte;
#else
typedef uint8_t compat_avio_byte;
#endif

/* Side data of a stream moved from AVStream to its codec parameters in FFmpeg 6.1. Returns NULL
 * when there is none; ret_size may be NULL. */
static inline const uint8_t *compat_stream_side_data(const AVStream *st,
                                                     enum AVPacketSideDataType type,
                                                     size_t *ret_size)
{
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 30, 100)
    const AVPacketSideData *sd = av_packet_side_data_get(st->codecpar->coded_side_data,
                                                         st->codecpar->nb_coded_side_data, type);
    if (ret_size)
        *ret_size = sd ? sd->size : 0;
    return sd ? sd->data : NULL;
#else
    return av_stream_get_side_data(st, type, ret_size);
#endif
}

/* `size` fresh bytes of side data on the stream; NULL: out of memory. */
static inline uint8_t *compat_stream_side_data_new(AVStream *st, enum AVPacketSideDataType type,
                                                   size_t size)
{
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 30, 100)
    AVPacketSideData *sd = av_packet_side_data_new(
        &st->codecpar->coded_side_data, &st->codecpar->nb_coded_side_data, type, size, 0);
    return sd ? sd->data : NULL;
#else
    return av_stream_new_side_data(st, type, size);
#endif
}

/* The side data that avcodec_parameters_copy leaves behind. Negative: out of memory. */
static inline int compat_stream_side_data_copy(AVStream *to, const AVStream *from)
{
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 30, 100)
    (void)to, (void)from;
#else
    for (int i = 0; i < from->nb_side_data; i++) {
        const AVPacketSideData *sd = &from->side_data[i];
        uint8_t *copy = av_stream_new_side_data(to, sd->type, sd->size);
        if (!copy)
            return AVERROR(ENOMEM);
        memcpy(copy, sd->data, sd->size);
    }
#endif
    return 0;
}

/* Flags of a frame: fields of their own before libavutil 58.7. */
static inline bool compat_frame_is_key(const AVFrame *f)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    return f->flags & AV_FRAME_FLAG_KEY;
#else
    return f->key_frame;
#endif
}

static inline bool compat_frame_is_interlaced(const AVFrame *f)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    return f->flags & AV_FRAME_FLAG_INTERLACED;
#else
    return f->interlaced_frame;
#endif
}

static inline bool compat_frame_is_top_first(const AVFrame *f)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    return f->flags & AV_FRAME_FLAG_TOP_FIELD_FIRST;
#else
    return f->top_field_first;
#endif
}

static inline void compat_frame_set_interlaced(AVFrame *f, bool is_interlaced, bool is_top_first)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    f->flags &= ~(AV_FRAME_FLAG_INTERLACED | AV_FRAME_FLAG_TOP_FIELD_FIRST);
    f->flags |= is_interlaced ? AV_FRAME_FLAG_INTERLACED : 0;
    f->flags |= is_top_first ? AV_FRAME_FLAG_TOP_FIELD_FIRST : 0;
#else
    f->interlaced_frame = is_interlaced;
    f->top_field_first = is_top_first;
#endif
}

/* How long a frame is shown, in its time base; 0: unknown. */
static inline int64_t compat_frame_duration(const AVFrame *f)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
    return f->duration;
#else
    return f->pkt_duration;
#endif
}

/* What an encoder takes: lists ended by -1 or 0, NULL when it takes anything. Deprecated as fields
 * since libavcodec 61.13. */
static inline const enum AVPixelFormat *compat_codec_pix_fmts(const AVCodec *codec)
{
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 13, 100)
    const void *list = NULL;
    avcodec_get_supported_config(NULL, codec, AV_CODEC_CONFIG_PIX_FORMAT, 0, &list, NULL);
    return list;
#else
    return codec->pix_fmts;
#endif
}

static inline const enum AVSampleFormat *compat_codec_sample_fmts(const AVCodec *codec)
{
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 13, 100)
    const void *list = NULL;
    avcodec_get_supported_config(NULL, codec, AV_CODEC_CONFIG_SAMPLE_FORMAT, 0, &list, NULL);
    return list;
#else
    return codec->sample_fmts;
#endif
}

static inline const int *compat_codec_sample_rates(const AVCodec *codec)
{
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 13, 100)
    const void *list = NULL;
    avcodec_get_supported_config(NULL, codec, AV_CODEC_CONFIG_SAMPLE_RATE, 0, &list, NULL);
    return list;
#else
    return codec->supported_samplerates;
#endif
}
