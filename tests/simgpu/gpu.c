#include "tests/simgpu/gpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/call.h"

/* Sets of codecs by generation of the engine. */
enum {
    DEC_BASE = SIM_MPEG1 | SIM_MPEG2 | SIM_MPEG4 | SIM_VC1 | SIM_H264 | SIM_HEVC | SIM_HEVC_10 |
               SIM_HEVC_12 | SIM_VP8 | SIM_VP9 | SIM_VP9_10 | SIM_VP9_12,
    DEC_TURING = DEC_BASE | SIM_444,
    DEC_GA100 = DEC_BASE | SIM_444 | SIM_JPEG,
    DEC_AMPERE = DEC_TURING | SIM_AV1 | SIM_AV1_10,
    DEC_ADA = DEC_AMPERE | SIM_JPEG,
    DEC_BLACKWELL = DEC_ADA | SIM_H264_10 | SIM_422,
    ENC_TURING = SIM_H264 | SIM_HEVC | SIM_HEVC_10 | SIM_444,
    ENC_ADA = ENC_TURING | SIM_AV1 | SIM_AV1_10,
    ENC_BLACKWELL = ENC_ADA | SIM_H264_10 | SIM_422,
};

/* key, name, compute capability, SMs, clock, MiB, PCI id, {NVENC}, {NVDEC}, sessions */
static const struct sim_gpu models[] = {
    {"T4",
     "Tesla T4",
     7,
     5,
     40,
     1590000,
     15360,
     0x1eb810de,
     {{1, 500, ENC_TURING}, {2, 900, DEC_TURING}},
     0},
    {"A10",
     "NVIDIA A10",
     8,
     6,
     72,
     1695000,
     23028,
     0x223610de,
     {{1, 550, ENC_TURING}, {2, 1000, DEC_AMPERE}},
     0},
    {"L4",
     "NVIDIA L4",
     8,
     9,
     58,
     2040000,
     23034,
     0x27b810de,
     {{2, 700, ENC_ADA}, {4, 1300, DEC_ADA}},
     0},
    {"L40",
     "NVIDIA L40",
     8,
     9,
     142,
     2490000,
     46068,
     0x26b510de,
     {{3, 700, ENC_ADA}, {3, 1300, DEC_ADA}},
     0},
    {"L40S",
     "NVIDIA L40S",
     8,
     9,
     142,
     2520000,
     46068,
     0x26b910de,
     {{3, 700, ENC_ADA}, {3, 1300, DEC_ADA}},
     0},
    {"RTXPRO6000",
     "NVIDIA RTX PRO 6000 Blackwell Server Edition",
     12,
     0,
     188,
     2430000,
     97887,
     0x2bb510de,
     {{4, 900, ENC_BLACKWELL}, {4, 1800, DEC_BLACKWELL}},
     0},
    {"A100",
     "NVIDIA A100-SXM4-80GB",
     8,
     0,
     108,
     1410000,
     81920,
     0x20b210de,
     {{0, 0, 0}, {5, 900, DEC_GA100}},
     0},
    {"H100",
     "NVIDIA H100 80GB HBM3",
     9,
     0,
     132,
     1980000,
     81559,
     0x233010de,
     {{0, 0, 0}, {7, 1200, DEC_ADA}},
     0},
    {"H200",
     "NVIDIA H200",
     9,
     0,
     132,
     1980000,
     143771,
     0x233510de,
     {{0, 0, 0}, {7, 1200, DEC_ADA}},
     0},
    {"B200",
     "NVIDIA B200",
     10,
     0,
     148,
     1965000,
     183359,
     0x290110de,
     {{0, 0, 0}, {7, 1800, DEC_BLACKWELL}},
     0},
};

enum { MODELS = sizeof models / sizeof models[0] };

/* A number from the environment, at least `min`; `otherwise` when it is not set. */
static double setting(const char *name, double min, double otherwise)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return otherwise;
    char *end;
    double value = strtod(text, &end);
    if (*end || !(value >= min))
        sim_die("%s=%s is not a number from %g", name, text, min);
    return value;
}

int sim_gpu_count(void)
{
    int count = (int)setting("SIMGPU_DEVICES", 0, 1);
    if (count > SIM_DEVICES_MAX)
        sim_die("SIMGPU_DEVICES=%d: at most %d", count, SIM_DEVICES_MAX);
    return count;
}

static const struct sim_gpu *find(const char *key, size_t length)
{
    for (int i = 0; i < MODELS; i++)
        if (strlen(models[i].key) == length && strncasecmp(models[i].key, key, length) == 0)
            return &models[i];
    sim_die("SIMGPU_MODEL: no model '%.*s'; T4, A10, L4, L40, L40S, RTXPRO6000, A100, H100, H200, "
            "B200",
            (int)length, key);
}

/* Entry `n`, counted round and round, of a comma list. */
static const struct sim_gpu *pick(const char *list, int n)
{
    int entries = 1;
    for (const char *c = list; *c; c++)
        entries += *c == ',';
    for (n %= entries; n > 0; n--)
        list = strchr(list, ',') + 1;
    return find(list, strcspn(list, ","));
}

static void adjust(struct sim_gpu *gpu)
{
    static const char *const count[] = {"SIMGPU_NVENC_ENGINES", "SIMGPU_NVDEC_ENGINES"};
    static const char *const rate[] = {"SIMGPU_NVENC_MPPS", "SIMGPU_NVDEC_MPPS"};
    for (int kind = 0; kind < SIM_ENGINE_KINDS; kind++) {
        struct sim_engines *e = &gpu->engines[kind];
        e->count = (int)setting(count[kind], 0, e->count);
        e->mpps = setting(rate[kind], 0, e->mpps);
        if (e->count > SIM_ENGINES_MAX)
            sim_die("%s=%d: at most %d", count[kind], e->count, SIM_ENGINES_MAX);
    }
    gpu->memory_mib = (int64_t)setting("SIMGPU_MEM_MIB", 1, (double)gpu->memory_mib);
    gpu->max_sessions = (int)setting("SIMGPU_MAX_SESSIONS", 0, gpu->max_sessions);
}

static struct sim_gpu installed[SIM_DEVICES_MAX];

static void install(void)
{
    const char *list = getenv("SIMGPU_MODEL");
    for (int i = 0; i < SIM_DEVICES_MAX; i++) {
        installed[i] = *pick(list && *list ? list : "L4", i);
        adjust(&installed[i]);
    }
}

const struct sim_gpu *sim_gpu_get(int device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (device < 0 || device >= sim_gpu_count())
        return NULL;
    pthread_once(&once, install);
    return &installed[device];
}

void sim_gpu_uuid(int device, uint8_t ret_bytes[16])
{
    memset(ret_bytes, 0, 16);
    ret_bytes[0] = 0x5e;
    ret_bytes[1] = 0x1d;
    ret_bytes[15] = (uint8_t)(device + 1);
}

void sim_gpu_pci_bus_id(int device, char ret[32])
{
    snprintf(ret, 32, "00000000:%02X:00.0", device + 1);
}

int sim_driver_version(void)
{
    return 12080;
}
