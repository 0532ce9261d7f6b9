#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/opened.h"
#include "tests/support/scratch.h"

static void assert_refused(const char *path, const struct limits *limits, const char *why)
{
    struct opened o;
    assert_int_equal(opened_try(&o, path, limits), -ERR_INPUT);
    if (!strstr(o.err.msg, why))
        fail_msg("%s: expected \"%s\", got \"%s\"", path, why, o.err.msg);
    opened_close(&o);
}

static void what_is_no_media_is_refused_with_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "empty"},
        {"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n/etc/passwd\n", "HLS playlist"},
        {"\xef\xbb\xbf#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n", "HLS playlist"},
        {"ffconcat version 1.0\nfile /etc/passwd\n", "concat script"},
        {"<?xml version=\"1.0\"?><MPD></MPD>", "XML"},
        {"<html><body>404 not found</body></html>", "web page"},
        {"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nm=video 5000 RTP/AVP 96\r\n", "not a"},
        {"hello", "not a media file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(scratch_write("x.mp4", cases[i].text, strlen(cases[i].text)), NULL,
                       cases[i].why);
}

static void random_bytes_are_refused(void **state)
{
    (void)state;
    static uint8_t bytes[300000];
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < sizeof bytes; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        bytes[i] = (uint8_t)x;
    }
    bytes[0] = 'r'; /* whatever the seed, no known beginning */
    struct source *s;
    struct err e = {0};
    assert_int_equal(probe_path(scratch_write("r.mp4", bytes, sizeof bytes), NULL, 6, &s, &e),
                     -ERR_INPUT);
    assert_null(s);
    assert_true(e.msg[0]);
}

static void missing_index_is_named(void **state)
{
    (void)state;
    const char *whole = clip_in_scratch("moov.mp4", &(struct clip_options){.frames = 25});
    assert_refused(scratch_cut("nomoov.mp4", whole, 600), NULL, "index (moov) is missing");
}

static void encryption_is_named(void **state)
{
    (void)state;
    const char *path = clip_in_scratch(
        "enc.mp4",
        &(struct clip_options){.frames = 10,
                               .muxer_options = "encryption_scheme=cenc-aes-ctr:"
                                                "encryption_key=76a6c65c5ea762046bd749a2e632ccbb:"
                                                "encryption_kid=a7e61c373e219033c21091fa607bf3b8"});
    struct source *s;
    struct err e = {0};
    assert_int_equal(probe_path(path, NULL, 6, &s, &e), -ERR_INPUT);
    assert_non_null(strstr(e.msg, "encrypted"));
}

static void a_cover_alone_is_no_video(void **state)
{
    (void)state;
    const char *path = clip_in_scratch(
        "cover.mp4", &(struct clip_options){.is_audio_only = true, .has_cover = true});
    assert_refused(path, NULL, "neither video nor audio");
}

static void limits_are_enforced(void **state)
{
    (void)state;
    const char *path = clip_in_scratch(
        "two.mp4", &(struct clip_options){.frames = 5, .audio = {{0}}, .n_audio = 1});
    struct limits l;
    struct err e = {0};
    limits_default(&l);
    assert_int_equal(limits_set(&l, "max_streams=1", &e), 0);
    assert_refused(path, &l, "max_streams=1");
    limits_default(&l);
    assert_int_equal(limits_set(&l, "max_pixels=57599", &e), 0); /* 320x180 - 1 */
    assert_refused(path, &l, "max_pixels=57599");
    assert_int_equal(limits_set(&l, "max_pixels=57600", &e), 0);
    struct opened o;
    assert_int_equal(opened_try(&o, path, &l), 0);
    opened_close(&o);
}

static bool say_yes(void *arg)
{
    return ++*(int *)arg > 0;
}

static void cancelling_ends_the_opening(void **state)
{
    (void)state;
    const char *path = clip_in_scratch("cancel.ts", &(struct clip_options){.frames = 25});
    struct opened o;
    opened_must(&o, path);
    struct input *in = NULL;
    int polls = 0;
    assert_int_equal(input_open(o.fd, &o.limits, say_yes, &polls, &in, &o.err), -ERR_CANCELLED);
    assert_null(in);
    assert_true(polls > 0);
    opened_close(&o);
}

/* ---- seeking ---- */

static const struct {
    const char *name;
    struct clip_options o;
} seek_clips[] = {
    {"s.mp4", {.b_frames = 3, .is_pyramid = true}},
    {"open.mp4", {.b_frames = 3, .is_open_gop = true}},
    {"frag.mp4", {.b_frames = 2, .muxer_options = "movflags=frag_keyframe+empty_moov"}},
    {"intra.mov", {.codec = "prores", .pix_fmt = "yuv422p10le"}},
    {"s.mov", {.b_frames = 2}},
    {"s.mkv", {.b_frames = 3, .is_open_gop = true}},
    {"nocues.mkv", {.b_frames = 3, .muxer_options = "live=1"}},
    {"s.webm", {.codec = "libvpx-vp9"}},
    {"s.ts", {.b_frames = 3, .is_open_gop = true}},
    {"wrap.ts", {.b_frames = 3, .start_90k = 8589934592 - 135000}},
    {"mpeg2.ts", {.codec = "mpeg2video", .b_frames = 2}},
    {"h265.ts", {.codec = "libx265", .b_frames = 3, .is_open_gop = true}},
    {"s.mpg", {.codec = "mpeg2video"}},
    {"s.avi", {.codec = "mpeg4"}},
    {"b.avi", {.codec = "mpeg4", .b_frames = 2}},
    {"h264.avi", {.b_frames = 3, .is_pyramid = true, .is_open_gop = true}},
    {"mjpeg.avi", {.codec = "mjpeg"}},
    {"s.flv", {.b_frames = 2}},
    {"late.mkv", {.b_frames = 2, .start_seconds = 3.5}},
};

/* The packets from index `at` of the linear list on are what comes after the seek, but for leading
 * packets of earlier places. */
static void assert_seek(struct opened *o, const char *name, const struct packet_list *all,
                        size_t at, int64_t target)
{
    struct packet_list got;
    assert_int_equal(input_seek(o->in, 0, target, &o->err), 0);
    packets_read(o, 0, &got);
    if (got.n == 0 || !(got.v[0].flags & AV_PKT_FLAG_KEY))
        fail_msg("%s: no keyframe first after seeking to %ld", name, (long)target);
    size_t from = 0;
    while (from < got.n && got.v[from].pts != all->v[at].pts)
        from++;
    if (from == got.n)
        fail_msg("%s: seeking to %ld landed too late, at %ld", name, (long)target,
                 (long)got.v[0].pts);
    if (got.n - from != all->n - at)
        fail_msg("%s: %zu packets from %ld on, expected %zu", name, got.n - from, (long)target,
                 all->n - at);
    for (size_t i = 0; i < got.n - from; i++)
        if (got.v[from + i].pts != all->v[at + i].pts ||
            (got.v[from + i].flags ^ all->v[at + i].flags) & AV_PKT_FLAG_KEY)
            fail_msg("%s: packet %zu after seeking to %ld: pts %ld, expected %ld", name, i,
                     (long)target, (long)got.v[from + i].pts, (long)all->v[at + i].pts);
    packets_free(&got);
}

static void every_keyframe_can_be_sought(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof seek_clips / sizeof *seek_clips; c++) {
        const char *name = seek_clips[c].name;
        struct clip_options options = seek_clips[c].o;
        bool is_webm = strstr(name, ".webm") != NULL;
        options.width = 192;
        options.height = 108;
        options.frames = 75;
        options.gop = 12;
        options.n_audio = 1;
        options.audio[0].codec = is_webm                                        ? "libopus"
                                 : strstr(name, ".avi") || strstr(name, ".mpg") ? "mp2"
                                                                                : NULL;
        struct opened o;
        opened_must(&o, clip_in_scratch(name, &options));
        struct packet_list all, again;
        packets_read(&o, 0, &all);
        assert_int_equal(all.n, 75);
        size_t keys = 0;
        for (size_t i = all.n; i-- > 0;) /* backwards, so that each is a real seek */
            if (all.v[i].flags & AV_PKT_FLAG_KEY) {
                assert_seek(&o, name, &all, i, all.v[i].pts);
                if (i + 1 < all.n && all.v[i + 1].pts > all.v[i].pts + 1)
                    assert_seek(&o, name, &all, i, all.v[i].pts + 1);
                keys++;
            }
        assert_true(keys >= 3);
        assert_int_equal(input_seek(o.in, 0, all.v[0].pts - 100000, &o.err), 0);
        packets_read(&o, 0, &again);
        assert_int_equal(again.n, all.n);
        assert_memory_equal(again.v, all.v, all.n * sizeof *all.v);
        packets_free(&again);
        packets_free(&all);
        opened_close(&o);
    }
}

static void rewinding_gives_all_streams_again(void **state)
{
    (void)state;
    static const char *names[] = {"rw.mp4", "rw.mkv", "rw.ts", "rw.flv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct clip_options options = {.frames = 50,
                                       .b_frames = 2,
                                       .width = 192,
                                       .height = 108,
                                       .n_audio = 1,
                                       .audio = {{.start_seconds = -0.5}}};
        options.start_seconds = 2;
        struct opened o;
        opened_must(&o, clip_in_scratch(names[i], &options));
        struct packet_list first, again;
        packets_read(&o, -1, &first);
        AVFormatContext *shown = input_format(o.in);
        for (int pass = 0; pass < 3; pass++) {
            assert_int_equal(input_seek(o.in, 0, INT64_MIN, &o.err), 0);
            packets_read(&o, -1, &again);
            assert_int_equal(again.n, first.n);
            assert_memory_equal(again.v, first.v, first.n * sizeof *first.v);
            packets_free(&again);
        }
        assert_ptr_equal(shown, input_format(o.in));
        packets_free(&first);
        opened_close(&o);
    }
}

static void a_sequential_source_is_read_from_its_start(void **state)
{
    (void)state;
    struct opened o;
    opened_must(&o, clip_in_scratch("seq.ts", &(struct clip_options){.frames = 75, .gop = 25}));
    struct packet_list all, again;
    packets_read(&o, 0, &all);
    input_set_sequential(o.in, true);
    assert_int_equal(input_seek(o.in, 0, all.v[50].pts, &o.err), 0);
    packets_read(&o, 0, &again);
    assert_int_equal(again.n, all.n);
    packets_free(&again);
    packets_free(&all);
    opened_close(&o);
}

static void discarded_streams_stay_away(void **state)
{
    (void)state;
    struct opened o;
    opened_must(&o,
                clip_in_scratch("disc.mkv", &(struct clip_options){.frames = 50, .n_audio = 2}));
    input_format(o.in)->streams[0]->discard = AVDISCARD_ALL;
    input_format(o.in)->streams[2]->discard = AVDISCARD_ALL;
    for (int pass = 0; pass < 2; pass++) {
        struct packet_list l;
        packets_read(&o, -1, &l);
        assert_true(l.n > 50);
        for (size_t i = 0; i < l.n; i++)
            assert_int_equal(l.v[i].stream, 1);
        packets_free(&l);
        assert_int_equal(input_seek(o.in, 1, INT64_MIN, &o.err), 0);
    }
    opened_close(&o);
}

/* ---- one track of many ---- */

/* The clip over and over, as long as a film is, without decoding it. */
static const char *film_of(const char *name, const char *clip, int times, const char *movflags)
{
    const char *path = scratch_file(name);
    struct opened o;
    AVFormatContext *f = NULL;
    opened_must(&o, clip);
    assert_true(avformat_alloc_output_context2(&f, NULL, NULL, path) >= 0);
    const AVFormatContext *from = input_format(o.in);
    for (unsigned i = 0; i < from->nb_streams; i++) {
        AVStream *st = avformat_new_stream(f, NULL);
        avcodec_parameters_copy(st->codecpar, from->streams[i]->codecpar);
        st->time_base = from->streams[i]->time_base;
    }
    AVDictionary *options = NULL;
    av_dict_set(&options, "movflags", movflags, 0);
    assert_true(avio_open(&f->pb, path, AVIO_FLAG_WRITE) >= 0);
    assert_true(avformat_write_header(f, &options) >= 0);
    av_dict_free(&options);
    AVPacket *pkt = av_packet_alloc();
    for (int i = 0; i < times; i++, assert_int_equal(input_seek(o.in, 0, INT64_MIN, &o.err), 0))
        while (input_read(o.in, pkt, &o.err) == 0) {
            AVRational tb = from->streams[pkt->stream_index]->time_base;
            int64_t shift = av_rescale_q(2100 * i, (AVRational){1, 1000}, tb); /* longer than it */
            pkt->pts += shift;
            pkt->dts += shift;
            av_packet_rescale_ts(pkt, tb, f->streams[pkt->stream_index]->time_base);
            av_packet_free_side_data(pkt);
            assert_true(av_interleaved_write_frame(f, pkt) >= 0);
        }
    av_packet_free(&pkt);
    assert_true(av_write_trailer(f) >= 0);
    avio_closep(&f->pb);
    avformat_free_context(f);
    opened_close(&o);
    return path;
}

static int64_t bytes_in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return (int64_t)(m.uordblks + m.hblkhd);
}

static void assert_same(const struct packet_list *got, const struct packet_list *all, int stream)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++)
        if (stream < 0 || all->v[i].stream == stream) {
            assert_true(n < got->n);
            const struct packet_entry *a = &got->v[n++], *b = &all->v[i];
            if (memcmp(a, b, sizeof *a) != 0)
                fail_msg(
                    "packet %zu: stream %d, flags %d, pts %ld, dts %ld; expected %d, %d, %ld, %ld",
                    n, a->stream, a->flags, (long)a->pts, (long)a->dts, b->stream, b->flags,
                    (long)b->pts, (long)b->dts);
        }
    assert_int_equal(got->n, n);
}

/* Selects, of a source at its start, and checks whose packets and whose index there are. */
static void assert_selected(struct opened *o, const struct packet_list *all, int stream)
{
    struct packet_list got;
    size_t of[2] = {0};
    for (size_t i = 0; i < all->n; i++)
        of[all->v[i].stream]++;
    assert_int_equal(input_select(o->in, stream, &o->err), 0);
    size_t expected = stream < 0 ? of[0] + of[1] : of[stream];
    assert_int_equal(input_index_bytes(o->in) / sizeof(AVIndexEntry), expected);
    packets_read(o, -1, &got);
    assert_same(&got, all, stream);
    packets_free(&got);
    int64_t before = bytes_in_use();
    assert_int_equal(input_seek(o->in, 0, INT64_MIN, &o->err), 0); /* opens it again */
    assert_int_equal(input_index_bytes(o->in) / sizeof(AVIndexEntry), expected);
    assert_true(bytes_in_use() - before < input_index_bytes(o->in) / 2);
    assert_int_equal(input_format(o->in)->nb_streams, 2);
    assert_int_equal(input_format(o->in)->streams[1]->codecpar->sample_rate, 48000);
}

static void the_index_of_what_is_not_read_is_not_kept(void **state)
{
    (void)state;
    static const char *const flags[] = {NULL, "faststart"};
    const char *clip = clip_in_scratch(
        "loop.mp4",
        &(struct clip_options){
            .width = 64, .height = 64, .fps = {50, 1}, .frames = 100, .b_frames = 2, .n_audio = 1});
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        struct opened o;
        struct packet_list all;
        opened_must(&o, film_of("film.mp4", clip, 480, flags[i]));
        packets_read(&o, -1, &all);
        assert_int_equal(input_seek(o.in, 0, INT64_MIN, &o.err), 0);
        assert_selected(&o, &all, 0);
        size_t at = all.n / 2;
        while (all.v[at].stream != 0 || !(all.v[at].flags & AV_PKT_FLAG_KEY))
            at++;
        struct packet_list video;
        assert_int_equal(input_seek(o.in, 0, all.v[at].pts, &o.err), 0);
        packets_read(&o, -1, &video);
        assert_memory_equal(&video.v[0], &all.v[at], sizeof *all.v);
        packets_free(&video);
        if (i == 0) {
            assert_selected(&o, &all, 1);
            assert_selected(&o, &all, INPUT_ALL);
        }
        packets_free(&all);
        opened_close(&o);
    }
}

/* ---- truncation ---- */

static void cut_files_are_seen_and_whole_ones_are_not(void **state)
{
    (void)state;
    static const struct {
        const char *name, *muxer_options;
    } cases[] = {
        {"t.mp4", "movflags=faststart"},
        {"tf.mp4", "movflags=frag_keyframe+empty_moov"},
        {"t.mkv", NULL},
        {"t.avi", NULL},
        {"t.flv", NULL},
        {"t.ts", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct clip_options options = {.frames = 75,
                                       .muxer_options = cases[i].muxer_options,
                                       .n_audio = 1,
                                       .audio = {{.codec = "mp2"}}};
        if (strstr(cases[i].name, ".flv"))
            options.audio[0].codec = "aac";
        const char *whole = clip_in_scratch(cases[i].name, &options);
        for (int permille = 1000; permille > 200; permille -= 400) {
            struct opened o;
            struct packet_list l;
            opened_must(&o, permille == 1000 ? whole : scratch_cut("cut", whole, permille));
            assert_null(input_truncation(o.in));
            packets_read(&o, 0, &l);
            const char *why = input_truncation(o.in);
            if (!why != (permille == 1000))
                fail_msg("%s at %d permille: %s", cases[i].name, permille, why ? why : "not seen");
            assert_true(permille == 1000 ? l.n == 75 : l.n >= 30 && l.n < 60);
            packets_free(&l);
            opened_close(&o);
        }
    }
}

/* A recorder that died leaves an mdat that claims more than there is. */
static void a_long_mdat_alone_is_no_truncation(void **state)
{
    (void)state;
    const char *whole = clip_in_scratch(
        "mdat.mp4", &(struct clip_options){.frames = 25, .muxer_options = "movflags=faststart"});
    int64_t size = scratch_size(whole);
    char *bytes = malloc((size_t)size);
    FILE *f = fopen(whole, "rb");
    assert_non_null(f);
    assert_int_equal(fread(bytes, 1, (size_t)size, f), size);
    fclose(f);
    char *mdat = memmem(bytes, (size_t)size, "mdat", 4);
    assert_non_null(mdat);
    mdat[-2] = 0x7f;
    struct opened o;
    struct packet_list l;
    opened_must(&o, scratch_write("long.mp4", bytes, (size_t)size));
    packets_read(&o, 0, &l);
    assert_int_equal(l.n, 25);
    assert_null(input_truncation(o.in));
    packets_free(&l);
    opened_close(&o);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_media_is_refused_with_its_name),
        cmocka_unit_test(random_bytes_are_refused),
        cmocka_unit_test(missing_index_is_named),
        cmocka_unit_test(encryption_is_named),
        cmocka_unit_test(a_cover_alone_is_no_video),
        cmocka_unit_test(limits_are_enforced),
        cmocka_unit_test(cancelling_ends_the_opening),
        cmocka_unit_test(every_keyframe_can_be_sought),
        cmocka_unit_test(rewinding_gives_all_streams_again),
        cmocka_unit_test(a_sequential_source_is_read_from_its_start),
        cmocka_unit_test(discarded_streams_stay_away),
        cmocka_unit_test(the_index_of_what_is_not_read_is_not_kept),
        cmocka_unit_test(cut_files_are_seen_and_whole_ones_are_not),
        cmocka_unit_test(a_long_mdat_alone_is_no_truncation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
