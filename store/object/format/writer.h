/* Private to this folder: a buffer before a sink, which turns many small writes into few large
 * ones, and numbers as text. */
#pragma once

#include "store/object/format/format.h"
#include "store/object/table.h"

#define MR_OUT_STAGE_BYTES 65536
#define MR_OUT_RESERVE_MAX 4096 /* limit of what mr_out_reserve may be asked for */

struct mr_out {
    struct mr_sink sink;
    unsigned char *stage;
    size_t n;
    int err; /* the sink's first error; after it nothing is written */
};

void mr_out_init(struct mr_out *o, struct mr_sink sink);
/* Writes what is left, frees the buffer, and returns the sink's result. */
int mr_out_finish(struct mr_out *o);
/* Large pieces go to the sink without a copy. */
void mr_out_add(struct mr_out *o, const void *p, size_t n);
void mr_out_text(struct mr_out *o, const char *text);
void mr_out_byte(struct mr_out *o, char c);
void mr_out_u64(struct mr_out *o, uint64_t v);
/* Makes room for n bytes, at most MR_OUT_RESERVE_MAX. The caller writes there and adds the bytes
 * used to o->n. */
char *mr_out_reserve(struct mr_out *o, size_t n);

/* The functions below write a number as text without a NUL and return its length, at most
 * MR_NUMBER_TEXT_MAX. Floats are the shortest decimal that reads back to the same float of that
 * width. They always have a point or an exponent ("1.0"); others are NaN, Infinity and
 * -Infinity. */
#define MR_NUMBER_TEXT_MAX 40
size_t mr_number_u64(char *out, uint64_t v);
size_t mr_number_i64(char *out, int64_t v);
size_t mr_number_f32(char *out, float v);
size_t mr_number_f64(char *out, double v);
/* An element of a tensor; bool is true or false. */
size_t mr_number_element(char *out, enum mr_dtype t, const void *element);
/* "2024-02-29", or "2024-02-29T12:00:00.123456" with as many digits as the type of the column
 * has. */
size_t mr_number_date(char *out, int64_t days);
size_t mr_number_timestamp(char *out, enum mr_column_type type, int64_t v);
/* A value of a column of fixed width; the row must not be missing. Days and times as above. */
size_t mr_number_cell(char *out, const struct mr_column *c, uint64_t row);
