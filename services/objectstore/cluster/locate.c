/* The method Where. Each store answers for its own objects. The store that the client calls gets
 * the list of stores from the scheduler and asks the other stores one after another. */
#include "services/objectstore/cluster/locate.h"

#include "base/alloc.h"
#include "base/unconst.h"
#include "rpc/status.h"
#include "services/objectstore/call/call.h"
#include "services/objectstore/cluster/channels.h"
#include "services/objectstore/cluster/scheduler_session.h"

#include <millrace/v1/cluster.pb-c.h>

#include <string.h>

#define IDS_MAX 16384u
#define ID_BYTES 16u
#define STORES_MAX 4096u
#define CALL_TIMEOUT (5 * MR_SECOND)

struct search {
    mr_object_id *ids;
    uint32_t count;
    struct mr_str wire; /* the ids as in the request */
    struct store {
        char *node, *address;
    } * others;
    size_t others_count, at;
    Millrace__V1__WherePlace **places;
    size_t places_count;
};

static void reply(struct mr_ostore_call *call)
{
    const struct search *s = call->more;
    Millrace__V1__WhereResponse out = MILLRACE__V1__WHERE_RESPONSE__INIT;
    out.places = s->places;
    out.n_places = s->places_count;
    mr_ostore_call_reply(call, &out.base);
}

/* Adds a store to the reply, unless the store has none of the objects. `has` has one byte for each
 * id, 1 if the store has the object, and is in the call's arena. */
static void add_place(
    struct mr_ostore_call *call, const char *node, const char *address, unsigned char *has)
{
    struct search *s = call->more;
    if (!memchr(has, 1, s->count)) return;
    Millrace__V1__WherePlace *p = mr_ostore_call_take(call, sizeof *p);
    millrace__v1__where_place__init(p);
    p->node = mr_ostore_call_text(call, mr_str(node));
    p->address = mr_ostore_call_text(call, mr_str(address));
    p->has = (ProtobufCBinaryData){s->count, has};
    s->places[s->places_count++] = p;
}

/* ---- the other stores -------------------------------------------------------------------------*/

static void ask_next(struct mr_ostore_call *call);

static void on_place(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *message)
{
    struct mr_ostore_call *call = ctx;
    struct search *s = call->more;
    const struct store *from = &s->others[s->at - 1];
    const Millrace__V1__WhereResponse *m =
        status->code || !message ? NULL
                                 : mr_pb_unpack(&millrace__v1__where_response__descriptor,
                                       mr_rpc_message_str(message), &call->arena, NULL);
    if (m && m->n_places == 1 && m->places[0]->has.len == s->count)
        add_place(call, from->node, from->address, m->places[0]->has.data);
    ask_next(call);
}

static void ask_next(struct mr_ostore_call *call)
{
    struct search *s = call->more;
    struct mr_rpc_channel *channel = NULL;
    while (call->rpc && !channel && s->at < s->others_count)
        channel = mr_channels_get(call->sv->channels, s->others[s->at++].address);
    if (!channel) {
        mr_ostore_call_end(call);
        return;
    }
    Millrace__V1__WhereRequest request = MILLRACE__V1__WHERE_REQUEST__INIT;
    request.here = true;
    request.ids = (ProtobufCBinaryData){s->wire.n, mr_unconst(s->wire.p)};
    struct mr_buf wire;
    mr_buf_init(&wire, (size_t)IDS_MAX * ID_BYTES + 64);
    mr_pb_pack(&request.base, &wire);
    const struct mr_rpc_call_options options = {.timeout = CALL_TIMEOUT, .one_reply = true};
    (void)mr_rpc_unary(
        channel, "/millrace.v1.Objects/Where", mr_buf_str(&wire), &options, on_place, call);
    mr_buf_fini(&wire);
}

static void on_info(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *message)
{
    struct mr_ostore_call *call = ctx;
    struct search *s = call->more;
    const Millrace__V1__InfoResponse *m =
        status->code || !message ? NULL
                                 : mr_pb_unpack(&millrace__v1__info_response__descriptor,
                                       mr_rpc_message_str(message), &call->arena, NULL);
    size_t n = m ? MR_MIN(m->n_store, (size_t)STORES_MAX) : 0;
    s->others = mr_ostore_call_take(call, (n + 1) * sizeof *s->others);
    s->places = mr_ostore_call_take(call, (n + 1) * sizeof(void *));
    for (size_t i = 0; i < n; i++)
        if (m->store[i]->address[0] && strcmp(m->store[i]->address, call->sv->address) != 0)
            s->others[s->others_count++] = (struct store){m->store[i]->node, m->store[i]->address};
    ask_next(call);
}

static void ask_others(struct mr_ostore_call *call, mr_ostore_call_fn then)
{
    const struct mr_rpc_call_options options = {.timeout = CALL_TIMEOUT, .one_reply = true};
    mr_ostore_call_begin(call, then);
    (void)mr_rpc_unary(mr_scheduler_session_channel(call->sv->scheduler_session),
        "/millrace.v1.Cluster/Info", MR_STR(""), &options, on_info, call);
}

/* ---- this store -------------------------------------------------------------------------------*/

static void looked_up(struct mr_ostore_call *call)
{
    struct search *s = call->more;
    if (call->err) {
        mr_ostore_call_fail_error(call);
        return;
    }
    /* the core's answer has the missing ids in the order of the question */
    unsigned char *has = mr_ostore_call_take(call, s->count + 1);
    size_t missing = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        bool is_missing = missing < call->ask.infos_count &&
                          mr_object_id_eq(call->ask.infos[missing].id, s->ids[i]);
        missing += is_missing;
        has[i] = !is_missing;
    }
    Millrace__V1__WherePlace **others = s->places;
    size_t others_count = s->places_count;
    s->places = mr_ostore_call_take(call, (others_count + 1) * sizeof(void *));
    s->places_count = 0;
    add_place(call, call->sv->config.node, call->sv->address, has);
    for (size_t i = 0; i < others_count; i++)
        s->places[s->places_count++] = others[i];
    reply(call);
}

static void look_up(struct mr_ostore_call *call)
{
    struct search *s = call->more;
    call->ask.infos = mr_alloc_array(s->count + 1, sizeof *call->ask.infos);
    call->ask.infos_count = s->count;
    for (uint32_t i = 0; i < s->count; i++)
        call->ask.infos[i].id = s->ids[i];
    mr_ostore_call_ask(call, MR_ASK_MISSING, looked_up);
}

void mr_on_where(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__WhereRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__where_request__descriptor);
    if (!r) return;
    if (r->ids.len % ID_BYTES || r->ids.len > (size_t)IDS_MAX * ID_BYTES) {
        mr_ostore_call_fail(call, MR_EINVAL,
            "ids: %zu bytes; expected 16 bytes for each of at most %u objects", r->ids.len,
            IDS_MAX);
        return;
    }
    struct search *s = mr_ostore_call_take(call, sizeof *s);
    s->count = (uint32_t)(r->ids.len / ID_BYTES);
    s->ids = mr_ostore_call_take(call, (s->count + 1) * sizeof *s->ids);
    s->wire = mr_str_of((const char *)r->ids.data, r->ids.len);
    for (uint32_t i = 0; i < s->count; i++)
        (void)mr_object_id_from_bytes(
            mr_str_of(s->wire.p + (size_t)i * ID_BYTES, ID_BYTES), &s->ids[i]);
    call->more = s;
    bool alone = r->here || !call->sv->scheduler_session ||
                 !mr_scheduler_session_channel(call->sv->scheduler_session);
    if (alone)
        look_up(call);
    else
        ask_others(call, look_up);
}
