/* Listens on a UNIX socket and checks the user of each peer. The protocol on the socket is the
 * caller's. */
#include "rpc/server/unix_listener.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/thread.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128

struct mr_unix_listener {
    struct mr_peer_rules rules;
    char *path;
    dev_t device; /* device and inode of the socket file that this listener made */
    ino_t inode;
    int listen_fd;
    int stop_fd;
    void (*on_accept)(void *ctx, int fd);
    void *ctx;
    struct mr_thread *thread;
};

static int address_of(const char *path, struct sockaddr_un *at, struct mr_error *e)
{
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (!n || n >= sizeof at->sun_path)
        return mr_fail(e, MR_EINVAL, "\"unix:%s\": the path of a socket has from 1 to %zu bytes",
            path, sizeof at->sun_path - 1);
    if (strchr(path, ',')) /* gRPC ends the path at a comma, so clients could not find the socket */
        return mr_fail(e, MR_EINVAL,
            "\"unix:%s\" has a comma, which the address of a socket cannot have", path);
    memcpy(at->sun_path, path, n);
    return MR_OK;
}

/* Removes the socket file of a dead server. MR_EEXIST: the path is a file of another kind, or a
 * server answers on the socket. */
static int clear_path(const char *path, const struct sockaddr_un *at, struct mr_error *e)
{
    struct stat st;
    if (lstat(path, &st)) return MR_OK; /* the path does not exist, or bind will report the error */
    if (!S_ISSOCK(st.st_mode))
        return mr_fail(e, MR_EEXIST, "\"%s\" exists and is not a socket", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return mr_fail(e, MR_EIO, "cannot make a socket: error %d", errno);
    int failed = connect(fd, (const struct sockaddr *)at, sizeof *at);
    int why = failed ? errno : 0;
    (void)close(fd);
    if (!failed || why == EAGAIN)
        return mr_fail(e, MR_EEXIST, "another server listens on \"unix:%s\"", path);
    if (why != ECONNREFUSED)
        return mr_fail(e, MR_EEXIST, "\"unix:%s\" cannot be taken over: %s", path, strerror(why));
    (void)unlink(path);
    return MR_OK;
}

static int bind_and_listen(
    struct mr_unix_listener *l, const struct sockaddr_un *at, struct mr_error *e)
{
    const char *doing = "make a socket for";
    l->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool ok = l->listen_fd >= 0;
    if (ok) {
        doing = "bind";
        ok = !bind(l->listen_fd, (const struct sockaddr *)at, sizeof *at);
    }
    if (ok) {
        doing = "set the mode of";
        ok = !chmod(l->path, mr_peer_socket_mode(&l->rules));
    }
    if (ok) {
        doing = "listen on";
        ok = !listen(l->listen_fd, BACKLOG);
    }
    if (!ok)
        return mr_fail(e, MR_EIO, "cannot %s \"unix:%s\": %s", doing, l->path, strerror(errno));
    struct stat st;
    if (!lstat(l->path, &st)) {
        l->device = st.st_dev;
        l->inode = st.st_ino;
    }
    return MR_OK;
}

int mr_unix_listener_open(const char *path, const struct mr_peer_rules *rules,
    struct mr_unix_listener **out, struct mr_error *e)
{
    struct sockaddr_un at;
    int err = address_of(path, &at, e);
    if (err) return err;
    err = clear_path(path, &at, e);
    if (err) return err;
    MR_AUTO(mr_unix_listener_close) struct mr_unix_listener *l = mr_alloc(sizeof *l);
    l->rules = *rules;
    l->path = mr_copy_text(path);
    l->stop_fd = -1;
    err = bind_and_listen(l, &at, e);
    if (err) return err;
    l->stop_fd = eventfd(0, EFD_CLOEXEC);
    mr_assert(l->stop_fd >= 0);
    *out = MR_STEAL(l);
    return MR_OK;
}

static void accept_one(struct mr_unix_listener *l, int fd)
{
    if (mr_peer_may_enter(&l->rules, fd, l->path))
        l->on_accept(l->ctx, fd);
    else
        (void)close(fd);
}

static void accept_loop(void *ctx)
{
    struct mr_unix_listener *l = ctx;
    struct pollfd fds[] = {{l->listen_fd, POLLIN, 0}, {l->stop_fd, POLLIN, 0}};
    for (;;) {
        int n = poll(fds, MR_ARRAY_LEN(fds), -1);
        if (n < 0 && errno == EINTR) continue;
        mr_assert(n > 0);
        if (fds[1].revents) return;
        int fd = accept4(l->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            accept_one(l, fd);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            mr_clock_sleep(50 * MR_MS); /* new connections wait in the socket's backlog */
    }
}

void mr_unix_listener_start(
    struct mr_unix_listener *l, void (*on_accept)(void *ctx, int fd), void *ctx)
{
    mr_assert(!l->thread);
    l->on_accept = on_accept;
    l->ctx = ctx;
    l->thread = mr_thread_start("unix-accept", accept_loop, l);
}

void mr_unix_listener_close(struct mr_unix_listener **l_at)
{
    if (!*l_at) return;
    struct mr_unix_listener *l = MR_STEAL(*l_at);
    if (l->thread) {
        uint64_t one = 1;
        ssize_t n = write(l->stop_fd, &one, sizeof one);
        mr_assert(n == (ssize_t)sizeof one);
        mr_thread_join(&l->thread);
    }
    struct stat st;
    bool ours = l->inode && !lstat(l->path, &st) && st.st_dev == l->device && st.st_ino == l->inode;
    if (ours) (void)unlink(l->path);
    if (l->listen_fd >= 0) (void)close(l->listen_fd);
    if (l->stop_fd >= 0) (void)close(l->stop_fd);
    mr_release(l->path);
    mr_release(l);
}
