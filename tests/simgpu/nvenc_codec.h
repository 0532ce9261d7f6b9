/*
 * What an NVENC engine can do: codecs, capabilities, presets and profiles by their GUIDs. What the
 * simulator has no coder for (4:4:4, lossless, fields, intra refresh, 4:2:2) is reported as
 * missing, on every model, so that nothing is faked.
 */
#ifndef TESTS_SIMGPU_NVENC_CODEC_H
#define TESTS_SIMGPU_NVENC_CODEC_H

#include <ffnvcodec/nvEncodeAPI.h>
#include <stdbool.h>
#include <stddef.h>

#include "tests/simgpu/gpu.h"

enum nvenc_codec { NVENC_H264, NVENC_HEVC, NVENC_AV1, NVENC_CODECS };

/* Codecs that the GPU encodes and this build has a coder for; returns their number. */
int nvenc_codec_list(const struct sim_gpu *gpu, GUID ret[NVENC_CODECS]);

/* False: the GPU does not encode it. */
bool nvenc_codec_find(const struct sim_gpu *gpu, GUID guid, enum nvenc_codec *ret);

/* Value of a capability, 0 for what is not there. */
int nvenc_codec_capability(const struct sim_gpu *gpu, enum nvenc_codec codec, NV_ENC_CAPS which);

/* Number of profiles (at most 8) and buffer formats (at most 4) of a codec. */
int nvenc_codec_profiles(const struct sim_gpu *gpu, enum nvenc_codec codec, GUID ret[8]);
int nvenc_codec_formats(const struct sim_gpu *gpu, enum nvenc_codec codec,
                        NV_ENC_BUFFER_FORMAT ret[4]);

/* P1..P7; 1..7, or 0 for a GUID that is no preset. The presets of before API 10 have the number of
 * the one that has replaced them. */
enum { NVENC_PRESETS = 7 };
GUID nvenc_preset_guid(int preset);
int nvenc_preset_number(GUID guid);

/* Fills what a preset decides, field by field: the caller's struct may be of another version. */
void nvenc_preset_config(enum nvenc_codec codec, int preset, NV_ENC_TUNING_INFO tuning,
                         NV_ENC_CONFIG *ret);

/* Pixels of work that one pixel of a picture is: presets and codecs differ in speed. 1.0 always
 * when SIMGPU_NVENC_MPPS says what the engine does. */
double nvenc_codec_cost(enum nvenc_codec codec, int preset);

bool nvenc_guid_equal(GUID a, GUID b);

#endif
