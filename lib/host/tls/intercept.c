/* A table with one entry for each descriptor. Pages of the table are committed when they are first
 * used. */
#include "host/tls/intercept.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define COUNT (1 << 18)

static _Atomic(struct mr_interceptor *) items[COUNT];

bool mr_intercept(int fd, struct mr_interceptor *i)
{
    if (fd < 0 || fd >= COUNT) return false;
    atomic_store_explicit(&items[fd], i, memory_order_release);
    return true;
}

static struct mr_interceptor *of(int fd)
{
    if (fd < 0 || fd >= COUNT) return NULL;
    return atomic_load_explicit(&items[fd], memory_order_acquire);
}

static ssize_t read_plain(const struct mr_source *s, void *to, size_t n)
{
    return recvfrom(s->fd, to, n, 0, NULL, NULL); /* works like recv, which this file replaces */
}

static ssize_t read_tls(const struct mr_source *s, void *to, size_t n)
{
    /* The sequence number of DTLS, which is not used. A call without it would be
     * gnutls_record_recv, which this file replaces. */
    unsigned char sequence[8];
    return gnutls_record_recv_seq(s->session, to, n, sequence);
}

__attribute__((visibility("default"))) ssize_t recv(int fd, void *to, size_t n, int flags)
{
    struct mr_interceptor *i = of(fd);
    if (!i || i->is_tls) return recvfrom(fd, to, n, flags, NULL, NULL);
    const struct mr_source s = {
        .read = read_plain, .fd = fd, .nothing = -1, .is_drained_by_less = true};
    return i->take(i, &s, to, n);
}

__attribute__((visibility("default"))) ssize_t gnutls_record_recv(
    gnutls_session_t session, void *to, size_t n)
{
    const struct mr_source s = {.read = read_tls, .session = session, .nothing = GNUTLS_E_AGAIN};
    struct mr_interceptor *i = of(gnutls_transport_get_int(session));
    return i ? i->take(i, &s, to, n) : s.read(&s, to, n);
}
