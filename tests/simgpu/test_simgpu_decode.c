/*
 * Stock libav on the simulated NVDEC: every kind of stream comes out bit for bit as from the
 * software decoder, from the start and after a seek; what the card cannot do is refused; faults
 * come through as libav reports them; and two engines are two engines.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>

#include "common/clock.h"
#include "tests/support/clip.h"
#include "tests/support/scratch.h"
#include "tests/support/simgpu.h"

enum { FRAMES_MAX = 128 };

/* What came out of a decoder: times and a hash of each picture. */
struct shown {
    int count, rc; /* rc: the first error, of whatever stage */
    int64_t from;  /* pictures before it are left out: what leads an open GOP after a seek refers to
                      pictures that were not decoded, and may look like anything */
    bool is_hard;  /* libav goes on in software where it cannot in hardware: that does not count */
    struct picture {
        int64_t pts;
        uint64_t hash;
    } pictures[FRAMES_MAX];
};

/* Of the values, wherever they lie: planar and semi-planar pictures of one content are alike. */
static uint64_t hash_picture(const AVFrame *frame)
{
    const AVPixFmtDescriptor *format = av_pix_fmt_desc_get(frame->format);
    uint16_t line[4096];
    uint64_t hash = 14695981039346656037u;
    for (int c = 0; c < 3; c++) {
        int w = c ? AV_CEIL_RSHIFT(frame->width, format->log2_chroma_w) : frame->width;
        int h = c ? AV_CEIL_RSHIFT(frame->height, format->log2_chroma_h) : frame->height;
        for (int y = 0; y < h; y++) {
            av_read_image_line2(line, (const uint8_t **)frame->data, frame->linesize, format, 0, y,
                                c, w, 0, 2);
            for (int x = 0; x < w; x++)
                hash = (hash ^ line[x]) * 1099511628211u;
        }
    }
    return hash;
}

static enum AVPixelFormat only_cuda(AVCodecContext *av, const enum AVPixelFormat *formats)
{
    (void)av;
    while (*formats != AV_PIX_FMT_NONE && *formats != AV_PIX_FMT_CUDA)
        formats++;
    return *formats;
}

/* The picture in ordinary memory. */
static AVFrame *download(const AVFrame *frame)
{
    AVFrame *down = av_frame_alloc();
    if (av_hwframe_transfer_data(down, frame, 0) < 0)
        av_frame_free(&down);
    if (down) {
        down->width = frame->width;
        down->height = frame->height;
    }
    return down;
}

static int show(const AVFrame *frame, struct shown *ret)
{
    if (ret->is_hard && frame->format != AV_PIX_FMT_CUDA)
        return AVERROR(ENOSYS);
    if (frame->pts < ret->from)
        return 0;
    AVFrame *plain = ret->is_hard ? download(frame) : av_frame_clone(frame);
    if (plain && ret->count < FRAMES_MAX)
        ret->pictures[ret->count++] = (struct picture){frame->pts, hash_picture(plain)};
    int rc = plain ? 0 : AVERROR_EXTERNAL;
    av_frame_free(&plain);
    return rc;
}

static void note(struct shown *ret, int rc)
{
    if (rc < 0 && rc != AVERROR(EAGAIN) && rc != AVERROR_EOF && ret->rc == 0)
        ret->rc = rc;
}

static void feed(AVCodecContext *av, AVPacket *packet, struct shown *ret)
{
    AVFrame *frame = av_frame_alloc();
    note(ret, avcodec_send_packet(av, packet));
    int rc;
    while ((rc = avcodec_receive_frame(av, frame)) >= 0) {
        note(ret, show(frame, ret));
        av_frame_unref(frame);
    }
    note(ret, rc);
    av_frame_free(&frame);
}

static void read_all(AVFormatContext *format, AVCodecContext *av, struct shown *ret)
{
    AVPacket *packet = av_packet_alloc();
    while (av_read_frame(format, packet) >= 0) {
        if (ret->from == AV_NOPTS_VALUE)
            ret->from = packet->pts;
        if (packet->stream_index == 0)
            feed(av, packet, ret);
        av_packet_unref(packet);
    }
    feed(av, NULL, ret);
    av_packet_free(&packet);
}

/* Decodes a file, and, when `seek_seconds` > 0, once more from there in the same decoder. */
static void decode(const char *path, AVBufferRef *device, double seek_seconds, struct shown *ret)
{
    AVFormatContext *format = NULL;
    AVCodecContext *av = NULL;
    *ret = (struct shown){.is_hard = device, .from = AV_NOPTS_VALUE};
    note(ret, avformat_open_input(&format, path, NULL, NULL));
    if (ret->rc)
        return;
    avformat_find_stream_info(format, NULL);
    const AVCodecParameters *par = format->streams[0]->codecpar;
    const AVCodec *codec = avcodec_find_decoder(par->codec_id);
    /* The native decoders have hwaccels; what the build prefers for AV1 and VP9 may have none. */
    const AVCodec *native = avcodec_find_decoder_by_name(avcodec_get_name(par->codec_id));
    av = avcodec_alloc_context3(device && native ? native : codec);
    avcodec_parameters_to_context(av, par);
    av->pkt_timebase = format->streams[0]->time_base;
    av->thread_count = 1;
    if (device) {
        av->hw_device_ctx = av_buffer_ref(device);
        av->get_format = only_cuda;
    }
    note(ret, avcodec_open2(av, NULL, NULL));
    read_all(format, av, ret);
    if (seek_seconds > 0) {
        avcodec_flush_buffers(av);
        ret->from = AV_NOPTS_VALUE;
        note(ret, av_seek_frame(format, -1, (int64_t)(seek_seconds * 1e6), AVSEEK_FLAG_BACKWARD));
        read_all(format, av, ret);
    }
    avcodec_free_context(&av);
    avformat_close_input(&format);
}

static int open_device(AVBufferRef **ret)
{
    return av_hwdevice_ctx_create(ret, AV_HWDEVICE_TYPE_CUDA, NULL, NULL, 0);
}

/* No slices in HEVC: x265 crashes now and then with them where it can start no thread pool. */
/* No odd sizes: the card's chroma begins on an even line, libav looks for it one line earlier; and
 * FFmpeg 7 reads odd widths back in another way than 5. */
static const struct stream {
    const char *name;
    struct clip_options options;
} streams[] = {
    {"h264", {.b_frames = 3}},
    {"h264-pyramid", {.b_frames = 8, .is_pyramid = true, .is_open_gop = true, .gop = 12}},
    {"h264-baseline", {.video_options = "profile=baseline:refs=4"}},
    {"h264-cavlc-matrix", {.b_frames = 2, .video_options = "coder=vlc:x264-params=cqm=jvt"}},
    {"h264-slices-refresh",
     {.video_options = "x264-params=slices=4\\:intra-refresh=1\\:weightp=2"}},
    {"h264-mbaff", {.is_interlaced = true, .b_frames = 2}},
    {"h264-crop", {.width = 202, .height = 150}},
    {"hevc", {.codec = "libx265"}},
    {"hevc-10", {.codec = "libx265", .pix_fmt = "yuv420p10le"}},
    {"hevc-open",
     {.codec = "libx265",
      .gop = 12,
      .video_options = "x265-params=open-gop=1\\:scaling-list=default\\:bframes=6\\:rc-"
                       "lookahead=12"}},
    {"hevc-tools",
     {.codec = "libx265",
      .video_options = "x265-params=ref=6\\:rect=1\\:amp=1\\:tskip=1\\:weightb=1\\:wpp=1"}},
    {"hevc-crop", {.codec = "libx265", .width = 202, .height = 150}},
    {"vp8", {.codec = "libvpx", .video_options = "cpu-used=8:auto-alt-ref=1:lag-in-frames=8"}},
    {"vp9", {.codec = "libvpx-vp9", .video_options = "cpu-used=8:lag-in-frames=8"}},
    {"vp9-10",
     {.codec = "libvpx-vp9", .pix_fmt = "yuv420p10le", .video_options = "cpu-used=8:profile=2"}},
    {"mpeg2", {.codec = "mpeg2video", .b_frames = 2}},
    {"mpeg2-interlaced",
     {.codec = "mpeg2video",
      .is_interlaced = true,
      .b_frames = 2,
      .video_options = "alternate_scan=1:intra_vlc=1:dc=10"}},
    {"mpeg1", {.codec = "mpeg1video", .b_frames = 2, .width = 352, .height = 288}},
};
enum { STREAMS = sizeof streams / sizeof streams[0] };

/* A clip of two seconds, 192x160 unless told otherwise. */
static const char *make(const char *name, struct clip_options options)
{
    char file[64];
    struct err e = {0};
    snprintf(file, sizeof file, "%s.mkv", name);
    options.width = options.width ? options.width : 192;
    options.height = options.height ? options.height : 160;
    options.gop = options.gop ? options.gop : 20;
    options.format = "matroska";
    const char *path = scratch_file(file);
    if (clip_make(path, &options, &e) < 0)
        fail_msg("%s: %s", name, e.msg);
    return path;
}

/* Whether picture n is what software shows: in the same place, or, behind the seek, when it decodes
 * straight on. FFmpeg 7.1's own HEVC decoder is wrong after a flush where scaling lists are used.
 */
static bool is_right(const struct shown *hard, const struct shown *soft, int n)
{
    const struct picture *p = &hard->pictures[n];
    if (memcmp(p, &soft->pictures[n], sizeof *p) == 0)
        return true;
    for (int i = 0; i < soft->count && i < n; i++)
        if (soft->pictures[i].pts == p->pts)
            return soft->pictures[i].hash == p->hash;
    return false;
}

static void test_matrix(void **state)
{
    (void)state;
    AVBufferRef *device = NULL;
    assert_int_equal(open_device(&device), 0);
    for (int i = 0; i < STREAMS; i++) {
        static struct shown hard, soft;
        const char *path = make(streams[i].name, streams[i].options);
        int64_t decoded = simgpu_own(0, "frames_decoded");
        decode(path, NULL, 1, &soft);
        assert_int_equal(simgpu_own(0, "frames_decoded"), decoded);
        decode(path, device, 1, &hard);
        if (hard.count != soft.count || hard.count <= 50 || hard.rc)
            fail_msg("%s: %d pictures, %d in software: %s", streams[i].name, hard.count, soft.count,
                     av_err2str(hard.rc));
        for (int n = 0; n < hard.count; n++)
            if (!is_right(&hard, &soft, n))
                fail_msg("%s: picture %d differs", streams[i].name, n);
        assert_true(simgpu_own(0, "frames_decoded") - decoded >= hard.count);
    }
    av_buffer_unref(&device);
    assert_int_equal(simgpu_own(2, "memory"), 0);
    assert_int_equal(simgpu_own(2, "decoder"), 0);
    assert_int_equal(simgpu_own(2, "mapped_frame"), 0);
    assert_int_equal(simgpu_own(2, "context"), 0);
}

/* What no model, or not this one, decodes: no picture comes, and none is made in software. */
static void test_refused(void **state)
{
    (void)state;
    static const struct stream refused[] = {
        {"small", {.codec = "libx265", .width = 128, .height = 128}},
        {"deep", {.pix_fmt = "yuv420p10le"}},
        {"chroma", {.pix_fmt = "yuv422p"}},
        {"mpeg4", {.codec = "mpeg4"}},
    };
    AVBufferRef *device = NULL;
    assert_int_equal(open_device(&device), 0);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct shown shown;
        decode(make(refused[i].name, refused[i].options), device, 0, &shown);
        if (shown.count || shown.rc >= 0)
            fail_msg("%s: %d pictures", refused[i].name, shown.count);
    }
    av_buffer_unref(&device);
}

/* Decodes the file CLIP; prints nothing; the exit code is the number of pictures. */
static int part_count(void)
{
    AVBufferRef *device = NULL;
    static struct shown shown;
    av_log_set_level(AV_LOG_QUIET);
    if (open_device(&device) < 0)
        return 200;
    decode(getenv("CLIP"), device, 0, &shown);
    av_buffer_unref(&device);
    return shown.count;
}

static void test_faults(void **state)
{
    (void)state;
    static const struct {
        const char *setting;
        int pictures;     /* that come out, of 50; 200: no device */
        const char *live; /* what is left; NULL: whatever */
    } cases[] = {
        {"A=1", 50, ""},
        {"SIMGPU_DEVICES=0", 200, ""},
        {"SIMGPU_FAULT=cuInit@1=999", 200, ""},
        {"SIMGPU_FAULT=cuvidCreateDecoder@1+=2", 0, ""},
        {"SIMGPU_MEM_MIB=128", 0, ""}, /* the context takes all of it */
        {"SIMGPU_FAULT=cuvidMapVideoFrame64@10=1", 49, ""},
        {"SIMGPU_FAULT=cuvidDecodePicture@11=lost:700", 10, ""},
        {"SIMGPU_FAULT=cuvidDecodePicture@11=dead:999", 10, NULL},
        {"SIMGPU_MODEL=A100", 50, ""},
    };
    static char clip[512];
    snprintf(clip, sizeof clip, "CLIP=%s", make("faults", (struct clip_options){0}));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *stats;
        const char *settings[] = {clip, cases[i].setting, NULL};
        int code = simgpu_run("count", settings, &stats);
        if (code != cases[i].pictures)
            fail_msg("%s: %d pictures", settings[1], code);
        if (cases[i].live && strcmp(simgpu_leaks(stats), cases[i].live) != 0)
            fail_msg("%s: left alive: %s", settings[1], simgpu_leaks(stats));
        json_decref(stats);
    }
}

/* Seconds that so many processes take, each with the same clip, on the GPUs of one state. */
static double run_together(const char *const settings[], int processes)
{
    pid_t pids[8];
    int64_t begin = clock_mono_us();
    for (int i = 0; i < processes; i++)
        pids[i] = simgpu_start("count", settings);
    for (int i = 0; i < processes; i++)
        assert_int_equal(simgpu_wait(pids[i], NULL), 50);
    return (double)(clock_mono_us() - begin) / 1e6;
}

/* 50 pictures of 192x160 at 0.768 Mpixel/s are two seconds of one engine. Two processes have an
 * engine each; four have half of one. An engine cannot be faster than its rate, so the lower bounds
 * are strict; the upper ones are what half as many engines would take. */
static void test_knee(void **state)
{
    (void)state;
    static char clip[512], file[512];
    snprintf(clip, sizeof clip, "CLIP=%s", make("knee", (struct clip_options){0}));
    snprintf(file, sizeof file, "SIMGPU_STATE=%s", scratch_file("knee.state"));
    const char *settings[] = {clip, file, "SIMGPU_NVDEC_ENGINES=2", "SIMGPU_NVDEC_MPPS=0.768",
                              NULL};
    double one = run_together(settings, 1), two = run_together(settings, 2),
           four = run_together(settings, 4);
    print_message("1, 2, 4 processes: %.2f, %.2f, %.2f s\n", one, two, four);
    assert_true(one >= 1.95 && one < 3.9);
    assert_true(two >= 1.95 && two < 3.9);
    assert_true(four >= 3.9 && four < 7.8);
}

/* A killed process leaves its engine free, its memory too. */
static void test_killed(void **state)
{
    (void)state;
    static char clip[512], file[512];
    snprintf(clip, sizeof clip, "CLIP=%s", make("killed", (struct clip_options){0}));
    snprintf(file, sizeof file, "SIMGPU_STATE=%s", scratch_file("killed.state"));
    const char *slow[] = {
        clip, file, "SIMGPU_NVDEC_ENGINES=1", "SIMGPU_NVDEC_MPPS=0.003", "SIMGPU_MEM_MIB=200",
        NULL};
    const char *fast[] = {
        clip, file, "SIMGPU_NVDEC_ENGINES=1", "SIMGPU_NVDEC_MPPS=100", "SIMGPU_MEM_MIB=200", NULL};
    pid_t pid = simgpu_start("count", slow);
    usleep(500000);
    kill(pid, SIGKILL);
    assert_int_equal(simgpu_wait(pid, NULL), 128 + SIGKILL);
    assert_true(run_together(fast, 1) < 8);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_faults), cmocka_unit_test(test_knee),
        cmocka_unit_test(test_killed),
    };
    av_log_set_level(AV_LOG_QUIET);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

static const struct simgpu_part parts[] = {{"count", part_count}, {0}};

int main(int argc, char **argv)
{
    return simgpu_main(argc, argv, parts, run_all);
}
