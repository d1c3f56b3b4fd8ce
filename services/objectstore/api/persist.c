/* The method Persist. A collection is written after its parts. A part of another node is written by
 * the store of that node. */
#include "services/objectstore/api/internal.h"

#include "services/objectstore/call/info.h"
#include "services/objectstore/call/lookup.h"
#include "services/objectstore/cluster/directory_entries.h"
#include "services/objectstore/cluster/remote.h"

#include <stdio.h>

static void persist_next(struct mr_ostore_call *call);

static void persist_failed(struct mr_ostore_call *call, const char *why)
{
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(call->id, id);
    mr_ostore_call_fail(call, call->err, "object %s cannot be persisted: %s", id, why);
}

static void persist_went_remote(struct mr_ostore_call *call)
{
    struct parts *p = call->more;
    if (call->err) {
        persist_failed(call, call->error.text);
        return;
    }
    p->at++;
    persist_next(call);
}

const char *mr_ostore_call_why_not_written(struct mr_ostore_call *call)
{
    if (call->err == MR_ESTATE) return "the store was started without --dir";
    if (call->err != MR_EDISKFULL) return mr_err_words(call->err);
    char why[512];
    (void)snprintf(why, sizeof why, "no space left on %.400s", call->sv->config.dir);
    return mr_ostore_call_text(call, mr_str(why));
}

/* Subtracts the current part from the bytes that this store still has to write. Either the part is
 * written, or the store of another node will write the part and report its bytes to the
 * scheduler. */
static void persist_less(struct parts *p)
{
    p->persisting.bytes -= MR_MIN(p->bytes[p->at], p->persisting.bytes);
}

static void persist_over(struct mr_ostore_call *call)
{
    struct parts *p = call->more;
    mr_list_remove(&p->persisting.node);
}

static void persist_written(struct mr_ostore_call *call)
{
    struct parts *p = call->more;
    bool is_part = p->at + 1 < p->count;
    persist_less(p);
    if (call->err == MR_ENOENT && is_part) {
        mr_ostore_call_remote(call, "/millrace.v1.Objects/Persist", persist_went_remote);
    } else if (call->err) {
        persist_failed(call, mr_ostore_call_why_not_written(call));
    } else {
        p->at++;
        persist_next(call);
    }
}

static void persist_placed(struct mr_ostore_call *call)
{
    mr_ostore_call_reply(call, &call->info->base);
}

static void persist_done(struct mr_ostore_call *call)
{
    if (call->err) {
        mr_ostore_call_fail_unknown(call);
        return;
    }
    call->info = mr_ostore_call_info(call, &call->ask.infos[0]);
    mr_naming_persisted(call->sv, call->info);
    mr_ostore_call_place(call, call->info, persist_placed);
}

static void persist_next(struct mr_ostore_call *call)
{
    struct parts *p = call->more;
    if (p->at == p->count) {
        mr_ostore_call_stat(call, persist_done);
        return;
    }
    call->id = p->ids[p->at];
    mr_ostore_call_event(call, MR_OE_PERSIST, persist_written);
}

static void persist_look(struct mr_ostore_call *call)
{
    mr_job_id job = *(const mr_job_id *)call->more;
    mr_parts_take(call);
    struct parts *p = call->more;
    p->persisting.job = job;
    mr_list_add_tail(&call->sv->persisting, &p->persisting.node);
    call->fini = persist_over;
    persist_next(call);
}

static void persist_known(struct mr_ostore_call *call)
{
    if (call->err) {
        mr_ostore_call_fail_unknown(call);
        return;
    }
    mr_job_id *job = mr_ostore_call_take(call, sizeof *job);
    *job = call->ask.infos[0].owner.job;
    call->more = job;
    mr_ostore_call_get(call, NULL, 30 * MR_SECOND, persist_look);
}

static void persist_found(struct mr_ostore_call *call)
{
    mr_ostore_call_stat(call, persist_known);
}

void mr_on_persist(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__PersistRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__persist_request__descriptor);
    if (r) mr_ostore_call_find_id(call, "id", r->id, persist_found);
}
