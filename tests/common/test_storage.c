/* Storage on the file system: whole objects, hostile names and links, resolving. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/storage.h"
#include "common/strbuf.h"

static char dir[] = "/tmp/test_storage_XXXXXX"; /* the working directory of all tests */

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    cleanup(free_ptr) char *line = xasprintf("rm -rf %s", dir);
    return chdir("/") || system(line);
}

static void write_file(const char *path, const char *text)
{
    cleanup(close_file) FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
}

static void assert_holds(const char *path, const char *text)
{
    char part[256] = "";
    cleanup(close_file) FILE *f = fopen(path, "r");
    assert_non_null(f);
    part[fread(part, 1, sizeof part - 1, f)] = 0;
    assert_string_equal(part, text);
}

static int count_files(const char *command)
{
    FILE *p = popen(command, "r");
    int n = 0;
    for (int c; (c = fgetc(p)) != EOF;)
        n += c == '\n';
    pclose(p);
    return n;
}

static void test_open(void **state)
{
    (void)state;
    struct err e = {0};
    int fd;
    int64_t size;
    write_file("a b.mp4", "hello");
    write_file("empty", "");
    assert_int_equal(mkfifo("fifo", 0600), 0);

    cleanup(free_ptr) char *url = xasprintf("FILE://localhost%s/a%%20b.mp4", dir);
    const char *const good[] = {"a b.mp4", url};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(storage_open(good[i], &fd, &size, &e), 0);
        assert_int_equal(size, 5);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        assert_int_equal(lseek(fd, 4, SEEK_SET), 4);
        close(fd);
    }
    static const struct {
        const char *url, *message;
        enum err_kind kind;
    } bad[] = {
        {"missing.mp4", "missing.mp4: cannot be opened: No such file or directory", ERR_INPUT},
        {"empty", "empty: expected a video, got an empty file", ERR_INPUT},
        {".", ".: expected a file, got a directory", ERR_INPUT},
        {"fifo", "fifo: expected a file, got a device, pipe or socket", ERR_INPUT},
        {"/dev/null", "expected a file, got a device", ERR_INPUT},
        {"", "expected a path or URL, got an empty one", ERR_USAGE},
        {"s3://b/k", "s3://b/k: no storage for s3://, expected a path or file://", ERR_USAGE},
        {"file://host/x", "expected file:///PATH, got a host", ERR_USAGE},
        {"file:///a%2", "expected %XX", ERR_USAGE},
        {"file:///a%00b", "expected %XX", ERR_USAGE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(storage_open(bad[i].url, &fd, &size, &e), -(int)bad[i].kind);
        assert_int_equal(fd, -1);
        if (!strstr(e.msg, bad[i].message))
            fail_msg("expected \"%s\" in \"%s\"", bad[i].message, e.msg);
    }
}

static void test_put(void **state)
{
    (void)state;
    struct err e = {0};
    int64_t size = 0;
    write_file("seg", "one");
    assert_int_equal(storage_put_file("out/deep", "v/0001.m4s", "seg", &e), 0);
    assert_holds("out/deep/v/0001.m4s", "one");
    assert_int_equal(access("seg", F_OK), -1);
    write_file("seg", "two");
    assert_int_equal(storage_put_file("out/deep/", "v/0001.m4s", "seg", &e), 0);
    assert_holds("out/deep/v/0001.m4s", "two");
    assert_int_equal(storage_put_bytes("out/deep", "master.m3u8", "#EXTM3U\n", 8, &e), 0);
    assert_int_equal(storage_put_bytes("out/deep", "master.m3u8", "#EXT\n", 5, &e), 0);
    assert_holds("out/deep/master.m3u8", "#EXT\n");
    assert_int_equal(storage_stat("out/deep", "v/0001.m4s", &size, &e), 1);
    assert_int_equal(size, 3);
    assert_int_equal(storage_stat("out/deep", "v/0002.m4s", &size, &e), 0);
    assert_int_equal(storage_stat("out/deep", "v/0001.m4s/x", NULL, &e), 0);
    assert_int_equal(storage_stat("out/deep", "v", NULL, &e), 0);
    assert_int_equal(count_files("find out -type f"), 2); /* nothing temporary is left */
}

/* /dev/shm is another file system than /tmp on most machines; where it is not, it is the plain way
 * once more. */
static void test_put_across_file_systems(void **state)
{
    (void)state;
    struct err e = {0};
    cleanup(free_ptr) char *far = xasprintf("/dev/shm%s", strrchr(dir, '/'));
    size_t n = 1 << 20;
    cleanup(free_ptr) char *bytes = xcalloc(1, n);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    cleanup(close_file) FILE *f = fopen("big", "w");
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fflush(f);
    assert_int_equal(storage_put_file(far, "a/big", "big", &e), 0);
    cleanup(free_ptr) char *path = xasprintf("%s/a/big", far);
    cleanup(free_ptr) char *read_back = xcalloc(1, n + 1);
    cleanup(close_file) FILE *g = fopen(path, "r");
    assert_int_equal(fread(read_back, 1, n + 1, g), n);
    assert_memory_equal(bytes, read_back, n);
    assert_int_equal(access("big", F_OK), -1);
    assert_int_equal(symlink("/etc/passwd", "link"), 0);
    assert_int_equal(storage_put_file(far, "a/link", "link", &e) < 0, 1);
    cleanup(free_ptr) char *find = xasprintf("find %s ! -type d", far);
    assert_int_equal(count_files(find), 1);
    cleanup(free_ptr) char *rm = xasprintf("rm -rf %s link", far);
    assert_int_equal(system(rm), 0);
}

static void test_hostile_names_and_links(void **state)
{
    (void)state;
    struct err e = {0};
    static const char *const keys[] = {"",      "/etc/x", "../x", "a/../../x", "a//b",
                                       "a/",    ".",      "a/.",  "..",        "a/..",
                                       ".part", "a/.x",   "a\nb", "a\x7f"};
    char longest[2000];
    memset(longest, 'a', sizeof longest);
    longest[1025] = 0;
    write_file("seg", "x");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        assert_int_equal(storage_put_file("hostile", keys[i], "seg", &e), -ERR_BUG);
        assert_int_equal(storage_put_bytes("hostile", keys[i], "x", 1, &e), -ERR_BUG);
        assert_int_equal(storage_stat("hostile", keys[i], NULL, &e), -ERR_BUG);
        assert_non_null(strstr(e.msg, "hostile: refused the object name"));
    }
    assert_int_equal(storage_put_bytes("hostile", longest, "x", 1, &e), -ERR_BUG);
    assert_int_equal(access("hostile", F_OK), -1);

    assert_int_equal(symlink("/etc/passwd", "link"), 0);
    assert_int_equal(storage_put_file("hostile", "a", "link", &e), -ERR_BUG);
    assert_int_equal(storage_stat("hostile", "a", NULL, &e), 0);
    assert_int_equal(count_files("find hostile ! -type d"), 0);
    assert_int_equal(storage_put_file("hostile", "a", "missing", &e), -ERR_BUG);
    assert_non_null(strstr(e.msg, "missing: cannot be published: No such file"));
}

static void test_sweep(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(storage_put_bytes("swept", "a/part-1", "x", 1, &e), 0);
    assert_int_equal(mkdir("swept/b", 0700), 0);
    write_file("swept/.part-0", "left");
    write_file("swept/a/.part-1", "left");
    write_file("swept/b/.part-2", "another folder's");
    storage_sweep("swept", "");
    storage_sweep("swept", "a");
    storage_sweep("swept", "../swept/b");
    storage_sweep("nowhere", "a");
    assert_int_equal(count_files("find swept -name '.part-*'"), 1);
    assert_int_equal(storage_stat("swept", "a/part-1", NULL, &e), 1);
}

static void test_where_nothing_can_be_written(void **state)
{
    (void)state;
    struct err e = {0};
    write_file("plain", "x");
    assert_int_equal(storage_prepare("plain/sub", &e), -ERR_CONFIG);
    assert_string_equal(e.msg, "plain/sub: cannot be written to: Not a directory");
    assert_int_equal(storage_put_bytes("plain", "a", "x", 1, &e), -ERR_CONFIG);
    write_file("seg", "x");
    assert_int_equal(storage_put_file("plain", "a", "seg", &e), -ERR_CONFIG);
    assert_int_equal(mkdir("taken", 0700) | mkdir("taken/dir", 0700), 0);
    assert_int_equal(storage_put_bytes("taken", "dir", "x", 1, &e), -ERR_CONFIG);
    assert_int_equal(count_files("find taken -type f"), 0);
    assert_int_equal(storage_prepare("new/er/base", &e), 0);
    assert_int_equal(storage_prepare("new/er/base", &e), 0);
    assert_int_equal(count_files("find new"), 3);
}

static void resolves(const char *url, const char *expected)
{
    struct err e = {0};
    cleanup(free_ptr) char *got = NULL;
    cleanup(free_ptr) char *whole = xasprintf("%s%s", *expected == '/' ? "" : dir, expected);
    if (*expected != '/' && *expected) {
        free(whole);
        whole = xasprintf("%s/%s", dir, expected);
    }
    assert_int_equal(storage_resolve(url, &got, &e), 0);
    assert_string_equal(got, whole);
}

static void test_resolve(void **state)
{
    (void)state;
    resolves("a/b", "a/b");
    resolves("./a//b/./c/", "a/b/c");
    resolves(".", "");
    resolves("x/../y", "y");
    resolves("/a/../../b", "/b");
    resolves("/", "/");
    resolves("/..", "/");
    resolves("file:///a%2Fb/%41", "/a/b/A");
    resolves("...", "...");
    assert_int_equal(mkdir("/tmp/test_storage_far", 0700) == 0 || errno == EEXIST, 1);
    assert_int_equal(symlink("/tmp/test_storage_far", "jump"), 0);
    resolves("jump/x", "jump/x");
    resolves("jump/../x", "/tmp/x");
    rmdir("/tmp/test_storage_far");
    struct err e = {0};
    char *got;
    assert_int_equal(storage_resolve("s3://b/k", &got, &e), -ERR_USAGE);
    assert_null(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_put_across_file_systems),
        cmocka_unit_test(test_hostile_names_and_links),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_where_nothing_can_be_written),
        cmocka_unit_test(test_resolve),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
