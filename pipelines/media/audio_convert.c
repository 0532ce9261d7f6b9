/*
 * libswresample aligns its first output sample with its first input sample (it mirrors the signal
 * at both ends to fill its filter), so a run needs no delay compensation, only its exact length:
 * whatever the filter gives out beyond round(n * b / a) at the end is rounding and is left out,
 * what it lacks is silence.
 */
#include "pipelines/media/audio_convert.h"

#include <libavutil/samplefmt.h>
#include <libswresample/swresample.h>

#include "common/cleanup.h"
#include "common/rational.h"
#include "common/strbuf.h"

enum { CHANNELS_MAX = 64, RATE_MAX = 768000, BLOCK = 8192 }; /* libswresample's own limit is 64 */

struct audio_convert {
    struct audio_convert_output out;
    SwrContext *swr; /* NULL before the first frame */
    /* what goes in now */
    int rate;
    enum AVSampleFormat format;
    AVChannelLayout layout; /* as in the frames */
    int64_t taken, given;   /* samples of this run */
    uint8_t **silence;      /* input format, AUDIO_CONVERT_SILENCE samples */
    uint8_t **block;        /* output format, BLOCK samples */
};

static void free_samples(uint8_t ***planes)
{
    if (*planes)
        av_freep(&(*planes)[0]);
    av_freep(planes);
}

static int alloc_samples(uint8_t ***planes, int channels, int n, enum AVSampleFormat format,
                         struct err *e)
{
    free_samples(planes);
    if (av_samples_alloc_array_and_samples(planes, NULL, channels, n, format, 0) < 0)
        return err_set(e, ERR_RESOURCE, "convert audio: out of memory");
    return av_samples_set_silence(*planes, 0, n, channels, format);
}

struct audio_convert *audio_convert_new(const struct audio_convert_output *output)
{
    struct audio_convert *c = xcalloc(1, sizeof *c);
    c->out = *output;
    return c;
}

void audio_convert_free(struct audio_convert **cp)
{
    struct audio_convert *c = *cp;
    if (!c)
        return;
    swr_free(&c->swr);
    av_channel_layout_uninit(&c->layout);
    free_samples(&c->silence);
    free_samples(&c->block);
    free(c);
    *cp = NULL;
}

bool audio_convert_is_new(const struct audio_convert *c, const AVFrame *frame)
{
    return !c->swr || c->rate != frame->sample_rate || (int)c->format != frame->format ||
           av_channel_layout_compare(&c->layout, &frame->ch_layout) != 0;
}

static int open_swr(struct audio_convert *c, AVChannelLayout *in)
{
    swr_free(&c->swr);
    int ret = swr_alloc_set_opts2(&c->swr, &c->out.layout, c->out.format, c->out.sample_rate, in,
                                  c->format, c->rate, 0, NULL);
    return ret < 0 ? ret : swr_init(c->swr);
}

/* Channels without known places, or places that libswresample has no coefficients for, are taken
 * for the usual layout of so many channels. */
static int open_any_layout(struct audio_convert *c)
{
    if (c->layout.order == AV_CHANNEL_ORDER_NATIVE && open_swr(c, &c->layout) >= 0)
        return 0;
    AVChannelLayout usual;
    av_channel_layout_default(&usual, c->layout.nb_channels);
    int ret = open_swr(c, &usual);
    av_channel_layout_uninit(&usual);
    return ret;
}

int audio_convert_begin(struct audio_convert *c, const AVFrame *frame, struct err *e)
{
    int ret = audio_convert_end(c, e);
    if (ret < 0)
        return ret;
    int channels = frame->ch_layout.nb_channels;
    if (channels < 1 || channels > CHANNELS_MAX || frame->sample_rate < 1 ||
        frame->sample_rate > RATE_MAX)
        return err_set(e, ERR_INPUT, "%d channels at %d Hz are beyond what can be converted",
                       channels, frame->sample_rate);
    c->rate = frame->sample_rate;
    c->format = frame->format;
    c->taken = c->given = 0;
    if (av_channel_layout_copy(&c->layout, &frame->ch_layout) < 0)
        return err_set(e, ERR_RESOURCE, "convert audio: out of memory");
    if ((ret = open_any_layout(c)) < 0) {
        swr_free(&c->swr);
        return err_set(e, ERR_INPUT, "convert %d channels at %d Hz to %d at %d Hz: %s", channels,
                       c->rate, c->out.layout.nb_channels, c->out.sample_rate, av_err2str(ret));
    }
    if ((ret = alloc_samples(&c->silence, channels, AUDIO_CONVERT_SILENCE, c->format, e)) < 0)
        return ret;
    return alloc_samples(&c->block, c->out.layout.nb_channels, BLOCK, c->out.format, e);
}

/* How many samples the run must have given out when its samples so far are all there are. */
static int64_t due(const struct audio_convert *c)
{
    return rational_rescale(c->taken, (struct rational){1, c->rate},
                            (struct rational){1, c->out.sample_rate}, ROUND_NEAREST);
}

static int give(struct audio_convert *c, int n, struct err *e)
{
    c->given += n;
    return n ? c->out.sink(c->out.arg, c->block, n, e) : 0;
}

/* Feeds n samples (0, NULL: the end) and hands out all that comes of it, in blocks. */
static int convert(struct audio_convert *c, const uint8_t **planes, int n, int64_t limit,
                   struct err *e)
{
    for (;;) {
        int got = swr_convert(c->swr, c->block, BLOCK, planes, n);
        if (got < 0)
            return err_set(e, ERR_BUG, "convert audio: %s", av_err2str(got));
        bool is_full = got == BLOCK;
        if (got > limit - c->given)
            got = limit > c->given ? (int)(limit - c->given) : 0;
        int ret = give(c, got, e);
        if (ret < 0 || !is_full)
            return ret;
        if (planes) /* more may be waiting inside: ask with no new input */
            n = 0;
    }
}

int audio_convert_write(struct audio_convert *c, const AVFrame *frame, int skip, int take,
                        struct err *e)
{
    const uint8_t *planes[CHANNELS_MAX];
    int channels = c->layout.nb_channels, sample = av_get_bytes_per_sample(c->format);
    bool is_planar = av_sample_fmt_is_planar(c->format);
    for (int i = 0; i < (is_planar ? channels : 1); i++)
        planes[i] = frame->extended_data[i] + (size_t)skip * sample * (is_planar ? 1 : channels);
    c->taken += take;
    return convert(c, planes, take, INT64_MAX, e);
}

int audio_convert_write_silence(struct audio_convert *c, int n, struct err *e)
{
    c->taken += n;
    return convert(c, (const uint8_t **)c->silence, n, INT64_MAX, e);
}

int audio_convert_end(struct audio_convert *c, struct err *e)
{
    if (!c->swr)
        return 0;
    int64_t total = due(c);
    int ret = convert(c, NULL, 0, total, e);
    while (ret >= 0 && c->given < total) {
        int64_t n = total - c->given < BLOCK ? total - c->given : BLOCK;
        av_samples_set_silence(c->block, 0, (int)n, c->out.layout.nb_channels, c->out.format);
        ret = give(c, (int)n, e);
    }
    swr_free(&c->swr);
    return ret;
}
