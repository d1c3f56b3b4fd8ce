/* The methods of names: set, resolve, remove and list. */
#include "base/alloc.h"
#include "base/limits.h"
#include "base/page.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "rpc/status.h"
#include "services/objectstore/api/call.h"
#include "services/objectstore/api/directory_entries.h"
#include "services/objectstore/api/pull_receive.h"

#include <string.h>

#define TELL_TIMEOUT (30 * MR_SECOND)

static Millrace__V1__NameInfo *info_of(struct mr_ostore_call *call, const struct mr_name_record *r)
{
    Millrace__V1__NameInfo *out = mr_ostore_call_take(call, sizeof *out);
    millrace__v1__name_info__init(out);
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(r->object, id);
    out->name = mr_ostore_call_text(call, r->name);
    out->object = mr_ostore_call_text(call, mr_str(id));
    if (r->has_definition) {
        out->definition.len = sizeof r->definition;
        out->definition.data =
            (uint8_t *)mr_ostore_call_text(call, mr_str_of(r->definition, sizeof r->definition));
    }
    out->nbytes = r->nbytes;
    out->summary = mr_ostore_call_text(call, r->summary);
    out->node = mr_ostore_call_text(call, r->node.n ? r->node : mr_str(call->sv->config.node));
    out->address = mr_ostore_call_text(call, r->address.n ? r->address : mr_str(call->sv->address));
    out->created_ns = r->created_ns;
    out->durable = r->durable;
    return out;
}

static void fail_name(struct mr_ostore_call *call, struct mr_str name)
{
    if (call->err == MR_ENOENT)
        mr_ostore_call_fail(call, call->err, "no object has the name \"%.*s\"", MR_STR_ARG(name));
    else if (call->err == MR_EAWAY)
        mr_ostore_call_fail(call, call->err, "names are kept in Redis, which does not answer");
    else
        mr_ostore_call_fail(
            call, call->err, "name \"%.*s\": %s", MR_STR_ARG(name), mr_err_words(call->err));
}

/* ---- letting go of what a name meant: here, or on the node that has it ----------------------- */

struct telling {
    struct mr_service *sv;
    mr_object_id object;
    char *node;
};

static void told(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct telling *t = ctx;
    (void)reply;
    int err = mr_rpc_status_error(status, NULL);
    if (err)
        mr_log(MR_WARN, "name.notify_failed", "code=%d what=\"%.*s\"", status->code,
            MR_STR_ARG(status->message));
    if (err == MR_EAWAY || err == MR_ETIMEOUT) /* that store may never come back */
        mr_places_remove(t->sv, t->object, mr_str(t->node));
    mr_release(t->node);
    mr_release(t);
}

/* One that is not reached looks at all names when it starts again. */
static void tell_store(struct mr_ostore_call *call, const struct mr_name_record *was)
{
    struct mr_rpc_channel *channel =
        call->sv->pull_receiver ? mr_pull_receiver_channel(call->sv->pull_receiver, was->address.p)
                                : NULL;
    if (!channel) return;
    unsigned char id[16];
    mr_object_id_to_bytes(was->object, id);
    Millrace__V1__RenamedRequest request = MILLRACE__V1__RENAMED_REQUEST__INIT;
    request.name = mr_ostore_call_text(call, was->name);
    request.object = (ProtobufCBinaryData){sizeof id, id};
    struct mr_buf wire;
    mr_buf_init(&wire, 8192);
    mr_pb_pack(&request.base, &wire);
    struct mr_rpc_call_options options = {.timeout = TELL_TIMEOUT, .wait_for_ready = true};
    struct telling *t = mr_alloc(sizeof *t);
    *t = (struct telling){call->sv, was->object, mr_format("%.*s", MR_STR_ARG(was->node))};
    (void)mr_rpc_unary(
        channel, "/millrace.v1.Objects/Renamed", mr_buf_str(&wire), &options, told, t);
    mr_buf_fini(&wire);
}

static void let_go(struct mr_ostore_call *call, const struct mr_name_record *was)
{
    struct mr_store_holder holder = {MR_HOLD_NAME, mr_name_key(was->name)};
    mr_store_unhold(call->sv->self, &was->object, 1, holder);
    if (was->address.n && !mr_str_eq(was->address, mr_str(call->sv->address)))
        tell_store(call, was);
}

static void renamed_looked_up(struct mr_ostore_call *call)
{
    const struct mr_name_record *was = call->more;
    bool gone = call->err == MR_ENOENT;
    if (call->err && !gone) {
        fail_name(call, was->name);
        return;
    }
    if (gone || !mr_object_id_eq(call->names[0].object, was->object)) let_go(call, was);
    Millrace__V1__RenamedResponse out = MILLRACE__V1__RENAMED_RESPONSE__INIT;
    (void)mr_rpc_call_reply_pb(call->rpc, &out.base);
}

void mr_on_renamed(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__RenamedRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__renamed_request__descriptor);
    if (!r || !mr_ostore_call_check_name(call, "name", r->name)) return;
    struct mr_name_record *was = mr_ostore_call_take(call, sizeof *was);
    was->name = mr_str(r->name);
    call->more = was;
    if (mr_object_id_from_bytes(mr_str_of(r->object.data, r->object.len), &was->object))
        mr_ostore_call_fail(call, MR_EINVAL, "object: %zu bytes, not 16", r->object.len);
    else
        mr_ostore_call_resolve(call, was->name, renamed_looked_up);
}

/* ---- giving a name: is the object here, whose is the name now, take it ----------------------- */

struct naming {
    struct mr_name_record record;
    struct mr_name_record before; /* whose name it was */
    bool replace;
    mr_ostore_call_fn then;
};

static struct naming *naming_of(struct mr_ostore_call *call)
{
    return call->naming;
}

static void name_set(struct mr_ostore_call *call)
{
    struct naming *n = naming_of(call);
    struct mr_store_holder holder = {MR_HOLD_NAME, mr_name_key(n->record.name)};
    if (call->err == MR_EEXIST) {
        char id[MR_OBJECT_ID_TEXT_MAX] = "another";
        if (call->names_count) mr_object_id_format(call->names[0].object, id);
        call->err = mr_fail(&call->error, MR_EEXIST,
            "the name \"%.*s\" is object %s; set replace to take it", MR_STR_ARG(n->record.name),
            id);
    } else if (call->err) {
        call->err = mr_fail(&call->error, call->err, "name \"%.*s\": %s",
            MR_STR_ARG(n->record.name), mr_err_words(call->err));
    } else {
        mr_names_note(call->sv->names, holder.key, n->record.name);
        mr_store_hold(call->sv->self, &call->id, 1, holder);
        mr_object_id before = n->before.object;
        if (!mr_object_id_is_none(before) && !mr_object_id_eq(before, call->id))
            let_go(call, &n->before);
    }
    n->then(call);
}

static void name_looked_up(struct mr_ostore_call *call)
{
    struct naming *n = naming_of(call);
    if (!call->err && call->names_count) n->before = call->names[0];
    mr_ostore_call_set_name(call, &n->record, n->replace, name_set);
}

static void name_placed(struct mr_ostore_call *call)
{
    mr_ostore_call_resolve(call, naming_of(call)->record.name, name_looked_up);
}

static void name_object_known(struct mr_ostore_call *call)
{
    struct naming *n = naming_of(call);
    if (call->err) {
        char id[MR_OBJECT_ID_TEXT_MAX];
        mr_object_id_format(call->id, id);
        call->err = mr_fail(&call->error, MR_ENOENT, "object %s is not in the store of node \"%s\"",
            id, call->sv->config.node);
        n->then(call);
        return;
    }
    const Millrace__V1__ObjectInfo *info = mr_ostore_call_info(call, &call->ask.infos[0]);
    n->record.object = call->id;
    n->record.nbytes = info->nbytes;
    n->record.summary = mr_str(info->summary);
    n->record.node = mr_str(call->sv->config.node);
    n->record.address = mr_str(call->sv->address);
    n->record.created_ns = mr_clock_wall();
    n->record.durable = info->durable;
    mr_ostore_call_place(call, info, name_placed);
}

void mr_ostore_call_name_object(struct mr_ostore_call *call, struct mr_str name,
    const ProtobufCBinaryData *definition, bool replace, mr_ostore_call_fn then)
{
    struct naming *n = mr_ostore_call_take(call, sizeof *n);
    call->naming = n;
    n->record.name = name;
    n->replace = replace;
    n->then = then;
    if (definition && definition->len == sizeof n->record.definition) {
        n->record.has_definition = true;
        memcpy(n->record.definition, definition->data, definition->len);
    }
    mr_ostore_call_stat(call, name_object_known);
}

static void name_done(struct mr_ostore_call *call)
{
    if (call->err)
        mr_ostore_call_fail_error(call);
    else
        (void)mr_rpc_call_reply_pb(call->rpc, &info_of(call, &call->names[0])->base);
}

void mr_on_name(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__NameRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__name_request__descriptor);
    if (!r || !mr_ostore_call_check_name(call, "name", r->name) ||
        !mr_ostore_call_parse_id(call, "object", r->object))
        return;
    if (r->definition.len != 0 && r->definition.len != 16) {
        mr_ostore_call_fail(call, MR_EINVAL, "definition: %zu bytes, not 16", r->definition.len);
        return;
    }
    mr_ostore_call_name_object(call, mr_str(r->name), &r->definition, r->replace, name_done);
}

static void ignore_name(void *ctx, int err, const struct mr_name_record *record)
{
    (void)ctx;
    (void)err;
    (void)record;
}

static void make_durable(void *ctx, int err, const struct mr_name_record *record)
{
    if (err || !record || record->durable) return;
    struct mr_name_record r = *record;
    r.durable = true;
    mr_names_set(ctx, &r, false, ignore_name, NULL);
}

void mr_names_persisted(struct mr_names *n, const Millrace__V1__ObjectInfo *info)
{
    for (size_t i = 0; i < info->n_names; i++)
        mr_names_resolve(n, mr_str(info->names[i]), make_durable, n);
}

/* ---- finding, taking away, listing ----------------------------------------------------------- */

static void resolve_done(struct mr_ostore_call *call)
{
    if (call->err)
        fail_name(call, mr_str(call->more));
    else
        (void)mr_rpc_call_reply_pb(call->rpc, &info_of(call, &call->names[0])->base);
}

void mr_on_resolve(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__ResolveRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__resolve_request__descriptor);
    if (!r || !mr_ostore_call_check_name(call, "name", r->name)) return;
    call->more = r->name;
    mr_ostore_call_resolve(call, mr_str(r->name), resolve_done);
}

static void unname_done(struct mr_ostore_call *call)
{
    struct mr_str name = mr_str(call->more);
    if (call->err) {
        fail_name(call, name);
        return;
    }
    if (call->names_count) let_go(call, &call->names[0]);
    Millrace__V1__UnnameResponse out = MILLRACE__V1__UNNAME_RESPONSE__INIT;
    (void)mr_rpc_call_reply_pb(call->rpc, &out.base);
}

void mr_on_unname(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__UnnameRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__unname_request__descriptor);
    if (!r || !mr_ostore_call_check_name(call, "name", r->name)) return;
    call->more = r->name;
    mr_ostore_call_unname(call, mr_str(r->name), unname_done);
}

static void names_done(struct mr_ostore_call *call)
{
    if (call->err) {
        fail_name(call, MR_STR("*"));
        return;
    }
    Millrace__V1__NamesResponse out = MILLRACE__V1__NAMES_RESPONSE__INIT;
    out.names = mr_ostore_call_take(call, (call->names_count + 1) * sizeof(void *));
    for (size_t i = 0; i < call->names_count; i++)
        out.names[out.n_names++] = info_of(call, &call->names[i]);
    MR_AUTO(mr_free_ptr)
    char *next = call->names_more && call->names_count
                     ? mr_page_token(out.names[call->names_count - 1]->name)
                     : NULL;
    if (next) out.next_page_token = next;
    (void)mr_rpc_call_reply_pb(call->rpc, &out.base);
}

void mr_on_names(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__NamesRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__names_request__descriptor);
    if (!r) return;
    struct mr_page page;
    struct mr_error e;
    if (mr_page_read(r->page_size, r->page_token, 100, &page, &e)) {
        mr_ostore_call_fail(call, e.code, "%s", e.text);
        return;
    }
    mr_ostore_call_list_names(call, mr_str(r->prefix), page.after, page.rows_max, names_done);
}
