/* Packets with descriptors, sealed segments, and waits on words of shared memory. */
#include "train/transport/segment.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "store/arena/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

int mr_transport_address(const char *path, void *sockaddr, struct mr_error *e)
{
    struct sockaddr_un *at = sockaddr;
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (!n || n >= sizeof at->sun_path)
        return mr_fail(e, MR_EINVAL, "\"%s\": the path of a socket has from 1 to %zu bytes", path,
            sizeof at->sun_path - 1);
    memcpy(at->sun_path, path, n);
    return MR_OK;
}

int mr_transport_send(int socket, const void *p, size_t n, const int *fds, size_t fds_count)
{
    mr_assert(fds_count <= MR_TRANSPORT_FDS);
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(MR_TRANSPORT_FDS * sizeof(int))];
    } side = {0};
    struct iovec part = {mr_unconst(p), n};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (fds_count) {
        m.msg_control = side.bytes;
        m.msg_controllen = CMSG_SPACE(fds_count * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(fds_count * sizeof(int));
        memcpy(CMSG_DATA(c), fds, fds_count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &m, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0) return MR_OK;
    return errno == EAGAIN || errno == EWOULDBLOCK ? MR_EAGAIN : MR_EAWAY;
}

static void take_descriptors(struct msghdr *m, int fds[MR_TRANSPORT_FDS])
{
    size_t kept = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (kept < MR_TRANSPORT_FDS)
                fds[kept++] = fd;
            else
                (void)close(fd);
        }
    }
}

int mr_transport_receive(int socket, void *p, size_t n, int fds[MR_TRANSPORT_FDS])
{
    fds[0] = fds[1] = -1;
    struct iovec part = {p, n};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(4 * sizeof(int))];
    } side;
    struct msghdr m = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = side.bytes,
        .msg_controllen = sizeof side.bytes};
    ssize_t got;
    do
        got = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? MR_EAGAIN : MR_EAWAY;
    take_descriptors(&m, fds);
    if (got == 0) return MR_EAWAY;
    return (m.msg_flags & MSG_TRUNC) || (size_t)got != n ? MR_EFORMAT : MR_OK;
}

/* ---- shared memory ----------------------------------------------------------------------------*/

int mr_transport_make(
    const char *name, uint64_t bytes, bool alone, int *fd, void **map, struct mr_error *e)
{
    int made = -1;
    void *p = NULL;
    int err = mr_segment_make(name, bytes, &made, e);
    if (err) return err;
    err = mr_segment_map(made, bytes, true, &p, e);
    if (!err && alone) err = mr_segment_seal(made, e);
    if (!err && !alone && fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        err = mr_fail(e, MR_EIO, "cannot seal shared memory: %s", strerror(errno));
    if (err) {
        mr_segment_unmap(p, bytes);
        (void)close(made);
        return err;
    }
    *fd = made;
    *map = p;
    return MR_OK;
}

int mr_transport_map(int fd, uint64_t bytes, bool writable, void **map, struct mr_error *e)
{
    if (fd < 0) return mr_fail(e, MR_EFORMAT, "a peer sent no shared memory");
    uint64_t real = 0;
    int err = mr_segment_check(fd, bytes, !writable, &real, e);
    if (err) return err;
    return mr_segment_map(fd, bytes, writable, map, e);
}

void mr_transport_sleep(const _Atomic uint32_t *word, uint32_t seen, mr_time deadline)
{
    mr_time now = mr_clock_now();
    if (now >= deadline) return;
    mr_duration left = deadline - now;
    struct timespec t = {(time_t)(left / MR_SECOND), (long)(left % MR_SECOND)};
    (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

void mr_transport_wake(const _Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void mr_transport_bell_ring(struct mr_transport_bell *b)
{
    (void)atomic_fetch_add(&b->rung, 1);
    if (atomic_load(&b->sleeps)) mr_transport_wake(&b->rung);
}

void mr_transport_bell_wait(struct mr_transport_bell *b, uint32_t seen, mr_time deadline)
{
    mr_time slice = mr_time_after(mr_clock_now(), MR_TRANSPORT_SLICE);
    atomic_store(&b->sleeps, 1);
    mr_transport_sleep(&b->rung, seen, MR_MIN(deadline, slice));
    atomic_store(&b->sleeps, 0);
}
