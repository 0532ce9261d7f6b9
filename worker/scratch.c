#include "worker/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/strbuf.h"

/* Not "transcode-" alone: that is what others name their temporary folders. */
#define PREFIX "transcode-scratch-"

enum { OPEN_DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

struct scratch {
    char *path;
    int base_fd, fd; /* fd holds the lock */
    char *outbox;
    int outbox_fd;
};

static void close_dir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

static int remove_at(int parent_fd, const char *name, int depth);

static int empty_directory(int fd, int depth)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    cleanup(close_dir) DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (!dir)
        return -1;
    rewinddir(dir); /* the position is shared with fd */
    int rc = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            rc |= remove_at(fd, entry->d_name, depth);
    return rc;
}

/* 0 or -1 with errno. */
static int remove_at(int parent_fd, const char *name, int depth)
{
    if (unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    if (depth >= SCRATCH_DEPTH_MAX) {
        errno = ELOOP;
        return -1;
    }
    cleanup(close_fd) int fd = openat(parent_fd, name, OPEN_DIRECTORY);
    if (fd < 0 || empty_directory(fd, depth + 1) < 0)
        return -1;
    return unlinkat(parent_fd, name, AT_REMOVEDIR);
}

int scratch_remove_at(int parent_fd, const char *name, struct err *e)
{
    if (remove_at(parent_fd, name, 0) == 0)
        return 0;
    return err_set(e, ERR_RESOURCE, "cannot remove scratch directory %s: %s", name,
                   strerror(errno));
}

int scratch_make_at(int parent_fd, const char *name, int *ret_fd, struct err *e)
{
    if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
        return err_set(e, ERR_RESOURCE, "cannot make scratch directory %s: %s", name,
                       strerror(errno));
    *ret_fd = openat(parent_fd, name, OPEN_DIRECTORY);
    if (*ret_fd >= 0 && empty_directory(*ret_fd, 1) == 0)
        return 0;
    int error = errno;
    close_fd(ret_fd);
    return err_set(e, ERR_RESOURCE, "cannot use scratch directory %s: %s", name, strerror(error));
}

int scratch_make(const struct scratch *s, const char *name, int *ret_fd, struct err *e)
{
    return scratch_make_at(s->fd, name, ret_fd, e);
}

const char *scratch_outbox(const struct scratch *s)
{
    return s->outbox;
}

int scratch_outbox_fd(const struct scratch *s)
{
    return s->outbox_fd;
}

/* Whether `name` in `base_fd` is still the directory behind fd. */
static bool is_same(int base_fd, const char *name, int fd)
{
    struct stat there, here;
    return fstatat(base_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &here) == 0 &&
           there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

/* The lock of a directory of our name and user is free: its agent is dead. */
static void remove_stale(int base_fd)
{
    int copy = openat(base_fd, ".", OPEN_DIRECTORY);
    cleanup(close_dir) DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *name = entry->d_name;
        struct stat st;
        if (strncmp(name, PREFIX, strlen(PREFIX)) || strlen(name) != strlen(PREFIX) + 6)
            continue;
        cleanup(close_fd) int fd = openat(base_fd, name, OPEN_DIRECTORY);
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
            (st.st_mode & 0777) == 0700 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            remove_at(base_fd, name, 0);
    }
}

/* 1: made and locked, 0: another agent took it for a dead one's in between, try again. */
static int make_locked(struct scratch *s, const char *base, struct err *e)
{
    s->path = xasprintf("%s/" PREFIX "XXXXXX", base);
    if (!mkdtemp(s->path))
        return err_set(e, ERR_RESOURCE,
                       "cannot make a scratch directory in %s: %s; name another with --scratch",
                       base, strerror(errno));
    s->fd = open(s->path, OPEN_DIRECTORY);
    if (s->fd >= 0 && flock(s->fd, LOCK_EX | LOCK_NB) == 0 &&
        is_same(s->base_fd, strrchr(s->path, '/') + 1, s->fd))
        return 1;
    close_fd(&s->fd);
    free_ptr(&s->path);
    return 0;
}

static int open_at(const char *base, struct scratch *s, struct err *e)
{
    s->base_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->base_fd < 0)
        return err_set(e, ERR_RESOURCE, "scratch directory %s: %s", base, strerror(errno));
    remove_stale(s->base_fd);
    int rc = 0;
    for (int tries = 0; rc == 0 && tries < 10; tries++)
        rc = make_locked(s, base, e);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set(e, ERR_RESOURCE, "scratch directory %s: cannot lock one in it", base);
    s->outbox = xasprintf("%s/outbox", s->path);
    return scratch_make(s, "outbox", &s->outbox_fd, e);
}

int scratch_open(const char *base, struct scratch **ret, struct err *e)
{
    const char *temporary = getenv("TMPDIR");
    if (!base)
        base = temporary && *temporary ? temporary : "/tmp";
    cleanup(scratch_close) struct scratch *s = xcalloc(1, sizeof *s);
    s->base_fd = s->fd = s->outbox_fd = -1;
    int rc = open_at(base, s, e);
    if (rc == 0)
        *ret = take(s);
    return rc;
}

void scratch_close(struct scratch **s)
{
    if (!*s)
        return;
    close_fd(&(*s)->outbox_fd);
    if ((*s)->fd >= 0)
        remove_at((*s)->base_fd, strrchr((*s)->path, '/') + 1, 0);
    close_fd(&(*s)->fd);
    close_fd(&(*s)->base_fd);
    free((*s)->path);
    free((*s)->outbox);
    free(*s);
    *s = NULL;
}
