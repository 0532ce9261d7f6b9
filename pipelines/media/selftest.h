/*
 * Whether a device really does the work, told by the pictures and not by what it says of itself: a
 * moving pattern is encoded to H.264 by the device (where it has no encoder, by the CPU), decoded
 * and scaled to half its size by the device, and compared with what was drawn. So a test goes
 * through the encoder, the decoder and the kernels. Only bytes made here are ever parsed.
 *
 * A driver that is wedged never returns: call it in a process that may be killed. It opens no file,
 * so that a confined session can test its device again. Thread: one.
 */
#pragma once
#include "pipelines/media/device.h"

struct selftest_work {
    int width, height; /* even, 160x96 to 4096x4096 */
    int frames;        /* of the stream, at least 1 */
    int64_t min_us;    /* go on with more of the same until this has passed, twice; 0: once */
};

struct selftest {
    char encoder[32];     /* that made the stream: "h264_nvenc" */
    bool has_encoder;     /* it is the device's own */
    char no_encoder[256]; /* else why there is none */
    int frames;           /* that came back and were compared */
    double worst;         /* of all parts of all pictures: difference of the means, code values */
    double encode_fps;    /* of the device's own encoder */
    double decode_fps;    /* with scaling and with taking the small picture back */
};

/* A few small frames: 50 ms of a CPU, about a second on a cold GPU. -ERR_DEVICE with the reason
 * when pictures are missing or wrong or the device fails, -ERR_RESOURCE when it has no memory or
 * session left; a GPU without an encoder is no failure. *ret holds what was found until then. */
int device_selftest(const struct device *device, struct selftest *ret, struct err *e);

/* The same with other work, for comparing speeds. */
int device_selftest_work(const struct device *device, const struct selftest_work *work,
                         struct selftest *ret, struct err *e);
