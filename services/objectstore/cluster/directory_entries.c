/* Writes and removes entries in the cluster's directory. The store writes an entry before it tells
 * the core (event PLACED). It removes the entry when the core says so (effect UNPLACE). Both use
 * one connection to Redis, so a removal always comes after the write. */
#include "services/objectstore/cluster/directory_entries.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "host/os/log.h"

#include <stdatomic.h>

#define AGAIN MR_SECOND

struct mr_places {
    struct mr_service *sv;
    _Atomic bool is_due;
    _Atomic bool is_under_way;
    mr_time not_before;
};

struct mr_places *mr_places_new(struct mr_service *sv)
{
    struct mr_places *p = mr_alloc(sizeof *p);
    p->sv = sv;
    return p;
}

void mr_places_free(struct mr_places **p)
{
    mr_release(MR_STEAL(*p));
}

/* Called when the entry is written: tells the core. When the object leaves this store, the core
 * will have the entry removed. Any thread may call this function. */
static void tell_added(struct mr_service *sv, mr_object_id id)
{
    mr_ostore_shell_post(sv->sh, &(struct mr_ostore_event){.type = MR_OE_PLACED, .id = id});
}

static void place_told(void *ctx, int err) /* called on any thread when the entry is written */
{
    struct mr_ostore_call *call = ctx;
    if (!err) tell_added(call->sv, call->id);
    mr_ostore_call_end_soon(call);
}

void mr_ostore_call_place(
    struct mr_ostore_call *call, const Millrace__V1__ObjectInfo *info, mr_ostore_call_fn then)
{
    mr_ostore_call_begin(call, then);
    struct mr_place_record r = {
        .object = call->id,
        .nbytes = info->nbytes,
        .node = mr_str(call->sv->config.node),
        .address = mr_str(call->sv->address),
        .durable = info->durable,
    };
    mr_names_place(call->sv->names, &r, place_told, call);
}

static void removed(void *ctx, int err)
{
    const struct mr_service *sv = ctx;
    if (err && err != MR_ECANCELED) mr_places_look(sv->places);
}

void mr_places_remove(struct mr_service *sv, mr_object_id id, struct mr_str node)
{
    mr_names_unplace(sv->names, id, node, removed, sv);
}

void mr_places_look(struct mr_places *p)
{
    atomic_store(&p->is_due, true);
    mr_rpc_loop_wake(p->sv->loop);
}

static void ignore(void *ctx, int err)
{
    (void)ctx;
    (void)err;
}

static void on_page(
    void *ctx, int err, const struct mr_place_record *records, size_t count, struct mr_str next)
{
    struct mr_places *p = ctx;
    struct mr_service *sv = p->sv;
    for (size_t i = 0; i < count && !err; i++) {
        struct mr_place_record r = records[i];
        if (!mr_str_eq(r.node, mr_str(sv->config.node))) continue;
        /* if the address differs, an earlier process of this store wrote the entry */
        if (!mr_str_eq(r.address, mr_str(sv->address))) {
            r.address = mr_str(sv->address);
            mr_names_place(sv->names, &r, ignore, NULL);
        }
        tell_added(sv, r.object);
    }
    if (!err && !mr_str_eq(next, MR_STR("0"))) {
        mr_names_places(sv->names, next, on_page, p);
        return;
    }
    /* MR_EAWAY is not logged: the entries are read again when Redis is connected again */
    if (err && err != MR_ECANCELED && err != MR_EAWAY)
        mr_log(MR_WARN, "directory.read_failed", "what=\"%s\"", mr_err_words(err));
    if (err) atomic_store(&p->is_due, true);
    atomic_store(&p->is_under_way, false);
    mr_rpc_loop_wake(sv->loop);
}

mr_time mr_places_turn(struct mr_places *p, mr_time now)
{
    if (!atomic_load(&p->is_due) || atomic_load(&p->is_under_way)) return MR_NEVER;
    if (now < p->not_before) return p->not_before;
    p->not_before = mr_time_after(now, AGAIN);
    atomic_store(&p->is_due, false);
    atomic_store(&p->is_under_way, true);
    mr_names_places(p->sv->names, MR_STR("0"), on_page, p);
    return MR_NEVER;
}
