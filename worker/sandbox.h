/*
 * What a session may still do once it is closed: read and write the descriptors it holds, work
 * beneath its scratch root, use memory up to a limit, run threads. Nothing else: no file of the
 * system, no socket, no program, no child, no signal to another process. With a GPU, its driver may
 * also open again the device nodes that it holds, and has ioctl.
 *
 * Layers, each of which holds alone where another cannot be had: rlimits and dropped capabilities,
 * Landlock (file system, TCP, signals), seccomp (the list of system calls). Thread: the only one of
 * the process (Landlock and capabilities bind the calling thread and those it starts).
 */
#pragma once
#include "common/err.h"
#include "pipelines/media/limits.h"

#define SANDBOX_KEPT_FDS 4 /* 0 stdin, 1 stdout, 2 stderr, 3 channel */

struct sandbox_state {
    int landlock_abi; /* 0: not in force */
    bool has_seccomp;
    char missing[256]; /* "" or what could not be had, and why */
};

/* Closes every descriptor from SANDBOX_KEPT_FDS up, but scratch_fd (-1: none). Before a device is
 * opened, whose descriptors then stay. */
void sandbox_close_descriptors(int scratch_fd);

/* Applies all layers for good. has_gpu: what a GPU's driver needs on the descriptors that it holds
 * stays allowed. A layer that the kernel does not have is noted in *ret, the rest is applied.
 * ERR_BUG: even the basic ones failed; do not go on. */
int sandbox_enter(const struct limits *limits, int scratch_fd, bool has_gpu,
                  struct sandbox_state *ret, struct err *e);

/* "rlimits, Landlock 7, seccomp"; caller frees. */
char *sandbox_describe(const struct sandbox_state *s);

/* The layers. Each returns 0, or -1 with the reason in `why`. */
int sandbox_limit_resources(const struct limits *limits, bool has_gpu, char *why, size_t size);
int sandbox_drop_privileges(char *why, size_t size);
int sandbox_restrict_files(int scratch_fd, bool has_gpu, int *ret_abi, char *why, size_t size);
int sandbox_restrict_calls(bool has_gpu, char *why, size_t size);
