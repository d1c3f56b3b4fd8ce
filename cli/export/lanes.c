/* The search for a free row begins at the slot's first row, which is almost always free. */
#include "cli/export/lanes.h"

#include "base/alloc.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>

void mr_export_lanes_init(struct mr_export_lanes *l, uint32_t first_id)
{
    *l = (struct mr_export_lanes){.last_id = first_id - 1};
    mr_trace_names_init(&l->names);
}

void mr_export_lanes_fini(struct mr_export_lanes *l)
{
    for (uint32_t i = 0; i < l->names.count; i++)
        mr_release(l->workers[i].lanes);
    mr_release(l->workers);
    mr_release(l->lanes);
    mr_trace_names_fini(&l->names);
}

static uint32_t worker_of(struct mr_export_lanes *l, struct mr_str name)
{
    uint32_t known = l->names.count;
    uint32_t worker = mr_trace_names_number(&l->names, name);
    if (worker < known) return worker;
    if (worker == l->workers_room) {
        uint32_t more = MR_MAX(16u, l->workers_room * 2);
        l->workers =
            mr_grow(l->workers, l->workers_room * sizeof *l->workers, more * sizeof *l->workers);
        l->workers_room = more;
    }
    l->workers[worker].pid = ++l->last_id;
    return worker;
}

static uint32_t lane_add(struct mr_export_lanes *l, uint32_t worker, uint32_t slot, uint32_t row)
{
    if (l->count == l->room) {
        uint32_t more = MR_MAX(16u, l->room * 2);
        l->lanes = mr_grow(l->lanes, l->room * sizeof *l->lanes, more * sizeof *l->lanes);
        l->room = more;
    }
    l->lanes[l->count] =
        (struct mr_export_lane){.worker = worker, .slot = slot, .row = row, .tid = ++l->last_id};
    return l->count++;
}

static uint32_t first_row(struct mr_export_lanes *l, uint32_t worker, uint32_t slot)
{
    struct mr_export_worker *w = &l->workers[worker];
    while (w->slots_count <= slot) {
        if (w->slots_count == w->slots_room) {
            uint32_t more = MR_MAX(4u, w->slots_room * 2);
            w->lanes = mr_grow(w->lanes, w->slots_room * sizeof *w->lanes, more * sizeof *w->lanes);
            w->slots_room = more;
        }
        w->lanes[w->slots_count] = lane_add(l, worker, w->slots_count, 0);
        w->slots_count++;
    }
    return w->lanes[slot];
}

uint32_t mr_export_lanes_take(struct mr_export_lanes *l, const struct mr_export_span *span)
{
    uint32_t slot = MR_MIN(span->slot, (uint32_t)MR_SLOTS_MAX - 1);
    uint32_t at = first_row(l, worker_of(l, span->worker), slot);
    while (l->lanes[at].until > span->started) {
        if (!l->lanes[at].next_row) {
            uint32_t more = lane_add(l, l->lanes[at].worker, slot, l->lanes[at].row + 1);
            l->lanes[at].next_row = more;
        }
        at = l->lanes[at].next_row;
    }
    l->lanes[at].until = MR_MAX(span->finished, span->started);
    return at;
}

void mr_export_lane_name(const struct mr_export_lane *lane, char out[MR_EXPORT_LANE_NAME_MAX])
{
    if (lane->row)
        (void)snprintf(out, MR_EXPORT_LANE_NAME_MAX, "slot %" PRIu32 " (row %" PRIu32 ")",
            lane->slot, lane->row + 1);
    else
        (void)snprintf(out, MR_EXPORT_LANE_NAME_MAX, "slot %" PRIu32, lane->slot);
}
