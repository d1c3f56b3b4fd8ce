/* Calls of a role to the trainer and to the object store: one request, one reply. A call is
 * cancelled when the role has to stop. One thread uses a link. */
#pragma once

#include "host/stop.h"
#include "rpc/util/pb.h"

struct mr_credential;

struct mr_role_link;

/* Opens a link to a service. Copies the address. The credential is lent; NULL: none. */
struct mr_role_link *mr_role_link_open(const char *address, const struct mr_credential *credential);
void mr_role_link_close(struct mr_role_link **link);

/* Calls a method. `*reply` is in `arena`, which is cleared first. `type`, `arena` and `reply` are
 * NULL if the contents of the reply do not matter. */
int mr_role_call(struct mr_role_link *link, const char *method, const ProtobufCMessage *request,
    mr_duration timeout, struct mr_stop stop, const ProtobufCMessageDescriptor *type,
    struct mr_pb_arena *arena, void *reply, struct mr_error *e);

/* True: the server was away, late or busy, so a retry after this error makes sense. */
bool mr_role_may_retry(int err);
