#include "pipelines/media/filter.h"

#include <libavfilter/avfilter.h>
#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/hwcontext.h>
#include <libavutil/mem.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/avlog.h"
#include "pipelines/media/device_fault.h"

struct filter {
    char *description;
    AVRational time_base;
    AVBufferRef *device;  /* NULL: pictures stay where they are */
    AVFilterGraph *graph; /* NULL until the first frame, and for a chain that passes through */
    AVFilterContext *source, *sink;
    int width, height, format; /* what the graph was built for */
    AVRational aspect;
    AVBufferRef *hw_frames; /* likewise; NULL: system memory */
    AVFrame *pending;       /* a frame that waits: passing through, or for the old graph to drain */
    bool is_ended;
};

struct filter *filter_new(const char *graph, struct rational time_base, AVBufferRef *device)
{
    struct filter *f = xcalloc(1, sizeof *f);
    f->description = xstrdup(graph);
    f->time_base = (AVRational){(int)time_base.num, (int)time_base.den};
    f->device = device ? av_buffer_ref(device) : NULL;
    f->pending = av_frame_alloc();
    return f;
}

void filter_free(struct filter **f)
{
    if (*f) {
        avfilter_graph_free(&(*f)->graph);
        av_buffer_unref(&(*f)->hw_frames);
        av_frame_free(&(*f)->pending);
        av_buffer_unref(&(*f)->device);
        free((*f)->description);
    }
    free_ptr(f);
}

static int create_source(struct filter *f, const AVFrame *frame)
{
    AVBufferSrcParameters *par = av_buffersrc_parameters_alloc();
    f->source = avfilter_graph_alloc_filter(f->graph, avfilter_get_by_name("buffer"), "in");
    int status = AVERROR(ENOMEM);
    if (par && f->source) {
        par->format = frame->format;
        par->width = frame->width;
        par->height = frame->height;
        par->time_base = f->time_base;
        par->sample_aspect_ratio = f->aspect.num > 0 ? f->aspect : (AVRational){1, 1};
        par->hw_frames_ctx = frame->hw_frames_ctx; /* the call below references it */
        status = av_buffersrc_parameters_set(f->source, par);
    }
    av_freep(&par);
    return status < 0 ? status : avfilter_init_str(f->source, NULL);
}

/* Uploading filters ask for it when the graph is configured. */
static int give_device(struct filter *f)
{
    for (unsigned i = 0; f->device && i < f->graph->nb_filters; i++)
        if (!(f->graph->filters[i]->hw_device_ctx = av_buffer_ref(f->device)))
            return AVERROR(ENOMEM);
    return 0;
}

static int build(struct filter *f, const AVFrame *frame, struct err *e)
{
    AVFilterInOut *in = NULL, *out = NULL;
    avfilter_graph_free(&f->graph);
    f->graph = avfilter_graph_alloc();
    if (!f->graph)
        return err_set(e, ERR_RESOURCE, "filter: out of memory");
    f->graph->nb_threads = 1; /* the cores are shared by sessions, not by slices */
    f->width = frame->width;
    f->height = frame->height;
    f->format = frame->format;
    f->aspect = frame->sample_aspect_ratio;
    int status = av_buffer_replace(&f->hw_frames, frame->hw_frames_ctx);
    if (status >= 0)
        status = create_source(f, frame);
    if (status >= 0)
        status = avfilter_graph_create_filter(&f->sink, avfilter_get_by_name("buffersink"), "out",
                                              NULL, NULL, f->graph);
    if (status >= 0) {
        out = avfilter_inout_alloc();
        in = avfilter_inout_alloc();
        if (!in || !out) {
            status = AVERROR(ENOMEM);
        } else {
            *out = (AVFilterInOut){av_strdup("in"), f->source, 0, NULL};
            *in = (AVFilterInOut){av_strdup("out"), f->sink, 0, NULL};
            status = avfilter_graph_parse_ptr(f->graph, f->description, &in, &out, NULL);
        }
    }
    if (status >= 0)
        status = give_device(f);
    if (status >= 0)
        status = avfilter_graph_config(f->graph, NULL);
    avfilter_inout_free(&in);
    avfilter_inout_free(&out);
    if (status < 0)
        return err_set(e, device_fault_kind(status, ERR_INPUT), "filter %dx%d frames by \"%s\": %s",
                       frame->width, frame->height, f->description, avlog_reason(status));
    return 0;
}

/* A new decoder brings a pool of its own, of surfaces like the last one's: to the filters that is
 * no difference, and a graph on a GPU is dear to build. */
static bool are_alike(const AVBufferRef *a, const AVBufferRef *b)
{
    if (!a || !b)
        return a == b;
    const AVHWFramesContext *x = (AVHWFramesContext *)a->data, *y = (AVHWFramesContext *)b->data;
    return x->device_ctx == y->device_ctx && x->format == y->format &&
           x->sw_format == y->sw_format && x->width == y->width && x->height == y->height;
}

static bool fits(const struct filter *f, const AVFrame *frame)
{
    return f->width == frame->width && f->height == frame->height && f->format == frame->format &&
           !av_cmp_q(f->aspect, frame->sample_aspect_ratio) &&
           are_alike(f->hw_frames, frame->hw_frames_ctx);
}

static int feed(struct filter *f, AVFrame *frame, struct err *e)
{
    int status = av_buffersrc_add_frame(f->source, frame);
    return status < 0 ? err_set(e, device_fault_kind(status, ERR_BUG), "filter \"%s\": %s",
                                f->description, avlog_reason(status))
                      : 0;
}

int filter_send(struct filter *f, AVFrame *frame, struct err *e)
{
    if (!frame)
        f->is_ended = true;
    if (!*f->description) {
        if (frame)
            av_frame_move_ref(f->pending, frame);
        return 0;
    }
    if (!f->graph) {
        int status = frame ? build(f, frame, e) : 0;
        return status < 0 || !frame ? status : feed(f, frame, e);
    }
    if (frame && !fits(f, frame)) { /* the frames that the old graph holds come out first */
        av_frame_move_ref(f->pending, frame);
        frame = NULL;
    }
    return feed(f, frame, e);
}

int filter_receive(struct filter *f, AVFrame *ret, struct err *e)
{
    while (f->graph) {
        int status = av_buffersink_get_frame(f->sink, ret);
        if (status >= 0) {
            ret->pts = av_rescale_q(ret->pts, av_buffersink_get_time_base(f->sink), f->time_base);
            return 1;
        }
        if (status == AVERROR(EAGAIN))
            return 0;
        if (status != AVERROR_EOF)
            return err_set(e, device_fault_kind(status, ERR_BUG), "filter \"%s\": %s",
                           f->description, avlog_reason(status));
        if (!f->pending->buf[0])
            return AVERROR_EOF;
        if ((status = build(f, f->pending, e)) < 0 || (status = feed(f, f->pending, e)) < 0)
            return status;
        if (f->is_ended && (status = feed(f, NULL, e)) < 0)
            return status;
    }
    if (f->pending->buf[0]) {
        av_frame_move_ref(ret, f->pending);
        return 1;
    }
    return f->is_ended ? AVERROR_EOF : 0;
}
