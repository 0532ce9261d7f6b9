#include "pipelines/plan/build.h"

#include <stdlib.h>
#include <string.h>

#include "common/strbuf.h"

void build_note(struct plan *plan, const char *fmt, ...)
{
    struct strbuf b = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vprintf(&b, fmt, ap);
    va_end(ap);
    plan->notes = xrealloc_array(plan->notes, plan->n_notes + 1, sizeof *plan->notes);
    plan->notes[plan->n_notes++] = strbuf_take(&b);
}

static bool is_taken(const struct plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->n_renditions; i++)
        if (plan->renditions[i].name && !strcmp(plan->renditions[i].name, name))
            return true;
    for (size_t i = 0; i < plan->n_audio; i++)
        if (plan->audio[i].name && !strcmp(plan->audio[i].name, name))
            return true;
    return false;
}

char *build_unique_name(const struct plan *plan, char *name)
{
    char *unique = xstrdup(name);
    for (int i = 2; is_taken(plan, unique); i++) {
        free(unique);
        unique = xasprintf("%s-%d", name, i);
    }
    free(name);
    return unique;
}

bool build_is_kernel_format(const char *pix_fmt)
{
    static const char *const formats[] = {"yuv420p", "nv12", "yuv420p10le", "p010le"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(pix_fmt, formats[i]))
            return true;
    return false;
}
