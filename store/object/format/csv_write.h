/* Writes tables and small tensors as CSV (RFC 4180, any delimiter). */
#pragma once

#include "store/object/format/format.h"

/* Exports a table, or a tensor of one or two axes. Each row of a tensor becomes one line; there is
 * no line of names. */
int mr_csv_export(const struct mr_value *v, const struct mr_format_options *o, struct mr_sink sink,
    struct mr_error *e);
