/* The columns of nodes, nearly all bytes of a message, are read by hand. protobuf-c unpacks the
 * rest of the message. */
#include "services/scheduler/submit/pb_columns.h"

#include "base/alloc.h"
#include "base/protowire.h"
#include "graph/build/column_input.h"
#include "rpc/util/pb.h"
#include "services/scheduler/submit/pb_graph.h"

#include <assert.h>

/* Numbers of the fields, as in jobs.proto. */
enum { F_KEYS = 6, F_KEY_BYTES, F_OP, F_ARGS, F_ARGS_BYTES, F_INPUTS_COUNT, F_INPUTS, F_END };
static_assert(F_INPUTS == 12, "jobs.proto says so");

struct numbers { /* numbers of one column; the memory is used again for the next message */
    uint32_t *at;
    size_t count;
    size_t room;
};

struct part { /* a message without its columns, and the range of nodes that the message brought */
    const Millrace__V1__SubmitColumns *m;
    uint32_t first;
    uint32_t count;
};

struct mr_pb_stream {
    struct mr_builder *b;
    struct mr_pb_arena arena; /* memory of the unpacked messages of `parts` */
    struct part *parts;
    size_t parts_count, parts_room;
    struct mr_node_op *ops;
    size_t ops_count, ops_room;
    struct numbers columns[F_END];
    struct mr_buf rest;
    uint32_t nodes, empty_count;
    bool is_odd; /* the fast path has failed */
};

struct mr_pb_stream *mr_pb_stream_new(void)
{
    struct mr_pb_stream *s = mr_alloc(sizeof *s);
    s->b = mr_builder_new();
    mr_pb_arena_init(&s->arena, (size_t)16 << 30);
    mr_buf_init(&s->rest, MR_MESSAGE_BYTES_MAX);
    return s;
}

void mr_pb_stream_free(struct mr_pb_stream **sp)
{
    struct mr_pb_stream *s = *sp;
    *sp = NULL;
    if (!s) return;
    mr_builder_free(&s->b);
    mr_pb_arena_fini(&s->arena);
    mr_buf_fini(&s->rest);
    for (unsigned f = 0; f < F_END; f++)
        mr_release(s->columns[f].at);
    mr_release(s->parts);
    mr_release(s->ops);
    mr_release(s);
}

/* Reads packed varints of at most 32 bits. Each takes at least one byte, which bounds their number.
 * False: the bytes are malformed. */
static bool read_numbers(struct mr_str s, struct numbers *out)
{
    out->count = 0;
    if (!s.n) return true;
    const unsigned char *p = (const unsigned char *)s.p, *end = p + s.n;
    if (s.n > out->room) {
        mr_release(out->at);
        out->room = s.n + s.n / 2;
        out->at = mr_grow(NULL, out->room * sizeof *out->at, out->room * sizeof *out->at);
    }
    uint32_t *to = out->at;
    while (p < end) {
        uint64_t eight = 0x80;
        if (end - p >= 8) memcpy(&eight, p, sizeof eight);
        if (!(eight & 0x8080808080808080u)) {
            for (unsigned i = 0; i < 8; i++)
                *to++ = p[i];
            p += 8;
            continue;
        }
        uint64_t v = 0;
        unsigned shift = 0;
        do {
            if (shift == 35) return false;
            v |= (uint64_t)(*p & 0x7f) << shift;
            shift += 7;
        } while (*p++ & 0x80 && p < end);
        if (p[-1] & 0x80 || v > UINT32_MAX) return false;
        *to++ = (uint32_t)v;
    }
    out->count = (size_t)(to - out->at);
    return true;
}

/* Takes a message apart: columns go to `c` and s->columns, all other fields to s->rest. False: the
 * fast path cannot read the message. */
static bool take_apart(struct mr_pb_stream *s, struct mr_str message, struct mr_node_columns *c)
{
    struct mr_protowire_reader r = mr_protowire_read(message);
    struct mr_protowire_field f;
    uint32_t seen = 0;
    mr_buf_clear(&s->rest);
    for (unsigned i = 0; i < F_END; i++)
        s->columns[i].count = 0;
    for (;;) {
        size_t at = r.at;
        int err = mr_protowire_next(&r, &f);
        if (err == MR_ENOENT) break;
        if (err) return false;
        if (f.number < F_KEYS || f.number > F_INPUTS) {
            mr_buf_add(&s->rest, message.p + at, r.at - at);
            continue;
        }
        /* Protobuf libraries write each column once and packed. The fast path accepts nothing
         * else. */
        if (f.type != MR_PROTOWIRE_BYTES || seen & 1u << f.number) return false;
        seen |= 1u << f.number;
        if (f.number == F_KEYS)
            c->keys = f.bytes;
        else if (f.number == F_ARGS)
            c->args = f.bytes;
        else if (!read_numbers(f.bytes, &s->columns[f.number]))
            return false;
    }
    size_t n = s->columns[F_KEY_BYTES].count;
    if (s->columns[F_OP].count != n || s->columns[F_ARGS_BYTES].count != n ||
        s->columns[F_INPUTS_COUNT].count != n)
        return false;
    c->count = (uint32_t)n;
    c->key_bytes = s->columns[F_KEY_BYTES].at;
    c->op = s->columns[F_OP].at;
    c->args_bytes = s->columns[F_ARGS_BYTES].at;
    c->inputs_count = s->columns[F_INPUTS_COUNT].at;
    c->inputs = s->columns[F_INPUTS].at;
    c->inputs_all = s->columns[F_INPUTS].count;
    return true;
}

static void add_ops(struct mr_pb_stream *s, const Millrace__V1__SubmitColumns *m)
{
    if (s->ops_room - s->ops_count < m->n_ops) {
        size_t room = s->ops_room * 2 + m->n_ops;
        s->ops = mr_grow(s->ops, s->ops_room * sizeof *s->ops, room * sizeof *s->ops);
        s->ops_room = room;
    }
    for (size_t i = 0; i < m->n_ops; i++)
        s->ops[s->ops_count++] = (struct mr_node_op){.name = mr_str(m->ops[i])};
}

static void add_part(struct mr_pb_stream *s, const struct part *part)
{
    if (s->parts_count == s->parts_room) {
        size_t room = s->parts_room ? s->parts_room * 2 : 8;
        s->parts = mr_grow(s->parts, s->parts_room * sizeof *part, room * sizeof *part);
        s->parts_room = room;
    }
    s->parts[s->parts_count++] = *part;
}

static bool add(struct mr_pb_stream *s, struct mr_str message)
{
    struct mr_node_columns c = {0};
    if (!take_apart(s, message, &c)) return false;
    if (!c.count && ++s->empty_count > MR_PB_EMPTY_MESSAGES_MAX) return false;
    struct part part = {.first = s->nodes, .count = c.count};
    part.m = mr_pb_unpack(
        &millrace__v1__submit_columns__descriptor, mr_buf_str(&s->rest), &s->arena, NULL);
    if (!part.m) return false;
    if (!s->parts_count && mr_pb_job_options(s->b, part.m->options, part.m->request_id, NULL))
        return false;
    add_ops(s, part.m);
    add_part(s, &part);
    if (!mr_builder_add_columns(s->b, &c, s->ops, (uint32_t)s->ops_count)) return false;
    s->nodes += c.count;
    return true;
}

void mr_pb_stream_add(struct mr_pb_stream *s, struct mr_str message)
{
    if (!s->is_odd) s->is_odd = !add(s, message);
}

/* Applies a message's options and targets. They may name nodes of other messages, so this is done
 * after the last message. */
static bool end_part(struct mr_pb_stream *s, const struct part *part)
{
    const Millrace__V1__SubmitColumns *m = part->m;
    for (size_t i = 0; i < m->n_task_options; i++)
        if (m->task_options[i]->node >= s->nodes ||
            mr_pb_task_options(s->b, m->task_options[i]->node, m->task_options[i]->options, NULL))
            return false;
    for (size_t i = 0; i < m->n_targets; i++)
        if (m->targets[i] >= s->nodes || mr_builder_target(s->b, m->targets[i], NULL)) return false;
    return !m->all_targets || mr_builder_target_all(s->b, part->first, part->count);
}

struct mr_builder *mr_pb_stream_end(struct mr_pb_stream *s)
{
    if (s->is_odd || !mr_builder_columns_are_complete(s->b)) return NULL;
    for (size_t i = 0; i < s->parts_count; i++)
        if (!end_part(s, &s->parts[i])) return NULL;
    return MR_STEAL(s->b);
}

/* ---- the slow path --------------------------------------------------------------------------- */

struct mr_str mr_pb_framed_next(struct mr_str body, size_t *at)
{
    uint64_t n = 0;
    memcpy(&n, body.p + *at, sizeof n);
    *at += sizeof n + (size_t)n;
    return mr_str_of(body.p + *at - n, (size_t)n);
}

int mr_pb_columns_add(
    struct mr_builder *b, const struct mr_buf *pieces, size_t pieces_count, struct mr_error *e)
{
    struct mr_pb_arena arena;
    struct mr_pb_columns_ops ops;
    struct mr_buf messages;
    uint32_t nodes = 0, empty_count = 0;
    int err = MR_OK;
    mr_pb_arena_init(&arena, (size_t)16 << 30);
    mr_buf_init(&ops.names, (size_t)1 << 30);
    mr_buf_init(&messages, (size_t)1 << 30);
    for (size_t i = 0; i < pieces_count; i++) {
        for (size_t at = 0; at < pieces[i].n && !err;) {
            const Millrace__V1__SubmitColumns *m =
                mr_pb_unpack(&millrace__v1__submit_columns__descriptor,
                    mr_pb_framed_next(mr_buf_str(&pieces[i]), &at), &arena, e);
            if (!m) err = MR_EFORMAT;
            if (m && !m->n_key_bytes && ++empty_count > MR_PB_EMPTY_MESSAGES_MAX)
                err = mr_fail(e, MR_EINVAL,
                    "more than %d messages of the stream bring no node: put more into one",
                    MR_PB_EMPTY_MESSAGES_MAX);
            if (!err && !nodes && !messages.n)
                err = mr_pb_job_options(b, m->options, m->request_id, e);
            if (!err) err = mr_pb_columns_declare(b, m, nodes, &nodes, e);
            mr_buf_add(&messages, &m, sizeof m);
        }
    }
    uint32_t first = 0;
    for (size_t at = 0; at < messages.n && !err; at += sizeof(void *)) {
        const Millrace__V1__SubmitColumns *m = NULL;
        memcpy(&m, messages.p + at, sizeof m);
        err = mr_pb_columns_define(b, m, first, nodes, &ops, e);
        first += (uint32_t)m->n_key_bytes;
    }
    mr_buf_fini(&messages);
    mr_buf_fini(&ops.names);
    mr_pb_arena_fini(&arena);
    return err;
}
