/* Persist and Delete of an object that another store of the cluster has. */
#pragma once

#include "services/objectstore/call/call.h"

/* Calls `method` for call->id on one store after another, until a store has the object. `method`:
 * full name of a method of Objects whose request has an id. call->err: MR_ENOENT if no store has
 * the object, MR_EAWAY if the scheduler sends no list of the stores, or the error of the store that
 * has the object. */
void mr_ostore_call_remote(struct mr_ostore_call *call, const char *method, mr_ostore_call_fn then);
