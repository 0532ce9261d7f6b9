#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/process.h"

static atomic_int count;
static int event_fd = -1; /* set before the handlers are */

static void on_signal(int sig)
{
    (void)sig;
    int saved = errno;
    atomic_fetch_add(&count, 1);
    ssize_t ignored = write(event_fd, &(uint64_t){1}, sizeof(uint64_t));
    (void)ignored;
    errno = saved;
}

void process_signals_catch(void)
{
    static const int caught[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction old, action = {.sa_handler = on_signal}; /* without SA_RESTART: EINTR */
    if (event_fd >= 0)
        return;
    event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++)
        if (caught[i] != SIGHUP ||
            (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN))
            sigaction(caught[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int process_signal_count(void)
{
    return atomic_load(&count);
}

int process_signal_fd(void)
{
    return event_fd;
}

/* Cleared before it is read: a signal in between is counted and leaves the descriptor readable. */
int process_signal_count_and_clear(void)
{
    uint64_t n;
    ssize_t ignored = read(event_fd, &n, sizeof n);
    (void)ignored;
    return process_signal_count();
}
