/*
 * Whole audio tracks through audio_track_run, decoded again and compared, sample by sample, with
 * the formula that the clip was made from (clip_sound.h): what is right is known, not measured.
 */
#include <ftw.h>
#include <libavformat/avformat.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/plan/timeline.h"
#include "tests/support/audio_job.h"
#include "tests/support/clip.h"
#include "tests/support/clip_sound.h"

enum { HZ = 440 };

static char folder[] = "/tmp/test-audio-XXXXXX";

static char *in_folder(const char *name)
{
    return xasprintf("%s/%s", folder, name);
}

static void make_clip(const char *path, const struct clip_options *o)
{
    struct err e;
    if (clip_make(path, o, &e) < 0)
        fail_msg("%s: %s", path, e.msg);
}

/* An audio-only clip of one track in the test's folder; the caller frees the path. */
static char *make_sound(const char *name, const char *codec, int rate, int channels, double start,
                        double end)
{
    char *path = in_folder(name);
    make_clip(path, &(struct clip_options){.is_audio_only = true,
                                           .n_audio = 1,
                                           .audio = {{.codec = codec,
                                                      .sample_rate = rate,
                                                      .channels = channels,
                                                      .start_seconds = start,
                                                      .end_seconds = end}}});
    return path;
}

static void run_ok(struct audio_job *job)
{
    if (audio_job_run(job) < 0)
        fail_msg("%s", job->err.msg);
    assert_int_equal(job->manifest->chunk, -1);
    assert_int_equal(job->manifest->n_tracks, 1);
}

/* Largest difference between the sound at position i and the formula at i - lag, over [from, to).
 */
static double residual(const struct audio_pcm *pcm, int64_t from, int64_t to, int lag,
                       int64_t *ret_at)
{
    double most = 0;
    for (int64_t i = from; i < to; i++) {
        double d = fabs(pcm->ch[0][i - pcm->start] - clip_sample(i - lag, pcm->rate, HZ));
        if (d > most && ret_at)
            *ret_at = i;
        most = fmax(most, d);
    }
    return most;
}

/* The lag, within +-range samples, at which the sound fits the formula best (least squares), over
 * the second that has the first whole pulse in it. */
static int best_lag(const struct audio_pcm *pcm, int range)
{
    int64_t from = pcm->start + range, n = FFMIN(pcm->n - 2 * range, pcm->rate / 2);
    cleanup(free_ptr) double *truth = xcalloc((size_t)(n + 2 * range), sizeof *truth);
    for (int64_t i = 0; i < n + 2 * range; i++)
        truth[i] = clip_sample(from - range + i, pcm->rate, HZ);
    double best = INFINITY;
    int lag = 0;
    for (int l = -range; l <= range; l++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            double d = pcm->ch[0][i + range] - truth[i + range - l];
            sum += d * d;
        }
        if (sum < best) {
            best = sum;
            lag = l;
        }
    }
    return lag;
}

static void assert_fits(const struct audio_pcm *pcm, int64_t from, int64_t to, double most)
{
    int64_t at = from;
    double r = residual(pcm, from, to, 0, &at);
    if (r > most)
        fail_msg("sample %lld is off by %f (allowed %f)", (long long)at, r, most);
}

/* ---- exactness ---- */

/* Lossless in, lossless out: every sample, bit for bit, and segments where they must be. */
static void flac_keeps_every_sample(void **state)
{
    (void)state;
    enum { N = 13 * 48000 + 777 };
    cleanup(free_ptr) char *path = make_sound("exact.wav", "pcm_s16le", 48000, 2, 0, N / 48000.0);
    struct audio_job job;
    struct audio_pcm pcm;
    audio_job_open(&job, path, N / 48000.0);
    job.to.encoder = "flac";
    run_ok(&job);
    audio_job_check_files(&job);
    const struct manifest_track *t = &job.manifest->tracks[0];
    assert_string_equal(t->codecs, "fLaC");
    assert_int_equal(t->start, 0);
    assert_int_equal(t->end, N);
    assert_int_equal(t->n_segments, 3);
    int frame = 4608;
    for (size_t k = 0; k < t->n_segments; k++) {
        int64_t p = timeline_audio_packet(job.plan.segment, 48000, 0, frame, (int64_t)k);
        assert_int_equal(t->segments[k].index, k);
        assert_int_equal(t->segments[k].start, p * frame);
        assert_true(k == 0 || p * frame >= (int64_t)k * 6 * 48000);
        assert_true(k == 0 || (p - 1) * frame < (int64_t)k * 6 * 48000);
    }
    audio_job_decode(&job, &pcm);
    assert_int_equal(pcm.start, 0);
    assert_int_equal(pcm.n, N);
    assert_fits(&pcm, 0, N, 0.6 / 32768);
    audio_pcm_free(&pcm);
    audio_job_close(&job);
}

/* Priming that a container signals is dropped, once; what it does not signal is the source's own
 * sound, and stays. Positions count from the first audible sample. */
static const struct container {
    const char *name, *codec;
    int lag;      /* samples of unsignalled priming */
    double noise; /* of the source's codec at its bit rate */
} containers[] = {
    {"a.wav", "pcm_s16le", 0, 2e-5}, {"a.flac", "flac", 0, 2e-5},
    {"a.mp4", "aac", 0, 0.01},       {"b.mp4", "ac3", 0, 0.002},
    {"a.mov", "pcm_s16le", 0, 2e-5}, {"a.mp3", "libmp3lame", 0, 0.06},
    {"a.ogg", "libopus", 0, 0.03},   {"a.mka", "libopus", 0, 0.03},
    {"b.mka", "flac", 0, 2e-5},      {"c.mka", "aac", 1024, 0.01},
    {"d.mka", "libvorbis", 0, 0.08}, {"a.webm", "libopus", 0, 0.03},
    {"a.ts", "mp2", 481, 0.05},      {"b.ts", "ac3", 256, 0.002},
    {"c.ts", "aac", 1024, 0.01},     {"a.flv", "aac", 1024, 0.01},
    {"a.avi", "pcm_s16le", 0, 2e-5},
};

static void check_container(const struct container *c)
{
    enum { N = 7 * 48000 + 333 };
    struct audio_job job;
    struct audio_pcm in, out;
    cleanup(free_ptr) char *path = in_folder(c->name);
    make_clip(path, &(struct clip_options){.is_audio_only = true,
                                           .n_audio = 1,
                                           .audio = {{.codec = c->codec, .end_seconds = N / 48e3}},
                                           /* FLV has no negative times */
                                           .start_seconds = strstr(c->name, ".flv") ? 1 : 0});
    audio_pcm_read(path, false, &in);
    audio_job_open(&job, path, 0);
    AVRational samples = {1, in.rate}, ticks = input_format(job.in)->streams[0]->time_base;
    job.from.start = av_rescale_q(in.start, samples, ticks);
    job.from.end = av_rescale_q(in.start + in.n, samples, ticks);
    job.source.origin = job.from.start;
    job.source.origin_base = job.from.time_base;
    job.to.encoder = "flac"; /* adds nothing of its own */
    run_ok(&job);
    assert_false(job.manifest->is_truncated);
    audio_job_decode(&job, &out);
    int lag = best_lag(&out, 1100);
    double noise = residual(&out, 2000, out.n - 2000, lag, NULL);
    if (out.start || out.n != in.n || lag != c->lag || noise > c->noise)
        fail_msg("%s with %s: start %lld, %lld samples of %lld, lag %d, noise %f", c->name,
                 c->codec, (long long)out.start, (long long)out.n, (long long)in.n, lag, noise);
    audio_pcm_free(&in);
    audio_pcm_free(&out);
    audio_job_close(&job);
}

static void priming_is_dropped_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof containers / sizeof containers[0]; i++)
        check_container(&containers[i]);
}

/* ---- positions ---- */

/* A track that starts late starts late; segments before it do not exist. */
static void late_start_early_end(void **state)
{
    (void)state;
    cleanup(free_ptr) char *path = make_sound("late.mka", "flac", 48000, 2, 7.25, 13.125);
    struct audio_job job;
    struct audio_pcm pcm;
    audio_job_open(&job, path, 13.125);
    job.from.start = 7250;
    run_ok(&job);
    const struct manifest_track *t = &job.manifest->tracks[0];
    assert_int_equal(t->start, 348000);
    assert_int_equal(t->end, 630000);
    assert_int_equal(t->n_segments, 2);
    assert_int_equal(t->segments[0].index, 1);
    assert_int_equal(t->segments[1].index, 2);
    /* nominal starts are 348000 + p * 1024; p = 223 is the first from 12 s on */
    assert_int_equal(t->segments[1].start, 348000 + 223 * 1024 - 1024);
    audio_job_decode(&job, &pcm);
    assert_int_equal(pcm.declared, 630000 - 348000 + 1024);
    assert_int_equal(best_lag(&pcm, 1100), 0);
    assert_fits(&pcm, 348000 + 2048, 630000 - 2048, 0.01);
    audio_pcm_free(&pcm);
    audio_job_close(&job);
}

/* The last packets, pushed beyond the end by priming, open no segment of their own. */
static void no_segment_of_priming_alone(void **state)
{
    (void)state;
    cleanup(free_ptr) char *path = make_sound("even.wav", "pcm_s16le", 48000, 2, 0, 12);
    struct audio_job job;
    audio_job_open(&job, path, 12);
    run_ok(&job);
    const struct manifest_track *t = &job.manifest->tracks[0];
    assert_int_equal(t->n_segments, 2);
    assert_int_equal(t->segments[1].start + t->segments[1].duration, 12 * 48000);
    audio_job_close(&job);
}

/* Copies a file's packets to another, each changed or left out (false) by `edit`. */
static void remux(const char *from, const char *to, bool (*edit)(AVPacket *pkt, int i))
{
    AVFormatContext *in = NULL, *out = NULL;
    AVPacket *pkt = av_packet_alloc();
    assert_int_equal(avformat_open_input(&in, from, NULL, NULL), 0);
    assert_true(avformat_find_stream_info(in, NULL) >= 0);
    assert_true(avformat_alloc_output_context2(&out, NULL, NULL, to) >= 0);
    AVStream *st = avformat_new_stream(out, NULL);
    assert_true(avcodec_parameters_copy(st->codecpar, in->streams[0]->codecpar) >= 0);
    st->codecpar->codec_tag = 0;
    st->time_base = in->streams[0]->time_base;
    assert_true(avio_open(&out->pb, to, AVIO_FLAG_WRITE) >= 0);
    assert_true(avformat_write_header(out, NULL) >= 0);
    for (int i = 0; av_read_frame(in, pkt) >= 0; i++) {
        av_packet_rescale_ts(pkt, in->streams[0]->time_base, st->time_base);
        assert_true(av_packet_make_writable(pkt) >= 0);
        if (edit(pkt, i))
            assert_true(av_write_frame(out, pkt) >= 0);
        av_packet_unref(pkt);
    }
    assert_int_equal(av_write_trailer(out), 0);
    avio_closep(&out->pb);
    avformat_free_context(out);
    avformat_close_input(&in);
    av_packet_free(&pkt);
}

enum { /* FLAC packets of 96 ms in Matroska's milliseconds: everything below is exact */
       FLAC_FRAME = 4608,
       FLAC_MS = 96,
       FLAC_PACKETS = 90,
       LOST = 10, /* three packets missing */
       LATE = 30, /* from here on 50 ms later: a gap */
       BACK = 50, /* from here on only 20 ms later: an overlap of 30 ms */
       SHAKY = 60,
       STEADY = 70,
};

static int shift_ms(int i)
{
    return i < LATE ? 0 : i < BACK ? 50 : 20;
}

static bool cut_and_shift(AVPacket *pkt, int i)
{
    pkt->pts = FLAC_MS * i + shift_ms(i);
    if (i >= SHAKY && i < STEADY)
        pkt->pts += i % 2 ? 4 : -4;
    pkt->dts = pkt->pts;
    return i < LOST || i >= LOST + 3;
}

/* What must be heard at position `at`: the packet that covers it, the earlier one where two do. */
static double expected_sample(int64_t at)
{
    for (int i = 0; i < FLAC_PACKETS; i++) {
        int64_t start = (FLAC_MS * i + shift_ms(i)) * 48;
        if (at >= start && at < start + FLAC_FRAME && (i < LOST || i >= LOST + 3))
            return clip_sample(at - start + (int64_t)i * FLAC_FRAME, 48000, HZ);
    }
    return 0;
}

static void gaps_are_silent_overlaps_cut(void **state)
{
    (void)state;
    double seconds = FLAC_PACKETS * FLAC_MS / 1e3;
    cleanup(free_ptr) char *whole = make_sound("gap.flac", "flac", 48000, 2, 0, seconds);
    cleanup(free_ptr) char *path = in_folder("gap.mka");
    remux(whole, path, cut_and_shift);
    struct audio_job job;
    struct audio_pcm pcm;
    audio_job_open(&job, path, seconds + 0.02);
    job.to.encoder = "flac";
    run_ok(&job);
    audio_job_decode(&job, &pcm);
    int64_t n = (int64_t)FLAC_PACKETS * FLAC_FRAME + 20 * 48;
    assert_int_equal(pcm.start, 0);
    assert_int_equal(pcm.n, n);
    for (int64_t i = 0; i < n; i++)
        if (fabs(pcm.ch[0][i] - expected_sample(i)) > 2e-5)
            fail_msg("sample %lld is %f instead of %f", (long long)i, pcm.ch[0][i],
                     expected_sample(i));
    audio_pcm_free(&pcm);
    audio_job_close(&job);
}

/* ---- damage ---- */

static bool is_spoilt(int i)
{
    return i == 20 || i == 21 || i == FLAC_PACKETS - 1;
}

static bool spoil_some(AVPacket *pkt, int i)
{
    if (is_spoilt(i))
        memset(pkt->data, 0x55, (size_t)pkt->size);
    return true;
}

static bool spoil_all(AVPacket *pkt, int i)
{
    (void)i;
    memset(pkt->data, 0x55, (size_t)pkt->size);
    return true;
}

static void damage_is_silence(void **state)
{
    (void)state;
    double seconds = FLAC_PACKETS * FLAC_MS / 1e3;
    cleanup(free_ptr) char *whole = make_sound("good.flac", "flac", 48000, 2, 0, seconds);
    cleanup(free_ptr) char *path = in_folder("spoilt.mka");
    remux(whole, path, spoil_some);
    struct audio_job job;
    struct audio_pcm pcm;
    audio_job_open(&job, path, seconds);
    job.to.encoder = "flac";
    run_ok(&job);
    assert_false(job.manifest->is_truncated);
    audio_job_decode(&job, &pcm);
    assert_int_equal(pcm.n, FLAC_PACKETS * FLAC_FRAME);
    for (int64_t i = 0; i < pcm.n; i++) {
        double want = is_spoilt((int)(i / FLAC_FRAME)) ? 0 : clip_sample(i, 48000, HZ);
        if (fabs(pcm.ch[0][i] - want) > 2e-5)
            fail_msg("sample %lld is %f instead of %f", (long long)i, pcm.ch[0][i], want);
    }
    audio_pcm_free(&pcm);
    audio_job_close(&job);

    remux(whole, path, spoil_all);
    audio_job_open(&job, path, seconds);
    assert_int_equal(audio_job_run(&job), -ERR_INPUT);
    assert_non_null(strstr(job.err.msg, "audio track 0 (stream 0, flac): nothing"));
    audio_job_close(&job);
}

static void early_end_is_reported(void **state)
{
    (void)state;
    cleanup(free_ptr) char *path = make_sound("short.wav", "pcm_s16le", 48000, 2, 0, 3);
    struct audio_job job;
    audio_job_open(&job, path, 5);
    run_ok(&job);
    assert_true(job.manifest->is_truncated);
    assert_int_equal(job.manifest->tracks[0].end, 3 * 48000);
    audio_job_close(&job);
}

/* ---- rates and channels ---- */

static void check_rate(int from, int to)
{
    int64_t n = 5 * (int64_t)from + 123;
    cleanup(free_ptr) char *path =
        make_sound("rate.wav", "pcm_s16le", from, 1, 0, n / (double)from);
    struct audio_job job;
    struct audio_pcm pcm;
    audio_job_open(&job, path, n / (double)from);
    job.to.encoder = "flac";
    job.to.sample_rate = to;
    job.to.channels = 1;
    run_ok(&job);
    audio_job_decode(&job, &pcm);
    assert_int_equal(pcm.rate, to);
    assert_int_equal(pcm.start, 0);
    assert_int_equal(pcm.n, (n * to + from / 2) / from);
    assert_int_equal(best_lag(&pcm, 100), 0);
    assert_fits(&pcm, 1000, pcm.n - 1000, 0.003);
    assert_fits(&pcm, 0, pcm.n, 0.1);
    audio_pcm_free(&pcm);
    audio_job_close(&job);
}

static void rates_are_converted_exactly(void **state)
{
    (void)state;
    check_rate(44100, 48000);
    check_rate(48000, 44100);
    check_rate(22050, 48000);
    check_rate(96000, 48000);
}

/* Root of the mean square of channel c over the second second, away from the pulse. */
static double loudness(const struct audio_pcm *pcm, int c)
{
    double sum = 0;
    int64_t from = pcm->rate * 11 / 10 - pcm->start, n = pcm->rate * 3 / 10;
    for (int64_t i = 0; i < n; i++)
        sum += pcm->ch[c][from + i] * pcm->ch[c][from + i];
    return sqrt(sum / (double)n);
}

/* gain: of every output channel; all source channels carry the same sound. */
static void check_channels(const char *codec, int from, int to, double gain)
{
    cleanup(free_ptr) char *path = make_sound("channels.mka", codec, 48000, from, 0, 4);
    struct audio_job job;
    struct audio_pcm pcm;
    audio_job_open(&job, path, 4);
    job.to.channels = to;
    job.to.bitrate = 64000 * to;
    run_ok(&job);
    assert_int_equal(job.manifest->tracks[0].channels, to);
    audio_job_decode(&job, &pcm);
    assert_int_equal(pcm.channels, to);
    for (int c = 0; c < to; c++) {
        if (c == 3) /* LFE: encoders keep only its low end */
            continue;
        double got = loudness(&pcm, c) / (CLIP_SINE_AMPLITUDE / sqrt(2));
        if (fabs(got - gain) > 0.02 * gain + 0.001)
            fail_msg("%s, %d channels to %d: channel %d has gain %f, not %f", codec, from, to, c,
                     got, gain);
    }
    audio_pcm_free(&pcm);
    audio_job_close(&job);
}

static void channels_are_mixed(void **state)
{
    (void)state;
    check_channels("flac", 1, 1, 1);
    check_channels("flac", 1, 2, M_SQRT1_2);         /* equal power */
    check_channels("flac", 2, 1, M_SQRT2);           /* likewise: the same on both sides adds up */
    check_channels("flac", 6, 2, 1 + 2 * M_SQRT1_2); /* L + 0.707 C + 0.707 Ls, no LFE */
    check_channels("aac", 6, 6, 1);
}

/* ---- the rest of the contract ---- */

static void check_repeat(const char *name, const char *codec)
{
    cleanup(free_ptr) char *path = make_sound(name, codec, 48000, 2, 0, 7);
    struct audio_job a, b;
    audio_job_open(&a, path, 7);
    audio_job_open(&b, path, 7);
    run_ok(&a);
    for (int again = 0; again < 2; again++) { /* another session, and a warm one */
        run_ok(&b);
        const struct manifest_track *x = &a.manifest->tracks[0], *y = &b.manifest->tracks[0];
        assert_string_equal(x->init, y->init);
        assert_int_equal(x->n_segments, y->n_segments);
        for (size_t i = 0; i < x->n_segments; i++)
            assert_string_equal(x->segments[i].name, y->segments[i].name); /* content hashes */
    }
    audio_job_close(&a);
    audio_job_close(&b);
}

static void same_input_same_bytes(void **state)
{
    (void)state;
    check_repeat("repeat.mp4", "aac");
    check_repeat("repeat.mka", "libopus");
    check_repeat("repeat.mp3", "libmp3lame");
    check_repeat("repeat.ogg", "libopus");
    check_repeat("repeat.ts", "ac3");
}

static void expect_failure(struct audio_job *job, enum err_kind kind, const char *text)
{
    assert_int_equal(audio_job_run(job), -(int)kind);
    assert_null(job->manifest);
    if (!strstr(job->err.msg, text))
        fail_msg("'%s' does not say '%s'", job->err.msg, text);
}

static void failures_say_why(void **state)
{
    (void)state;
    cleanup(free_ptr) char *path = make_sound("fail.wav", "pcm_s16le", 48000, 2, 0, 20);
    struct audio_job job;
    audio_job_open(&job, path, 20);
    job.cancel_after = 100;
    expect_failure(&job, ERR_CANCELLED, "cancelled");
    assert_int_equal(job.polls, 101);
    job.cancel_after = 0;
    job.limits.max_duration_s = 3;
    expect_failure(&job, ERR_INPUT, "max_duration_s=3");
    limits_default(&job.limits);
    job.limits.max_output_bytes = 100000;
    expect_failure(&job, ERR_INPUT, "max_output_bytes=100000");
    limits_default(&job.limits);
    job.limits.max_task_s = 0;
    expect_failure(&job, ERR_INPUT, "max_task_s=0");
    limits_default(&job.limits);
    job.to.encoder = "pcm_s16le";
    expect_failure(&job, ERR_CONFIG, "pcm_s16le is not an audio encoder for HLS");
    job.to.encoder = "aac";
    job.to.channels = 9;
    expect_failure(&job, ERR_CONFIG, "9 channels");
    job.to.channels = 2;
    job.to.sample_rate = 12345;
    expect_failure(&job, ERR_CONFIG, "12345 Hz");
    job.to.sample_rate = 48000;
    job.from.stream = 7;
    expect_failure(&job, ERR_INPUT, "stream 7");
    job.from.stream = 0;
    run_ok(&job); /* the input is still good */
    audio_job_close(&job);
}

static int make_folder(void **state)
{
    (void)state;
    av_log_set_level(AV_LOG_FATAL);
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int remove_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- the encoders ---- */

/* Each one signals its priming so that the sound lies where the source's does, covers the whole
 * source, and has no click at any join: the error stays as small there as everywhere. */
static const struct encoder {
    const char *name, *codecs;
    int priming;
    double noise;
} encoders[] = {
    {"aac", "mp4a.40.2", 1024, 0.01}, {"libopus", "opus", 312, 0.03}, {"ac3", "ac-3", 256, 0.002},
    {"eac3", "ec-3", 256, 0.002},     {"flac", "fLaC", 0, 2e-5},
};

static void check_encoder(const struct encoder *c, const char *path, int64_t n, int segments)
{
    struct audio_job job;
    struct audio_pcm pcm;
    audio_job_open(&job, path, (double)n / 48000);
    job.to.encoder = (char *)c->name;
    job.plan.segments = segments;
    job.plan.segment = (struct rational){2, 1};
    run_ok(&job);
    audio_job_check_files(&job);
    const struct manifest_track *t = &job.manifest->tracks[0];
    assert_string_equal(t->codecs, c->codecs);
    assert_int_equal(t->priming, c->priming);
    assert_int_equal(t->channels, 2);
    assert_int_equal(t->sample_rate, 48000);
    assert_int_equal(t->start, 0);
    assert_int_equal(t->end, n);
    assert_int_equal(t->n_segments, 4);
    int64_t next = 0;
    for (size_t k = 0; k < t->n_segments; k++) {
        assert_int_equal(t->segments[k].index, k);
        assert_int_equal(t->segments[k].start, next);
        next += t->segments[k].duration;
    }
    assert_int_equal(next, n);
    audio_job_decode(&job, &pcm);
    if (segments == SEGMENTS_FMP4)
        assert_int_equal(pcm.declared, n + c->priming);
    assert_true(pcm.start == 0 || pcm.start == -c->priming); /* libav 5.1 lets priming be heard */
    assert_true(pcm.start + pcm.n >= n);
    assert_int_equal(best_lag(&pcm, 1100), 0);
    assert_fits(&pcm, 2048, n - 2048, c->noise);
    assert_fits(&pcm, 0, n, 0.1); /* the sound starts and ends as a step */
    audio_pcm_free(&pcm);
    audio_job_close(&job);
}

static void encoders_signal_their_priming(void **state)
{
    (void)state;
    enum { N = 7 * 48000 + 5 };
    cleanup(free_ptr) char *path = make_sound("enc.wav", "pcm_s16le", 48000, 2, 0, N / 48e3);
    for (size_t i = 0; i < sizeof encoders / sizeof encoders[0]; i++) {
        check_encoder(&encoders[i], path, N, SEGMENTS_FMP4);
        if (strcmp(encoders[i].name, "flac")) /* not in MPEG-TS */
            check_encoder(&encoders[i], path, N, SEGMENTS_TS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flac_keeps_every_sample),
        cmocka_unit_test(priming_is_dropped_once),
        cmocka_unit_test(encoders_signal_their_priming),
        cmocka_unit_test(late_start_early_end),
        cmocka_unit_test(no_segment_of_priming_alone),
        cmocka_unit_test(gaps_are_silent_overlaps_cut),
        cmocka_unit_test(damage_is_silence),
        cmocka_unit_test(early_end_is_reported),
        cmocka_unit_test(rates_are_converted_exactly),
        cmocka_unit_test(channels_are_mixed),
        cmocka_unit_test(same_input_same_bytes),
        cmocka_unit_test(failures_say_why),
    };
    return cmocka_run_group_tests_name("audio_track", tests, make_folder, remove_folder);
}
