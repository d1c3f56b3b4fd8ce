/* Parses the JSON of a job, and names kinds of JSON values for error texts. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/unconst.h"

#include <yyjson.h>

/* Parses a text. NULL: the text is malformed, and `e` has line and column. */
yyjson_doc *mr_json_parse(struct mr_str text, struct mr_error *e);

/* Returns the kind of a value for error texts: "a text", "a list" … */
const char *mr_json_kind(const yyjson_val *v);

static inline struct mr_str mr_json_text(const yyjson_val *v)
{
    return mr_str_of(unsafe_yyjson_get_str(mr_unconst(v)), unsafe_yyjson_get_len(mr_unconst(v)));
}
