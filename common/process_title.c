/*
 * The command line that ps shows is read from the process's own memory: the kernel remembers where
 * the strings of argv and the environment, which lie one after the other, begin and end. A title is
 * written over them, after both have been copied elsewhere. When the title is longer than argv was,
 * the kernel sees that argv's last byte is no zero and reads on up to the next one.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/process_inside.h"
#include "common/strbuf.h"

enum { TITLE_MAX = 256 };

static char *area; /* the strings' old place; set once, before there are threads */
static size_t area_size;
static char **moved_argv;
/* Never read, but kept, for LeakSanitizer to find it when setenv() puts another in its place. */
static char **moved_environ __attribute__((used));

/* Extends the area by the strings that follow it without a gap. */
static void extend_area(char *const *strings)
{
    for (; *strings; strings++)
        if (*strings == area + area_size)
            area_size += strlen(*strings) + 1;
}

static bool is_room(const char *variable)
{
    return !strncmp(variable, PROCESS_TITLE_ROOM, strlen(PROCESS_TITLE_ROOM));
}

static char **copy_strings(char *const *strings)
{
    size_t n = 0, kept = 0;
    while (strings[n])
        n++;
    char **copy = xcalloc(n + 1, sizeof *copy);
    for (size_t i = 0; i < n; i++)
        if (!is_room(strings[i]))
            copy[kept++] = xstrdup(strings[i]);
    return copy;
}

char **process_title_init(int argc, char **argv)
{
    if (area || argc < 1)
        return moved_argv ? moved_argv : argv;
    area = argv[0];
    extend_area(argv);
    extend_area(environ);
    moved_argv = copy_strings(argv);
    environ = moved_environ = copy_strings(environ);
    char *slash = strrchr(moved_argv[0], '/');
    program_invocation_name = moved_argv[0];
    program_invocation_short_name = slash ? slash + 1 : moved_argv[0];
    return moved_argv;
}

void process_title_set(const char *fmt, ...)
{
    static const char prefix[] = "transcode: ";
    char title[TITLE_MAX];
    va_list ap;
    va_start(ap, fmt);
    memcpy(title, prefix, sizeof prefix);
    vsnprintf(title + sizeof prefix - 1, sizeof title - sizeof prefix + 1, fmt, ap);
    va_end(ap);
    prctl(PR_SET_NAME, title + sizeof prefix - 1);
    if (!area_size)
        return;
    size_t n = strnlen(title, area_size - 1);
    memcpy(area, title, n);
    memset(area + n, 0, area_size - n);
}
