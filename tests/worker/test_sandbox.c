/*
 * The sandbox, from the inside: a forked child closes itself in and tries what must fail and what
 * must go on working. Each attempt is one row; the child reports the rows that went wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <libavcodec/avcodec.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "worker/channel.h"
#include "worker/sandbox.h"
#include "worker/scratch.h"

static char base[] = "/tmp/test-sandbox-XXXXXX";
static char outside[64]; /* a file beside the scratch root */
static int root_fd, input_fd, outside_fd;
static struct sandbox_state state;

static struct limits some_limits(void)
{
    return (struct limits){.max_output_bytes = 1 << 20, .max_memory_bytes = 1 << 30};
}

/* ---- what must fail: each returns true when it did something it must not ---- */

static bool makes_a_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ||
           socket(AF_NETLINK, SOCK_RAW, 0) >= 0;
}

static bool makes_a_socket_pair(void)
{
    int pair[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0;
}

static bool connects_with_its_channel(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/tmp/x"};
    return connect(3, (struct sockaddr *)&address, sizeof address) == 0 ||
           bind(3, (struct sockaddr *)&address, sizeof address) == 0 || listen(3, 1) == 0;
}

static bool reads_a_file_outside(void)
{
    return open("/etc/passwd", O_RDONLY) >= 0 || open(outside, O_RDONLY) >= 0;
}

static bool lists_a_directory_outside(void)
{
    return open("/", O_RDONLY | O_DIRECTORY) >= 0 || open("/proc/self/fd", O_RDONLY) >= 0;
}

static bool makes_a_file_outside(void)
{
    return open("/tmp/test-sandbox-new", O_WRONLY | O_CREAT, 0600) >= 0 ||
           open("/dev/shm/test-sandbox-new", O_WRONLY | O_CREAT, 0600) >= 0 ||
           mkdir("/tmp/test-sandbox-dir", 0700) == 0;
}

static bool makes_a_file_out_of_memory(void)
{
    return syscall(SYS_memfd_create, "x", 0) >= 0;
}

static bool leaves_the_scratch_by_dots(void)
{
    int fd = open("scratch/../new", O_WRONLY | O_CREAT, 0600);
    return fd >= 0 || rename("scratch/old", "moved") == 0 || link(outside, "scratch/l") == 0;
}

static bool links_out_of_the_scratch(void)
{
    return symlink("/etc/passwd", "scratch/link") == 0;
}

static bool writes_the_input(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", input_fd);
    return write(input_fd, "x", 1) >= 0 || ftruncate(input_fd, 0) == 0 || open(path, O_RDWR) >= 0 ||
           fchmod(input_fd, 0666) == 0 || futimens(input_fd, NULL) == 0;
}

static bool runs_a_program(void)
{
    char *argv[] = {(char[]){"true"}, NULL};
    execve("/bin/true", argv, argv + 1);
    execve("/proc/self/exe", argv, argv + 1);
    syscall(SYS_execveat, input_fd, "", argv, argv + 1, AT_EMPTY_PATH);
    return false; /* had one gone through, this process would be another and report nothing */
}

static bool makes_a_child(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        return true;
    pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        _exit(0);
    return pid > 0;
}

static bool signals_its_parent(void)
{
    return kill(getppid(), 0) == 0 || kill(-1, 0) == 0 ||
           syscall(SYS_tgkill, getppid(), getppid(), 0) == 0 ||
           syscall(SYS_tkill, getppid(), 0) == 0;
}

static bool looks_into_its_parent(void)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {&byte, 1};
    return ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) == 0 ||
           syscall(SYS_process_vm_readv, getppid(), &here, 1, &there, 1, 0) >= 0 ||
           syscall(SYS_pidfd_open, getppid(), 0) >= 0;
}

static bool sets_limits_of_its_parent(void)
{
    struct rlimit limit;
    return syscall(SYS_prlimit64, getppid(), RLIMIT_NOFILE, NULL, &limit) == 0;
}

static bool makes_namespaces_or_mounts(void)
{
    return unshare(CLONE_NEWUSER) == 0 || unshare(CLONE_NEWNS) == 0 ||
           syscall(SYS_mount, "none", "scratch", "tmpfs", 0, NULL) == 0 || chroot("scratch") == 0;
}

static bool reaches_rare_parts_of_the_kernel(void)
{
    static const long calls[] = {SYS_bpf,     SYS_perf_event_open, SYS_io_uring_setup,
                                 SYS_keyctl,  SYS_userfaultfd,     SYS_open_by_handle_at,
                                 SYS_setns,   SYS_kexec_load,      SYS_finit_module,
                                 SYS_add_key, SYS_personality,     SYS_ioctl,
                                 SYS_setuid,  SYS_mknodat};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (syscall(calls[i], 0, 0, 0, 0, 0, 0) >= 0 || (errno != ENOSYS && errno != EPERM))
            return true;
    return false;
}

static bool still_has_other_descriptors(void)
{
    for (int fd = SANDBOX_KEPT_FDS; fd < 256; fd++)
        if (fd != root_fd && fcntl(fd, F_GETFD) >= 0)
            return true;
    return false;
}

static bool opens_many_files(void)
{
    int n = 0;
    while (n < 1000 && dup(3) >= 0)
        n++;
    for (int fd = 70; fd < 1100; fd++)
        close(fd);
    return n >= 100;
}

static bool writes_a_large_file(void)
{
    int fd = open("scratch/large", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    return fd < 0 || pwrite(fd, "x", 1, 2 << 20) >= 0 || errno != EFBIG;
}

static bool takes_much_memory(void)
{
    return mmap(NULL, (size_t)2 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) != MAP_FAILED;
}

/* ---- what must work: each returns true when it does not ---- */

static bool cannot_work_in_scratch(void)
{
    char bytes[8] = "";
    int fd = open("scratch/part", O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, "hello", 5) != 5 || pread(fd, bytes, 5, 0) != 5 || ftruncate(fd, 3))
        return true;
    close(fd);
    return strcmp(bytes, "hello") || mkdir("scratch/d", 0755) ||
           rename("scratch/part", "scratch/d/whole") || unlink("scratch/d/whole") ||
           rmdir("scratch/d");
}

static bool cannot_read_the_input(void)
{
    char bytes[8];
    return pread(input_fd, bytes, 5, 0) != 5 || memcmp(bytes, "input", 5);
}

static void *thread(void *arg)
{
    *(int *)arg = 1;
    return NULL;
}

static bool cannot_run_threads(void)
{
    for (int i = 0; i < 20; i++) {
        int ran = 0;
        pthread_t t;
        if (pthread_create(&t, NULL, thread, &ran) || pthread_join(t, NULL) || !ran)
            return true;
    }
    return false;
}

static bool cannot_name_itself(void)
{
    return pthread_setname_np(pthread_self(), "renamed") != 0;
}

static int count_packets(AVCodecContext *c, AVPacket *packet)
{
    int n = 0;
    for (; avcodec_receive_packet(c, packet) >= 0; n++)
        av_packet_unref(packet);
    return n;
}

/* Encodes a few frames; a library that needs a call which is not in the list fails here. */
static bool encoder_fails(const AVCodec *codec, const char *preset)
{
    enum { WIDTH = 320, HEIGHT = 192, FRAMES = 30 };
    AVCodecContext *c = avcodec_alloc_context3(codec);
    AVFrame *frame = av_frame_alloc();
    AVPacket *packet = av_packet_alloc();
    AVDictionary *options = NULL;
    int n = 0;
    c->width = frame->width = WIDTH;
    c->height = frame->height = HEIGHT;
    c->pix_fmt = AV_PIX_FMT_YUV420P;
    frame->format = c->pix_fmt;
    c->time_base = (AVRational){1, 25};
    c->thread_count = 0;
    av_dict_set(&options, "preset", preset, 0);
    int rc = avcodec_open2(c, codec, &options);
    av_dict_free(&options);
    if (rc >= 0)
        rc = av_frame_get_buffer(frame, 0);
    for (int i = 0; rc >= 0 && i < FRAMES; i++) {
        rc = av_frame_make_writable(frame);
        for (int p = 0; rc >= 0 && p < 3; p++)
            memset(frame->data[p], 16 + i, (size_t)(frame->linesize[p] * HEIGHT / (p ? 2 : 1)));
        frame->pts = i;
        if (rc >= 0)
            rc = avcodec_send_frame(c, frame);
        n += count_packets(c, packet);
    }
    if (rc >= 0)
        rc = avcodec_send_frame(c, NULL);
    n += count_packets(c, packet);
    av_packet_free(&packet);
    av_frame_free(&frame);
    avcodec_free_context(&c);
    return rc < 0 || n != FRAMES;
}

static bool cannot_encode(void)
{
    static const char *const encoders[][2] = {
        {"libx264", "ultrafast"}, {"libx265", "ultrafast"}, {"libsvtav1", "12"}, {"mpeg4", ""}};
    av_log_set_level(AV_LOG_QUIET);
    for (size_t i = 0; i < sizeof encoders / sizeof encoders[0]; i++) {
        const AVCodec *codec = avcodec_find_encoder_by_name(encoders[i][0]);
        if (codec && encoder_fails(codec, encoders[i][1])) {
            dprintf(2, "%s does not work\n", encoders[i][0]);
            return true;
        }
    }
    return false;
}

/* ---- */

enum needs { ANY = 0, LANDLOCK = 1, SECCOMP = 2, EITHER = 4 };

static const struct row {
    const char *name;
    bool (*is_wrong)(void);
    int needs; /* layers without which it cannot be held */
} rows[] = {
    {"makes a socket", makes_a_socket, SECCOMP},
    {"makes a socket pair", makes_a_socket_pair, SECCOMP},
    {"connects with its channel", connects_with_its_channel, SECCOMP},
    {"reads a file outside", reads_a_file_outside, LANDLOCK},
    {"lists a directory outside", lists_a_directory_outside, LANDLOCK},
    {"makes a file outside", makes_a_file_outside, LANDLOCK},
    {"makes a file out of memory", makes_a_file_out_of_memory, SECCOMP},
    {"leaves the scratch by dots", leaves_the_scratch_by_dots, LANDLOCK},
    {"links out of the scratch", links_out_of_the_scratch, EITHER},
    {"writes the input", writes_the_input, LANDLOCK | SECCOMP},
    {"runs a program", runs_a_program, EITHER},
    {"makes a child", makes_a_child, SECCOMP},
    {"signals its parent", signals_its_parent, SECCOMP},
    {"looks into its parent", looks_into_its_parent, SECCOMP},
    {"sets limits of its parent", sets_limits_of_its_parent, SECCOMP},
    {"makes namespaces or mounts", makes_namespaces_or_mounts, SECCOMP},
    {"reaches rare parts of the kernel", reaches_rare_parts_of_the_kernel, SECCOMP},
    {"opens many files", opens_many_files, ANY},
    {"writes a large file", writes_a_large_file, ANY},
    {"takes much memory", takes_much_memory, ANY},
    {"cannot work in scratch", cannot_work_in_scratch, ANY},
    {"cannot read the input", cannot_read_the_input, ANY},
    {"cannot run threads", cannot_run_threads, ANY},
    {"cannot name itself", cannot_name_itself, ANY},
    {"cannot encode", cannot_encode, ANY},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static bool can_be_held(const struct row *row)
{
    bool has_landlock = state.landlock_abi > 0;
    return !((row->needs & LANDLOCK && !has_landlock) ||
             (row->needs & SECCOMP && !state.has_seccomp) ||
             (row->needs & EITHER && !has_landlock && !state.has_seccomp));
}

/* The input comes over the channel once the sandbox is closed, as in a session. */
static int receive_input(void)
{
    static struct channel *channel; /* stays open to the end of the process */
    struct channel_frame frame;
    channel = channel_new(3);
    return channel_receive(channel, &frame, NULL) == 1 && frame.n_fds == 1 ? frame.fds[0] : -1;
}

/* Runs in a child; its exit status is the row that went wrong, from 1. */
static int try_row(const struct row *row, int number, int channel_fd)
{
    struct err e;
    struct limits limits = some_limits();
    root_fd = fcntl(root_fd, F_DUPFD, 20);
    if (dup2(channel_fd, 3) < 0 || dup2(outside_fd, 50) < 0 || dup2(outside_fd, 200) < 0)
        return 100;
    sandbox_close_descriptors(root_fd);
    if (sandbox_enter(&limits, root_fd, false, &state, &e) < 0)
        return 101;
    if (still_has_other_descriptors())
        return 102;
    input_fd = receive_input();
    if (input_fd < 0)
        return 103;
    return can_be_held(row) && row->is_wrong() ? number : 0;
}

static int run_child(int row)
{
    int pair[2], status;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    struct channel *channel = channel_new(pair[0]);
    assert_int_equal(channel_send(channel, "x", 1, &input_fd, 1, NULL), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(try_row(&rows[row], row + 1, pair[1]));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(pair[1]);
    channel_free(&channel);
    if (!WIFEXITED(status))
        print_error("%s: ended by signal %d\n", rows[row].name, WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_rows(void **unused)
{
    (void)unused;
    int wrong = 0;
    for (int i = 0; i < ROWS; i++) {
        int status = run_child(i);
        if (status)
            print_error("confined, it %s (%d)\n", rows[i].name, status);
        wrong += status != 0;
    }
    assert_int_equal(wrong, 0);
}

/* Each row that must fail does succeed outside, so that no row passes by a mistake of the test. */
static void test_rows_free(void **unused)
{
    (void)unused;
    static const char *const free_rows[] = {
        "makes a socket",      "reads a file outside",       "lists a directory outside",
        "makes a socket pair", "makes a file out of memory", "makes a child",
        "signals its parent",  "takes much memory",          "links out of the scratch",
    };
    for (size_t i = 0; i < sizeof free_rows / sizeof free_rows[0]; i++)
        for (int k = 0; k < ROWS; k++) {
            if (strcmp(rows[k].name, free_rows[i]))
                continue;
            pid_t pid = fork();
            if (pid == 0)
                _exit(rows[k].is_wrong() ? 7 : 0);
            int status;
            assert_int_equal(waitpid(pid, &status, 0), pid);
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
                fail_msg("free, it does not: %s", rows[k].name);
        }
    unlinkat(root_fd, "link", 0);
}

static void test_layers(void **unused)
{
    (void)unused;
    struct err e;
    struct limits limits = some_limits();
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(pipe_fds[1], 3);
        sandbox_close_descriptors(root_fd);
        if (sandbox_enter(&limits, root_fd, false, &state, &e) < 0)
            _exit(1);
        ssize_t n = write(3, &state, sizeof state);
        _exit(n != sizeof state);
    }
    int status;
    assert_int_equal(read(pipe_fds[0], &state, sizeof state), sizeof state);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    cleanup(free_ptr) char *text = sandbox_describe(&state);
    print_message("confined by %s; missing: %s\n", text,
                  *state.missing ? state.missing : "nothing");
    /* Either a layer is in force or its absence is told. */
    assert_true((state.landlock_abi && state.has_seccomp) || *state.missing);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static int set_up(void **unused)
{
    (void)unused;
    if (!mkdtemp(base) || chdir(base) || mkdir("scratch", 0700))
        return -1;
    snprintf(outside, sizeof outside, "%s/outside", base);
    int fd = open("input", O_WRONLY | O_CREAT, 0600);
    if (write(fd, "input", 5) != 5)
        return -1;
    close(fd);
    close(open("scratch/old", O_WRONLY | O_CREAT, 0600));
    input_fd = open("input", O_RDONLY);
    outside_fd = open(outside, O_RDWR | O_CREAT, 0600);
    root_fd = open("scratch", O_RDONLY | O_DIRECTORY);
    return root_fd < 0 || outside_fd < 0 ? -1 : 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    return chdir("/tmp") || scratch_remove_at(AT_FDCWD, base, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_rows_free),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
