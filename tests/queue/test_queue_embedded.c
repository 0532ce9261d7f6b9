/* The private redis-server: comes up, keeps data from run to run, ends with its parent, and says
 * what to do when there is no redis-server. */
#include "tests/queue/server.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "queue/embedded.h"

static char dir[64];
static struct err e;

static int set_up(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/transcode-test-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static bool wait_gone(pid_t pid)
{
    for (int i = 0; i < 300; i++) {
        if (kill(pid, 0) && errno == ESRCH)
            return true;
        clock_sleep_us(10000);
    }
    return false;
}

static void test_keeps_data(void **state)
{
    (void)state;
    struct job_spec spec = {.id = "j", .input = "i", .output = "o", .profile = "{}"};
    for (int run = 0; run < 2; run++) {
        struct embedded_redis *r = NULL;
        if (embedded_redis_start(dir, &r, &e))
            fail_msg("%s", e.msg);
        char url[128];
        snprintf(url, sizeof url, "%s", embedded_redis_url(r));
        pid_t pid = embedded_redis_pid(r);
        assert_int_equal(getsid(pid), pid); /* no Ctrl-C from the terminal */
        struct stat st;
        assert_int_equal(stat(url + strlen("unix://"), &st), 0);
        assert_int_equal(st.st_mode & 0077, 0); /* nobody else's */
        struct queue *q = NULL;
        if (queue_open(url, NULL, &q, &e))
            fail_msg("%s", e.msg);
        assert_int_equal(queue_submit(q, &spec, NULL, &e), run == 0);
        queue_close(&q);
        embedded_redis_stop(&r);
        assert_null(r);
        assert_true(wait_gone(pid));
        assert_int_not_equal(stat(url + strlen("unix://"), &st), 0);
    }
}

static void test_dies_with_parent(void **state)
{
    (void)state;
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct embedded_redis *r = NULL;
        pid_t pid = embedded_redis_start(dir, &r, &e) ? 0 : embedded_redis_pid(r);
        if (write(pipes[1], &pid, sizeof pid) != sizeof pid)
            _exit(1);
        pause();
        _exit(0);
    }
    pid_t pid = 0;
    assert_int_equal(read(pipes[0], &pid, sizeof pid), sizeof pid);
    assert_true(pid > 0);
    assert_int_equal(kill(pid, 0), 0);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    assert_true(wait_gone(pid));
    close(pipes[0]);
    close(pipes[1]);
}

static void test_not_installed(void **state)
{
    (void)state;
    cleanup(free_ptr) char *path = strdup(getenv("PATH"));
    setenv("PATH", "/nowhere", 1);
    struct embedded_redis *r = NULL;
    int rc = embedded_redis_start(dir, &r, &e);
    setenv("PATH", path, 1);
    assert_int_equal(rc, -ERR_CONFIG);
    assert_non_null(strstr(e.msg, "apt-get install"));
}

static void test_cannot_start(void **state)
{
    (void)state;
    struct embedded_redis *r = NULL;
    assert_int_equal(embedded_redis_start("/nonexistent", &r, &e), -ERR_CONFIG);
    assert_null(r);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {T(test_keeps_data), T(test_dies_with_parent),
                                       T(test_not_installed), T(test_cannot_start)};
    log_init(LOG_ERROR, "test");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
