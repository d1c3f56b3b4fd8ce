/* Encodes and checks control messages. One table says what each type of message carries. */
#include "store/arena/control.h"

#include "base/assert.h"
#include "base/unconst.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct shape {
    uint32_t fixed;
    uint32_t item;
    bool to_store;
};

// clang-format off
static const struct shape shapes[MR_CTL_TYPES] = {
    [MR_CTL_HELLO] = {sizeof(struct mr_ctl_hello), 0, true},
    [MR_CTL_GRANT] = {sizeof(struct mr_ctl_grant), 0, true},
    [MR_CTL_RETURN] = {0, sizeof(uint32_t), true},
    [MR_CTL_SEAL] = {0, sizeof(struct mr_ctl_seal), true},
    [MR_CTL_GET] = {sizeof(struct mr_ctl_get), 0, true},
    [MR_CTL_CANCEL] = {0, 0, true},
    [MR_CTL_UNPIN] = {0, sizeof(mr_object_id), true},
    [MR_CTL_HOLD] = {sizeof(struct mr_ctl_hold), sizeof(mr_object_id), true},
    [MR_CTL_UNHOLD] = {sizeof(struct mr_ctl_hold), sizeof(mr_object_id), true},
    [MR_CTL_DELETE] = {sizeof(struct mr_ctl_delete), sizeof(mr_object_id), true},
    [MR_CTL_STATS] = {0, 0, true},
    [MR_CTL_WELCOME] = {sizeof(struct mr_ctl_welcome), 0, false},
    [MR_CTL_GRANTED] = {sizeof(struct mr_ctl_granted), 0, false},
    [MR_CTL_GOT] = {sizeof(struct mr_ctl_got), 0, false},
    [MR_CTL_DONE] = {sizeof(struct mr_ctl_done), 0, false},
    [MR_CTL_FREED] = {0, sizeof(struct mr_ctl_freed), false},
    [MR_CTL_RECLAIM] = {sizeof(uint64_t), 0, false},
    [MR_CTL_UNMAP] = {0, sizeof(uint32_t), false},
    [MR_CTL_STATS_DONE] = {sizeof(struct mr_store_stats), 0, false},
    [MR_CTL_WANT] = {0, sizeof(mr_object_id), true},
    [MR_CTL_LIMIT] = {sizeof(struct mr_ctl_limit), 0, true},
};
// clang-format on

size_t mr_ctl_fixed_bytes(enum mr_ctl_type type)
{
    return shapes[type].fixed;
}

size_t mr_ctl_item_bytes(enum mr_ctl_type type)
{
    return shapes[type].item;
}

uint32_t mr_ctl_items_max(enum mr_ctl_type type)
{
    const struct shape *s = &shapes[type];
    if (!s->item) return 0;
    return (uint32_t)((MR_CTL_BYTES_MAX - sizeof(struct mr_ctl_head) - s->fixed) / s->item);
}

static bool text_ends(const char *text, size_t n)
{
    return memchr(text, 0, n) != NULL;
}

static bool texts_end(enum mr_ctl_type type, const void *fixed)
{
    if (type == MR_CTL_HELLO)
        return text_ends(((const struct mr_ctl_hello *)fixed)->name, MR_CTL_NAME_MAX);
    if (type == MR_CTL_GET)
        return text_ends(((const struct mr_ctl_get *)fixed)->source, MR_CTL_SOURCE_MAX);
    if (type == MR_CTL_GRANTED) {
        const struct mr_ctl_granted *g = fixed;
        return !g->err || text_ends(g->text, MR_CTL_TEXT_MAX);
    }
    if (type == MR_CTL_GOT)
        return text_ends(((const struct mr_ctl_got *)fixed)->text, MR_CTL_TEXT_MAX);
    if (type == MR_CTL_DONE)
        return text_ends(((const struct mr_ctl_done *)fixed)->text, MR_CTL_TEXT_MAX);
    return true;
}

int mr_ctl_parse(
    const void *p, size_t n, bool to_store, struct mr_ctl_message *out, struct mr_error *e)
{
    struct mr_ctl_head head;
    if (n < sizeof head) return mr_fail(e, MR_EFORMAT, "control message of %zu bytes", n);
    memcpy(&head, p, sizeof head);
    if (head.type == 0 || head.type >= MR_CTL_TYPES || shapes[head.type].to_store != to_store)
        return mr_fail(e, MR_EFORMAT, "control message of unknown type %u", head.type);
    const struct shape *s = &shapes[head.type];
    if (n > MR_CTL_BYTES_MAX || head.count > mr_ctl_items_max((enum mr_ctl_type)head.type) ||
        n != sizeof head + s->fixed + (size_t)head.count * s->item)
        return mr_fail(e, MR_EFORMAT, "control message of type %u has %zu bytes, %u items",
            head.type, n, head.count);
    const char *fixed = (const char *)p + sizeof head;
    if (!texts_end((enum mr_ctl_type)head.type, fixed))
        return mr_fail(e, MR_EFORMAT, "control message of type %u: a text has no end", head.type);
    *out = (struct mr_ctl_message){
        .type = (enum mr_ctl_type)head.type,
        .request = head.request,
        .fixed = s->fixed ? fixed : NULL,
        .items = s->item ? fixed + s->fixed : NULL,
        .count = head.count,
    };
    return MR_OK;
}

static int send_with(int flags, int socket, const struct mr_ctl_message *c, int fd)
{
    mr_assert(c->count <= mr_ctl_items_max(c->type));
    struct mr_ctl_head head = {(uint32_t)c->type, c->count, c->request};
    struct iovec parts[3] = {
        {&head, sizeof head},
        {mr_unconst(c->fixed), shapes[c->type].fixed},
        {mr_unconst(c->items), (size_t)c->count * shapes[c->type].item},
    };
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } side = {0};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = 3};
    if (fd >= 0) {
        m.msg_control = side.bytes;
        m.msg_controllen = sizeof side.bytes;
        struct cmsghdr *with = CMSG_FIRSTHDR(&m);
        with->cmsg_level = SOL_SOCKET;
        with->cmsg_type = SCM_RIGHTS;
        with->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(with), &fd, sizeof fd);
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &m, MSG_NOSIGNAL | flags);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0) return MR_OK;
    return errno == EAGAIN || errno == EWOULDBLOCK ? MR_EAGAIN : MR_EAWAY;
}

int mr_ctl_send(int socket, enum mr_ctl_type type, uint64_t request, const void *fixed,
    const void *items, uint32_t count, int fd)
{
    return send_with(0, socket, &(struct mr_ctl_message){type, request, fixed, items, count}, fd);
}

int mr_ctl_send_now(int socket, const struct mr_ctl_message *m)
{
    return send_with(MSG_DONTWAIT, socket, m, -1);
}

/* Keeps the first descriptor of a packet and closes the others. */
static int take_descriptor(struct msghdr *m)
{
    int kept = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (kept < 0)
                kept = fd;
            else
                close(fd);
        }
    }
    return kept;
}

int mr_ctl_receive(int socket, void *buffer, size_t *n, int *fd)
{
    *fd = -1;
    struct iovec part = {buffer, MR_CTL_BYTES_MAX};
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
        got = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? MR_EAGAIN : MR_EAWAY;
    *fd = take_descriptor(&m);
    if (got == 0) return MR_EAWAY;
    /* The length of a truncated packet is set to 0, so that the parser refuses the packet. */
    *n = (m.msg_flags & MSG_TRUNC) ? 0 : (size_t)got;
    return MR_OK;
}
