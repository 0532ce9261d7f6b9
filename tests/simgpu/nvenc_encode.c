/*
 * The life of a picture in NVENC.
 *
 * EncodePicture takes a picture and a bitstream buffer, decides the picture's type, gives the work
 * to the engine's clock and the picture to the coder. Buffers are filled in the order in which they
 * came, with packets in coding order, so that with B-frames a buffer does not hold the picture that
 * it came with. NEED_MORE_INPUT means that no buffer given so far since the last SUCCESS can be
 * locked yet; that is so for a B, whose anchor is still to come.
 *
 * A coder lags a constant number of pictures, which an engine does not. SUCCESS is therefore held
 * back until the coder's first packet is out: from then on each picture brings one packet, and a
 * client that locks one buffer a picture, as libav* does, never asks for one that is not there. A
 * client that locks them all at once after SUCCESS is told LOCK_BUSY for the last few.
 *
 * After EOS the coder is ended; the next picture begins with an IDR and a new one, so that what
 * comes out depends on what has gone in since, and on nothing before.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/simgpu/memory.h"
#include "tests/simgpu/nvenc_session.h"
#include "tests/simgpu/stats.h"

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static bool open_coder(struct nvenc_session *s)
{
    if (s->coding)
        return true;
    s->coder = nvenc_coder_get(s->settings.codec);
    s->coding = s->coder->open(&s->settings);
    s->index = s->packets = s->since_anchor = 0;
    s->since_idr = -1;
    return s->coding;
}

static enum nvenc_type next_type(struct nvenc_session *s, uint32_t flags)
{
    bool is_gop_over =
        s->since_idr < 0 || (s->settings.gop_length && s->since_idr + 1 >= s->settings.gop_length);
    if (is_gop_over || flags & NV_ENC_PIC_FLAG_FORCEIDR) {
        s->since_idr = s->since_anchor = 0;
        return NVENC_IDR;
    }
    s->since_idr++;
    s->since_anchor++;
    if (s->since_anchor < s->settings.interval_p && !(flags & NV_ENC_PIC_FLAG_FORCEINTRA))
        return NVENC_B;
    s->since_anchor = 0;
    return flags & NV_ENC_PIC_FLAG_FORCEINTRA ? NVENC_I : NVENC_P;
}

static struct nvenc_pending *take_pending(struct nvenc_session *s, int64_t index)
{
    struct nvenc_pending **at = &s->pending;
    while ((*at)->index != index)
        at = &(*at)->next;
    struct nvenc_pending *found = *at;
    *at = found->next;
    if (!found->next)
        s->pending_end = at;
    return found;
}

/* Puts a packet into the buffer that has waited longest. */
static void deliver(struct nvenc_session *s, const struct nvenc_packet *packet)
{
    struct nvenc_output *out = s->queue;
    s->queue = out->queue_next;
    if (!s->queue)
        s->queue_end = &s->queue;
    struct nvenc_pending *picture = take_pending(s, packet->index);
    out->state = NVENC_OUT_FULL;
    out->packet.size = 0;
    nvenc_bytes_add(&out->packet, packet->data, packet->size);
    out->type = packet->type;
    out->qp = packet->qp;
    out->timestamp = picture->timestamp;
    out->duration = picture->duration;
    out->frame_index = picture->frame_index;
    free(picture);
    s->packets++;
    sim_stats_add(SIM_COUNTERS, "frames_encoded", 1);
}

static bool drain(struct nvenc_session *s)
{
    struct nvenc_packet packet;
    int got = 0;
    while (s->coding && s->queue && (got = s->coder->encode(s->coding, NULL, 0, 0, &packet)) > 0)
        deliver(s, &packet);
    bool is_whole = got >= 0 && !s->queue;
    nvenc_encode_close(s);
    return is_whole;
}

void nvenc_encode_close(struct nvenc_session *s)
{
    if (s->coding)
        s->coder->close(s->coding);
    s->coding = NULL;
    while (s->pending) {
        struct nvenc_pending *picture = s->pending;
        s->pending = picture->next;
        free(picture);
    }
    s->pending_end = &s->pending;
}

static struct nvenc_output *find_output(struct nvenc_session *s, const void *handle)
{
    struct nvenc_output *at = s->outputs;
    while (at && at != handle)
        at = at->next;
    return at;
}

static void enqueue(struct nvenc_session *s, struct nvenc_output *out, const NV_ENC_PIC_PARAMS *p)
{
    int64_t now = now_ns();
    struct nvenc_pending *picture = malloc(sizeof *picture);
    if (!picture)
        sim_die("no memory for a picture");
    *picture =
        (struct nvenc_pending){NULL, s->index, p->inputTimeStamp, p->inputDuration, p->frameIdx};
    *s->pending_end = picture;
    s->pending_end = &picture->next;
    out->state = NVENC_OUT_QUEUED;
    out->queue_next = NULL;
    *s->queue_end = out;
    s->queue_end = &out->queue_next;
    out->done_ns = sim_engine_submit(SIM_NVENC, s->device, s->pixels_cost, &s->lane);
    nvenc_session_count(s, now, out->done_ns);
}

static NVENCSTATUS encode(struct nvenc_session *s, const NV_ENC_PIC_PARAMS *p, const char **ret_why)
{
    const struct nvenc_settings *set = &s->settings;
    struct nvenc_surface *in = nvenc_surface_input(s, p->inputBuffer);
    struct nvenc_output *out = find_output(s, p->outputBitstream);
    struct nvenc_picture picture;
    struct nvenc_packet packet;
    *ret_why = "no such input, or its memory is gone";
    if (!in ||
        !nvenc_surface_read(in, set->width, set->height, set->bit_depth, s->picture, &picture))
        return NV_ENC_ERR_INVALID_PARAM;
    *ret_why = "no such bitstream buffer, or it is in use";
    if (!out || out->state != NVENC_OUT_IDLE)
        return NV_ENC_ERR_INVALID_PARAM;
    *ret_why = "the coder failed";
    if (!open_coder(s))
        return NV_ENC_ERR_GENERIC;
    enum nvenc_type type = next_type(s, p->encodePicFlags);
    enqueue(s, out, p);
    int got = s->coder->encode(s->coding, &picture, s->index++, type, &packet);
    if (got < 0)
        return NV_ENC_ERR_GENERIC;
    if (got)
        deliver(s, &packet);
    bool is_ready = type != NVENC_B && s->packets && s->index > set->lookahead;
    *ret_why = NULL;
    return is_ready ? NV_ENC_SUCCESS : NV_ENC_ERR_NEED_MORE_INPUT;
}

NVENCSTATUS nvEncEncodePicture(void *encoder, NV_ENC_PIC_PARAMS *params)
{
    struct nvenc_session *s;
    const char *why = NULL;
    NVENCSTATUS status = nvenc_enter_ready(__func__, SIM_WORK, encoder, &s);
    if (status)
        return status;
    if (params->encodePicFlags & NV_ENC_PIC_FLAG_EOS)
        return drain(s) ? nvenc_leave(s, NV_ENC_SUCCESS, NULL)
                        : nvenc_leave(s, NV_ENC_ERR_GENERIC, "the coder failed");
    status = encode(s, params, &why);
    return nvenc_leave(s, status, why);
}

NVENCSTATUS nvEncLockBitstream(void *encoder, NV_ENC_LOCK_BITSTREAM *params)
{
    static const NV_ENC_PIC_TYPE types[] = {
        [NVENC_IDR] = NV_ENC_PIC_TYPE_IDR,
        [NVENC_I] = NV_ENC_PIC_TYPE_I,
        [NVENC_P] = NV_ENC_PIC_TYPE_P,
        [NVENC_B] = NV_ENC_PIC_TYPE_B,
    };
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter(__func__, SIM_WORK, encoder, &s);
    if (status)
        return status;
    struct nvenc_output *out = find_output(s, params->outputBitstream);
    if (!out || out->state == NVENC_OUT_IDLE || out->state == NVENC_OUT_LOCKED)
        return nvenc_leave(s, NV_ENC_ERR_INVALID_PARAM, "not a buffer with a picture");
    int64_t done_ns = out->done_ns;
    if (out->state == NVENC_OUT_QUEUED || (params->doNotWait && now_ns() < done_ns))
        return nvenc_leave(s, NV_ENC_ERR_LOCK_BUSY, "the picture is not encoded yet");
    out->state = NVENC_OUT_LOCKED;
    params->bitstreamBufferPtr = out->packet.data;
    params->bitstreamSizeInBytes = (uint32_t)out->packet.size;
    params->outputTimeStamp = out->timestamp;
    params->outputDuration = out->duration;
    params->frameIdx = out->frame_index;
    params->pictureType = types[out->type];
    params->pictureStruct = NV_ENC_PIC_STRUCT_FRAME;
    params->frameAvgQP = (uint32_t)out->qp;
    params->numSlices = (uint32_t)s->settings.slices;
    params->hwEncodeStatus = 2; /* done */
    nvenc_leave(s, NV_ENC_SUCCESS, NULL);
    sim_engine_wait(done_ns); /* without the lock: other threads may give pictures meanwhile */
    return NV_ENC_SUCCESS;
}

NVENCSTATUS nvEncUnlockBitstream(void *encoder, NV_ENC_OUTPUT_PTR buffer)
{
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter(__func__, SIM_CLOSE, encoder, &s);
    if (status)
        return status;
    struct nvenc_output *out = find_output(s, buffer);
    if (!out || out->state != NVENC_OUT_LOCKED)
        return nvenc_leave(s, NV_ENC_ERR_INVALID_PARAM, "not a locked buffer");
    out->state = NVENC_OUT_IDLE;
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}

NVENCSTATUS nvEncCreateBitstreamBuffer(void *encoder, NV_ENC_CREATE_BITSTREAM_BUFFER *params)
{
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter_ready(__func__, SIM_WORK, encoder, &s);
    if (status)
        return status;
    struct nvenc_output *out = calloc(1, sizeof *out);
    if (!out)
        return nvenc_leave(s, NV_ENC_ERR_OUT_OF_MEMORY, "no memory for a bitstream buffer");
    out->next = s->outputs;
    s->outputs = out;
    params->bitstreamBuffer = out;
    sim_stats_add(SIM_LIVE, "encoder_output", 1);
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}

static void unqueue(struct nvenc_session *s, const struct nvenc_output *out)
{
    struct nvenc_output **at = &s->queue;
    while (*at && *at != out)
        at = &(*at)->queue_next;
    if (!*at)
        return;
    *at = out->queue_next;
    if (!*at)
        s->queue_end = at;
}

NVENCSTATUS nvEncDestroyBitstreamBuffer(void *encoder, NV_ENC_OUTPUT_PTR buffer)
{
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter(__func__, SIM_CLOSE, encoder, &s);
    if (status)
        return status;
    struct nvenc_output **at = &s->outputs, *out = find_output(s, buffer);
    if (!out)
        return nvenc_leave(s, NV_ENC_ERR_INVALID_PARAM, "no such bitstream buffer");
    unqueue(s, out);
    while (*at != out)
        at = &(*at)->next;
    *at = out->next;
    free(out->packet.data);
    free(out);
    sim_stats_add(SIM_LIVE, "encoder_output", -1);
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}

/* Keeps what the client asked for, field by field: its structs end where its own headers say. */
static void keep_params(struct nvenc_session *s, const NV_ENC_INITIALIZE_PARAMS *p)
{
    if (p->encodeConfig) {
        s->config.profileGUID = p->encodeConfig->profileGUID;
        s->config.gopLength = p->encodeConfig->gopLength;
        s->config.frameIntervalP = p->encodeConfig->frameIntervalP;
        s->config.frameFieldMode = p->encodeConfig->frameFieldMode;
        s->config.rcParams = p->encodeConfig->rcParams;
        s->config.encodeCodecConfig = p->encodeConfig->encodeCodecConfig;
    }
    s->params.encodeGUID = p->encodeGUID;
    s->params.presetGUID = p->presetGUID;
}

static NVENCSTATUS initialise(struct nvenc_session *s, const NV_ENC_INITIALIZE_PARAMS *p,
                              const char **ret_why)
{
    NVENCSTATUS status = nvenc_settings_read(p, s->gpu, &s->settings, ret_why);
    if (status)
        return status;
    const struct nvenc_settings *set = &s->settings;
    *ret_why = "the coder refuses the parameters";
    if (!open_coder(s))
        return NV_ENC_ERR_INVALID_PARAM;
    *ret_why = "not enough device memory for a session";
    if (sim_mem_book(s->device, (int64_t)NVENC_SESSION_MIB << 20)) {
        nvenc_encode_close(s);
        return NV_ENC_ERR_OUT_OF_MEMORY;
    }
    s->is_initialised = true;
    s->picture = malloc(nvenc_picture_bytes(set->width, set->height, set->bit_depth));
    if (!s->picture)
        sim_die("no memory for a picture");
    s->pixels_cost =
        (int64_t)(nvenc_codec_cost(set->codec, set->preset) * set->width * set->height);
    keep_params(s, p);
    nvenc_session_show(s);
    *ret_why = NULL;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS nvEncInitializeEncoder(void *encoder, NV_ENC_INITIALIZE_PARAMS *params)
{
    struct nvenc_session *s;
    const char *why = NULL;
    NVENCSTATUS status = nvenc_enter(__func__, SIM_WORK, encoder, &s);
    if (status)
        return status;
    if (s->is_initialised)
        return nvenc_leave(s, NV_ENC_ERR_INVALID_CALL, "initialised already");
    status = initialise(s, params, &why);
    return nvenc_leave(s, status, why);
}

/* A change of rate or aspect; size, codec and order of pictures stay. What is in the coder comes
 * out first, and an IDR begins what follows, asked for or not: the client has buffers for both. */
NVENCSTATUS nvEncReconfigureEncoder(void *encoder, NV_ENC_RECONFIGURE_PARAMS *params)
{
    struct nvenc_session *s;
    struct nvenc_settings next;
    const char *why;
    NVENCSTATUS status = nvenc_enter_ready(__func__, SIM_WORK, encoder, &s);
    if (status)
        return status;
    NV_ENC_CONFIG *client = params->reInitEncodeParams.encodeConfig;
    if (!client)
        params->reInitEncodeParams.encodeConfig = &s->config;
    status = nvenc_settings_read(&params->reInitEncodeParams, s->gpu, &next, &why);
    if (!status && (next.codec != s->settings.codec || next.width != s->settings.width ||
                    next.height != s->settings.height || next.bit_depth != s->settings.bit_depth ||
                    next.interval_p != s->settings.interval_p)) {
        why = "size, codec and B-frames cannot be changed";
        status = NV_ENC_ERR_UNSUPPORTED_PARAM;
    }
    if (!status && !drain(s)) {
        why = "the coder failed";
        status = NV_ENC_ERR_GENERIC;
    }
    if (!status) {
        s->settings = next;
        keep_params(s, &params->reInitEncodeParams);
    }
    params->reInitEncodeParams.encodeConfig = client;
    return nvenc_leave(s, status, why);
}

NVENCSTATUS nvEncGetSequenceParams(void *encoder, NV_ENC_SEQUENCE_PARAM_PAYLOAD *payload)
{
    struct nvenc_session *s;
    NVENCSTATUS status = nvenc_enter_ready(__func__, SIM_ASK, encoder, &s);
    if (status)
        return status;
    if (!open_coder(s))
        return nvenc_leave(s, NV_ENC_ERR_GENERIC, "the coder failed");
    size_t size = s->coder->headers(s->coding, payload->spsppsBuffer, payload->inBufferSize);
    if (!size)
        return nvenc_leave(s, NV_ENC_ERR_NOT_ENOUGH_BUFFER, "the parameter sets do not fit");
    *payload->outSPSPPSPayloadSize = (uint32_t)size;
    return nvenc_leave(s, NV_ENC_SUCCESS, NULL);
}
