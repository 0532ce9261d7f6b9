/* What a person reads: numbers, tables, progress lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/format.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "common/cleanup.h"
#include "common/clock.h"

static void numbers(void **state)
{
    (void)state;
    char s[FORMAT_MAX];
    assert_string_equal(format_bytes(0, s), "0 B");
    assert_string_equal(format_bytes(999, s), "999 B");
    assert_string_equal(format_bytes(1234, s), "1.23 kB");
    assert_string_equal(format_bytes(12345678, s), "12.3 MB");
    assert_string_equal(format_bytes(999999, s), "1.00 MB");
    assert_string_equal(format_bytes(INT64_C(5000000000000), s), "5000 GB");
    assert_string_equal(format_bps(145000, s), "145 kb/s");
    assert_string_equal(format_bps(7800000, s), "7.80 Mb/s");
    assert_string_equal(format_clock(-3, s), "0:00");
    assert_string_equal(format_clock(59.6, s), "1:00");
    assert_string_equal(format_clock(3723, s), "1:02:03");
    assert_string_equal(format_utc(0, s), "-");
    assert_string_equal(format_utc(INT64_C(1767323045678000), s), "2026-01-02 03:04:05Z");
}

static void aligned_table(void **state)
{
    (void)state;
    cleanup(free_ptr) char *text = NULL;
    size_t size;
    cleanup(table_free) struct table *t = table_new("NAME|>N|LAST");
    const char *cells[] = {"ä", "7", "x", "longer", "1234", "y"};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        table_cell(t, "%s", cells[i]);
    FILE *out = open_memstream(&text, &size);
    table_print(t, out, "> ");
    fclose(out);
    assert_string_equal(text, "> NAME       N  LAST\n"
                              "> ä          7  x\n"
                              "> longer  1234  y\n");
}

static char *progress_text(bool is_quiet)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct progress *p = progress_new(out, is_quiet);
    struct job job = {.state = JOB_PROBING, .tasks = 1};
    progress_update(p, &job);
    job = (struct job){.state = JOB_RUNNING, .tasks = 5, .frames_total = 200, .frames_done = 50};
    progress_update(p, &job); /* less than 5 s later: not shown */
    progress_say(p, "a child's line");
    progress_update(p, &job);
    job.state = JOB_DONE;
    job.frames_done = 200;
    progress_update(p, &job);
    progress_update(p, &job); /* the end is shown once */
    progress_free(&p);
    assert_null(p);
    fclose(out);
    return text;
}

static void plain_progress(void **state)
{
    (void)state;
    cleanup(free_ptr) char *text = progress_text(false);
    assert_string_equal(text, "  0 %  probing  0/1 tasks\n"
                              "a child's line\n"
                              " 25 %  running  50/200 frames\n"
                              "100 %  done  200/200 frames\n");
    cleanup(free_ptr) char *quiet = progress_text(true);
    assert_string_equal(quiet, "a child's line\n");
}

/* Speed counts from the first frame seen by this process. */
static void progress_rates(void **state)
{
    (void)state;
    cleanup(free_ptr) char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct progress *p = progress_new(out, false);
    struct job job = {.state = JOB_RUNNING, .frames_total = 1000, .frames_done = 900};
    progress_update(p, &job);
    clock_sleep_us(600000);
    progress_say(p, "-"); /* so that the next is shown at once */
    job.frames_done = 960;
    progress_update(p, &job);
    progress_free(&p);
    fclose(out);
    double fps = 0;
    const char *line = strstr(text, "-\n");
    assert_non_null(line);
    assert_int_equal(sscanf(line + 2, " 96 %%  running  960/1000 frames  %lf fps", &fps), 1);
    assert_true(fps > 50 && fps <= 100);
    assert_non_null(strstr(line, "ETA 0:0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(aligned_table),
        cmocka_unit_test(plain_progress),
        cmocka_unit_test(progress_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
