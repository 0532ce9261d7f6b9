/*
 * One audio rendition: samples to encoder frames, packets to segments. Positions are samples at the
 * rendition's rate from the job's origin. Thread: one.
 */
#pragma once
#include <libavcodec/avcodec.h>

#include "pipelines/media/packager.h"

struct audio_encode;

struct audio_encode_options {
    const struct plan_audio *audio;
    struct rational segment; /* D, seconds */
    bool is_deep;            /* the source has more than 16 significant bits (matters for FLAC) */
    int64_t start;           /* position of the first sample */
    struct packager_options packager;
};

/* Opens encoder and packager. ERR_DEVICE: no such encoder here; ERR_CONFIG: it does not take these
 * settings. */
int audio_encode_open(const struct audio_encode_options *options, struct audio_encode **ret,
                      struct err *e);
void audio_encode_free(struct audio_encode **a);

/* What the encoder of that name takes; ERR_CONFIG where it cannot. The layout is a native one. */
int audio_encode_format(const struct plan_audio *audio, bool is_deep, AVChannelLayout *ret_layout,
                        enum AVSampleFormat *ret_format, struct err *e);

int audio_encode_write(struct audio_encode *a, uint8_t *const *planes, int n, struct err *e);
/* Ends the track after the last sample written; *ret as packager_finish, complete. */
int audio_encode_finish(struct audio_encode *a, struct manifest_track *ret, struct err *e);

int64_t audio_encode_samples(const struct audio_encode *a); /* written so far */
