/* Reads objects by shared memory; persists and names them by gRPC. */
#include "train/feed/store.h"

#include "base/unconst.h"
#include "host/clock.h"
#include "millrace/v1/objects.pb-c.h"

#include <stdio.h>

#define GET_TIMEOUT (10 * MR_SECOND)
/* Limit of the get of a partition, which competes with other partitions for the network. */
#define PULL_TIMEOUT (60 * MR_SECOND)
/* Limit of a call, short enough for a second attempt within the session's limits.recovering_s. */
#define CALL_TIMEOUT (20 * MR_SECOND)
/* Limit of the time until the store's gRPC service knows an object that was just sealed. */
#define KNOWN_TIMEOUT (2 * MR_SECOND)
#define ANSWER_BYTES_MAX ((size_t)1 << 20)

static int get_within(const struct mr_role_store *s, mr_object_id id, const char *source,
    mr_duration timeout, struct mr_store_view *out, struct mr_error *e)
{
    if (!s->store) return mr_fail(e, MR_ELOST, "this worker has no object store (--store)");
    int err = mr_store_get(s->store, id, NULL, 0, out, e);
    if (err != MR_EAGAIN) return err;
    if (source || !s->call)
        err = mr_store_get_or_stop(s->store, id, source, timeout, s->stop, out, e);
    bool is_elsewhere = err == MR_EAWAY || err == MR_ENOENT || err == MR_ELOST;
    if ((source && !is_elsewhere) || !s->call) return err;
    char text[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(id, text);
    struct mr_str extent;
    err = s->call->does->load(s->call, id, &extent);
    if (err == MR_ELIMIT)
        return mr_fail(e, err, "the object store has no room for object %s", text);
    if (err == MR_ETIMEOUT) return mr_fail(e, err, "object %s did not come in time", text);
    if (err) return mr_fail(e, err, "object %s cannot be found", text);
    return mr_store_get_or_stop(s->store, id, NULL, GET_TIMEOUT, s->stop, out, e);
}

int mr_role_get(const struct mr_role_store *s, mr_object_id id, const char *source,
    struct mr_store_view *out, struct mr_error *e)
{
    return get_within(s, id, source, GET_TIMEOUT, out, e);
}

int mr_role_get_part(const struct mr_role_store *s, mr_object_id id, const char *source,
    struct mr_store_view *out, struct mr_error *e)
{
    return get_within(s, id, source, source ? PULL_TIMEOUT : GET_TIMEOUT, out, e);
}

void mr_role_room(const struct mr_role_store *s, uint64_t *memory, uint64_t *pinned)
{
    struct mr_store_stats stats = {0};
    if (s->store) (void)mr_store_stats_or_stop(s->store, s->stop, &stats, NULL);
    *memory = stats.memory_bytes_max;
    *pinned = stats.pinned_bytes;
}

static int resolve(
    const struct mr_role_store *s, const char *name, struct mr_role_named *out, struct mr_error *e)
{
    Millrace__V1__ResolveRequest r = MILLRACE__V1__RESOLVE_REQUEST__INIT;
    r.name = mr_unconst(name);
    struct mr_pb_arena arena;
    mr_pb_arena_init(&arena, ANSWER_BYTES_MAX);
    const Millrace__V1__NameInfo *got = NULL;
    int err = mr_role_call(s->link, "/millrace.v1.Objects/Resolve", &r.base, CALL_TIMEOUT, s->stop,
        &millrace__v1__name_info__descriptor, &arena, &got, e);
    if (!err) err = mr_object_id_parse(mr_str(got->object), &out->id);
    if (!err) (void)snprintf(out->address, sizeof out->address, "%s", got->address);
    mr_pb_arena_fini(&arena);
    return err;
}

int mr_role_find(
    const struct mr_role_store *s, const char *text, struct mr_role_named *out, struct mr_error *e)
{
    *out = (struct mr_role_named){0};
    if (!mr_object_id_parse(mr_str(text), &out->id)) return MR_OK;
    return resolve(s, text, out, e);
}

static int persist(const struct mr_role_store *s, char *id, struct mr_error *e)
{
    Millrace__V1__PersistRequest r = MILLRACE__V1__PERSIST_REQUEST__INIT;
    r.id = id;
    mr_time until = mr_time_after(mr_clock_now(), KNOWN_TIMEOUT);
    for (;;) {
        int err = mr_role_call(s->link, "/millrace.v1.Objects/Persist", &r.base, CALL_TIMEOUT,
            s->stop, NULL, NULL, NULL, e);
        if (err != MR_ENOENT || mr_clock_now() >= until || mr_stop_is_set(s->stop)) return err;
        mr_clock_sleep(MR_MS);
    }
}

static int name_it(const struct mr_role_store *s, char *id, const char *name, struct mr_error *e)
{
    Millrace__V1__NameRequest r = MILLRACE__V1__NAME_REQUEST__INIT;
    r.name = mr_unconst(name);
    r.object = id;
    r.replace = true;
    mr_time until = mr_time_after(mr_clock_now(), KNOWN_TIMEOUT);
    for (;;) {
        int err = mr_role_call(s->link, "/millrace.v1.Objects/Name", &r.base, CALL_TIMEOUT, s->stop,
            NULL, NULL, NULL, e);
        if (err != MR_ENOENT || mr_clock_now() >= until || mr_stop_is_set(s->stop)) return err;
        mr_clock_sleep(MR_MS);
    }
}

int mr_role_save(const struct mr_role_store *s, struct mr_store_draft *draft, const char *name,
    bool to_disk, mr_object_id *out, struct mr_error *e)
{
    const struct mr_store_owner mine = {0};
    const struct mr_store_holder me = {.kind = MR_HOLD_CLIENT};
    mr_object_id id = draft->id;
    char text[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(id, text);
    int err = mr_store_seal(s->store, draft, &mine, NULL, e);
    if (err) return err;
    if (to_disk) err = persist(s, text, e);
    if (!err) err = name_it(s, text, name, e);
    /* after a success the name holds the object; after an error the object is not needed */
    mr_store_unhold(s->store, &id, 1, me);
    if (!err) *out = id;
    return err;
}

int mr_role_unname(const struct mr_role_store *s, const char *name, struct mr_error *e)
{
    Millrace__V1__UnnameRequest r = MILLRACE__V1__UNNAME_REQUEST__INIT;
    r.name = mr_unconst(name);
    return mr_role_call(s->link, "/millrace.v1.Objects/Unname", &r.base, CALL_TIMEOUT, s->stop,
        NULL, NULL, NULL, e);
}
