/* Processes: titles as ps sees them, counting signals, starting children with just the descriptors
 * that they were given. The test program starts itself; its first argument says as what. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/process.h"
#include "common/strbuf.h"

/* --- what a child does ----------------------------------------------------------------------- */

static int child_fds(void) /* prints its descriptors and those of standard that are /dev/null */
{
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *f; (f = readdir(d));)
        if (*f->d_name != '.' && atoi(f->d_name) != dirfd(d))
            printf("%s ", f->d_name);
    closedir(d);
    char target[64] = "";
    if (readlink("/proc/self/fd/0", target, sizeof target - 1) < 0)
        return 1;
    printf("0=%s", target);
    char text[16] = "";
    if (fcntl(7, F_GETFD) >= 0 && pread(7, text, sizeof text - 1, 0) > 0)
        printf(" 7=%s", text);
    return 0;
}

static int child_signals(void) /* prints what of the parent's signal setup it still has */
{
    struct sigaction a;
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    sigaction(SIGPIPE, NULL, &a);
    printf("pipe=%s usr1=%s group=%s\n", a.sa_handler == SIG_DFL ? "default" : "other",
           sigismember(&mask, SIGUSR1) ? "blocked" : "open",
           getpgrp() == getpid() ? "own" : "same");
    return 0;
}

static int child_title(char **argv)
{
    process_title_set("session %d cuda:0 %s", 3, argv[2]);
    char cmdline[512] = "", comm[32] = "";
    cleanup(close_file) FILE *f = fopen("/proc/self/cmdline", "re");
    cleanup(close_file) FILE *g = fopen("/proc/self/comm", "re");
    size_t n = fread(cmdline, 1, sizeof cmdline - 1, f);
    cmdline[n] = 0;
    if (!fgets(comm, sizeof comm, g))
        return 1;
    comm[strcspn(comm, "\n")] = 0;
    printf("%s|%s|%s|%s|%s", cmdline, comm, argv[2], getenv("KEPT") ? getenv("KEPT") : "lost",
           getenv("TRANSCODE_TITLE_ROOM") ? "room seen" : "");
    return 0;
}

static int child_main(int argc, char **argv)
{
    char *given = argv[0];
    char **moved = process_title_init(argc, argv);
    if (moved == argv || moved[0] == given || strcmp(moved[0], given))
        return 99;
    if (!strcmp(moved[1], "fds"))
        return child_fds();
    if (!strcmp(moved[1], "signals"))
        return child_signals();
    if (!strcmp(moved[1], "title"))
        return child_title(moved);
    if (!strcmp(moved[1], "deaf"))
        signal(SIGTERM, SIG_IGN);
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}

/* --- the tests ------------------------------------------------------------------------------- */

/* Starts this program; its output is read to the end, or to the first line when it stays. */
static pid_t start(const char *role, const char *arg, const char *const *env, bool is_own_group,
                   const struct process_fd *more, size_t n_more, char *ret, size_t size)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct process_fd fds[8] = {{-1, 0}, {ends[1], 1}};
    for (size_t i = 0; i < n_more; i++)
        fds[2 + i] = more[i];
    struct process_spawn spawn = {
        .argv = (const char *const[]){"test", role, arg, NULL},
        .env = env,
        .fds = fds,
        .n_fds = 2 + n_more,
        .death_signal = SIGKILL,
        .is_own_group = is_own_group,
    };
    pid_t pid;
    struct err e = {0};
    if (process_spawn(&spawn, &pid, &e) < 0)
        fail_msg("%s", e.msg);
    close(ends[1]);
    size_t n = 0;
    for (ssize_t r; n < size - 1 && (r = read(ends[0], ret + n, size - 1 - n)) > 0;) {
        n += (size_t)r;
        if (ret[n - 1] == '\n')
            break;
    }
    ret[n] = 0;
    close(ends[0]);
    return pid;
}

static void assert_exits(pid_t pid, int code)
{
    int status;
    assert_int_equal(process_wait(pid, 5000000, &status), 1);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

static void test_descriptors(void **state)
{
    (void)state;
    cleanup(close_file) FILE *file = tmpfile();
    fputs("hello", file);
    fflush(file);
    int leak = dup(fileno(file)); /* without close-on-exec */
    char out[256];
    assert_exits(start("fds", "", NULL, false, (struct process_fd[]){{fileno(file), 7}, {2, 5}}, 2,
                       out, sizeof out),
                 0);
    assert_string_equal(out, "0 1 2 5 7 0=/dev/null 7=hello");

    /* Swapped: 8 there is 9 here, and the other way round. */
    int a = fcntl(fileno(file), F_DUPFD_CLOEXEC, 20), b = fcntl(2, F_DUPFD_CLOEXEC, 21);
    dup2(a, 7);
    dup2(b, 8);
    assert_exits(
        start("fds", "", NULL, false, (struct process_fd[]){{8, 7}, {7, 8}}, 2, out, sizeof out),
        0);
    assert_null(strstr(out, "hello"));
    assert_exits(start("fds", "", NULL, false, (struct process_fd[]){{7, 7}}, 1, out, sizeof out),
                 0);
    assert_string_equal(out, "0 1 2 7 0=/dev/null 7=hello");
    close(7);
    close(8);
    close(a);
    close(b);
    close(leak);
}

static void test_signal_setup_is_not_inherited(void **state)
{
    (void)state;
    sigset_t usr1, before;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, &before);
    signal(SIGPIPE, SIG_IGN);
    char out[128];
    assert_exits(start("signals", "", NULL, true, NULL, 0, out, sizeof out), 0);
    assert_string_equal(out, "pipe=default usr1=open group=own\n");
    assert_exits(start("signals", "", NULL, false, NULL, 0, out, sizeof out), 0);
    assert_string_equal(out, "pipe=default usr1=open group=same\n");
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static void test_title(void **state)
{
    (void)state;
    char out[512];
    static const char *const env[] = {"KEPT=kept", NULL};
    assert_exits(start("title", "7f3a/video/12", env, false, NULL, 0, out, sizeof out), 0);
    assert_string_equal(
        out, "transcode: session 3 cuda:0 7f3a/video/12|session 3 cuda:|7f3a/video/12|kept|");
}

static void test_failures(void **state)
{
    (void)state;
    struct process_spawn spawn = {.path = "/nonexistent/program",
                                  .argv = (const char *const[]){"x", NULL}};
    pid_t pid;
    struct err e = {0};
    assert_int_equal(process_spawn(&spawn, &pid, &e), -ERR_CONFIG);
    assert_string_equal(e.msg,
                        "/nonexistent/program: cannot be started: No such file or directory");
    spawn.path = "no-such-program-on-path";
    assert_int_equal(process_spawn(&spawn, &pid, &e), -ERR_CONFIG);
    spawn.path = "true";
    assert_int_equal(process_spawn(&spawn, &pid, &e), 0);
    assert_exits(pid, 0);
    spawn.fds = (struct process_fd[]){{999, 5}};
    spawn.n_fds = 1;
    assert_int_equal(process_spawn(&spawn, &pid, &e), -ERR_RESOURCE);
    spawn.n_fds = 1000;
    assert_int_equal(process_spawn(&spawn, &pid, &e), -ERR_BUG);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD); /* nothing is left behind */
}

static void test_wait_and_stop(void **state)
{
    (void)state;
    char out[64], text[64];
    pid_t pid = start("idle", "", NULL, true, NULL, 0, out, sizeof out);
    assert_string_equal(out, "ready\n");
    assert_int_equal(process_wait(pid, 0, NULL), 0);
    int64_t begin = clock_mono_us();
    assert_int_equal(process_wait(pid, 50000, NULL), 0);
    assert_in_range(clock_mono_us() - begin, 50000, 2000000);
    process_status_text(process_stop(pid, SIGTERM, 5000000), text);
    assert_string_equal(text, "killed by signal 15 (Terminated)");

    pid = start("deaf", "", NULL, true, NULL, 0, out, sizeof out);
    process_status_text(process_stop(pid, SIGTERM, 50000), text);
    assert_string_equal(text, "killed by signal 9 (Killed)");
    process_status_text(3 << 8, text);
    assert_string_equal(text, "exit code 3");
}

/* A child dies with its parent: a middle process spawns one and is killed. */
static void test_dies_with_parent(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t middle = fork();
    if (middle == 0) {
        char out[64];
        pid_t pid = start("idle", "", NULL, true, NULL, 0, out, sizeof out);
        if (write(ends[1], &pid, sizeof pid) != sizeof pid)
            _exit(1);
        for (;;)
            pause();
    }
    pid_t grandchild;
    assert_int_equal(read(ends[0], &grandchild, sizeof grandchild), sizeof grandchild);
    assert_int_equal(kill(grandchild, 0), 0);
    process_stop(middle, SIGKILL, 0);
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/stat", grandchild);
    bool is_gone = false; /* or a zombie, where nobody reaps orphans */
    for (int i = 0; i < 500 && !is_gone; i++) {
        cleanup(close_file) FILE *f = fopen(path, "re");
        is_gone = !f || !fgets(line, sizeof line, f) || strstr(line, ") Z ");
        clock_sleep_us(10000);
    }
    assert_true(is_gone);
    close(ends[0]);
    close(ends[1]);
}

static int poll_signal(int timeout_ms)
{
    return poll(&(struct pollfd){process_signal_fd(), POLLIN, 0}, 1, timeout_ms);
}

static void test_signals_are_counted(void **state)
{
    (void)state;
    assert_int_equal(process_signal_fd(), -1);
    process_signals_catch();
    process_signals_catch();
    assert_int_equal(process_signal_count(), 0);
    assert_int_equal(poll_signal(0), 0);
    raise(SIGTERM);
    assert_int_equal(process_signal_count(), 1);
    assert_int_equal(poll_signal(0), 1);
    assert_int_equal(process_signal_count_and_clear(), 1);
    assert_int_equal(poll_signal(0), 0);
    raise(SIGINT);
    raise(SIGHUP);
    assert_int_equal(poll_signal(0), 1);
    assert_int_equal(process_signal_count_and_clear(), 3);
    assert_int_equal(process_signal_count_and_clear(), 3);

    pid_t pid = fork(); /* a blocking call comes back */
    if (pid == 0) {
        clock_sleep_us(50000);
        kill(getppid(), SIGTERM);
        _exit(0);
    }
    char c;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(read(ends[0], &c, 1), -1);
    assert_int_equal(errno, EINTR);
    assert_exits(pid, 0);
    close(ends[0]);
    close(ends[1]);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return child_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_signal_setup_is_not_inherited),
        cmocka_unit_test(test_title),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_wait_and_stop),
        cmocka_unit_test(test_dies_with_parent),
        cmocka_unit_test(test_signals_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
