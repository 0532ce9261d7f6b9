#include "tests/simgpu/engine.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#include "tests/simgpu/state.h"

#define SECOND_NS 1000000000LL
#define SLICE_NS  (SECOND_NS / 16)

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND_NS + t.tv_nsec;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Books busy time on the slices that [start, end) touches, as far ahead as the ring reaches. */
static void book_busy(struct sim_busy *ring, int64_t start, int64_t end)
{
    end = min64(end, start + (SIM_BUSY_SLICES / 2) * SLICE_NS);
    for (int64_t slice = start / SLICE_NS; slice * SLICE_NS < end; slice++) {
        struct sim_busy *b = &ring[slice % SIM_BUSY_SLICES];
        if (b->when != slice)
            *b = (struct sim_busy){.when = slice};
        b->busy_ns += min64(end, (slice + 1) * SLICE_NS) - max64(start, slice * SLICE_NS);
    }
}

/* The engine that can start first; of equals the one that has idled least, so that a lane that has
 * to wait for its own last piece does not block an engine that others could use. */
static struct sim_engine *choose(struct sim_engine *engines, int count, int64_t earliest)
{
    struct sim_engine *best = engines;
    for (int i = 1; i < count; i++) {
        int64_t start = max64(earliest, engines[i].free_ns);
        int64_t best_start = max64(earliest, best->free_ns);
        if (start < best_start || (start == best_start && engines[i].free_ns > best->free_ns))
            best = &engines[i];
    }
    return best;
}

int64_t sim_engine_submit(enum sim_engine_kind kind, int device, int64_t pixels,
                          struct sim_lane *lane)
{
    const struct sim_engines *has = &sim_gpu_get(device)->engines[kind];
    int64_t earliest = now_ns();
    if (has->mpps <= 0 || has->count == 0)
        return earliest;
    struct sim_state *s = sim_state_lock();
    if (lane)
        earliest = max64(earliest, lane->ready_ns);
    struct sim_engine *engine = choose(s->devices[device].engines[kind], has->count, earliest);
    int64_t start = max64(earliest, engine->free_ns);
    int64_t end = start + (int64_t)((double)pixels * 1000.0 / has->mpps);
    engine->free_ns = end;
    engine->owner = sim_state_slot();
    if (lane)
        lane->ready_ns = end;
    book_busy(s->devices[device].busy[kind], start, end);
    sim_state_unlock();
    return end;
}

void sim_engine_wait(int64_t done_ns)
{
    struct timespec t = {done_ns / SECOND_NS, done_ns % SECOND_NS};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

void sim_engine_run(enum sim_engine_kind kind, int device, int64_t pixels, struct sim_lane *lane)
{
    sim_engine_wait(sim_engine_submit(kind, device, pixels, lane));
}

int sim_engine_utilisation(enum sim_engine_kind kind, int device)
{
    int engines = sim_gpu_get(device)->engines[kind].count;
    if (engines == 0)
        return 0;
    int64_t last = now_ns() / SLICE_NS - 1, busy = 0;
    struct sim_state *s = sim_state_lock();
    for (int i = 0; i < SIM_BUSY_SLICES; i++) {
        const struct sim_busy *b = &s->devices[device].busy[kind][i];
        if (b->when <= last && b->when > last - 16)
            busy += b->busy_ns;
    }
    sim_state_unlock();
    return (int)min64(100, (busy * 100 + engines * SECOND_NS / 2) / (engines * SECOND_NS));
}
