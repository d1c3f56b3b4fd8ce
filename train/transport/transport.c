/* The UNIX socket of this process. One thread accepts connections and answers one hello from each
 * client. The hello names a shard or an all-reduce group, its *host* (host.h), which admits or
 * refuses the client. The connection of an admitted client only shows that both sides live. */
#include "train/transport/transport.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "host/os/process_dir.h"
#include "host/thread.h"
#include "rpc/tokens.h"
#include "train/transport/host.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECTIONS_MAX 2048u
#define HELLO_WAIT (10 * MR_SECOND) /* a client that sends no hello within this time is hung up */
#define CONNECT_PAUSE (10 * MR_MS)
#define DIR_KIND "millrace-share"
#define CUT_TO 1024u /* mr_transport_slice cuts a vector only at multiples of this index */

struct connection {
    int fd;
    mr_time until;                  /* deadline of the hello; MR_NEVER: the hello has come */
    struct mr_transport_host *host; /* NULL: no hello has come yet, or the host was removed */
    uint32_t slot;
};

static struct {
    pthread_mutex_t lock; /* guards all members below */
    pthread_cond_t idle;
    bool is_configured;
    char node[256];
    const struct mr_credential *credential; /* NULL: none */
    struct mr_peer_rules peers;
    struct mr_process_dir dir;
    char path[96];
    int listen_fd, wake_fd;
    bool is_open, is_ending;
    struct mr_thread *thread;
    struct mr_list hosts;
    struct mr_transport_host *busy; /* the host whose function is running; NULL: none */
    struct connection *connections;
    uint32_t connections_count;
} transport = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER, .listen_fd = -1};

void mr_transport_configure(const struct mr_transport_options *o)
{
    pthread_mutex_lock(&transport.lock);
    (void)snprintf(transport.node, sizeof transport.node, "%s", o->node ? o->node : "");
    transport.credential = o->credential;
    transport.peers = o->peers;
    pthread_mutex_unlock(&transport.lock);
}

const char *mr_transport_node(void)
{
    return transport.node;
}

struct mr_transport_traffic *mr_transport_traffic(void)
{
    static struct mr_transport_traffic traffic;
    return &traffic;
}

const struct mr_credential *mr_transport_credential(void)
{
    return transport.credential;
}

static void show_secret(char out[MR_TRANSPORT_SECRET_MAX])
{
    struct mr_buf text;
    struct mr_str secret = {0};
    memset(out, 0, MR_TRANSPORT_SECRET_MAX);
    mr_buf_init(&text, 2 * MR_TRANSPORT_SECRET_MAX);
    if (transport.credential) mr_credential_add(transport.credential, &text);
    if (mr_token_of(mr_buf_str(&text), &secret) && secret.n < MR_TRANSPORT_SECRET_MAX)
        memcpy(out, secret.p, secret.n);
    mr_buf_fini(&text);
}

void mr_transport_slice(
    uint64_t count, uint32_t parts, uint32_t part, uint64_t *first, uint64_t *part_count)
{
    mr_assert(parts && part < parts);
    uint64_t each = (count + parts - 1) / parts;
    each = (each + CUT_TO - 1) / CUT_TO * CUT_TO;
    uint64_t from = MR_MIN(count, each * part);
    *first = from;
    *part_count = MR_MIN(count, from + each) - from;
}

void mr_transport_hello_fill(struct mr_transport_hello *h, const char *session)
{
    h->magic = MR_TRANSPORT_MAGIC;
    h->protocol = MR_TRANSPORT_PROTOCOL;
    (void)snprintf(h->session, sizeof h->session, "%s", session);
    show_secret(h->secret);
}

/* ---- the thread -------------------------------------------------------------------------------*/

/* Compares secrets in constant time. */
static bool secret_is_right(struct mr_str shown)
{
    const struct mr_credential *c = transport.credential;
    if (!c) return !shown.n;
    if (!c->file) return mr_token_is_same(shown, mr_str(c->fixed));
    return mr_secret_file_accepted(c->file, shown) & 1u << MR_SERVICE_WORKER;
}

static struct mr_transport_host *host_find(const char *session, uint32_t index, bool is_group)
{
    MR_LIST_EACH(node, &transport.hosts)
    {
        struct mr_transport_host *h = MR_LIST_ITEM(node, struct mr_transport_host, node);
        if (h->index == index && h->is_group == is_group && !strcmp(h->session, session)) return h;
    }
    return NULL;
}

static int hello_check(struct mr_transport_hello *h, struct mr_error *e)
{
    bool ends = memchr(h->session, 0, sizeof h->session) && memchr(h->secret, 0, sizeof h->secret);
    if (h->magic != MR_TRANSPORT_MAGIC || h->protocol != MR_TRANSPORT_PROTOCOL || !ends)
        return mr_fail(e, MR_EFORMAT, "the first packet is no hello of this protocol");
    if (!secret_is_right(mr_str(h->secret)))
        return mr_fail(e, MR_EAUTH, "the client did not show the cluster's secret");
    if (h->kind < MR_TRANSPORT_READER || h->kind > MR_TRANSPORT_RANK)
        return mr_fail(e, MR_EFORMAT, "kind %u of a hello is unknown", h->kind);
    return MR_OK;
}

/* Marks the host as busy and releases the lock: a host's functions run without the lock.
 * mr_transport_host_remove waits until they have returned. */
static void busy_begin(struct mr_transport_host *h)
{
    transport.busy = h;
    pthread_mutex_unlock(&transport.lock);
}

static void busy_end(void)
{
    pthread_mutex_lock(&transport.lock);
    transport.busy = NULL;
    pthread_cond_broadcast(&transport.idle);
}

/* Answers a hello. True: the client was admitted. False: the connection is to be closed. The lock
 * is held, as in hear, drop and accept_one. */
static bool greet(uint32_t at, struct mr_transport_hello *hello, int fd)
{
    struct mr_transport_admission w = {.magic = MR_TRANSPORT_MAGIC};
    struct mr_error e = {0};
    int fds[MR_TRANSPORT_FDS] = {-1, -1};
    struct mr_transport_host *h = NULL;
    int err = hello_check(hello, &e);
    if (!err) {
        h = host_find(hello->session, hello->index, hello->kind == MR_TRANSPORT_RANK);
        if (!h)
            err = mr_fail(
                &e, MR_ENOENT, "\"%s\" %u is not served here (yet)", hello->session, hello->index);
    }
    if (h) {
        busy_begin(h);
        err = h->admit(h, hello, fd, &w, fds, &e);
        busy_end();
        fd = -1;
    }
    if (fd >= 0) (void)close(fd);
    w.err = err;
    (void)snprintf(w.text, sizeof w.text, "%.*s", (int)sizeof w.text - 1, e.text);
    struct connection *c = &transport.connections[at];
    c->until = MR_NEVER;
    if (!err) {
        c->host = h;
        c->slot = w.slot;
    }
    size_t n = fds[0] < 0 ? 0 : fds[1] < 0 ? 1 : 2;
    return !mr_transport_send(c->fd, &w, sizeof w, fds, n) && !err;
}

static bool hear(uint32_t at)
{
    struct mr_transport_hello hello;
    int fds[MR_TRANSPORT_FDS];
    int err = mr_transport_receive(transport.connections[at].fd, &hello, sizeof hello, fds);
    if (err == MR_EAGAIN) return true;
    if (fds[1] >= 0) (void)close(fds[1]);
    if (!err && transport.connections[at].until != MR_NEVER) return greet(at, &hello, fds[0]);
    if (fds[0] >= 0) (void)close(fds[0]);
    return false; /* the client has hung up, or has sent a second packet */
}

static void drop(uint32_t at)
{
    struct connection c = transport.connections[at];
    transport.connections[at] = transport.connections[--transport.connections_count];
    (void)close(c.fd);
    if (!c.host) return;
    busy_begin(c.host);
    c.host->gone(c.host, c.slot);
    busy_end();
}

static void accept_one(void)
{
    int fd = accept4(transport.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (transport.connections_count == CONNECTIONS_MAX ||
        !mr_peer_may_enter(&transport.peers, fd, transport.path)) {
        (void)close(fd);
        return;
    }
    transport.connections[transport.connections_count++] =
        (struct connection){.fd = fd, .until = mr_time_after(mr_clock_now(), HELLO_WAIT)};
}

static void serve(void *ctx)
{
    (void)ctx;
    struct pollfd *fds = mr_alloc_array(CONNECTIONS_MAX + 2, sizeof *fds);
    pthread_mutex_lock(&transport.lock);
    while (!transport.is_ending) {
        uint32_t n = transport.connections_count;
        bool has_deadline = false;
        for (uint32_t i = 0; i < n; i++) {
            fds[i] = (struct pollfd){transport.connections[i].fd, POLLIN, 0};
            has_deadline |= transport.connections[i].until != MR_NEVER;
        }
        fds[n] = (struct pollfd){transport.listen_fd, POLLIN, 0};
        fds[n + 1] = (struct pollfd){transport.wake_fd, POLLIN, 0};
        pthread_mutex_unlock(&transport.lock);
        (void)poll(fds, n + 2, has_deadline ? 1000 : -1);
        pthread_mutex_lock(&transport.lock);
        if (fds[n + 1].revents) {
            uint64_t v;
            (void)!read(transport.wake_fd, &v, sizeof v);
        }
        mr_time now = mr_clock_now();
        for (uint32_t i = n; i-- > 0;) { /* only this thread adds and removes connections */
            bool ends = transport.connections[i].until <= now;
            if (fds[i].revents) ends |= !hear(i);
            if (ends) drop(i);
        }
        if (fds[n].revents) accept_one();
    }
    pthread_mutex_unlock(&transport.lock);
    mr_release(fds);
}

/* ---- opening ----------------------------------------------------------------------------------*/

static const char *base_dir(void)
{
    const char *base = secure_getenv("XDG_RUNTIME_DIR");
    /* the path has to fit into sun_path, which has 108 bytes */
    return base && strlen(base) <= 30 ? base : "/tmp";
}

size_t mr_transport_sweep(void)
{
    return mr_process_dir_sweep(base_dir(), DIR_KIND);
}

static int open_locked(struct mr_error *e)
{
    if (transport.is_open) return MR_OK;
    int err = mr_process_dir_open(&transport.dir, base_dir(), DIR_KIND, e);
    if (err) return err;
    (void)snprintf(transport.path, sizeof transport.path, "%s/share.sock", transport.dir.path);
    struct sockaddr_un at;
    err = mr_transport_address(transport.path, &at, e);
    mr_assert(!err); /* base_dir limits the length */
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) ||
        chmod(transport.path, mr_peer_socket_mode(&transport.peers)) || listen(fd, 128)) {
        err = mr_fail(e, MR_EIO, "cannot listen on \"%s\": %s", transport.path, strerror(errno));
        if (fd >= 0) (void)close(fd);
        mr_process_dir_close(&transport.dir);
        return err;
    }
    transport.listen_fd = fd;
    transport.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    mr_assert(transport.wake_fd >= 0);
    transport.connections = mr_alloc_array(CONNECTIONS_MAX, sizeof *transport.connections);
    if (!transport.hosts.next) mr_list_init(&transport.hosts);
    transport.is_open = true;
    transport.is_ending = false;
    transport.thread = mr_thread_start("share", serve, NULL);
    return MR_OK;
}

int mr_transport_socket(const char **path, struct mr_error *e)
{
    pthread_mutex_lock(&transport.lock);
    int err = open_locked(e);
    pthread_mutex_unlock(&transport.lock);
    if (!err) *path = transport.path;
    return err;
}

static void wake_thread(void)
{
    uint64_t one = 1;
    (void)!write(transport.wake_fd, &one, sizeof one);
}

void mr_transport_close(void)
{
    pthread_mutex_lock(&transport.lock);
    bool was_open = transport.is_open;
    if (was_open) {
        mr_assert(mr_list_is_empty(&transport.hosts));
        transport.is_ending = true;
        wake_thread();
    }
    pthread_mutex_unlock(&transport.lock);
    if (!was_open) return;
    mr_thread_join(&transport.thread);
    for (uint32_t i = 0; i < transport.connections_count; i++)
        (void)close(transport.connections[i].fd);
    transport.connections_count = 0;
    mr_release(transport.connections);
    (void)close(transport.listen_fd);
    (void)close(transport.wake_fd);
    mr_process_dir_close(&transport.dir);
    transport.is_open = false;
}

void mr_transport_unlink(void)
{
    pthread_mutex_lock(&transport.lock);
    if (transport.is_open) mr_process_dir_close(&transport.dir);
    pthread_mutex_unlock(&transport.lock);
}

int mr_transport_host_add(struct mr_transport_host *h, struct mr_error *e)
{
    pthread_mutex_lock(&transport.lock);
    int err = open_locked(e);
    if (!err && host_find(h->session, h->index, h->is_group))
        err = mr_fail(e, MR_EEXIST, "this process serves %s %u of session \"%s\" already",
            h->is_group ? "group" : "shard", h->index, h->session);
    if (!err) mr_list_add_tail(&transport.hosts, &h->node);
    pthread_mutex_unlock(&transport.lock);
    return err;
}

void mr_transport_host_remove(struct mr_transport_host *h)
{
    pthread_mutex_lock(&transport.lock);
    mr_list_remove(&h->node);
    while (transport.busy == h)
        pthread_cond_wait(&transport.idle, &transport.lock);
    for (uint32_t i = 0; i < transport.connections_count; i++) {
        struct connection *c = &transport.connections[i];
        if (c->host != h) continue;
        c->host = NULL;
        (void)shutdown(c->fd, SHUT_RDWR); /* the thread notices this and drops the connection */
    }
    pthread_mutex_unlock(&transport.lock);
}

/* ---- the other end ----------------------------------------------------------------------------*/

static int wait_readable(int socket, mr_time deadline)
{
    mr_time now = mr_clock_now();
    mr_duration left = deadline > now ? deadline - now : 0;
    struct pollfd p = {socket, POLLIN, 0};
    int ms = (int)MR_MIN((left + MR_MS - 1) / MR_MS, (mr_duration)1000);
    return poll(&p, 1, ms);
}

/* True: the socket is of the same user. The hello carries the cluster's secret, so it is not sent
 * to another user's socket. */
static bool is_peer_ours(int socket)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &n) && peer.uid == geteuid();
}

static int ask(int socket, const struct mr_transport_hello *hello, int fd, mr_time deadline,
    struct mr_transport_admission *w, int fds[MR_TRANSPORT_FDS], struct mr_error *e)
{
    int err = mr_transport_send(socket, hello, sizeof *hello, &fd, fd >= 0 ? 1 : 0);
    while (!err) {
        err = mr_transport_receive(socket, w, sizeof *w, fds);
        if (err != MR_EAGAIN) break;
        err = MR_OK;
        if (mr_clock_now() >= deadline) err = MR_ETIMEOUT;
        if (!err) (void)wait_readable(socket, deadline);
    }
    if (err)
        return mr_fail(
            e, err, "a role on this node did not admit the connection: %s", mr_err_words(err));
    if (w->magic != MR_TRANSPORT_MAGIC)
        return mr_fail(e, MR_EFORMAT, "the admission by a role on this node is malformed");
    w->text[sizeof w->text - 1] = 0;
    if (w->err) return mr_fail(e, w->err > 0 ? MR_EFORMAT : w->err, "%s", w->text);
    return MR_OK;
}

int mr_transport_connect(const char *path, const struct mr_transport_hello *hello, int fd,
    mr_time deadline, struct mr_transport_admission *w, int fds[MR_TRANSPORT_FDS], int *out,
    struct mr_error *e)
{
    fds[0] = fds[1] = -1;
    struct sockaddr_un at;
    int err = mr_transport_address(path, &at, e);
    if (err) return err;
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0) return mr_fail(e, MR_EIO, "cannot make a socket: %s", strerror(errno));
    if (connect(s, (const struct sockaddr *)&at, sizeof at)) {
        err = mr_fail(e, MR_EAWAY, "cannot connect to \"%s\": %s", path, strerror(errno));
    } else if (!is_peer_ours(s)) {
        err = mr_fail(e, MR_EAWAY, "\"%s\" is served by another user", path);
    } else {
        err = ask(s, hello, fd, deadline, w, fds, e);
    }
    if (err) {
        for (int i = 0; i < MR_TRANSPORT_FDS; i++)
            if (fds[i] >= 0) (void)close(fds[i]);
        fds[0] = fds[1] = -1;
        (void)close(s);
        return err;
    }
    *out = s;
    return MR_OK;
}

bool mr_transport_is_hung_up(int socket)
{
    char byte;
    ssize_t n = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}
