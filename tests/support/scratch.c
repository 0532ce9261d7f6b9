#include "tests/support/scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64];
static pid_t owner;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void remove_all(void)
{
    if (getpid() == owner)
        nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static _Noreturn void die(const char *what)
{
    perror(what);
    abort();
}

const char *scratch_file(const char *name)
{
    static char paths[8][256];
    static unsigned n;
    if (!directory[0]) {
        snprintf(directory, sizeof directory, "/tmp/transcode-test-XXXXXX");
        if (!mkdtemp(directory))
            die("mkdtemp");
        owner = getpid();
        atexit(remove_all);
    }
    char *path = paths[n++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static void append(FILE *to, const char *from, int64_t most)
{
    FILE *f = fopen(from, "rb");
    if (!f)
        die(from);
    char buf[65536];
    size_t got;
    while (most > 0 && (got = fread(buf, 1, sizeof buf, f)) > 0) {
        if ((int64_t)got > most)
            got = (size_t)most;
        if (fwrite(buf, 1, got, to) != got)
            die("write");
        most -= (int64_t)got;
    }
    fclose(f);
}

static FILE *create(const char *path)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        die(path);
    return f;
}

const char *scratch_write(const char *name, const void *bytes, size_t n)
{
    const char *path = scratch_file(name);
    FILE *f = create(path);
    if (fwrite(bytes, 1, n, f) != n)
        die(path);
    fclose(f);
    return path;
}

const char *scratch_cut(const char *name, const char *from, int permille)
{
    const char *path = scratch_file(name);
    FILE *f = create(path);
    append(f, from, scratch_size(from) * permille / 1000);
    fclose(f);
    return path;
}

const char *scratch_join(const char *name, const char *a, const char *b)
{
    const char *path = scratch_file(name);
    FILE *f = create(path);
    append(f, a, INT64_MAX);
    append(f, b, INT64_MAX);
    fclose(f);
    return path;
}

int64_t scratch_size(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        die(path);
    return st.st_size;
}
