/* Segments of MPEG-TS whose continuity counters join, and whose payload is what it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "pipelines/media/ts_counters.h"

enum { PACKET = 188 };

static void packet(struct strbuf *b, int pid, int adaptation, bool is_start, unsigned *seed)
{
    uint8_t p[PACKET];
    p[0] = 0x47;
    p[1] = (uint8_t)(pid >> 8 | (is_start ? 0x40 : 0));
    p[2] = (uint8_t)pid;
    p[3] = adaptation >= 0 ? 0x30 : 0x10;
    size_t at = 4;
    if (adaptation >= 0) {
        p[4] = (uint8_t)adaptation;
        memset(p + 5, 0xff, (size_t)adaptation);
        if (adaptation)
            p[5] = 0;
        at = 5 + (size_t)adaptation;
    }
    for (; at < PACKET; at++) {
        *seed = *seed * 1103515245 + 12345;
        p[at] = (uint8_t)(*seed >> 16);
    }
    strbuf_add(b, p, PACKET);
}

/* The payload of one PID, in order. */
static void payload(const struct strbuf *b, int pid, struct strbuf *ret)
{
    for (size_t at = 0; at < b->len; at += PACKET) {
        const uint8_t *p = (const uint8_t *)b->s + at;
        if (((p[1] & 0x1f) << 8 | p[2]) != pid)
            continue;
        size_t from = 4 + (p[3] & 0x20 ? 1 + (size_t)p[4] : 0);
        assert_true(from <= PACKET);
        strbuf_add(ret, p + from, PACKET - from);
    }
}

static void check_counters(const struct strbuf *b, int pid)
{
    int next = 0;
    for (size_t at = 0; at < b->len; at += PACKET) {
        const uint8_t *p = (const uint8_t *)b->s + at;
        assert_int_equal(p[0], 0x47);
        if (((p[1] & 0x1f) << 8 | p[2]) != pid)
            continue;
        assert_int_equal(p[3] & 0xf, next);
        next = (next + 1) % 16;
    }
    assert_int_equal(next, 0);
}

static void test_any_number_of_packets(void **state)
{
    (void)state;
    unsigned seed = 1;
    for (int n = 1; n <= 40; n++) {
        cleanup(strbuf_free) struct strbuf b = {0}, before = {0}, after = {0};
        struct err e;
        packet(&b, 0, -1, true, &seed);
        packet(&b, 0x1000, -1, true, &seed);
        for (int i = 0; i < n; i++) /* every length of adaptation field: none, empty, to the brim */
            packet(&b, 0x100, i % 4 ? -1 : (i * 37 + n) % 181, i == 0, &seed);
        size_t starts = 0;
        payload(&b, 0x100, &before);
        assert_int_equal(ts_align_counters(&b, &e), 0);
        assert_int_equal(b.len % PACKET, 0);
        check_counters(&b, 0);
        check_counters(&b, 0x1000);
        check_counters(&b, 0x100);
        payload(&b, 0x100, &after);
        assert_int_equal(after.len, before.len);
        assert_memory_equal(after.s, before.s, before.len);
        for (size_t at = 0; at < b.len; at += PACKET)
            starts += ((uint8_t)b.s[at + 1] & 0x5f) == 0x41;
        assert_int_equal(starts, 1);
    }
}

static void test_foreign_bytes(void **state)
{
    (void)state;
    struct err e;
    cleanup(strbuf_free) struct strbuf b = {0};
    char junk[PACKET] = {0};
    strbuf_add(&b, junk, sizeof junk);
    assert_int_equal(ts_align_counters(&b, &e), -ERR_BUG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_of_packets),
        cmocka_unit_test(test_foreign_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
