#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libavutil/error.h>
#include <libavutil/log.h>

#include "pipelines/media/avlog.h"
#include "pipelines/media/limits.h"

static void defaults_are_the_table(void **state)
{
    (void)state;
    struct limits l;
    limits_default(&l);
    assert_int_equal(l.max_pixels, 8192 * 4320);
    assert_int_equal(l.max_streams, 64);
    assert_int_equal(l.max_frames, 24 * 3600 * 120);
    assert_int_equal(l.max_duration_s, 24 * 3600);
    assert_int_equal(l.max_output_bytes, (int64_t)200 << 30);
    assert_int_equal(l.max_task_s, 6 * 3600);
    assert_int_equal(l.max_memory_bytes, (int64_t)8 << 30);
    assert_int_equal(l.max_header_bytes, 32 << 20);
}

static void one_is_set_by_name(void **state)
{
    (void)state;
    struct limits l;
    struct err e = {0};
    limits_default(&l);
    assert_int_equal(limits_set(&l, "max_pixels=100", &e), 0);
    assert_int_equal(l.max_pixels, 100);
    assert_int_equal(l.max_streams, 64);
}

static void wrong_ones_are_usage_errors(void **state)
{
    (void)state;
    static const char *const wrong[] = {"max_pixels",
                                        "max_pixels=",
                                        "max_pixels=0",
                                        "max_pixels=-1",
                                        "max_pixels=1k",
                                        "max_pixels=1e6",
                                        "max_pixel=1",
                                        "=5",
                                        "max_pixels=9999999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct limits l, before;
        struct err e = {0};
        limits_default(&l);
        before = l;
        assert_int_equal(limits_set(&l, wrong[i], &e), -ERR_USAGE);
        assert_true(e.msg[0]);
        assert_memory_equal(&l, &before, sizeof l);
    }
    struct limits l;
    struct err e = {0};
    limits_set(&l, "max_pixel=1", &e);
    assert_non_null(strstr(e.msg, "max_pixels, max_streams"));
}

static void they_travel_as_json(void **state)
{
    (void)state;
    struct limits l, *back = NULL;
    struct err e = {0};
    limits_default(&l);
    l.max_task_s = 7;
    char *text = bind_dump(&limits_type, &l);
    assert_int_equal(bind_parse(&limits_type, text, strlen(text), "limits", ERR_CONFIG, &back, &e),
                     0);
    assert_memory_equal(&l, back, sizeof l);
    bind_free(&limits_type, &back);
    free(text);
}

static void the_reason_is_libavs_last_word(void **state)
{
    (void)state;
    avlog_init();
    avlog_clear();
    av_log(NULL, AV_LOG_ERROR, "first\n");
    av_log(NULL, AV_LOG_ERROR, "moov atom not found\n");
    av_log(NULL, AV_LOG_ERROR, "moov atom not found\n");
    av_log(NULL, AV_LOG_INFO, "chatter\n");
    const char *why = avlog_reason(AVERROR_INVALIDDATA);
    assert_non_null(strstr(why, "first; moov atom not found (Invalid data"));
    assert_string_equal(avlog_reason(AVERROR_EOF), "End of file"); /* and is said once */
    av_log(NULL, AV_LOG_ERROR, "stale\n");
    avlog_clear();
    assert_null(strstr(avlog_reason(AVERROR_EOF), "stale"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_table),         cmocka_unit_test(one_is_set_by_name),
        cmocka_unit_test(wrong_ones_are_usage_errors),    cmocka_unit_test(they_travel_as_json),
        cmocka_unit_test(the_reason_is_libavs_last_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
