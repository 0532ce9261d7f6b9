#include "tests/support/simgpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/scratch.h"

#define PART "SIMGPU_TEST_PART"

/* The folder of the libraries, next to the test programs in the build tree. */
static void find_libraries(char *ret, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", ret, size - 32);
    ret[n < 0 ? 0 : n] = 0;
    char *slash = strrchr(ret, '/');
    strcpy(slash ? slash : ret, "/simgpu");
}

static int run_part(const struct simgpu_part *parts, const char *name)
{
    for (const struct simgpu_part *p = parts; p && p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p->run();
    fprintf(stderr, "no part %s\n", name);
    return 2;
}

int simgpu_main(int argc, char **argv, const struct simgpu_part *parts, int (*tests)(void))
{
    (void)argc;
    char folder[4096], library[4200], path[8300];
    const char *now = getenv("LD_LIBRARY_PATH"), *part = getenv(PART);
    find_libraries(folder, sizeof folder);
    snprintf(library, sizeof library, "%s/libcuda.so.1", folder);
    if (access(library, R_OK) < 0) {
        printf("skipped: no simulated GPU was built (libffmpeg-nvenc-dev is not installed)\n");
        return 77;
    }
    if (!now || strncmp(now, folder, strlen(folder)) != 0) {
        snprintf(path, sizeof path, "%s%s%s", folder, now ? ":" : "", now ? now : "");
        setenv("LD_LIBRARY_PATH", path, 1);
        execv("/proc/self/exe", argv);
        perror("exec");
        return 2;
    }
    return part ? run_part(parts, part) : tests();
}

static void become(const char *part, const char *const settings[], const char *stats)
{
    setenv(PART, part, 1);
    setenv("SIMGPU_STATS", stats, 1);
    for (int i = 0; settings && settings[i]; i++)
        putenv((char *)settings[i]);
    execl("/proc/self/exe", part, (char *)NULL);
    perror("exec");
    _exit(2);
}

pid_t simgpu_start(const char *part, const char *const settings[])
{
    const char *stats = scratch_file("stats.%p");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become(part, settings, stats);
    return pid;
}

int simgpu_wait(pid_t pid, json_t **ret_stats)
{
    int status = 0;
    char name[64];
    waitpid(pid, &status, 0);
    snprintf(name, sizeof name, "stats.%d", (int)pid);
    if (ret_stats)
        *ret_stats = json_load_file(scratch_file(name), 0, NULL);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int simgpu_run(const char *part, const char *const settings[], json_t **ret_stats)
{
    return simgpu_wait(simgpu_start(part, settings), ret_stats);
}

int64_t simgpu_number(const json_t *stats, const char *group, const char *name)
{
    const json_t *number = json_object_get(json_object_get(stats, group), name);
    return json_is_integer(number) ? json_integer_value(number) : -1;
}

const char *simgpu_leaks(const json_t *stats)
{
    static char line[512];
    const char *name;
    json_t *number;
    size_t length = 0;
    json_t *live = json_object_get(stats, "live");
    if (!live)
        return "no statistics";
    line[0] = 0;
    json_object_foreach(live, name,
                        number) if (json_integer_value(number) != 0 && length < sizeof line)
        length += (size_t)snprintf(line + length, sizeof line - length, "%s %lld ", name,
                                   (long long)json_integer_value(number));
    return line;
}

void *simgpu_function(const char *name)
{
    void *library = dlopen("libsimgpu.so", RTLD_LAZY | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}

int64_t simgpu_own(int group, const char *name)
{
    int64_t (*get)(int, const char *);
    *(void **)&get = simgpu_function("sim_stats_get");
    return get ? get(group, name) : 0;
}
