/* Values and JSON. Integers of i64 and u64 are exact and 1 and 1.0 stay different; what has no JSON
 * is written as text: "NaN", "Infinity", "-Infinity", base64 for bytes. Tensors are nested lists,
 * tables lists of objects (or objects of lists), an object id is {"object": "…"}. */
#pragma once

#include "store/object/format/format.h"

struct yyjson_val;

/* JSON text to a pack. Refused (MR_EFORMAT, MR_ELIMIT): what is not JSON, bad UTF-8, an object with
 * a key twice, numbers outside i64, u64 and finite doubles, nesting deeper than MR_DEPTH_MAX. */
int mr_json_to_pack(struct mr_str text, struct mr_buf *out, struct mr_error *e);
/* The same from a tree that yyjson has read, with YYJSON_READ_BIGNUM_AS_RAW. */
int mr_json_node_to_pack(struct yyjson_val *node, struct mr_buf *out, struct mr_error *e);

/* With options->dtype a tensor from nested lists, else a pack. */
int mr_json_import(struct mr_str text, const struct mr_format_options *o,
    const struct mr_value_alloc *a, struct mr_error *e);
int mr_json_export(const struct mr_value *v, const struct mr_format_options *o, struct mr_sink sink,
    struct mr_error *e);
int mr_json_from_pack(struct mr_str pack, struct mr_buf *out, struct mr_error *e);
