/* The sound of test clips; see clip.h for what is in it. */
#pragma once
#include <stdint.h>

#define CLIP_PULSE_SECONDS   0.002
#define CLIP_SINE_AMPLITUDE  0.2
#define CLIP_PULSE_AMPLITUDE 0.7

/* The sample at `position` of a track with a sine of `hz`, -1..1. */
double clip_sample(int64_t position, int sample_rate, double hz);
