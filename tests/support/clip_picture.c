/* Drawing and reading the pictures of test clips. */
#include <libavutil/pixdesc.h>
#include <stdlib.h>
#include <string.h>

#include "common/strbuf.h"
#include "tests/support/clip_picture.h"

enum { BLOCKS = 24, BITS = 20, FIRST_BIT = 2, PARITY = 22 };

static bool block_is_white(int64_t number, int block)
{
    bool parity = __builtin_parityll((unsigned long long)number);
    if (block < FIRST_BIT)
        return block == 0;
    if (block >= PARITY)
        return parity == (block == PARITY);
    return number >> (BITS - 1 - (block - FIRST_BIT)) & 1;
}

/* The height of the strip: tall enough to survive scaling to a tenth and chroma subsampling. */
static int strip_height(int height)
{
    return height / 6 > 4 ? height / 6 : 4;
}

/* Row y of the moving part at `phase` (frames; fields count half): a gradient that slides, and a
 * patterned box that wanders over it. */
static void draw_scene(uint8_t *row, int y, int width, int height, double phase)
{
    int slide = (int)(phase * 2), lift = y * 40 / height;
    int box = height / 4 + 1;
    int box_x = (int)(phase * 5) % width, box_y = strip_height(height) + (int)(phase * 3) % height;
    int step = 160 * 65536 / width;
    for (int x = 0; x < width; x++)
        row[x] = (uint8_t)(40 + (((int64_t)(x + slide) * step >> 16) + lift) % 170);
    if (y >= box_y && y < box_y + box)
        for (int x = box_x; x < width && x < box_x + box; x++)
            row[x] = (uint8_t)(60 + ((x - box_x) * 7 ^ (y - box_y) * 5) % 140);
}

static void draw_row(const struct clip_canvas *c, uint8_t *row, int y, int64_t number)
{
    bool is_second_field = c->is_interlaced && (y & 1) == (c->is_bottom_first ? 0 : 1);
    if (y >= strip_height(c->height)) {
        draw_scene(row, y, c->width, c->height, (double)number + (is_second_field ? 0.5 : 0));
        return;
    }
    for (int x = 0; x < c->width; x++)
        row[x] = block_is_white(number, x * BLOCKS / c->width) ? 225 : 25;
}

/* Where upright (x, y) of a w x h picture lies in the coded picture, which `rotation` clockwise
 * turns upright. */
static void turn(int rotation, int w, int h, int x, int y, int *ret_x, int *ret_y)
{
    switch (rotation) {
    case 90:
        *ret_x = y;
        *ret_y = w - 1 - x;
        break;
    case 180:
        *ret_x = w - 1 - x;
        *ret_y = h - 1 - y;
        break;
    case 270:
        *ret_x = h - 1 - y;
        *ret_y = x;
        break;
    default:
        *ret_x = x;
        *ret_y = y;
    }
}

void clip_draw(const struct clip_canvas *c, AVFrame *frame, int64_t number)
{
    uint8_t *row = xcalloc(1, (size_t)c->width);
    for (int y = 0; y < c->height; y++) {
        draw_row(c, row, y, number);
        if (c->rotation == 0) {
            memcpy(frame->data[0] + y * frame->linesize[0], row, (size_t)c->width);
            continue;
        }
        for (int x = 0; x < c->width; x++) {
            int at_x, at_y;
            turn(c->rotation, c->width, c->height, x, y, &at_x, &at_y);
            frame->data[0][at_y * frame->linesize[0] + at_x] = row[x];
        }
    }
    free(row);
    for (int plane = 1; plane < 3; plane++)
        for (int y = 0; y < (frame->height + 1) / 2; y++)
            for (int x = 0; x < (frame->width + 1) / 2; x++)
                frame->data[plane][y * frame->linesize[plane] + x] =
                    (uint8_t)(118 + (plane == 1 ? x : y) * 20 / (frame->width + frame->height));
}

/* Mean luma of the middle half of block `block` of the upright w x h picture. */
static double block_level(const AVFrame *frame, const AVPixFmtDescriptor *d, int rotation, int w,
                          int h, int block)
{
    int x0 = (block * w + w / 4) / BLOCKS, x1 = (block * w + w * 3 / 4) / BLOCKS;
    int y0 = strip_height(h) / 4, y1 = strip_height(h) * 3 / 4;
    double sum = 0;
    int n = 0;
    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++, n++) {
            int at_x, at_y;
            turn(rotation, w, h, x, y, &at_x, &at_y);
            const uint8_t *p = frame->data[0] + at_y * frame->linesize[0];
            sum += d->comp[0].depth > 8 ? ((const uint16_t *)(const void *)p)[at_x] : p[at_x];
        }
    return sum / n;
}

int64_t clip_read_turned(const AVFrame *frame, int rotation)
{
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(frame->format);
    if (!d || d->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_BE) ||
        d->comp[0].step != (d->comp[0].depth > 8 ? 2 : 1))
        return -1;
    bool is_sideways = rotation % 180 != 0;
    int w = is_sideways ? frame->height : frame->width;
    int h = is_sideways ? frame->width : frame->height;
    if (w < BLOCKS * 4)
        return -1;
    double white = block_level(frame, d, rotation, w, h, 0);
    double black = block_level(frame, d, rotation, w, h, 1);
    if (white - black < (1 << d->comp[0].depth) / 4)
        return -1;
    bool bits[BLOCKS];
    int64_t number = 0;
    for (int i = FIRST_BIT; i < BLOCKS; i++) {
        bits[i] = block_level(frame, d, rotation, w, h, i) > (white + black) / 2;
        if (i < PARITY)
            number = number * 2 + bits[i];
    }
    for (int i = PARITY; i < BLOCKS; i++)
        if (bits[i] != block_is_white(number, i))
            return -1;
    return number;
}

int64_t clip_read_frame_number(const AVFrame *frame)
{
    return clip_read_turned(frame, 0);
}
