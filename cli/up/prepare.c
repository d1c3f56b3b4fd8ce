/* Everything that `millrace up` does before it starts a process: it checks flags, and finds or
 * creates what they do not give. */
#include "cli/up/internal.h"

#include "base/alloc.h"
#include "cli/client/paths.h"
#include "host/os/file.h"
#include "host/os/machine.h"
#include "rpc/util/auth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes; sun_path has room for 108. */
#define SOCKET_PATH_MAX 105
#define SOCKET_LONGEST "/worker-63-1023.sock"
#define LISTEN_QUEUE 512

static int absolute(struct mr_up *u, const char **path, struct mr_error *e)
{
    char *full = realpath(*path, NULL);
    if (!full)
        return mr_fail(
            e, MR_ENOENT, "--data-root, --plugin or --token-file: %s: %s", *path, strerror(errno));
    mr_buf_add(&u->paths, &full, sizeof full);
    *path = full;
    return MR_OK;
}

static int prepare_paths(struct mr_up *u, struct mr_error *e)
{
    static const char *here[] = {"."};
    struct mr_up_config *c = &u->config;
    struct mr_texts *roots = &c->rules.data_root;
    if (!roots->count && !c->rules.token_file)
        *roots = (struct mr_texts){mr_copy(here, sizeof here), 1};
    int err = MR_OK;
    for (size_t i = 0; i < roots->count && !err; i++)
        err = absolute(u, &roots->items[i], e);
    for (size_t i = 0; i < c->plugin.count && !err; i++)
        err = absolute(u, &c->plugin.items[i], e);
    if (!err && c->rules.token_file) err = absolute(u, &c->rules.token_file, e);
    return err;
}

static int make_dirs(struct mr_up *u, struct mr_error *e)
{
    static const char *const below[] = {"run", "log", "redis"};
    u->home = mr_paths_home();
    MR_AUTO(mr_free_ptr)
    char *wanted = u->config.dir ? mr_copy_text(u->config.dir) : mr_format("%s/cluster", u->home);
    int err = mr_file_make_dirs(wanted, 0700, e);
    if (err) return err;
    u->dir = realpath(wanted, NULL);
    if (!u->dir) return mr_fail(e, MR_EIO, "--dir: %s: %s", wanted, strerror(errno));
    u->run = mr_format("%s/run", u->dir);
    if (strchr(u->run, ','))
        return mr_fail(e, MR_EINVAL,
            "--dir: %s has a comma, which is not allowed in the address of a socket", u->dir);
    if (strlen(u->run) + strlen(SOCKET_LONGEST) > SOCKET_PATH_MAX)
        return mr_fail(e, MR_EINVAL,
            "--dir: %s is too long for the path of a socket (at most %d bytes)", u->dir,
            (int)(SOCKET_PATH_MAX - strlen("/run" SOCKET_LONGEST)));
    for (size_t i = 0; i < MR_ARRAY_LEN(below) && !err; i++) {
        MR_AUTO(mr_free_ptr) char *path = mr_format("%s/%s", u->dir, below[i]);
        err = mr_file_make_dirs(path, 0700, e);
    }
    for (uint64_t i = 0; i < u->config.nodes && !err; i++) {
        MR_AUTO(mr_free_ptr) char *path = mr_format("%s/node-%" PRIu64, u->dir, i);
        err = mr_file_make_dirs(path, 0700, e);
    }
    /* u->run may have existed already, with another mode. */
    if (!err && chmod(u->run, 0700))
        return mr_fail(e, MR_EIO, "--dir: %s: cannot set mode 0700: %s", u->run, strerror(errno));
    return err;
}

static int take_lock(struct mr_up *u, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/lock", u->dir);
    u->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (u->lock_fd < 0) return mr_fail(e, MR_EIO, "%s: %s", path, strerror(errno));
    if (flock(u->lock_fd, LOCK_EX | LOCK_NB)) {
        char pid[32] = "";
        ssize_t n = read(u->lock_fd, pid, sizeof pid - 1);
        pid[n > 1 ? n - 1 : 0] = 0; /* removes the newline */
        return mr_fail(e, MR_EEXIST,
            "a cluster runs in %s already (process %.20s): stop it, or give another --dir", u->dir,
            pid);
    }
    char pid[32];
    int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(u->lock_fd, 0) || pwrite(u->lock_fd, pid, (size_t)n, 0) != n)
        return mr_fail(e, MR_EIO, "%s: %s", path, strerror(errno));
    return MR_OK;
}

/* Creates the cluster's secret, 256 random bits, unless the file exists. */
static int prepare_secret(const struct mr_up *u, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/secret", u->dir);
    /* Each service checks the mode and the content of an existing file. */
    if (access(path, F_OK) == 0) return MR_OK;
    unsigned char bytes[32];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return mr_fail(e, MR_EIO, "getrandom: %s", strerror(errno));
    char text[2 * sizeof bytes + 2];
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    text[2 * sizeof bytes] = '\n';
    text[2 * sizeof bytes + 1] = 0;
    return mr_file_write(path, mr_str(text), 0600, e);
}

static int listen_at(const struct addrinfo *a, int *fd, int *port)
{
    struct sockaddr_storage at = {0};
    socklen_t size = sizeof at;
    int one = 1;
    *fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0) return errno;
    (void)setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    int err = bind(*fd, a->ai_addr, a->ai_addrlen) || listen(*fd, LISTEN_QUEUE) ? errno : 0;
    if (!err && getsockname(*fd, (struct sockaddr *)&at, &size)) err = errno;
    if (err) (void)close(*fd);
    if (at.ss_family == AF_INET)
        *port = ntohs(((const struct sockaddr_in *)(const void *)&at)->sin_port);
    if (at.ss_family == AF_INET6)
        *port = ntohs(((const struct sockaddr_in6 *)(const void *)&at)->sin6_port);
    return err;
}

/* Listens at the address u->host ("[::1]", "localhost", a name of this machine) and u->port. */
static int listen_there(struct mr_up *u, struct mr_error *e)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list = NULL;
    char port[16], host[sizeof u->host];
    bool is_v6 = u->host[0] == '[' && u->host[strlen(u->host) - 1] == ']';
    (void)snprintf(port, sizeof port, "%d", u->port);
    (void)snprintf(host, sizeof host, "%.*s", (int)(strlen(u->host) - (is_v6 ? 2 : 0)),
        u->host + (is_v6 ? 1 : 0));
    /* "localhost" may resolve to ::1 only, but every client tries 127.0.0.1. */
    if (!strcmp(host, "localhost")) (void)snprintf(host, sizeof host, "127.0.0.1");
    /* A name that does not resolve is no error here, because the gateway reports it. */
    if (getaddrinfo(host, port, &hints, &list)) return MR_OK;
    int fd = 0, err = listen_at(list, &fd, &u->port);
    freeaddrinfo(list);
    if (err)
        return mr_fail(e, MR_EEXIST,
            "--listen: %s: %s (another cluster? --listen %s:0 takes a free port)", u->config.listen,
            strerror(err), u->host);
    u->listen_fd = fd;
    return MR_OK;
}

/* Reads --listen and opens the socket that the gateway inherits. While one gateway replaces
 * another, connections wait in the queue of this socket. Port 0 becomes a free port. */
static int prepare_listen(struct mr_up *u, struct mr_error *e)
{
    const char *colon = strrchr(u->config.listen, ':');
    char *end = NULL;
    long port = colon ? strtol(colon + 1, &end, 10) : -1;
    size_t n = colon ? (size_t)(colon - u->config.listen) : 0;
    if (!colon || !n || n >= sizeof u->host || *end || end == colon + 1 || port < 0 || port > 65535)
        return mr_fail(e, MR_EINVAL, "--listen: \"%s\" is not HOST:PORT", u->config.listen);
    memcpy(u->host, u->config.listen, n);
    u->port = (int)port;
    if (!u->config.rules.token_file && mr_rpc_address_is_public(u->config.listen))
        return mr_fail(e, MR_EPERM,
            "--listen: other machines can reach \"%s\", so --token-file is needed (or an address on "
            "loopback, e.g. 127.0.0.1:8470)",
            u->config.listen);
    return listen_there(u, e);
}

static void remove_sockets(const struct mr_up *u)
{
    static const char *const names[] = {"redis.sock", "scheduler.sock", "trainer.sock"};
    for (size_t i = 0; i < MR_ARRAY_LEN(names); i++) {
        MR_AUTO(mr_free_ptr) char *path = mr_format("%s/%s", u->run, names[i]);
        (void)unlink(path);
    }
}

static int check_rules(const struct mr_up *u, struct mr_error *e)
{
    char home[PATH_MAX];
    const char *const denied[] = {u->dir, realpath(u->home, home) ? home : u->home, NULL};
    return mr_rules_check(&u->config.rules, denied, e);
}

int mr_up_prepare(struct mr_up *u, struct mr_error *e)
{
    struct mr_up_config *c = &u->config;
    struct mr_machine machine;
    mr_machine_read(&machine);
    if (!c->workers) c->workers = machine.cpus;
    /* An object store limits its memory to mr_machine_share, too. c->memory is never above that
     * limit, so greet() prints the memory that each store takes. */
    uint64_t most = mr_machine_share(&machine, UINT64_MAX) / c->nodes;
    c->memory = MR_MIN(c->memory ? c->memory : machine.memory_bytes / 2 / c->nodes, most);
    int err = prepare_paths(u, e);
    if (!err) err = make_dirs(u, e);
    if (!err) err = check_rules(u, e);
    if (!err) err = take_lock(u, e);
    if (!err) err = prepare_secret(u, e);
    if (!err) err = prepare_listen(u, e);
    if (!err) err = mr_up_grpc_prepare(&c->grpc, c->rules.token_file != NULL, &c->tls.files, e);
    if (c->grpc.host[0]) mr_up_tls_name(&c->tls, c->grpc.host);
    if (!err) err = mr_up_tls_prepare(&c->tls, u->dir, u->host, e);
    if (err) return err;
    remove_sockets(u);
    u->redis = mr_format("unix:%s/redis.sock", u->run);
    u->scheduler = mr_format("unix:%s/scheduler.sock", u->run);
    u->trainer = mr_format("unix:%s/trainer.sock", u->run);
    return MR_OK;
}
