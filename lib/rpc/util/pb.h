/* Protobuf messages on calls, through protobuf-c. Unpacked messages live in an arena with a
 * ceiling, which is freed as a whole: a small message from outside cannot take much memory, and no
 * field is freed by itself. */
#pragma once

#include "base/buf.h"
#include "rpc/rpc.h"

#include <protobuf-c/protobuf-c.h>

struct mr_pb_chunk;

struct mr_pb_arena {
    ProtobufCAllocator allocator; /* for protobuf-c; its free does nothing */
    struct mr_pb_chunk *chunks;
    size_t bytes;
    size_t bytes_max;
    bool failed; /* the ceiling was met in this message */
};

void mr_pb_arena_init(struct mr_pb_arena *a, size_t bytes_max);
void mr_pb_arena_fini(struct mr_pb_arena *a);
void mr_pb_arena_clear(struct mr_pb_arena *a); /* keeps one chunk for the next message */
void *mr_pb_arena_take(struct mr_pb_arena *a, size_t bytes); /* NULL past the ceiling */

/* The message, valid until the arena is cleared. NULL with MR_EFORMAT or MR_ELIMIT in `e` (may be
 * NULL) for bytes that are no such message, nest deeper than twice MR_DEPTH_MAX, or need more than
 * the arena has. */
void *mr_pb_unpack(const ProtobufCMessageDescriptor *type, struct mr_str bytes,
    struct mr_pb_arena *a, struct mr_error *e);

/* The same within half of the arena. The other half is for the work on the message and for the
 * answer. */
void *mr_pb_unpack_request(const ProtobufCMessageDescriptor *type, struct mr_str bytes,
    struct mr_pb_arena *a, struct mr_error *e);

void mr_pb_pack(const ProtobufCMessage *m, struct mr_buf *out); /* appends */

int mr_rpc_call_send_pb(struct mr_rpc_call *call, const ProtobufCMessage *m);
int mr_rpc_call_reply_pb(struct mr_rpc_call *call, const ProtobufCMessage *m); /* then OK */
