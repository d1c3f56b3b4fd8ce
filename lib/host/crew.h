/* A few threads for one large piece of work: many items, each done by whoever is free. The caller
 * is one of them. For work that comes seldom: a crew is made for it and let go afterwards. */
#pragma once

#include <stdint.h>

struct mr_crew;

/* So many hands, the caller's among them: at least one. */
struct mr_crew *mr_crew_new(uint32_t hands);
void mr_crew_free(struct mr_crew **c);
uint32_t mr_crew_hands(const struct mr_crew *c);
/* How many hands are worth it here: one a processor that this process may use, `most` at most. */
uint32_t mr_crew_hands_here(uint32_t most);
/* Does `work` for each item below `count`, on any thread and in any order, and returns when all are
 * done; what it wrote is then seen by the caller. `hand` is below mr_crew_hands, and one at a time.
 */
void mr_crew_run(struct mr_crew *c, void (*work)(void *ctx, uint32_t item, uint32_t hand),
    void *ctx, uint32_t count);
