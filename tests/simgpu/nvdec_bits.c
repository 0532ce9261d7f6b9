#include "tests/simgpu/nvdec_bits.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/call.h"

void bits_free(struct bits *b)
{
    free(b->data);
    *b = (struct bits){0};
}

/* Room for so many bytes more; what is new is zero. */
static void grow(struct bits *b, size_t bytes)
{
    size_t need = b->count / 8 + 1 + bytes;
    if (need <= b->room)
        return;
    size_t room = need * 2 + 256;
    b->data = realloc(b->data, room);
    if (!b->data)
        sim_die("out of memory");
    memset(b->data + b->room, 0, room - b->room);
    b->room = room;
}

void bits_put(struct bits *b, int n, uint32_t value)
{
    grow(b, 4);
    while (n-- > 0) {
        if (value >> n & 1)
            b->data[b->count / 8] |= (uint8_t)(0x80 >> b->count % 8);
        b->count++;
    }
}

void bits_ue(struct bits *b, uint32_t value)
{
    int length = 0;
    while ((value + 1) >> (length + 1))
        length++;
    bits_put(b, length, 0);
    bits_put(b, length + 1, value + 1);
}

void bits_se(struct bits *b, int value)
{
    bits_ue(b, value > 0 ? 2 * (uint32_t)value - 1 : 2 * (uint32_t)-value);
}

void bits_bytes(struct bits *b, const void *data, size_t bytes)
{
    grow(b, bytes);
    memcpy(b->data + b->count / 8, data, bytes);
    b->count += bytes * 8;
}

void bits_align(struct bits *b)
{
    b->count = (b->count + 7) / 8 * 8;
}

void bits_trailing(struct bits *b)
{
    bits_put(b, 1, 1);
    bits_align(b);
}

void bits_start_code(struct bits *b, uint8_t code)
{
    bits_align(b);
    bits_put(b, 32, 0x100u | code);
}

void bits_nal(struct bits *b, const uint8_t *header, size_t header_bytes,
              const struct bits *payload)
{
    size_t bytes = payload->count / 8;
    bits_bytes(b, "\0\0\1", 3);
    bits_bytes(b, header, header_bytes);
    grow(b, bytes + bytes / 2 + 1);
    uint8_t *out = b->data + b->count / 8;
    int zeros = 0;
    for (size_t i = 0; i < bytes; i++) {
        uint8_t byte = payload->data[i];
        if (zeros >= 2 && byte <= 3) {
            *out++ = 3;
            zeros = 0;
        }
        zeros = byte ? 0 : zeros + 1;
        *out++ = byte;
    }
    b->count = (size_t)(out - b->data) * 8;
}

void bits_unescape(struct bits *b, const uint8_t *data, size_t bytes)
{
    grow(b, bytes);
    uint8_t *out = b->data + b->count / 8;
    int zeros = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (zeros >= 2 && data[i] == 3) {
            zeros = 0;
            continue;
        }
        zeros = data[i] ? 0 : zeros + 1;
        *out++ = data[i];
    }
    b->count = (size_t)(out - b->data) * 8;
}

uint32_t bits_get(struct bits_at *r, int n)
{
    uint32_t value = 0;
    for (; n > 0; n--, r->at++) {
        int bit = r->at < r->b->count ? r->b->data[r->at / 8] >> (7 - r->at % 8) & 1 : 0;
        value = value << 1 | (uint32_t)bit;
    }
    return value;
}

uint32_t bits_get_ue(struct bits_at *r)
{
    int length = 0;
    while (length < 31 && r->at < r->b->count && bits_get(r, 1) == 0)
        length++;
    return (1u << length) - 1 + bits_get(r, length);
}

void bits_copy_rest(struct bits *b, struct bits_at *r)
{
    while (r->at % 8 && r->at < r->b->count)
        bits_put(b, 1, bits_get(r, 1));
    while (b->count % 8 && r->at < r->b->count)
        bits_put(b, 8, bits_get(r, 8));
    if (r->at < r->b->count)
        bits_bytes(b, r->b->data + r->at / 8, (r->b->count - r->at) / 8);
    r->at = r->b->count;
}

int bits_for(uint32_t n)
{
    int bits = 0;
    while (n > 1u << bits)
        bits++;
    return bits;
}
