#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libavcodec/avcodec.h>

#include "pipelines/media/repair.h"
#include "tests/support/opened.h"
#include "tests/support/scratch.h"

#define NONE AV_NOPTS_VALUE

/* A transport stream that is no file: video is stream 0 (25 frames/s), audio stream 1. */
struct fake {
    AVFormatContext *format;
    struct repair *repair;
    AVPacket *pkt;
};

static int set_up(void **state)
{
    static struct fake f;
    f.format = avformat_alloc_context();
    f.format->iformat = av_find_input_format("mpegts");
    for (int i = 0; i < 2; i++) {
        AVStream *st = avformat_new_stream(f.format, NULL);
        st->time_base = (AVRational){1, 90000};
        st->codecpar->codec_type = i ? AVMEDIA_TYPE_AUDIO : AVMEDIA_TYPE_VIDEO;
        st->codecpar->codec_id = i ? AV_CODEC_ID_AAC : AV_CODEC_ID_MPEG2VIDEO;
    }
    f.pkt = av_packet_alloc();
    f.repair = repair_new(f.format);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fake *f = *state;
    repair_free(&f->repair);
    avformat_free_context(f->format);
    av_packet_free(&f->pkt);
    return 0;
}

/* What a packet with these times comes out with. */
static int64_t mend(struct fake *f, int stream, int64_t pts, int64_t dts)
{
    f->pkt->stream_index = stream;
    f->pkt->pts = pts;
    f->pkt->dts = dts;
    f->pkt->duration = 3600;
    repair_push(f->repair, f->pkt);
    assert_true(repair_pull(f->repair, f->pkt));
    int64_t got = f->pkt->pts;
    av_packet_unref(f->pkt);
    return got;
}

static void whole_timestamps_stay(void **state)
{
    for (int64_t t = 0; t < 100; t++) {
        assert_int_equal(mend(*state, 0, t * 3600, t * 3600), t * 3600);
        assert_int_equal(mend(*state, 1, t * 3600 + 7, t * 3600 + 7), t * 3600 + 7);
    }
    const struct repair_counts *c = repair_counts(((struct fake *)*state)->repair);
    assert_int_equal(c->missing + c->jumps + c->duplicates, 0);
    assert_false(c->is_stateful);
}

static void missing_ones_follow_the_last(void **state)
{
    assert_int_equal(mend(*state, 0, 7200, 7200), 7200);
    assert_int_equal(mend(*state, 0, NONE, NONE), 10800);
    assert_int_equal(mend(*state, 0, NONE, 14400), 14400);
    const struct repair_counts *c = repair_counts(((struct fake *)*state)->repair);
    assert_int_equal(c->missing, 2);
    assert_true(c->is_stateful);
}

static void both_streams_follow_a_jump(void **state)
{
    static const int64_t jumps[] = {90000 * 3600, -90000 * 3600, -90000 * 3, 90000 * 11};
    for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
        struct fake *f = *state;
        repair_reset(f->repair);
        int64_t base = 90000 * 10000, j = base + jumps[i];
        assert_int_equal(mend(f, 0, base, base), base);
        assert_int_equal(mend(f, 1, base + 50, base + 50), base + 50);
        assert_int_equal(mend(f, 0, j + 3600, j + 3600), base + 3600);
        /* audio from before the jump still arrives, then from behind it: sync stays the source's */
        assert_int_equal(mend(f, 1, base + 3650, base + 3650), base + 3650);
        assert_int_equal(mend(f, 0, j + 7200, j + 7200), base + 7200);
        assert_int_equal(mend(f, 1, j + 7250, j + 7250), base + 7250);
        assert_int_equal(repair_counts(f->repair)->jumps, 1);
        assert_true(repair_counts(f->repair)->is_stateful);
    }
}

static void a_gap_in_one_stream_is_no_jump(void **state)
{
    struct fake *f = *state;
    mend(f, 1, 0, 0);
    for (int64_t t = 0; t <= 90000 * 30; t += 3600)
        assert_int_equal(mend(f, 0, t, t), t);
    assert_int_equal(mend(f, 1, 90000 * 30, 90000 * 30), 90000 * 30);
    assert_int_equal(repair_counts(f->repair)->jumps, 0);
}

static void pictures_do_not_share_a_time(void **state)
{
    assert_int_equal(mend(*state, 0, 0, 0), 0);
    assert_int_equal(mend(*state, 0, 0, 0), 1);
    assert_int_equal(mend(*state, 0, 0, 0), 2);
    assert_int_equal(mend(*state, 0, 3600, 3600), 3600);
    assert_int_equal(mend(*state, 1, 0, 0), 0); /* audio may */
    assert_int_equal(mend(*state, 1, 0, 0), 0);
    assert_int_equal(repair_counts(((struct fake *)*state)->repair)->duplicates, 2);
}

static void packets_beyond_the_wrap_are_counted(void **state)
{
    struct fake *f = *state;
    f->format->streams[0]->pts_wrap_bits = 33;
    assert_int_equal(mend(f, 0, -3600, -3600), -3600);
    assert_int_equal(mend(f, 0, 0, 0), 0);
    repair_reset(f->repair);
    int64_t top = (int64_t)1 << 33;
    assert_int_equal(mend(f, 0, top - 3600, top - 3600), top - 3600);
    assert_int_equal(repair_counts(f->repair)->wrapped, 0);
    assert_int_equal(mend(f, 0, top, top), top);
    assert_int_equal(repair_counts(f->repair)->wrapped, 1);
}

/* ---- real files ---- */

struct shown {
    int64_t number, pts;
};

/* Decodes stream 0 with the repaired times. */
static size_t decode(struct opened *o, struct shown *ret, size_t most)
{
    AVStream *st = input_format(o->in)->streams[0];
    AVCodecContext *dec = avcodec_alloc_context3(avcodec_find_decoder(st->codecpar->codec_id));
    AVPacket *pkt = av_packet_alloc();
    AVFrame *frame = av_frame_alloc();
    avcodec_parameters_to_context(dec, st->codecpar);
    dec->pkt_timebase = st->time_base;
    assert_int_equal(avcodec_open2(dec, NULL, NULL), 0);
    size_t n = 0;
    for (int r = 0; r != AVERROR_EOF;) {
        r = input_read(o->in, pkt, &o->err);
        assert_true(r == 0 || r == AVERROR_EOF);
        if (r == 0 && pkt->stream_index != 0) {
            av_packet_unref(pkt);
            continue;
        }
        avcodec_send_packet(dec, r == 0 ? pkt : NULL);
        av_packet_unref(pkt);
        while (avcodec_receive_frame(dec, frame) == 0) {
            assert_true(n < most);
            ret[n++] = (struct shown){clip_read_frame_number(frame), frame->pts};
        }
    }
    avcodec_free_context(&dec);
    av_packet_free(&pkt);
    av_frame_free(&frame);
    return n;
}

/* AVI stores no presentation times: they must come out in the pictures' own order all the same. */
static void avi_pictures_get_their_order_back(void **state)
{
    (void)state;
    static const struct clip_options clips[] = {
        {.codec = "mpeg4", .b_frames = 2},
        {.b_frames = 3, .is_pyramid = true},
        {.b_frames = 3, .is_pyramid = true, .is_open_gop = true},
    };
    for (size_t i = 0; i < sizeof clips / sizeof *clips; i++) {
        struct clip_options options = clips[i];
        options.frames = 60;
        options.gop = 12;
        options.width = 192;
        options.height = 108;
        struct opened o;
        struct shown shown[100];
        opened_must(&o, clip_in_scratch("order.avi", &options));
        assert_int_equal(decode(&o, shown, 100), 60);
        for (int k = 0; k < 60; k++) {
            assert_int_equal(shown[k].number, k);
            assert_int_equal(shown[k].pts, shown[0].pts + k);
        }
        assert_true(input_repairs(o.in)->missing > 0);
        assert_false(input_repairs(o.in)->is_stateful);
        opened_close(&o);
    }
}

static void joined_transport_streams_go_on(void **state)
{
    (void)state;
    struct clip_options options = {
        .frames = 50, .b_frames = 2, .width = 192, .height = 108, .n_audio = 1};
    const char *one = clip_in_scratch("one.ts", &options);
    options.start_seconds = 5000;
    const char *other = clip_in_scratch("other.ts", &options);
    const char *joins[] = {scratch_join("same.ts", one, one), scratch_join("on.ts", one, other),
                           scratch_join("back.ts", other, one)};
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        struct opened o;
        struct shown shown[200];
        opened_must(&o, joins[i]);
        size_t n = decode(&o, shown, 200);
        assert_int_equal(n, 100);
        for (size_t k = 0; k < n; k++) {
            assert_int_equal(shown[k].number, k % 50);
            int64_t step = k ? shown[k].pts - shown[k - 1].pts : 3600;
            /* whichever stream meets the join first goes on without a gap, here the audio */
            if (k == 50 ? step <= 0 || step > 2 * 3600 : step != 3600)
                fail_msg("%s: frame %zu comes after %ld ticks", joins[i], k, (long)step);
        }
        assert_int_equal(input_repairs(o.in)->jumps, 1);
        assert_true(input_repairs(o.in)->is_stateful);
        opened_close(&o);
    }
}

static void a_wrap_is_passed_without_a_jump(void **state)
{
    (void)state;
    static const int64_t before_wrap[] = {90000, 90000 * 61};
    for (size_t i = 0; i < sizeof before_wrap / sizeof *before_wrap; i++) {
        int seconds = (int)(before_wrap[i] / 90000);
        struct clip_options options = {.frames = (seconds + 1) * 5,
                                       .fps = {5, 1},
                                       .width = 96,
                                       .height = 54,
                                       .b_frames = 2,
                                       .n_audio = 1,
                                       .start_90k = ((int64_t)1 << 33) - before_wrap[i]};
        struct opened o;
        static struct shown shown[400];
        opened_must(&o, clip_in_scratch("wrap.ts", &options));
        size_t n = decode(&o, shown, 400);
        assert_int_equal(n, options.frames);
        for (size_t k = 0; k < n; k++) {
            assert_int_equal(shown[k].number, k);
            assert_int_equal(shown[k].pts, shown[0].pts + (int64_t)k * 18000);
        }
        const struct repair_counts *c = input_repairs(o.in);
        assert_true(c->wrapped > 0);
        assert_int_equal(c->jumps + c->missing + c->duplicates, 0);
        assert_false(c->is_stateful);
        opened_close(&o);
    }
}

int main(void)
{
#define FAKE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        FAKE(whole_timestamps_stay),
        FAKE(missing_ones_follow_the_last),
        FAKE(both_streams_follow_a_jump),
        FAKE(a_gap_in_one_stream_is_no_jump),
        FAKE(pictures_do_not_share_a_time),
        FAKE(packets_beyond_the_wrap_are_counted),
        cmocka_unit_test(avi_pictures_get_their_order_back),
        cmocka_unit_test(joined_transport_streams_go_on),
        cmocka_unit_test(a_wrap_is_passed_without_a_jump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
