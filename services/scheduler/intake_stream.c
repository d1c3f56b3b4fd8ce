#include "services/scheduler/intake_stream.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "services/scheduler/pb_columns.h"

#include <xxhash.h>

struct mr_intake_stream {
    struct mr_pb_stream *columns;
    struct mr_buf *pieces;
    size_t pieces_count, pieces_room;
    XXH3_state_t *hash; /* of all bytes */
};

struct mr_intake_stream *mr_intake_stream_new(void)
{
    struct mr_intake_stream *s = mr_alloc(sizeof *s);
    s->columns = mr_pb_stream_new();
    s->hash = XXH3_createState();
    mr_assert(s->hash);
    (void)XXH3_128bits_reset(s->hash);
    return s;
}

void mr_intake_stream_free(struct mr_intake_stream **sp)
{
    struct mr_intake_stream *s = *sp;
    *sp = NULL;
    if (!s) return;
    mr_pb_stream_free(&s->columns);
    for (size_t i = 0; i < s->pieces_count; i++)
        mr_buf_fini(&s->pieces[i]);
    mr_release(s->pieces);
    (void)XXH3_freeState(s->hash);
    mr_release(s);
}

/* The bytes are the stream's now; what is in them is looked at once. */
void mr_intake_stream_feed(struct mr_intake_stream *s, struct mr_buf *bytes)
{
    if (s->pieces_count == s->pieces_room) {
        size_t room = s->pieces_room ? s->pieces_room * 2 : 16;
        s->pieces = mr_grow(s->pieces, s->pieces_room * sizeof *bytes, room * sizeof *bytes);
        s->pieces_room = room;
    }
    s->pieces[s->pieces_count++] = *bytes;
    struct mr_str all = mr_buf_str(bytes);
    *bytes = (struct mr_buf){0};
    (void)XXH3_128bits_update(s->hash, all.p, all.n);
    for (size_t at = 0; at < all.n;)
        mr_pb_stream_add(s->columns, mr_pb_framed_next(all, &at));
}

size_t mr_intake_stream_bytes(const struct mr_intake_stream *s)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->pieces_count; i++)
        bytes += s->pieces[i].n;
    return bytes;
}

int mr_intake_stream_end(struct mr_intake_stream *s, struct mr_builder **out, struct mr_error *e)
{
    *out = mr_pb_stream_end(s->columns);
    int err = MR_OK;
    if (!*out) {
        mr_pb_stream_free(&s->columns);
        *out = mr_builder_new();
        err = mr_pb_columns_add(*out, s->pieces, s->pieces_count, e);
    }
    return err;
}

mr_graph_hash mr_intake_stream_hash(const struct mr_intake_stream *s)
{
    XXH128_hash_t h = XXH3_128bits_digest(s->hash);
    return (mr_graph_hash){h.high64, h.low64};
}
