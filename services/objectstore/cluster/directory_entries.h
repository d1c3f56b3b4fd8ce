/* Entries of this node's objects in the cluster's directory. The store writes an entry when an
 * object is uploaded, named or persisted, and removes the entry with the object (I34 in
 * docs/invariants.md). A crash, or a Redis that does not answer, leaves wrong entries behind. The
 * store finds wrong entries by reading all entries of its node at its start and whenever Redis is
 * connected again. */
#pragma once

#include "services/objectstore/call/call.h"

struct mr_places;

struct mr_places *mr_places_new(struct mr_service *sv);
/* Frees `*p`, and leaves the directory as it is. Called after mr_names_close. */
void mr_places_free(struct mr_places **p);

/* Writes the directory's entry of call->id, so that other stores find the object, and then
 * continues the call with `then`. Never fails: while Redis is away, the object has no entry. */
void mr_ostore_call_place(
    struct mr_ostore_call *call, const Millrace__V1__ObjectInfo *info, mr_ostore_call_fn then);
/* Removes the entry of `id` if the entry names `node`. Returns without waiting. Any thread may call
 * this function. */
void mr_places_remove(struct mr_service *sv, mr_object_id id, struct mr_str node);
/* Makes the gRPC thread read all entries soon. Any thread may call this function. */
void mr_places_look(struct mr_places *p);
/* Starts to read the entries if that is due. Returns the time of the next call, or MR_NEVER if no
 * reading is due. Called on the gRPC thread. */
mr_time mr_places_turn(struct mr_places *p, mr_time now);
