/* Writing and reading of bits, most significant first, and of NAL units. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing string of bits; zero it at first, bits_free at the end. */
struct bits {
    uint8_t *data;
    size_t count, room; /* in bits, in bytes */
};

void bits_free(struct bits *b);
void bits_put(struct bits *b, int n, uint32_t value); /* n <= 32 */
void bits_ue(struct bits *b, uint32_t value);         /* Exp-Golomb */
void bits_se(struct bits *b, int value);
void bits_bytes(struct bits *b, const void *data, size_t bytes); /* at a byte's begin */
void bits_align(struct bits *b);                                 /* with zeros */
void bits_trailing(struct bits *b);                              /* a one, then zeros */
void bits_start_code(struct bits *b, uint8_t code);              /* 00 00 01 code */

/* 00 00 01, the header, and the payload with emulation prevention. */
void bits_nal(struct bits *b, const uint8_t *header, size_t header_bytes,
              const struct bits *payload);

/* Appends a NAL unit's payload without emulation prevention. */
void bits_unescape(struct bits *b, const uint8_t *data, size_t bytes);

/* A place in bits that are there. Beyond the end come zeros. */
struct bits_at {
    const struct bits *b;
    size_t at;
};

uint32_t bits_get(struct bits_at *r, int n); /* n <= 32 */
uint32_t bits_get_ue(struct bits_at *r);

/* Copies all that is left. */
void bits_copy_rest(struct bits *b, struct bits_at *r);

/* Bits that hold 0..n-1. */
int bits_for(uint32_t n);
