#include "pipelines/media/bitstream.h"

#include <string.h>

/* The next 00 00 01 at or after p, or end. */
static const uint8_t *find_start_code(const uint8_t *p, const uint8_t *end)
{
    for (; end - p >= 3; p++) {
        p = memchr(p, 0, (size_t)(end - p - 2));
        if (!p)
            return end;
        if (p[1] == 0 && p[2] == 1)
            return p;
    }
    return end;
}

static void append_nal_units(struct strbuf *out, const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size, *p = find_start_code(data, end);
    while (p < end) {
        const uint8_t *nal = p + 3;
        p = find_start_code(nal, end);
        size_t n = (size_t)(p - nal);
        while (n && !nal[n - 1]) /* trailing_zero_8bits belong to the next start code */
            n--;
        if (n) {
            uint8_t length[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
                                 (uint8_t)n};
            strbuf_add(out, length, 4);
            strbuf_add(out, nal, n);
        }
    }
}

size_t bitstream_append_sample(struct strbuf *out, enum AVCodecID codec, const uint8_t *data,
                               size_t size)
{
    size_t before = out->len;
    switch (codec) {
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_HEVC:
        append_nal_units(out, data, size);
        break;
    case AV_CODEC_ID_AV1: /* OBU_TEMPORAL_DELIMITER: type 2, has_size, size 0 */
        while (size >= 2 && data[0] == 0x12 && data[1] == 0) {
            data += 2;
            size -= 2;
        }
        strbuf_add(out, data, size);
        break;
    default:
        strbuf_add(out, data, size);
    }
    return out->len - before;
}
