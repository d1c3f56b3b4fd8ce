/* Persist and Delete in other stores. The parts of a collection stay on their nodes, and each is
 * written to the disk of its own node. The list of stores comes from the scheduler. */
#include "services/objectstore/cluster/remote.h"

#include "base/alloc.h"
#include "rpc/status.h"
#include "services/objectstore/cluster/channels.h"
#include "services/objectstore/cluster/scheduler_session.h"

#include <millrace/v1/cluster.pb-c.h>

#include <string.h>

#define CALL_TIMEOUT (60 * MR_SECOND)

struct remote {
    char **addresses;
    size_t count;
    size_t at;
    bool known; /* true: the scheduler has sent `addresses` */
    const char *method;
};

static void try_next(struct mr_ostore_call *call);

static void end_with(struct mr_ostore_call *call, int err, const char *why)
{
    call->err = err ? mr_fail(&call->error, err, "%s", why) : MR_OK;
    mr_ostore_call_end(call);
}

static void take_stores(struct mr_ostore_call *call, const Millrace__V1__InfoResponse *m)
{
    struct remote *x = call->remote;
    x->addresses = mr_ostore_call_take(call, (m->n_store + 1) * sizeof(char *));
    for (size_t i = 0; i < m->n_store; i++)
        if (m->store[i]->address[0] && strcmp(m->store[i]->address, call->sv->address) != 0)
            x->addresses[x->count++] = m->store[i]->address;
    x->known = true;
}

static void on_info(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct mr_ostore_call *call = ctx;
    const Millrace__V1__InfoResponse *m =
        status->code || !reply ? NULL
                               : mr_pb_unpack(&millrace__v1__info_response__descriptor,
                                     mr_rpc_message_str(reply), &call->arena, NULL);
    if (!m) {
        end_with(call, MR_EAWAY,
            "it is not in this store, and the scheduler does not tell the other stores");
        return;
    }
    take_stores(call, m);
    try_next(call);
}

static void on_done_there(
    void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    (void)reply;
    struct mr_ostore_call *call = ctx;
    struct mr_error e = {0};
    int err = mr_rpc_status_error(status, &e);
    if (err == MR_ENOENT || err == MR_EAWAY)
        try_next(call);
    else
        end_with(call, err, e.text);
}

static void try_next(struct mr_ostore_call *call)
{
    struct remote *x = call->remote;
    struct mr_rpc_channel *channel = NULL;
    while (!channel && x->at < x->count)
        channel = mr_channels_get(call->sv->channels, x->addresses[x->at++]);
    if (!channel) {
        end_with(call, MR_ENOENT, "no store of the cluster has it");
        return;
    }
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(call->id, id);
    /* A DeleteObjectRequest without force has the same bytes as this message. */
    Millrace__V1__PersistRequest request = MILLRACE__V1__PERSIST_REQUEST__INIT;
    request.id = id;
    struct mr_buf wire;
    mr_buf_init(&wire, 4096);
    mr_pb_pack(&request.base, &wire);
    struct mr_rpc_call_options options = {.timeout = CALL_TIMEOUT, .one_reply = true};
    (void)mr_rpc_unary(channel, x->method, mr_buf_str(&wire), &options, on_done_there, call);
    mr_buf_fini(&wire);
}

static void no_scheduler(void *p)
{
    end_with(
        p, MR_ENOENT, "it is not in this store, and there is no --scheduler to ask for others");
}

void mr_ostore_call_remote(struct mr_ostore_call *call, const char *method, mr_ostore_call_fn then)
{
    mr_ostore_call_begin(call, then);
    if (!call->remote) call->remote = mr_ostore_call_take(call, sizeof *call->remote);
    call->remote->method = method;
    call->remote->at = 0;
    struct mr_rpc_channel *channel = mr_scheduler_session_channel(call->sv->scheduler_session);
    if (!channel || !call->sv->channels) {
        mr_posts_add(call->sv->posts, no_scheduler, call);
    } else if (call->remote->known) {
        try_next(call);
    } else {
        struct mr_rpc_call_options options = {.timeout = CALL_TIMEOUT, .one_reply = true};
        (void)mr_rpc_unary(
            channel, "/millrace.v1.Cluster/Info", MR_STR(""), &options, on_info, call);
    }
}
