/* The list of gRPC channels to other stores. A channel stays open until this store stops: nodes of
 * a cluster keep their addresses, so the list stays short. */
#include "services/objectstore/cluster/channels.h"

#include "base/alloc.h"

#include <string.h>

#define CHANNELS_MAX 4096u

struct channel {
    char *address;
    struct mr_rpc_channel *channel;
};

struct mr_channels {
    struct mr_rpc_loop *loop;
    struct mr_rpc_auth *auth;
    struct channel *items;
    uint32_t count;
};

struct mr_channels *mr_channels_new(struct mr_rpc_loop *loop, struct mr_rpc_auth *auth)
{
    struct mr_channels *c = mr_alloc(sizeof *c);
    c->loop = loop;
    c->auth = auth;
    return c;
}

void mr_channels_close(struct mr_channels **pc)
{
    struct mr_channels *c = MR_STEAL(*pc);
    if (!c) return;
    for (uint32_t i = 0; i < c->count; i++) {
        mr_rpc_channel_close(&c->items[i].channel);
        mr_release(c->items[i].address);
    }
    mr_release(c->items);
    mr_release(c);
}

struct mr_rpc_channel *mr_channels_get(struct mr_channels *c, const char *address)
{
    if (!c) return NULL;
    for (uint32_t i = 0; i < c->count; i++)
        if (!strcmp(c->items[i].address, address)) return c->items[i].channel;
    if (c->count == CHANNELS_MAX) return NULL;
    struct mr_rpc_channel_options options = {
        .credential = mr_rpc_auth_credential(c->auth, MR_SERVICE_OBJECTSTORE)};
    c->items = mr_grow(c->items, c->count * sizeof *c->items, (c->count + 1) * sizeof *c->items);
    struct channel *x = &c->items[c->count++];
    x->address = mr_copy_text(address);
    x->channel = mr_rpc_channel_open(c->loop, address, &options);
    return x->channel;
}
