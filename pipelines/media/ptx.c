#include "pipelines/media/ptx.h"

#include <string.h>

#include "common/embed.h"

int ptx_find(const char *name, const char **ret, struct err *e)
{
    for (const struct embed_file *f = kernel_ptx; f->name; f++)
        if (!strcmp(f->name, name)) {
            *ret = f->text;
            return 0;
        }
    if (kernel_ptx[0].name)
        return err_set(e, ERR_BUG, "kernel %s: there is none of that name", name);
    return err_set(e, ERR_CONFIG,
                   "kernel %s: this program was built without CUDA kernels, having found neither "
                   "nvcc nor a clang that makes PTX; build it with one, or use --device cpu",
                   name);
}
