/* CSV (RFC 4180, any delimiter) from and to tables. Types are inferred from all rows: bool; i64;
 * u64, when some are from 2^63 to 2^64 - 1 and none below 0; f64, when there is a float; else utf8,
 * as are integers that no 64 bits hold: they are ids, of which a double would not keep the digits.
 * An empty field is missing, a quoted empty one is an empty text. */
#pragma once

#include "store/object/format/format.h"

int mr_csv_import(struct mr_str text, const struct mr_format_options *o,
    const struct mr_value_alloc *a, struct mr_error *e);
/* Tables; tensors of one or two axes too, one row a line, without header. */
int mr_csv_export(const struct mr_value *v, const struct mr_format_options *o, struct mr_sink sink,
    struct mr_error *e);
