/* The method Delete. The parts of a collection are deleted with it, even those in other stores,
 * unless a part has another holder. */
#include "services/objectstore/api/internal.h"

#include "services/objectstore/call/lookup.h"
#include "services/objectstore/cluster/remote.h"

#define COLLECTION_BYTES_MAX ((uint64_t)16 << 20)
#define LOOK_WAIT (5 * MR_SECOND)

static void delete_refused(struct mr_ostore_call *call)
{
    char id[MR_OBJECT_ID_TEXT_MAX];
    char holder[64];
    mr_object_id_format(call->id, id);
    mr_ostore_shell_holder_text(call->ask.holder, holder, sizeof holder);
    const char *name = call->ask.holder.kind == MR_HOLD_NAME
                           ? mr_names_by_key(call->sv->names, call->ask.holder.key)
                           : NULL;
    mr_ostore_call_fail(call, call->err,
        "object %s is held by %s%s; delete it with force, or remove what holds it first", id,
        name ? "name " : "", name ? name : holder);
}

static void delete_part(struct mr_ostore_call *call);

static void part_deleted(struct mr_ostore_call *call)
{
    struct parts *p = call->more;
    p->at++;
    delete_part(call);
}

static void part_looked_up(struct mr_ostore_call *call)
{
    call->ask.ev.flags = 0;
    if (call->err)
        mr_ostore_call_remote(call, "/millrace.v1.Objects/Delete", part_deleted);
    else
        mr_ostore_call_event(call, MR_OE_DELETE, part_deleted);
}

static void delete_part(struct mr_ostore_call *call)
{
    struct parts *p = call->more;
    if (p->at + 1 >= p->count) {
        Millrace__V1__DeleteObjectResponse out = MILLRACE__V1__DELETE_OBJECT_RESPONSE__INIT;
        mr_ostore_call_reply(call, &out.base);
        return;
    }
    call->id = p->ids[p->at];
    mr_ostore_call_stat(call, part_looked_up);
}

/* Removes the names of an object that was deleted although names held it. */
static void remove_names(struct mr_ostore_call *call)
{
    for (size_t i = 0; i < call->names_count; i++)
        mr_naming_remove(call->sv, call->names[i].name, call->id);
}

static void delete_done(struct mr_ostore_call *call)
{
    if (call->err) {
        delete_refused(call);
        return;
    }
    remove_names(call);
    delete_part(call);
}

static void delete_viewed(struct mr_ostore_call *call)
{
    mr_parts_take(call);
    if (call->view.pin) mr_store_release(call->sv->self, &call->view);
    call->ask.ev = (struct mr_ostore_event){.flags = call->forced ? MR_OSTORE_FORCE : 0};
    mr_ostore_call_event(call, MR_OE_DELETE, delete_done);
}

/* Sets call->names to those names of the object that this store knows. */
static void take_names(struct mr_ostore_call *call)
{
    const struct mr_ostore_info *info = &call->ask.infos[0];
    call->names = mr_ostore_call_take(call, MR_OSTORE_HOLDERS_SHOWN * sizeof *call->names);
    call->names_count = 0;
    for (uint32_t i = 0; i < MR_MIN(info->holders_count, (uint32_t)MR_OSTORE_HOLDERS_SHOWN); i++) {
        if (info->holders[i].kind != MR_HOLD_NAME) continue;
        const char *name = mr_names_by_key(call->sv->names, info->holders[i].key);
        if (name)
            call->names[call->names_count++].name = mr_str(mr_ostore_call_text(call, mr_str(name)));
    }
}

static void delete_known(struct mr_ostore_call *call)
{
    if (!call->err && call->forced) take_names(call);
    if (call->err)
        mr_ostore_call_fail_unknown(call);
    else if (call->ask.infos[0].bytes <= COLLECTION_BYTES_MAX)
        /* the object is viewed first, since it may be a collection */
        mr_ostore_call_get(call, NULL, LOOK_WAIT, delete_viewed);
    else
        delete_viewed(call);
}

static void delete_found(struct mr_ostore_call *call)
{
    mr_ostore_call_stat(call, delete_known);
}

void mr_on_delete(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__DeleteObjectRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__delete_object_request__descriptor);
    if (!r) return;
    call->forced = r->force;
    mr_ostore_call_find_id(call, "id", r->id, delete_found);
}
