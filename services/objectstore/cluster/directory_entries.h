/* Entries of this node's objects in the cluster's directory. The store writes an entry when an
 * object is named or persisted, and removes it with the object (I34). A crash, or a Redis that does
 * not answer, leaves wrong entries behind. The store finds these by reading all entries of its node
 * at the start and whenever Redis is connected again. */
#pragma once

#include "services/objectstore/call/call.h"

struct mr_places;

struct mr_places *mr_places_new(struct mr_service *sv);
void mr_places_free(struct mr_places **p); /* after mr_names_close */

/* A question of a call: writes the entry of call->id, so that other stores find the object. Never
 * fails: while Redis is away, the object just has no entry. */
void mr_ostore_call_place(
    struct mr_ostore_call *call, const Millrace__V1__ObjectInfo *info, mr_ostore_call_fn then);
/* The entry is written: tells the core, which will remove it with the object. Any thread. */
void mr_places_added(struct mr_service *sv, mr_object_id id);
/* Removes the entry of `id` if its node is `node`. Any thread; does not wait. */
void mr_places_remove(struct mr_service *sv, mr_object_id id, struct mr_str node);
void mr_places_look(struct mr_places *p);                 /* reads all entries soon. Any thread */
mr_time mr_places_turn(struct mr_places *p, mr_time now); /* gRPC thread; when to come again */
