/* Sends and receives packets with sendmsg and recvmsg. */
#include "train/transport/packet.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
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
