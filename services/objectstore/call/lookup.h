/* Asks the directory (control/directory.h) on behalf of a call: which object a name means, and
 * which node has an object. Also sets, removes and lists names. The directory answers on any
 * thread. The answer is copied, and the call goes on with the copy on the gRPC thread. Names in an
 * answer are in call->names. */
#pragma once

#include "services/objectstore/call/call.h"

/* Sets call->id to the object that `text` means: an id, or "name:" and a name. If `text` is
 * neither, or the name cannot be resolved, the call is failed, and `then` does not run. An id is
 * not looked up. */
void mr_ostore_call_find_id(
    struct mr_ostore_call *call, const char *field, const char *text, mr_ostore_call_fn then);
void mr_ostore_call_resolve(
    struct mr_ostore_call *call, struct mr_str name, mr_ostore_call_fn then);
void mr_ostore_call_unname(struct mr_ostore_call *call, struct mr_str name, mr_ostore_call_fn then);
void mr_ostore_call_set_name(struct mr_ostore_call *call, const struct mr_name_record *record,
    bool replace, mr_ostore_call_fn then);
void mr_ostore_call_list_names(struct mr_ostore_call *call, struct mr_str prefix,
    struct mr_str after, uint32_t n_max, mr_ostore_call_fn then);
/* Sets call->place to the address of a store that has call->id, or to "" if none is known. */
void mr_ostore_call_find(struct mr_ostore_call *call, mr_ostore_call_fn then);

/* Returns the key under which this name holds its object (holder of kind MR_HOLD_NAME). */
uint64_t mr_name_key(struct mr_str name);
