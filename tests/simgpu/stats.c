#include "tests/simgpu/stats.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/simgpu/call.h"

enum { NUMBERS_MAX = 512, FILE_BYTES = 65536 };

static const char *const group_name[] = {"counters", "peak", "live", "calls"};

static struct {
    pthread_mutex_t lock;
    struct number {
        enum sim_stats_group group;
        const char *name;
        int64_t value;
    } numbers[NUMBERS_MAX];
    int count;
    pid_t pid;  /* of the process that the file is for: a forked child writes none */
    char *file; /* the mapping */
    int fd;
} stats = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* Always listed, so that a reader need not tell "none" from "not counted". */
static const struct {
    enum sim_stats_group group;
    const char *name;
} always[] = {
    {SIM_COUNTERS, "htod_bytes"},
    {SIM_COUNTERS, "dtoh_bytes"},
    {SIM_COUNTERS, "dtod_bytes"},
    {SIM_COUNTERS, "htoh_bytes"},
    {SIM_COUNTERS, "kernels"},
    {SIM_COUNTERS, "frames_decoded"},
    {SIM_COUNTERS, "frames_mapped"},
    {SIM_COUNTERS, "frames_encoded"},
    {SIM_PEAK, "memory_bytes"},
    {SIM_LIVE, "context"},
    {SIM_LIVE, "memory"},
    {SIM_LIVE, "stream"},
    {SIM_LIVE, "event"},
    {SIM_LIVE, "module"},
    {SIM_LIVE, "texture"},
    {SIM_LIVE, "decoder"},
    {SIM_LIVE, "mapped_frame"},
    {SIM_LIVE, "ctx_lock"},
    {SIM_LIVE, "encoder"},
    {SIM_LIVE, "encoder_input"},
    {SIM_LIVE, "encoder_output"},
    {SIM_LIVE, "encoder_resource"},
    {SIM_LIVE, "encoder_mapping"},
};

static struct number *find(enum sim_stats_group group, const char *name)
{
    for (int i = 0; i < stats.count; i++) {
        struct number *n = &stats.numbers[i];
        if (n->group == group && (n->name == name || strcmp(n->name, name) == 0))
            return n;
    }
    if (stats.count == NUMBERS_MAX)
        sim_die("statistics: more than %d names", NUMBERS_MAX);
    stats.numbers[stats.count] = (struct number){group, name, 0};
    return &stats.numbers[stats.count++];
}

int64_t sim_stats_add(enum sim_stats_group group, const char *name, int64_t n)
{
    pthread_mutex_lock(&stats.lock);
    int64_t value = find(group, name)->value += n;
    pthread_mutex_unlock(&stats.lock);
    return value;
}

void sim_stats_peak(const char *name, int64_t value)
{
    pthread_mutex_lock(&stats.lock);
    struct number *n = find(SIM_PEAK, name);
    if (n->value < value)
        n->value = value;
    pthread_mutex_unlock(&stats.lock);
}

int64_t sim_stats_get(enum sim_stats_group group, const char *name)
{
    return sim_stats_add(group, name, 0);
}

/* SIMGPU_STATS with %p replaced by the process id. */
static void file_name(const char *pattern, char *ret, size_t size)
{
    const char *mark = strstr(pattern, "%p");
    if (mark)
        snprintf(ret, size, "%.*s%d%s", (int)(mark - pattern), pattern, (int)getpid(), mark + 2);
    else
        snprintf(ret, size, "%s", pattern);
}

__attribute__((constructor)) static void open_file(void)
{
    const char *pattern = getenv("SIMGPU_STATS");
    char name[4096];
    stats.pid = getpid();
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        sim_stats_add(always[i].group, always[i].name, 0);
    if (!pattern || !*pattern)
        return;
    file_name(pattern, name, sizeof name);
    stats.fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (stats.fd < 0 || ftruncate(stats.fd, FILE_BYTES) < 0)
        sim_die("SIMGPU_STATS: cannot write %s: %m", name);
    stats.file = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, stats.fd, 0);
    if (stats.file == MAP_FAILED)
        sim_die("SIMGPU_STATS: cannot map %s: %m", name);
}

static int print_group(char *out, int size, enum sim_stats_group group)
{
    int length = snprintf(out, size, ",\n \"%s\": {", group_name[group]);
    const char *comma = "";
    for (int i = 0; i < stats.count; i++) {
        const struct number *n = &stats.numbers[i];
        if (n->group != group)
            continue;
        length += snprintf(out + length, size - length, "%s\n  \"%s\": %lld", comma, n->name,
                           (long long)n->value);
        comma = ",";
    }
    return length + snprintf(out + length, size - length, "}");
}

/* NUMBERS_MAX names of at most 64 bytes fit well. What is left of the file is cut off, or blank
 * where the descriptor has been closed by somebody who closes all that is not his. */
__attribute__((destructor)) static void write_file(void)
{
    if (!stats.file || stats.pid != getpid())
        return;
    int length = snprintf(stats.file, FILE_BYTES, "{\"pid\": %d", (int)stats.pid);
    for (int group = 0; group < SIM_STATS_GROUPS; group++)
        length += print_group(stats.file + length, FILE_BYTES - length, group);
    length += snprintf(stats.file + length, FILE_BYTES - length, "}\n");
    memset(stats.file + length, ' ', FILE_BYTES - length);
    if (ftruncate(stats.fd, length) < 0)
        return;
}
