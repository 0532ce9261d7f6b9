#include "worker/sandbox.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/strbuf.h"

enum {
    OPEN_FILES_MAX = 64,       /* input, scratch, two files a rendition, and some to spare */
    OPEN_FILES_GPU_MAX = 1024, /* a driver holds dozens */
};

static int say(char *why, size_t size, const char *what)
{
    snprintf(why, size, "%s: %s", what, strerror(errno));
    return -1;
}

static void close_from(unsigned first, unsigned last)
{
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
        return;
    struct rlimit files = {.rlim_cur = 1024}; /* before Linux 5.9 */
    getrlimit(RLIMIT_NOFILE, &files);
    for (unsigned fd = first; fd <= last && fd < files.rlim_cur; fd++)
        close((int)fd);
}

void sandbox_close_descriptors(int scratch_fd)
{
    if (scratch_fd < SANDBOX_KEPT_FDS) {
        close_from(SANDBOX_KEPT_FDS, ~0U);
        return;
    }
    close_from(SANDBOX_KEPT_FDS, (unsigned)scratch_fd - 1);
    close_from((unsigned)scratch_fd + 1, ~0U);
}

/* Bytes of private writable memory that count against RLIMIT_DATA at this moment. */
static int64_t data_bytes(void)
{
    cleanup(close_file) FILE *f = fopen("/proc/self/statm", "re");
    long long pages = 0;
    if (!f || fscanf(f, "%*s %*s %*s %*s %*s %lld", &pages) != 1)
        return 0;
    return pages * sysconf(_SC_PAGESIZE);
}

/* RLIMIT_DATA rather than RLIMIT_AS: since Linux 4.7 it counts private writable mappings too, and
 * neither libraries nor a file mapped for reading nor a GPU's address space count. */
int sandbox_limit_resources(const struct limits *limits, bool has_gpu, char *why, size_t size)
{
    const struct {
        int resource;
        int64_t value;
        const char *name;
    } rows[] = {
        {RLIMIT_CORE, 0, "RLIMIT_CORE"},
        {RLIMIT_DATA, data_bytes() + limits->max_memory_bytes, "RLIMIT_DATA"},
        {RLIMIT_FSIZE, limits->max_output_bytes, "RLIMIT_FSIZE"},
        {RLIMIT_NOFILE, has_gpu ? OPEN_FILES_GPU_MAX : OPEN_FILES_MAX, "RLIMIT_NOFILE"},
        {RLIMIT_MEMLOCK, has_gpu ? INT64_MAX : 0, "RLIMIT_MEMLOCK"}, /* pinned buffers */
        {RLIMIT_MSGQUEUE, 0, "RLIMIT_MSGQUEUE"},
    };
    signal(SIGXFSZ, SIG_IGN); /* a write over the limit is EFBIG, which has a message, not a kill */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rlimit now, limit = {(rlim_t)rows[i].value, (rlim_t)rows[i].value};
        if (getrlimit(rows[i].resource, &now) == 0 && now.rlim_max < limit.rlim_max)
            limit.rlim_cur = limit.rlim_max = now.rlim_max;
        if (setrlimit(rows[i].resource, &limit) < 0)
            return say(why, size, rows[i].name);
    }
    return 0;
}

int sandbox_drop_privileges(char *why, size_t size)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return say(why, size, "PR_SET_NO_NEW_PRIVS");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return say(why, size, "PR_SET_DUMPABLE");
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    if (syscall(SYS_capset, &header, none) < 0)
        return say(why, size, "capset");
    return 0;
}

static void note_missing(struct sandbox_state *s, const char *layer, const char *why)
{
    size_t n = strlen(s->missing);
    snprintf(s->missing + n, sizeof s->missing - n, "%s%s (%s)", n ? ", " : "", layer, why);
}

int sandbox_enter(const struct limits *limits, int scratch_fd, bool has_gpu,
                  struct sandbox_state *ret, struct err *e)
{
    char why[128];
    *ret = (struct sandbox_state){0};
    if (sandbox_limit_resources(limits, has_gpu, why, sizeof why) < 0 ||
        sandbox_drop_privileges(why, sizeof why) < 0)
        return err_set(e, ERR_BUG, "the session cannot be confined: %s", why);
    if (sandbox_restrict_files(scratch_fd, has_gpu, &ret->landlock_abi, why, sizeof why) < 0)
        note_missing(ret, "Landlock", why);
    if (sandbox_restrict_calls(has_gpu, why, sizeof why) < 0)
        note_missing(ret, "seccomp", why);
    else
        ret->has_seccomp = true;
    return 0;
}

char *sandbox_describe(const struct sandbox_state *s)
{
    struct strbuf b = {0};
    strbuf_puts(&b, "rlimits");
    if (s->landlock_abi)
        strbuf_printf(&b, ", Landlock %d", s->landlock_abi);
    if (s->has_seccomp)
        strbuf_puts(&b, ", seccomp");
    return strbuf_take(&b);
}
