/* Opens and closes the HTTP server and its listening socket. An address that other machines can
 * reach needs tokens. */
#include "gateway/server/internal.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/os/log.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Wrong tokens that one client address may send in each window. */
#define WRONG_TOKENS_MAX 10
#define WRONG_TOKENS_WINDOW (60 * MR_SECOND)
#define BACKLOG 512
#define HOST_BYTES_MAX 255
#define INHERITED_FD 3 /* the first socket of sd_listen_fds(3) */

static bool is_unix(const struct mr_http *h)
{
    return !strncmp(h->options.listen, "unix:", 5);
}

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)a;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    if (a->sa_family != AF_INET6) return false;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static int listen_unix(
    const char *path, const struct mr_peer_rules *peers, int *out, struct mr_error *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof a.sun_path)
        return mr_fail(e, MR_EINVAL, "--listen: a UNIX socket has a path of 1 to %zu bytes",
            sizeof a.sun_path - 1);
    memcpy(a.sun_path, path, n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return mr_fail(e, MR_EIO, "no socket: %s", strerror(errno));
    if (connect(fd, (const struct sockaddr *)&a, sizeof a) == 0) {
        (void)close(fd);
        return mr_fail(e, MR_EEXIST, "--listen: another server answers at \"%s\"", path);
    }
    /* The socket file belongs to a process that died. */
    if (errno == ECONNREFUSED) (void)unlink(path);
    if (bind(fd, (const struct sockaddr *)&a, sizeof a) ||
        chmod(path, mr_peer_socket_mode(peers)) || listen(fd, BACKLOG)) {
        int err = mr_fail(e, MR_EIO, "--listen: \"%s\": %s", path, strerror(errno));
        (void)close(fd);
        return err;
    }
    *out = fd;
    return MR_OK;
}

/* Splits "host:port" or "[::1]:port". */
static int cut_address(
    const char *text, char host[HOST_BYTES_MAX + 1], const char **port, struct mr_error *e)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    bool brackets = n > 2 && text[0] == '[' && text[n - 1] == ']';
    if (brackets) {
        text++;
        n -= 2;
    }
    if (n == 0 || n > HOST_BYTES_MAX || !colon[1])
        return mr_fail(e, MR_EINVAL, "--listen: \"%s\" is neither HOST:PORT nor unix:PATH", text);
    memcpy(host, text, n);
    host[n] = 0;
    *port = colon + 1;
    return MR_OK;
}

static int bind_tcp(const struct addrinfo *a, int *out)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return MR_EIO;
    int yes = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, BACKLOG)) {
        int kept = errno;
        (void)close(fd);
        errno = kept;
        return MR_EIO;
    }
    *out = fd;
    return MR_OK;
}

static int note_port(struct mr_http *h)
{
    struct sockaddr_storage bound = {0};
    socklen_t n = sizeof bound;
    if (getsockname(h->listen_fd, (struct sockaddr *)&bound, &n)) return MR_EIO;
    if (bound.ss_family == AF_INET6)
        h->port = ntohs(((struct sockaddr_in6 *)(void *)&bound)->sin6_port);
    if (bound.ss_family == AF_INET)
        h->port = ntohs(((struct sockaddr_in *)(void *)&bound)->sin_port);
    bool is_open = h->port && !is_loopback((struct sockaddr *)&bound);
    return is_open && !h->options.tokens ? MR_EPERM : MR_OK;
}

/* Takes a listening socket from the parent process, if it has passed one (socket activation,
 * sd_listen_fds(3)). The socket outlives this process, so no connection is refused while one
 * gateway replaces another. --listen still gives the name for the check of the header Host. */
static int take_inherited(struct mr_http *h, char host[HOST_BYTES_MAX + 1], struct mr_error *e)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    if (!pid || !count || strtol(pid, NULL, 10) != (long)getpid()) return MR_OK;
    int is_listening = 0;
    socklen_t n = sizeof is_listening;
    if (strcmp(count, "1") != 0)
        return mr_fail(e, MR_EINVAL, "LISTEN_FDS: expected 1 socket, not %.20s", count);
    if (getsockopt(INHERITED_FD, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &n) || !is_listening)
        return mr_fail(e, MR_EINVAL, "LISTEN_FDS: descriptor %d does not listen", INHERITED_FD);
    const char *port = "";
    int err = is_unix(h) ? MR_OK : cut_address(h->options.listen, host, &port, e);
    if (err) return err;
    (void)fcntl(INHERITED_FD, F_SETFD, FD_CLOEXEC);
    (void)fcntl(INHERITED_FD, F_SETFL, fcntl(INHERITED_FD, F_GETFL) | O_NONBLOCK);
    h->listen_fd = INHERITED_FD;
    h->is_inherited = true;
    if (note_port(h))
        return mr_fail(e, MR_EPERM,
            "LISTEN_FDS: other machines can reach this socket, so --token-file is needed");
    return MR_OK;
}

static int listen_tcp(struct mr_http *h, char host[HOST_BYTES_MAX + 1], struct mr_error *e)
{
    const char *port = "";
    int err = cut_address(h->options.listen, host, &port, e);
    if (err) return err;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list;
    int bad = getaddrinfo(host, port, &hints, &list);
    if (bad) return mr_fail(e, MR_EINVAL, "--listen: \"%s\": %s", host, gai_strerror(bad));
    bool is_private = is_loopback(list->ai_addr);
    if (!is_private && !h->options.tokens)
        err = mr_fail(e, MR_EPERM,
            "--listen: other machines can reach \"%s\", so --token-file is needed "
            "(or an address on loopback, e.g. 127.0.0.1:%s)",
            host, port);
    else if (bind_tcp(list, &h->listen_fd))
        err = mr_fail(e, MR_EIO, "--listen: \"%s\": %s", h->options.listen, strerror(errno));
    freeaddrinfo(list);
    if (!err) (void)note_port(h);
    return err;
}

static void add_host(struct mr_http *h, const char *name)
{
    bool v6 = strchr(name, ':') && name[0] != '[';
    h->hosts =
        mr_grow(h->hosts, h->hosts_count * sizeof(char *), (h->hosts_count + 1) * sizeof(char *));
    h->hosts[h->hosts_count++] = v6 ? mr_format("[%s]", name) : mr_copy_text(name);
}

static void name_hosts(struct mr_http *h, const char *listened)
{
    static const char *const usual[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < MR_ARRAY_LEN(usual); i++)
        add_host(h, usual[i]);
    if (listened[0]) add_host(h, listened);
    for (size_t i = 0; i < h->options.hosts_count; i++)
        add_host(h, h->options.hosts[i]);
}

static void make_stats(struct mr_http *h)
{
    static const char *const classes[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
    for (size_t i = 0; i < MR_ARRAY_LEN(classes); i++) {
        char label[32];
        (void)snprintf(label, sizeof label, "status=\"%s\"", classes[i]);
        h->requests[i] = mr_stats_counter(h->options.stats, "millrace_http_requests_total",
            "HTTP requests by class of their status.", label);
    }
    h->connections = mr_stats_gauge(
        h->options.stats, "millrace_http_connections", "Open HTTP connections.", NULL);
    h->unanswered = mr_stats_gauge(h->options.stats, "millrace_http_connections_new",
        "Open HTTP connections of which no request has been answered yet.", NULL);
}

void mr_http_close(struct mr_http **http)
{
    struct mr_http *h = *http;
    if (!h) return;
    mr_http_quiesce(h);
    if (h->daemon) MHD_stop_daemon(h->daemon);
    mr_acceptor_free(&h->acceptor);
    if (h->listen_fd >= 0) (void)close(h->listen_fd);
    if (h->dashboard_fd >= 0) (void)close(h->dashboard_fd);
    mr_quota_free(&h->quota);
    mr_attempts_free(&h->attempts);
    for (size_t i = 0; i < h->hosts_count; i++)
        mr_release(h->hosts[i]);
    mr_release(h->hosts);
    mr_release(h);
    *http = NULL;
}

/* Closes the socket at once, so that the next gateway can listen while this one still answers. */
void mr_http_quiesce(struct mr_http *h)
{
    if (!h->acceptor || mr_flag_is_set(&h->quiescing)) return;
    mr_flag_set(&h->quiescing, true);
    if (is_unix(h) && !h->is_inherited) (void)unlink(h->options.listen + 5);
    mr_acceptor_stop(h->acceptor);
}

static void take_connection(void *ctx, int fd, const struct sockaddr *address, socklen_t bytes)
{
    const struct mr_http *h = ctx;
    mr_gauge_add(h->unanswered, 1);
    /* MHD_add_connection closes fd if it fails */
    if (MHD_add_connection(h->daemon, fd, address, bytes) != MHD_YES)
        mr_gauge_add(h->unanswered, -1);
}

static struct mr_acceptor *make_acceptor(struct mr_http *h)
{
    const struct mr_accept_options o = {.listen_fd = h->listen_fd,
        .is_inherited = h->is_inherited,
        .is_tls = h->options.is_https,
        .connections_max = h->options.connections_max,
        .quota = h->quota,
        .connections = h->connections,
        .stats = h->options.stats,
        .take = take_connection,
        .ctx = h};
    return mr_acceptor_new(&o);
}

int mr_http_open(const struct mr_http_options *options, struct mr_http **out, struct mr_error *e)
{
    MR_AUTO(mr_http_close) struct mr_http *h = mr_alloc(sizeof *h);
    h->options = *options;
    h->listen_fd = h->dashboard_fd = -1;
    char host[HOST_BYTES_MAX + 1] = "";
    int err = take_inherited(h, host, e);
    if (!err && !h->is_inherited)
        err = is_unix(h) ? listen_unix(options->listen + 5, &options->peers, &h->listen_fd, e)
                         : listen_tcp(h, host, e);
    if (err) return err;
    name_hosts(h, host);
    if (options->dashboard) {
        h->dashboard_fd = open(options->dashboard, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (h->dashboard_fd < 0)
            return mr_fail(
                e, MR_EINVAL, "--dashboard: \"%s\": %s", options->dashboard, strerror(errno));
    }
    make_stats(h);
    h->quota = mr_quota_new(options->connections_each_max);
    h->attempts = mr_attempts_new(WRONG_TOKENS_MAX, WRONG_TOKENS_WINDOW);
    h->acceptor = make_acceptor(h);
    h->daemon = mr_daemon_start(h, e);
    if (!h->daemon) return MR_EIO;
    mr_acceptor_start(h->acceptor);
    h->listen_fd = -1; /* the acceptor owns the descriptor now */
    *out = MR_STEAL(h);
    return MR_OK;
}

const struct mr_gauge *mr_http_unanswered(const struct mr_http *h)
{
    return h->unanswered;
}

int mr_http_port(const struct mr_http *h)
{
    return h->port;
}
