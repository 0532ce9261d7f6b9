#include "pipelines/media/ts.h"

#include <libavformat/avformat.h>

#include "common/cleanup.h"
#include "pipelines/media/ts_counters.h"

enum { TS_ORIGIN = 10 * 90000 }; /* added, so that what lies before the origin stays positive */

static const AVRational clock_90k = {1, 90000};

static int64_t to_90k(int64_t t, AVRational time_base)
{
    return av_rescale_q(t, time_base, clock_90k) + TS_ORIGIN;
}

int ts_write_segment(struct strbuf *out, const AVCodecParameters *par, AVRational time_base,
                     const char *language, AVPacket *const *packets, size_t n, struct err *e)
{
    AVFormatContext *mux = NULL;
    AVDictionary *options = NULL;
    AVPacket *pkt = av_packet_alloc();
    uint8_t *bytes = NULL;
    cleanup(strbuf_free) struct strbuf segment = {0};
    int ret = avformat_alloc_output_context2(&mux, NULL, "mpegts", NULL);
    AVStream *stream = ret < 0 ? NULL : avformat_new_stream(mux, NULL);
    if (!stream || !pkt || avio_open_dyn_buf(&mux->pb) < 0) {
        ret = AVERROR(ENOMEM);
        goto end;
    }
    if ((ret = avcodec_parameters_copy(stream->codecpar, par)) < 0)
        goto end;
    stream->codecpar->codec_tag = 0;
    stream->time_base = clock_90k;
    if (language)
        av_dict_set(&stream->metadata, "language", language, 0);
    mux->flags |= AVFMT_FLAG_BITEXACT;
    mux->max_delay = 350000; /* us; the PCR runs twice that ahead of decode time */
    av_dict_set(&options, "mpegts_copyts", "1", 0);
    if ((ret = avformat_write_header(mux, &options)) < 0)
        goto end;
    for (size_t i = 0; i < n && ret >= 0; i++) {
        if ((ret = av_packet_ref(pkt, packets[i])) < 0)
            break;
        pkt->pts = to_90k(pkt->pts, time_base);
        pkt->dts = to_90k(pkt->dts, time_base);
        pkt->duration = av_rescale_q(pkt->duration, time_base, clock_90k);
        pkt->stream_index = 0;
        ret = av_write_frame(mux, pkt);
        av_packet_unref(pkt);
    }
    if (ret >= 0)
        ret = av_write_trailer(mux);
end:
    av_packet_free(&pkt);
    av_dict_free(&options);
    if (mux && mux->pb) {
        int size = avio_close_dyn_buf(mux->pb, &bytes);
        mux->pb = NULL;
        if (ret >= 0)
            strbuf_add(&segment, bytes, (size_t)size);
        av_free(bytes);
    }
    avformat_free_context(mux);
    if (ret < 0)
        return err_set(e, ERR_BUG, "write an MPEG-TS segment: %s", av_err2str(ret));
    if ((ret = ts_align_counters(&segment, e)) < 0)
        return ret;
    strbuf_add(out, segment.s, segment.len);
    return 0;
}
