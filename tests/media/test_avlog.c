/* libav's reasons, by thread. */
#include <libavutil/error.h>
#include <libavutil/log.h>
#include <pthread.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pipelines/media/avlog.h"

static void quotes_the_last_errors(void **state)
{
    (void)state;
    avlog_clear();
    for (const char *const *line = (const char *const[]){"one", "two", "two", "three", NULL}; *line;
         line++)
        av_log(NULL, AV_LOG_ERROR, "%s\n", *line);
    av_log(NULL, AV_LOG_WARNING, "no error\n");
    assert_string_equal(avlog_reason(AVERROR(ENOMEM)), "two; three (Cannot allocate memory)");
    assert_string_equal(avlog_reason(AVERROR(ENOMEM)), "Cannot allocate memory");
}

static void *open_another(void *unused)
{
    avlog_clear();
    av_log(NULL, AV_LOG_ERROR, "of another\n");
    return unused;
}

/* Two encoders are opened side by side: the one's failure is not the other's, and not lost. */
static void keeps_threads_apart(void **state)
{
    (void)state;
    pthread_t other;
    avlog_clear();
    av_log(NULL, AV_LOG_ERROR, "out of sessions\n");
    assert_int_equal(pthread_create(&other, NULL, open_another, NULL), 0);
    pthread_join(other, NULL);
    assert_string_equal(avlog_reason(AVERROR(ENOMEM)), "out of sessions (Cannot allocate memory)");
}

int main(void)
{
    avlog_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotes_the_last_errors),
        cmocka_unit_test(keeps_threads_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
