/* Private to this folder. The mr_out functions collect many small writes and pass few large ones to
 * a sink. The mr_number functions write numbers as text. */
#pragma once

#include "store/object/format/format.h"
#include "store/object/table.h"

#define MR_OUT_STAGE_BYTES 65536
/* The largest number of bytes that mr_out_reserve makes room for. */
#define MR_OUT_RESERVE_MAX 4096

struct mr_out {
    struct mr_sink sink;
    unsigned char *stage;
    size_t n;
    int err; /* the sink's first error; nothing is written after it */
};

void mr_out_init(struct mr_out *o, struct mr_sink sink);
/* Writes the bytes in the buffer to the sink, frees the buffer, and returns the sink's result. */
int mr_out_finish(struct mr_out *o);
/* Adds bytes. A large piece goes to the sink without a copy. */
void mr_out_add(struct mr_out *o, const void *p, size_t n);
void mr_out_text(struct mr_out *o, const char *text);
void mr_out_byte(struct mr_out *o, char c);
void mr_out_u64(struct mr_out *o, uint64_t v);
/* Makes room for n bytes, at most MR_OUT_RESERVE_MAX, and returns their address. The caller writes
 * there and adds the number of used bytes to o->n. */
char *mr_out_reserve(struct mr_out *o, size_t n);

/* The functions below write a number as text without a NUL and return its length, at most
 * MR_NUMBER_TEXT_MAX. A float becomes the shortest decimal that reads back as the same float of
 * that width. The decimal always has a point or an exponent ("1.0"). Floats that are not finite
 * become NaN, Infinity and -Infinity. */
#define MR_NUMBER_TEXT_MAX 40
size_t mr_number_i64(char *out, int64_t v);
/* Writes an element of a tensor. A bool becomes true or false. */
size_t mr_number_element(char *out, enum mr_dtype t, const void *element);
/* Writes a value of a column of fixed width; the row must not be missing. A day becomes
 * "2024-02-29". A time becomes "2024-02-29T12:00:00.123456", with as many digits as the type of the
 * column has. */
size_t mr_number_cell(char *out, const struct mr_column *c, uint64_t row);
