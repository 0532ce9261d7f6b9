/*
 * Pictures of the software decoder as the hardware lays them out.
 *
 * SIMGPU_GARBLE=N     from this process's Nth picture on (from 1) a corner of each is grey, and no
 *                     call says so: a card that is broken
 */
#include <libavutil/pixdesc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/nvdec.h"

static void fill_black(const struct nvdec_picture *to)
{
    size_t luma = to->pitch * to->height, chroma = to->pitch * (to->height / 2);
    memset(to->data, 0, luma);
    memset(to->data + luma, 0x80, chroma);
}

/* Samples of one row, `step` apart in the output; 8 bits stay 8, others move to the upper bits. */
static void put_row(uint8_t *to, const uint8_t *from, unsigned count, unsigned step, int shift,
                    bool is_deep)
{
    if (!is_deep) {
        for (unsigned x = 0; x < count; x++)
            to[x * step] = from[x];
    } else {
        for (unsigned x = 0; x < count; x++)
            ((uint16_t *)to)[x * step] = (uint16_t)(((const uint16_t *)from)[x] << shift);
    }
}

static void garble(const struct nvdec_picture *to)
{
    static atomic_long pictures;
    const char *first = getenv("SIMGPU_GARBLE");
    if (!first || ++pictures < atol(first))
        return;
    for (unsigned y = 0; y < to->height / 4; y++)
        memset(to->data + y * to->pitch, 0x80, to->pitch / 4);
}

/* A frame whose depth does not fit the output's is a decoder's mistake, and shown as black. */
void nvdec_picture_fill(const struct nvdec_picture *to, const AVFrame *from)
{
    const AVPixFmtDescriptor *format = from->buf[0] ? av_pix_fmt_desc_get(from->format) : NULL;
    bool is_planar = format && format->nb_components == 3 && format->log2_chroma_w == 1 &&
                     format->log2_chroma_h == 1 && format->comp[2].plane == 2;
    if (!is_planar || (format->comp[0].depth > 8) != to->is_deep) {
        fill_black(to);
        return;
    }
    int shift = 16 - format->comp[0].depth, bytes = to->is_deep ? 2 : 1;
    unsigned chroma_width = to->width / 2;
    for (unsigned y = 0; y < to->height; y++)
        put_row(to->data + y * to->pitch, from->data[0] + (ptrdiff_t)y * from->linesize[0],
                to->width, 1, shift, to->is_deep);
    uint8_t *chroma = to->data + to->pitch * to->height;
    for (int c = 1; c < 3; c++)
        for (unsigned y = 0; y < to->height / 2; y++)
            put_row(chroma + y * to->pitch + (c - 1) * bytes,
                    from->data[c] + (ptrdiff_t)y * from->linesize[c], chroma_width, 2, shift,
                    to->is_deep);
    garble(to);
}
