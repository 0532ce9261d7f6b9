#include "tests/simgpu/nvenc_session.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/simgpu/memory.h"
#include "tests/simgpu/state.h"
#include "tests/simgpu/stats.h"

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER; /* before a session's own */
static struct nvenc_session *sessions;

static struct nvenc_session **find(const void *encoder)
{
    struct nvenc_session **at = &sessions;
    while (*at && *at != encoder)
        at = &(*at)->next;
    return at;
}

NVENCSTATUS nvenc_enter(const char *function, enum sim_call_class class, void *encoder,
                        struct nvenc_session **ret)
{
    int code = sim_call_encoder(function, class);
    if (code)
        return (NVENCSTATUS)code;
    if (!encoder)
        return NV_ENC_ERR_INVALID_PTR;
    pthread_mutex_lock(&list_mutex);
    *ret = *find(encoder);
    if (*ret)
        pthread_mutex_lock(&(*ret)->mutex);
    pthread_mutex_unlock(&list_mutex);
    return *ret ? NV_ENC_SUCCESS : NV_ENC_ERR_INVALID_ENCODERDEVICE;
}

NVENCSTATUS nvenc_enter_ready(const char *function, enum sim_call_class class, void *encoder,
                              struct nvenc_session **ret)
{
    NVENCSTATUS status = nvenc_enter(function, class, encoder, ret);
    if (!status && !(*ret)->is_initialised)
        return nvenc_leave(*ret, NV_ENC_ERR_ENCODER_NOT_INITIALIZED, NULL);
    return status;
}

NVENCSTATUS nvenc_leave(struct nvenc_session *s, NVENCSTATUS status, const char *reason)
{
    if (reason)
        snprintf(s->error, sizeof s->error, "%s", reason);
    pthread_mutex_unlock(&s->mutex);
    return status;
}

NVENCSTATUS nvenc_session_add(struct nvenc_session *s)
{
    struct sim_state *state = sim_state_lock();
    int open = sim_state_total(state, s->device).encoder_sessions;
    bool is_full = s->gpu->max_sessions && open >= s->gpu->max_sessions;
    if (!is_full)
        sim_state_own(state, s->device)->encoder_sessions++;
    sim_state_unlock();
    if (is_full)
        return NV_ENC_ERR_OUT_OF_MEMORY;
    sim_stats_peak("encoder_sessions", sim_stats_add(SIM_LIVE, "encoder", 1));
    pthread_mutex_init(&s->mutex, NULL);
    pthread_mutex_lock(&list_mutex);
    s->next = sessions;
    sessions = s;
    pthread_mutex_unlock(&list_mutex);
    return NV_ENC_SUCCESS;
}

static struct sim_encoder *entry_of(struct sim_state *state, int32_t id)
{
    struct sim_encoder *all = sim_state_encoders(state);
    for (int i = 0; i < SIM_ENCODERS_MAX; i++)
        if (all[i].id == id)
            return &all[i];
    return NULL;
}

void nvenc_session_show(struct nvenc_session *s)
{
    static int32_t last_id; /* guarded by the state's lock */
    struct sim_state *state = sim_state_lock();
    struct sim_encoder *entry = entry_of(state, 0);
    if (entry) {
        s->id = ++last_id;
        *entry = (struct sim_encoder){.id = s->id,
                                      .device = s->device,
                                      .codec = s->settings.codec,
                                      .width = s->settings.width,
                                      .height = s->settings.height};
    }
    sim_state_unlock();
}

void nvenc_session_count(const struct nvenc_session *s, int64_t now_ns, int64_t done_ns)
{
    if (!s->id)
        return;
    struct sim_encoder *entry = entry_of(sim_state_lock(), s->id);
    if (!entry->frames++)
        entry->opened_ns = now_ns;
    entry->last_ns = done_ns;
    entry->latency_ns += done_ns - now_ns;
    sim_state_unlock();
}

/* Buffers that the client has left in the session go with it, but stay counted as live: a leak. */
static void free_objects(struct nvenc_session *s)
{
    while (s->surfaces) {
        struct nvenc_surface *surface = s->surfaces;
        s->surfaces = surface->next;
        nvenc_surface_free(surface);
    }
    while (s->outputs) {
        struct nvenc_output *output = s->outputs;
        s->outputs = output->next;
        free(output->packet.data);
        free(output);
    }
}

void nvenc_session_remove(struct nvenc_session *s)
{
    pthread_mutex_lock(&list_mutex);
    *find(s) = s->next;
    pthread_mutex_unlock(&list_mutex);
    pthread_mutex_lock(&s->mutex); /* nobody can find it any more; who had is done after this */
    pthread_mutex_unlock(&s->mutex);
    nvenc_encode_close(s);
    free_objects(s);
    if (s->is_initialised)
        sim_mem_book(s->device, -((int64_t)NVENC_SESSION_MIB << 20));
    struct sim_state *state = sim_state_lock();
    sim_state_own(state, s->device)->encoder_sessions--;
    if (s->id)
        *entry_of(state, s->id) = (struct sim_encoder){0};
    sim_state_unlock();
    sim_stats_add(SIM_LIVE, "encoder", -1);
    pthread_mutex_destroy(&s->mutex);
    free(s->picture);
    free(s);
}
