/*
 * NVENC sessions and the objects in them. Handles are addresses that are looked up before they are
 * used, so that a stale or foreign one gets the driver's error and no crash.
 */
#ifndef TESTS_SIMGPU_NVENC_SESSION_H
#define TESTS_SIMGPU_NVENC_SESSION_H

#include <pthread.h>

#include "tests/simgpu/call.h"
#include "tests/simgpu/engine.h"
#include "tests/simgpu/nvenc_coder.h"

enum { NVENC_SESSION_MIB = 350 }; /* device memory that an initialised session takes */

/* A picture's memory: an input buffer of ours, or device memory that the client registered. */
struct nvenc_surface {
    struct nvenc_surface *next;
    NV_ENC_BUFFER_FORMAT format;
    int width, height;
    int pitch; /* bytes */
    bool is_registered;
    CUdeviceptr device; /* registered */
    uint8_t *bytes;     /* ours */
    bool is_locked;
    char mapping; /* its address is the handle of a mapped resource */
    bool is_mapped;
};

enum nvenc_output_state { NVENC_OUT_IDLE, NVENC_OUT_QUEUED, NVENC_OUT_FULL, NVENC_OUT_LOCKED };

/* A bitstream buffer. */
struct nvenc_output {
    struct nvenc_output *next;
    struct nvenc_output
        *queue_next; /* of those that wait for a packet, in the order of submission */
    enum nvenc_output_state state;
    int64_t done_ns; /* when the engine is done with it */
    struct nvenc_bytes packet;
    enum nvenc_type type;
    int qp;
    uint64_t timestamp, duration;
    uint32_t frame_index;
};

/* A picture that went in and has not come out. */
struct nvenc_pending {
    struct nvenc_pending *next;
    int64_t index;
    uint64_t timestamp, duration;
    uint32_t frame_index;
};

struct nvenc_session {
    struct nvenc_session *next;
    pthread_mutex_t mutex; /* guards all below */
    int device;
    const struct sim_gpu *gpu;
    char error[160];

    bool is_initialised;
    NV_ENC_INITIALIZE_PARAMS params; /* encodeConfig points to config */
    NV_ENC_CONFIG config;
    struct nvenc_settings settings;
    struct nvenc_surface *surfaces;
    struct nvenc_output *outputs;

    const struct nvenc_coder *coder;
    void *coding;         /* NULL: opened with the next picture */
    int64_t index;        /* of the next picture, since the coder was opened */
    int64_t packets;      /* since then */
    int64_t since_idr;    /* pictures; -1: an IDR must come */
    int64_t since_anchor; /* pictures */
    struct nvenc_output *queue, **queue_end;
    struct nvenc_pending *pending, **pending_end;
    uint8_t *picture; /* planar copy of the input */
    int64_t pixels_cost;
    struct sim_lane lane;
    int32_t id; /* of its entry in the state, 0: it has none */
};

/* Begins a call: counts it, asks the fault rules, finds the session and locks it. When the result
 * is not NV_ENC_SUCCESS the call returns it, else it ends with nvenc_leave. */
NVENCSTATUS nvenc_enter(const char *function, enum sim_call_class class, void *encoder,
                        struct nvenc_session **ret);

/* The same for what only an initialised encoder does. */
NVENCSTATUS nvenc_enter_ready(const char *function, enum sim_call_class class, void *encoder,
                              struct nvenc_session **ret);

/* Ends a call: unlocks and returns the status; a reason, unless it is NULL, is what
 * nvEncGetLastErrorString says. */
NVENCSTATUS nvenc_leave(struct nvenc_session *s, NVENCSTATUS status, const char *reason);

/* Gives a new session its place in the state; NV_ENC_ERR_OUT_OF_MEMORY when the device has as many
 * as it allows. Its device and gpu are set. */
NVENCSTATUS nvenc_session_add(struct nvenc_session *s);

/* Tells NVML of the session, now that it is initialised; and of a picture that it has taken. */
void nvenc_session_show(struct nvenc_session *s);
void nvenc_session_count(const struct nvenc_session *s, int64_t now_ns, int64_t done_ns);

/* Takes a session out, which waits for calls of it that are under way, and frees it. */
void nvenc_session_remove(struct nvenc_session *s);

/* nvenc_surface.c: the input as planar 4:2:0 of `depth` bits in `room`, which nvenc_picture_bytes
 * says the size of. False: its memory is not there. */
struct nvenc_surface *nvenc_surface_input(struct nvenc_session *s, const void *handle);
bool nvenc_surface_read(const struct nvenc_surface *in, int width, int height, int depth,
                        uint8_t *room, struct nvenc_picture *ret);
size_t nvenc_picture_bytes(int width, int height, int depth);
void nvenc_surface_free(struct nvenc_surface *surface);

/* nvenc_encode.c: ends the coder; what it held is lost. */
void nvenc_encode_close(struct nvenc_session *s);

/* The function list's entries, by the file that has them. */
NVENCSTATUS nvEncInitializeEncoder(void *encoder, NV_ENC_INITIALIZE_PARAMS *params);
NVENCSTATUS nvEncReconfigureEncoder(void *encoder, NV_ENC_RECONFIGURE_PARAMS *params);
NVENCSTATUS nvEncGetSequenceParams(void *encoder, NV_ENC_SEQUENCE_PARAM_PAYLOAD *payload);
NVENCSTATUS nvEncCreateBitstreamBuffer(void *encoder, NV_ENC_CREATE_BITSTREAM_BUFFER *params);
NVENCSTATUS nvEncDestroyBitstreamBuffer(void *encoder, NV_ENC_OUTPUT_PTR buffer);
NVENCSTATUS nvEncEncodePicture(void *encoder, NV_ENC_PIC_PARAMS *params);
NVENCSTATUS nvEncLockBitstream(void *encoder, NV_ENC_LOCK_BITSTREAM *params);
NVENCSTATUS nvEncUnlockBitstream(void *encoder, NV_ENC_OUTPUT_PTR buffer);

NVENCSTATUS nvEncCreateInputBuffer(void *encoder, NV_ENC_CREATE_INPUT_BUFFER *params);
NVENCSTATUS nvEncDestroyInputBuffer(void *encoder, NV_ENC_INPUT_PTR buffer);
NVENCSTATUS nvEncLockInputBuffer(void *encoder, NV_ENC_LOCK_INPUT_BUFFER *params);
NVENCSTATUS nvEncUnlockInputBuffer(void *encoder, NV_ENC_INPUT_PTR buffer);
NVENCSTATUS nvEncRegisterResource(void *encoder, NV_ENC_REGISTER_RESOURCE *params);
NVENCSTATUS nvEncUnregisterResource(void *encoder, NV_ENC_REGISTERED_PTR resource);
NVENCSTATUS nvEncMapInputResource(void *encoder, NV_ENC_MAP_INPUT_RESOURCE *params);
NVENCSTATUS nvEncUnmapInputResource(void *encoder, NV_ENC_INPUT_PTR mapped);

#endif
