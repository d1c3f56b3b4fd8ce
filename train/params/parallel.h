/* Private to params*.c: a few threads that share one pass over a long vector. They sleep between
 * passes; a team of one is a plain call. */
#pragma once

#include <stdint.h>

struct mr_team;

/* `threads` of them, the caller included. Each settles on a processor of its own, the caller,
 * should it settle on `first`, too: what they take of the processors they take of all alike, and of
 * those who compute there nobody is held up more than the others. */
struct mr_team *mr_team_new(uint32_t threads, uint32_t first);
void mr_team_free(struct mr_team **t);

/* Calls fn(ctx, first, count) for parts that cover 0 … count - 1, on all threads at once; returns
 * when all have. Parts begin at multiples of 1024. */
void mr_team_run(struct mr_team *t, uint64_t count,
    void (*fn)(void *ctx, uint64_t first, uint64_t count), void *ctx);
