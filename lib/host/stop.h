/* A condition that ends a wait early. The waiting function calls is_set every MR_STOP_LOOK. */
#pragma once

#include "base/time.h"

#include <stdbool.h>

#define MR_STOP_LOOK (5 * MR_MS)

struct mr_stop { /* all zeros: the wait never ends early */
    bool (*is_set)(void *ctx);
    void *ctx;
};

static inline bool mr_stop_is_set(struct mr_stop s)
{
    return s.is_set && s.is_set(s.ctx);
}
