/*
 * FFmpeg's yadif_cuda and bwdif_cuda: "yadif_TYPE", "bwdif_TYPE" with TYPE uchar, ushort for one
 * channel and uchar2, ushort2 for two that do not touch each other.
 *
 * Lines of the kept field are copied. A missing sample is guessed from its column in the lines
 * around it, in this field and in the fields before and after, and held within what those allow.
 */
#include <stdlib.h>

#include "tests/simgpu/kernels.h"

/* One launch. */
struct field {
    const struct sim_texture *prev, *cur, *next;
    uint8_t *out;
    size_t pitch;
    int width, height, channels, bytes;
    int parity; /* lines y with y % 2 == parity are kept */
    bool is_second;
    int last[2]; /* the arguments that only one of the filters has */
};

/* A sample's surroundings. */
struct at {
    const struct field *f;
    int x, y, channel;
};

static int load(const struct at *a, const struct sim_texture *t, int dx, int dy)
{
    int x = kernel_clamp(a->x + dx, 0, t->width - 1), y = kernel_clamp(a->y + dy, 0, t->height - 1);
    return kernel_load((const uint8_t *)t->data + (size_t)y * t->pitch_bytes,
                       (size_t)x * t->channels + a->channel, t->channel_bytes);
}

static int min2(int a, int b)
{
    return a < b ? a : b;
}

static int max2(int a, int b)
{
    return a > b ? a : b;
}

static int max3(int a, int b, int c)
{
    return max2(max2(a, b), c);
}

static int min3(int a, int b, int c)
{
    return min2(min2(a, b), c);
}

/* How badly the line above, shifted by d, fits the line below, shifted by -d. */
static int misfit(const struct at *a, int d)
{
    int sum = 0;
    for (int i = -1; i <= 1; i++)
        sum += abs(load(a, a->f->cur, i + d, -1) - load(a, a->f->cur, i - d, 1));
    return sum;
}

/* The best direction of an edge: straight down, else one step to a side, and two only where one was
 * better already. */
static int spatial(const struct at *a)
{
    int best = misfit(a, 0), direction = 0;
    for (int side = -1; side <= 1; side += 2)
        for (int d = side; abs(d) <= 2; d += side) {
            int score = misfit(a, d);
            if (score >= best)
                break;
            best = score;
            direction = d;
        }
    return (load(a, a->f->cur, direction, -1) + load(a, a->f->cur, -direction, 1)) / 2;
}

static int yadif(const struct at *a)
{
    const struct field *f = a->f;
    const struct sim_texture *before = f->is_second ? f->cur : f->prev;
    const struct sim_texture *after = f->is_second ? f->next : f->cur;
    int above = load(a, f->cur, 0, -1), below = load(a, f->cur, 0, 1);
    int here = (load(a, before, 0, 0) + load(a, after, 0, 0)) / 2;
    int change = abs(load(a, before, 0, 0) - load(a, after, 0, 0));
    int past = (abs(load(a, f->prev, 0, -1) - above) + abs(load(a, f->prev, 0, 1) - below)) / 2;
    int future = (abs(load(a, f->next, 0, -1) - above) + abs(load(a, f->next, 0, 1) - below)) / 2;
    int slack = max3(change, past, future);
    if (!f->last[0]) {
        int up = (load(a, before, 0, -2) + load(a, after, 0, -2)) / 2 - above;
        int down = (load(a, before, 0, 2) + load(a, after, 0, 2)) / 2 - below;
        int most = max3(here - below, here - above, min2(up, down));
        int least = min3(here - below, here - above, max2(up, down));
        slack = max3(slack, least, -most);
    }
    return kernel_clamp(spatial(a), here - slack, here + slack);
}

/* Samples of both neighbour fields of the same parity as the missing line, `dy` lines away. */
static int pair(const struct at *a, int dy)
{
    const struct field *f = a->f;
    const struct sim_texture *before = f->is_second ? f->cur : f->prev;
    const struct sim_texture *after = f->is_second ? f->next : f->cur;
    return load(a, before, 0, dy) + load(a, after, 0, dy);
}

static int bwdif(const struct at *a)
{
    const struct field *f = a->f;
    int above = load(a, f->cur, 0, -1), below = load(a, f->cur, 0, 1);
    int outer = load(a, f->cur, 0, -3) + load(a, f->cur, 0, 3);
    int in_field = (5077 * (above + below) - 981 * outer) >> 13;
    if (f->last[0]) /* first or last field: there is no neighbour to look at */
        return kernel_clamp(in_field, 0, f->last[1]);

    const struct sim_texture *before = f->is_second ? f->cur : f->prev;
    const struct sim_texture *after = f->is_second ? f->next : f->cur;
    int here = pair(a, 0) >> 1;
    int change = abs(load(a, before, 0, 0) - load(a, after, 0, 0));
    int past = (abs(load(a, f->prev, 0, -1) - above) + abs(load(a, f->prev, 0, 1) - below)) >> 1;
    int future = (abs(load(a, f->next, 0, -1) - above) + abs(load(a, f->next, 0, 1) - below)) >> 1;
    int slack = max3(change >> 1, past, future);
    if (slack == 0)
        return here;
    int up = (pair(a, -2) >> 1) - above, down = (pair(a, 2) >> 1) - below;
    int most = max3(here - below, here - above, min2(up, down));
    int least = min3(here - below, here - above, max2(up, down));
    slack = max3(slack, least, -most);
    int high = (5570 * pair(a, 0) - 3801 * (pair(a, -2) + pair(a, 2)) +
                1016 * (pair(a, -4) + pair(a, 4))) >>
               2;
    int guess = abs(above - below) > change ? (high + 4309 * (above + below) - 213 * outer) >> 13
                                            : in_field;
    return kernel_clamp(kernel_clamp(guess, here - slack, here + slack), 0, f->last[1]);
}

static void fill(const struct field *f, int guess(const struct at *))
{
    for (int y = 0; y < f->height; y++)
        for (int x = 0; x < f->width; x++)
            for (int c = 0; c < f->channels; c++) {
                struct at a = {f, x, y, c};
                int value = y % 2 == f->parity ? load(&a, f->cur, 0, 0) : guess(&a);
                kernel_store(f->out + (size_t)y * f->pitch, (size_t)x * f->channels + c, f->bytes,
                             value);
            }
}

/* Output, three textures, output width, height and pitch in elements, input width and height,
 * parity, top field first. */
static CUresult read_field(const struct sim_launch *launch, struct field *ret)
{
    size_t length = strlen(launch->name);
    *ret = (struct field){
        .prev = sim_texture_get(kernel_u64(launch, 1)),
        .cur = sim_texture_get(kernel_u64(launch, 2)),
        .next = sim_texture_get(kernel_u64(launch, 3)),
        .width = kernel_int(launch, 4),
        .height = kernel_int(launch, 5),
        .channels = launch->name[length - 1] == '2' ? 2 : 1,
        .bytes = strstr(launch->name, "ushort") ? 2 : 1,
        .parity = kernel_int(launch, 9),
        .is_second = kernel_int(launch, 9) == kernel_int(launch, 10),
    };
    size_t element = (size_t)ret->channels * ret->bytes;
    ret->pitch = (size_t)kernel_int(launch, 6) * element;
    ret->out = sim_mem_rows(kernel_u64(launch, 0), ret->pitch, ret->width * element, ret->height);
    return ret->out && ret->prev && ret->cur && ret->next ? CUDA_SUCCESS : SIM_ERR_ILLEGAL_ADDRESS;
}

CUresult kernel_yadif(const struct sim_launch *launch)
{
    struct field f;
    kernel_expect(launch, "lllliiiiiiib");
    CUresult rc = read_field(launch, &f);
    if (rc)
        return rc;
    f.last[0] = *(const bool *)launch->params[11]; /* skip the spatial check */
    fill(&f, yadif);
    return rc;
}

CUresult kernel_bwdif(const struct sim_launch *launch)
{
    struct field f;
    kernel_expect(launch, "lllliiiiiiiii");
    CUresult rc = read_field(launch, &f);
    if (rc)
        return rc;
    f.last[0] = kernel_int(launch, 11); /* no neighbour field */
    f.last[1] = kernel_int(launch, 12); /* largest value */
    fill(&f, bwdif);
    return rc;
}
