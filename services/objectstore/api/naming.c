/* Gives names to objects. A name holds its object. If the name meant another object before, the
 * store that has that object drops the hold. This may be the store of another node. */
#include "services/objectstore/api/internal.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "rpc/status.h"
#include "services/objectstore/call/info.h"
#include "services/objectstore/call/lookup.h"
#include "services/objectstore/cluster/channels.h"
#include "services/objectstore/cluster/directory_entries.h"

#include <string.h>

#define TELL_TIMEOUT (30 * MR_SECOND)

/* ---- the object that a name meant before ------------------------------------------------------*/

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
    /* the store of that node may never come back, so its entry in the directory is removed here */
    if (err == MR_EAWAY || err == MR_ETIMEOUT) mr_places_remove(t->sv, t->object, mr_str(t->node));
    mr_release(t->node);
    mr_release(t);
}

/* Tells the store of the former object that the name means another object. A store that cannot be
 * reached will read all names when it starts again. */
static void tell_store(struct mr_ostore_call *call, const struct mr_name_record *was)
{
    struct mr_rpc_channel *channel = mr_channels_get(call->sv->channels, was->address.p);
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

void mr_ostore_call_let_go(struct mr_ostore_call *call, const struct mr_name_record *was)
{
    struct mr_store_holder holder = {MR_HOLD_NAME, mr_name_key(was->name)};
    mr_store_unhold(call->sv->self, &was->object, 1, holder);
    if (was->address.n && !mr_str_eq(was->address, mr_str(call->sv->address)))
        tell_store(call, was);
}

/* ---- a new name -------------------------------------------------------------------------------*/

struct naming {
    struct mr_name_record record;
    struct mr_name_record before; /* the record that the name had before */
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
            "the name \"%.*s\" already means object %s; set replace to move it",
            MR_STR_ARG(n->record.name), id);
    } else if (call->err) {
        call->err = mr_fail(&call->error, call->err, "name \"%.*s\": %s",
            MR_STR_ARG(n->record.name), mr_err_words(call->err));
    } else {
        mr_names_note(call->sv->names, holder.key, n->record.name);
        mr_store_hold(call->sv->self, &call->id, 1, holder);
        mr_object_id before = n->before.object;
        if (!mr_object_id_is_none(before) && !mr_object_id_eq(before, call->id))
            mr_ostore_call_let_go(call, &n->before);
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
        mr_ostore_call_unknown(call);
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

void mr_naming_persisted(struct mr_service *sv, const Millrace__V1__ObjectInfo *info)
{
    for (size_t i = 0; i < info->n_names; i++)
        mr_names_resolve(sv->names, mr_str(info->names[i]), make_durable, sv->names);
}

void mr_naming_remove(struct mr_service *sv, struct mr_str name, mr_object_id object)
{
    mr_names_remove(sv->names, name, object, ignore_name, NULL);
}
