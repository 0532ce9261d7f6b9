/* One audio_track_run over a file, without plan or queue around it, and its output decoded again by
 * libavformat. Thread: one. */
#pragma once
#include "pipelines/media/task.h"

struct audio_job { /* fill from `source` on to change what audio_job_open has set */
    char dir[64];  /* scratch and output */
    int scratch_fd, input_fd;
    struct input *in;
    struct source source; /* one track: stream 0, origin 0 */
    struct source_audio from;
    struct plan plan; /* one rendition: aac, 128 kbit/s, stereo, 48 kHz; 6 s fMP4 segments */
    struct plan_audio to;
    struct limits limits;
    struct manifest *manifest;
    struct err err; /* of the last run */
    int files;      /* announced */
    int64_t progress_calls;
    int64_t cancel_after; /* polls until cancelled; 0: never */
    int64_t polls;
};

/* seconds: measured end of the track. Fails the test when the file cannot be opened. */
void audio_job_open(struct audio_job *job, const char *path, double seconds);
int audio_job_run(struct audio_job *job); /* as audio_track_run */
void audio_job_close(struct audio_job *job);

struct audio_pcm { /* what a player hears, channel by channel, as floats */
    int rate, channels;
    int64_t start;    /* position of the first sample, from pts 0 */
    int64_t n;        /* samples */
    int64_t declared; /* fMP4: the sum of all sample durations, priming included */
    float *ch[8];
};

/* Decodes any file's first audio track; gaps in pts fail the test when is_strict. */
void audio_pcm_read(const char *path, bool is_strict, struct audio_pcm *ret);
/* The output of the job: init and segments put together. TS_ORIGIN is subtracted from MPEG-TS. */
void audio_job_decode(struct audio_job *job, struct audio_pcm *ret);
void audio_pcm_free(struct audio_pcm *pcm);

/* Whether every file of the manifest is there and has the size it says. */
void audio_job_check_files(const struct audio_job *job);
