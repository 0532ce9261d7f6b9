/*
 * Streams and events. Work is done when the call that gives it returns, so that a stream is never
 * behind and an event has always happened: what is tested is that calls and handles are right, not
 * that a program waits where it must.
 */
#include <pthread.h>
#include <stdlib.h>

#include "tests/simgpu/cuda.h"
#include "tests/simgpu/stats.h"

tcuStreamCreate cuStreamCreate;
tcuStreamQuery cuStreamQuery;
tcuStreamSynchronize cuStreamSynchronize;
tcuStreamDestroy_v2 cuStreamDestroy_v2;
tcuStreamAddCallback cuStreamAddCallback;
tcuEventCreate cuEventCreate;
tcuEventDestroy_v2 cuEventDestroy_v2;
tcuEventSynchronize cuEventSynchronize;
tcuEventQuery cuEventQuery;
tcuEventRecord cuEventRecord;
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);

enum kind { STREAM, EVENT };
static const char *const kind_name[] = {"stream", "event"};

/* A live stream or event: the handle is its address. */
struct object {
    struct object *next;
    enum kind kind;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *live;

static bool is_live(const void *handle, enum kind kind)
{
    pthread_mutex_lock(&lock);
    const struct object *o = live;
    while (o && (o != handle || o->kind != kind))
        o = o->next;
    pthread_mutex_unlock(&lock);
    return o;
}

static CUresult create(const char *entry_point, enum kind kind, void **ret)
{
    CUresult rc = cuda_enter(entry_point, SIM_WORK, CUDA_IN_CONTEXT);
    if (rc)
        return rc;
    struct object *o = calloc(1, sizeof *o);
    if (!o)
        sim_die("out of memory");
    o->kind = kind;
    pthread_mutex_lock(&lock);
    o->next = live;
    live = o;
    pthread_mutex_unlock(&lock);
    sim_stats_add(SIM_LIVE, kind_name[kind], 1);
    *ret = o;
    return CUDA_SUCCESS;
}

static CUresult destroy(const char *entry_point, enum kind kind, void *handle)
{
    CUresult rc = cuda_enter(entry_point, SIM_CLOSE, CUDA_INIT);
    if (rc)
        return rc;
    pthread_mutex_lock(&lock);
    struct object **at = &live;
    while (*at && (*at != handle || (*at)->kind != kind))
        at = &(*at)->next;
    struct object *o = *at;
    if (o)
        *at = o->next;
    pthread_mutex_unlock(&lock);
    if (!o)
        return SIM_ERR_INVALID_HANDLE;
    free(o);
    sim_stats_add(SIM_LIVE, kind_name[kind], -1);
    return CUDA_SUCCESS;
}

/* A call that needs these two (NULL event: none) and then has nothing to wait for. */
static CUresult use(const char *entry_point, CUstream stream, const CUevent *event)
{
    CUresult rc = cuda_enter(entry_point, SIM_WORK, CUDA_IN_CONTEXT);
    if (rc)
        return rc;
    bool is_valid = cuda_stream_is_valid(stream) && (!event || is_live(*event, EVENT));
    return is_valid ? CUDA_SUCCESS : SIM_ERR_INVALID_HANDLE;
}

bool cuda_stream_is_valid(CUstream stream)
{
    return (uintptr_t)stream <= 2 || is_live(stream, STREAM);
}

CUresult cuStreamCreate(CUstream *ret, unsigned flags)
{
    (void)flags;
    return create(__func__, STREAM, (void **)ret);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    return destroy(__func__, STREAM, stream);
}

CUresult cuStreamQuery(CUstream stream)
{
    return use(__func__, stream, NULL);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    return use(__func__, stream, NULL);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)flags;
    return use(__func__, stream, &event);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback *callback, void *data,
                             unsigned flags)
{
    (void)flags;
    CUresult rc = use(__func__, stream, NULL);
    if (!rc)
        callback(stream, CUDA_SUCCESS, data);
    return rc;
}

CUresult cuEventCreate(CUevent *ret, unsigned flags)
{
    (void)flags;
    return create(__func__, EVENT, (void **)ret);
}

CUresult cuEventDestroy_v2(CUevent event)
{
    return destroy(__func__, EVENT, event);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return use(__func__, stream, &event);
}

CUresult cuEventQuery(CUevent event)
{
    return use(__func__, NULL, &event);
}

CUresult cuEventSynchronize(CUevent event)
{
    return use(__func__, NULL, &event);
}
