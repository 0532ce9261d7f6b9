#include "pipelines/media/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libavutil/mem.h>
#include <libavutil/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/strbuf.h"

void output_hash(const void *data, size_t size, char ret[OUTPUT_HASH_DIGITS + 1])
{
    uint8_t digest[32] = {0};
    struct AVSHA *sha = av_sha_alloc();
    if (sha && !av_sha_init(sha, 256)) {
        av_sha_update(sha, data, size);
        av_sha_final(sha, digest);
    }
    av_free(sha);
    for (int i = 0; i < OUTPUT_HASH_DIGITS / 2; i++)
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return -1;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

int output_make_folder(const struct output_folder *f, struct err *e)
{
    if (mkdirat(f->scratch_fd, f->name, 0755) < 0 && errno != EEXIST)
        return err_set(e, ERR_RESOURCE, "make the folder %s in scratch: %s", f->name,
                       strerror(errno));
    return 0;
}

static int deliver(struct output_folder *f, const char *name, const void *data, size_t size,
                   struct err *e)
{
    f->bytes += (int64_t)size;
    if (f->max_bytes && f->bytes > f->max_bytes)
        return err_set(e, ERR_INPUT,
                       "%s: output is over the limit max_output_bytes=%lld, raise it with --limit",
                       f->name, (long long)f->max_bytes);
    cleanup(free_ptr) char *path = xasprintf("%s/%s", f->name, name);
    cleanup(free_ptr) char *part = xasprintf("%s/.part", f->name);
    cleanup(close_fd) int fd =
        openat(f->scratch_fd, part, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0 || write_all(fd, data, size) < 0 ||
        renameat(f->scratch_fd, part, f->scratch_fd, path) < 0) {
        enum err_kind kind = errno == EFBIG ? ERR_INPUT : ERR_RESOURCE;
        err_set(e, kind, "write %s (%zu bytes) to scratch: %s", path, size, strerror(errno));
        unlinkat(f->scratch_fd, part, 0);
        return -(int)kind;
    }
    f->events->file(f->events->arg, path, (int64_t)size);
    return 0;
}

int output_write(struct output_folder *f, const char *stem, const char *ext, const void *data,
                 size_t size, char **ret_name, struct err *e)
{
    char hash[OUTPUT_HASH_DIGITS + 1];
    output_hash(data, size, hash);
    *ret_name = xasprintf("%s-%s.%s", stem, hash, ext);
    return deliver(f, *ret_name, data, size, e);
}
