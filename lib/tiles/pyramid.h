/* The timeline of a job at every scale. The time of each slot is divided into buckets. The width of
 * a bucket is a power of two of ns, and buckets begin at multiples of their width. The buckets
 * of each level are four times as wide as those of the level below. When the timeline grows beyond
 * the limit of cells, every two buckets of the finest level become one. So memory is bounded
 * however long the job runs. The time within a bucket counts as spread evenly over the bucket. */
#pragma once

#include "tiles/picture.h"

struct mr_tile_pyramid;

/* `cells_max`: limit of the cells of all slots and levels. A cell has 24 bytes. The more slots
 * there are, the fewer and wider are the buckets of each. The memory may exceed the limit by a
 * quarter, and by 40 bytes for each slot. Each slot has at least 4 buckets, so more than cells_max
 * / 8 slots exceed the limit. */
struct mr_tile_pyramid *mr_tile_pyramid_new(uint32_t cells_max);
void mr_tile_pyramid_free(struct mr_tile_pyramid **p);
/* Makes room for lanes with numbers below `lanes`, and for times between `from` and `until`. A lane
 * is a slot. */
void mr_tile_pyramid_cover(
    struct mr_tile_pyramid *p, uint32_t lanes, uint64_t from, uint64_t until);
/* Adds a time. mr_tile_pyramid_cover must have made room for the lane and the time. */
void mr_tile_pyramid_add(struct mr_tile_pyramid *p, uint32_t lane, const struct mr_tile_time *t);
/* Returns the memory of all lanes and cells. */
size_t mr_tile_pyramid_bytes(const struct mr_tile_pyramid *p);
/* Returns the width of the buckets of the finest level. */
uint64_t mr_tile_pyramid_bucket_ns(const struct mr_tile_pyramid *p);
/* Draws the times of a lane into a row of the picture. */
void mr_tile_pyramid_draw(
    struct mr_tile_pyramid *p, uint32_t lane, struct mr_tile_picture *picture, uint32_t row);
