/* Growing bytes with a ceiling. Appends past the ceiling set `failed` and are dropped; the writer
 * asks once, at the end, with mr_buf_status. */
#pragma once

#include "base/str.h"

struct mr_buf {
    unsigned char *p;
    size_t n;
    size_t room;
    size_t bytes_max;
    bool failed;
};

void mr_buf_init(struct mr_buf *b, size_t bytes_max);
void mr_buf_fini(struct mr_buf *b);
void mr_buf_clear(struct mr_buf *b);                        /* keeps the memory */
void mr_buf_clear_above(struct mr_buf *b, size_t room_max); /* gives back more than that */

/* So many more bytes will come, or fewer: they need no other memory. */
void mr_buf_reserve(struct mr_buf *b, size_t n);

/* Room for `n` more bytes at the returned pointer, already counted in b->n and not yet written;
 * NULL past the ceiling. Valid until the next call on `b`. */
void *mr_buf_extend_more(struct mr_buf *b, size_t n); /* the same, where it may have to grow */
static inline void *mr_buf_extend(struct mr_buf *b, size_t n)
{
    if (b->failed || !b->p || n > b->room - b->n) return mr_buf_extend_more(b, n);
    b->n += n;
    return b->p + (b->n - n);
}

void mr_buf_add(struct mr_buf *b, const void *p, size_t n);
void mr_buf_add_str(struct mr_buf *b, struct mr_str s);
void mr_buf_add_text(struct mr_buf *b, const char *text);
void mr_buf_add_byte(struct mr_buf *b, unsigned char byte);
void mr_buf_printf(struct mr_buf *b, const char *fmt, ...) MR_PRINTF(2, 3);

int mr_buf_status(const struct mr_buf *b); /* MR_OK or MR_ELIMIT */

static inline struct mr_str mr_buf_str(const struct mr_buf *b)
{
    return mr_str_of(b->p, b->n);
}
