#include "cli/source.h"

#include <inttypes.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/storage.h"
#include "common/strbuf.h"
#include "worker/agent.h"

int source_measure(const char *input, const char *device, const struct opt_list *limits,
                   struct rational segment, struct source **ret, char **ret_path, struct err *e)
{
    struct limits l;
    cleanup(free_ptr) char *path = NULL, *text = NULL;
    cleanup(free_ptr) char *grid = xasprintf("%" PRId64 "/%" PRId64, segment.num, segment.den);
    int r;
    if ((r = cli_limits_make(limits, &l, e)) < 0 || (r = storage_resolve(input, &path, e)) < 0 ||
        (r = agent_probe(path, device, &l, grid, &text, e)) < 0 ||
        (r = bind_parse(&source_type, text, strlen(text), "source", ERR_BUG, ret, e)) < 0)
        return r;
    *ret_path = take(path);
    return 0;
}
