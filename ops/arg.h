/* Converts arguments (ops/op_arg.h) back to MessagePack (a pack), and names their types. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "ops/op_arg.h"

/* Appends the argument as a pack. Tensors and other stored values become the pack extension
 * MR_PACK_EXT_VALUE with all their bytes. MR_ELIMIT: the argument nests deeper than MR_DEPTH_MAX,
 * or `out` would have more than its bytes_max bytes. */
int mr_arg_pack(const struct mr_arg *arg, struct mr_buf *out, struct mr_error *e);
/* Returns the name of a type for error texts. */
const char *mr_arg_type_name(enum mr_arg_type type);
