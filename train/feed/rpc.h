/* Calls of a role to the trainer and to its store: one request, one reply, cancelled as soon as
 * the role has to end. One thread uses a link. Private to the role's files. */
#pragma once

#include "host/stop.h"
#include "rpc/util/pb.h"

struct mr_credential;

struct mr_role_link;

/* The address is copied, the credential lent; it may be NULL. */
struct mr_role_link *mr_role_link_open(const char *address, const struct mr_credential *credential);
void mr_role_link_close(struct mr_role_link **link);

/* `*reply` lives in `arena`, which is cleared first; both may be NULL when the answer does not
 * matter. */
int mr_role_call(struct mr_role_link *link, const char *method, const ProtobufCMessage *request,
    mr_duration timeout, struct mr_stop stop, const ProtobufCMessageDescriptor *type,
    struct mr_pb_arena *arena, void *reply, struct mr_error *e);

/* May the call be retried: the server was away, or too late? */
bool mr_role_may_retry(int err);
