/* Deletes the objects of checkpoints that are no longer needed. A deletion has three steps: it
 * resolves the name, removes the name, and deletes the object in the store that has it. A failed
 * step is retried for a while. After a restart the core asks for all deletions again. */
#include "services/trainer/session/internal.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "rpc/status.h"

#include <millrace/v1/objects.pb-c.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CALL_TIME (20 * MR_SECOND)
#define PAUSE (2 * MR_SECOND)
#define TRIES 30u
#define AT_ONCE 16u /* limit of deletions at the same time; the others wait */
#define ARENA_BYTES_MAX ((size_t)1 << 20)

struct erasure {
    struct mr_list node;
    struct mr_trainings *tr;
    mr_object_id object;
    char name[MR_TRAINING_ID_TEXT_MAX + 96];
    struct mr_rpc_channel *elsewhere; /* channel to the store of another node; NULL: none */
    bool is_under_way;
    uint32_t tries;
    mr_time at;
};

static void end(struct erasure *x)
{
    mr_list_remove(&x->node);
    mr_rpc_channel_close(&x->elsewhere);
    mr_release(x);
}

/* Retries the step later, or gives up after TRIES attempts. */
static void again(struct erasure *x, const char *what, const struct mr_rpc_status *status)
{
    x->is_under_way = false;
    x->at = mr_time_after(mr_clock_now(), PAUSE);
    mr_rpc_channel_close(&x->elsewhere);
    if (++x->tries < TRIES && !x->tr->is_draining) return;
    char words[256];
    mr_log(MR_WARN, "checkpoint.delete_failed", "name=\"%s\" step=%s code=%d message=%s", x->name,
        what, status->code, mr_log_quote(status->message, words, sizeof words));
    end(x);
}

static void ask(struct erasure *x, struct mr_rpc_channel *to, const char *method,
    const ProtobufCMessage *m, mr_rpc_on_reply fn)
{
    const struct mr_rpc_call_options options = {.timeout = CALL_TIME, .one_reply = true};
    struct mr_buf request;
    mr_buf_init(&request, 4096);
    mr_pb_pack(m, &request);
    (void)mr_rpc_unary(to, method, mr_buf_str(&request), &options, fn, x);
    mr_buf_fini(&request);
}

static bool failed(const struct mr_rpc_status *status)
{
    int err = mr_rpc_status_error(status, NULL);
    return err && err != MR_ENOENT;
}

static void on_deleted(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    (void)reply;
    if (failed(status))
        again(ctx, "delete", status);
    else
        end(ctx);
}

static void erase_object(struct erasure *x)
{
    Millrace__V1__DeleteObjectRequest m = MILLRACE__V1__DELETE_OBJECT_REQUEST__INIT;
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(x->object, id);
    m.id = id;
    ask(x, x->elsewhere ? x->elsewhere : x->tr->t->store, "/millrace.v1.Objects/Delete", &m.base,
        on_deleted);
}

static void on_unnamed(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    (void)reply;
    if (failed(status))
        again(ctx, "unname", status);
    else
        erase_object(ctx);
}

/* Removes the name if it still refers to the object. It may refer to another object by now: the
 * same version was written again after a restore. In that case only the object is deleted. */
static void on_resolved(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct erasure *x = ctx;
    struct mr_pb_arena arena;
    mr_object_id object = {0};
    if (failed(status)) {
        again(x, "resolve", status);
        return;
    }
    mr_pb_arena_init(&arena, ARENA_BYTES_MAX);
    const Millrace__V1__NameInfo *m = status->code
                                          ? NULL
                                          : mr_pb_unpack(&millrace__v1__name_info__descriptor,
                                                mr_rpc_message_str(reply), &arena, NULL);
    bool is_ours =
        m && !mr_object_id_parse(mr_str(m->object), &object) && mr_object_id_eq(object, x->object);
    if (is_ours && m->address[0] &&
        strcmp(m->address, mr_rpc_channel_address(x->tr->t->store)) != 0) {
        const struct mr_rpc_channel_options options = {
            .credential = mr_rpc_auth_credential(x->tr->t->auth, MR_SERVICE_OBJECTSTORE)};
        x->elsewhere = mr_rpc_channel_open(x->tr->t->loop, m->address, &options);
    }
    mr_pb_arena_fini(&arena);
    if (is_ours) {
        Millrace__V1__UnnameRequest request = MILLRACE__V1__UNNAME_REQUEST__INIT;
        request.name = x->name;
        ask(x, x->tr->t->store, "/millrace.v1.Objects/Unname", &request.base, on_unnamed);
    } else {
        erase_object(x);
    }
}

static void begin(struct erasure *x)
{
    Millrace__V1__ResolveRequest m = MILLRACE__V1__RESOLVE_REQUEST__INIT;
    x->is_under_way = true;
    m.name = x->name;
    ask(x, x->tr->t->store, "/millrace.v1.Objects/Resolve", &m.base, on_resolved);
}

void mr_trainings_erase(struct mr_trainings *tr, const struct mr_trainer_effect *effect)
{
    char session[MR_TRAINING_ID_TEXT_MAX];
    if (!tr->t->store) return;
    struct erasure *x = mr_alloc(sizeof *x);
    x->tr = tr;
    x->object = effect->object;
    mr_trainer_id_format(effect->session, session);
    (void)snprintf(x->name, sizeof x->name, "training/%s/checkpoint/%" PRIu64 "/%" PRIu32, session,
        effect->version, effect->index);
    mr_list_add_tail(&tr->erasures, &x->node);
}

mr_time mr_trainings_erase_turn(struct mr_trainings *tr, mr_time now)
{
    mr_time next = MR_NEVER;
    uint32_t under_way = 0;
    if (tr->is_draining) return MR_NEVER; /* the next trainer will ask for the deletions again */
    MR_LIST_EACH(counted, &tr->erasures)
    {
        under_way += MR_LIST_ITEM(counted, struct erasure, node)->is_under_way;
    }
    MR_LIST_EACH(node, &tr->erasures)
    {
        struct erasure *x = MR_LIST_ITEM(node, struct erasure, node);
        if (under_way >= AT_ONCE) return MR_NEVER; /* an answer will cause the next turn */
        if (x->is_under_way) continue;
        if (x->at <= now) {
            begin(x);
            under_way++;
        } else {
            next = MR_MIN(next, x->at);
        }
    }
    return next;
}

void mr_trainings_erase_close(struct mr_trainings *tr)
{
    MR_LIST_EACH(node, &tr->erasures)
    {
        end(MR_LIST_ITEM(node, struct erasure, node));
    }
}
