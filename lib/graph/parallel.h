/* Hands for what can be done side by side, lent by who has threads (host/crew.h); this folder makes
 * none. Without one everything is done in turn, with the same outcome. */
#pragma once

#include <stdint.h>

struct mr_graph_crew {
    uint32_t hands;
    /* As mr_crew_run. */
    void (*run)(void *ctx, void (*work)(void *arg, uint32_t item, uint32_t hand), void *arg,
        uint32_t count);
    void *ctx;
};
