/* protobuf-c: packs a message directly into the buffer that will be sent, and unpacks into an
 * arena. protobuf-c unpacks by recursion without a limit, so the nesting is checked first, without
 * recursion. */
#include "rpc/util/pb.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/protowire.h"
#include "rpc/server.h"

#define CHUNK_BYTES_MIN ((size_t)16384)
#define ALIGN _Alignof(max_align_t)
#define LEVELS_MAX (2 * MR_DEPTH_MAX + 16) /* a list in a list takes two nested messages */

struct mr_pb_chunk {
    struct mr_pb_chunk *next;
    size_t bytes; /* bytes of `data` in use; `room` is the size of `data` */
    size_t room;
    max_align_t data[];
};

static void *take_for_protobuf(void *arena, size_t bytes)
{
    struct mr_pb_arena *a = arena;
    void *p = mr_pb_arena_take(a, bytes);
    if (!p) a->failed = true;
    return p;
}

static void free_for_protobuf(void *arena, void *p)
{
    (void)arena;
    (void)p;
}

void mr_pb_arena_init(struct mr_pb_arena *a, size_t bytes_max)
{
    *a = (struct mr_pb_arena){
        .allocator = {take_for_protobuf, free_for_protobuf, a}, .bytes_max = bytes_max};
}

static void free_chunks(struct mr_pb_chunk *chunk)
{
    while (chunk) {
        struct mr_pb_chunk *next = chunk->next;
        mr_release(chunk);
        chunk = next;
    }
}

void mr_pb_arena_fini(struct mr_pb_arena *a)
{
    free_chunks(a->chunks);
    *a = (struct mr_pb_arena){0};
}

void mr_pb_arena_clear(struct mr_pb_arena *a)
{
    a->bytes = 0;
    if (!a->chunks) return;
    free_chunks(a->chunks->next);
    a->chunks->next = NULL;
    a->chunks->bytes = 0;
}

void *mr_pb_arena_take(struct mr_pb_arena *a, size_t bytes)
{
    if (bytes > a->bytes_max - a->bytes) return NULL;
    size_t rounded = (size_t)mr_align_up(bytes ? bytes : 1, ALIGN);
    struct mr_pb_chunk *chunk = a->chunks;
    if (!chunk || chunk->room - chunk->bytes < rounded) {
        size_t room = MR_MAX(rounded, MR_MIN(MR_MAX(a->bytes, CHUNK_BYTES_MIN), (size_t)1 << 20));
        /* Not zeroed: callers write the memory before they read it. */
        chunk = mr_grow(NULL, sizeof *chunk + room, sizeof *chunk + room);
        *chunk = (struct mr_pb_chunk){.next = a->chunks, .room = room};
        a->chunks = chunk;
    }
    void *p = (unsigned char *)chunk->data + chunk->bytes;
    chunk->bytes += rounded;
    a->bytes += MR_MIN(rounded, a->bytes_max - a->bytes);
    return p;
}

struct level {
    struct mr_protowire_reader reader;
    const ProtobufCMessageDescriptor *type;
};

/* Checks that the messages in the bytes nest correctly and not too deeply. */
static int check_depth(const ProtobufCMessageDescriptor *type, struct mr_str bytes)
{
    struct level levels[LEVELS_MAX];
    levels[0] = (struct level){mr_protowire_read(bytes), type};
    size_t depth = 1;
    while (depth) {
        struct level *top = &levels[depth - 1];
        struct mr_protowire_field f;
        int err = mr_protowire_next(&top->reader, &f);
        if (err == MR_ENOENT) {
            depth--;
            continue;
        }
        if (err) return err;
        if (f.type != MR_PROTOWIRE_BYTES) continue;
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(top->type, f.number);
        if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE) continue;
        const ProtobufCMessageDescriptor *inner = field->descriptor;
        if (depth == LEVELS_MAX) return MR_ELIMIT;
        levels[depth++] = (struct level){mr_protowire_read(f.bytes), inner};
    }
    return MR_OK;
}

void *mr_pb_unpack(const ProtobufCMessageDescriptor *type, struct mr_str bytes,
    struct mr_pb_arena *a, struct mr_error *e)
{
    int err = check_depth(type, bytes);
    if (err == MR_ELIMIT) {
        (void)mr_fail(e, err, "%s: messages nested deeper than %d", type->name, LEVELS_MAX);
        return NULL;
    }
    void *m = NULL;
    a->failed = false;
    if (!err) m = protobuf_c_message_unpack(type, &a->allocator, bytes.n, (const uint8_t *)bytes.p);
    if (m) return m;
    if (a->failed)
        (void)mr_fail(
            e, MR_ELIMIT, "%s: needs more than %zu bytes of memory", type->name, a->bytes_max);
    else
        (void)mr_fail(e, MR_EFORMAT, "%s: malformed protobuf", type->name);
    return NULL;
}

void *mr_pb_unpack_request(const ProtobufCMessageDescriptor *type, struct mr_str bytes,
    struct mr_pb_arena *a, struct mr_error *e)
{
    size_t whole = a->bytes_max;
    a->bytes_max = MR_MAX(whole / 2, a->bytes);
    void *m = mr_pb_unpack(type, bytes, a, e);
    a->bytes_max = whole;
    return m;
}

void mr_pb_pack(const ProtobufCMessage *m, struct mr_buf *out)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *p = mr_buf_extend(out, n);
    if (p) (void)protobuf_c_message_pack(m, p);
}

int mr_rpc_call_send_pb(struct mr_rpc_call *call, const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    if (n > MR_MESSAGE_BYTES_MAX) return MR_ETOOBIG;
    uint8_t small[512];
    if (n <= sizeof small) { /* one copy costs less than a slice with a release function */
        (void)protobuf_c_message_pack(m, small);
        return mr_rpc_call_send(call, mr_str_of(small, n));
    }
    uint8_t *p = mr_grow(NULL, n, n); /* not zeroed: every byte is written */
    (void)protobuf_c_message_pack(m, p);
    struct mr_rpc_part part = {mr_str_of(p, n), mr_release, p};
    return mr_rpc_call_send_parts(call, &part, 1);
}

static int finish(struct mr_rpc_call *call, int err)
{
    if (err == MR_ETOOBIG) {
        struct mr_error e;
        (void)mr_fail(&e, err, "the answer is larger than the %zu bytes of one message",
            MR_MESSAGE_BYTES_MAX);
        (void)mr_rpc_call_fail(call, &e);
    }
    if (err) return err;
    return mr_rpc_call_finish_ok(call);
}

int mr_rpc_call_reply_pb(struct mr_rpc_call *call, const ProtobufCMessage *m)
{
    return finish(call, mr_rpc_call_send_pb(call, m));
}

int mr_rpc_call_reply_packed(struct mr_rpc_call *call, struct mr_buf *packed)
{
    bool is_whole = !mr_buf_status(packed) && packed->n <= MR_MESSAGE_BYTES_MAX;
    struct mr_rpc_part part = {mr_buf_str(packed), mr_release, packed->p};
    mr_buf_init(packed, packed->bytes_max);
    if (is_whole) return finish(call, mr_rpc_call_send_parts(call, &part, 1));
    mr_release(part.ctx);
    return finish(call, MR_ETOOBIG);
}
