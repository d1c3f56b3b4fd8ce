/* Opens connections to Redis, and encodes commands in its protocol (RESP). */
#include "store/meta/redis_link.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

/* Bytes of the socket's send buffer. With a buffer of this size, one write sends a large call,
 * instead of ten writes. */
#define SEND_BYTES (4 << 20)

struct timeval mr_redis_timeval(mr_duration ns)
{
    return (struct timeval){
        .tv_sec = (time_t)(ns / MR_SECOND), .tv_usec = (suseconds_t)(ns % MR_SECOND / 1000)};
}

redisContext *mr_redis_dial(const char *address, mr_duration timeout_ns)
{
    struct timeval timeout = mr_redis_timeval(timeout_ns);
    if (strncmp(address, "unix:", 5) == 0) {
        redisContext *link = redisConnectUnixWithTimeout(address + 5, timeout);
        int bytes = SEND_BYTES; /* the kernel may set a smaller buffer */
        if (link && !link->err)
            (void)setsockopt(link->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
        return link;
    }
    char host[256];
    const char *colon = strrchr(address, ':');
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    return redisConnectWithTimeout(host, (int)strtol(colon + 1, NULL, 10), timeout);
}

/* Appends a type mark, a number and CR LF. Written by hand for speed: a command has a dozen of
 * these numbers, and snprintf took as long as all other work. */
static void add_count(struct mr_buf *b, char mark, size_t count)
{
    char text[24];
    size_t at = sizeof text;
    text[--at] = '\n';
    text[--at] = '\r';
    do
        text[--at] = (char)('0' + count % 10);
    while (count /= 10);
    text[--at] = mark;
    mr_buf_add(b, text + at, sizeof text - at);
}

bool mr_redis_add_command(struct mr_buf *b, size_t argc, const struct mr_str *argv)
{
    enum { COUNT_BYTES = 24, END_BYTES = 2 };
    size_t n = COUNT_BYTES;
    for (size_t i = 0; i < argc; i++)
        n += argv[i].n + COUNT_BYTES + END_BYTES;
    if (b->n + n > MR_REDIS_QUEUE_BYTES_MAX) return false;
    add_count(b, '*', argc);
    for (size_t i = 0; i < argc; i++) {
        add_count(b, '$', argv[i].n);
        mr_buf_add_str(b, argv[i]);
        mr_buf_add(b, "\r\n", END_BYTES);
    }
    return true;
}

redisReply *mr_redis_ask(redisContext *link, size_t argc, const struct mr_str *argv)
{
    MR_AUTO(mr_buf_fini) struct mr_buf b;
    mr_buf_init(&b, MR_REDIS_QUEUE_BYTES_MAX);
    bool fits = mr_redis_add_command(&b, argc, argv);
    mr_assert(fits);
    for (size_t at = 0; at < b.n;) {
        ssize_t put = send(link->fd, b.p + at, b.n - at, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) {
            (void)snprintf(link->errstr, sizeof link->errstr, "%s", strerror(errno));
            return NULL;
        }
        at += (size_t)put;
    }
    void *reply = NULL;
    return redisGetReply(link, &reply) == REDIS_OK ? reply : NULL;
}
