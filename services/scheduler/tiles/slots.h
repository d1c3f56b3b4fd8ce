/* The slots (executor threads) and operators of a job, by number, and the order of the rows in
 * which a timeline shows the slots. */
#pragma once

#include "services/scheduler/history/names.h"

struct mr_tile_slot {
    uint32_t worker; /* number of the name in `workers` */
    uint32_t slot;
};

struct mr_tile_slots {
    struct mr_trace_names workers, ops;
    struct mr_tile_slot *slots; /* by number */
    uint32_t count, room;
    struct mr_tile_worker *of; /* numbers of a worker's slots, by the worker's number */
    uint32_t of_room;
    uint32_t *rows; /* numbers of all slots, in the order of mr_tile_slots_rows */
    uint32_t rows_count;
};

void mr_tile_slots_init(struct mr_tile_slots *s);
void mr_tile_slots_fini(struct mr_tile_slots *s);
/* Returns the number of a slot. A new slot gets the old s->count. */
uint32_t mr_tile_slots_number(struct mr_tile_slots *s, uint32_t worker, uint32_t slot);
/* Returns the numbers of all slots in the order of rows, lent until the next call. Names of workers
 * are ordered by their bytes, but numbers in names by their value: "w9" comes before "w10". */
const uint32_t *mr_tile_slots_rows(struct mr_tile_slots *s);
