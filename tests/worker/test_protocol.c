/* The channel's framing and the messages: whatever way the bytes are cut, and whatever they are. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "worker/protocol.h"

struct ends {
    struct channel *agent, *session;
    int raw; /* the descriptor of the agent's end */
};

static void open_ends(struct ends *p)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    p->raw = pair[0];
    p->agent = channel_new(pair[0]);
    p->session = channel_new(pair[1]);
}

static void close_ends(struct ends *p)
{
    channel_free(&p->agent);
    channel_free(&p->session);
}

static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* ---- framing ---- */

static void test_frames_in_order(void **unused)
{
    (void)unused;
    struct ends p;
    open_ends(&p);
    for (int i = 0; i < 100; i++) {
        char text[32];
        int n = snprintf(text, sizeof text, "frame %d", i);
        assert_int_equal(channel_send(p.agent, text, (size_t)n, NULL, 0, NULL), 0);
    }
    for (int i = 0; i < 100; i++) {
        char text[32];
        struct channel_frame f;
        snprintf(text, sizeof text, "frame %d", i);
        assert_int_equal(channel_receive(p.session, &f, NULL), 1);
        assert_string_equal(f.text, text);
        channel_frame_clear(&f);
    }
    struct channel_frame f;
    assert_int_equal(channel_receive(p.session, &f, NULL), 0);
    close_ends(&p);
}

/* Larger than the socket's buffer: sent piece by piece, and nobody blocks. */
static void test_large_frame(void **unused)
{
    (void)unused;
    enum { SIZE = 20 << 20 };
    struct ends p;
    struct channel_frame f = {0};
    int rc = 0;
    open_ends(&p);
    char *text = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        text[i] = (char)(i * 2654435761u >> 24);
    assert_int_equal(channel_send(p.agent, text, SIZE, NULL, 0, NULL), 0);
    assert_true(channel_has_output(p.agent));
    for (int i = 0; rc == 0 && i < 1 << 20; i++) {
        rc = channel_receive(p.session, &f, NULL);
        assert_int_equal(channel_flush(p.agent, NULL), 0);
    }
    assert_int_equal(rc, 1);
    assert_int_equal(f.n, SIZE);
    assert_memory_equal(f.text, text, SIZE);
    channel_frame_clear(&f);
    free(text);
    close_ends(&p);
}

static void test_limit(void **unused)
{
    (void)unused;
    struct ends p;
    struct err e;
    struct channel_frame f;
    open_ends(&p);
    assert_int_equal(channel_send(p.agent, "", CHANNEL_FRAME_MAX + 1UL, NULL, 0, &e), -ERR_BUG);
    const unsigned char header[8] = {0x04, 0, 0, 1, 0, 0, 0, 0}; /* 64 MiB + 1 */
    assert_int_equal(write(p.raw, header, 8), 8);
    assert_int_equal(channel_receive(p.session, &f, &e), -ERR_BUG);
    assert_non_null(strstr(e.msg, "over the limit"));
    close_ends(&p);
}

static ino_t inode(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    return st.st_ino;
}

/* Descriptors reach the frame they were sent with, also between frames that have none, all read in
 * one go. */
static void test_descriptors(void **unused)
{
    (void)unused;
    struct ends p;
    open_ends(&p);
    int before = count_fds(), fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(channel_send(p.agent, "none", 4, NULL, 0, NULL), 0);
    assert_int_equal(channel_send(p.agent, "two", 3, fds, 2, NULL), 0);
    assert_int_equal(channel_send(p.agent, "none", 4, NULL, 0, NULL), 0);
    assert_int_equal(channel_send(p.agent, "one", 3, fds + 1, 1, NULL), 0);
    static const size_t counts[] = {0, 2, 0, 1};
    for (int i = 0; i < 4; i++) {
        struct channel_frame f;
        assert_int_equal(channel_receive(p.session, &f, NULL), 1);
        assert_int_equal(f.n_fds, counts[i]);
        if (i == 1)
            assert_true(inode(f.fds[0]) == inode(fds[0]) && f.fds[0] != fds[0]);
        if (i == 3)
            assert_true(inode(f.fds[0]) == inode(fds[1]));
        channel_frame_clear(&f);
    }
    close(fds[0]);
    close(fds[1]);
    assert_int_equal(count_fds(), before);
    close_ends(&p);
}

static void test_descriptors_that_did_not_come(void **unused)
{
    (void)unused;
    struct ends p;
    struct err e;
    struct channel_frame f;
    open_ends(&p);
    assert_int_equal(write(p.raw, "\0\0\0\1\0\0\0\1x", 9), 9);
    assert_int_equal(channel_receive(p.session, &f, &e), -ERR_BUG);
    close_ends(&p);
}

/* Descriptors that no frame asks for must not pile up. */
static void test_flood_of_descriptors(void **unused)
{
    (void)unused;
    struct ends p;
    int before = count_fds();
    open_ends(&p);
    int rc = 0;
    for (int i = 0; i < 100 && rc >= 0; i++) {
        char byte = 0, control[CMSG_SPACE(sizeof(int))] = {0};
        struct iovec iov = {&byte, 1};
        struct msghdr msg = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        *c = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(c), &(int){1}, sizeof(int));
        assert_int_equal(sendmsg(p.raw, &msg, 0), 1);
        struct channel_frame f;
        rc = channel_receive(p.session, &f, NULL);
        if (rc > 0)
            channel_frame_clear(&f);
    }
    assert_int_equal(rc, -ERR_BUG);
    close_ends(&p);
    assert_int_equal(count_fds(), before);
}

static void test_other_side_gone(void **unused)
{
    (void)unused;
    struct ends p;
    struct err e;
    struct channel_frame f;
    open_ends(&p);
    assert_int_equal(channel_send(p.agent, "last", 4, NULL, 0, NULL), 0);
    channel_free(&p.agent);
    assert_int_equal(channel_receive(p.session, &f, &e), 1); /* what was sent still comes */
    channel_frame_clear(&f);
    assert_int_equal(channel_receive(p.session, &f, &e), -ERR_TRANSIENT);
    assert_int_equal(channel_send(p.session, "x", 1, NULL, 0, &e), -ERR_TRANSIENT); /* no SIGPIPE */
    close_ends(&p);
}

/* ---- messages ---- */

static void test_round_trip(void **unused)
{
    (void)unused;
    struct ends p;
    struct err e = {0};
    struct message m;
    int fds[2];
    open_ends(&p);
    assert_int_equal(pipe(fds), 0);
    const struct message_task task = {.job = (char *)"a-job",
                                      .task = (char *)"video/0001",
                                      .work = WORK_VIDEO,
                                      .plan = (char *)"{\"a\": \"b\\n\\u00e9\"}",
                                      .payload =
                                          (char *)"caf\xc3\xa9 \xe2\x80\xa8 \xf0\x9f\x8e\xac",
                                      .segment = {1001, 500}};
    assert_int_equal(message_send(p.agent, MESSAGE_TASK, &task, fds, &e), 0);
    assert_int_equal(message_receive(p.session, SIDE_AGENT, &m, &e), 1);
    const struct message_task *got = m.body;
    assert_int_equal(m.kind, MESSAGE_TASK);
    assert_string_equal(got->job, task.job);
    assert_string_equal(got->task, task.task);
    assert_string_equal(got->plan, task.plan);
    assert_string_equal(got->payload, task.payload);
    assert_null(got->source);
    assert_int_equal(got->work, WORK_VIDEO);
    assert_int_equal(got->segment.num, 1001);
    assert_int_equal(m.n_fds, 2);
    message_clear(&m);
    const struct message_progress progress = {INT64_MAX, 7};
    assert_int_equal(message_send(p.session, MESSAGE_PROGRESS, &progress, NULL, &e), 0);
    assert_int_equal(message_receive(p.agent, SIDE_SESSION, &m, &e), 1);
    assert_true(((struct message_progress *)m.body)->frames_in == INT64_MAX);
    message_clear(&m);
    assert_int_equal(message_send(p.agent, MESSAGE_CANCEL, NULL, NULL, &e), 0);
    assert_int_equal(message_receive(p.session, SIDE_AGENT, &m, &e), 1);
    assert_int_equal(m.kind, MESSAGE_CANCEL);
    message_clear(&m);
    close(fds[0]);
    close(fds[1]);
    close_ends(&p);
}

/* Texts that are not a message this side may get: each ends in ERR_BUG, none in a crash. */
static void test_refused(void **unused)
{
    (void)unused;
    static const char *const texts[] = {
        "",
        "x",
        "{",
        "[]",
        "null",
        "{}",
        "{\"kind\": 3}",
        "{\"kind\": []}",
        "{\"kind\": \"nothing\"}",
        "{\"kind\": \"done\"}",
        "{\"kind\": \"done\", \"body\": 1}",
        "{\"kind\": \"done\", \"body\": {}}",
        "{\"kind\": \"done\", \"body\": {\"result\": {}}}",
        "{\"kind\": \"done\", \"body\": {\"result\": \"x\", \"more\": 1}}",
        "{\"kind\": \"done\", \"kind\": \"fail\", \"body\": {\"result\": \"x\"}}",
        "{\"kind\": \"cancel\"}", /* only the agent may */
        "{\"kind\": \"task\", \"body\": {\"job\": \"a\", \"task\": \"b\", \"work\": \"probe\"}}",
        "{\"kind\": \"progress\", \"body\": {\"frames_in\": 1.5, \"frames_out\": 1}}",
        "{\"kind\": \"progress\", \"body\": {\"frames_in\": 1e99, \"frames_out\": 1}}",
        "{\"kind\": \"file\", \"body\": {\"path\": \"a/b.m4s\", \"bytes\": -1}}",
        "\xff\xfe\x00\x01",
        "{\"kind\": \"done\", \"body\": {\"result\": \"\xc3\"}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct ends p;
        struct err e = {0};
        struct message m;
        open_ends(&p);
        assert_int_equal(channel_send(p.session, texts[i], strlen(texts[i]), NULL, 0, NULL), 0);
        int rc = message_receive(p.agent, SIDE_SESSION, &m, &e);
        if (rc != -ERR_BUG)
            fail_msg("%s: %d", texts[i], rc);
        assert_true(*e.msg);
        message_clear(&m);
        close_ends(&p);
    }
}

/* A task without its descriptors, and descriptors that no message brings. */
static void test_wrong_descriptors(void **unused)
{
    (void)unused;
    struct ends p;
    struct err e;
    struct message m;
    int before = count_fds();
    open_ends(&p);
    const char *task =
        "{\"kind\": \"task\", \"body\": {\"job\": \"a\", \"task\": \"b\", \"work\": \"probe\"}}";
    const char *done = "{\"kind\": \"done\", \"body\": {\"result\": \"x\"}}";
    assert_int_equal(channel_send(p.agent, task, strlen(task), (int[]){1}, 1, NULL), 0);
    assert_int_equal(message_receive(p.session, SIDE_AGENT, &m, &e), -ERR_BUG);
    message_clear(&m);
    assert_int_equal(channel_send(p.session, done, strlen(done), (int[]){1}, 1, NULL), 0);
    assert_int_equal(message_receive(p.agent, SIDE_SESSION, &m, &e), -ERR_BUG);
    message_clear(&m);
    close_ends(&p);
    assert_int_equal(count_fds(), before);
}

/* Valid traffic with bytes changed, lost or cut at random: an error or a message, never a crash. */
static void test_fuzz(void **unused)
{
    (void)unused;
    static const char *const seeds[] = {
        "{\"kind\": \"done\", \"body\": {\"result\": \"x\"}}",
        "{\"kind\": \"file\", \"body\": {\"path\": \"a/b.m4s\", \"bytes\": 12}}",
        "{\"kind\": \"fail\", \"body\": {\"kind\": \"input\", \"message\": \"no\"}}",
    };
    int before = count_fds();
    srandom(1);
    for (int round = 0; round < 3000; round++) {
        struct ends p;
        unsigned char bytes[512];
        size_t n = 0;
        open_ends(&p);
        for (int i = 0; i < 3; i++) {
            const char *seed = seeds[random() % 3];
            size_t length = strlen(seed);
            memset(bytes + n, 0, 8);
            bytes[n + 3] = (unsigned char)length;
            memcpy(bytes + n + 8, seed, length);
            n += 8 + length;
        }
        for (long changes = random() % 4; changes > 0; changes--)
            bytes[(size_t)random() % n] = (unsigned char)random();
        n -= random() % 3 ? 0 : (size_t)random() % n;
        for (size_t sent = 0; sent < n;) {
            struct message m;
            size_t piece = 1 + (size_t)random() % (n - sent);
            assert_int_equal(write(p.raw, bytes + sent, piece), (ssize_t)piece);
            sent += piece;
            int rc;
            while ((rc = message_receive(p.session, SIDE_SESSION, &m, NULL)) > 0)
                message_clear(&m);
            message_clear(&m);
            if (rc < 0)
                break;
        }
        close_ends(&p);
    }
    assert_int_equal(count_fds(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_in_order),
        cmocka_unit_test(test_large_frame),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_descriptors_that_did_not_come),
        cmocka_unit_test(test_flood_of_descriptors),
        cmocka_unit_test(test_other_side_gone),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_wrong_descriptors),
        cmocka_unit_test(test_fuzz),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
