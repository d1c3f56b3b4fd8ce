/* The time that one slot (executor thread) spent on each name within one interval. A name is an
 * operator, or a class of a slot's time (lib/account/class.h), and has a number.
 *
 * A cell keeps the times of MR_TILE_NAMES names. A cell is a Misra-Gries summary (Misra and Gries,
 * "Finding repeated elements", 1982; merging: Agarwal et al., "Mergeable summaries", PODS 2012). So
 * the time of a name in a cell is too small by at most a quarter of the time of all names. The
 * order of additions and merges does not matter for this bound. The name with the most time in the
 * cell may be another one than in truth. Its true time is then smaller than the largest one by at
 * most the same quarter. With up to MR_TILE_NAMES names in a cell, all times are exact, apart from
 * rounding. */
#pragma once

#include "base/defs.h"

#include <stdbool.h>

#define MR_TILE_NAMES 3
#define MR_TILE_NONE UINT16_MAX /* no name */

struct mr_tile_cell {
    uint32_t busy; /* time of all names */
    uint32_t time[MR_TILE_NAMES];
    uint16_t name[MR_TILE_NAMES]; /* not valid where time is 0 */
};

/* Times in a cell have the unit 2^shift ns. Returns the shift for cells of intervals of `ns`. An
 * interval has at most 2^31 units. So `busy` has room for two names even if each of them takes the
 * whole interval. Longer times are cut to UINT32_MAX. */
unsigned mr_tile_shift(uint64_t ns);
/* Adds `ns` of time on a name. MR_TILE_NONE: the time belongs to names that are not known. */
void mr_tile_cell_add(struct mr_tile_cell *c, unsigned shift, uint16_t name, uint64_t ns);
/* Adds the times of the cell `from`, whose unit is 2^from_shift ns. */
void mr_tile_cell_merge(
    struct mr_tile_cell *c, unsigned shift, const struct mr_tile_cell *from, unsigned from_shift);
/* Returns the name with the most time, and stores this time. If several names have the most time,
 * the one with the smallest number is returned. MR_TILE_NONE: no known name has time. */
uint16_t mr_tile_cell_top(const struct mr_tile_cell *c, uint32_t *time);
