/* The accept thread runs one loop: it accepts connections until the kernel's queue of them is empty
 * or no further connection can be accepted for now. Then it sleeps. */
#include "gateway/server/accept.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/flag.h"
#include "host/os/log.h"
#include "host/thread.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NO_ROOM_MS 100 /* pause in ms between attempts while no descriptor is left */
#define FULL_MS 10     /* pause in ms between checks while --connections is reached */
#define QUEUE_MAX 1024

struct mr_acceptor {
    struct mr_accept_options options;
    struct mr_thread *thread;
    int stop_fd;
    struct mr_gauge *paused;
    struct mr_counter *refused;
    struct mr_flag no_descriptors, is_full;
};

static const char too_many[] =
    "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nConnection: close\r\n"
    "Retry-After: 1\r\nContent-Length: 96\r\n\r\n"
    "{\"code\":8,\"message\":\"your address has too many connections open here; "
    "close some\",\"details\":[]}\n";

struct mr_str mr_accept_key(const struct sockaddr *address)
{
    static const struct mr_str nobody = {0};
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
        if (ntohl(in->sin_addr.s_addr) >> 24 == 127) return nobody;
        return mr_str_of((const char *)&in->sin_addr, sizeof in->sin_addr);
    }
    if (address->sa_family != AF_INET6) return nobody;
    const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)address;
    if (IN6_IS_ADDR_LOOPBACK(&in->sin6_addr)) return nobody;
    bool is_v4 = IN6_IS_ADDR_V4MAPPED(&in->sin6_addr);
    if (is_v4 && in->sin6_addr.s6_addr[12] == 127) return nobody;
    /* A client may use any address of its IPv6 network, so the key is the /64 prefix of the
     * address. */
    return mr_str_of((const char *)&in->sin6_addr, is_v4 ? sizeof in->sin6_addr : 8);
}

/* Sets (`on`) or clears one reason for a pause. Logs each change once. */
static void set_pause(struct mr_acceptor *a, struct mr_flag *which, bool on, const char *why)
{
    if (mr_flag_is_set(which) == on) return;
    mr_flag_set(which, on);
    mr_gauge_set(a->paused, mr_flag_is_set(&a->no_descriptors) || mr_flag_is_set(&a->is_full));
    if (on)
        mr_log(MR_WARN, "accept.paused", "why=\"%s\"", why);
    else
        mr_log(MR_INFO, "accept.resumed", "after=\"%s\"", why);
}

static void refuse(struct mr_acceptor *a, int fd)
{
    mr_counter_add(a->refused, 1);
    if (!a->options.is_tls) {
        /* The request is read, because close() with unread bytes resets the connection and the
         * answer is lost. */
        char asked[4096];
        (void)recv(fd, asked, sizeof asked, MSG_DONTWAIT);
        (void)send(fd, too_many, sizeof too_many - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)shutdown(fd, SHUT_WR);
    }
    (void)close(fd);
}

static bool is_shortage(int err)
{
    return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM;
}

/* True: the error is about one queued connection, which its client gave up (accept(2)). Any other
 * error is about the listening socket, and the next attempt would fail in the same way. */
static bool is_of_one(int err)
{
    return err == ECONNABORTED || err == EINTR || err == EPROTO || err == EPERM;
}

/* Accepts one connection. Returns 0 if the next attempt may follow at once, -1 if the queue is
 * empty, and otherwise the number of ms to pause. */
static int accept_one(struct mr_acceptor *a)
{
    const struct mr_accept_options *o = &a->options;
    bool is_full = atomic_load_explicit(&o->connections->v, memory_order_relaxed) >=
                   (int64_t)o->connections_max;
    set_pause(a, &a->is_full, is_full, "as many connections as --connections allows");
    if (is_full) return FULL_MS;
    struct sockaddr_storage from = {0};
    socklen_t n = sizeof from;
    int fd = accept4(o->listen_fd, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
    bool is_short = fd < 0 && is_shortage(errno);
    bool is_empty = fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (fd >= 0 || is_short) set_pause(a, &a->no_descriptors, is_short, "no descriptors are left");
    if (is_short) return NO_ROOM_MS;
    if (fd < 0) return is_empty ? -1 : is_of_one(errno) ? 0 : NO_ROOM_MS;
    struct mr_str key = mr_accept_key((struct sockaddr *)&from);
    if (key.n && !mr_quota_has_room(o->quota, key))
        refuse(a, fd);
    else
        o->take(o->ctx, fd, (struct sockaddr *)&from, n);
    return 0;
}

static void run(void *ctx)
{
    struct mr_acceptor *a = ctx;
    struct pollfd fds[] = {{a->stop_fd, POLLIN, 0}, {a->options.listen_fd, POLLIN, 0}};
    int pause = -1;
    for (;;) {
        (void)poll(fds, pause >= 0 ? 1 : 2, pause);
        if (fds[0].revents) break;
        for (pause = 0; pause == 0;)
            pause = accept_one(a);
    }
    for (int i = 0; i < QUEUE_MAX && !a->options.is_inherited && accept_one(a) == 0; i++)
        ;
    (void)close(a->options.listen_fd);
}

struct mr_acceptor *mr_acceptor_new(const struct mr_accept_options *options)
{
    struct mr_acceptor *a = mr_alloc(sizeof *a);
    a->options = *options;
    a->stop_fd = eventfd(0, EFD_CLOEXEC);
    mr_assert(a->stop_fd >= 0);
    a->paused = mr_stats_gauge(options->stats, "millrace_http_accept_paused",
        "1: no connection is accepted, for want of descriptors or by --connections.", NULL);
    a->refused = mr_stats_counter(options->stats, "millrace_http_connections_refused_total",
        "Connections closed at once: their address has --connections-per-address.", NULL);
    return a;
}

void mr_acceptor_start(struct mr_acceptor *a)
{
    a->thread = mr_thread_start("accept", run, a);
}

void mr_acceptor_stop(struct mr_acceptor *a)
{
    if (!a->thread) return;
    uint64_t one = 1;
    ssize_t written = write(a->stop_fd, &one, sizeof one);
    mr_assert(written == (ssize_t)sizeof one);
    mr_thread_join(&a->thread);
}

void mr_acceptor_free(struct mr_acceptor **ap)
{
    struct mr_acceptor *a = MR_STEAL(*ap);
    if (!a) return;
    mr_acceptor_stop(a);
    (void)close(a->stop_fd);
    mr_release(a);
}

const char *mr_acceptor_pause_reason(const struct mr_acceptor *a)
{
    if (mr_flag_is_set(&a->no_descriptors))
        return "the gateway has no descriptor left for another connection";
    if (mr_flag_is_set(&a->is_full)) return "the gateway has as many connections as it may have";
    return NULL;
}
