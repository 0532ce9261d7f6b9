#include "tests/support/audio_job.h"

#include <fcntl.h>
#include <ftw.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/strbuf.h"

enum { TS_ORIGIN_SECONDS = 10 };

static void on_file(void *arg, const char *path, int64_t bytes)
{
    struct audio_job *job = arg;
    struct stat st;
    assert_int_equal(fstatat(job->scratch_fd, path, &st, 0), 0);
    assert_int_equal(st.st_size, bytes);
    job->files++;
}

static void on_progress(void *arg, int64_t frames_in, int64_t frames_out)
{
    struct audio_job *job = arg;
    assert_true(frames_in >= 0 && frames_out >= 0);
    job->progress_calls++;
}

static bool on_poll(void *arg)
{
    struct audio_job *job = arg;
    return ++job->polls > job->cancel_after && job->cancel_after;
}

void audio_job_open(struct audio_job *job, const char *path, double seconds)
{
    *job = (struct audio_job){.input_fd = open(path, O_RDONLY | O_CLOEXEC)};
    assert_true(job->input_fd >= 0);
    limits_default(&job->limits);
    if (input_open(job->input_fd, &job->limits, NULL, NULL, &job->in, &job->err) < 0)
        fail_msg("%s: %s", path, job->err.msg);
    strcpy(job->dir, "/tmp/audio-job-XXXXXX");
    assert_non_null(mkdtemp(job->dir));
    job->scratch_fd = open(job->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(job->scratch_fd >= 0);
    const AVStream *st = input_format(job->in)->streams[0];
    job->from = (struct source_audio){
        .stream = 0,
        .codec = (char *)avcodec_get_name(st->codecpar->codec_id),
        .time_base = {st->time_base.num, st->time_base.den},
        .end = llrint(seconds / av_q2d(st->time_base)),
    };
    job->source = (struct source){.origin_base = {1, 1}, .audio = &job->from, .n_audio = 1};
    job->to = (struct plan_audio){.name = "audio",
                                  .encoder = "aac",
                                  .bitrate = 128000,
                                  .channels = 2,
                                  .sample_rate = 48000,
                                  .language = "deu"};
    job->plan = (struct plan){.segment = {6, 1}, .audio = &job->to, .n_audio = 1};
}

int audio_job_run(struct audio_job *job)
{
    struct task_events events = {job, on_file, on_progress, on_poll};
    bind_free(&manifest_type, &job->manifest);
    job->source.audio = &job->from; /* the struct may have been copied */
    job->plan.audio = &job->to;
    return audio_track_run(job->in, &job->limits, &job->source, &job->plan, 0, job->scratch_fd,
                           &events, &job->manifest, &job->err);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void audio_job_close(struct audio_job *job)
{
    bind_free(&manifest_type, &job->manifest);
    input_close(&job->in);
    close_fd(&job->input_fd);
    close_fd(&job->scratch_fd);
    nftw(job->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- reading back ---- */

static void append_frame(struct audio_pcm *pcm, const AVFrame *frame)
{
    enum AVSampleFormat format = frame->format;
    bool is_planar = av_sample_fmt_is_planar(format);
    for (int c = 0; c < pcm->channels; c++) {
        pcm->ch[c] =
            xrealloc_array(pcm->ch[c], (size_t)(pcm->n + frame->nb_samples), sizeof *pcm->ch[c]);
        for (int i = 0; i < frame->nb_samples; i++) {
            const void *p = frame->extended_data[is_planar ? c : 0];
            int at = is_planar ? i : i * pcm->channels + c;
            switch (av_get_packed_sample_fmt(format)) {
            case AV_SAMPLE_FMT_FLT:
                pcm->ch[c][pcm->n + i] = ((const float *)p)[at];
                break;
            case AV_SAMPLE_FMT_S16:
                pcm->ch[c][pcm->n + i] = (float)((const int16_t *)p)[at] / 32768;
                break;
            case AV_SAMPLE_FMT_S32:
                pcm->ch[c][pcm->n + i] = (float)((const int32_t *)p)[at] / 2147483648.f;
                break;
            default:
                fail_msg("unexpected sample format %s", av_get_sample_fmt_name(format));
            }
        }
    }
    pcm->n += frame->nb_samples;
}

static void take_frame(struct audio_pcm *pcm, const AVFrame *frame, AVRational tb, bool is_strict)
{
    int64_t at = av_rescale_q(frame->pts, tb, (AVRational){1, frame->sample_rate});
    if (!pcm->n) {
        pcm->rate = frame->sample_rate;
        pcm->channels = frame->ch_layout.nb_channels;
        pcm->start = at;
        assert_in_range(pcm->channels, 1, 8);
    }
    assert_int_equal(frame->sample_rate, pcm->rate);
    assert_int_equal(frame->ch_layout.nb_channels, pcm->channels);
    /* one tick of rounding: 90 kHz is no multiple of most rates */
    int64_t tick = av_rescale_q_rnd(1, tb, (AVRational){1, pcm->rate}, AV_ROUND_UP);
    if (is_strict && llabs(at - pcm->start - pcm->n) > (tick > 1 ? tick : 0))
        fail_msg("pts jumps from sample %lld to %lld", (long long)(pcm->start + pcm->n),
                 (long long)at);
    append_frame(pcm, frame);
}

void audio_pcm_read(const char *path, bool is_strict, struct audio_pcm *ret)
{
    *ret = (struct audio_pcm){0};
    AVFormatContext *in = NULL;
    if (avformat_open_input(&in, path, NULL, NULL) < 0)
        fail_msg("cannot open %s", path);
    assert_true(avformat_find_stream_info(in, NULL) >= 0);
    AVStream *st = in->streams[0];
    const AVCodec *codec = avcodec_find_decoder(st->codecpar->codec_id);
    AVCodecContext *dec = avcodec_alloc_context3(codec);
    AVPacket *pkt = av_packet_alloc();
    AVFrame *frame = av_frame_alloc();
    assert_true(avcodec_parameters_to_context(dec, st->codecpar) >= 0);
    dec->pkt_timebase = st->time_base;
    assert_int_equal(avcodec_open2(dec, codec, NULL), 0);
    int status = 0;
    while (status != AVERROR_EOF) {
        status = av_read_frame(in, pkt);
        if (status < 0)
            avcodec_send_packet(dec, NULL);
        else if (pkt->stream_index == 0)
            avcodec_send_packet(dec, pkt);
        av_packet_unref(pkt);
        while (avcodec_receive_frame(dec, frame) >= 0)
            take_frame(ret, frame, st->time_base, is_strict);
    }
    av_frame_free(&frame);
    av_packet_free(&pkt);
    avcodec_free_context(&dec);
    avformat_close_input(&in);
}

static void append_file(FILE *out, const struct audio_job *job, const char *name, int64_t bytes)
{
    cleanup(free_ptr) char *path = xasprintf("%s/%s/%s", job->dir, job->to.name, name);
    cleanup(close_file) FILE *in = fopen(path, "r");
    cleanup(free_ptr) char *data = xcalloc(1, (size_t)bytes + 1);
    assert_non_null(in);
    assert_int_equal(fread(data, 1, (size_t)bytes + 1, in), bytes);
    assert_int_equal(fwrite(data, 1, (size_t)bytes, out), bytes);
}

void audio_job_check_files(const struct audio_job *job)
{
    const struct manifest_track *t = &job->manifest->tracks[0];
    cleanup(close_file) FILE *sink = fopen("/dev/null", "w");
    if (t->init)
        append_file(sink, job, t->init, t->init_bytes);
    for (size_t i = 0; i < t->n_segments; i++)
        append_file(sink, job, t->segments[i].name, t->segments[i].bytes);
    assert_int_equal(job->files, t->n_segments + !!t->init);
}

/* ---- the boxes' own words: libavformat gives the last packet a full frame ---- */

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Durations of a trun; `common`: the tfhd's default. */
static int64_t trun_duration(const uint8_t *box, uint32_t common)
{
    uint32_t flags = get32(box + 8), n = get32(box + 12);
    const uint8_t *p = box + 16 + (flags & 1 ? 4 : 0) + (flags & 4 ? 4 : 0);
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += flags & 0x100 ? get32(p) : common;
        p += 4 * __builtin_popcount(flags & 0xf00);
    }
    return sum;
}

static int64_t boxes_duration(const uint8_t *p, const uint8_t *end)
{
    int64_t sum = 0;
    uint32_t common = 0;
    for (; end - p >= 8; p += get32(p)) {
        assert_in_range(get32(p), 8, end - p);
        if (!memcmp(p + 4, "moof", 4) || !memcmp(p + 4, "traf", 4))
            sum += boxes_duration(p + 8, p + get32(p));
        else if (!memcmp(p + 4, "tfhd", 4)) /* version, flags, track; no field before duration */
            common = get32(p + 8) & 8 ? get32(p + 16) : 0;
        else if (!memcmp(p + 4, "trun", 4))
            sum += trun_duration(p, common);
    }
    return sum;
}

static int64_t file_duration(const char *path)
{
    struct stat st;
    cleanup(close_file) FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_int_equal(fstat(fileno(in), &st), 0);
    cleanup(free_ptr) uint8_t *data = xcalloc(1, (size_t)st.st_size);
    assert_int_equal(fread(data, 1, (size_t)st.st_size, in), st.st_size);
    return boxes_duration(data, data + st.st_size);
}

void audio_job_decode(struct audio_job *job, struct audio_pcm *ret)
{
    const struct manifest_track *t = &job->manifest->tracks[0];
    cleanup(free_ptr) char *whole = xasprintf("%s/whole", job->dir);
    FILE *out = fopen(whole, "w");
    assert_non_null(out);
    if (t->init)
        append_file(out, job, t->init, t->init_bytes);
    for (size_t i = 0; i < t->n_segments; i++)
        append_file(out, job, t->segments[i].name, t->segments[i].bytes);
    fclose(out);
    audio_pcm_read(whole, true, ret);
    if (t->init)
        ret->declared = file_duration(whole);
    else
        ret->start -= (int64_t)TS_ORIGIN_SECONDS * ret->rate;
}

void audio_pcm_free(struct audio_pcm *pcm)
{
    for (int c = 0; c < pcm->channels; c++)
        free(pcm->ch[c]);
    *pcm = (struct audio_pcm){0};
}
