/* Where the HTTP server listens, and its life. An address that others can reach wants tokens. */
#include "gateway/daemon.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/log.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 512
#define HOST_BYTES_MAX 255

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
    if (errno == ECONNREFUSED) (void)unlink(path); /* left by one that died */
    if (bind(fd, (const struct sockaddr *)&a, sizeof a) ||
        chmod(path, mr_peer_socket_mode(peers)) || listen(fd, BACKLOG)) {
        int err = mr_fail(e, MR_EIO, "--listen: \"%s\": %s", path, strerror(errno));
        (void)close(fd);
        return err;
    }
    *out = fd;
    return MR_OK;
}

/* "host:port", "[::1]:port". */
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
            "--listen: others can reach \"%s\", so --token-file is wanted "
            "(or an address on loopback, e.g. 127.0.0.1:%s)",
            host, port);
    else if (bind_tcp(list, &h->listen_fd))
        err = mr_fail(e, MR_EIO, "--listen: \"%s\": %s", h->options.listen, strerror(errno));
    freeaddrinfo(list);
    if (err) return err;

    struct sockaddr_storage bound;
    socklen_t n = sizeof bound;
    mr_assert(!getsockname(h->listen_fd, (struct sockaddr *)&bound, &n));
    h->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&bound)->sin6_port
                                                : ((struct sockaddr_in *)(void *)&bound)->sin_port);
    return MR_OK;
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
}

void mr_http_close(struct mr_http **http)
{
    struct mr_http *h = *http;
    if (!h) return;
    if (h->daemon) MHD_stop_daemon(h->daemon);
    if (h->listen_fd >= 0) (void)close(h->listen_fd);
    if (h->dashboard_fd >= 0) (void)close(h->dashboard_fd);
    if (!strncmp(h->options.listen, "unix:", 5) && h->daemon) (void)unlink(h->options.listen + 5);
    for (size_t i = 0; i < h->hosts_count; i++)
        mr_release(h->hosts[i]);
    mr_release(h->hosts);
    mr_release(h);
    *http = NULL;
}

int mr_http_open(const struct mr_http_options *options, struct mr_http **out, struct mr_error *e)
{
    MR_AUTO(mr_http_close) struct mr_http *h = mr_alloc(sizeof *h);
    h->options = *options;
    h->listen_fd = h->dashboard_fd = -1;
    char host[HOST_BYTES_MAX + 1] = "";
    bool is_unix = !strncmp(options->listen, "unix:", 5);
    int err = is_unix ? listen_unix(options->listen + 5, &options->peers, &h->listen_fd, e)
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
    h->daemon = mr_daemon_start(h, e);
    if (!h->daemon) return MR_EIO;
    *out = MR_STEAL(h);
    return MR_OK;
}

void mr_http_quiesce(struct mr_http *h)
{
    int fd = MHD_quiesce_daemon(h->daemon);
    if (fd >= 0) h->listen_fd = fd; /* ours again */
}

int mr_http_port(const struct mr_http *h)
{
    return h->port;
}
