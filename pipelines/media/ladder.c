/*
 * Cascading: a size may be scaled from another of the ladder that is at least CASCADE_MIN times as
 * large in both directions. Bicubic filtering at such a ratio leaves nothing of the first pass to
 * be seen (tests/bench/ladder.sh measures it), and costs a fraction of scaling from the source;
 * closer sizes are made from the source, since two soft passes in a row would blur.
 */
#include "pipelines/media/ladder.h"

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/filter.h"

enum { CASCADE_MIN = 2 };

struct size {
    int width, height;
    int parent; /* index of a larger size, or -1: the source */
    struct filter *scaler;
    AVFrame *frame; /* of the current source picture, blank when not made yet */
};

struct ladder {
    struct size *sizes; /* largest first */
    size_t n;
    int *of_rendition; /* index into sizes */
    AVFrame *source;
    bool shares_frames;
};

static int by_area(const void *a, const void *b)
{
    const struct size *x = a, *y = b;
    int64_t l = (int64_t)x->width * x->height, r = (int64_t)y->width * y->height;
    return (l < r) - (l > r);
}

static int find_size(const struct ladder *l, const struct plan_rendition *r)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->sizes[i].width == r->width && l->sizes[i].height == r->height)
            return (int)i;
    return -1;
}

/* The smallest size that i may be scaled from. */
static int find_parent(const struct ladder *l, size_t i)
{
    for (size_t p = i; p-- > 0;)
        if (l->sizes[p].width >= CASCADE_MIN * l->sizes[i].width &&
            l->sizes[p].height >= CASCADE_MIN * l->sizes[i].height)
            return (int)p;
    return -1;
}

struct ladder *ladder_new(const struct plan *plan, const struct device *device)
{
    struct ladder *l = xcalloc(1, sizeof *l);
    l->shares_frames = device_shares_frames(device);
    l->sizes = xcalloc(plan->n_renditions, sizeof *l->sizes);
    l->of_rendition = xcalloc(plan->n_renditions, sizeof *l->of_rendition);
    for (size_t i = 0; i < plan->n_renditions; i++)
        if (find_size(l, &plan->renditions[i]) < 0)
            l->sizes[l->n++] = (struct size){.width = plan->renditions[i].width,
                                             .height = plan->renditions[i].height};
    qsort(l->sizes, l->n, sizeof *l->sizes, by_area);
    for (size_t i = 0; i < plan->n_renditions; i++)
        l->of_rendition[i] = find_size(l, &plan->renditions[i]);
    for (size_t i = 0; i < l->n; i++) {
        struct size *s = &l->sizes[i];
        cleanup(free_ptr) char *graph = device_scaler(device, plan, s->width, s->height);
        s->parent = find_parent(l, i);
        s->scaler = filter_new(graph, plan->time_base);
        s->frame = av_frame_alloc();
    }
    return l;
}

void ladder_free(struct ladder **pp)
{
    struct ladder *l = *pp;
    if (!l)
        return;
    for (size_t i = 0; i < l->n; i++) {
        filter_free(&l->sizes[i].scaler);
        av_frame_free(&l->sizes[i].frame);
    }
    free(l->sizes);
    free(l->of_rendition);
    free_ptr(pp);
}

void ladder_set_source(struct ladder *l, AVFrame *source)
{
    l->source = source;
    for (size_t i = 0; i < l->n; i++)
        av_frame_unref(l->sizes[i].frame);
}

static int make(struct ladder *l, int i, struct err *e)
{
    struct size *s = &l->sizes[i];
    if (s->frame->buf[0])
        return 0;
    const AVFrame *from = l->source;
    int status = s->parent >= 0 ? make(l, s->parent, e) : 0;
    if (status < 0)
        return status;
    if (s->parent >= 0)
        from = l->sizes[s->parent].frame;
    cleanup(av_frame_free) AVFrame *in = av_frame_clone(from);
    if (!in)
        return err_set(e, ERR_RESOURCE, "scale to %dx%d: out of memory", s->width, s->height);
    if (l->shares_frames && in->width == s->width && in->height == s->height) {
        av_frame_move_ref(s->frame, in);
        return 0;
    }
    status = filter_send(s->scaler, in, e);
    while (status >= 0) {
        status = filter_receive(s->scaler, s->frame, e);
        if (status == 1)
            return 0;
        if (status == 0)
            return err_set(e, ERR_BUG, "scale to %dx%d: no picture came out", s->width, s->height);
    }
    return status;
}

int ladder_get(struct ladder *l, size_t r, AVFrame *ret, struct err *e)
{
    int i = l->of_rendition[r];
    int status = make(l, i, e);
    if (status < 0)
        return status;
    return av_frame_ref(ret, l->sizes[i].frame) < 0
               ? err_set(e, ERR_RESOURCE, "%s", "out of memory for a frame")
               : 0;
}
