/* Copies objects from other stores by gRPC. However many clients ask for an object, the core
 * starts one copy of it at a time. On the gRPC thread. */
#pragma once

#include "services/objectstore/api/call.h"

struct mr_pull_receiver *mr_pull_receiver_open(struct mr_service *sv);
void mr_pull_receiver_close(struct mr_pull_receiver **p);
/* Any thread. Ends in a seal, or in FETCH_FAILED. `source` is copied; NULL: where the directory
 * says, and MR_EAGAIN when it does not know. */
void mr_pull_receiver_post(struct mr_pull_receiver *p, mr_object_id id, const char *source);
/* A connection to another store; NULL: too many. `address` is copied. */
struct mr_rpc_channel *mr_pull_receiver_channel(struct mr_pull_receiver *p, const char *address);
