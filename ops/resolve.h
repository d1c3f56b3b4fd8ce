/* From packs and value extents to the tree of arguments that an operator sees. All input may come
 * from elsewhere: nothing in it is believed. */
#pragma once

#include "ops/call.h"
#include "ops/call_arena.h"

struct mr_resolve {
    struct mr_call_arena *scratch; /* the tree lives here */
    const struct mr_op_input *inputs;
    uint32_t inputs_count;
    bool by_reference; /* inputs that are objects stay ids */
};

/* One pack, with all its input slots filled in. MR_EFORMAT, MR_ELIMIT. */
int mr_resolve(
    const struct mr_resolve *x, struct mr_str pack, struct mr_arg *out, struct mr_error *e);

/* A descriptor's default, a JSON scalar or [] or {}. */
struct mr_arg mr_arg_of_fallback(const char *json);
