/* Persist and Delete of an object that another store of the cluster has. */
#pragma once

#include "services/objectstore/call/call.h"

/* Calls `method`, the full name of a method of Objects whose request has an id, on one store after
 * the other, until one has call->id. call->err: MR_ENOENT if none has it, or the error of that
 * store. */
void mr_ostore_call_remote(struct mr_ostore_call *call, const char *method, mr_ostore_call_fn then);
