/* Makes and frees exchanges and chunks, and moves an exchange between its states. */
#include "gateway/bridge/exchange.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/protowire.h"

#define TEXT_BYTES_MAX ((size_t)64 << 20)
#define DETAILS_BYTES_MAX 65536
#define EVENT_ID_BYTES_MAX 1024
#define HTTP_BODY_DATA 2 /* number of the field google.api.HttpBody.data */

struct mr_exchange *mr_exchange_new(void)
{
    struct mr_exchange *x = mr_alloc(sizeof *x);
    x->fd = -1;
    mr_buf_init(&x->request, MR_MESSAGE_BYTES_MAX);
    mr_buf_init(&x->last_id, EVENT_ID_BYTES_MAX);
    mr_buf_init(&x->text, TEXT_BYTES_MAX);
    mr_buf_init(&x->details, DETAILS_BYTES_MAX);
    mr_list_init(&x->live);
    x->replies = mr_inbox_new(MR_EXCHANGE_REPLIES, sizeof(struct mr_reply));
    return x;
}

/* SILENT ──▶ OPENED ──▶ ANSWERED ──▶ OVER
 * SILENT and OPENED may also become OVER, and SILENT may become ANSWERED. An ANSWERED exchange
 * stays ANSWERED when further messages come. */
#define S(x) (1u << MR_EXCHANGE_##x)
static const unsigned moves[] = {
    [MR_EXCHANGE_SILENT] = S(OPENED) | S(ANSWERED) | S(OVER),
    [MR_EXCHANGE_OPENED] = S(ANSWERED) | S(OVER),
    [MR_EXCHANGE_ANSWERED] = S(ANSWERED) | S(OVER),
    [MR_EXCHANGE_OVER] = 0,
};

void mr_exchange_move(struct mr_exchange *x, enum mr_exchange_state to)
{
    mr_assert(moves[x->state] & 1u << to);
    x->state = to;
}

void mr_exchange_free(struct mr_exchange **x)
{
    if (!*x) return;
    struct mr_reply r;
    while (mr_inbox_take((*x)->replies, &r, 1))
        mr_rpc_message_free(&r.message);
    mr_inbox_free(&(*x)->replies);
    mr_buf_fini(&(*x)->request);
    mr_buf_fini(&(*x)->last_id);
    mr_buf_fini(&(*x)->text);
    mr_buf_fini(&(*x)->details);
    mr_release(*x);
    *x = NULL;
}

struct mr_chunk *mr_chunk_new(const struct mr_route *route, unsigned char **bytes, size_t n)
{
    mr_assert(route->raw_request);
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(
        mr_proto_method(route->method)->request, route->body);
    struct mr_chunk *c = mr_alloc(sizeof *c);
    unsigned char length[MR_PROTOWIRE_VARINT_MAX];
    struct mr_buf prefix;
    mr_buf_init(&prefix, sizeof c->prefix);
    mr_protowire_tag(&prefix, f->id, MR_PROTOWIRE_BYTES);
    mr_protowire_varint(&prefix, 1 + mr_protowire_put_varint(length, n) + n);
    mr_protowire_tag(&prefix, HTTP_BODY_DATA, MR_PROTOWIRE_BYTES);
    mr_protowire_varint(&prefix, n);
    mr_assert(!mr_buf_status(&prefix));
    memcpy(c->prefix, prefix.p, prefix.n);
    c->prefix_n = prefix.n;
    mr_buf_fini(&prefix);
    c->bytes = MR_STEAL(*bytes);
    c->n = n;
    return c;
}

void mr_chunk_free(void *chunk)
{
    struct mr_chunk *c = chunk;
    if (!c) return;
    mr_release(c->bytes);
    mr_release(c);
}
