/* Decodes packs and value extents into the tree of arguments that an operator sees. The bytes may
 * come from another process, so everything is checked. */
#pragma once

#include "ops/call.h"
#include "ops/call_arena.h"

struct mr_resolve {
    struct mr_call_arena *scratch; /* the memory of the tree */
    const struct mr_op_input *inputs;
    uint32_t inputs_count;
    bool by_reference; /* true: stored inputs are not loaded and become ids */
};

/* Decodes one pack and replaces its references to inputs. MR_EFORMAT: the bytes are malformed.
 * MR_ELIMIT: the nesting or the memory exceeds its bound. */
int mr_resolve(
    const struct mr_resolve *x, struct mr_str pack, struct mr_arg *out, struct mr_error *e);

/* Returns the default of a parameter, which is a JSON scalar, [] or {}. */
struct mr_arg mr_arg_of_fallback(const char *json);
