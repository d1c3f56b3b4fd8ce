/* The memory of batches. */
#include "services/scheduler/core/state/batch.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <string.h>

#define BATCH_BYTES_MAX ((size_t)1 << 34)
/* memory that a cleared buffer keeps, in bytes; few batches need more */
#define KEPT_BYTES_MAX ((size_t)1 << 20)
#define ROWS_MIN 16u
#define ROWS_KEPT 32768u
#define RUNS_MIN 4u

static void each_refs(
    struct mr_sched_batch *b, bool with_more, void (*fn)(struct mr_sched_refs_out *))
{
    struct mr_sched_refs_out *more[] = {
        &b->cancel, &b->steal, &b->fetch, &b->leave, &b->adopt, &b->keep};
    fn(&b->values);
    fn(&b->release);
    for (size_t i = 0; with_more && i < MR_ARRAY_LEN(more); i++)
        fn(more[i]);
}

static void each_buf(struct mr_sched_batch *b, bool with_more, void (*fn)(struct mr_buf *))
{
    struct mr_buf *more[] = {&b->value_object, &b->value_object_bytes, &b->value_object_store,
        &b->extra, &b->resources, &b->text};
    fn(&b->args);
    fn(&b->inputs);
    fn(&b->last_use);
    fn(&b->value_inline);
    for (size_t i = 0; with_more && i < MR_ARRAY_LEN(more); i++)
        fn(more[i]);
}

static void buf_init(struct mr_buf *b)
{
    mr_buf_init(b, BATCH_BYTES_MAX);
}

static void buf_clear(struct mr_buf *b)
{
    if (b->n) mr_buf_clear_above(b, KEPT_BYTES_MAX);
    b->failed = false;
}

static void refs_fini(struct mr_sched_refs_out *r)
{
    mr_release(r->runs.p);
    mr_release(r->index);
    *r = (struct mr_sched_refs_out){0};
}

static void refs_clear(struct mr_sched_refs_out *r)
{
    if (r->room > ROWS_KEPT || r->runs.room > ROWS_KEPT) refs_fini(r);
    r->count = r->runs.count = 0;
}

static void rows_fini(struct mr_sched_rows *r)
{
    mr_release(r->runs.p);
    mr_release(r->block);
    *r = (struct mr_sched_rows){0};
}

struct mr_sched_batch *mr_sched_batch_new(void)
{
    struct mr_sched_batch *b = mr_alloc(sizeof *b);
    each_buf(b, true, buf_init);
    return b;
}

void mr_sched_batch_free(struct mr_sched_batch **bp)
{
    struct mr_sched_batch *b = *bp;
    *bp = NULL;
    if (!b) return;
    rows_fini(&b->tasks);
    each_refs(b, true, refs_fini);
    each_buf(b, true, mr_buf_fini);
    mr_release(b);
}

void mr_sched_batch_clear(struct mr_sched_batch *b)
{
    if (b->tasks.room > ROWS_KEPT || b->tasks.runs.room > ROWS_KEPT) rows_fini(&b->tasks);
    b->tasks.count = b->tasks.runs.count = b->tasks.filled = 0;
    each_refs(b, b->has_more, refs_clear);
    each_buf(b, b->has_more, buf_clear);
    b->has_more = b->drain = b->has_registered = b->frees_objects = false;
    b->heard = 0;
}

void mr_sched_runs_grow(struct mr_sched_runs_out *r)
{
    uint32_t room = r->room ? 2 * r->room : RUNS_MIN;
    mr_assert(room > r->room);
    r->p = mr_grow(r->p, r->room * sizeof *r->p, room * sizeof *r->p);
    r->room = room;
}

static void refs_grow(struct mr_sched_refs_out *r)
{
    uint32_t room = r->room ? 2 * r->room : ROWS_MIN;
    mr_assert(room > r->room);
    uint32_t *block = mr_grow(NULL, 0, 2 * (size_t)room * sizeof *block);
    if (r->count) {
        memcpy(block, r->index, r->count * sizeof *block);
        memcpy(block + room, r->attempt, r->count * sizeof *block);
    }
    mr_release(r->index);
    r->index = block;
    r->attempt = block + room;
    r->room = room;
}

void mr_sched_rows_grow(struct mr_sched_rows *r)
{
    uint32_t room = r->room ? 2 * r->room : ROWS_MIN;
    mr_assert(room > r->room);
    size_t bytes = MR_COLUMNS * (size_t)room * sizeof *r->block;
    uint32_t *block = mr_grow(NULL, bytes, bytes);
    for (size_t c = 0; c < MR_COLUMNS; c++)
        if (r->filled >> c & 1)
            memcpy(block + c * room, r->block + c * r->room, r->count * sizeof *block);
    mr_release(r->block);
    r->block = block;
    r->room = room;
}

/* Adds column `c` to the message. Until now the message had no such column, which means that every
 * row has the column's usual value. So all rows so far get this value. */
void mr_sched_rows_fill(struct mr_sched_rows *r, enum mr_sched_column c)
{
    uint32_t usual = mr_sched_usual(r, c);
    r->filled |= 1u << c;
    uint32_t *column = mr_sched_column(r, c);
    for (uint32_t i = 0; i < r->count; i++)
        column[i] = usual;
}

void mr_sched__refs_add(struct mr_sched_refs_out *r, uint64_t job, uint32_t index, uint32_t attempt)
{
    mr_sched_runs_add(&r->runs, job, false);
    if (r->count == r->room) refs_grow(r);
    r->index[r->count] = index;
    r->attempt[r->count++] = attempt;
}
