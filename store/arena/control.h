/* Messages between a store and its local clients, over a SEQPACKET UNIX socket: structs of this
 * machine, one a packet, descriptors beside them. Both sides check length, count and texts here;
 * what the numbers mean is checked by their users. */
#pragma once

#include "base/err.h"
#include "store/arena/control_messages.h"

/* A received message that passed the check; pointers into its bytes, which are aligned to 8. */
struct mr_ctl_message {
    enum mr_ctl_type type;
    uint64_t request;
    const void *fixed; /* the struct of its type, or NULL */
    const void *items; /* `count` of: mr_ctl_seal, mr_ctl_freed, mr_object_id, or u32 segments */
    uint32_t count;
};

/* MR_EFORMAT for what is not one whole message, or not of the direction: `to_store` says which. */
int mr_ctl_parse(
    const void *p, size_t n, bool to_store, struct mr_ctl_message *out, struct mr_error *e);

size_t mr_ctl_fixed_bytes(enum mr_ctl_type type);
size_t mr_ctl_item_bytes(enum mr_ctl_type type); /* 0: no items */
uint32_t mr_ctl_items_max(enum mr_ctl_type type);
/* Sends one message: fixed part and items as the type wants them, and a descriptor (-1: none).
 * MR_EAGAIN on a full non-blocking socket, MR_EAWAY when the peer is gone. */
int mr_ctl_send(int socket, enum mr_ctl_type type, uint64_t request, const void *fixed,
    const void *items, uint32_t count, int fd);
/* The same without a descriptor, and never waiting: MR_EAGAIN on a full socket of either kind. */
int mr_ctl_send_now(int socket, enum mr_ctl_type type, uint64_t request, const void *fixed,
    const void *items, uint32_t count);
/* Receives one packet of at most MR_CTL_BYTES_MAX bytes into `buffer`; at most one descriptor,
 * owned by the caller, else -1. MR_EAWAY at the end, MR_EAGAIN when nothing is there. */
int mr_ctl_receive(int socket, void *buffer, size_t *n, int *fd);
