/* Copies of objects from other stores, over their gRPC: one at a time for each object, however many
 * ask here (the core sees to that). On the gRPC thread. */
#pragma once

#include "services/objectstore/api/call.h"

struct mr_puller *mr_puller_open(struct mr_service *sv);
void mr_puller_close(struct mr_puller **p);
/* Any thread. Ends in a seal, or in FETCH_FAILED. `source` is copied; NULL: where the directory
 * says, and MR_EAGAIN when it does not know. */
void mr_puller_post(struct mr_puller *p, mr_object_id id, const char *source);
/* A connection to another store; NULL: too many. `address` is copied. */
struct mr_rpc_channel *mr_puller_channel(struct mr_puller *p, const char *address);
