/* Batches from arrays: rows of x and y that lie in stored tensors, or in collections cut along axis
 * 0, stay where they are; a batch is gathered from the mapped partitions. A feed serves one
 * worker's share of the rows, in an order drawn anew each epoch from (seed, epoch, worker), and
 * finds any step again by its number: that is how a replaced worker goes on. Which rows are its
 * share stands in row_plan.h.
 *
 * Knows values and rows; knows nothing of sessions, and of stores only what it is lent. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "nn/net/net.h"
#include "ops/op.h"
#include "store/arena/client.h"
#include "store/object/tensor.h"
#include "train/feed/row_plan.h"

#define MR_FEED_PARTS_MAX 65536

struct mr_feed_store { /* lent for the feed's life */
    /* `source`: from `find`; NULL: unknown. */
    int (*get)(void *ctx, mr_object_id id, const char *source, struct mr_store_view *out,
        struct mr_error *e);
    void (*release)(void *ctx, struct mr_store_view *view);
    void *ctx;
    /* For a sentence about what does not fit: the store's memory, and what of it is pinned. */
    void (*room)(void *ctx, uint64_t *memory, uint64_t *pinned); /* may be NULL */
    /* These are wanted: where are those that are not here? Addresses of stores, NULL: here, or
     * unknown; as long as the feed. May be NULL. */
    void (*find)(void *ctx, const mr_object_id *ids, uint32_t n, const char **sources);
};

struct mr_feed_spec {
    uint64_t inputs;  /* numbers of one example */
    uint64_t outputs; /* of the model */
    uint32_t batch;
    uint32_t worker, workers;          /* which share of how many */
    const struct mr_row_range *ranges; /* the share, as many rows as of the even split; copied */
    uint32_t ranges_count;             /* 0: that of the even split */
    bool shuffle;
    bool keep; /* the rest of an epoch is a batch too, filled up from the share's start */
    uint64_t seed;
};

struct mr_feed;

/* `x`, `y`: arguments of an operator, by reference or inline; lent for the feed's life. `name`
 * ("data.train") opens every sentence about what is wrong with them. */
int mr_feed_open(const struct mr_feed_spec *spec, const char *name, const struct mr_arg *x,
    const struct mr_arg *y, const struct mr_feed_store *store, struct mr_feed **out,
    struct mr_error *e);
void mr_feed_close(struct mr_feed **f);

bool mr_feed_is_drawn(const struct mr_feed *f);  /* x or y is of drawn data (value.h) */
uint64_t mr_feed_rows(const struct mr_feed *f);  /* of this share */
uint64_t mr_feed_steps(const struct mr_feed *f); /* an epoch; the same for all workers */

/* What had to be brought from other nodes' stores, by this feed before all others of its node. */
struct mr_feed_moved {
    uint64_t parts, bytes;
};
struct mr_feed_moved mr_feed_moved(const struct mr_feed *f);

/* Batch number `step` of all epochs, in the feed's own buffers until the next call. */
void mr_feed_batch(struct mr_feed *f, uint64_t step, struct mr_nn_batch *out);
/* Rows of the share as they stand, from `first` on, `n` of at most `batch`; without a copy where
 * they lie together. */
void mr_feed_range(struct mr_feed *f, uint64_t first, uint32_t n, struct mr_nn_batch *out);

/* ---- pieces, for feeds from queues ----------------------------------------------------------- */

struct mr_rows; /* an array cut along axis 0 */

/* `what` ("data.train.x") must live as long. */
int mr_rows_open(const char *what, const struct mr_arg *arg, const struct mr_feed_store *store,
    struct mr_rows **out, struct mr_error *e);
/* The value `extent`, which stays the caller's. */
int mr_rows_open_value(const char *what, struct mr_str extent, const struct mr_feed_store *store,
    struct mr_rows **out, struct mr_error *e);
void mr_rows_close(struct mr_rows **r);
uint64_t mr_rows_count(const struct mr_rows *r);
bool mr_rows_is_drawn(const struct mr_rows *r);
/* x: float32, `inputs` numbers a row. */
int mr_rows_check_x(const struct mr_rows *r, uint64_t inputs, struct mr_error *e);
/* y: class numbers (whole numbers below `outputs`), or float32 rows of `outputs`. */
int mr_rows_check_y(const struct mr_rows *r, uint64_t outputs, bool *is_index, struct mr_error *e);
/* Maps what these rows lie in. Before mr_rows_at. */
int mr_rows_map(
    struct mr_rows *r, const struct mr_row_range *ranges, uint32_t count, struct mr_error *e);
struct mr_feed_moved mr_rows_moved(const struct mr_rows *r);
/* Its partitions: rows and bytes, and under which ids (none: it is here already, or comes along
 * with the task). */
uint32_t mr_rows_parts(const struct mr_rows *r);
mr_object_id mr_rows_part(const struct mr_rows *r, uint32_t part, struct mr_row_part *out);
const void *mr_rows_at(const struct mr_rows *r, uint64_t i); /* one row */
uint64_t mr_rows_bytes(const struct mr_rows *r);             /* of one row */
/* Class numbers of rows first … as int32, each checked: 0 … outputs - 1, or any with one output. */
int mr_rows_classes(const struct mr_rows *r, uint64_t first, uint64_t n, uint64_t outputs,
    int32_t *out, struct mr_error *e);
