/* The socket of this process: one thread that accepts, reads one hello from each who comes, lets
 * its host answer, and then only waits for the connection to break. */
#include "train/transport/transport.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/log.h"
#include "host/scratch.h"
#include "host/thread.h"
#include "rpc/tokens.h"
#include "train/transport/segment.h"

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
#define HELLO_WAIT (10 * MR_SECOND) /* for who connects and says nothing */
#define CONNECT_PAUSE (10 * MR_MS)
#define SCRATCH "millrace-share"
#define CUT_TO 1024u /* parts begin at multiples of it, all but the last end there too */

struct connection {
    int fd;
    mr_time until;              /* for the hello; MR_NEVER: said */
    struct mr_share_host *host; /* NULL: none yet, or gone */
    uint32_t slot;
};

static struct {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t idle;
    bool is_configured;
    char node[256];
    const struct mr_credential *credential; /* NULL: none */
    struct mr_peer_rules peers;
    struct mr_scratch dir;
    char path[96];
    int listen_fd, wake_fd;
    bool is_open, is_ending;
    struct mr_thread *thread;
    struct mr_list hosts;
    struct mr_share_host *busy; /* its function runs */
    struct connection *connections;
    uint32_t connections_count;
} share = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER, .listen_fd = -1};

void mr_share_configure(const struct mr_share_options *o)
{
    pthread_mutex_lock(&share.lock);
    (void)snprintf(share.node, sizeof share.node, "%s", o->node ? o->node : "");
    share.credential = o->credential;
    share.peers = o->peers;
    pthread_mutex_unlock(&share.lock);
}

const char *mr_share_node(void)
{
    return share.node;
}

struct mr_share_traffic *mr_share_traffic(void)
{
    static struct mr_share_traffic traffic;
    return &traffic;
}

const struct mr_credential *mr_share_credential(void)
{
    return share.credential;
}

static void show_secret(char out[MR_SHARE_SECRET_MAX])
{
    struct mr_buf text;
    struct mr_str secret = {0};
    memset(out, 0, MR_SHARE_SECRET_MAX);
    mr_buf_init(&text, 2 * MR_SHARE_SECRET_MAX);
    if (share.credential) mr_credential_add(share.credential, &text);
    if (mr_token_of(mr_buf_str(&text), &secret) && secret.n < MR_SHARE_SECRET_MAX)
        memcpy(out, secret.p, secret.n);
    mr_buf_fini(&text);
}

void mr_share_cut(
    uint64_t count, uint32_t parts, uint32_t part, uint64_t *first, uint64_t *part_count)
{
    mr_assert(parts && part < parts);
    uint64_t each = (count + parts - 1) / parts;
    each = (each + CUT_TO - 1) / CUT_TO * CUT_TO;
    uint64_t from = MR_MIN(count, each * part);
    *first = from;
    *part_count = MR_MIN(count, from + each) - from;
}

void mr_share_hello_fill(struct mr_share_hello *h, const char *session)
{
    h->magic = MR_SHARE_MAGIC;
    h->protocol = MR_SHARE_PROTOCOL;
    (void)snprintf(h->session, sizeof h->session, "%s", session);
    show_secret(h->secret);
}

/* ---- the thread -------------------------------------------------------------------------------*/

static bool secret_is_right(struct mr_str shown) /* takes as long for a wrong one */
{
    const struct mr_credential *c = share.credential;
    if (!c) return !shown.n;
    if (!c->file) return mr_token_is_same(shown, mr_str(c->fixed));
    return mr_secret_file_accepted(c->file, shown) & 1u << MR_SERVICE_WORKER;
}

static struct mr_share_host *host_find(const char *session, uint32_t index, bool is_group)
{
    MR_LIST_EACH(node, &share.hosts)
    {
        struct mr_share_host *h = MR_LIST_ITEM(node, struct mr_share_host, node);
        if (h->index == index && h->is_group == is_group && !strcmp(h->session, session)) return h;
    }
    return NULL;
}

static int hello_check(struct mr_share_hello *h, struct mr_error *e)
{
    bool ends = memchr(h->session, 0, sizeof h->session) && memchr(h->secret, 0, sizeof h->secret);
    if (h->magic != MR_SHARE_MAGIC || h->protocol != MR_SHARE_PROTOCOL || !ends)
        return mr_fail(e, MR_EFORMAT, "the first packet is no hello of this protocol");
    if (!secret_is_right(mr_str(h->secret)))
        return mr_fail(e, MR_EAUTH, "the secret of a worker was not shown");
    if (h->kind < MR_SHARE_READER || h->kind > MR_SHARE_RANK)
        return mr_fail(e, MR_EFORMAT, "kind %u of a hello is unknown", h->kind);
    return MR_OK;
}

/* Calls a host with the lock released; NULL when it has gone meanwhile. */
static void busy_begin(struct mr_share_host *h)
{
    share.busy = h;
    pthread_mutex_unlock(&share.lock);
}

static void busy_end(void)
{
    pthread_mutex_lock(&share.lock);
    share.busy = NULL;
    pthread_cond_broadcast(&share.idle);
}

/* With the lock held, as all below. False: the connection ends. */
static bool greet(uint32_t at, struct mr_share_hello *hello, int fd)
{
    struct mr_share_welcome w = {.magic = MR_SHARE_MAGIC};
    struct mr_error e = {0};
    int fds[MR_SHARE_FDS] = {-1, -1};
    struct mr_share_host *h = NULL;
    int err = hello_check(hello, &e);
    if (!err) {
        h = host_find(hello->session, hello->index, hello->kind == MR_SHARE_RANK);
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
    struct connection *c = &share.connections[at];
    c->until = MR_NEVER;
    if (!err) {
        c->host = h;
        c->slot = w.slot;
    }
    size_t n = fds[0] < 0 ? 0 : fds[1] < 0 ? 1 : 2;
    return !mr_share_send(c->fd, &w, sizeof w, fds, n) && !err;
}

static bool hear(uint32_t at)
{
    struct mr_share_hello hello;
    int fds[MR_SHARE_FDS];
    int err = mr_share_receive(share.connections[at].fd, &hello, sizeof hello, fds);
    if (err == MR_EAGAIN) return true;
    if (fds[1] >= 0) (void)close(fds[1]);
    if (!err && share.connections[at].until != MR_NEVER) return greet(at, &hello, fds[0]);
    if (fds[0] >= 0) (void)close(fds[0]);
    return false; /* hung up, or talks more than it should */
}

static void drop(uint32_t at)
{
    struct connection c = share.connections[at];
    share.connections[at] = share.connections[--share.connections_count];
    (void)close(c.fd);
    if (!c.host) return;
    busy_begin(c.host);
    c.host->gone(c.host, c.slot);
    busy_end();
}

static void meet(void)
{
    int fd = accept4(share.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (share.connections_count == CONNECTIONS_MAX ||
        !mr_peer_may_enter(&share.peers, fd, share.path)) {
        (void)close(fd);
        return;
    }
    share.connections[share.connections_count++] =
        (struct connection){.fd = fd, .until = mr_time_after(mr_clock_now(), HELLO_WAIT)};
}

static void serve(void *ctx)
{
    (void)ctx;
    struct pollfd *fds = mr_alloc_array(CONNECTIONS_MAX + 2, sizeof *fds);
    pthread_mutex_lock(&share.lock);
    while (!share.is_ending) {
        uint32_t n = share.connections_count;
        bool impatient = false;
        for (uint32_t i = 0; i < n; i++) {
            fds[i] = (struct pollfd){share.connections[i].fd, POLLIN, 0};
            impatient |= share.connections[i].until != MR_NEVER;
        }
        fds[n] = (struct pollfd){share.listen_fd, POLLIN, 0};
        fds[n + 1] = (struct pollfd){share.wake_fd, POLLIN, 0};
        pthread_mutex_unlock(&share.lock);
        (void)poll(fds, n + 2, impatient ? 1000 : -1);
        pthread_mutex_lock(&share.lock);
        if (fds[n + 1].revents) {
            uint64_t v;
            (void)!read(share.wake_fd, &v, sizeof v);
        }
        mr_time now = mr_clock_now();
        for (uint32_t i = n; i-- > 0;) { /* only this thread changes the table */
            bool ends = share.connections[i].until <= now;
            if (fds[i].revents) ends |= !hear(i);
            if (ends) drop(i);
        }
        if (fds[n].revents) meet();
    }
    pthread_mutex_unlock(&share.lock);
    mr_release(fds);
}

/* ---- opening ----------------------------------------------------------------------------------*/

static const char *base_dir(void)
{
    const char *base = secure_getenv("XDG_RUNTIME_DIR");
    return base && strlen(base) <= 30 ? base : "/tmp"; /* paths of sockets are short */
}

size_t mr_share_sweep(void)
{
    return mr_scratch_sweep(base_dir(), SCRATCH);
}

static int open_locked(struct mr_error *e)
{
    if (share.is_open) return MR_OK;
    int err = mr_scratch_open(&share.dir, base_dir(), SCRATCH, e);
    if (err) return err;
    (void)snprintf(share.path, sizeof share.path, "%s/share.sock", share.dir.path);
    struct sockaddr_un at;
    err = mr_share_address(share.path, &at, e);
    mr_assert(!err); /* it is short enough */
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) ||
        chmod(share.path, mr_peer_socket_mode(&share.peers)) || listen(fd, 128)) {
        err = mr_fail(e, MR_EIO, "cannot listen on \"%s\": %s", share.path, strerror(errno));
        if (fd >= 0) (void)close(fd);
        mr_scratch_close(&share.dir);
        return err;
    }
    share.listen_fd = fd;
    share.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    mr_assert(share.wake_fd >= 0);
    share.connections = mr_alloc_array(CONNECTIONS_MAX, sizeof *share.connections);
    if (!share.hosts.next) mr_list_init(&share.hosts);
    share.is_open = true;
    share.is_ending = false;
    share.thread = mr_thread_start("share", serve, NULL);
    return MR_OK;
}

int mr_share_socket(const char **path, struct mr_error *e)
{
    pthread_mutex_lock(&share.lock);
    int err = open_locked(e);
    pthread_mutex_unlock(&share.lock);
    if (!err) *path = share.path;
    return err;
}

static void wake_thread(void)
{
    uint64_t one = 1;
    (void)!write(share.wake_fd, &one, sizeof one);
}

void mr_share_close(void)
{
    pthread_mutex_lock(&share.lock);
    bool was_open = share.is_open;
    if (was_open) {
        mr_assert(mr_list_is_empty(&share.hosts));
        share.is_ending = true;
        wake_thread();
    }
    pthread_mutex_unlock(&share.lock);
    if (!was_open) return;
    mr_thread_join(&share.thread);
    for (uint32_t i = 0; i < share.connections_count; i++)
        (void)close(share.connections[i].fd);
    share.connections_count = 0;
    mr_release(share.connections);
    (void)close(share.listen_fd);
    (void)close(share.wake_fd);
    mr_scratch_close(&share.dir);
    share.is_open = false;
}

void mr_share_unlink(void)
{
    pthread_mutex_lock(&share.lock);
    if (share.is_open) mr_scratch_close(&share.dir);
    pthread_mutex_unlock(&share.lock);
}

int mr_share_host_add(struct mr_share_host *h, struct mr_error *e)
{
    pthread_mutex_lock(&share.lock);
    int err = open_locked(e);
    if (!err && host_find(h->session, h->index, h->is_group))
        err = mr_fail(e, MR_EEXIST, "this process serves %s %u of session \"%s\" already",
            h->is_group ? "group" : "shard", h->index, h->session);
    if (!err) mr_list_add_tail(&share.hosts, &h->node);
    pthread_mutex_unlock(&share.lock);
    return err;
}

void mr_share_host_remove(struct mr_share_host *h)
{
    pthread_mutex_lock(&share.lock);
    mr_list_remove(&h->node);
    while (share.busy == h)
        pthread_cond_wait(&share.idle, &share.lock);
    for (uint32_t i = 0; i < share.connections_count; i++) {
        struct connection *c = &share.connections[i];
        if (c->host != h) continue;
        c->host = NULL;
        (void)shutdown(c->fd, SHUT_RDWR); /* the thread sees it and drops it */
    }
    pthread_mutex_unlock(&share.lock);
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

/* The hello shows the cluster's secret: not to another user's socket. */
static bool is_peer_ours(int socket)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &n) && peer.uid == geteuid();
}

static int ask(int socket, const struct mr_share_hello *hello, int fd, mr_time deadline,
    struct mr_share_welcome *w, int fds[MR_SHARE_FDS], struct mr_error *e)
{
    int err = mr_share_send(socket, hello, sizeof *hello, &fd, fd >= 0 ? 1 : 0);
    while (!err) {
        err = mr_share_receive(socket, w, sizeof *w, fds);
        if (err != MR_EAGAIN) break;
        err = MR_OK;
        if (mr_clock_now() >= deadline) err = MR_ETIMEOUT;
        if (!err) (void)wait_readable(socket, deadline);
    }
    if (err) return mr_fail(e, err, "no welcome from a role of this node: %s", mr_err_words(err));
    if (w->magic != MR_SHARE_MAGIC) return mr_fail(e, MR_EFORMAT, "a role's welcome is malformed");
    w->text[sizeof w->text - 1] = 0;
    if (w->err) return mr_fail(e, w->err > 0 ? MR_EFORMAT : w->err, "%s", w->text);
    return MR_OK;
}

int mr_share_connect(const char *path, const struct mr_share_hello *hello, int fd, mr_time deadline,
    struct mr_share_welcome *w, int fds[MR_SHARE_FDS], int *out, struct mr_error *e)
{
    fds[0] = fds[1] = -1;
    struct sockaddr_un at;
    int err = mr_share_address(path, &at, e);
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
        for (int i = 0; i < MR_SHARE_FDS; i++)
            if (fds[i] >= 0) (void)close(fds[i]);
        fds[0] = fds[1] = -1;
        (void)close(s);
        return err;
    }
    *out = s;
    return MR_OK;
}

bool mr_share_is_hung_up(int socket)
{
    char byte;
    ssize_t n = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}
