/*
 * A media segment is written here, box by box, because its timing is the product's promise; the
 * sample entries of the init segment (avcC, hvcC, av1C, esds, dOps, colr, …) are left to
 * libavformat.
 */
#include "pipelines/media/cmaf.h"

#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <string.h>

#include "common/cleanup.h"

static void put(struct strbuf *out, uint64_t v, int bytes)
{
    uint8_t b[8];
    for (int i = 0; i < bytes; i++)
        b[i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
    strbuf_add(out, b, (size_t)bytes);
}

static void patch32(struct strbuf *out, size_t at, uint32_t v)
{
    uint8_t b[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    memcpy(out->s + at, b, 4);
}

static uint32_t get32(const struct strbuf *b, size_t at)
{
    const uint8_t *p = (const uint8_t *)b->s + at;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static size_t box_begin(struct strbuf *out, const char type[5])
{
    size_t at = out->len;
    put(out, 0, 4);
    strbuf_add(out, type, 4);
    return at;
}

static size_t full_box_begin(struct strbuf *out, const char type[5], int version, uint32_t flags)
{
    size_t at = box_begin(out, type);
    put(out, (uint64_t)version << 24 | flags, 4);
    return at;
}

static void box_end(struct strbuf *out, size_t at)
{
    patch32(out, at, (uint32_t)(out->len - at));
}

enum { /* ISO/IEC 14496-12 §8.8 */
       TFHD_DEFAULT_DURATION = 0x000008,
       TFHD_DEFAULT_FLAGS = 0x000020,
       TFHD_BASE_IS_MOOF = 0x020000,
       TRUN_DATA_OFFSET = 0x000001,
       TRUN_DURATION = 0x000100,
       TRUN_SIZE = 0x000200,
       TRUN_FLAGS = 0x000400,
       TRUN_COMPOSITION = 0x000800,
       SAMPLE_SYNC = 0x02000000,     /* sample_depends_on = 2 (none) */
       SAMPLE_NOT_SYNC = 0x01010000, /* sample_depends_on = 1, sample_is_non_sync_sample */
};

static int64_t duration(const struct cmaf_sample *samples, size_t n, int64_t end, size_t i)
{
    return (i + 1 < n ? samples[i + 1].dts : end) - samples[i].dts;
}

/* Whether all durations are the same, so that one default serves. */
static bool is_uniform(const struct cmaf_sample *samples, size_t n, int64_t end)
{
    for (size_t i = 1; i < n; i++)
        if (duration(samples, n, end, i) != duration(samples, n, end, 0))
            return false;
    return true;
}

/* Returns where the data offset has to be patched in. */
static size_t write_traf(struct strbuf *out, const struct cmaf_sample *samples, size_t n,
                         int64_t end, bool is_video)
{
    bool uniform = is_uniform(samples, n, end);
    size_t traf = box_begin(out, "traf");
    size_t tfhd = full_box_begin(out, "tfhd", 0,
                                 TFHD_BASE_IS_MOOF | (uniform ? TFHD_DEFAULT_DURATION : 0) |
                                     (is_video ? 0 : TFHD_DEFAULT_FLAGS));
    put(out, 1, 4);
    if (uniform)
        put(out, (uint64_t)duration(samples, n, end, 0), 4);
    if (!is_video)
        put(out, SAMPLE_SYNC, 4);
    box_end(out, tfhd);
    size_t tfdt = full_box_begin(out, "tfdt", 1, 0);
    put(out, (uint64_t)samples[0].dts, 8);
    box_end(out, tfdt);
    size_t trun = full_box_begin(out, "trun", 0,
                                 TRUN_DATA_OFFSET | TRUN_SIZE | (uniform ? 0 : TRUN_DURATION) |
                                     (is_video ? TRUN_FLAGS | TRUN_COMPOSITION : 0));
    put(out, n, 4);
    size_t data_offset = out->len;
    put(out, 0, 4);
    for (size_t i = 0; i < n; i++) {
        if (!uniform)
            put(out, (uint64_t)duration(samples, n, end, i), 4);
        put(out, samples[i].size, 4);
        if (is_video) {
            put(out, samples[i].is_key ? SAMPLE_SYNC : SAMPLE_NOT_SYNC, 4);
            put(out, (uint64_t)(samples[i].pts - samples[i].dts), 4);
        }
    }
    box_end(out, trun);
    box_end(out, traf);
    return data_offset;
}

void cmaf_write_segment(struct strbuf *out, int64_t sequence, const struct cmaf_sample *samples,
                        size_t n, int64_t end, bool is_video, const struct strbuf *payload)
{
    size_t styp = box_begin(out, "styp");
    strbuf_add(out, "msdh", 4);
    put(out, 0, 4);
    strbuf_add(out, "msdhcmfs", 8);
    box_end(out, styp);
    size_t moof = box_begin(out, "moof");
    size_t mfhd = full_box_begin(out, "mfhd", 0, 0);
    put(out, (uint64_t)sequence, 4);
    box_end(out, mfhd);
    size_t data_offset = write_traf(out, samples, n, end, is_video);
    box_end(out, moof);
    patch32(out, data_offset, (uint32_t)(out->len - moof + 8));
    put(out, payload->len + 8, 4);
    strbuf_add(out, "mdat", 4);
    strbuf_add(out, payload->s, payload->len);
}

/* Runs libavformat's mp4 muxer as far as the moov and appends what it wrote. */
static int mux_header(struct strbuf *out, const AVCodecParameters *par, AVRational time_base,
                      const AVPacket *first, const char *language, struct err *e)
{
    AVFormatContext *mux = NULL;
    AVDictionary *options = NULL;
    AVPacket *pkt = NULL;
    uint8_t *bytes = NULL;
    int ret = avformat_alloc_output_context2(&mux, NULL, "mp4", NULL);
    AVStream *stream = ret < 0 ? NULL : avformat_new_stream(mux, NULL);
    if (!stream || avio_open_dyn_buf(&mux->pb) < 0) {
        ret = AVERROR(ENOMEM);
        goto end;
    }
    bool needs_packet = par->codec_id == AV_CODEC_ID_AC3 || par->codec_id == AV_CODEC_ID_EAC3;
    if ((ret = avcodec_parameters_copy(stream->codecpar, par)) < 0)
        goto end;
    stream->time_base = time_base;
    if (par->codec_type == AVMEDIA_TYPE_VIDEO)
        stream->sample_aspect_ratio = (AVRational){1, 1};
    stream->codecpar->bit_rate = 0; /* what will be written is not known yet: promise nothing */
    stream->codecpar->codec_tag = par->codec_id == AV_CODEC_ID_HEVC ? MKTAG('h', 'v', 'c', '1') : 0;
    if (language)
        av_dict_set(&stream->metadata, "language", language, 0);
    mux->flags |= AVFMT_FLAG_BITEXACT;
    mux->strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL; /* FLAC, before FFmpeg 6 */
    av_dict_set(&options, "movflags",
                needs_packet ? "frag_custom+delay_moov+default_base_moof+cmaf+skip_trailer"
                             : "frag_custom+empty_moov+default_base_moof+cmaf+skip_trailer",
                0);
    av_dict_set(&options, "use_editlist", "0", 0);
    av_dict_set_int(&options, "video_track_timescale", time_base.den, 0);
    if ((ret = avformat_write_header(mux, &options)) < 0)
        goto end;
    if (needs_packet) {
        if (!first || !(pkt = av_packet_clone(first))) {
            ret = AVERROR(ENOMEM);
            goto end;
        }
        pkt->pts = pkt->dts = 0;
        pkt->stream_index = 0;
        if ((ret = av_write_frame(mux, pkt)) < 0 || (ret = av_write_frame(mux, NULL)) < 0)
            goto end;
    }
end:
    av_packet_free(&pkt);
    av_dict_free(&options);
    if (mux && mux->pb) {
        int size = avio_close_dyn_buf(mux->pb, &bytes);
        mux->pb = NULL;
        if (ret >= 0)
            strbuf_add(out, bytes, (size_t)size);
        av_free(bytes);
    }
    avformat_free_context(mux);
    if (ret < 0)
        return err_set(e, ERR_BUG, "write the init segment of %s: %s",
                       avcodec_get_name(par->codec_id), av_err2str(ret));
    return 0;
}

/* The box of `type` among the children in [at, end); its offset, or 0. */
static size_t find_box(const struct strbuf *b, size_t at, size_t end, const char type[5])
{
    while (at + 8 <= end) {
        size_t size = get32(b, at);
        if (size < 8 || size > end - at)
            return 0;
        if (!memcmp(b->s + at + 4, type, 4))
            return at;
        at += size;
    }
    return 0;
}

static int insert_edit_list(struct strbuf *init, int64_t media_time, struct err *e)
{
    size_t moov = find_box(init, 0, init->len, "moov");
    size_t trak = moov ? find_box(init, moov + 8, moov + get32(init, moov), "trak") : 0;
    size_t tkhd = trak ? find_box(init, trak + 8, trak + get32(init, trak), "tkhd") : 0;
    if (!tkhd)
        return err_set(e, ERR_BUG, "the init segment has no moov/trak/tkhd");
    struct strbuf edts = {0};
    size_t at = box_begin(&edts, "edts");
    size_t elst = full_box_begin(&edts, "elst", 0, 0);
    put(&edts, 1, 4);
    put(&edts, 0, 4); /* segment_duration 0: to the end of the fragments */
    put(&edts, (uint64_t)media_time, 4);
    put(&edts, 1 << 16, 4);
    box_end(&edts, elst);
    box_end(&edts, at);

    size_t where = tkhd + get32(init, tkhd);
    struct strbuf whole = {0};
    strbuf_add(&whole, init->s, where);
    strbuf_add(&whole, edts.s, edts.len);
    strbuf_add(&whole, init->s + where, init->len - where);
    patch32(&whole, moov, get32(init, moov) + (uint32_t)edts.len);
    patch32(&whole, trak, get32(init, trak) + (uint32_t)edts.len);
    strbuf_free(init);
    strbuf_free(&edts);
    *init = whole;
    return 0;
}

int cmaf_write_init(struct strbuf *out, const AVCodecParameters *par, AVRational time_base,
                    int64_t delay, const AVPacket *first, const char *language, struct err *e)
{
    cleanup(strbuf_free) struct strbuf init = {0};
    int ret = mux_header(&init, par, time_base, first, language, e);
    if (ret < 0)
        return ret;
    size_t moof = find_box(&init, 0, init.len, "moof");
    if (moof)
        init.len = moof;
    if (delay && (ret = insert_edit_list(&init, delay, e)) < 0)
        return ret;
    strbuf_add(out, init.s, init.len);
    return 0;
}
