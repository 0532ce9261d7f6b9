#include "pipelines/media/warm.h"

#include "pipelines/media/ladder.h"
#include "pipelines/media/spares.h"
#include "pipelines/media/thumbnails.h"
#include "pipelines/media/tonemap.h"
#include "pipelines/media/tonemap_cuda.h"

void warm_forget(struct warm *w)
{
    ladder_free(&w->ladder);
    thumbnails_free(&w->thumbnails);
    tonemap_cuda_free(&w->tonemap_cuda);
    tonemap_free(&w->tonemap);
}

void warm_clear(struct warm *w)
{
    warm_forget(w);
    spares_free(&w->spares);
}
