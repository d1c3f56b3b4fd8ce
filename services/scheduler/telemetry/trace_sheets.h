/* Makes the sheets of blocks (lib/tiles/sheet.h) while the blocks are written. Used on the writer's
 * thread (trace_writer.h). */
#pragma once

#include "store/meta/trace/codec.h"
#include "store/meta/trace/log.h"
#include "tiles/sheet_bytes.h"

struct mr_trace_collected { /* the spans of the open block of a job */
    struct mr_tile_span *spans;
    uint32_t count, room;
};

/* Adds the span that was last added to the encoder, unless its attempt never started. */
void mr_trace_collect(struct mr_trace_collected *c, const struct mr_trace_encoder *encoder,
    const struct mr_trace_span *span);
void mr_trace_collected_fini(struct mr_trace_collected *c);

struct mr_trace_sheets {
    struct mr_tile_sheet sheet;
    struct mr_buf bytes;
};

void mr_trace_sheets_init(struct mr_trace_sheets *s);
void mr_trace_sheets_fini(struct mr_trace_sheets *s);

struct mr_trace_sheet_of { /* the block whose sheet is made */
    struct mr_tile_sheet_id id;
    const struct mr_trace_encoder *encoder;
    const struct mr_trace_collected *spans;
    /* Return the name of a worker_id and of an op_id of the block's spans. */
    struct mr_str (*worker)(const void *ctx, uint64_t number);
    struct mr_str (*op)(const void *ctx, uint64_t number);
    const void *ctx;
};
/* Makes the sheet of a block. The bytes are lent until the next call. Empty: the sheet would be too
 * large, or the block has so few spans that a reader decodes them as quickly. */
struct mr_str mr_trace_sheets_make(struct mr_trace_sheets *s, const struct mr_trace_sheet_of *of);
