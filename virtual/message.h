/* Messages that are on their way in a cluster in virtual time. As in production, a message between
 * the scheduler and a worker is encoded by its sender and decoded for its receiver. So the receiver
 * gets only what the wire carries. A message owns all memory that its members point into. */
#pragma once

#include "base/err.h"
#include "session/down.h"
#include "session/memory.h"
#include "session/up.h"

struct mr_virtual_chunk;

struct mr_virtual_message { /* of the members below `chunks`, only the receiver's are set */
    struct mr_virtual_chunk *chunks;
    struct mr_ws_down down;                               /* to a worker */
    struct mr_ws_up up;                                   /* to the scheduler */
    const mr_object_id *hold, *unhold, *claimed, *verify; /* to a store */
    uint32_t hold_count, unhold_count, claimed_count, verify_count;
};

struct mr_virtual_message *mr_virtual_message_new(void);
void mr_virtual_message_free(struct mr_virtual_message **m);
/* Copies `n` bytes into the memory of the message, and returns the copy. `p` NULL: the bytes are 0.
 * Returns NULL if `n` is 0. */
void *mr_virtual_keep(struct mr_virtual_message *m, const void *p, size_t n);
/* Returns an allocator of this message's memory, for the functions of lib/session. */
struct mr_ws_memory mr_virtual_memory(struct mr_virtual_message *m);

/* Encode `from`, decode the bytes again, and set m->down or m->up to the result. `*bytes` is the
 * size of the encoded message. */
int mr_virtual_down(
    struct mr_virtual_message *m, const struct mr_ws_down *from, size_t *bytes, struct mr_error *e);
int mr_virtual_up(
    struct mr_virtual_message *m, const struct mr_ws_up *from, size_t *bytes, struct mr_error *e);
