/*
 * FFmpeg's scale_cuda: "Subsample_ALGORITHM_IN_OUT" scales and converts the first plane, the same
 * with "_uv" both chroma planes.
 *
 * Each algorithm is a separable filter of four taps an axis, and so it is done here: in float,
 * rounded once at the end. The card rounds in between, so that its pictures differ by a value or
 * two. Scaling down by more than two skips texels, on the card as well.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/simgpu/kernels.h"

enum { TAPS = 4 };

static const struct format {
    const char *name;
    int bytes, bits; /* of a sample, MSB aligned when bits < 8 * bytes */
    bool is_interleaved;
} formats[] = {
    {"yuv420p", 1, 8, false}, {"nv12", 1, 8, true},    {"yuv444p", 1, 8, false},
    {"p010le", 2, 10, true},  {"p016le", 2, 16, true}, {"yuv444p16le", 2, 16, false},
};

/* Where an output sample takes its input from: texels first..first+3. */
struct taps {
    int first;
    float weight[TAPS];
};

/* Every algorithm gives the weights of the texels around `at`, in texels, centres at .5; `scale` is
 * input size / output size. */
typedef void algorithm(float at, float scale, float param, struct taps *ret);

static void nearest(float at, float scale, float param, struct taps *ret)
{
    (void)scale, (void)param;
    *ret = (struct taps){(int)floorf(at), {1}};
}

static void add_linear(float at, float share, struct taps *t)
{
    float left = floorf(at - 0.5f), fraction = at - 0.5f - left;
    int i = (int)left - t->first;
    t->weight[i] += share * (1 - fraction);
    if (fraction > 0)
        t->weight[i + 1] += share * fraction;
}

/* The mean of two linear samples, further apart the more it scales down. */
static void bilinear(float at, float scale, float param, struct taps *ret)
{
    (void)param;
    float wide = fminf(fmaxf(0.5f * (scale - 1), 0), 1), apart = wide / (0.5f + wide);
    *ret = (struct taps){.first = (int)floorf(at - apart - 0.5f)};
    add_linear(at - apart, 0.5f, ret);
    add_linear(at + apart, 0.5f, ret);
}

static void cubic(float at, float scale, float param, struct taps *ret)
{
    (void)scale;
    float left = floorf(at - 0.5f), x = at - 0.5f - left;
    float a = param > 99998 ? 0 : -param; /* the filter's default is a huge number */
    ret->first = (int)left - 1;
    ret->weight[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
    ret->weight[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
    ret->weight[2] = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1;
    ret->weight[3] = 1 - ret->weight[0] - ret->weight[1] - ret->weight[2];
}

static void lanczos(float at, float scale, float param, struct taps *ret)
{
    (void)scale, (void)param;
    const float pi = 3.14159265f;
    float left = floorf(at - 0.5f), x = at - 0.5f - left, sum = 0;
    ret->first = (int)left - 1;
    for (int i = 0; i < TAPS; i++) {
        float d = pi * (x + 1 - (float)i);
        ret->weight[i] = fabsf(d) < 1e-4f ? 1 : sinf(d) * sinf(d / 2) / (d * d / 2);
        sum += ret->weight[i];
    }
    for (int i = 0; i < TAPS; i++)
        ret->weight[i] /= sum;
}

static const struct {
    const char *name;
    algorithm *run;
} algorithms[] = {
    {"Nearest", nearest}, {"Bilinear", bilinear}, {"Bicubic", cubic}, {"Lanczos", lanczos}};

struct scaling {
    algorithm *run;
    const struct format *in, *out;
    bool is_uv;
    int out_width, out_height;
    size_t out_pitch;
    float param;
};

static const struct format *find_format(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

static bool parse_name(const char *name, struct scaling *ret)
{
    char method[16], in[16], out[16], plane[4] = "";
    if (sscanf(name, "Subsample_%15[^_]_%15[^_]_%15[^_]_%3s", method, in, out, plane) < 3)
        return false;
    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++)
        if (strcmp(algorithms[i].name, method) == 0)
            ret->run = algorithms[i].run;
    ret->in = find_format(in);
    ret->out = find_format(out);
    ret->is_uv = strcmp(plane, "uv") == 0;
    return ret->run && ret->in && ret->out;
}

static struct taps *make_taps(const struct scaling *s, int in_size, int out_size)
{
    struct taps *taps = malloc((size_t)out_size * sizeof *taps);
    if (!taps)
        sim_die("out of memory");
    float scale = (float)in_size / (float)out_size;
    for (int i = 0; i < out_size; i++)
        s->run(((float)i + 0.5f) * scale, scale, s->param, &taps[i]);
    return taps;
}

/* One sample, from the input's depth to the output's. */
static int convert(const struct scaling *s, float value)
{
    int in_max = s->in->bytes == 2 ? 0xffff : 0xff;
    int v = kernel_clamp((int)lrintf(value), 0, in_max);
    if (s->in->bits == 10)
        v = kernel_clamp((v + 0x20) & ~0x3f, 0, 0xffc0);
    if (s->in->bytes == s->out->bytes && s->in->bits <= s->out->bits)
        return s->in->bits < s->out->bits ? v | v >> 10 : v;
    if (s->out->bytes == 1)
        return v >> 8;
    if (s->in->bytes == 1)
        v |= v << 8;
    return s->out->bits == 10 ? v & 0xffc0 : v;
}

/* Four rows of one channel, weighted, as floats. */
static void blend_rows(const struct sim_texture *t, int channel, const struct taps *y, float *ret)
{
    memset(ret, 0, (size_t)t->width * sizeof *ret);
    for (int i = 0; i < TAPS; i++) {
        if (y->weight[i] == 0)
            continue;
        const uint8_t *row = (const uint8_t *)t->data +
                             (size_t)kernel_clamp(y->first + i, 0, t->height - 1) * t->pitch_bytes;
        for (int x = 0; x < t->width; x++)
            ret[x] += y->weight[i] *
                      (float)kernel_load(row, (size_t)x * t->channels + channel, t->channel_bytes);
    }
}

static void scale_channel(const struct scaling *s, const struct sim_texture *t, int channel,
                          uint8_t *out, int out_step, int out_channel)
{
    struct taps *xs = make_taps(s, t->width, s->out_width);
    struct taps *ys = make_taps(s, t->height, s->out_height);
    float *row = malloc((size_t)t->width * sizeof *row);
    if (!row)
        sim_die("out of memory");
    for (int y = 0; y < s->out_height; y++) {
        blend_rows(t, channel, &ys[y], row);
        for (int x = 0; x < s->out_width; x++) {
            float sum = 0;
            for (int i = 0; i < TAPS; i++)
                sum += xs[x].weight[i] * row[kernel_clamp(xs[x].first + i, 0, t->width - 1)];
            kernel_store(out + (size_t)y * s->out_pitch, (size_t)x * out_step + out_channel,
                         s->out->bytes, convert(s, sum));
        }
    }
    free(row);
    free(xs);
    free(ys);
}

/* Channel c of the launch: 0 is the first plane, 1 and 2 are U and V, wherever they lie. */
static CUresult scale_one(const struct sim_launch *launch, const struct scaling *s, int c)
{
    bool is_in_pair = s->in->is_interleaved && c, is_out_pair = s->out->is_interleaved && c;
    const struct sim_texture *t = sim_texture_get(kernel_u64(launch, is_in_pair ? 1 : c));
    int step = is_out_pair ? 2 : 1;
    uint8_t *out = sim_mem_rows(kernel_u64(launch, 4 + (is_out_pair ? 1 : c)), s->out_pitch,
                                (size_t)s->out_width * step * s->out->bytes, s->out_height);
    if (!t || !out)
        return SIM_ERR_ILLEGAL_ADDRESS;
    scale_channel(s, t, is_in_pair ? c - 1 : 0, out, step, is_out_pair ? c - 1 : 0);
    return CUDA_SUCCESS;
}

/* Four textures, four planes, output width, height and pitch, input width and height, parameter. */
CUresult kernel_scale(const struct sim_launch *launch)
{
    struct scaling s = {0};
    kernel_expect(launch, "lllllllliiiiif");
    if (!parse_name(launch->name, &s))
        return SIM_ERR_NOT_SUPPORTED;
    s.out_width = kernel_int(launch, 8);
    s.out_height = kernel_int(launch, 9);
    s.out_pitch = (size_t)kernel_int(launch, 10);
    s.param = kernel_float(launch, 13);
    if (!s.is_uv)
        return scale_one(launch, &s, 0);
    CUresult rc = scale_one(launch, &s, 1);
    return rc ? rc : scale_one(launch, &s, 2);
}
