/* Packs and unpacks the protobuf messages of gRPC calls, through protobuf-c. Unpacked messages live
 * in an arena that has a size limit and is freed as a whole. So a small message from outside cannot
 * take much memory, and no field is freed separately. */
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
    bool failed; /* the last message needed more memory than the arena may have */
};

void mr_pb_arena_init(struct mr_pb_arena *a, size_t bytes_max);
void mr_pb_arena_fini(struct mr_pb_arena *a);
/* Frees the messages. Keeps one chunk of memory for the next message. */
void mr_pb_arena_clear(struct mr_pb_arena *a);
/* returns NULL if the arena would exceed bytes_max */
void *mr_pb_arena_take(struct mr_pb_arena *a, size_t bytes);

/* Unpacks a message, which is valid until the arena is cleared. NULL: an error, in `e` (may be
 * NULL). MR_EFORMAT: the bytes are malformed. MR_ELIMIT: the messages nest deeper than 2 *
 * MR_DEPTH_MAX + 16, or need more memory than the arena has. */
void *mr_pb_unpack(const ProtobufCMessageDescriptor *type, struct mr_str bytes,
    struct mr_pb_arena *a, struct mr_error *e);

/* Like mr_pb_unpack, but uses at most half of the arena. The other half is for the work on the
 * request and for the answer. */
void *mr_pb_unpack_request(const ProtobufCMessageDescriptor *type, struct mr_str bytes,
    struct mr_pb_arena *a, struct mr_error *e);

void mr_pb_pack(const ProtobufCMessage *m, struct mr_buf *out); /* appends */

int mr_rpc_call_send_pb(struct mr_rpc_call *call, const ProtobufCMessage *m);
/* Sends `m`, and then finishes the call with OK. MR_ETOOBIG: the call is finished with this error
 * instead. */
int mr_rpc_call_reply_pb(struct mr_rpc_call *call, const ProtobufCMessage *m);
/* The same for a message that mr_pb_pack has packed. Takes the memory of `packed`, also on failure,
 * and leaves it empty. If the message had no room in `packed`, the error is MR_ETOOBIG. */
int mr_rpc_call_reply_packed(struct mr_rpc_call *call, struct mr_buf *packed);
