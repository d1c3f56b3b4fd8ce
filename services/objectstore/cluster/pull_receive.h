/* Copies an object from another store. The core starts one copy of an object at a time, however
 * many clients ask for it. */
#pragma once

#include "services/objectstore/call/state.h"

/* Starts a copy. Any thread may call this function. The core gets the result as the event SEAL or
 * FETCH_FAILED. `source`: address of a store that has the object; NULL: the address is looked up in
 * the directory. If the directory has no entry, the error of FETCH_FAILED is MR_EAGAIN. */
void mr_pull_start(struct mr_service *sv, mr_object_id id, const char *source);
