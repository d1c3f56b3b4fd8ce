/* The blocks of a job's trace: when each begins and ends, its sheet (lib/tiles/sheet.h), and the
 * spans of the blocks that were needed last. A block without a sheet, or with a damaged one, is
 * decoded. So answers without sheets only take longer. The bytes of a sheet stay in memory if the
 * sheet is not in a file when it is read. The functions wait for Redis and files. */
#pragma once

#include "services/scheduler/tiles/slots.h"
#include "store/meta/trace/reader.h"
#include "tiles/sheet_bytes.h"

struct mr_tile_block {
    struct mr_trace_entry entry; /* without bytes */
    struct mr_trace_entry sheet; /* number 0: there is no sheet */
    struct mr_str sheet_bytes;   /* owned; empty: the sheet is in the file, or there is none */
    uint32_t count;              /* number of spans that a timeline shows */
    uint64_t from, until;        /* from the first start to the last end of these spans */
    struct mr_tile_span *spans;  /* NULL: not in memory; lanes and names are numbers of `slots` */
    /* Neighbors in the list of blocks with spans in memory, by the last use: indices plus 1, and 0
     * at an end of the list. */
    uint32_t newer, older;
    bool is_known; /* count, from and until are known */
    bool is_added; /* for tiles.c: the pyramid has the block */
};

struct mr_tile_blocks {
    mr_job_id job;
    struct mr_tile_slots slots;
    struct mr_tile_block *items; /* in the order in which they were written */
    uint32_t count, room;
    uint64_t spans;          /* sum of `count` of all blocks */
    uint64_t recorded;       /* all spans of the blocks, also of attempts that never started */
    uint64_t decoded;        /* spans in memory */
    uint32_t newest, oldest; /* ends of the list of blocks with spans in memory: indices plus 1 */
    uint64_t looked_at;      /* blocks that were looked at to drop spans from memory; for tests */
    /* epoch and number of the last block that was read from Redis; last_number 0: none was read */
    uint32_t last_epoch;
    uint64_t last_number;
    bool is_away; /* Redis did not answer when entries were last read */
    struct mr_buf file, pending;
};

void mr_tile_blocks_init(struct mr_tile_blocks *b, mr_job_id job);
void mr_tile_blocks_fini(struct mr_tile_blocks *b);
/* Reads the entries that were written since the last call. `fn` (may be NULL) is called for each
 * new block, while its spans are in memory or its sheet can be read. */
typedef void (*mr_tile_block_fn)(void *ctx, struct mr_tile_block *block);
void mr_tile_blocks_sync(struct mr_tile_blocks *b, const struct mr_trace_source *source,
    const struct mr_trace_view *view, mr_tile_block_fn fn, void *ctx);
/* Returns the spans of a block, block->count of them, lent until the next call. NULL: there are
 * none, or they cannot be read. */
const struct mr_tile_span *mr_tile_blocks_spans(struct mr_tile_blocks *b,
    const struct mr_trace_source *source, const struct mr_trace_view *view,
    struct mr_tile_block *block);
/* Calls `piece` for each piece of the block's sheet. Lanes and names are numbers of b->slots.
 * MR_ENOENT: there is no sheet that can be read; `piece` may have been called all the same. */
int mr_tile_blocks_sheet(struct mr_tile_blocks *b, const struct mr_trace_source *source,
    const struct mr_tile_block *block,
    void (*piece)(void *ctx, uint32_t lane, const struct mr_tile_time *t), void *ctx);
