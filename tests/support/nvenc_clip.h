/*
 * Pictures encoded by libav's NVENC encoders on the simulated GPU, and what became of them. For the
 * parts of a test that run in a process of their own (tests/support/simgpu.h): what goes wrong ends
 * it.
 */
#pragma once
#include <libavcodec/avcodec.h>
#include <stdbool.h>
#include <stdint.h>

enum { NVENC_CLIP_MAX = 256 };

/* Ends the process with exit code 1 and a message when `ok` is false. */
#define nvenc_check(ok, ...) nvenc_check_at(ok, #ok, __FILE__, __LINE__, " " __VA_ARGS__)
void nvenc_check_at(bool ok, const char *what, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* False where this build has no simulated NVENC, or libav no encoder of that name. */
bool nvenc_clip_can(const char *encoder);

struct nvenc_clip_options {
    const char *encoder;       /* "h264_nvenc" */
    const char *options;       /* "bf=2:g=12:b=500k", or NULL */
    enum AVPixelFormat format; /* of the pictures: NV12, YUV420P, P010 */
    bool is_in_system_memory;  /* software frames instead of CUDA frames */
    bool has_global_header;
    int width, height; /* 0: 320x180 */
    const int *forced; /* pictures marked as I, ended by -1; NULL: none */
};

struct nvenc_clip {
    struct nvenc_clip_options options;
    AVCodecContext *encoder;
    AVPacket *packets[NVENC_CLIP_MAX];
    int n;
};

/* 0, or libav's error. Close in any case. */
int nvenc_clip_try(struct nvenc_clip *c, const struct nvenc_clip_options *options);
void nvenc_clip_open(struct nvenc_clip *c, const struct nvenc_clip_options *options);
void nvenc_clip_close(struct nvenc_clip *c);

/* Encodes pictures 0..n-1, pts = number; packets are appended. 0, or libav's error. */
int nvenc_clip_send(struct nvenc_clip *c, int n);

/* The same and drains; must work. */
void nvenc_clip_encode(struct nvenc_clip *c, int n);

/* Drops the packets and makes a drained encoder ready for more. */
void nvenc_clip_restart(struct nvenc_clip *c);

/* The packets must be the pictures 0..n-1, once each, with legal timestamps. */
void nvenc_clip_check_order(const struct nvenc_clip *c, int n);

/* Decodes in software. Types of the pictures in display order ("IBBP", K for a key) go to
 * ret_types; the result is the worst PSNR of a plane of any against what went in. */
double nvenc_clip_decode(const struct nvenc_clip *c, char ret_types[NVENC_CLIP_MAX + 1]);

int64_t nvenc_clip_bytes(const struct nvenc_clip *c);
