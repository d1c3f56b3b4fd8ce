/* Translates between our messages and gRPC's byte buffers, in both directions. */
#include "rpc/core.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"

#include <grpc/byte_buffer_reader.h>

/* Makes a slice of one part. The slice calls `release` when gRPC's transport has dropped the slice,
 * perhaps after the batch has completed. */
static grpc_slice slice_of(const struct mr_rpc_part *part)
{
    if (!part->release) return grpc_slice_from_copied_buffer(part->bytes.p, part->bytes.n);
    if (!part->bytes.n) {
        part->release(part->ctx);
        return grpc_empty_slice();
    }
    /* gRPC only reads the bytes, though its parameter is not const. */
    void *bytes = mr_unconst(part->bytes.p);
    return grpc_slice_new_with_user_data(bytes, part->bytes.n, part->release, part->ctx);
}

grpc_byte_buffer *mr_rpc_bytes_of(const struct mr_rpc_part *parts, size_t parts_count)
{
    grpc_byte_buffer *b = grpc_raw_byte_buffer_create(NULL, 0);
    for (size_t i = 0; i < parts_count; i++)
        grpc_slice_buffer_add(&b->data.raw.slice_buffer, slice_of(&parts[i]));
    return b;
}

/* Decompresses a message from a peer that compresses without negotiation. gRPC decompresses what
 * was negotiated. */
static void decompress(struct mr_rpc_message *m)
{
    if (m->bytes->data.raw.compression == GRPC_COMPRESS_NONE) return;
    grpc_byte_buffer_reader reader;
    int ok = grpc_byte_buffer_reader_init(&reader, m->bytes);
    grpc_byte_buffer *plain =
        ok ? grpc_raw_byte_buffer_from_reader(&reader) : grpc_raw_byte_buffer_create(NULL, 0);
    if (ok) grpc_byte_buffer_reader_destroy(&reader);
    grpc_byte_buffer_destroy(m->bytes);
    m->bytes = plain;
}

static const grpc_slice_buffer *slices_of(struct mr_rpc_message *m)
{
    decompress(m);
    return &m->bytes->data.raw.slice_buffer;
}

size_t mr_rpc_message_bytes(const struct mr_rpc_message *m)
{
    return grpc_byte_buffer_length(m->bytes);
}

static struct mr_str str_of_slice(const grpc_slice *s)
{
    return mr_str_of(GRPC_SLICE_START_PTR(*s), GRPC_SLICE_LENGTH(*s));
}

struct mr_str mr_rpc_message_str(struct mr_rpc_message *m)
{
    const grpc_slice_buffer *b = slices_of(m);
    if (!b->count) return mr_str_of("", 0);
    if (b->count == 1) return str_of_slice(&b->slices[0]);
    if (!m->joined) {
        /* Not zeroed: every byte is written below. */
        m->joined = mr_grow(NULL, b->length, b->length);
        size_t at = 0;
        for (size_t i = 0; i < b->count; i++) {
            struct mr_str part = str_of_slice(&b->slices[i]);
            if (part.n) memcpy(m->joined + at, part.p, part.n);
            at += part.n;
        }
        mr_assert(at == b->length);
    }
    return mr_str_of(m->joined, b->length);
}

size_t mr_rpc_message_parts(struct mr_rpc_message *m, const struct mr_str **parts)
{
    const grpc_slice_buffer *b = slices_of(m);
    if (!m->parts && b->count) {
        m->parts = mr_alloc_array(b->count, sizeof *m->parts);
        for (size_t i = 0; i < b->count; i++)
            m->parts[i] = str_of_slice(&b->slices[i]);
        m->parts_count = b->count;
    }
    *parts = m->parts;
    return m->parts_count;
}

struct mr_rpc_message *mr_rpc_message_take(struct mr_rpc_message *m)
{
    struct mr_rpc_message *mine = mr_copy(m, sizeof *m);
    *m = (struct mr_rpc_message){0};
    return mine;
}

void mr_rpc_message_reset(struct mr_rpc_message *m)
{
    if (m->bytes) grpc_byte_buffer_destroy(m->bytes);
    mr_release(m->joined);
    mr_release(m->parts);
    *m = (struct mr_rpc_message){0};
}

void mr_rpc_message_free(struct mr_rpc_message **m_at)
{
    if (!*m_at) return;
    struct mr_rpc_message *m = MR_STEAL(*m_at);
    mr_rpc_message_reset(m);
    mr_release(m);
}
