/* Copies an object from another store. However many clients ask for an object, the core starts one
 * copy of it at a time. */
#pragma once

#include "services/objectstore/call/state.h"

/* Any thread. The core gets the result as SEAL or FETCH_FAILED. `source`, the address of a store
 * that has the object, is copied. NULL: the directory tells the address. If the directory has
 * no entry, the error of FETCH_FAILED is MR_EAGAIN. */
void mr_pull_start(struct mr_service *sv, mr_object_id id, const char *source);
