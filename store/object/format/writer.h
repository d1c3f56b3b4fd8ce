/* A stage before a sink: many small writes become few large ones. For the formats of this folder.
 */
#pragma once

#include "store/object/format/format.h"
#include "store/object/table.h"

#define MR_OUT_STAGE_BYTES 65536
#define MR_OUT_RESERVE_MAX 4096 /* bytes that mr_out_reserve may be asked for */

struct mr_out {
    struct mr_sink sink;
    unsigned char *stage;
    size_t n;
    int err; /* the sink's first refusal; nothing is written after it */
};

void mr_out_init(struct mr_out *o, struct mr_sink sink);
/* Writes what is left and frees; what the sink said. */
int mr_out_finish(struct mr_out *o);
void mr_out_add(struct mr_out *o, const void *p, size_t n); /* large pieces are not copied */
void mr_out_text(struct mr_out *o, const char *text);
void mr_out_byte(struct mr_out *o, char c);
void mr_out_u64(struct mr_out *o, uint64_t v);
/* At least n bytes of room; then o->n += what was used. n <= MR_OUT_RESERVE_MAX. */
char *mr_out_reserve(struct mr_out *o, size_t n);

/* Numbers, in at most MR_NUMBER_TEXT_MAX bytes without NUL; they return the length. Floats are
 * shortest: what reads back to the same float of that width. They look like floats ("1.0"), and
 * NaN, Infinity, -Infinity are the words. */
#define MR_NUMBER_TEXT_MAX 40
size_t mr_number_u64(char *out, uint64_t v);
size_t mr_number_i64(char *out, int64_t v);
size_t mr_number_f32(char *out, float v);
size_t mr_number_f64(char *out, double v);
/* A tensor's element; bool as true and false. */
size_t mr_number_element(char *out, enum mr_dtype t, const void *element);
/* "2024-02-29", and "2024-02-29T12:00:00.123456" with the digits of the column's type. */
size_t mr_number_date(char *out, int64_t days);
size_t mr_number_timestamp(char *out, enum mr_column_type type, int64_t v);
/* A row of a column of fixed width that is not missing; days and times as above. */
size_t mr_number_cell(char *out, const struct mr_column *c, uint64_t row);
