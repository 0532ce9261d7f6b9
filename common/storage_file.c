/*
 * Storage on a mounted file system. An object is made under a temporary name in its own directory
 * and renamed, so that a reader sees all of it or nothing. A file taken over from a session is
 * looked at only after it has been moved where the session cannot reach it: a link put in its place
 * would else publish a file of the agent's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/storage_backend.h"
#include "common/strbuf.h"

enum { COPY_BYTES = 256 << 10 };

/* --- errors and names ------------------------------------------------------------------------ */

static int fail(struct err *e, enum err_kind otherwise, const char *path, const char *what)
{
    static const struct {
        int code;
        enum err_kind kind;
    } table[] = {
        {ENOSPC, ERR_RESOURCE},  {EDQUOT, ERR_RESOURCE},     {EMFILE, ERR_RESOURCE},
        {ENFILE, ERR_RESOURCE},  {ENOMEM, ERR_RESOURCE},     {EIO, ERR_TRANSIENT},
        {ESTALE, ERR_TRANSIENT}, {ETIMEDOUT, ERR_TRANSIENT}, {EBUSY, ERR_TRANSIENT},
    };
    int code = errno;
    enum err_kind kind = otherwise;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].code == code)
            kind = table[i].kind;
    return err_set(e, kind, "%s: cannot be %s: %s", path, what, strerror(code));
}

static int hex(char c)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *d = c ? strchr(digits, c) : NULL;
    int value = d ? (int)(d - digits) : -1;
    return value < 16 ? value : value - 6;
}

/* The path of "file:///a%20b" or "file://localhost/a", or of a plain path. */
static int path_of(const char *url, char **ret, struct err *e)
{
    if (strncasecmp(url, "file://", 7)) {
        *ret = xstrdup(url);
        return 0;
    }
    const char *s = url + 7;
    if (!strncasecmp(s, "localhost/", 10))
        s += 9;
    if (*s != '/')
        return err_set(e, ERR_USAGE, "%s: expected file:///PATH, got a host", url);
    char *path = xcalloc(1, strlen(s) + 1), *out = path;
    for (; *s; s++) {
        int high = *s == '%' ? hex(s[1]) : -1, low = high >= 0 ? hex(s[2]) : -1;
        if (*s == '%' && (low < 0 || !(high << 4 | low))) {
            free(path);
            return err_set(e, ERR_USAGE, "%s: expected %%XX in hexadecimal, not %%00", url);
        }
        *out++ = low < 0 ? *s : (char)(high << 4 | low);
        s += low < 0 ? 0 : 2;
    }
    *ret = path;
    return 0;
}

static int object_path(const char *base, const char *key, char **ret, struct err *e)
{
    cleanup(free_ptr) char *dir = NULL;
    int rc = path_of(base, &dir, e);
    if (rc == 0)
        *ret = xasprintf("%s/%s", dir, key);
    return rc;
}

#define TEMPORARY ".part-"

static char *temporary_beside(const char *path)
{
    uint64_t n = 0;
    if (getrandom(&n, sizeof n, 0) != sizeof n)
        n = (uint64_t)getpid();
    return xasprintf("%.*s/" TEMPORARY "%016" PRIx64, (int)(strrchr(path, '/') - path), path, n);
}

/* Makes the directories above `path`; 0 or -1 with errno. */
static int make_parents(const char *path)
{
    cleanup(free_ptr) char *dir = xstrdup(path);
    for (char *slash = dir; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        if (mkdir(dir, 0777) < 0 && errno != EEXIST)
            return -1;
        *slash = '/';
    }
    return 0;
}

/* --- reading --------------------------------------------------------------------------------- */

/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
static int file_open(const char *url, int *ret_fd, int64_t *ret_size_bytes, struct err *e)
{
    cleanup(free_ptr) char *path = NULL;
    int rc = path_of(url, &path, e);
    if (rc < 0)
        return rc;
    cleanup(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return fail(e, ERR_INPUT, path, "opened");
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INPUT, "%s: expected a file, got %s", path,
                       S_ISDIR(st.st_mode) ? "a directory" : "a device, pipe or socket");
    if (!st.st_size)
        return err_set(e, ERR_INPUT, "%s: expected a video, got an empty file", path);
    *ret_size_bytes = st.st_size;
    *ret_fd = fd;
    fd = -1;
    return 0;
}

static int file_stat(const char *base, const char *key, int64_t *ret_size_bytes, struct err *e)
{
    cleanup(free_ptr) char *path = NULL;
    struct stat st;
    int rc = object_path(base, key, &path, e);
    if (rc < 0)
        return rc;
    if (stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : fail(e, ERR_CONFIG, path, "looked up");
    if (ret_size_bytes)
        *ret_size_bytes = st.st_size;
    return S_ISREG(st.st_mode);
}

/* --- writing --------------------------------------------------------------------------------- */

static int write_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t r = write(fd, bytes, n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -1;
        bytes += r;
        n -= (size_t)r;
    }
    return 0;
}

static int copy_all(int from, int to)
{
    cleanup(free_ptr) char *part = xcalloc(1, COPY_BYTES);
    for (;;) {
        ssize_t n = read(from, part, COPY_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return (int)n;
        if (write_all(to, part, (size_t)n) < 0)
            return -1;
    }
}

/* A new file, its directories made where they are missing. */
static int create(const char *path)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    int fd = open(path, flags, 0666);
    if (fd < 0 && errno == ENOENT && make_parents(path) == 0)
        fd = open(path, flags, 0666);
    return fd;
}

/* Gives the object its name; what cannot have it is removed. */
static int finish(const char *temporary, const char *path, struct err *e)
{
    if (rename(temporary, path) == 0)
        return 0;
    int rc = fail(e, ERR_CONFIG, path, "written");
    unlink(temporary);
    return rc;
}

static int file_put_bytes(const char *base, const char *key, const void *bytes, size_t n,
                          struct err *e)
{
    cleanup(free_ptr) char *path = NULL;
    int rc = object_path(base, key, &path, e);
    if (rc < 0)
        return rc;
    cleanup(free_ptr) char *temporary = temporary_beside(path);
    cleanup(close_fd) int fd = create(temporary);
    if (fd < 0)
        return fail(e, ERR_CONFIG, path, "written");
    if (write_all(fd, bytes, n) < 0 || fsync(fd) < 0) {
        rc = fail(e, ERR_CONFIG, path, "written");
        unlink(temporary);
        return rc;
    }
    return finish(temporary, path, e);
}

static int copy_over(const char *from, const char *temporary, const char *path, struct err *e)
{
    cleanup(close_fd) int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (in < 0 || fstat(in, &st) < 0)
        return fail(e, ERR_BUG, from, "read");
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_BUG, "%s: expected a finished file, got something else", from);
    cleanup(close_fd) int out = create(temporary);
    if (out < 0)
        return fail(e, ERR_CONFIG, path, "written");
    if (copy_all(in, out) < 0 || fsync(out) < 0) {
        int rc = fail(e, ERR_CONFIG, path, "written");
        unlink(temporary);
        return rc;
    }
    unlink(from);
    return 0;
}

/* Moves `from` to the temporary name, on the same file system or across. */
static int take_over(const char *from, const char *temporary, const char *path, struct err *e)
{
    int moved = rename(from, temporary);
    if (moved < 0 && errno == ENOENT && make_parents(temporary) == 0)
        moved = rename(from, temporary);
    if (moved < 0 && errno == EXDEV)
        return copy_over(from, temporary, path, e);
    if (moved < 0)
        return access(from, F_OK) < 0 ? fail(e, ERR_BUG, from, "published")
                                      : fail(e, ERR_CONFIG, path, "written");
    struct stat st;
    if (lstat(temporary, &st) == 0 && S_ISREG(st.st_mode))
        return 0;
    unlink(temporary);
    return err_set(e, ERR_BUG, "%s: expected a finished file, got something else", from);
}

static int file_put_file(const char *base, const char *key, const char *from, struct err *e)
{
    cleanup(free_ptr) char *path = NULL;
    int rc = object_path(base, key, &path, e);
    if (rc < 0)
        return rc;
    cleanup(free_ptr) char *temporary = temporary_beside(path);
    rc = take_over(from, temporary, path, e);
    return rc < 0 ? rc : finish(temporary, path, e);
}

static void close_dir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

static void file_sweep(const char *base, const char *folder)
{
    cleanup(free_ptr) char *path = NULL;
    struct err e;
    if (object_path(base, folder, &path, &e) < 0)
        return;
    cleanup(close_dir) DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (!strncmp(entry->d_name, TEMPORARY, strlen(TEMPORARY)))
            unlinkat(dirfd(dir), entry->d_name, 0);
}

static int file_prepare(const char *base, struct err *e)
{
    cleanup(free_ptr) char *path = NULL;
    int rc = object_path(base, "x", &path, e);
    if (rc < 0)
        return rc;
    cleanup(free_ptr) char *trial = temporary_beside(path);
    cleanup(close_fd) int fd = create(trial);
    if (fd < 0) {
        *strrchr(path, '/') = 0;
        return fail(e, ERR_CONFIG, path, "written to");
    }
    unlink(trial);
    return 0;
}

/* --- normal form ----------------------------------------------------------------------------- */

/* Removes the last component; what is a symbolic link is followed first, since its ".." is that of
 * the place it leads to. */
static void step_up(struct strbuf *path)
{
    struct stat st;
    if (path->len && lstat(path->s, &st) == 0 && S_ISLNK(st.st_mode)) {
        cleanup(free_ptr) char *real = realpath(path->s, NULL);
        if (real) {
            path->len = 0;
            strbuf_puts(path, real);
        }
    }
    while (path->len && path->s[path->len - 1] != '/')
        path->len--;
    path->len -= path->len > 0;
    if (path->s)
        path->s[path->len] = 0;
}

static int file_resolve(const char *url, char **ret, struct err *e)
{
    cleanup(free_ptr) char *path = NULL, *here = NULL;
    cleanup(strbuf_free) struct strbuf out = {0};
    int rc = path_of(url, &path, e);
    if (rc < 0)
        return rc;
    if (*path != '/' && !(here = getcwd(NULL, 0)))
        return fail(e, ERR_CONFIG, url, "resolved (the current directory)");
    if (here && strcmp(here, "/"))
        strbuf_puts(&out, here);
    for (const char *s = path; *s;) {
        size_t n = strcspn(s, "/");
        if (n == 2 && !memcmp(s, "..", 2))
            step_up(&out);
        else if (n && !(n == 1 && *s == '.'))
            strbuf_printf(&out, "/%.*s", (int)n, s);
        s += n + (s[n] == '/');
    }
    *ret = out.len ? strbuf_take(&out) : xstrdup("/");
    return 0;
}

const struct storage_backend storage_file = {
    .open = file_open,
    .put_file = file_put_file,
    .put_bytes = file_put_bytes,
    .sweep = file_sweep,
    .stat = file_stat,
    .prepare = file_prepare,
    .resolve = file_resolve,
};
