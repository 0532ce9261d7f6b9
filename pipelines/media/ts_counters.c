#include "pipelines/media/ts_counters.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/cleanup.h"

enum { PACKET = 188, HEADER = 4, CYCLE = 16, PIDS_MAX = 8, PID_FIRST_STREAM = 0x100 };

struct pid {
    int pid;
    int missing; /* packets to the next multiple of CYCLE */
    int counter; /* of the next packet that is written */
    size_t last; /* offset of its last packet */
};

static int pid_of(const uint8_t *p)
{
    return (p[1] & 0x1f) << 8 | p[2];
}

static bool has_payload(const uint8_t *p)
{
    return p[3] & 0x10;
}

static size_t payload_offset(const uint8_t *p)
{
    return HEADER + (p[3] & 0x20 ? 1 + (size_t)p[4] : 0);
}

static struct pid *find_pid(struct pid *pids, size_t *n, int pid)
{
    for (size_t i = 0; i < *n; i++)
        if (pids[i].pid == pid)
            return &pids[i];
    if (*n == PIDS_MAX)
        return NULL;
    pids[*n] = (struct pid){.pid = pid};
    return &pids[(*n)++];
}

/* Makes room for `payload` bytes at the packet's end: the adaptation field is stretched with
 * stuffing up to there. The header and what the field holds already stay. */
static void stuff(uint8_t *p, size_t payload)
{
    size_t from = payload_offset(p), to = PACKET - payload;
    if (!(p[3] & 0x20)) { /* a field of length 0 is one byte, of length 1 has flags */
        p[3] |= 0x20;
        if (to > HEADER + 1)
            p[HEADER + 1] = 0;
        from = HEADER + 2;
    }
    p[HEADER] = (uint8_t)(to - HEADER - 1);
    if (p[HEADER] && from == HEADER + 1) /* it was of length 0: no flags so far */
        p[from++] = 0;
    if (to > from)
        memset(p + from, 0xff, to - from);
}

/* One packet as two that carry the same payload. */
static void split(const uint8_t *p, uint8_t ret[2][PACKET])
{
    size_t from = payload_offset(p), n = PACKET - from, first = n / 2;
    memcpy(ret[0], p, PACKET);
    stuff(ret[0], first);
    memcpy(ret[0] + PACKET - first, p + from, first);
    memcpy(ret[1], p, HEADER);
    ret[1][1] &= 0xbf; /* the unit starts in the first */
    ret[1][3] &= 0xdf; /* so does its adaptation field */
    stuff(ret[1], n - first);
    memcpy(ret[1] + PACKET - (n - first), p + from + first, n - first);
}

static void write_packet(struct strbuf *out, struct pid *pid, const uint8_t *p)
{
    uint8_t copy[PACKET];
    memcpy(copy, p, PACKET);
    if (has_payload(p))
        copy[3] = (uint8_t)((p[3] & 0xf0) | (pid->counter++ & 0xf));
    else
        copy[3] = (uint8_t)((p[3] & 0xf0) | ((pid->counter - 1) & 0xf));
    strbuf_add(out, copy, PACKET);
}

/* One pass: splits what can be split, at most once a packet, and repeats tables behind their last
 * packet. Returns how many packets are still missing. */
static int pass(const struct strbuf *in, struct pid *pids, size_t n_pids, struct strbuf *out)
{
    int missing = 0;
    for (size_t at = 0; at < in->len; at += PACKET) {
        const uint8_t *p = (const uint8_t *)in->s + at;
        struct pid *pid = find_pid(pids, &n_pids, pid_of(p));
        bool is_table = pid->pid < PID_FIRST_STREAM || pid->pid == 0x1000;
        if (!is_table && pid->missing > 0 && has_payload(p) && PACKET - payload_offset(p) >= 2) {
            uint8_t two[2][PACKET];
            split(p, two);
            write_packet(out, pid, two[0]);
            write_packet(out, pid, two[1]);
            pid->missing--;
            continue;
        }
        write_packet(out, pid, p);
        for (; is_table && at == pid->last && pid->missing > 0; pid->missing--)
            write_packet(out, pid, p);
    }
    for (size_t i = 0; i < n_pids; i++)
        missing += pids[i].missing;
    return missing;
}

int ts_align_counters(struct strbuf *segment, struct err *e)
{
    for (int before = INT32_MAX;;) {
        struct pid pids[PIDS_MAX];
        size_t n = 0;
        for (size_t at = 0; at + PACKET <= segment->len; at += PACKET) {
            const uint8_t *p = (const uint8_t *)segment->s + at;
            struct pid *pid = p[0] == 0x47 ? find_pid(pids, &n, pid_of(p)) : NULL;
            if (!pid)
                return err_set(e, ERR_BUG, "MPEG-TS: not a packet of ours at byte %zu", at);
            pid->last = at;
            pid->missing = (pid->missing + CYCLE - has_payload(p)) % CYCLE;
        }
        struct strbuf out = {0};
        int missing = pass(segment, pids, n, &out);
        strbuf_free(segment);
        *segment = out;
        if (!missing)
            return 0;
        if (missing >= before)
            return err_set(e, ERR_BUG, "MPEG-TS: a segment too small to align its counters");
        before = missing;
    }
}
