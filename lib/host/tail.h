/* Text that one thread, the writer, adds line by line and another thread, the taker, takes away in
 * pieces. When the writer is faster than the taker, the oldest text is dropped. */
#pragma once

#include "base/buf.h"

#include <pthread.h>

#define MR_TAIL_TAG 3

struct mr_tail {
    pthread_mutex_t lock;
    struct mr_buf text;
    size_t bytes_max;
    uint64_t lost; /* number of dropped bytes; they stood in front of those in `text` */
    bool was_taken;
    /* Identifies the owner of the text. Only the writer knows the meaning of the tag. */
    uint64_t tag[MR_TAIL_TAG];
};

void mr_tail_init(struct mr_tail *t, size_t bytes_max);
void mr_tail_fini(struct mr_tail *t);

/* Called by the writer: adds a line. True: the text was empty before. */
bool mr_tail_add(struct mr_tail *t, const uint64_t tag[MR_TAIL_TAG], struct mr_str line);
/* Called by the writer: ends the text. Text that has not been taken is dropped, because the writer
 * reports this text in another way. `*left` receives the number of its bytes, and `*lost` the
 * number of bytes that were dropped before it. True: the taker has taken a part of the text. False:
 * the taker has taken nothing. */
bool mr_tail_end(struct mr_tail *t, size_t *left, uint64_t *lost);

/* Called by the taker: moves the text to the end of `out`. Sets `tag` to the tag of its last line,
 * and `*lost` to the number of bytes that were dropped before it. False: there is no text, and
 * nothing is set. */
bool mr_tail_take(struct mr_tail *t, uint64_t tag[MR_TAIL_TAG], struct mr_buf *out, uint64_t *lost);
