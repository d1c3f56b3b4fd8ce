/* A reason to give up a wait, asked for every few milliseconds of it. */
#pragma once

#include "base/time.h"

#include <stdbool.h>

#define MR_STOP_LOOK (5 * MR_MS)

struct mr_stop { /* zero: there is none */
    bool (*is_set)(void *ctx);
    void *ctx;
};

static inline bool mr_stop_is_set(struct mr_stop s)
{
    return s.is_set && s.is_set(s.ctx);
}
