/* Body data is read straight into libmicrohttpd's buffer. Heads and the lines between chunks go
 * through a buffer of the filter. */
#include "gateway/server/framing_filter.h"

#include "base/assert.h"

#include <errno.h>
#include <string.h>

#define PIECE_BYTES 8192
#define PENDING_BYTES_MAX (MR_FRAMING_HEAD_BYTES_MAX + PIECE_BYTES + 1024)
#define KEPT_BYTES_MAX 4096
/* After a refusal, at most this many pieces are read and dropped in one call. */
#define SWALLOWED_PIECES_MAX 128

static size_t give_pending(struct mr_framing_filter *c, char *to, size_t n)
{
    size_t given = MR_MIN(n, c->pending.n - c->pending_at);
    if (given) memcpy(to, c->pending.p + c->pending_at, given);
    c->pending_at += given;
    if (c->pending_at < c->pending.n) return given;
    c->pending_at = 0;
    mr_buf_clear_above(&c->pending, KEPT_BYTES_MAX);
    return given;
}

/* Reads as recv does, but returns only checked bytes. */
static ssize_t take(
    struct mr_interceptor *interceptor, const struct mr_source *s, char *to, size_t n)
{
    struct mr_framing_filter *c =
        MR_CONTAINER_OF(interceptor, struct mr_framing_filter, interceptor);
    size_t got = give_pending(c, to, n);
    for (int pieces = 0; got < n && pieces < SWALLOWED_PIECES_MAX; pieces++) {
        char piece[PIECE_BYTES];
        uint64_t passes = mr_framing_free(&c->framing);
        size_t wanted =
            passes ? (size_t)MR_MIN(passes, (uint64_t)(n - got)) : MR_MIN(sizeof piece, n - got);
        ssize_t read = s->read(s, passes ? to + got : piece, wanted);
        if (read <= 0) return got ? (ssize_t)got : read;
        if (passes) {
            mr_framing_skip(&c->framing, (uint64_t)read);
            got += (size_t)read;
        } else {
            mr_framing_feed(&c->framing, piece, (size_t)read, &c->pending);
            mr_assert(!mr_buf_status(&c->pending));
            got += give_pending(c, to + got, n - got);
        }
        bool is_drained = s->is_drained_by_less && (size_t)read < wanted;
        if (is_drained || (!s->is_drained_by_less && got)) break;
    }
    if (got) return (ssize_t)got;
    errno = EAGAIN;
    return s->nothing;
}

bool mr_framing_filter_add(struct mr_framing_filter *c, int fd, bool is_tls)
{
    mr_framing_init(&c->framing);
    mr_buf_init(&c->pending, PENDING_BYTES_MAX);
    c->interceptor = (struct mr_interceptor){.take = take, .is_tls = is_tls};
    return mr_intercept(fd, &c->interceptor);
}

void mr_framing_filter_remove(struct mr_framing_filter *c, int fd)
{
    (void)mr_intercept(fd, NULL);
    mr_framing_fini(&c->framing);
    mr_buf_fini(&c->pending);
}
