/*
 * The system calls of a session: a list of what decoding and encoding need, everything else fails.
 *
 * A call that is not listed fails with ENOSYS, as on a kernel that does not have it: libraries are
 * written to fall back then (clone3 to clone, for instance), so that the list need not follow every
 * version of the C library. Calls whose arguments decide are allowed by argument. No open file can
 * be turned into more: there is no socket, exec, fork, mount, ioctl, chmod or signal to others in
 * the list, and what opens files is bounded by Landlock.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "worker/sandbox.h"

static const struct group {
    const char *what, *calls; /* names, separated by blanks */
} allowed[] = {
    {"descriptors it holds",
     "read readv pread64 preadv preadv2 write writev pwrite64 pwritev pwritev2 lseek _llseek close "
     "close_range dup fstat fstat64 ftruncate ftruncate64 fallocate fsync fdatasync "
     "sync_file_range fadvise64 fadvise64_64 copy_file_range"},
    {"paths: where they lead is Landlock's business",
     "open openat stat stat64 lstat lstat64 newfstatat fstatat64 statx access faccessat faccessat2 "
     "readlink readlinkat getdents getdents64 getcwd mkdir mkdirat unlink unlinkat rmdir rename "
     "renameat renameat2"},
    {"the channel: sockets that are there, none can be made",
     "sendmsg recvmsg sendto recvfrom poll ppoll select pselect6"},
    {"memory", "brk mmap mmap2 munmap mremap mprotect madvise membarrier"},
    {"threads",
     "futex futex_time64 futex_waitv set_robust_list get_robust_list rseq set_tid_address gettid "
     "getpid getppid sched_yield sched_getaffinity sched_setaffinity sched_getparam "
     "sched_getscheduler sched_get_priority_max sched_get_priority_min arch_prctl exit exit_group"},
    {"signals to itself",
     "rt_sigaction rt_sigprocmask rt_sigreturn sigreturn rt_sigpending rt_sigtimedwait "
     "sigaltstack restart_syscall"},
    {"time and facts",
     "clock_gettime clock_gettime64 clock_getres clock_nanosleep clock_nanosleep_time64 nanosleep "
     "gettimeofday time times getrusage getuid geteuid getgid getegid uname sysinfo getcpu "
     "getrandom"},
};

/* On the descriptors of a GPU that were opened before the sandbox closed. */
static const struct group gpu = {"the driver", "ioctl eventfd2 mincore mlock munlock"};

/* Calls that do nothing and say that they did: encoders ask for real-time priority when they run as
 * root, which they must not have, and complain in every thread when it is refused. */
static const struct group pretended = {"priority", "sched_setscheduler sched_setparam setpriority"};

/* Calls that expect a refusal, not a missing call. */
static const struct group refused = {"signals to others", "kill tkill"};

/* Allowed when argument `arg`, masked, equals `value`. Several rows of one call: any may match. */
struct by_argument {
    const char *call;
    unsigned arg;
    uint64_t mask, value;
};

#define NEW_NAMESPACES                                                                            \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
     CLONE_NEWNET)
#define INT_MASK 0xffffffffULL

static const struct by_argument by_argument[] = {
    {"clone", 0, CLONE_THREAD | NEW_NAMESPACES, CLONE_THREAD}, /* a thread, not a child */
    {"prlimit64", 0, INT_MASK, 0},                             /* its own limits */
    {"prctl", 0, INT_MASK, PR_SET_NAME},
    {"prctl", 0, INT_MASK, PR_GET_NAME},
    {"prctl", 0, INT_MASK, 0x53564d41 /* PR_SET_VMA: malloc names its memory */},
    {"fcntl", 1, INT_MASK, F_DUPFD},
    {"fcntl", 1, INT_MASK, F_DUPFD_CLOEXEC},
    {"fcntl", 1, INT_MASK, F_GETFD},
    {"fcntl", 1, INT_MASK, F_SETFD},
    {"fcntl", 1, INT_MASK, F_GETFL},
    {"fcntl", 1, INT_MASK, F_SETFL},
};

enum {
    ALLOWED = sizeof allowed / sizeof allowed[0],
    BY_ARGUMENT = sizeof by_argument / sizeof by_argument[0],
};

static void release(scmp_filter_ctx *filter)
{
    if (*filter)
        seccomp_release(*filter);
}

/* A rule for a call by name; a name that this library or machine does not know needs none. */
static int add(scmp_filter_ctx filter, uint32_t action, const char *call,
               const struct scmp_arg_cmp *condition)
{
    int number = seccomp_syscall_resolve_name(call);
    if (number == __NR_SCMP_ERROR)
        return 0;
    int rc = seccomp_rule_add_array(filter, action, number, condition ? 1 : 0, condition);
    return rc == -EDOM || rc == -EINVAL ? 0 : rc; /* not on this architecture */
}

static int add_group(scmp_filter_ctx filter, uint32_t action, const struct group *group)
{
    cleanup(free_ptr) char *names = xstrdup(group->calls);
    char *rest = NULL;
    int rc = 0;
    for (char *n = strtok_r(names, " ", &rest); n && rc == 0; n = strtok_r(NULL, " ", &rest))
        rc = add(filter, action, n, NULL);
    return rc;
}

static int add_all(scmp_filter_ctx filter, bool has_gpu)
{
    int rc = add_group(filter, SCMP_ACT_ERRNO(0), &pretended);
    if (rc == 0)
        rc = add_group(filter, SCMP_ACT_ERRNO(EPERM), &refused);
    for (int i = 0; i < ALLOWED && rc == 0; i++)
        rc = add_group(filter, SCMP_ACT_ALLOW, &allowed[i]);
    if (has_gpu && rc == 0)
        rc = add_group(filter, SCMP_ACT_ALLOW, &gpu);
    for (int i = 0; i < BY_ARGUMENT && rc == 0; i++) {
        const struct by_argument *row = &by_argument[i];
        struct scmp_arg_cmp condition = {row->arg, SCMP_CMP_MASKED_EQ, row->mask, row->value};
        rc = add(filter, SCMP_ACT_ALLOW, row->call, &condition);
    }
    struct scmp_arg_cmp self = {0, SCMP_CMP_EQ, (uint64_t)getpid(), 0};
    if (rc == 0)
        rc = add(filter, SCMP_ACT_ALLOW, "tgkill", &self); /* abort() and pthread_kill() */
    return rc;
}

int sandbox_restrict_calls(bool has_gpu, char *why, size_t size)
{
    cleanup(release) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    int rc = filter ? 0 : -ENOMEM;
    if (rc == 0)
        rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    if (rc == 0)
        rc = add_all(filter, has_gpu);
    if (rc == 0)
        rc = seccomp_load(filter);
    if (rc < 0)
        snprintf(why, size, "%s", strerror(-rc));
    return rc < 0 ? -1 : 0;
}
