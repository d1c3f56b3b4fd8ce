/* Gives each span a lane: a row of a slot of a worker. The spans of one row do not overlap. A span
 * that begins before the row's last span has ended goes to another row of the slot. Attempts that
 * were lost with their worker need more rows: their slot is not known, so several may be recorded
 * at one slot. Memory is bounded by the number of slots and of attempts that ran at the same time.
 */
#pragma once

#include "cli/export/span.h"
#include "services/scheduler/history/names.h"

struct mr_export_lane {
    uint32_t worker; /* index in `workers` of struct mr_export_lanes */
    uint32_t slot;
    uint32_t row;      /* counts from 0 within the slot */
    uint32_t tid;      /* the row's thread id in the exported file; no other tid or pid is equal */
    uint32_t next_row; /* index of the lane of the slot's next row; 0: there is none */
    uint64_t until;    /* end of the row's last span */
};

struct mr_export_worker {
    uint32_t pid;    /* the worker's process id in the exported file */
    uint32_t *lanes; /* by slot: index of the lane of the slot's first row */
    uint32_t slots_count, slots_room;
};

struct mr_export_lanes {
    struct mr_trace_names names;      /* names of the workers */
    struct mr_export_worker *workers; /* as many as `names` has names */
    uint32_t workers_room;
    struct mr_export_lane *lanes;
    uint32_t count, room;
    uint32_t last_id; /* the pid or tid that was given last */
};

/* `first_id`: the first pid or tid to be given. */
void mr_export_lanes_init(struct mr_export_lanes *l, uint32_t first_id);
void mr_export_lanes_fini(struct mr_export_lanes *l);
/* Returns the index of the span's lane. If the worker or the slot is new, appends the worker, and a
 * lane for each missing slot up to the span's slot. */
uint32_t mr_export_lanes_take(struct mr_export_lanes *l, const struct mr_export_span *span);
/* Writes the name of a lane, for example "slot 3", or "slot 3 (row 2)". */
#define MR_EXPORT_LANE_NAME_MAX 48
void mr_export_lane_name(const struct mr_export_lane *lane, char out[MR_EXPORT_LANE_NAME_MAX]);
