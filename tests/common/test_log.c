/* The log: one redacted line a message, levels, tags, whole lines from many threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"

static int saved;
static FILE *file;

static void capture(void)
{
    saved = dup(2);
    file = tmpfile();
    dup2(fileno(file), 2);
}

static char *captured(void) /* the caller frees */
{
    dup2(saved, 2);
    close(saved);
    fseek(file, 0, SEEK_END);
    size_t n = (size_t)ftell(file);
    char *text = calloc(1, n + 1);
    rewind(file);
    n = fread(text, 1, n, file);
    fclose(file);
    return text;
}

static void test_line(void **state)
{
    (void)state;
    log_init(LOG_INFO, "agent");
    capture();
    log_debug("unseen");
    log_warning("two\nlines \x1b[31m and redis://:secret@host %d", 7);
    log_set_tag("");
    log_error("bare");
    cleanup(free_ptr) char *text = captured();
    int end = 0;
    sscanf(text, "%*4d-%*2d-%*2dT%*2d:%*2d:%*2d.%*3dZ %n", &end);
    assert_int_equal(end, 25);
    char *second = strchr(text, '\n') + 1;
    second[-1] = 0;
    assert_string_equal(text + 25, "warning agent: two lines  [31m and redis://:***@host 7");
    assert_string_equal(second + 25, "error bare\n");
}

static void test_levels(void **state)
{
    (void)state;
    enum log_level level = LOG_INFO;
    assert_int_equal(log_level_parse("DEBUG", &level), 0);
    assert_int_equal(level, LOG_DEBUG);
    assert_int_equal(log_level_parse("error", &level), 0);
    assert_int_equal(level, LOG_ERROR);
    assert_int_equal(log_level_parse("loud", &level), -1);
    log_init(LOG_ERROR, NULL);
    assert_int_equal(log_level(), LOG_ERROR);
    capture();
    log_warning("unseen");
    cleanup(free_ptr) char *text = captured();
    assert_string_equal(text, "");
}

static void *write_many(void *arg)
{
    for (int i = 0; i < 200; i++)
        log_info("%s%0100d", (char *)arg, i);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    log_init(LOG_INFO, "");
    capture();
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, write_many, (void *)"line");
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    cleanup(free_ptr) char *text = captured();
    int n = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n++)
        assert_int_equal(strlen(line), 25 + strlen("info line") + 100);
    assert_int_equal(n, 800);
}

static void test_long_line_is_cut(void **state)
{
    (void)state;
    capture();
    log_info("%010000d", 1);
    cleanup(free_ptr) char *text = captured();
    assert_in_range(strlen(text), 4000, 4200);
    assert_int_equal(text[strlen(text) - 1], '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_long_line_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
