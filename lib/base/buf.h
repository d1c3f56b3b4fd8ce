/* A growing byte buffer with a ceiling. An append past the ceiling sets `failed` and is dropped.
 * The writer checks mr_buf_status once, after the last append. */
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
/* Empties the buffer and keeps its memory for later appends. */
void mr_buf_clear(struct mr_buf *b);
/* Empties the buffer, and frees its memory if the memory is larger than `room_max` bytes. */
void mr_buf_clear_above(struct mr_buf *b, size_t room_max);

/* Allocates room for `n` more bytes at once. The caller may append more bytes than these, or
 * fewer. */
void mr_buf_reserve(struct mr_buf *b, size_t n);

/* The slow path of mr_buf_extend, with the same result. Reallocates the buffer if necessary. */
void *mr_buf_extend_more(struct mr_buf *b, size_t n);
/* Makes room for `n` bytes at the end, counts them as appended, and returns their address. The
 * caller writes the bytes. Returns NULL and sets `failed` if the ceiling would be passed, or if
 * `failed` is set already. The address is valid until the next call on `b`. */
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

int mr_buf_status(const struct mr_buf *b); /* MR_OK; MR_ELIMIT: an append was dropped */

static inline struct mr_str mr_buf_str(const struct mr_buf *b)
{
    return mr_str_of(b->p, b->n);
}
