/* Values from and to JSON. Integers of 64 bits are exact, and 1 and 1.0 stay different. What JSON
 * cannot express becomes text: "NaN", "Infinity", "-Infinity", base64 for bytes. Tensors are nested
 * lists. Tables are lists of objects, or objects of lists. An object id is {"object": "…"}. */
#pragma once

#include "store/object/format/format.h"

struct yyjson_val;

/* Converts JSON text to a pack. MR_EFORMAT or MR_ELIMIT: the text is not JSON or has invalid UTF-8,
 * an object has the same key twice, a number is neither an int64_t nor a uint64_t nor a finite
 * double, the nesting is deeper than MR_DEPTH_MAX, or `out` has no room. */
int mr_json_to_pack(struct mr_str text, struct mr_buf *out, struct mr_error *e);

/* Imports a tensor from nested lists if options->dtype is set, otherwise a pack. */
int mr_json_import(struct mr_str text, const struct mr_format_options *o,
    const struct mr_value_alloc *a, struct mr_error *e);
int mr_json_export(const struct mr_value *v, const struct mr_format_options *o, struct mr_sink sink,
    struct mr_error *e);
int mr_json_from_pack(struct mr_str pack, struct mr_buf *out, struct mr_error *e);
