/* Protobuf messages on calls, through protobuf-c. Unpacked messages live in an arena with a
 * ceiling, which is freed as a whole. So a small message from outside cannot take much memory, and
 * no field is freed separately. */
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
    bool failed; /* the last message needed more than the ceiling */
};

void mr_pb_arena_init(struct mr_pb_arena *a, size_t bytes_max);
void mr_pb_arena_fini(struct mr_pb_arena *a);
void mr_pb_arena_clear(struct mr_pb_arena *a); /* keeps one chunk of memory for the next message */
void *mr_pb_arena_take(struct mr_pb_arena *a, size_t bytes); /* NULL past the ceiling */

/* Unpacks a message, which is valid until the arena is cleared. NULL: MR_EFORMAT for malformed
 * bytes, or MR_ELIMIT if they nest deeper than twice MR_DEPTH_MAX or need more memory than the
 * arena has. `e` may be NULL. */
void *mr_pb_unpack(const ProtobufCMessageDescriptor *type, struct mr_str bytes,
    struct mr_pb_arena *a, struct mr_error *e);

/* mr_pb_unpack that uses half of the arena at most; the other half is for the work on the request
 * and for the answer. */
void *mr_pb_unpack_request(const ProtobufCMessageDescriptor *type, struct mr_str bytes,
    struct mr_pb_arena *a, struct mr_error *e);

void mr_pb_pack(const ProtobufCMessage *m, struct mr_buf *out); /* appends */

int mr_rpc_call_send_pb(struct mr_rpc_call *call, const ProtobufCMessage *m);
/* Sends `m`, then finishes with OK. */
int mr_rpc_call_reply_pb(struct mr_rpc_call *call, const ProtobufCMessage *m);
