/*
 * What is on this machine and whether it works, for `transcode doctor`. A driver that is wedged
 * answers no call and cannot be interrupted, so that each part (the system, the CPU, each GPU) is
 * looked at by a process of its own, `transcode inspect PART`, which writes all it knows as a line
 * of JSON before each step. Its parent takes the last line, and when the time is over it knows the
 * step that never ended. Thread: main.
 */
#pragma once
#include "common/bind.h"

struct inspect_library {
    char *name;
    bool is_there;
    char *reason; /* why not */
};

struct inspect_coder {
    char *codec;
    int bits; /* 0: sound */
    bool works;
    char *reason; /* why not */
};

struct inspect_system {
    char *step;    /* that it was at when it ended; NULL: it is complete */
    char *failure; /* why it is not */
    char *driver, *driver_needed;
    char *cuda, *nvenc_api, *nvenc_api_needed; /* "12.8"; NULL: unknown */
    int cuda_devices;                          /* that this process may use */
    int gpus;                                  /* that NVML sees */
    char *mps;                                 /* "on, ..." or "off, ..." */
    char *container;                           /* kind of; NULL: none that is known */
    struct inspect_library *libraries;
    size_t n_libraries;
    char **problems; /* each with its way out */
    size_t n_problems;
};

struct inspect_device {
    char *device; /* "cuda:0" */
    char *step, *failure;
    char *model, *uuid, *bus_id, *compute;
    int64_t memory_bytes, memory_used_bytes;
    int nvenc_engines, nvdec_engines;
    char *mig; /* "on", "off"; NULL: it has none */
    int mps_clients;
    struct inspect_coder *encoders, *decoders;
    size_t n_encoders, n_decoders;
    bool is_right;          /* the self-test passed */
    bool has_encoder;       /* with the device's own encoder */
    char *selftest;         /* what was done, or why it failed */
    bool is_right_confined; /* the same within a session's sandbox */
    char *confined;
    char *sandbox, *sandbox_missing;
    double encode_fps, decode_fps;        /* 0: not measured */
    int encoder_percent, decoder_percent; /* the highest load; -1: not known */
    int encoder_percent_before, decoder_percent_before;
    double times_cpu; /* speed of the same work, CPU = 1; 0: not compared */
    bool is_usable;
    char **problems;
    size_t n_problems;
};

extern const struct bind_struct inspect_system_type, inspect_device_type;

struct inspect_options {
    int64_t speed_us;   /* of each of the two measurements of speed; 0: none */
    int64_t timeout_us; /* of each process */
};

/* The child's side: prints, and returns 0. part: "system", "cpu" or "cuda:N". speed_us as above.
 * Ends the process: a driver's exit handlers may hang, too. */
__attribute__((noreturn)) void inspect_main(const char *part, int64_t speed_us);

/* The parent's side. Fails only when no process can be started: what was not found out says why in
 * *ret (bind_free with the type). */
int inspect_system(const struct inspect_options *o, struct inspect_system **ret, struct err *e);
int inspect_device(const char *device, const struct inspect_options *o, struct inspect_device **ret,
                   struct err *e);

/* Compares a GPU's speed with the CPU's, which may be NULL. */
void inspect_compare(struct inspect_device *gpu, const struct inspect_device *cpu);

/* The file of a program on PATH (caller frees); NULL: none. */
char *inspect_find_program(const char *name);
