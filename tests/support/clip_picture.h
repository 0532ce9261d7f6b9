/* Drawing the pictures of test clips; see clip.h for what is in them. */
#pragma once
#include "tests/support/clip.h"

struct clip_canvas {
    int width, height; /* upright */
    int rotation;      /* the frame holds the picture turned back by this */
    bool is_interlaced, is_bottom_first;
};

/* frame: AV_PIX_FMT_YUV420P, writable, of the coded size. number < 2^20. */
void clip_draw(const struct clip_canvas *c, AVFrame *frame, int64_t number);
