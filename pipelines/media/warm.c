#include "pipelines/media/warm.h"

#include "pipelines/media/device_kernels.h"
#include "pipelines/media/ladder.h"
#include "pipelines/media/spares.h"
#include "pipelines/media/thumbnails.h"

void warm_forget(struct warm *w)
{
    ladder_free(&w->ladder);
    thumbnails_free(&w->thumbnails);
    device_kernels_free(&w->kernels);
}

void warm_clear(struct warm *w)
{
    warm_forget(w);
    spares_free(&w->spares);
}
