/* An output that refuses writes: one clear error of the right kind, nothing left behind at either
 * end. Real file systems, in a mount namespace of the test's own. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "worker/delivery.h"

enum { SEGMENT_BYTES = 200000, TARGET_BYTES = 65536, NOBODY = 65534 };

static char base[] = "/tmp/transcode-test-XXXXXX";
static bool has_mounts;

static char *make_segment(void)
{
    static const char zeros[SEGMENT_BYTES];
    char *path = xasprintf("%s/segment", base);
    cleanup(close_fd) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_int_equal(write(fd, zeros, sizeof zeros), SEGMENT_BYTES);
    return path;
}

/* Delivers a segment to `target`; returns what became of it, *e why. */
static int deliver(const char *target, struct err *e)
{
    struct delivery *d = NULL;
    assert_int_equal(delivery_start(&d, e), 0);
    struct delivery_item *item = xcalloc(1, sizeof *item);
    item->base = xstrdup(target);
    item->key = xstrdup("1080p/000001.m4s");
    item->path = make_segment();
    delivery_put(d, item);
    struct pollfd fd = {.fd = delivery_fd(d), .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 20000), 1);
    item = delivery_take(d);
    assert_non_null(item);
    int rc = item->rc;
    *e = item->err;
    assert_int_not_equal(access(item->path, F_OK), 0); /* in either case */
    delivery_item_free(item);
    delivery_free(&d);
    return rc;
}

static void expect(const char *target, enum err_kind kind, const char *why)
{
    struct err e = {0};
    assert_int_equal(deliver(target, &e), -(int)kind);
    cleanup(free_ptr) char *message =
        xasprintf("%s/1080p/000001.m4s: cannot be written: %s", target, why);
    assert_string_equal(e.msg, message);
    cleanup(free_ptr) char *find = xasprintf("test -z \"$(find %s -type f)\"", target);
    assert_int_equal(system(find), 0);
}

static char *make_target(const char *name)
{
    char *path = xasprintf("%s/%s", base, name);
    assert_int_equal(mkdir(path, 0755), 0);
    return path;
}

static void need_mounts(void)
{
    if (has_mounts)
        return;
    print_message("skipped: nothing can be mounted here\n");
    skip();
}

/* A full disk may be emptied: tried again, with pauses. */
static void test_full(void **state)
{
    (void)state;
    need_mounts();
    cleanup(free_ptr) char *target = make_target("full");
    assert_int_equal(mount("tmpfs", target, "tmpfs", 0, "size=64k"), 0);
    expect(target, ERR_RESOURCE, strerror(ENOSPC));
    assert_int_equal(mount("tmpfs", target, "tmpfs", MS_REMOUNT, "size=1m"), 0);
    struct err e = {0};
    assert_int_equal(deliver(target, &e), 0);
}

/* What an operator has to change is told at once. */
static void test_read_only(void **state)
{
    (void)state;
    need_mounts();
    cleanup(free_ptr) char *target = make_target("read-only");
    assert_int_equal(mount("tmpfs", target, "tmpfs", MS_RDONLY, NULL), 0);
    expect(target, ERR_CONFIG, strerror(EROFS));
}

static void test_not_permitted(void **state)
{
    (void)state;
    cleanup(free_ptr) char *target = make_target("not-permitted");
    assert_int_equal(chmod(target, 0555), 0);
    pid_t pid = fork(); /* root may write everywhere */
    if (pid == 0) {
        struct err e = {0};
        bool is_other = geteuid() || (!chmod(base, 0777) && !setgid(NOBODY) && !setuid(NOBODY));
        bool is_refused = is_other && deliver(target, &e) == -ERR_CONFIG &&
                          strstr(e.msg, "cannot be written: Permission denied");
        _exit(is_refused ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_read_only),
        cmocka_unit_test(test_not_permitted),
    };
    has_mounts = (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
                 mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    if (!mkdtemp(base))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cleanup(free_ptr) char *command =
        xasprintf("umount %s/full %s/read-only 2>/dev/null; rm -rf %s", base, base, base);
    return system(command) ? 1 : failed;
}
