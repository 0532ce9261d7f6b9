/*
 * drop: a proxy that loses replies. What clients say reaches the server; of what the server
 * answers, one reading in so many is thrown away and the connection closed with it, so that the
 * client cannot know whether its command was run.
 *
 *     drop LISTEN-PORT SERVER-PORT ONE-IN [SEED]       on 127.0.0.1, until it is killed
 *
 * SIGUSR1: prints on stdout how many replies were lost so far.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAIRS_MAX = 256 };

static struct {
    int client, server;
} pairs[PAIRS_MAX];
static int n_pairs;
static long lost;
static volatile sig_atomic_t is_asked;

static void on_signal(int sig)
{
    (void)sig;
    is_asked = 1;
}

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int listen_on(int port)
{
    struct sockaddr_in at = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 64)) {
        perror("drop: listen");
        exit(1);
    }
    return fd;
}

static void accept_one(int listener, int server_port)
{
    struct sockaddr_in to = loopback(server_port);
    int client = accept(listener, NULL, NULL), yes = 1;
    if (client < 0)
        return;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (n_pairs == PAIRS_MAX || connect(server, (struct sockaddr *)&to, sizeof to)) {
        close(client);
        close(server);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    pairs[n_pairs].client = client;
    pairs[n_pairs++].server = server;
}

static void close_pair(int i)
{
    close(pairs[i].client);
    close(pairs[i].server);
    pairs[i] = pairs[--n_pairs];
}

/* Passes on what one side has said. False: the pair is to be closed. */
static bool pass(int from, int to, bool is_reply, long one_in)
{
    char buf[65536];
    ssize_t n = read(from, buf, sizeof buf);
    if (n <= 0)
        return false;
    if (is_reply && random() % one_in == 0) {
        lost++;
        return false;
    }
    for (ssize_t done = 0, k; done < n; done += k)
        if ((k = send(to, buf + done, (size_t)(n - done), MSG_NOSIGNAL)) <= 0)
            return false;
    return true;
}

static void turn(int listener, int server_port, long one_in)
{
    struct pollfd fds[1 + 2 * PAIRS_MAX] = {{.fd = listener, .events = POLLIN}};
    int n = n_pairs;
    for (int i = 0; i < n; i++) {
        fds[1 + 2 * i] = (struct pollfd){.fd = pairs[i].client, .events = POLLIN};
        fds[2 + 2 * i] = (struct pollfd){.fd = pairs[i].server, .events = POLLIN};
    }
    if (poll(fds, (nfds_t)(1 + 2 * n), -1) < 0)
        return;                      /* asked */
    for (int i = n - 1; i >= 0; i--) /* from the last: closing one moves the last into its place */
        if ((fds[1 + 2 * i].revents && !pass(pairs[i].client, pairs[i].server, false, one_in)) ||
            (fds[2 + 2 * i].revents && !pass(pairs[i].server, pairs[i].client, true, one_in)))
            close_pair(i);
    if (fds[0].revents)
        accept_one(listener, server_port);
}

int main(int argc, char **argv)
{
    if (argc < 4 || atol(argv[3]) < 2)
        return fprintf(stderr, "usage: drop LISTEN-PORT SERVER-PORT ONE-IN [SEED]\n"), 2;
    struct sigaction ask = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &ask, NULL);
    srandom(argc > 4 ? (unsigned)atol(argv[4]) : 1);
    for (int listener = listen_on(atoi(argv[1]));;) {
        turn(listener, atoi(argv[2]), atol(argv[3]));
        if (is_asked) {
            is_asked = 0;
            printf("%ld\n", lost);
            fflush(stdout);
        }
    }
}
