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
    AVFrame *frame;           /* of the current source picture, blank when not made yet */
    struct filter *hand_over; /* from where it is scaled to where it is encoded */
    AVFrame *handed;          /* likewise blank, when a hand-over is needed at all */
};

struct ladder {
    struct size *sizes; /* largest first */
    size_t n;
    int *of_rendition; /* index into sizes */
    AVFrame *source;
    bool shares_frames, is_handed_over;
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

struct ladder *ladder_new(const struct plan *plan, const struct device_route *route)
{
    struct ladder *l = xcalloc(1, sizeof *l);
    l->shares_frames = device_shares_frames(route->filter);
    l->is_handed_over = route->filter != route->encode;
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
        cleanup(free_ptr) char *graph = device_scaler(route->filter, plan, s->width, s->height);
        cleanup(free_ptr) char *hand_over = device_hand_over(route, plan);
        s->parent = find_parent(l, i);
        s->scaler = filter_new(graph, plan->time_base, NULL);
        s->frame = av_frame_alloc();
        s->hand_over = filter_new(hand_over, plan->time_base, device_context(route->encode));
        s->handed = av_frame_alloc();
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
        filter_free(&l->sizes[i].hand_over);
        av_frame_free(&l->sizes[i].handed);
    }
    free(l->sizes);
    free(l->of_rendition);
    free_ptr(pp);
}

void ladder_set_source(struct ladder *l, AVFrame *source)
{
    l->source = source;
    for (size_t i = 0; i < l->n; i++) {
        av_frame_unref(l->sizes[i].frame);
        av_frame_unref(l->sizes[i].handed);
    }
}

/* One picture in, one out. */
static int pass(struct filter *f, const AVFrame *from, const struct size *s, AVFrame *ret,
                struct err *e)
{
    cleanup(av_frame_free) AVFrame *in = av_frame_clone(from);
    if (!in)
        return err_set(e, ERR_RESOURCE, "scale to %dx%d: out of memory", s->width, s->height);
    int status = filter_send(f, in, e);
    if (status >= 0)
        status = filter_receive(f, ret, e);
    if (status == 0)
        return err_set(e, ERR_BUG, "scale to %dx%d: no picture came out", s->width, s->height);
    return status < 0 ? status : 0;
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
    if (l->shares_frames && from->width == s->width && from->height == s->height)
        return av_frame_ref(s->frame, from) < 0
                   ? err_set(e, ERR_RESOURCE, "%s", "out of memory for a frame")
                   : 0;
    return pass(s->scaler, from, s, s->frame, e);
}

int ladder_get(struct ladder *l, size_t r, AVFrame *ret, struct err *e)
{
    struct size *s = &l->sizes[l->of_rendition[r]];
    int status = make(l, l->of_rendition[r], e);
    if (status >= 0 && l->is_handed_over && !s->handed->buf[0])
        status = pass(s->hand_over, s->frame, s, s->handed, e);
    if (status < 0)
        return status;
    return av_frame_ref(ret, l->is_handed_over ? s->handed : s->frame) < 0
               ? err_set(e, ERR_RESOURCE, "%s", "out of memory for a frame")
               : 0;
}
