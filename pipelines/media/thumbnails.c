#include "pipelines/media/thumbnails.h"

#include <libavutil/pixdesc.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/jpeg.h"
#include "pipelines/media/output.h"
#include "pipelines/media/planes.h"
#include "pipelines/media/thumbnail.h"
#include "pipelines/media/thumbnail_cuda.h"
#include "pipelines/media/tonemap.h"
#include "pipelines/media/tonemap_cuda.h"
#include "pipelines/plan/thumbnails.h"

struct thumbnails {
    const struct plan *plan;
    const struct source_video *video;
    const struct device *device;
    struct timeline timeline;
    struct tonemap *tonemap;           /* where only thumbnails are tone-mapped, else NULL */
    struct tonemap_cuda *tonemap_cuda; /* these two: NULL, no frame on the GPU yet */
    struct thumbnail_cuda *cuda;
    /* of the chunk */
    int64_t next, end; /* steps that are still to be made */
    int64_t beyond;    /* tick: the first that is not the chunk's */
    struct output_folder folder;
    struct manifest_thumbnail *made;
    size_t n;
};

struct thumbnails *thumbnails_new(const struct plan *plan, const struct source_video *video,
                                  const struct device *device)
{
    if (!plan->thumbnails)
        return NULL;
    struct thumbnails *t = xcalloc(1, sizeof *t);
    t->plan = plan;
    t->video = video;
    t->device = device;
    plan_timeline(plan, &t->timeline);
    if (plan->thumbnails->is_tonemapped)
        t->tonemap = tonemap_new(video, plan->peak_nits);
    return t;
}

static void drop_made(struct thumbnails *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->made[i].name);
    free(t->made);
    t->made = NULL;
    t->n = 0;
}

void thumbnails_free(struct thumbnails **t)
{
    if (!*t)
        return;
    thumbnail_cuda_free(&(*t)->cuda);
    tonemap_cuda_free(&(*t)->tonemap_cuda);
    tonemap_free(&(*t)->tonemap);
    drop_made(*t);
    free_ptr(t);
}

int thumbnails_begin(struct thumbnails *t, const struct plan_chunk *chunk, struct output_folder to,
                     struct err *e)
{
    if (!t)
        return 0;
    drop_made(t);
    thumbnails_share(t->plan, chunk, &t->next, &t->end);
    t->beyond = chunk->end_segment == INT64_MAX
                    ? INT64_MAX
                    : timeline_segment_start(&t->timeline, chunk->end_segment);
    t->folder = to;
    t->folder.name = THUMBNAILS_FOLDER;
    t->folder.bytes = 0;
    return output_make_folder(&t->folder, e);
}

/* Where the rate is constant, a step's first frame belongs to the segment that the step begins in,
 * since both begin on a frame: none is looked for beyond the chunk. */
bool thumbnails_want(const struct thumbnails *t, int64_t at)
{
    if (!t || (at >= t->beyond && rational_is_set(t->timeline.cfr)))
        return false;
    int64_t step = timeline_step(&t->timeline, at, t->plan->thumbnails->every);
    return step >= t->next && step < t->end;
}

/* Kernels run where the frame is; on a GPU they are loaded for the first one. */
static int map(struct thumbnails *t, AVFrame *frame, struct err *e)
{
    const char *pix_fmt = t->plan->pix_fmt;
    if (!t->tonemap)
        return 0;
    if (!frame->hw_frames_ctx)
        return tonemap_frame(t->tonemap, av_get_pix_fmt(pix_fmt), frame, e);
    int rc = t->tonemap_cuda ? 0 : tonemap_cuda_new(t->tonemap, t->device, &t->tonemap_cuda, e);
    return rc < 0 ? rc : tonemap_cuda_frame(t->tonemap_cuda, pix_fmt, frame, e);
}

static int shrink(struct thumbnails *t, const AVFrame *frame, AVFrame **ret, struct err *e)
{
    int width = t->plan->thumbnails->width, height = t->plan->thumbnails->height;
    if (!planes_of(frame))
        return err_set(e, ERR_DEVICE,
                       "thumbnail: this video is not decoded to 4:2:0 on device %s; use --device "
                       "cpu, or leave thumbnails out of the profile",
                       device_name(t->device));
    if (!frame->hw_frames_ctx)
        return thumbnail_frame(frame, width, height, ret, e);
    int rc = t->cuda ? 0 : thumbnail_cuda_new(t->device, width, height, &t->cuda, e);
    return rc < 0 ? rc : thumbnail_cuda_frame(t->cuda, frame, ret, e);
}

static int write_file(struct thumbnails *t, int64_t at, const AVPacket *jpeg, struct err *e)
{
    char stem[32];
    int64_t step = timeline_step(&t->timeline, at, t->plan->thumbnails->every);
    snprintf(stem, sizeof stem, "%06lld", (long long)step);
    t->next = step + 1;
    t->made = xrealloc_array(t->made, t->n + 1, sizeof *t->made);
    struct manifest_thumbnail *m = &t->made[t->n++];
    *m = (struct manifest_thumbnail){.index = step, .start = at, .bytes = jpeg->size};
    return output_write(&t->folder, stem, "jpg", jpeg->data, (size_t)jpeg->size, &m->name, e);
}

int thumbnails_make(struct thumbnails *t, const AVFrame *frame, struct err *e)
{
    cleanup(av_frame_free) AVFrame *mapped = av_frame_clone(frame);
    cleanup(av_frame_free) AVFrame *small = NULL;
    cleanup(av_packet_free) AVPacket *jpeg = NULL;
    if (!mapped)
        return err_set(e, ERR_RESOURCE, "thumbnail: out of memory");
    int rc = map(t, mapped, e);
    if (rc == 0)
        rc = shrink(t, mapped, &small, e);
    if (rc == 0)
        rc = jpeg_encode(small, t->video->height, &jpeg, e);
    return rc < 0 ? rc : write_file(t, frame->pts, jpeg, e);
}

void thumbnails_finish(struct thumbnails *t, struct manifest *m)
{
    if (!t)
        return;
    m->thumbnails = take(t->made);
    m->n_thumbnails = t->n;
    t->n = 0;
}
