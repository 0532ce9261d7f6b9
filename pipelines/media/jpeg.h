/*
 * One picture as a JPEG file: the same bytes for the same picture, whatever was encoded before and
 * on whichever processor. Thread: any.
 */
#pragma once
#include <libavcodec/avcodec.h>

#include "common/err.h"

/* picture: YUV420P as video has it; its colorspace and color_range say how (unspecified: BT.709
 * from 720 lines of `source_height` on, else BT.601; limited range). *ret: the caller's to free. */
int jpeg_encode(const AVFrame *picture, int source_height, AVPacket **ret, struct err *e);
