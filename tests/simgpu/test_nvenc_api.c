/* NVENC's own API, for what libav* never does: handles that are stale, calls in the wrong order,
 * and the protocol of B-frames to the letter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "tests/support/nvenc_clip.h"
#include "tests/support/simgpu.h"

#if __has_include(<ffnvcodec/nvEncodeAPI.h>)
#include <ffnvcodec/dynlink_cuda.h>
#include <ffnvcodec/nvEncodeAPI.h>

/* --- in the child ---------------------------------------------------------------------------- */

enum { WIDTH = 320, HEIGHT = 192, BUFFERS = 16 };

static NV_ENCODE_API_FUNCTION_LIST api = {.version = NV_ENCODE_API_FUNCTION_LIST_VER};
static CUcontext context;

static void *symbol(const char *library, const char *name)
{
    void *lib = dlopen(library, RTLD_NOW);
    nvenc_check(lib, "%s", dlerror());
    void *found = dlsym(lib, name);
    nvenc_check(found, "%s", name);
    return found;
}

static void load(void)
{
    tcuInit *init = symbol("libcuda.so.1", "cuInit");
    tcuCtxCreate_v2 *create = symbol("libcuda.so.1", "cuCtxCreate_v2");
    NVENCSTATUS(*instance)
    (NV_ENCODE_API_FUNCTION_LIST *) = symbol("libnvidia-encode.so.1", "NvEncodeAPICreateInstance");
    nvenc_check(init(0) == CUDA_SUCCESS && create(&context, 0, 0) == CUDA_SUCCESS);
    nvenc_check(instance(&api) == NV_ENC_SUCCESS);
}

static void *open_session(void)
{
    void *encoder = NULL;
    NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS open = {.version =
                                                     NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS_VER,
                                                 .apiVersion = NVENCAPI_VERSION,
                                                 .deviceType = NV_ENC_DEVICE_TYPE_CUDA,
                                                 .device = context};
    nvenc_check(api.nvEncOpenEncodeSessionEx(&open, &encoder) == NV_ENC_SUCCESS);
    return encoder;
}

static NVENCSTATUS initialise(void *encoder, int b_frames, int width)
{
    NV_ENC_PRESET_CONFIG preset = {.version = NV_ENC_PRESET_CONFIG_VER,
                                   .presetCfg = {.version = NV_ENC_CONFIG_VER}};
    NVENCSTATUS status =
        api.nvEncGetEncodePresetConfigEx(encoder, NV_ENC_CODEC_H264_GUID, NV_ENC_PRESET_P3_GUID,
                                         NV_ENC_TUNING_INFO_HIGH_QUALITY, &preset);
    nvenc_check(status == NV_ENC_SUCCESS);
    preset.presetCfg.frameIntervalP = b_frames + 1;
    NV_ENC_INITIALIZE_PARAMS init = {.version = NV_ENC_INITIALIZE_PARAMS_VER,
                                     .encodeGUID = NV_ENC_CODEC_H264_GUID,
                                     .presetGUID = NV_ENC_PRESET_P3_GUID,
                                     .encodeWidth = (uint32_t)width,
                                     .encodeHeight = HEIGHT,
                                     .frameRateNum = 30,
                                     .frameRateDen = 1,
                                     .enablePTD = 1,
                                     .encodeConfig = &preset.presetCfg};
    return api.nvEncInitializeEncoder(encoder, &init);
}

static void *output_of(void *encoder)
{
    NV_ENC_CREATE_BITSTREAM_BUFFER out = {.version = NV_ENC_CREATE_BITSTREAM_BUFFER_VER};
    nvenc_check(api.nvEncCreateBitstreamBuffer(encoder, &out) == NV_ENC_SUCCESS);
    return out.bitstreamBuffer;
}

static void *input_of(void *encoder)
{
    NV_ENC_CREATE_INPUT_BUFFER in = {.version = NV_ENC_CREATE_INPUT_BUFFER_VER,
                                     .width = WIDTH,
                                     .height = HEIGHT,
                                     .bufferFmt = NV_ENC_BUFFER_FORMAT_NV12};
    nvenc_check(api.nvEncCreateInputBuffer(encoder, &in) == NV_ENC_SUCCESS);
    return in.inputBuffer;
}

static NVENCSTATUS encode(void *encoder, void *in, void *out, uint64_t number)
{
    NV_ENC_PIC_PARAMS p = {.version = NV_ENC_PIC_PARAMS_VER,
                           .inputBuffer = in,
                           .outputBitstream = out,
                           .bufferFmt = NV_ENC_BUFFER_FORMAT_NV12,
                           .inputTimeStamp = number,
                           .inputDuration = 1000 + number,
                           .frameIdx = (uint32_t)number,
                           .pictureStruct = NV_ENC_PIC_STRUCT_FRAME};
    return api.nvEncEncodePicture(encoder, &p);
}

static NVENCSTATUS end(void *encoder)
{
    NV_ENC_PIC_PARAMS p = {.version = NV_ENC_PIC_PARAMS_VER, .encodePicFlags = NV_ENC_PIC_FLAG_EOS};
    return api.nvEncEncodePicture(encoder, &p);
}

static NVENCSTATUS lock(void *encoder, void *out, NV_ENC_LOCK_BITSTREAM *ret)
{
    *ret = (NV_ENC_LOCK_BITSTREAM){.version = NV_ENC_LOCK_BITSTREAM_VER, .outputBitstream = out};
    return api.nvEncLockBitstream(encoder, ret);
}

/* A client that locks one buffer for each picture it gives, from the first SUCCESS on, finds each
 * of them full, in coding order, with what belongs to the picture. */
static void protocol(void)
{
    enum { B_FRAMES = 2, PICTURES = 40 };
    void *outputs[BUFFERS];
    NV_ENC_LOCK_BITSTREAM locked;
    void *encoder = open_session();
    nvenc_check(initialise(encoder, B_FRAMES, WIDTH) == NV_ENC_SUCCESS);
    void *in = input_of(encoder);
    for (int i = 0; i < BUFFERS; i++)
        outputs[i] = output_of(encoder);
    uint64_t seen = 0;
    int given = 0, taken = 0, last_anchor = -1;
    bool has_begun = false, is_over = false;
    while (taken < PICTURES) {
        if (given < PICTURES) {
            NVENCSTATUS status = encode(encoder, in, outputs[given % BUFFERS], (uint64_t)given);
            bool is_anchor = given % (B_FRAMES + 1) == 0;
            nvenc_check(status == NV_ENC_SUCCESS || status == NV_ENC_ERR_NEED_MORE_INPUT);
            nvenc_check(is_anchor || status == NV_ENC_ERR_NEED_MORE_INPUT, "B %d", given);
            has_begun |= status == NV_ENC_SUCCESS;
            nvenc_check(!is_anchor || !has_begun || status == NV_ENC_SUCCESS, "P %d", given);
            given++;
        } else if (!is_over) {
            nvenc_check(end(encoder) == NV_ENC_SUCCESS);
            is_over = true;
        }
        if (!has_begun)
            continue;
        nvenc_check(lock(encoder, outputs[taken % BUFFERS], &locked) == NV_ENC_SUCCESS,
                    "buffer %d of %d", taken, given);
        nvenc_check(locked.bitstreamSizeInBytes > 0 &&
                    locked.outputDuration == 1000 + locked.outputTimeStamp &&
                    locked.frameIdx == locked.outputTimeStamp);
        if (locked.pictureType != NV_ENC_PIC_TYPE_B) {
            nvenc_check((int)locked.outputTimeStamp > last_anchor);
            last_anchor = (int)locked.outputTimeStamp;
        } else {
            nvenc_check((int)locked.outputTimeStamp < last_anchor);
        }
        seen |= 1ULL << locked.outputTimeStamp;
        nvenc_check(api.nvEncUnlockBitstream(encoder, outputs[taken++ % BUFFERS]) ==
                    NV_ENC_SUCCESS);
    }
    nvenc_check(seen == (1ULL << PICTURES) - 1);
    api.nvEncDestroyInputBuffer(encoder, in);
    for (int i = 0; i < BUFFERS; i++)
        api.nvEncDestroyBitstreamBuffer(encoder, outputs[i]);
    nvenc_check(api.nvEncDestroyEncoder(encoder) == NV_ENC_SUCCESS);
}

#define EXPECT(call, code)                     \
    do {                                       \
        int got = (int)(call);                 \
        nvenc_check(got == (code), "%d", got); \
    } while (0)

/* Whatever is wrong gets the driver's code, and nothing crashes. */
static void misuse(void)
{
    NV_ENC_LOCK_BITSTREAM locked;
    void *encoder = open_session();
    int stranger;
    uint32_t n;
    EXPECT(end(encoder), NV_ENC_ERR_ENCODER_NOT_INITIALIZED);
    EXPECT(api.nvEncGetEncodeGUIDCount(NULL, &n), NV_ENC_ERR_INVALID_PTR);
    EXPECT(api.nvEncGetEncodeGUIDCount(&stranger, &n), NV_ENC_ERR_INVALID_ENCODERDEVICE);
    EXPECT(initialise(encoder, 9, WIDTH), NV_ENC_ERR_UNSUPPORTED_PARAM);
    EXPECT(initialise(encoder, 0, 64), NV_ENC_ERR_INVALID_PARAM);
    nvenc_check(strstr(api.nvEncGetLastErrorString(encoder), "minimum"));
    EXPECT(initialise(encoder, 0, WIDTH), NV_ENC_SUCCESS);
    EXPECT(initialise(encoder, 0, WIDTH), NV_ENC_ERR_INVALID_CALL);
    void *in = input_of(encoder), *out = output_of(encoder);
    EXPECT(encode(encoder, &stranger, out, 0), NV_ENC_ERR_INVALID_PARAM);
    EXPECT(encode(encoder, in, &stranger, 0), NV_ENC_ERR_INVALID_PARAM);
    EXPECT(lock(encoder, out, &locked), NV_ENC_ERR_INVALID_PARAM); /* nothing is in it */
    EXPECT(api.nvEncUnlockInputBuffer(encoder, in), NV_ENC_ERR_INVALID_PARAM);
    EXPECT(api.nvEncUnregisterResource(encoder, &stranger), NV_ENC_ERR_RESOURCE_NOT_REGISTERED);
    EXPECT(api.nvEncUnmapInputResource(encoder, &stranger), NV_ENC_ERR_RESOURCE_NOT_MAPPED);
    NV_ENC_REGISTER_RESOURCE host = {.version = NV_ENC_REGISTER_RESOURCE_VER,
                                     .resourceType = NV_ENC_INPUT_RESOURCE_TYPE_CUDADEVICEPTR,
                                     .width = WIDTH,
                                     .height = HEIGHT,
                                     .pitch = WIDTH,
                                     .bufferFormat = NV_ENC_BUFFER_FORMAT_NV12,
                                     .resourceToRegister = &stranger};
    EXPECT(api.nvEncRegisterResource(encoder, &host), NV_ENC_ERR_RESOURCE_REGISTER_FAILED);
    EXPECT(encode(encoder, in, out, 0), NV_ENC_SUCCESS);
    EXPECT(encode(encoder, in, out, 1), NV_ENC_ERR_INVALID_PARAM); /* still full */
    EXPECT(lock(encoder, out, &locked), NV_ENC_SUCCESS);
    EXPECT(api.nvEncUnlockBitstream(encoder, out), NV_ENC_SUCCESS);
    EXPECT(api.nvEncUnlockBitstream(encoder, out), NV_ENC_ERR_INVALID_PARAM);
    EXPECT(api.nvEncDestroyEncoder(encoder), NV_ENC_SUCCESS);
    EXPECT(api.nvEncDestroyEncoder(encoder), NV_ENC_ERR_INVALID_ENCODERDEVICE);
    EXPECT(end(encoder), NV_ENC_ERR_INVALID_ENCODERDEVICE);
}

/* Memory that is freed while it is registered is a client's error, not a fault of ours. */
static void freed_memory(void)
{
    tcuMemAlloc_v2 *alloc = symbol("libcuda.so.1", "cuMemAlloc_v2");
    tcuMemFree_v2 *release = symbol("libcuda.so.1", "cuMemFree_v2");
    CUdeviceptr memory;
    void *encoder = open_session();
    EXPECT(initialise(encoder, 0, WIDTH), NV_ENC_SUCCESS);
    void *out = output_of(encoder);
    EXPECT(alloc(&memory, WIDTH * HEIGHT * 3 / 2), 0);
    NV_ENC_REGISTER_RESOURCE r = {.version = NV_ENC_REGISTER_RESOURCE_VER,
                                  .resourceType = NV_ENC_INPUT_RESOURCE_TYPE_CUDADEVICEPTR,
                                  .width = WIDTH,
                                  .height = HEIGHT,
                                  .pitch = WIDTH,
                                  .bufferFormat = NV_ENC_BUFFER_FORMAT_NV12,
                                  .resourceToRegister = (void *)(uintptr_t)memory};
    r.height = HEIGHT * 4; /* more than there is */
    EXPECT(api.nvEncRegisterResource(encoder, &r), NV_ENC_ERR_RESOURCE_REGISTER_FAILED);
    r.height = HEIGHT;
    EXPECT(api.nvEncRegisterResource(encoder, &r), NV_ENC_SUCCESS);
    NV_ENC_MAP_INPUT_RESOURCE map = {.version = NV_ENC_MAP_INPUT_RESOURCE_VER,
                                     .registeredResource = r.registeredResource};
    EXPECT(encode(encoder, r.registeredResource, out, 0), NV_ENC_ERR_INVALID_PARAM);
    EXPECT(api.nvEncMapInputResource(encoder, &map), NV_ENC_SUCCESS);
    EXPECT(encode(encoder, map.mappedResource, out, 0), NV_ENC_SUCCESS);
    EXPECT(api.nvEncUnregisterResource(encoder, r.registeredResource), NV_ENC_ERR_INVALID_CALL);
    void *second = output_of(encoder);
    EXPECT(release(memory), 0);
    EXPECT(encode(encoder, map.mappedResource, second, 1), NV_ENC_ERR_INVALID_PARAM);
    EXPECT(api.nvEncDestroyEncoder(encoder), NV_ENC_SUCCESS);
}

static int all(void)
{
    load();
    protocol();
    misuse();
    freed_memory();
    return 0;
}

static const struct simgpu_part parts[] = {{"all", all}, {0}};

/* --- in the test ----------------------------------------------------------------------------- */

static void api_keeps_its_rules(void **state)
{
    (void)state;
    if (!nvenc_clip_can("h264_nvenc")) {
        print_message("skipped: the simulated NVENC is not here\n");
        skip();
    }
    assert_int_equal(simgpu_run("all", (const char *[]){"SIMGPU_NVENC_MPPS=0", NULL}, NULL), 0);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(api_keeps_its_rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return simgpu_main(argc, argv, parts, run_all);
}
#else
int main(int argc, char **argv)
{
    return simgpu_main(argc, argv, NULL, NULL); /* says that there is no simulator, and skips */
}
#endif
