/*
 * Frames over a stream socket between agent and session: eight bytes of header (length of the text,
 * number of descriptors, both big-endian), then the text. Descriptors travel by SCM_RIGHTS with the
 * frame's first byte. Nothing here blocks but channel_wait. Thread: one at a time (the session
 * holds a lock around it).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

#define CHANNEL_FRAME_MAX (64 << 20) /* bytes of one frame's text; more ends the channel */
#define CHANNEL_FDS_MAX   2          /* descriptors with one frame */

struct channel;

struct channel_frame {
    char *text; /* n bytes and a zero; owned */
    size_t n;
    int fds[CHANNEL_FDS_MAX]; /* owned, close-on-exec; -1 where there is none */
    size_t n_fds;
};
void channel_frame_clear(struct channel_frame *f); /* frees, closes; safe on a zeroed one */

/* fd: a connected stream socket, taken over. */
struct channel *channel_new(int fd);
void channel_free(struct channel **c); /* closes, also the descriptors still to be sent */
int channel_fd(const struct channel *c);

/* Queues a frame and sends what the socket takes at once. The descriptors are duplicated: they stay
 * the caller's. ERR_BUG: too long. ERR_TRANSIENT: the other side is gone. */
int channel_send(struct channel *c, const char *text, size_t n, const int *fds, size_t n_fds,
                 struct err *e);
int channel_flush(struct channel *c, struct err *e);
bool channel_has_output(const struct channel *c); /* poll for POLLOUT, then channel_flush */

/* The next whole frame: 1 and *ret, 0: none yet. ERR_TRANSIENT: the other side is gone; ERR_BUG: it
 * broke the rules (a frame too long, descriptors missing or too many). */
int channel_receive(struct channel *c, struct channel_frame *ret, struct err *e);

/* Blocks until there is something to receive (or to flush, while output is queued), or timeout_ms
 * passed (-1: none). 1 ready, 0 timeout. */
int channel_wait(struct channel *c, int timeout_ms, struct err *e);
