/*
 * The sandbox of a session on a GPU (simulated): it closes after the device is opened, and from
 * then on no socket, no file and no child is to be had, while the device decodes, scales and
 * encodes as before. Each row runs in a process of its own; test_sandbox.c has what holds on every
 * device.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipelines/media/selftest.h"
#include "tests/support/scratch.h"
#include "tests/support/simgpu.h"
#include "worker/sandbox.h"

enum { NODE_FD = 40, OTHER_CODE = 9, SETUP_CODE = 99 };

static struct device *device;
static struct sandbox_state state;

/* ---- each returns true when it got what it must not have, or not what it must ---- */

static bool has_a_socket(void)
{
    int pair[2];
    return socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || socket(AF_INET, SOCK_STREAM, 0) >= 0 ||
           socket(AF_NETLINK, SOCK_RAW, 0) >= 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0;
}

static bool has_a_new_file(void)
{
    return open("/tmp/test-sandbox-gpu", O_WRONLY | O_CREAT, 0600) >= 0 ||
           open("/dev/shm/test-sandbox-gpu", O_WRONLY | O_CREAT, 0600) >= 0 ||
           open("/var/tmp", O_TMPFILE | O_RDWR, 0600) >= 0 ||
           syscall(SYS_memfd_create, "x", 0) >= 0;
}

static bool has_an_old_file(void)
{
    return open("/etc/passwd", O_RDONLY) >= 0 || open("/proc/self/maps", O_RDONLY) >= 0 ||
           open("/dev/null", O_RDWR) >= 0 || open("/dev", O_RDONLY | O_DIRECTORY) >= 0;
}

static bool has_a_child(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        return true;
    pid = (pid_t)syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        _exit(0);
    return pid > 0 || errno != ENOSYS;
}

static bool runs_a_program(void)
{
    char *argv[] = {(char[]){"true"}, NULL};
    execve("/bin/true", argv, argv + 1);
    execve("/proc/self/exe", argv, argv + 1);
    return errno != ENOSYS; /* had one gone through, its code would be another than OTHER_CODE */
}

/* The driver maps more memory through a descriptor of its own each time. */
static bool cannot_open_its_node_again(void)
{
    char byte = 1;
    int fd = open("/dev/zero", O_RDWR);
    return fd < 0 || read(fd, &byte, 1) != 1 || byte ||
           (ioctl(fd, FIONREAD, &byte) && errno == EACCES);
}

static bool device_does_not_work(void)
{
    struct selftest found = {0};
    struct err e = {0};
    if (device_selftest(device, &found, &e) == 0 && found.has_encoder && found.frames > 0)
        return false;
    dprintf(2, "%s%s\n", e.msg, found.no_encoder);
    return true;
}

enum { LANDLOCK = 1, SECCOMP = 2 };

static const struct row {
    const char *name;
    bool (*is_wrong)(void);
    int needs; /* layers without which it cannot be held */
} rows[] = {
    {"has a socket", has_a_socket, SECCOMP},
    {"has a new file", has_a_new_file, LANDLOCK | SECCOMP},
    {"has an old file", has_an_old_file, LANDLOCK},
    {"has a child", has_a_child, SECCOMP},
    {"runs a program", runs_a_program, SECCOMP},
    {"cannot open its node again", cannot_open_its_node_again, 0},
    {"device does not work", device_does_not_work, 0},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* As session.c begins. /dev/zero stands for a node of the driver. */
static bool set_up(bool is_closed)
{
    struct limits limits;
    struct err e = {0};
    int node = open("/dev/zero", O_RDWR);
    limits_default(&limits);
    sandbox_close_descriptors(node);
    if (device_open("cuda:0", &device, &e) < 0) {
        dprintf(2, "%s\n", e.msg);
        return false;
    }
    return dup2(node, NODE_FD) == NODE_FD &&
           (!is_closed || sandbox_enter(&limits, -1, true, &state, &e) == 0);
}

static bool can_be_held(const struct row *row)
{
    return !(row->needs & LANDLOCK && !state.landlock_abi) &&
           !(row->needs & SECCOMP && !state.has_seccomp);
}

/* The row is in the environment: OTHER_CODE, or 1 when it goes wrong. */
static int try_row(bool is_closed)
{
    const struct row *row = &rows[atoi(getenv("ROW"))];
    if (!set_up(is_closed))
        return SETUP_CODE;
    if (is_closed && !can_be_held(row))
        return OTHER_CODE;
    return row->is_wrong() ? 1 : OTHER_CODE;
}

static int try_closed(void)
{
    _exit(try_row(true)); /* what runs at exit under a leak checker is not to be had either */
}

static int try_open(void)
{
    return try_row(false);
}

static int run_row(const char *part, int row)
{
    char number[16];
    snprintf(number, sizeof number, "ROW=%d", row);
    return simgpu_run(part, (const char *[]){number, NULL}, NULL);
}

static void test_closed(void **unused)
{
    (void)unused;
    int wrong = 0;
    for (int i = 0; i < ROWS; i++) {
        int code = run_row("closed", i);
        if (code != OTHER_CODE)
            print_error("confined on a GPU, it %s (%d)\n", rows[i].name, code);
        wrong += code != OTHER_CODE;
    }
    assert_int_equal(wrong, 0);
}

/* Without the sandbox the first five can be had, so that none passes by a mistake of the test. */
static void test_open(void **unused)
{
    (void)unused;
    for (int i = 0; i < 5; i++)
        assert_int_not_equal(run_row("open", i), OTHER_CODE);
    assert_int_equal(run_row("open", ROWS - 1), OTHER_CODE);
    unlink("/tmp/test-sandbox-gpu");
    unlink("/dev/shm/test-sandbox-gpu");
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const struct simgpu_part parts[] = {
        {"closed", try_closed}, {"open", try_open}, {NULL, NULL}};
    return simgpu_main(argc, argv, parts, run_all);
}
