#include "base/buf.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

void mr_buf_init(struct mr_buf *b, size_t bytes_max)
{
    *b = (struct mr_buf){.bytes_max = bytes_max};
}

void mr_buf_fini(struct mr_buf *b)
{
    mr_release(b->p);
    *b = (struct mr_buf){0};
}

void mr_buf_clear(struct mr_buf *b)
{
    b->n = 0;
    b->failed = false;
}

void mr_buf_clear_above(struct mr_buf *b, size_t room_max)
{
    size_t bytes_max = b->bytes_max;
    if (b->room > room_max) mr_buf_fini(b);
    b->bytes_max = bytes_max;
    mr_buf_clear(b);
}

void mr_buf_reserve(struct mr_buf *b, size_t n)
{
    n = MR_MIN(n, b->bytes_max - b->n);
    if (n <= b->room - b->n) return;
    b->room = b->n + n;
    b->p = mr_grow(b->p, b->room, b->room);
}

void *mr_buf_extend_more(struct mr_buf *b, size_t n)
{
    if (b->failed || n > b->bytes_max - b->n) {
        b->failed = true;
        return NULL;
    }
    /* The first call allocates even if `n` is 0, so that the result is a valid pointer. */
    if (n > b->room - b->n || !b->p) {
        size_t room = MR_MAX(b->room + b->room / 2, b->n + n);
        room = MR_MIN(MR_MAX(room, (size_t)64), b->bytes_max);
        b->p = mr_grow(b->p, room, room); /* the new part is not zeroed: the caller writes it */
        b->room = room;
    }
    void *at = b->p + b->n;
    b->n += n;
    return at;
}

void mr_buf_add(struct mr_buf *b, const void *p, size_t n)
{
    if (!n) return;
    void *at = mr_buf_extend(b, n);
    if (at) memcpy(at, p, n);
}

void mr_buf_add_str(struct mr_buf *b, struct mr_str s)
{
    mr_buf_add(b, s.p, s.n);
}

void mr_buf_add_text(struct mr_buf *b, const char *text)
{
    mr_buf_add(b, text, strlen(text));
}

void mr_buf_add_byte(struct mr_buf *b, unsigned char byte)
{
    mr_buf_add(b, &byte, 1);
}

void mr_buf_printf(struct mr_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    mr_assert(n >= 0);
    char *at = mr_buf_extend(b, (size_t)n + 1);
    if (at) {
        (void)vsnprintf(at, (size_t)n + 1, fmt, again);
        b->n--; /* the terminating NUL is not part of the contents */
    }
    va_end(again);
}

int mr_buf_status(const struct mr_buf *b)
{
    return b->failed ? MR_ELIMIT : MR_OK;
}
