#include "cli/state.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/storage.h"
#include "common/strbuf.h"

enum { OPEN_DIRS_MAX = 16 };

#define FILE_SCHEME "file://"

static int local_path(const char *output, const char **ret, struct err *e)
{
    if (!strncmp(output, FILE_SCHEME, strlen(FILE_SCHEME)))
        output += strlen(FILE_SCHEME);
    else if (strstr(output, "://"))
        return err_set(e, ERR_USAGE,
                       "%s: run writes to a local directory; for other outputs use submit", output);
    *ret = output;
    return 0;
}

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st, (void)flag, (void)at;
    return remove(path);
}

static int remove_tree(const char *path, struct err *e)
{
    if (nftw(path, remove_entry, OPEN_DIRS_MAX, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 &&
        errno != ENOENT)
        return err_set(e, ERR_RESOURCE, "%s: remove: %s; remove it by hand", path, strerror(errno));
    return 0;
}

static int make_dir(const char *path, struct err *e)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set(e, ERR_RESOURCE, "%s: mkdir: %s", path, strerror(errno));
    return 0;
}

/* The lock lies in the directory that it guards and goes with it: a run that gets the lock of a
 * directory removed meanwhile sees that the path leads elsewhere. */
static int take_lock(struct state *s, struct err *e)
{
    cleanup(free_ptr) char *path = xasprintf("%s/lock", s->dir);
    struct stat held, named;
    s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->lock_fd < 0)
        return err_set(e, ERR_RESOURCE, "%s: %s", path, strerror(errno));
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0 || fstat(s->lock_fd, &held) < 0 ||
        stat(path, &named) < 0 || held.st_ino != named.st_ino)
        return err_set(e, ERR_USAGE, "%s: another run is at work here; wait for it or stop it",
                       s->dir);
    return 0;
}

static int decide(const char *output, const struct state *s, bool is_resume, bool is_force,
                  struct err *e)
{
    bool is_begun = is_there(s->dir);
    int is_done = storage_stat(output, "master.m3u8", NULL, e);
    if (is_done < 0 || is_force)
        return is_done < 0 ? is_done : 0;
    if (is_begun && !is_resume)
        return err_set(e, ERR_USAGE,
                       "%s holds an unfinished run: --resume goes on with it, --force starts anew",
                       output);
    if (is_done && !is_begun && is_resume)
        return 1;
    if (is_done && !is_resume)
        return err_set(e, ERR_USAGE,
                       "%s holds a finished output: give another directory, or --force to replace "
                       "it",
                       output);
    return 0;
}

/* --force: nothing of the earlier output may be taken for the new one while that is made. */
static int start_anew(const char *path, const struct state *s, struct err *e)
{
    cleanup(free_ptr) char *master = xasprintf("%s/master.m3u8", path);
    if (unlink(master) < 0 && errno != ENOENT)
        return err_set(e, ERR_RESOURCE, "%s: remove: %s", master, strerror(errno));
    return remove_tree(s->redis, e);
}

int state_open(const char *output, bool is_resume, bool is_force, struct state *ret, struct err *e)
{
    const char *path = NULL;
    *ret = (struct state){.lock_fd = -1};
    int r = local_path(output, &path, e);
    if (r < 0)
        return r;
    ret->dir = xasprintf("%s/.transcode", path);
    ret->redis = xasprintf("%s/redis", ret->dir);
    ret->scratch = xasprintf("%s/scratch", ret->dir);
    ret->is_new = is_force || !is_there(ret->dir);
    if ((r = decide(output, ret, is_resume, is_force, e)) != 0 || (r = make_dir(ret->dir, e)) < 0 ||
        (r = take_lock(ret, e)) < 0 || (is_force && (r = start_anew(path, ret, e)) < 0) ||
        (r = remove_tree(ret->scratch, e)) < 0 || (r = make_dir(ret->scratch, e)) < 0 ||
        (r = make_dir(ret->redis, e)) < 0)
        state_close(ret);
    return r;
}

void state_close(struct state *s)
{
    free_ptr(&s->dir);
    free_ptr(&s->redis);
    free_ptr(&s->scratch);
    close_fd(&s->lock_fd);
}

int state_remove(struct state *s, struct err *e)
{
    int r = remove_tree(s->dir, e);
    state_close(s);
    return r;
}
