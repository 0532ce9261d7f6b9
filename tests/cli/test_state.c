/* When a `run` may begin, go on, or must refuse; and what is left of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/state.h"
#include "common/cleanup.h"
#include "common/strbuf.h"

static int setup(void **state)
{
    char dir[] = "/tmp/test_state.XXXXXX";
    assert_non_null(mkdtemp(dir));
    *state = xstrdup(dir);
    return 0;
}

static int teardown(void **state)
{
    cleanup(free_ptr) char *command = xasprintf("rm -rf %s", (char *)*state);
    assert_int_equal(system(command), 0);
    free(*state);
    return 0;
}

static bool has(const char *dir, const char *name)
{
    cleanup(free_ptr) char *path = xasprintf("%s/%s", dir, name);
    struct stat st;
    return stat(path, &st) == 0;
}

static void put(const char *dir, const char *name)
{
    cleanup(free_ptr) char *path = xasprintf("%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
}

static void opens(const char *dir, bool is_resume, bool is_force, struct state *ret)
{
    struct err e = {0};
    if (state_open(dir, is_resume, is_force, ret, &e) != 0)
        fail_msg("%s", e.msg);
}

static void refuses(const char *dir, bool is_resume, bool is_force, const char *word)
{
    struct err e = {0};
    struct state s;
    assert_int_equal(state_open(dir, is_resume, is_force, &s, &e), -ERR_USAGE);
    if (!strstr(e.msg, word))
        fail_msg("\"%s\" does not say %s", e.msg, word);
    assert_int_equal(s.lock_fd, -1);
}

static void unfinished_run(void **state)
{
    const char *dir = *state;
    struct err e = {0};
    struct state s;
    opens(dir, false, false, &s);
    assert_true(s.is_new);
    assert_true(has(dir, ".transcode/redis") && has(dir, ".transcode/scratch"));
    put(s.redis, "data");
    put(s.scratch, "half a segment");
    refuses(dir, true, false, "another run");
    refuses(dir, false, true, "another run");
    state_close(&s);

    refuses(dir, false, false, "--resume");
    opens(dir, true, false, &s);
    assert_false(s.is_new);
    assert_true(has(dir, ".transcode/redis/data"));
    assert_false(has(dir, ".transcode/scratch/half a segment"));
    state_close(&s);

    opens(dir, false, true, &s);
    assert_false(has(dir, ".transcode/redis/data"));
    assert_int_equal(state_remove(&s, &e), 0);
    assert_false(has(dir, ".transcode"));
}

static void finished_output(void **state)
{
    const char *dir = *state;
    struct err e = {0};
    struct state s;
    put(dir, "master.m3u8");
    refuses(dir, false, false, "--force");
    assert_false(has(dir, ".transcode"));
    assert_int_equal(state_open(dir, true, false, &s, &e), 1);
    assert_false(has(dir, ".transcode"));
    opens(dir, false, true, &s);
    assert_false(has(dir, "master.m3u8"));
    assert_int_equal(state_remove(&s, &e), 0);
}

/* Killed between the master and the removal: --resume has to look, not to refuse. */
static void finished_but_not_removed(void **state)
{
    const char *dir = *state;
    struct state s;
    opens(dir, false, false, &s);
    state_close(&s);
    put(dir, "master.m3u8");
    opens(dir, true, false, &s);
    assert_true(has(dir, "master.m3u8"));
    state_close(&s);
}

static void other_outputs(void **state)
{
    (void)state;
    refuses("s3://bucket/key", false, false, "submit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unfinished_run, setup, teardown),
        cmocka_unit_test_setup_teardown(finished_output, setup, teardown),
        cmocka_unit_test_setup_teardown(finished_but_not_removed, setup, teardown),
        cmocka_unit_test(other_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
