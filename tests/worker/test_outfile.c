/* Files that a hostile session announces, and the agent's scratch directory. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "worker/outfile.h"
#include "worker/scratch.h"

static char base[64];
static int base_fd, task_fd, outbox_fd;

static void write_at(int fd, const char *path, const char *text)
{
    int file = openat(fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
}

static bool is_there(int fd, const char *path)
{
    return faccessat(fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int set_up(void **unused)
{
    (void)unused;
    strcpy(base, "/tmp/test-outfile-XXXXXX");
    if (!mkdtemp(base))
        return -1;
    base_fd = open(base, O_RDONLY | O_DIRECTORY);
    write_at(base_fd, "secret", "secret");
    return scratch_make_at(base_fd, "task", &task_fd, NULL) ||
           scratch_make_at(base_fd, "outbox", &outbox_fd, NULL) || mkdirat(task_fd, "v", 0755);
}

static int tear_down(void **unused)
{
    (void)unused;
    close(task_fd);
    close(outbox_fd);
    close(base_fd);
    return scratch_remove_at(AT_FDCWD, base, NULL);
}

static void test_paths(void **unused)
{
    (void)unused;
    static const struct {
        const char *path;
        bool is_right;
    } rows[] = {
        {"v1080p/0001-abc.m4s", true},
        {"audio-96k-2-deu/init-09af.mp4", true},
        {"v/1.ts", true},
        {"thumbnails/000012-09af.jpg", true},
        {"thumbnails/thumbnails.vtt", false},
        {"v/.part", false},
        {"v/.m4s", false},
        {"", false},
        {"/", false},
        {"v", false},
        {"v/", false},
        {"/v/1.ts", false},
        {"v//1.ts", false},
        {"v/w/1.ts", false},
        {"../1.ts", false},
        {"../v/1.ts", false},
        {"v/../1.ts", false},
        {"./1.ts", false},
        {".v/1.ts", false},
        {"v/..", false},
        {"v/master.m3u8", false},
        {"v/index.m3u8", false},
        {"v/1.ts\n", false},
        {"v/1 .ts", false},
        {"v/\xc3\xa9.ts", false},
        {"v/a\\b.ts", false},
        {"v/1.tsx", false},
    };
    char folder[OUTFILE_NAME_MAX + 1], file[OUTFILE_NAME_MAX + 1];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (outfile_split(rows[i].path, folder, file) != rows[i].is_right)
            fail_msg("%s", rows[i].path);
    char path[2 * OUTFILE_NAME_MAX];
    memset(path, 'a', sizeof path);
    memcpy(path + OUTFILE_NAME_MAX, "/1.ts", 6);
    assert_true(outfile_split(path, folder, file));
    memcpy(path + OUTFILE_NAME_MAX, "a/1.ts", 7);
    assert_false(outfile_split(path, folder, file));
}

static void test_claim(void **unused)
{
    (void)unused;
    struct err e;
    write_at(task_fd, "v/1.m4s", "12345");
    assert_int_equal(outfile_claim(task_fd, "v/1.m4s", 5, outbox_fd, "x", &e), 0);
    assert_true(is_there(outbox_fd, "x"));
    assert_false(is_there(task_fd, "v/1.m4s"));
}

static void refuse(const char *path, int64_t bytes, const char *why)
{
    struct err e = {0};
    assert_int_equal(outfile_claim(task_fd, path, bytes, outbox_fd, "y", &e), -ERR_BUG);
    if (!strstr(e.msg, why))
        fail_msg("%s: %s", path, e.msg);
    assert_false(is_there(outbox_fd, "y"));
}

static void test_claim_refused(void **unused)
{
    (void)unused;
    write_at(task_fd, "v/short.m4s", "123");
    refuse("v/short.m4s", 4, "it has 3");
    refuse("v/missing.m4s", 4, "No such file");
    refuse("../secret", 6, "not a segment");
    assert_int_equal(symlinkat("../../secret", task_fd, "v/link.m4s"), 0);
    refuse("v/link.m4s", 6, "not a plain file");
    assert_int_equal(linkat(base_fd, "secret", task_fd, "v/hard.m4s", 0), 0);
    refuse("v/hard.m4s", 6, "not a plain file");
    assert_int_equal(mkfifoat(task_fd, "v/fifo.m4s", 0600), 0);
    refuse("v/fifo.m4s", 0, "not a plain file");
    write_at(base_fd, "away.m4s", "12345");
    assert_int_equal(symlinkat("..", task_fd, "up"), 0);
    refuse("up/away.m4s", 5, "");
    assert_true(is_there(base_fd, "away.m4s"));
    assert_true(is_there(base_fd, "secret"));
}

/* Whatever lies in a directory goes, what its links point to stays. */
static void test_remove(void **unused)
{
    (void)unused;
    int fd;
    struct err e;
    assert_int_equal(scratch_make_at(base_fd, "deep", &fd, &e), 0);
    assert_int_equal(mkdirat(fd, "a", 0700), 0);
    assert_int_equal(mkdirat(fd, "a/b", 0500), 0);
    write_at(fd, "a/f", "x");
    assert_int_equal(symlinkat(base, fd, "a/link"), 0);
    assert_int_equal(scratch_remove_at(base_fd, "deep", &e), 0);
    assert_false(is_there(base_fd, "deep"));
    assert_true(is_there(base_fd, "secret"));
    close(fd);
}

static int count_scratches(void)
{
    int n = 0;
    DIR *dir = opendir(base);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += !strncmp(entry->d_name, "transcode-", 10);
    closedir(dir);
    return n;
}

/* Two agents beside each other, then one that dies without cleaning up. */
static void test_scratch_of_the_dead(void **unused)
{
    (void)unused;
    struct scratch *a = NULL, *b = NULL;
    struct err e;
    int fd;
    assert_int_equal(mkdirat(base_fd, "transcode-abcdef", 0700), 0); /* not an agent's */
    assert_int_equal(scratch_open(base, &a, &e), 0);
    assert_int_equal(scratch_open(base, &b, &e), 0);
    assert_int_equal(scratch_make(a, "session0", &fd, &e), 0);
    assert_int_equal(count_scratches(), 3);
    close(fd);
    pid_t pid = fork();
    if (pid == 0) {
        struct scratch *c = NULL;
        if (scratch_open(base, &c, &e) == 0 && scratch_make(c, "session0", &fd, &e) == 0)
            write_at(fd, "left", "over");
        _exit(count_scratches() == 4 ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(count_scratches(), 4);
    scratch_close(&b);
    assert_int_equal(scratch_open(base, &b, &e), 0); /* removes the dead one's */
    assert_int_equal(count_scratches(), 3);
    assert_true(is_there(scratch_outbox_fd(a), "."));
    scratch_close(&a);
    scratch_close(&b);
    assert_int_equal(count_scratches(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test_setup_teardown(test_claim, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_claim_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_remove, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scratch_of_the_dead, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
