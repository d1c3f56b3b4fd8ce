/* A window is drawn by operator in the first of these ways that is possible:
 *   1. from spans, if the blocks that overlap the window have at most exact_max spans;
 *   2. from the pyramid, if its buckets are not wider than a pixel;
 *   3. from sheets, if these blocks have at most sheets_max spans, and those of them without sheets
 *      have at most exact_max spans; blocks without sheets are drawn from their spans;
 *   4. from the pyramid, whose buckets are then wider than a pixel.
 * A job with at most exact_max spans has no pyramid. A picture by class is always drawn from the
 * pyramid of classes.h. */
#include "services/scheduler/tiles/tiles.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "services/scheduler/history/cluster_past.h"
#include "services/scheduler/tiles/blocks.h"
#include "services/scheduler/tiles/classes.h"
#include "tiles/pyramid.h"

#define FEW_SPANS 4000u
#define FEW_NS_MAX 1e18
#define PAST_AGE MR_SECOND /* how often events are read at most while the job is not over */
#define NO_ROW UINT32_MAX

/* reading the sheets of sheets_max spans takes some tens of ms */
static const struct mr_job_tiles_limits usual = {
    .exact_max = 400000, .sheets_max = 8000000, .cells_max = 1u << 21};

struct mr_job_tiles {
    struct mr_job_tiles_limits limits;
    struct mr_tile_blocks blocks;
    struct mr_tile_pyramid *pyramid; /* NULL: the job is small */
    struct mr_tile_sheet sheet;
    struct mr_tile_classes classes;
    uint64_t submitted, over; /* 0: not known */
    mr_time past_due;         /* when events may be read again; MR_NEVER: the job is over */
    /* arguments of the present call, for the callbacks */
    const struct mr_trace_source *source;
    const struct mr_trace_view *view;
    struct mr_tile_picture *picture;
    const uint32_t *row_of; /* by number of the slot; NO_ROW: not in the picture */
    uint32_t row_of_count;
};

struct mr_job_tiles *mr_job_tiles_new(mr_job_id job, const struct mr_job_tiles_limits *limits)
{
    struct mr_job_tiles *t = mr_alloc(sizeof *t);
    t->limits = limits ? *limits : usual;
    mr_tile_blocks_init(&t->blocks, job);
    return t;
}

void mr_job_tiles_free(struct mr_job_tiles **tp)
{
    struct mr_job_tiles *t = *tp;
    *tp = NULL;
    if (!t) return;
    mr_tile_blocks_fini(&t->blocks);
    mr_tile_pyramid_free(&t->pyramid);
    mr_tile_sheet_fini(&t->sheet);
    mr_tile_classes_fini(&t->classes);
    mr_release(t);
}

mr_job_id mr_job_tiles_job(const struct mr_job_tiles *t)
{
    return t->blocks.job;
}

void mr_job_tiles_picture_fini(struct mr_job_tiles_picture *p)
{
    for (uint32_t i = 0; i < p->names_count; i++)
        mr_release(mr_unconst(p->names[i].p));
    for (uint32_t i = 0; i < p->rows_count; i++) {
        mr_release(mr_unconst(p->rows[i].worker.p));
        mr_release(p->rows[i].runs);
    }
    mr_release(p->names);
    mr_release(p->rows);
    *p = (struct mr_job_tiles_picture){0};
}

/* ---- the pyramid ----------------------------------------------------------------------------- */

static void pyramid_piece(void *ctx, uint32_t lane, const struct mr_tile_time *time)
{
    struct mr_job_tiles *t = ctx;
    mr_tile_pyramid_cover(t->pyramid, t->blocks.slots.count, time->from, time->until);
    mr_tile_pyramid_add(t->pyramid, lane, time);
}

/* Adds a block to the pyramid: its sheet, or one that is made of its spans. */
static void pyramid_feed(struct mr_job_tiles *t, struct mr_tile_block *block)
{
    if (block->is_added) return;
    block->is_added = !mr_tile_blocks_sheet(&t->blocks, t->source, block, pyramid_piece, t);
    if (block->is_added) return;
    const struct mr_tile_span *spans = mr_tile_blocks_spans(&t->blocks, t->source, t->view, block);
    if (!spans || !block->count) return;
    block->is_added = true;
    mr_tile_sheet_make(&t->sheet, spans, block->count);
    for (uint32_t i = 0; i < t->sheet.count; i++) {
        const struct mr_tile_time time = mr_tile_piece_time(&t->sheet.pieces[i], t->sheet.bits);
        pyramid_piece(t, t->sheet.pieces[i].lane, &time);
    }
}

static void on_block(void *ctx, struct mr_tile_block *block)
{
    struct mr_job_tiles *t = ctx;
    if (t->pyramid) pyramid_feed(t, block);
}

static void pyramid_make(struct mr_job_tiles *t)
{
    if (!t->pyramid && MR_MAX(t->view->spans, t->blocks.spans) > t->limits.exact_max)
        t->pyramid = mr_tile_pyramid_new(t->limits.cells_max);
    for (uint32_t i = 0; t->pyramid && i < t->blocks.count; i++)
        pyramid_feed(t, &t->blocks.items[i]);
}

/* Reads what was written since the last call. */
static void sync(
    struct mr_job_tiles *t, const struct mr_trace_source *source, const struct mr_trace_view *view)
{
    t->source = source;
    t->view = view;
    if (!t->blocks.count) pyramid_make(t);
    mr_tile_blocks_sync(&t->blocks, source, view, on_block, t);
    pyramid_make(t);
}

/* ---- what is known of the job ---------------------------------------------------------------- */

/* Adds the slots of workers that were in the cluster between the job's submission and its end. */
static void slots_of(struct mr_job_tiles *t, const struct mr_cluster_past *p)
{
    uint64_t over = t->over ? t->over : UINT64_MAX;
    uint32_t *slots = mr_alloc_array(MR_MAX(p->workers.count, 1u), sizeof *slots);
    for (uint32_t i = 0; i < p->events_count; i++) {
        const struct mr_past_worker_event *e = &p->events[i];
        if (e->kind == MR_TRACE_EVENT_GONE && e->at < t->submitted) slots[e->worker] = 0;
        if (e->kind == MR_TRACE_EVENT_JOINED && e->at < over)
            slots[e->worker] = MR_MAX(slots[e->worker], e->slots);
    }
    for (uint32_t i = 0; i < p->workers.count; i++) {
        if (!slots[i]) continue;
        uint32_t worker = mr_trace_names_number(&t->blocks.slots.workers, p->workers.names[i]);
        for (uint32_t k = 0; k < slots[i]; k++)
            (void)mr_tile_slots_number(&t->blocks.slots, worker, k);
    }
    mr_release(slots);
}

/* Reads the events of the cluster: when the job began and ended, and which slots there were. */
static void past_read(struct mr_job_tiles *t, const struct mr_job_tiles_ask *ask)
{
    mr_time now = mr_clock_now();
    bool has_changed = ask->now_ns && ask->over_ns != t->over; /* the job ended, or was retried */
    if (ask->submitted_ns) t->submitted = ask->submitted_ns;
    if (ask->now_ns) t->over = ask->over_ns;
    if (now < t->past_due && !has_changed) return;
    struct mr_cluster_past past;
    mr_cluster_past_init(&past);
    const struct mr_past_range range = {.segments = ask->segments,
        .count = ask->segments_count,
        .from = t->submitted,
        .until = t->over ? t->over : UINT64_MAX};
    mr_cluster_past_read(&past, t->source, t->view, &range);
    const struct mr_past_job *job = mr_cluster_past_job(&past, t->blocks.job);
    if (!t->submitted) t->submitted = job->submitted;
    if (!t->over && !ask->now_ns) t->over = job->over;
    slots_of(t, &past);
    t->past_due = t->over ? MR_NEVER : now + PAST_AGE;
    mr_cluster_past_fini(&past);
}

static void window_find(const struct mr_job_tiles *t, const struct mr_job_tiles_ask *ask,
    struct mr_job_tiles_picture *out)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (uint32_t i = 0; i < t->blocks.count; i++) {
        const struct mr_tile_block *b = &t->blocks.items[i];
        if (!b->count) continue;
        first = MR_MIN(first, b->from);
        last = MR_MAX(last, b->until);
    }
    uint64_t begin = t->submitted ? t->submitted : first;
    uint64_t end = t->over ? t->over : ask->now_ns ? ask->now_ns : last;
    out->from_ns = ask->from_ns ? ask->from_ns : begin;
    out->until_ns = ask->until_ns ? ask->until_ns : MR_MAX(end, out->from_ns + ask->width);
}

/* ---- drawing --------------------------------------------------------------------------------- */

static bool overlaps(const struct mr_tile_block *b, uint64_t from, uint64_t until)
{
    return b->count && b->until > from && b->from < until;
}

/* Returns how many spans the blocks have that overlap the window. Stores an estimate of the spans
 * within the window. */
static uint64_t spans_of(
    const struct mr_job_tiles *t, uint64_t from, uint64_t until, double *within)
{
    uint64_t spans = 0;
    *within = 0;
    for (uint32_t i = 0; i < t->blocks.count; i++) {
        const struct mr_tile_block *b = &t->blocks.items[i];
        if (!overlaps(b, from, until)) continue;
        double part = (double)(MR_MIN(until, b->until) - MR_MAX(from, b->from));
        spans += b->count;
        *within += b->count * part / (double)(MR_MAX(b->until - b->from, UINT64_C(1)));
    }
    return spans;
}

static void draw_piece(void *ctx, uint32_t lane, const struct mr_tile_time *time)
{
    const struct mr_job_tiles *t = ctx;
    if (lane < t->row_of_count && t->row_of[lane] != NO_ROW)
        mr_tile_picture_add(t->picture, t->row_of[lane], time);
}

static void draw_spans(struct mr_job_tiles *t, struct mr_tile_block *b)
{
    const struct mr_tile_span *s = mr_tile_blocks_spans(&t->blocks, t->source, t->view, b);
    for (uint32_t i = 0; s && i < b->count; i++) {
        const struct mr_tile_time time = {.from = s[i].from,
            .until = s[i].until,
            .ns = s[i].until - s[i].from,
            .name = s[i].name};
        draw_piece(t, s[i].lane, &time);
    }
}

static void draw_blocks(struct mr_job_tiles *t, bool exact)
{
    uint64_t from = t->picture->from, until = t->picture->until;
    for (uint32_t i = 0; i < t->blocks.count; i++) {
        struct mr_tile_block *b = &t->blocks.items[i];
        if (!overlaps(b, from, until)) continue;
        if (exact || mr_tile_blocks_sheet(&t->blocks, t->source, b, draw_piece, t))
            draw_spans(t, b);
    }
}

static void draw_pyramid(struct mr_job_tiles *t, struct mr_tile_pyramid *pyramid)
{
    for (uint32_t i = 0; i < t->row_of_count; i++)
        if (t->row_of[i] != NO_ROW) mr_tile_pyramid_draw(pyramid, i, t->picture, t->row_of[i]);
}

/* Returns how many spans would have to be decoded because their block has no sheet. */
static uint64_t spans_without_sheet(const struct mr_job_tiles *t)
{
    uint64_t spans = 0;
    for (uint32_t i = 0; i < t->blocks.count; i++) {
        const struct mr_tile_block *b = &t->blocks.items[i];
        if (!b->sheet.number && overlaps(b, t->picture->from, t->picture->until)) spans += b->count;
    }
    return spans;
}

static void draw_ops(struct mr_job_tiles *t, uint64_t spans)
{
    uint64_t pixel = (t->picture->until - t->picture->from) / t->picture->width;
    if (!t->pyramid || spans <= t->limits.exact_max)
        draw_blocks(t, true);
    else if (mr_tile_pyramid_bucket_ns(t->pyramid) <= pixel)
        draw_pyramid(t, t->pyramid);
    else if (spans <= t->limits.sheets_max && spans_without_sheet(t) <= t->limits.exact_max)
        draw_blocks(t, false);
    else
        draw_pyramid(t, t->pyramid);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static struct mr_str text_copy(struct mr_str s)
{
    char *p = mr_alloc(s.n + 1);
    if (s.n) memcpy(p, s.p, s.n);
    return mr_str_of(p, s.n);
}

static void names_out(const struct mr_job_tiles *t, bool is_class, struct mr_job_tiles_picture *out)
{
    const struct mr_trace_names *ops = &t->blocks.slots.ops;
    out->names_count = is_class ? (uint32_t)MR_ACCOUNT_CLASSES : MR_MIN(ops->count, MR_TILE_NONE);
    out->names = mr_alloc_array(MR_MAX(out->names_count, 1u), sizeof *out->names);
    for (uint32_t i = 0; i < out->names_count; i++) {
        struct mr_str class = {0};
        if (is_class) class = mr_str(mr_account_class_name((enum mr_account_class)i));
        out->names[i] = text_copy(is_class ? class : ops->names[i]);
    }
}

static void rows_out(
    struct mr_job_tiles *t, const uint32_t *slots, bool is_class, struct mr_job_tiles_picture *out)
{
    const struct mr_tile_picture *p = t->picture;
    struct mr_tile_run *runs = mr_alloc_array(p->width, sizeof *runs);
    out->rows = mr_alloc_array(MR_MAX(p->rows, 1u), sizeof *out->rows);
    out->rows_count = p->rows;
    for (uint32_t i = 0; i < p->rows; i++) {
        const struct mr_tile_slot *slot = &t->blocks.slots.slots[slots[i]];
        struct mr_job_tiles_row *row = &out->rows[i];
        row->worker = text_copy(t->blocks.slots.workers.names[slot->worker]);
        row->slot = slot->slot;
        row->runs_count = mr_tile_picture_runs(p, i, is_class, runs);
        row->runs = mr_copy(runs, row->runs_count * sizeof *runs);
    }
    mr_release(runs);
}

static void picture_make(struct mr_job_tiles *t, const struct mr_job_tiles_ask *ask, uint64_t spans,
    struct mr_job_tiles_picture *out)
{
    const uint32_t *rows = mr_tile_slots_rows(&t->blocks.slots);
    uint32_t all = t->blocks.slots.count, first = MR_MIN(ask->first_row, all);
    uint32_t count = MR_MIN(ask->rows, all - first);
    bool is_class = ask->color == MR_JOB_TILES_CLASS;
    struct mr_tile_picture picture;
    uint32_t *row_of = mr_alloc_array(MR_MAX(all, 1u), sizeof *row_of);
    for (uint32_t i = 0; i < all; i++)
        row_of[i] = NO_ROW;
    for (uint32_t i = 0; i < count; i++)
        row_of[rows[first + i]] = i;
    mr_tile_picture_init(&picture, out->from_ns, out->until_ns, ask->width, count);
    t->picture = &picture;
    t->row_of = row_of;
    t->row_of_count = all;
    if (is_class)
        draw_pyramid(t, t->classes.pyramid);
    else
        draw_ops(t, spans);
    names_out(t, is_class, out);
    rows_out(t, rows + first, is_class, out);
    out->rows_all = all;
    mr_tile_picture_fini(&picture);
    mr_release(row_of);
    t->picture = NULL;
    t->row_of = NULL;
    t->row_of_count = 0;
}

int mr_job_tiles_draw(struct mr_job_tiles *t, const struct mr_trace_source *source,
    const struct mr_trace_view *view, const struct mr_job_tiles_ask *ask,
    struct mr_job_tiles_picture *out)
{
    *out = (struct mr_job_tiles_picture){0};
    sync(t, source, view);
    if (t->blocks.is_away) return MR_EAWAY;
    past_read(t, ask);
    if (!t->blocks.count && !t->submitted) return MR_ENOENT;
    if (ask->color == MR_JOB_TILES_CLASS) {
        const struct mr_job_account_ask account = {.job = t->blocks.job,
            .from_ns = t->submitted,
            .now_ns = ask->now_ns,
            .over_ns = t->over,
            .segments = ask->segments,
            .segments_count = ask->segments_count};
        int err = mr_tile_classes_make(&t->classes, source, view, &account, &t->blocks.slots);
        if (err) return err;
    }
    window_find(t, ask, out);
    if (out->until_ns <= out->from_ns || out->until_ns - out->from_ns < ask->width)
        return MR_EINVAL;
    double within = 0;
    uint64_t spans = spans_of(t, out->from_ns, out->until_ns, &within);
    double few = (double)(out->until_ns - out->from_ns) * FEW_SPANS / MR_MAX(within, 1.0);
    out->few_ns = (uint64_t)MR_MIN(few, FEW_NS_MAX);
    picture_make(t, ask, spans, out);
    return MR_OK;
}

/* ---- spans ----------------------------------------------------------------------------------- */

void mr_job_tiles_spans(struct mr_job_tiles *t, const struct mr_trace_source *source,
    const struct mr_trace_view *view, struct mr_trace_gather *out, uint64_t *not_recorded)
{
    struct mr_trace_block head;
    struct mr_buf bytes;
    mr_buf_init(&bytes, MR_TRACE_BLOCK_BYTES_MAX);
    uint64_t until = out->want.until_ns ? out->want.until_ns : UINT64_MAX;
    sync(t, source, view);
    for (uint32_t i = 0; i < t->blocks.count; i++) {
        const struct mr_tile_block *b = &t->blocks.items[i];
        if (!overlaps(b, out->want.from_ns, until)) continue;
        if (mr_trace_entry_read(source, view, t->blocks.job, &b->entry, &bytes)) continue;
        if (mr_trace_block_read(mr_buf_str(&bytes), &head)) continue;
        if (mr_trace_gather_wants(out, &head))
            (void)mr_trace_decode(mr_buf_str(&bytes), mr_trace_gather_span, out);
    }
    mr_trace_gather_finish(out);
    *not_recorded = view->spans > t->blocks.recorded ? view->spans - t->blocks.recorded : 0;
    mr_buf_fini(&bytes);
}
