/* Pictures turned, cut and brought to video range (turn.h) on a CUDA device. Thread: one. */
#pragma once
#include "pipelines/media/device.h"

struct turn_cuda;

/* Both borrowed. The kernel is loaded for the first frame that needs it. */
struct turn_cuda *turn_cuda_new(const struct device *device, const struct source_video *video);
void turn_cuda_free(struct turn_cuda **t);

/* Replaces *frame by its upright picture, unless it is as it should be. libavcodec cuts the right
 * and the bottom off a surface, but leaves what is above and to the left of the picture to others
 * (crop_left, crop_top). */
int turn_cuda_frame(struct turn_cuda *t, AVFrame *frame, struct err *e);
