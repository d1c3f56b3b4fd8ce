#include "services/scheduler/tiles/blocks.h"

#include "base/alloc.h"
#include "base/unconst.h"
#include "store/meta/trace/codec.h"

/* limit of spans in memory; the block in use stays even if it has more */
#define DECODED_MAX 600000u
#define TIME_MAX (UINT64_MAX / 4) /* a later time is an error in the trace */

void mr_tile_blocks_init(struct mr_tile_blocks *b, mr_job_id job)
{
    *b = (struct mr_tile_blocks){.job = job};
    mr_tile_slots_init(&b->slots);
    mr_buf_init(&b->file, MR_TRACE_BLOCK_BYTES_MAX);
    mr_buf_init(&b->pending, MR_TRACE_BLOCK_BYTES_MAX);
}

void mr_tile_blocks_fini(struct mr_tile_blocks *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        mr_release(b->items[i].spans);
        mr_release(mr_unconst(b->items[i].sheet_bytes.p));
    }
    mr_release(b->items);
    mr_tile_slots_fini(&b->slots);
    mr_buf_fini(&b->file);
    mr_buf_fini(&b->pending);
}

/* ---- spans ----------------------------------------------------------------------------------- */

/* Names have 16 bits in a timeline: the greatest number stands for all later names too. */
static uint16_t name_number(uint32_t op)
{
    return (uint16_t)MR_MIN(op, (uint32_t)MR_TILE_NONE - 1);
}

struct decoding {
    struct mr_tile_slots *slots;
    struct mr_trace_local_names ops, workers;
    struct mr_tile_span *spans;
    uint32_t count, room;
    uint64_t from, until;
};

static void on_span(void *ctx, const struct mr_trace_span *s)
{
    struct decoding *d = ctx;
    if (!s->started || s->finished < s->started || s->finished > TIME_MAX) return;
    if (d->count == d->room) {
        uint32_t more = MR_MAX(256u, d->room * 2);
        d->spans = mr_grow(d->spans, d->room * sizeof *d->spans, more * sizeof *d->spans);
        d->room = more;
    }
    uint32_t worker =
        mr_trace_local_number(&d->workers, s->worker_id, &d->slots->workers, s->worker);
    uint32_t op = mr_trace_local_number(&d->ops, s->op_id, &d->slots->ops, s->op);
    d->spans[d->count++] = (struct mr_tile_span){.from = s->started,
        .until = s->finished,
        .lane = mr_tile_slots_number(d->slots, worker, s->slot),
        .name = name_number(op)};
    d->from = MR_MIN(d->from, s->started);
    d->until = MR_MAX(d->until, s->finished);
}

/* Returns a block of the list of blocks with spans in memory; NULL: the list ends there. */
static struct mr_tile_block *at(struct mr_tile_blocks *b, uint32_t number)
{
    return number ? &b->items[number - 1] : NULL;
}

static void list_remove(struct mr_tile_blocks *b, struct mr_tile_block *block)
{
    struct mr_tile_block *newer = at(b, block->newer), *older = at(b, block->older);
    *(newer ? &newer->older : &b->newest) = block->older;
    *(older ? &older->newer : &b->oldest) = block->newer;
    block->newer = block->older = 0;
}

static void list_add(struct mr_tile_blocks *b, struct mr_tile_block *block)
{
    uint32_t number = (uint32_t)(block - b->items) + 1;
    struct mr_tile_block *second = at(b, b->newest);
    block->older = b->newest;
    *(second ? &second->newer : &b->oldest) = number;
    b->newest = number;
}

/* Drops spans of blocks until DECODED_MAX holds, the least recently used block first. The most
 * recently used block keeps its spans. */
static void evict(struct mr_tile_blocks *b)
{
    while (b->decoded > DECODED_MAX && b->oldest != b->newest) {
        struct mr_tile_block *oldest = at(b, b->oldest);
        list_remove(b, oldest);
        b->looked_at++;
        b->decoded -= oldest->count;
        mr_release(oldest->spans);
        oldest->spans = NULL;
    }
}

static void decode(struct mr_tile_blocks *b, struct mr_tile_block *block, struct mr_str bytes)
{
    struct mr_trace_block head;
    struct decoding d = {.slots = &b->slots, .from = UINT64_MAX};
    if (mr_trace_block_read(bytes, &head) || head.job.v != b->job.v) head.count = 0;
    if (head.count) (void)mr_trace_decode(bytes, on_span, &d);
    mr_release(d.ops.of);
    mr_release(d.workers.of);
    if (!block->is_known) {
        block->is_known = true;
        block->from = d.count ? d.from : 0;
        block->until = d.until;
        b->spans += d.count;
        b->recorded += head.count;
    } else if (block->count != d.count) {
        b->spans += d.count;
        b->spans -= block->count;
    }
    block->count = d.count;
    block->spans = d.spans;
    if (!d.spans) return;
    b->decoded += d.count;
    list_add(b, block);
    evict(b);
}

const struct mr_tile_span *mr_tile_blocks_spans(struct mr_tile_blocks *b,
    const struct mr_trace_source *source, const struct mr_trace_view *view,
    struct mr_tile_block *block)
{
    if (block->spans) {
        list_remove(b, block);
        list_add(b, block);
        return block->spans;
    }
    if (mr_trace_entry_read(source, view, b->job, &block->entry, &b->file)) return NULL;
    decode(b, block, mr_buf_str(&b->file));
    return block->spans;
}

/* ---- sheets ---------------------------------------------------------------------------------- */

struct sheet_reading {
    struct mr_tile_slots *slots;
    void (*piece)(void *ctx, uint32_t lane, const struct mr_tile_time *t);
    void *ctx;
};

static uint32_t on_name(void *ctx, struct mr_str name)
{
    const struct sheet_reading *r = ctx;
    return name_number(mr_trace_names_number(&r->slots->ops, name));
}

static uint32_t on_worker(void *ctx, struct mr_str name)
{
    const struct sheet_reading *r = ctx;
    return mr_trace_names_number(&r->slots->workers, name);
}

static uint32_t on_lane(void *ctx, uint32_t worker, uint32_t slot)
{
    const struct sheet_reading *r = ctx;
    return mr_tile_slots_number(r->slots, worker, slot);
}

static void on_piece(void *ctx, uint32_t lane, const struct mr_tile_time *t)
{
    const struct sheet_reading *r = ctx;
    if (r->piece) r->piece(r->ctx, lane, t);
}

static int sheet_decode(struct mr_tile_blocks *b, struct mr_str bytes,
    void (*piece)(void *ctx, uint32_t lane, const struct mr_tile_time *t), void *ctx)
{
    struct sheet_reading r = {.slots = &b->slots, .piece = piece, .ctx = ctx};
    const struct mr_tile_sheet_fns fns = {
        .name = on_name, .worker = on_worker, .lane = on_lane, .piece = on_piece, .ctx = &r};
    return mr_tile_sheet_decode(bytes, &fns);
}

int mr_tile_blocks_sheet(struct mr_tile_blocks *b, const struct mr_trace_source *source,
    const struct mr_tile_block *block,
    void (*piece)(void *ctx, uint32_t lane, const struct mr_tile_time *t), void *ctx)
{
    const struct mr_trace_view none = {0}; /* sheets outside of the file were copied */
    struct mr_str bytes = block->sheet_bytes;
    if (!block->sheet.number) return MR_ENOENT;
    if (!bytes.n) {
        if (mr_trace_entry_read(source, &none, b->job, &block->sheet, &b->file)) return MR_ENOENT;
        bytes = mr_buf_str(&b->file);
    }
    return sheet_decode(b, bytes, piece, ctx) ? MR_ENOENT : MR_OK;
}

/* Takes the sheet of the last block. False: the sheet is damaged, or of another block. */
static bool sheet_take(struct mr_tile_blocks *b, const struct mr_trace_source *source,
    const struct mr_trace_view *view, const struct mr_trace_entry *e)
{
    struct mr_tile_block *block = b->count ? &b->items[b->count - 1] : NULL;
    struct mr_tile_sheet_head head;
    struct mr_str bytes = e->bytes;
    if (!block || block->is_known) return false;
    if (e->is_in_file) {
        if (mr_trace_entry_read(source, view, b->job, e, &b->file)) return false;
        bytes = mr_buf_str(&b->file);
    }
    if (mr_tile_sheet_read(bytes, &head)) return false;
    if (head.id.job != b->job.v || head.id.epoch != block->entry.epoch ||
        head.id.number != block->entry.number || sheet_decode(b, bytes, NULL, NULL))
        return false;
    block->sheet = *e;
    block->sheet.bytes = (struct mr_str){0};
    if (!e->is_in_file) block->sheet_bytes = mr_str_of(mr_copy(bytes.p, bytes.n), bytes.n);
    block->is_known = true;
    block->count = head.spans;
    block->from = head.from;
    block->until = head.until;
    b->spans += head.spans;
    b->recorded += head.id.spans;
    return true;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void block_add(struct mr_tile_blocks *b, const struct mr_trace_entry *e)
{
    if (b->count == b->room) {
        uint32_t more = MR_MAX(64u, b->room * 2);
        b->items = mr_grow(b->items, b->room * sizeof *b->items, more * sizeof *b->items);
        b->room = more;
    }
    b->items[b->count++] = (struct mr_tile_block){.entry = *e};
    b->items[b->count - 1].entry.bytes = (struct mr_str){0};
    mr_buf_clear(&b->pending);
    mr_buf_add_str(&b->pending, e->bytes);
}

/* Completes the last block. If no valid sheet followed it, its spans are decoded. */
static void block_end(struct mr_tile_blocks *b, const struct mr_trace_source *source,
    const struct mr_trace_view *view, mr_tile_block_fn fn, void *ctx)
{
    struct mr_tile_block *block = &b->items[b->count - 1];
    if (!block->is_known) {
        struct mr_buf *from = &b->pending;
        if (block->entry.is_in_file) from = &b->file;
        if (block->entry.is_in_file &&
            mr_trace_entry_read(source, view, b->job, &block->entry, from))
            mr_buf_clear(from);
        decode(b, block, mr_buf_str(from));
    }
    mr_buf_clear(&b->pending);
    if (fn) fn(ctx, block);
}

void mr_tile_blocks_sync(struct mr_tile_blocks *b, const struct mr_trace_source *source,
    const struct mr_trace_view *view, mr_tile_block_fn fn, void *ctx)
{
    struct mr_trace_cursor *c = mr_trace_cursor_open(source, view, b->job);
    struct mr_trace_entry e;
    uint32_t known = b->count;
    if (b->last_number) mr_trace_cursor_after(c, b->last_epoch, b->last_number);
    while (mr_trace_cursor_entry(c, &e)) {
        /* the waiting blocks come after blocks of Redis that were not read: another call reads both
         */
        if (mr_trace_cursor_is_away(c)) break;
        b->last_epoch = e.epoch;
        b->last_number = e.number;
        if (e.is_sheet) {
            (void)sheet_take(b, source, view, &e);
            continue;
        }
        if (b->count > known) block_end(b, source, view, fn, ctx);
        block_add(b, &e);
    }
    if (b->count > known) block_end(b, source, view, fn, ctx);
    b->is_away = mr_trace_cursor_is_away(c);
    mr_trace_cursor_close(&c);
}
