/* Where stages run: a table of GPUs, sources and profiles, and what must be said of each. */
#include "fixture.h"

#include "pipelines/plan/route.h"

#define NVDEC                                                                                     \
    "decoders: ["                                                                                 \
    "{codec: h264, chroma: '4:2:0', bits: 8, min_width: 48, min_height: 16, max_width: 4096, "    \
    "max_height: 4096, max_blocks: 65536}, "                                                      \
    "{codec: hevc, chroma: '4:2:0', bits: 10, min_width: 144, min_height: 144, max_width: 8192, " \
    "max_height: 8192, max_blocks: 262144}]"
#define NVENC                                                                                   \
    "encoders: ["                                                                               \
    "{name: h264_nvenc, stands_for: libx264, min_width: 145, min_height: 49, max_width: 4096, " \
    "max_height: 4096, max_b_frames: 4, has_b_references: true}, "                              \
    "{name: hevc_nvenc, stands_for: libx265, min_width: 129, min_height: 33, max_width: 8192, " \
    "max_height: 8192, max_b_frames: 0, has_10_bit: true}, "                                    \
    "{name: av1_nvenc, stands_for: libsvtav1, missing: this GPU does not encode that codec}]"
#define NO_NVENC "encoders: [{name: h264_nvenc, stands_for: libx264, missing: it has no engine}]"
#define GPU(...) "{device: 'cuda:0', model: NVIDIA L4, " __VA_ARGS__ "}"

static const char whole[] = GPU(NVDEC ", " NVENC), decode_only[] = GPU(NVDEC ", " NO_NVENC),
                  no_kernels[] = GPU("no_kernels: built without, " NVDEC ", " NVENC),
                  no_video[] = GPU("no_decoder: no libnvcuvid, " NVENC),
                  no_deinterlacer[] = GPU("no_deinterlacer: none here, " NVDEC ", " NVENC);

#define PROFILE(...) "{renditions: [{name: a, height: 180, bitrate: 400k}], " __VA_ARGS__ "}"

static const char x264[] = PROFILE("encoder: libx264"), x265[] = PROFILE("encoder: libx265"),
                  x265_10[] = PROFILE("encoder: libx265, pix_fmt: yuv420p10le"),
                  x264_10[] = PROFILE("encoder: libx264, pix_fmt: yuv420p10le"),
                  x264_422[] = PROFILE("encoder: libx264, pix_fmt: yuv422p"),
                  av1[] = PROFILE("encoder: libsvtav1"), vpx[] = PROFILE("encoder: libvpx-vp9"),
                  nvenc[] = PROFILE("encoder: h264_nvenc"),
                  many_b[] = PROFILE("encoder: libx264, options: {bf: 5}"),
                  b_references[] = PROFILE("encoder: libx265, options: {b_ref_mode: middle}"),
                  no_references[] = PROFILE("encoder: libx265, options: {b_ref_mode: disabled}"),
                  tiny[] = "{encoder: libx264, renditions: [{name: a, height: 180, bitrate: 400k}, "
                           "{name: tiny, height: 48, bitrate: 50k}]}";

struct route_case {
    const char *gpu, *profile;
    const char *codec, *pix_fmt;
    int bits, width, height;
    const char *more;                        /* of the source's video */
    enum route_place decode, filter, encode; /* with the fallback allowed */
    const char *why;                         /* in the route and in the refusal; NULL: none */
};

#define SD   320, 180, ""
#define AVC  "h264", "yuv420p", 8
#define H10  "hevc", "yuv420p10le", 10
#define PURE ROUTE_GPU, ROUTE_GPU, ROUTE_GPU
#define UP   ROUTE_CPU, ROUTE_GPU, ROUTE_GPU
#define UP_N ROUTE_CPU, ROUTE_CPU, ROUTE_GPU
#define DOWN ROUTE_GPU, ROUTE_GPU, ROUTE_CPU
#define NONE ROUTE_CPU, ROUTE_CPU, ROUTE_CPU

static const struct route_case cases[] = {
    {NULL, x264, "h264", "yuv422p10le", 10, SD, NONE, NULL},
    {whole, x264, AVC, SD, PURE, NULL},
    {whole, x264, "h264", "yuvj420p", 8, SD, PURE, NULL},
    {whole, x265_10, H10, SD, PURE, NULL},
    {whole, nvenc, AVC, SD, PURE, NULL},
    /* NVDEC */
    {whole, x264, "h264", "yuv420p10le", 10, SD, UP,
     "decode: NVDEC does not decode h264 4:2:0 of 10"},
    {whole, x264, "h264", "yuv422p", 8, SD, UP,
     "decode: NVDEC does not decode h264 4:2:2 of 8 bits"},
    {whole, x264, "prores", "yuv422p10le", 10, SD, UP, "decode: NVDEC does not decode prores"},
    {whole, x264, AVC, 4100, 2160, "", UP, "decode: NVDEC does not decode h264 of 4100x2160"},
    {whole, x264, AVC, 4096, 4096, "", PURE, NULL},
    {whole, x265_10, H10, 320, 136, "", UP, "hevc of 320x136, only 144x144 to 8192x8192"},
    {whole, x265_10, H10, 320, 138, "", PURE, NULL}, /* of 144 coded lines */
    {no_video, x264, AVC, SD, UP, "decode: no libnvcuvid"},
    /* filters */
    {no_kernels, x264, AVC, SD, PURE, NULL},
    {no_kernels, x264, AVC, 320, 180, "rotation: 90", UP, "decode: turning or range"},
    {no_kernels, x264, "h264", "yuvj420p", 8, SD, UP, "decode: turning or range"},
    {whole, x264, AVC, 320, 180, "rotation: 90, is_flipped: true", PURE, NULL},
    {no_kernels, x265, H10, 320, 180, "color_transfer: smpte2084", UP_N,
     "filters: tone mapping: built"},
    {whole, x265, H10, 320, 180, "color_transfer: smpte2084", PURE, NULL},
    {no_deinterlacer, x264, AVC, 320, 180, "is_interlaced: true", UP,
     "decode: deinterlacing: none"},
    {whole, x264_422, AVC, SD, NONE,
     "encode: 4:2:0 of 8 or 10 bits is made there, not pix_fmt yuv422p"},
    /* NVENC */
    {decode_only, x264, AVC, SD, DOWN, "encode: h264_nvenc: it has no engine"},
    {decode_only, x264, "h264", "yuv422p", 8, SD, NONE,
     "4:2:2 of 8 bits (yuv422p); encode: h264_nvenc"},
    {whole, av1, AVC, SD, DOWN, "encode: av1_nvenc: this GPU does not encode that codec"},
    {whole, vpx, AVC, SD, DOWN, "encode: nothing there does the work of libvpx-vp9"},
    {whole, x264_10, AVC, SD, DOWN, "encode: h264_nvenc does not encode 10 bits"},
    {whole, tiny, AVC, SD, DOWN, "rendition tiny: h264_nvenc does not encode 86x48, only 145x49"},
    {whole, many_b, AVC, SD, DOWN,
     "rendition a: h264_nvenc makes at most 4 B-frames in a row, not 5"},
    {whole, b_references, AVC, SD, DOWN, "rendition a: hevc_nvenc has no B-frames as reference"},
    {whole, no_references, AVC, SD, PURE, NULL},
};

static struct source *source_of(const struct route_case *c)
{
    return fixture_source("{video: {codec: %s, pix_fmt: %s, bit_depth: %d, width: %d, height: %d, "
                          "time_base: 1/25, end: 250, frames: 250, frame_rate: 25, is_cfr: true, "
                          "max_interval: 1%s%s}, duration: 10%s%s}",
                          c->codec, c->pix_fmt, c->bits, c->width, c->height, *c->more ? ", " : "",
                          c->more, c->gpu ? ", gpu: " : "", c->gpu ? c->gpu : "");
}

static int plan_of(const struct route_case *c, bool allow_fallback, struct plan **ret,
                   struct err *e)
{
    struct source *source = source_of(c);
    struct profile *profile = fixture_read(&profile_type, c->profile);
    const struct plan_options options = {.segments = -1, .allow_fallback = allow_fallback};
    int rc = plan_make(profile, source, &options, ret, e);
    bind_free(&profile_type, &profile);
    bind_free(&source_type, &source);
    return rc;
}

static void test_routes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct route_case *c = &cases[i];
        struct plan *plan = NULL;
        struct err e;
        if (plan_of(c, true, &plan, &e) < 0)
            fail_msg("case %zu: %s", i, e.msg);
        const struct route *r = plan->route;
        if (r->decode != (int)c->decode || r->filter != (int)c->filter ||
            r->encode != (int)c->encode || !r->why != !c->why ||
            (c->why && !strstr(r->why, c->why)))
            fail_msg("case %zu: %s %s %s: %s", i, route_place_names[r->decode],
                     route_place_names[r->filter], route_place_names[r->encode],
                     r->why ? r->why : "(no reason)");
        bind_free(&plan_type, &plan);
    }
}

/* Without the permission the same is refused, in one line with cause and way out. */
static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct route_case *c = &cases[i];
        struct plan *plan = NULL;
        struct err e = {0};
        int rc = plan_of(c, false, &plan, &e);
        if (!c->why) {
            assert_int_equal(rc, 0);
            assert_false(plan->route->why);
        } else if (rc != -ERR_DEVICE || !strstr(e.msg, c->why) ||
                   !strstr(e.msg, "device cuda:0 (NVIDIA L4): ") ||
                   !strstr(e.msg, "--allow-fallback") || !strstr(e.msg, "--device cpu")) {
            fail_msg("case %zu: %d: %s", i, rc, e.msg);
        }
        bind_free(&plan_type, &plan);
    }
}

/* A profile that names NVENC itself has no other encoder to fall back on. */
static void test_named_encoder(void **state)
{
    (void)state;
    static const struct route_case no_engine = {decode_only, nvenc, AVC, SD, PURE, NULL};
    struct plan *plan = NULL;
    struct err e = {0};
    assert_int_equal(plan_of(&no_engine, true, &plan, &e), -ERR_DEVICE);
    assert_non_null(strstr(e.msg, "use a profile whose encoder both have"));
    static const struct route_case no_decoder = {whole, nvenc, "h264", "yuv422p", 8, SD, UP, NULL};
    assert_int_equal(plan_of(&no_decoder, true, &plan, &e), 0);
    assert_int_equal(plan->route->encode, ROUTE_GPU);
    bind_free(&plan_type, &plan);
}

static void test_notes(void **state)
{
    (void)state;
    static const struct route_case c = {decode_only, x264, AVC, SD, DOWN, NULL};
    struct plan *plan = NULL;
    struct err e = {0};
    assert_int_equal(plan_of(&c, true, &plan, &e), 0);
    assert_int_equal(plan->n_notes, 1);
    assert_string_equal(plan->notes[0],
                        "not on cuda:0 (NVIDIA L4): encode: h264_nvenc: it has no engine");
    bind_free(&plan_type, &plan);
}

static void test_chroma(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"yuv420p", "4:2:0"},  {"yuvj420p", "4:2:0"}, {"yuv420p12le", "4:2:0"},
        {"nv12", "4:2:0"},     {"p010le", "4:2:0"},   {"yuv422p10le", "4:2:2"},
        {"yuvj422p", "4:2:2"}, {"yuv444p", "4:4:4"},  {"gbrp10le", "4:4:4"},
        {"yuv410p", "other"},  {"gray", "other"},     {"", "other"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(route_chroma(names[i][0]), names[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_named_encoder), cmocka_unit_test(test_notes),
        cmocka_unit_test(test_chroma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
