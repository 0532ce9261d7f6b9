#include "tests/simgpu/state.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/simgpu/call.h"

enum { MAGIC = 0x53494d37 };

static struct sim_state *state;
static struct sim_process *self;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static void init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attr);
    pthread_mutexattr_destroy(&attr);
}

/* Maps the file, and fills it when this process is the first; the file lock makes that one at a
 * time. Without a file: a mapping of its own. */
static struct sim_state *map_state(void)
{
    const char *name = getenv("SIMGPU_STATE");
    int fd = -1;
    if (name && *name) {
        fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0 || flock(fd, LOCK_EX) < 0 || ftruncate(fd, sizeof *state) < 0)
            sim_die("SIMGPU_STATE: cannot use %s: %m", name);
    }
    struct sim_state *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                               MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    if (s == MAP_FAILED)
        sim_die("SIMGPU_STATE: cannot map the state: %m");
    if (s->magic != MAGIC) {
        init_mutex(&s->mutex);
        for (int i = 0; i < SIM_PROCESSES_MAX; i++)
            init_mutex(&s->processes[i].alive);
        s->size = sizeof *s;
        s->magic = MAGIC;
    }
    if (s->size != sizeof *s)
        sim_die("SIMGPU_STATE: %s is of another build: remove it", name);
    if (fd >= 0) {
        flock(fd, LOCK_UN); /* closing is not enough: the mapping keeps the file open */
        close(fd);
    }
    return s;
}

static void lock_robust(pthread_mutex_t *mutex)
{
    int rc = pthread_mutex_lock(mutex);
    if (rc == EOWNERDEAD)
        rc = pthread_mutex_consistent(mutex);
    if (rc)
        sim_die("the state cannot be locked: %s", strerror(rc));
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Frees a dead process's slot and what it held; engines stop working for it. */
static void bury(struct sim_process *p)
{
    int slot = (int)(p - state->processes);
    int64_t now = now_ns();
    for (int d = 0; d < SIM_DEVICES_MAX; d++)
        for (int kind = 0; kind < SIM_ENGINE_KINDS; kind++)
            for (int e = 0; e < SIM_ENGINES_MAX; e++) {
                struct sim_engine *engine = &state->devices[d].engines[kind][e];
                if (engine->owner == slot && engine->free_ns > now)
                    engine->free_ns = now;
            }
    memset(p->share, 0, sizeof p->share);
    memset(p->encoders, 0, sizeof p->encoders);
    p->pid = 0;
}

static void bury_the_dead(void)
{
    for (int i = 0; i < SIM_PROCESSES_MAX; i++) {
        struct sim_process *p = &state->processes[i];
        if (!p->pid || p == self)
            continue;
        int rc = pthread_mutex_trylock(&p->alive);
        if (rc == EBUSY)
            continue;
        if (rc == EOWNERDEAD)
            pthread_mutex_consistent(&p->alive);
        bury(p);
        pthread_mutex_unlock(&p->alive);
    }
}

struct hold {
    pthread_mutex_t *alive;
    sem_t is_held;
};

/* Holds the process's mutex until the process ends. */
static void *stay_alive(void *arg)
{
    struct hold *hold = arg;
    lock_robust(hold->alive);
    sem_post(&hold->is_held);
    for (;;)
        pause();
    return NULL;
}

/* Starts the thread and returns when it holds the mutex. */
static void announce(struct sim_process *p)
{
    static struct hold hold; /* outlives the call: the thread may still be in sem_post */
    pthread_t thread;
    sigset_t all, before;
    hold.alive = &p->alive;
    sem_init(&hold.is_held, 0, 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, NULL, stay_alive, &hold);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc)
        sim_die("no thread to hold the process's slot: %s", strerror(rc));
    pthread_detach(thread);
    while (sem_wait(&hold.is_held) < 0)
        ;
}

static struct sim_process *take_slot(void)
{
    for (int i = 0; i < SIM_PROCESSES_MAX; i++) {
        struct sim_process *p = &state->processes[i];
        if (p->pid)
            continue;
        announce(p);
        p->pid = (int32_t)getpid();
        return p;
    }
    sim_die("more than %d processes use these GPUs", SIM_PROCESSES_MAX);
}

static void open_state(void)
{
    pthread_mutex_lock(&opening);
    if (!state) {
        struct sim_state *mapped = map_state();
        lock_robust(&mapped->mutex);
        state = mapped;
        bury_the_dead();
        self = take_slot();
        pthread_mutex_unlock(&mapped->mutex);
    }
    pthread_mutex_unlock(&opening);
}

struct sim_state *sim_state_lock(void)
{
    open_state();
    lock_robust(&state->mutex);
    bury_the_dead();
    return state;
}

void sim_state_unlock(void)
{
    pthread_mutex_unlock(&state->mutex);
}

struct sim_share *sim_state_own(struct sim_state *s, int device)
{
    (void)s;
    return &self->share[device];
}

struct sim_encoder *sim_state_encoders(struct sim_state *s)
{
    (void)s;
    return self->encoders;
}

int sim_state_slot(void)
{
    return (int)(self - state->processes);
}

struct sim_share sim_state_total(const struct sim_state *s, int device)
{
    struct sim_share sum = {0};
    for (int i = 0; i < SIM_PROCESSES_MAX; i++) {
        const struct sim_share *one = &s->processes[i].share[device];
        sum.memory_bytes += one->memory_bytes;
        sum.encoder_sessions += one->encoder_sessions;
        sum.decoders += one->decoders;
    }
    return sum;
}
