/* Finds the rows of a worker's share, draws their order for each epoch, and gathers batches. */
#include "train/feed/feed.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"

#include <stdio.h>

struct mr_feed {
    struct mr_feed_spec spec;
    char x_name[80], y_name[80];
    struct mr_rows *x, *y;
    struct mr_row_range *ranges; /* the ranges of rows that make up the share */
    uint64_t *starts; /* for each range, the number that its first row has within the share */
    uint32_t ranges_count;
    uint64_t rows;  /* number of rows in the share */
    uint64_t steps; /* number of steps in an epoch */
    bool is_index;
    int32_t *classes; /* class numbers of the share's rows */
    uint32_t *order;  /* order of the rows in epoch `epoch`; NULL: the stored order */
    uint64_t epoch;   /* UINT64_MAX: no order was drawn yet */
    float *x_batch;
    float *y_batch; /* y as rows of numbers; NULL: y is in y_index */
    int32_t *y_index;
};

void mr_feed_close(struct mr_feed **feed)
{
    struct mr_feed *f = *feed;
    if (!f) return;
    mr_rows_close(&f->x);
    mr_rows_close(&f->y);
    mr_release(f->ranges);
    mr_release(f->starts);
    mr_release(f->classes);
    mr_release(f->order);
    mr_release(f->x_batch);
    mr_release(f->y_batch);
    mr_release(f->y_index);
    mr_release(f);
    *feed = NULL;
}

bool mr_feed_is_drawn(const struct mr_feed *f)
{
    return mr_rows_is_drawn(f->x) || mr_rows_is_drawn(f->y);
}

uint64_t mr_feed_rows(const struct mr_feed *f)
{
    return f->rows;
}

uint64_t mr_feed_steps(const struct mr_feed *f)
{
    return f->steps;
}

struct mr_feed_moved mr_feed_moved(const struct mr_feed *f)
{
    struct mr_feed_moved x = mr_rows_moved(f->x), y = mr_rows_moved(f->y);
    return (struct mr_feed_moved){x.parts + y.parts, x.bytes + y.bytes};
}

/* Takes over the ranges of the row plan, which came over the network. Checks that they fit these
 * data. */
static int ranges_fill(struct mr_feed *f, const char *name, struct mr_error *e)
{
    const struct mr_feed_spec *s = &f->spec;
    uint64_t n = mr_rows_count(f->x), behind = 0, sum = 0, first = 0;
    f->rows = mr_row_plan_quota(n, s->worker, s->workers, &first);
    f->ranges_count = MR_MAX(s->ranges_count, 1u);
    f->ranges = mr_alloc_array(f->ranges_count, sizeof *f->ranges);
    f->starts = mr_alloc_array(f->ranges_count, sizeof *f->starts);
    f->ranges[0] = (struct mr_row_range){first, f->rows};
    for (uint32_t i = 0; i < s->ranges_count; i++) {
        struct mr_row_range r = s->ranges[i];
        f->ranges[i] = r;
        f->starts[i] = sum;
        bool fits = r.first >= behind && r.count && r.count <= f->rows - sum && r.first <= n &&
                    r.count <= n - r.first;
        if (!fits) break;
        behind = r.first + r.count;
        sum += r.count;
    }
    if (!s->ranges_count || sum == f->rows) return MR_OK;
    return mr_fail(e, MR_EFORMAT,
        "%s: the session's plan of rows is not of these data: worker %u has %llu of %llu rows",
        name, s->worker, (unsigned long long)f->rows, (unsigned long long)n);
}

/* Returns the number that row `row` of the share has within all rows. */
static uint64_t row_at(const struct mr_feed *f, uint64_t row)
{
    uint32_t low = 0, high = f->ranges_count - 1;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (f->starts[middle] <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return f->ranges[low].first + (row - f->starts[low]);
}

/* Finds the share, and the number of steps in an epoch. */
static int share_fill(struct mr_feed *f, const char *name, struct mr_error *e)
{
    const struct mr_feed_spec *s = &f->spec;
    uint64_t n = mr_rows_count(f->x);
    if (mr_rows_count(f->y) != n)
        return mr_fail(e, MR_EINVAL, "%s: x has %llu rows and y %llu; expected one y for each x",
            name, (unsigned long long)n, (unsigned long long)mr_rows_count(f->y));
    if (n / s->workers >= UINT32_MAX)
        return mr_fail(e, MR_ELIMIT, "%s: %llu rows are too many for %u workers", name,
            (unsigned long long)n, s->workers);
    /* the product of two 32-bit numbers does not overflow */
    uint64_t together = (uint64_t)s->batch * s->workers;
    f->steps = s->keep ? (n + together - 1) / together : n / together;
    if (!f->steps)
        return mr_fail(e, MR_EINVAL,
            "%s: %llu rows make no batch of %u for each of %u workers; make the batch smaller, or "
            "set data.remainder to \"keep\"",
            name, (unsigned long long)n, s->batch, s->workers);
    int err = ranges_fill(f, name, e);
    if (err) return err;
    if (!f->rows)
        return mr_fail(e, MR_EINVAL, "%s: %llu rows are too few for %u workers", name,
            (unsigned long long)n, s->workers);
    return MR_OK;
}

static int labels_fill(struct mr_feed *f, struct mr_error *e)
{
    if (!f->is_index) return MR_OK;
    f->classes = mr_alloc_array(f->rows, sizeof *f->classes);
    int err = MR_OK;
    for (uint32_t i = 0; i < f->ranges_count && !err; i++)
        err = mr_rows_classes(f->y, f->ranges[i].first, f->ranges[i].count, f->spec.outputs,
            f->classes + f->starts[i], e);
    return err;
}

int mr_feed_open(const struct mr_feed_spec *spec, const char *name, const struct mr_arg *x,
    const struct mr_arg *y, const struct mr_feed_store *store, struct mr_feed **out,
    struct mr_error *e)
{
    mr_assert(spec->batch && spec->workers && spec->worker < spec->workers);
    MR_AUTO(mr_feed_close) struct mr_feed *f = mr_alloc(sizeof *f);
    f->spec = *spec; /* ranges_fill copies `ranges` */
    f->epoch = UINT64_MAX;
    (void)snprintf(f->x_name, sizeof f->x_name, "%s.x", name);
    (void)snprintf(f->y_name, sizeof f->y_name, "%s.y", name);
    int err = mr_rows_open(f->x_name, x, store, &f->x, e);
    if (!err) err = mr_rows_open(f->y_name, y, store, &f->y, e);
    if (!err) err = mr_rows_check_x(f->x, spec->inputs, e);
    if (!err) err = mr_rows_check_y(f->y, spec->outputs, &f->is_index, e);
    if (!err) err = share_fill(f, name, e);
    if (!err) err = mr_rows_map(f->x, f->ranges, f->ranges_count, e);
    if (!err) err = mr_rows_map(f->y, f->ranges, f->ranges_count, e);
    if (!err) err = labels_fill(f, e);
    if (err) return err;
    if (spec->shuffle) f->order = mr_alloc_array(f->rows, sizeof *f->order);
    f->x_batch = mr_alloc_aligned(spec->batch * mr_rows_bytes(f->x), 64);
    if (f->is_index)
        f->y_index = mr_alloc_array(spec->batch, sizeof *f->y_index);
    else
        f->y_batch = mr_alloc_aligned(spec->batch * mr_rows_bytes(f->y), 64);
    *out = MR_STEAL(f);
    return MR_OK;
}

/* Draws a random order (Fisher and Yates, "inside-out"), which depends only on seed, epoch and
 * worker. */
static void order_draw(struct mr_feed *f, uint64_t epoch)
{
    if (!f->order || f->epoch == epoch) return;
    struct mr_rng rng;
    mr_rng_init(&rng, mr_hash_u64(mr_hash_u64(f->spec.seed ^ mr_hash_u64(epoch)) ^ f->spec.worker));
    for (uint32_t i = 0; i < f->rows; i++) {
        uint32_t j = (uint32_t)mr_rng_below(&rng, (uint64_t)i + 1);
        f->order[i] = f->order[j];
        f->order[j] = i;
    }
    f->epoch = epoch;
}

/* Copies row `row` of the share to place `at` of the batch. */
static void put_row(struct mr_feed *f, uint32_t at, uint64_t row)
{
    uint64_t x_bytes = mr_rows_bytes(f->x), from = row_at(f, row);
    memcpy((char *)f->x_batch + at * x_bytes, mr_rows_at(f->x, from), x_bytes);
    if (f->is_index) {
        f->y_index[at] = f->classes[row];
        return;
    }
    uint64_t y_bytes = mr_rows_bytes(f->y);
    memcpy((char *)f->y_batch + at * y_bytes, mr_rows_at(f->y, from), y_bytes);
}

void mr_feed_batch(struct mr_feed *f, uint64_t step, struct mr_nn_batch *out)
{
    order_draw(f, step / f->steps);
    uint64_t at = step % f->steps * f->spec.batch;
    for (uint32_t i = 0; i < f->spec.batch; i++) {
        uint64_t row = (at + i) % f->rows;
        put_row(f, i, f->order ? f->order[row] : row);
    }
    *out = (struct mr_nn_batch){
        .x = f->x_batch, .y = {.index = f->y_index, .rows = f->y_batch}, .step = step};
}

/* True: rows first … first + n - 1 are contiguous in memory. */
static bool lie_together(const struct mr_rows *r, uint64_t first, uint32_t n)
{
    uint64_t bytes = mr_rows_bytes(r);
    const char *p = mr_rows_at(r, first);
    for (uint32_t i = 1; i < n; i++)
        if (mr_rows_at(r, first + i) != (const void *)(p + i * bytes)) return false;
    return true;
}

void mr_feed_range(struct mr_feed *f, uint64_t first, uint32_t n, struct mr_nn_batch *out)
{
    mr_assert(n && n <= f->spec.batch && first + n <= f->rows);
    uint64_t from = row_at(f, first);
    bool in_place = row_at(f, first + n - 1) == from + n - 1 && lie_together(f->x, from, n) &&
                    (f->is_index || lie_together(f->y, from, n));
    for (uint32_t i = 0; i < n && !in_place; i++)
        put_row(f, i, first + i);
    *out = (struct mr_nn_batch){.x = f->x_batch, .y = {.rows = f->y_batch}};
    if (in_place) out->x = mr_rows_at(f->x, from);
    if (f->is_index) out->y = (struct mr_nn_labels){.index = f->classes + first};
    if (in_place && !f->is_index) out->y.rows = mr_rows_at(f->y, from);
}
