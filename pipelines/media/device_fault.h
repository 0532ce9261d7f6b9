/*
 * What a failing call on a GPU means for the task, in three cases that are to be tried again in
 * three ways:
 *
 *     capacity   memory or NVENC sessions are used up     ERR_RESOURCE; the GPU is well
 *     device     it fails, or cannot do what is asked     ERR_DEVICE
 *     broken     the process has lost its context         ERR_DEVICE, and the process must end
 *
 * After an error that a kernel or an engine raised later than the call that caused it, every call
 * in the process fails, with whatever libav makes of it ("Invalid data", "end of file"). So the
 * third case is not read from messages: the driver is asked, once a task has failed.
 * Any thread.
 */
#pragma once
#include <stdbool.h>

#include "pipelines/media/device.h"

/* By libav's code alone: out of memory, a library beneath libav that failed (on a GPU: the driver),
 * or otherwise. */
enum err_kind device_fault_kind(int averror, enum err_kind otherwise);

/* Fills *e with "<fmt>: <libav's reason>" and returns -kind; on a GPU, capacity is told by the
 * driver's own words, and the way out is added. */
int device_fault(bool is_gpu, enum err_kind otherwise, int averror, struct err *e, const char *fmt,
                 ...) __attribute__((format(printf, 5, 6)));

/* Asks the driver whether the device still works in this process. If not, *why becomes ERR_DEVICE
 * and begins with that. False for the CPU and for d NULL. May hang with the driver. */
bool device_is_broken(const struct device *d, struct err *why);
