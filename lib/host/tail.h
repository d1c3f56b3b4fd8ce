/* Text that one thread writes and another takes away, a piece at a time: the end of it, when more
 * comes than is taken. */
#pragma once

#include "base/buf.h"

#include <pthread.h>

#define MR_TAIL_TAG 3

struct mr_tail {
    pthread_mutex_t lock;
    struct mr_buf text;
    size_t bytes_max;
    uint64_t lost; /* bytes before `text` */
    bool was_taken;
    uint64_t tag[MR_TAIL_TAG]; /* whose it is, in the writer's words */
};

void mr_tail_init(struct mr_tail *t, size_t bytes_max);
void mr_tail_fini(struct mr_tail *t);

/* The writer's: adds a line. True: there was nothing to take before. */
bool mr_tail_add(struct mr_tail *t, const uint64_t tag[MR_TAIL_TAG], struct mr_str line);
/* The writer's: what is not taken is dropped, since it is told otherwise. How many bytes that were;
 * `lost`: before them. False: nothing was ever taken. */
bool mr_tail_end(struct mr_tail *t, size_t *left, uint64_t *lost);

/* The taker's: moves the text to the end of `out`. False: there is none. */
bool mr_tail_take(struct mr_tail *t, uint64_t tag[MR_TAIL_TAG], struct mr_buf *out, uint64_t *lost);
