/* What rpc/wire.h lacks for writing whole messages: tags, fixed numbers, and nested messages, which
 * are closed by moving their bytes behind their length. */
#pragma once

#include "rpc/wire.h"

void mr_wire_tag(struct mr_buf *b, uint32_t field, enum mr_wire_type type);
void mr_wire_fixed32(struct mr_buf *b, uint32_t v);
void mr_wire_fixed64(struct mr_buf *b, uint64_t v);

/* Opens a length-delimited field; what is written until `end` is its content. */
size_t mr_wire_begin(struct mr_buf *b, uint32_t field);
void mr_wire_end(struct mr_buf *b, size_t began);
