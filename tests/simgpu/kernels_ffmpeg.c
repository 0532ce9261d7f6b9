#include "tests/simgpu/kernels.h"

/* Of FFmpeg's filters: scale_cuda, yadif_cuda, bwdif_cuda (since 6.1). */
const struct sim_kernel sim_kernels_ffmpeg[] = {
    {"Subsample_*", kernel_scale},
    {"yadif_*", kernel_yadif},
    {"bwdif_*", kernel_bwdif},
    {0},
};
