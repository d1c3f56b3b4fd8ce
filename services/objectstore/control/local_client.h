/* Clients of this node: their sockets, and the messages to and from them (store/arena/control.h).
 * All functions run on the control thread. */
#pragma once

#include "services/objectstore/control/shell.h"

int mr_local_clients_listen(struct mr_ostore_shell *sh, struct mr_error *e);
void mr_local_clients_accept(struct mr_ostore_shell *sh);
/* Takes the connection `fd` of a client. `internal`: the client is in the store's own process, and
 * may seal objects that it has restored from disk or copied from another store. */
void mr_local_clients_add(struct mr_ostore_shell *sh, int fd, bool internal);
/* Reads the client's messages, and sends the messages that are queued for the client. Frees `p` if
 * the client has gone or has broken the protocol. */
void mr_local_client_handle(
    struct mr_ostore_shell *sh, struct mr_local_client *p, uint32_t epoll_events);
void mr_local_clients_close(struct mr_ostore_shell *sh);
/* Returns the client with this number; NULL: the client has gone. */
struct mr_local_client *mr_local_client_find(struct mr_ostore_shell *sh, uint32_t client);

struct mr_local_message {
    enum mr_ctl_type type;
    uint64_t request;
    const void *fixed; /* the fixed part of the message, if its type has one */
    const void *items; /* `count` items, if the message's type has items */
    uint32_t count;
    const int *fd; /* a descriptor to send with the message; NULL: none */
};
/* Sends the message, or queues a copy if the client does not read. */
void mr_local_client_send(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_local_message *m);

/* Tells the client that a piece of one of its segments is free. Such messages are collected until
 * mr_local_client_flush_freed. */
void mr_local_client_free_room(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ctl_freed *room);
void mr_local_client_flush_freed(struct mr_ostore_shell *sh, struct mr_local_client *p);

/* True: the client was sent the descriptor of this segment before. False: the caller now sends the
 * descriptor, and later calls return true. */
bool mr_local_client_knows_segment(struct mr_local_client *p, uint32_t segment);
void mr_local_client_forget_segment(struct mr_local_client *p, uint32_t segment, bool *knew);

/* Returns the client's pin page; NULL: it has none yet. */
const struct mr_pin_page *mr_local_client_pins(const struct mr_local_client *p);
/* Returns a pointer to the position up to which mr_pin_page_recent has read the client's list of
 * recent reads. */
uint32_t *mr_local_client_recent(struct mr_local_client *p);

/* Takes the effect DONE for one id of a DELETE message. The client is answered after the message's
 * last id. */
void mr_local_client_deleted(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ostore_effect *x);
