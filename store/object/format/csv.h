/* Reads CSV (RFC 4180, any delimiter) into tables; csv_write.h writes it. The type of a column is
 * inferred from all rows: bool; i64; u64 if some integers are from 2^63 to 2^64 - 1 and none is
 * negative; f64 if there is a float and the other fields are numbers, too; otherwise utf8
 * (large_utf8 above 2 GiB). Without a float, integers that fit no common 64-bit type also make the
 * column utf8, because a double would lose their digits. An empty field is a missing value; a
 * quoted empty field is an empty text. */
#pragma once

#include "store/object/format/format.h"

int mr_csv_import(struct mr_str text, const struct mr_format_options *o,
    const struct mr_value_alloc *a, struct mr_error *e);
