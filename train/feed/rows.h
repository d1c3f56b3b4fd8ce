/* The rows of a stored array. An array is one tensor, or a collection of tensors that follow each
 * other along axis 0. Each tensor is a partition of the array. Rows are read where they lie, in the
 * mapped partitions. */
#pragma once

#include "ops/op.h"
#include "store/arena/client.h"
#include "store/object/tensor.h"
#include "train/feed/row_plan.h"

#define MR_FEED_PARTS_MAX 65536 /* limit of the partitions of one array */

struct mr_feed_store { /* access to the object store; lent for the life of the rows */
    /* Gets an object. `source`: address from `find`; NULL: unknown. */
    int (*get)(void *ctx, mr_object_id id, const char *source, struct mr_store_view *out,
        struct mr_error *e);
    void (*release)(void *ctx, struct mr_store_view *view);
    void *ctx;
    /* Sets `*memory` to the memory of the store and `*pinned` to the pinned part of it, for an
     * error text. The function may be NULL. */
    void (*room)(void *ctx, uint64_t *memory, uint64_t *pinned);
    /* Called before objects are read. Sets sources[i] to the address of another store that has
     * ids[i]; NULL: the object is here, or no store is known to have it. The texts live as long as
     * the feed. The function may be NULL. */
    void (*find)(void *ctx, const mr_object_id *ids, uint32_t n, const char **sources);
};

/* Partitions that a feed fetched from stores of other nodes. A partition that several feeds of one
 * node read counts only for the first of these feeds. */
struct mr_feed_moved {
    uint64_t parts, bytes;
};

struct mr_rows;

/* Opens an array. `arg`: an operator's argument, by reference or inline. `what` ("data.train.x")
 * begins every error text. `what`, `arg` and `store` are lent for the life of the rows. */
int mr_rows_open(const char *what, const struct mr_arg *arg, const struct mr_feed_store *store,
    struct mr_rows **out, struct mr_error *e);
/* Does the same as mr_rows_open for an array whose value has the bytes `extent`, which are lent,
 * too. */
int mr_rows_open_value(const char *what, struct mr_str extent, const struct mr_feed_store *store,
    struct mr_rows **out, struct mr_error *e);
void mr_rows_close(struct mr_rows **r);

uint64_t mr_rows_count(const struct mr_rows *r);
/* Returns the size of one row. */
uint64_t mr_rows_bytes(const struct mr_rows *r);
/* True: the array is generated test data (store/object/value.h). */
bool mr_rows_is_drawn(const struct mr_rows *r);
/* Checks that x is float32 with `inputs` numbers a row. */
int mr_rows_check_x(const struct mr_rows *r, uint64_t inputs, struct mr_error *e);
/* Checks that y has class numbers (integers below `outputs`), or float32 rows of `outputs`
 * numbers. */
int mr_rows_check_y(const struct mr_rows *r, uint64_t outputs, bool *is_index, struct mr_error *e);

/* mr_rows_parts returns the number of partitions. mr_rows_part sets rows and bytes of `*out` to
 * those of one partition, and returns the id of its object; no id: the partition is mapped already,
 * or came with the task. */
uint32_t mr_rows_parts(const struct mr_rows *r);
mr_object_id mr_rows_part(const struct mr_rows *r, uint32_t part, struct mr_row_part *out);

/* Maps the partitions that have these rows. Called before mr_rows_at. */
int mr_rows_map(
    struct mr_rows *r, const struct mr_row_range *ranges, uint32_t count, struct mr_error *e);
struct mr_feed_moved mr_rows_moved(const struct mr_rows *r);
/* Returns row `i`. */
const void *mr_rows_at(const struct mr_rows *r, uint64_t i);
/* Writes the class numbers of `n` rows as int32. Each has to be from 0 to outputs - 1; with one
 * output any int32 is accepted. */
int mr_rows_classes(const struct mr_rows *r, uint64_t first, uint64_t n, uint64_t outputs,
    int32_t *out, struct mr_error *e);
