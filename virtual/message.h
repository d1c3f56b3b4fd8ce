/* Messages that are on their way in a cluster in virtual time. A message between the scheduler and
 * a worker is encoded by its sender and decoded for its receiver, as in production, so the receiver
 * gets only what the wire carries. A message owns all memory that its members point into. */
#pragma once

#include "base/err.h"
#include "session/down.h"
#include "session/memory.h"
#include "session/up.h"

struct mr_virtual_chunk;

struct mr_virtual_message { /* of the members below `chunks`, a message sets those of its kind */
    struct mr_virtual_chunk *chunks;
    struct mr_ws_down down;                               /* to a worker */
    struct mr_ws_up up;                                   /* to the scheduler */
    const mr_object_id *hold, *unhold, *claimed, *verify; /* to a store */
    uint32_t hold_count, unhold_count, claimed_count, verify_count;
};

struct mr_virtual_message *mr_virtual_message_new(void);
void mr_virtual_message_free(struct mr_virtual_message **m);
/* Copies `n` bytes into the memory of the message; `p` NULL: the memory is not set. Returns NULL if
 * `n` is 0. */
void *mr_virtual_keep(struct mr_virtual_message *m, const void *p, size_t n);
/* Returns the memory of the message, for the functions of lib/session. */
struct mr_ws_memory mr_virtual_memory(struct mr_virtual_message *m);

/* Set m->down or m->up to what the receiver decodes, and `*bytes` to the size of the encoded
 * message. */
int mr_virtual_down(
    struct mr_virtual_message *m, const struct mr_ws_down *from, size_t *bytes, struct mr_error *e);
int mr_virtual_up(
    struct mr_virtual_message *m, const struct mr_ws_up *from, size_t *bytes, struct mr_error *e);
