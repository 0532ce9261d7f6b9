#include "worker/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"

/* What a session makes. Playlists are not among it: those are the publisher's. */
static const char *const endings[] = {".m4s", ".mp4", ".ts", ".jpg"};

/* Copies a name of safe characters up to `end`; false where it has another form. */
static bool copy_name(const char *from, const char *end, char ret[OUTFILE_NAME_MAX + 1])
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = (size_t)(end - from);
    if (n == 0 || n > OUTFILE_NAME_MAX || *from == '.')
        return false;
    memcpy(ret, from, n);
    ret[n] = 0;
    return strspn(ret, safe) == n;
}

static bool has_ending(const char *file)
{
    size_t n = strlen(file);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (n > strlen(endings[i]) && !strcmp(file + n - strlen(endings[i]), endings[i]))
            return true;
    return false;
}

bool outfile_split(const char *path, char ret_folder[OUTFILE_NAME_MAX + 1],
                   char ret_file[OUTFILE_NAME_MAX + 1])
{
    const char *slash = strchr(path, '/');
    return slash && copy_name(path, slash, ret_folder) &&
           copy_name(slash + 1, path + strlen(path), ret_file) && has_ending(ret_file);
}

static int check(int outbox_fd, const char *name, const char *path, int64_t bytes, struct err *e)
{
    struct stat st;
    if (fstatat(outbox_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_set(e, ERR_RESOURCE, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
        return err_set(e, ERR_BUG, "the session announced %s, which is not a plain file", path);
    if (st.st_size != bytes)
        return err_set(e, ERR_BUG, "the session announced %s with %lld bytes, it has %lld", path,
                       (long long)bytes, (long long)st.st_size);
    return 0;
}

int outfile_claim(int task_fd, const char *path, int64_t bytes, int outbox_fd, const char *name,
                  struct err *e)
{
    char folder[OUTFILE_NAME_MAX + 1], file[OUTFILE_NAME_MAX + 1];
    if (!outfile_split(path, folder, file))
        return err_set(e, ERR_BUG,
                       "the session announced a file by the path \"%.200s\", which is "
                       "not a segment's",
                       path);
    cleanup(close_fd) int folder_fd =
        openat(task_fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder_fd < 0 || renameat(folder_fd, file, outbox_fd, name) < 0)
        return err_set(e, ERR_BUG, "the session announced %s: %s", path, strerror(errno));
    int rc = check(outbox_fd, name, path, bytes, e);
    if (rc < 0)
        unlinkat(outbox_fd, name, 0);
    return rc;
}
