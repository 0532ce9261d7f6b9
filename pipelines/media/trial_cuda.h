/* The part of trial.h that asks the driver itself. */
#pragma once
#include "pipelines/media/trial.h"

size_t trial_cuda_decoders(const struct device *device, struct trial ret[TRIALS_MAX],
                           struct trial_engines *ret_engines);
