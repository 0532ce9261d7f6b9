/*
 * The file system as a session sees it: its scratch root, and with a GPU the device nodes that its
 * driver holds open already. NVIDIA's kernel module lets a descriptor carry one mapping for its
 * whole life, so that the driver opens its nodes again for each further one (an encoder's buffers,
 * for instance); that gives a process nothing which the open descriptor does not.
 *
 * The kernel interface is
 * stable and versioned; what an older kernel does not know is masked out by its version, so that
 * each gives what it can. The numbers below stand here because Debian 12's headers end at
 * version 1.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "worker/sandbox.h"

enum { /* linux/landlock.h, LANDLOCK_ACCESS_FS_* */
       FS_WRITE_FILE = 1 << 1,
       FS_READ_FILE = 1 << 2,
       FS_READ_DIR = 1 << 3,
       FS_REMOVE_DIR = 1 << 4,
       FS_REMOVE_FILE = 1 << 5,
       FS_MAKE_DIR = 1 << 7,
       FS_MAKE_REG = 1 << 8,
       FS_REFER = 1 << 13,
       FS_TRUNCATE = 1 << 14,
       FS_IOCTL_DEV = 1 << 15,
};
#define FS_NODE (FS_WRITE_FILE | FS_READ_FILE | FS_IOCTL_DEV)
#define FS_SCRATCH                                                                               \
    (FS_WRITE_FILE | FS_READ_FILE | FS_READ_DIR | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | \
     FS_MAKE_REG | FS_REFER | FS_TRUNCATE)

enum { NET_ALL = (1 << 0) | (1 << 1) };   /* bind and connect of TCP */
enum { SCOPE_ALL = (1 << 0) | (1 << 1) }; /* abstract Unix sockets, signals */
enum { CREATE_RULESET_VERSION = 1, RULE_PATH_BENEATH = 1, NODE_FDS = 1024 };

struct ruleset { /* struct landlock_ruleset_attr */
    uint64_t fs, net, scope;
};

struct __attribute__((packed)) path_beneath {
    uint64_t access;
    int32_t parent_fd;
};

/* What each version of the interface added. */
static const struct {
    uint64_t fs, net, scope;
    size_t size; /* of struct ruleset known to it */
} versions[] = {
    [1] = {(1 << 13) - 1, 0, 0, 8}, [2] = {FS_REFER, 0, 0, 8},      [3] = {FS_TRUNCATE, 0, 0, 8},
    [4] = {0, NET_ALL, 0, 16},      [5] = {FS_IOCTL_DEV, 0, 0, 16}, [6] = {0, 0, SCOPE_ALL, 24},
};
enum { VERSIONS = sizeof versions / sizeof versions[0] };

static int failed(char *why, size_t size)
{
    snprintf(why, size, "%s", strerror(errno));
    return -1;
}

static int add_rule(int ruleset, uint64_t access, int fd)
{
    const struct path_beneath rule = {access, fd};
    return (int)syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0);
}

static int add_nodes(int ruleset, uint64_t access)
{
    for (int fd = SANDBOX_KEPT_FDS; fd < NODE_FDS; fd++) {
        struct stat st;
        if (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && add_rule(ruleset, access, fd) < 0)
            return -1;
    }
    return 0;
}

int sandbox_restrict_files(int scratch_fd, bool has_gpu, int *ret_abi, char *why, size_t size)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
    if (abi < 1)
        return failed(why, size);
    struct ruleset all = {0};
    size_t known = 0;
    for (int v = 1; v < VERSIONS && v <= abi; v++) {
        all.fs |= versions[v].fs;
        all.net |= versions[v].net;
        all.scope |= versions[v].scope;
        known = versions[v].size;
    }
    cleanup(close_fd) int ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, known, 0);
    if (ruleset < 0)
        return failed(why, size);
    if (scratch_fd >= 0 && add_rule(ruleset, FS_SCRATCH & all.fs, scratch_fd) < 0)
        return failed(why, size);
    if (has_gpu && add_nodes(ruleset, FS_NODE & all.fs) < 0)
        return failed(why, size);
    if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        return failed(why, size);
    *ret_abi = (int)abi;
    return 0;
}
