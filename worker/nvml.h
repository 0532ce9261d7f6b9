/*
 * What NVIDIA's management library says of the machine's GPUs: what they are, and how busy. It is
 * loaded at run time (libnvidia-ml.so.1), so that the program starts where there is none, and of it
 * only what is used here is declared. It tells of all GPUs, whatever CUDA_VISIBLE_DEVICES hides, in
 * an order of its own: find one by its PCI address.
 *
 * A call may hang with the driver. Owner: nvml_close. Thread: any, one at a time.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

struct nvml;
struct nvml_device; /* borrowed from the library, for as long as it is open */

/* ERR_DEVICE with the reason and the way out: no driver, one that does not fit its kernel module, a
 * container that has lost its devices. */
int nvml_open(struct nvml **ret, struct err *e);
void nvml_close(struct nvml **n);

const char *nvml_driver_version(const struct nvml *n); /* "570.133.20"; "" when it does not say */
int nvml_cuda_version(const struct nvml *n); /* highest of the driver: 12080 is 12.8; 0: unknown */

int nvml_count(const struct nvml *n, int *ret, struct err *e);
int nvml_get(const struct nvml *n, int index, struct nvml_device **ret, struct err *e);
int nvml_find(const struct nvml *n, const char *bus_id, struct nvml_device **ret, struct err *e);

enum nvml_mig { NVML_MIG_NONE, NVML_MIG_OFF, NVML_MIG_ON }; /* NONE: this model has no MIG */

struct nvml_facts {
    char model[96], uuid[96];
    int64_t memory_bytes;
    enum nvml_mig mig;
    int mps_clients; /* processes that the MPS server runs on it */
};
int nvml_read_facts(const struct nvml *n, struct nvml_device *device, struct nvml_facts *ret,
                    struct err *e);

struct nvml_load { /* over the driver's last sampling period, up to a second */
    int encoder_percent, decoder_percent; /* of all engines; -1: the driver does not say */
    int encoder_sessions;                 /* of all processes; -1 likewise */
    int64_t memory_used_bytes;
};
int nvml_read_load(const struct nvml *n, struct nvml_device *device, struct nvml_load *ret,
                   struct err *e);
