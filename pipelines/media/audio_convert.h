/*
 * Decoded audio to the encoder's rate, channels and sample format, with an exact number of samples:
 * n samples at rate a become round(n * b / a) at rate b, the first at the same time as the first
 * that went in. Thread: one.
 */
#pragma once
#include <libavutil/channel_layout.h>
#include <libavutil/frame.h>

#include "common/err.h"

struct audio_convert;

struct audio_convert_output {
    int sample_rate;
    AVChannelLayout layout; /* a native one, borrowed for the life of the converter */
    enum AVSampleFormat format;
    /* Takes n samples; planes are valid during the call only. */
    int (*sink)(void *arg, uint8_t *const *planes, int n, struct err *e);
    void *arg;
};

struct audio_convert *audio_convert_new(const struct audio_convert_output *output);
void audio_convert_free(struct audio_convert **c);

/* Whether the frame has another rate, layout or format than those before it: then
 * audio_convert_begin is due. True before the first frame. */
bool audio_convert_is_new(const struct audio_convert *c, const AVFrame *frame);
/* Ends the run of samples so far, as audio_convert_end, and starts one of the frame's kind.
 * ERR_INPUT: the frame is of a kind that cannot be converted. */
int audio_convert_begin(struct audio_convert *c, const AVFrame *frame, struct err *e);
/* `take` samples of the frame after its first `skip`. */
int audio_convert_write(struct audio_convert *c, const AVFrame *frame, int skip, int take,
                        struct err *e);
/* At most AUDIO_CONVERT_SILENCE samples of silence. */
#define AUDIO_CONVERT_SILENCE 8192
int audio_convert_write_silence(struct audio_convert *c, int n, struct err *e);
/* Hands out what the resampler still holds. */
int audio_convert_end(struct audio_convert *c, struct err *e);
