#include "pipelines/media/device_kernels.h"

#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/tonemap.h"
#include "pipelines/media/tonemap_cuda.h"
#include "pipelines/media/turn_cuda.h"

struct device_kernels {
    const struct device_kernels_kind *kind;
    const struct device *decode, *filter; /* of the route */
    const struct plan *plan;
    struct tonemap *tonemap;           /* NULL: not tone-mapped */
    struct tonemap_cuda *tonemap_cuda; /* on the CPU NULL, as the next */
    struct turn_cuda *turn_cuda;
};

struct device_kernels_kind {
    int (*open)(struct device_kernels *k, const struct source_video *video, struct err *e);
    int (*run)(struct device_kernels *k, AVFrame *frame, struct err *e);
};

static int open_on_cpu(struct device_kernels *k, const struct source_video *video, struct err *e)
{
    (void)k, (void)video, (void)e;
    return 0;
}

static int run_on_cpu(struct device_kernels *k, AVFrame *frame, struct err *e)
{
    return k->tonemap ? tonemap_frame(k->tonemap, av_get_pix_fmt(k->plan->pix_fmt), frame, e) : 0;
}

/* What the CPU decoded, its pre-filter has turned, too. */
static int open_on_cuda(struct device_kernels *k, const struct source_video *video, struct err *e)
{
    if (device_is_gpu(k->decode))
        k->turn_cuda = turn_cuda_new(k->filter, video);
    return k->tonemap ? tonemap_cuda_new(k->tonemap, k->filter, &k->tonemap_cuda, e) : 0;
}

static int run_on_cuda(struct device_kernels *k, AVFrame *frame, struct err *e)
{
    int rc = k->turn_cuda ? turn_cuda_frame(k->turn_cuda, frame, e) : 0;
    return rc == 0 && k->tonemap ? tonemap_cuda_frame(k->tonemap_cuda, k->plan->pix_fmt, frame, e)
                                 : rc;
}

const struct device_kernels_kind device_kernels_cpu = {open_on_cpu, run_on_cpu};
const struct device_kernels_kind device_kernels_cuda = {open_on_cuda, run_on_cuda};

int device_kernels_new(const struct device_route *route, const struct plan *plan,
                       const struct source_video *video, struct device_kernels **ret, struct err *e)
{
    cleanup(device_kernels_free) struct device_kernels *k = xcalloc(1, sizeof *k);
    k->kind = device_kernels_kind(route->filter);
    k->decode = route->decode;
    k->filter = route->filter;
    k->plan = plan;
    if (plan->is_tonemapped)
        k->tonemap = tonemap_new(video, plan->peak_nits);
    int rc = k->kind->open(k, video, e);
    if (rc == 0)
        *ret = take(k);
    return rc;
}

void device_kernels_free(struct device_kernels **k)
{
    if (!*k)
        return;
    turn_cuda_free(&(*k)->turn_cuda);
    tonemap_cuda_free(&(*k)->tonemap_cuda);
    tonemap_free(&(*k)->tonemap);
    free_ptr(k);
}

int device_kernels_frame(struct device_kernels *k, AVFrame *frame, struct err *e)
{
    return k->kind->run(k, frame, e);
}
