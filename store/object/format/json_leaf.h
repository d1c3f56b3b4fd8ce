/* Private to json_write.c: writes the values that contain no other values: texts, bytes, tensors,
 * tables. */
#pragma once

#include "store/object/format/writer.h"

int mr_json_write_text(struct mr_out *o, struct mr_str s, struct mr_error *e);
/* Writes the bytes as base64 in quotes, with padding. */
void mr_json_write_base64(struct mr_out *o, struct mr_str bytes);
/* A number that is not finite is written in quotes. */
void mr_json_write_f64(struct mr_out *o, double v);
void mr_json_write_u64s(struct mr_out *o, const uint64_t *v, unsigned n);
int mr_json_write_tensor(struct mr_out *o, const struct mr_tensor *t, struct mr_error *e);
int mr_json_write_table(
    struct mr_out *o, const struct mr_value *v, bool columns, struct mr_error *e);
