/*
 * What all processes on the machine share of its GPUs: memory taken, NVENC sessions, engine clocks.
 *
 * It lies in a mapping of the file SIMGPU_STATE, so that processes started with the same file share
 * the same GPUs; without the variable a process has GPUs of its own. A robust mutex guards it. What
 * a process holds is booked under its slot and given back when the process is gone, however it
 * ended: each has a thread that holds a robust mutex of its own until the end, which the kernel
 * marks when the thread dies, and which the next process sees. No file, no signal and no /proc is
 * needed for that, so that it works in a sandbox, too.
 */
#pragma once
#include <pthread.h>
#include <stdint.h>

#include "tests/simgpu/gpu.h"

enum { SIM_PROCESSES_MAX = 64, SIM_BUSY_SLICES = 64, SIM_ENCODERS_MAX = 32 };

/* What one process holds of one device. */
struct sim_share {
    int64_t memory_bytes;
    int encoder_sessions; /* open NVENC sessions */
    int decoders;
};

/* One engine: NVENC or NVDEC. Times are CLOCK_MONOTONIC in ns. */
struct sim_engine {
    int64_t free_ns; /* when it has done all that it was given */
    int owner;       /* slot of the process that gave it the last piece */
};

struct sim_device {
    struct sim_engine engines[SIM_ENGINE_KINDS][SIM_ENGINES_MAX];
    /* Busy time by slices of fixed length, a ring; `when` says which slice of time an entry is. */
    struct sim_busy {
        int64_t when, busy_ns;
    } busy[SIM_ENGINE_KINDS][SIM_BUSY_SLICES];
};

/* One NVENC session, as NVML tells of it; those beyond SIM_ENCODERS_MAX a process are counted only.
 */
struct sim_encoder {
    int32_t id; /* 0: none */
    int32_t device, codec, width, height;
    int64_t frames, opened_ns; /* when the first of them came */
    int64_t last_ns;           /* when the last one is done */
    int64_t latency_ns;        /* summed over the frames */
};

struct sim_process {
    pthread_mutex_t alive; /* held by a thread of the process as long as it lives */
    int32_t pid;           /* 0: the slot is free */
    struct sim_share share[SIM_DEVICES_MAX];
    struct sim_encoder encoders[SIM_ENCODERS_MAX];
};

struct sim_state {
    uint32_t magic, size;
    pthread_mutex_t mutex;
    struct sim_device devices[SIM_DEVICES_MAX];
    struct sim_process processes[SIM_PROCESSES_MAX];
    uint64_t calls[256]; /* of entry points that a fault rule counts over all processes */
};

/* Locks the state; dead processes have been cleared away when it returns. Never fails: a simulator
 * that cannot have its state ends the process with a message. */
struct sim_state *sim_state_lock(void);
void sim_state_unlock(void);

/* This process's own holding; call between lock and unlock. */
struct sim_share *sim_state_own(struct sim_state *s, int device);

/* Index of this process; call between lock and unlock. */
int sim_state_slot(void);

/* This process's sessions, SIM_ENCODERS_MAX of them; call between lock and unlock. */
struct sim_encoder *sim_state_encoders(struct sim_state *s);

/* Sum over all processes; call between lock and unlock. */
struct sim_share sim_state_total(const struct sim_state *s, int device);
