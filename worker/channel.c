/*
 * Why the header counts the descriptors: on a stream socket SCM_RIGHTS come with *some* byte of the
 * data, and one recvmsg may return the end of one frame together with the begin of the next. The
 * kernel only promises order, and that descriptors arrive no later than the byte they were sent
 * with. So arrived descriptors go into a queue, and each frame takes as many as its header says.
 */
#include "worker/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/strbuf.h"

enum {
    HEADER_BYTES = 8,
    READ_BYTES = 64 << 10,             /* of one recvmsg */
    ARRIVED_MAX = 2 * CHANNEL_FDS_MAX, /* descriptors waiting for their frame */
};

struct output { /* one frame on its way out */
    struct output *next;
    char *bytes; /* header and text */
    size_t n, sent;
    int fds[CHANNEL_FDS_MAX];
    size_t n_fds; /* 0 once they are sent */
};

struct channel {
    int fd;
    struct output *first, **last;
    char *in; /* received bytes that are not yet taken as frames: in[begin..end) */
    size_t begin, end, cap;
    int arrived[ARRIVED_MAX];
    size_t n_arrived;
};

static void close_all(int *fds, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        close(fds[i]);
    *n = 0;
}

void channel_frame_clear(struct channel_frame *f)
{
    free_ptr(&f->text);
    close_all(f->fds, &f->n_fds);
}

struct channel *channel_new(int fd)
{
    struct channel *c = xcalloc(1, sizeof *c);
    c->fd = fd;
    c->last = &c->first;
    return c;
}

static void output_free(struct output *o)
{
    close_all(o->fds, &o->n_fds);
    free(o->bytes);
    free(o);
}

void channel_free(struct channel **c)
{
    if (!*c)
        return;
    for (struct output *o = (*c)->first, *next; o; o = next) {
        next = o->next;
        output_free(o);
    }
    close_all((*c)->arrived, &(*c)->n_arrived);
    close_fd(&(*c)->fd);
    free((*c)->in);
    free(*c);
    *c = NULL;
}

int channel_fd(const struct channel *c)
{
    return c->fd;
}

bool channel_has_output(const struct channel *c)
{
    return c->first != NULL;
}

static void put_header(char *at, size_t n, size_t n_fds)
{
    uint32_t header[2] = {htonl((uint32_t)n), htonl((uint32_t)n_fds)};
    memcpy(at, header, sizeof header);
}

int channel_send(struct channel *c, const char *text, size_t n, const int *fds, size_t n_fds,
                 struct err *e)
{
    if (n > CHANNEL_FRAME_MAX || n_fds > CHANNEL_FDS_MAX)
        return err_set(e, ERR_BUG,
                       "a message of %zu bytes is over the limit of %d between agent "
                       "and session",
                       n, CHANNEL_FRAME_MAX);
    struct output *o = xcalloc(1, sizeof *o);
    o->bytes = xrealloc_array(NULL, HEADER_BYTES + n, 1);
    o->n = HEADER_BYTES + n;
    put_header(o->bytes, n, n_fds);
    memcpy(o->bytes + HEADER_BYTES, text, n);
    for (; o->n_fds < n_fds; o->n_fds++) {
        int fd = fcntl(fds[o->n_fds], F_DUPFD_CLOEXEC, 0);
        if (fd < 0) {
            int error = errno;
            output_free(o);
            return err_set(e, ERR_RESOURCE, "cannot duplicate a descriptor for a session: %s",
                           strerror(error));
        }
        o->fds[o->n_fds] = fd;
    }
    *c->last = o;
    c->last = &o->next;
    return channel_flush(c, e);
}

/* Sends some bytes of o, its descriptors with the first; returns sendmsg's value. */
static ssize_t send_some(int fd, struct output *o)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof o->fds)];
    } control = {0};
    struct iovec iov = {.iov_base = o->bytes + o->sent, .iov_len = o->n - o->sent};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (o->n_fds) {
        size_t size = o->n_fds * sizeof o->fds[0];
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
        *cmsg = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(size)};
        memcpy(CMSG_DATA(cmsg), o->fds, size);
    }
    return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int channel_flush(struct channel *c, struct err *e)
{
    while (c->first) {
        struct output *o = c->first;
        ssize_t n = send_some(c->fd, o);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n < 0)
            return err_set(e, ERR_TRANSIENT, "the channel between agent and session broke: %s",
                           strerror(errno));
        close_all(o->fds, &o->n_fds);
        o->sent += (size_t)n;
        if (o->sent < o->n)
            continue;
        c->first = o->next;
        if (!c->first)
            c->last = &c->first;
        output_free(o);
    }
    return 0;
}

/* Takes the descriptors out of a received message; -1: more than may wait. */
static int keep_descriptors(struct channel *c, struct msghdr *msg)
{
    int rc = msg->msg_flags & MSG_CTRUNC ? -1 : 0;
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
        if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof fd, sizeof fd);
            if (c->n_arrived < ARRIVED_MAX) {
                c->arrived[c->n_arrived++] = fd;
            } else {
                close(fd);
                rc = -1;
            }
        }
    }
    return rc;
}

/* Room for READ_BYTES more behind the data: memory follows what came, not what a header claims. */
static void make_room(struct channel *c)
{
    if (c->begin) {
        memmove(c->in, c->in + c->begin, c->end - c->begin);
        c->end -= c->begin;
        c->begin = 0;
    }
    if (c->cap - c->end >= READ_BYTES)
        return;
    c->cap = c->cap * 2 > c->end + READ_BYTES ? c->cap * 2 : c->end + READ_BYTES;
    c->in = xrealloc_array(c->in, c->cap, 1);
}

/* 1: some bytes came, 0: none now. */
static int receive_some(struct channel *c, struct err *e)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof c->arrived)];
    } control;
    make_room(c);
    struct iovec iov = {.iov_base = c->in + c->end, .iov_len = READ_BYTES};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    ssize_t n;
    do
        n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (n < 0)
        return err_set(e, ERR_TRANSIENT, "the channel between agent and session broke: %s",
                       strerror(errno));
    if (keep_descriptors(c, &msg) < 0)
        return err_set(e, ERR_BUG, "too many descriptors came over the channel");
    if (n == 0)
        return err_set(e, ERR_TRANSIENT, "the other side of the channel is gone");
    c->end += (size_t)n;
    return 1;
}

/* Gives the memory of an unusually large frame back once it is taken. */
static void shrink(struct channel *c)
{
    if (c->begin < c->end || c->cap <= 4 * READ_BYTES)
        return;
    free_ptr(&c->in);
    c->begin = c->end = c->cap = 0;
}

/* 1: *ret is a frame cut from the received bytes, 0: not whole yet. */
static int cut_frame(struct channel *c, struct channel_frame *ret, struct err *e)
{
    size_t have = c->end - c->begin;
    if (have < HEADER_BYTES)
        return 0;
    uint32_t header[2];
    memcpy(header, c->in + c->begin, sizeof header);
    size_t n = ntohl(header[0]), n_fds = ntohl(header[1]);
    if (n > CHANNEL_FRAME_MAX)
        return err_set(e, ERR_BUG, "a message of %zu bytes is over the limit of %d", n,
                       CHANNEL_FRAME_MAX);
    if (n_fds > CHANNEL_FDS_MAX || n_fds > c->n_arrived)
        return err_set(e, ERR_BUG, "a message claims %zu descriptors, %zu came", n_fds,
                       c->n_arrived);
    if (have < HEADER_BYTES + n)
        return 0;
    ret->text = xrealloc_array(NULL, n + 1, 1);
    memcpy(ret->text, c->in + c->begin + HEADER_BYTES, n);
    ret->text[n] = 0;
    ret->n = n;
    ret->n_fds = n_fds;
    for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
        ret->fds[i] = i < n_fds ? c->arrived[i] : -1;
    c->n_arrived -= n_fds;
    memmove(c->arrived, c->arrived + n_fds, c->n_arrived * sizeof c->arrived[0]);
    c->begin += HEADER_BYTES + n;
    shrink(c);
    return 1;
}

int channel_receive(struct channel *c, struct channel_frame *ret, struct err *e)
{
    *ret = (struct channel_frame){.fds = {-1, -1}};
    for (;;) {
        int rc = cut_frame(c, ret, e);
        if (rc)
            return rc;
        rc = receive_some(c, e);
        if (rc <= 0)
            return rc;
    }
}

int channel_wait(struct channel *c, int timeout_ms, struct err *e)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN | (c->first ? POLLOUT : 0)};
    int rc;
    do
        rc = poll(&p, 1, timeout_ms);
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return err_set(e, ERR_BUG, "poll of the channel: %s", strerror(errno));
    return rc > 0;
}
