/* Messages between an object store and the clients on its node, over a UNIX socket of type
 * SOCK_SEQPACKET. A packet is one message: C structs in native byte order, and at most one
 * descriptor. Both sides check lengths, counts and texts here. The meaning of the numbers is
 * checked where they are used. */
#pragma once

#include "base/err.h"
#include "store/arena/control_messages.h"

/* A message. In a message that was received and has passed the check, the pointers go into the
 * received bytes, which must be aligned to 8. */
struct mr_ctl_message {
    enum mr_ctl_type type;
    uint64_t request;
    const void *fixed; /* the struct that belongs to the type, or NULL */
    /* `count` items: struct mr_ctl_seal, struct mr_ctl_freed, mr_object_id, or uint32_t segment
     * numbers. */
    const void *items;
    uint32_t count;
};

/* Checks a received packet. `to_store` is true in the store. MR_EFORMAT: the packet is not one
 * whole message, or has a type that this side does not receive. */
int mr_ctl_parse(
    const void *p, size_t n, bool to_store, struct mr_ctl_message *out, struct mr_error *e);

size_t mr_ctl_fixed_bytes(enum mr_ctl_type type);
size_t mr_ctl_item_bytes(enum mr_ctl_type type); /* 0: messages of this type have no items */
uint32_t mr_ctl_items_max(enum mr_ctl_type type);
/* Sends one message: the fixed part and the items of its type, and a descriptor (-1: none).
 * MR_EAGAIN: the socket is non-blocking and full. MR_EAWAY: the peer is gone. */
int mr_ctl_send(int socket, enum mr_ctl_type type, uint64_t request, const void *fixed,
    const void *items, uint32_t count, int fd);
/* Like mr_ctl_send without a descriptor, but never waits. MR_EAGAIN: the socket is full; also on a
 * blocking socket. */
int mr_ctl_send_now(int socket, const struct mr_ctl_message *m);
/* Receives one packet of at most MR_CTL_BYTES_MAX bytes into `buffer`, and sets `*n` to its size.
 * `*fd` receives its descriptor, which the caller owns, or -1. MR_EAWAY: the peer has closed the
 * connection. MR_EAGAIN: no packet is there. */
int mr_ctl_receive(int socket, void *buffer, size_t *n, int *fd);
