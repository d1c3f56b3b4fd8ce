/* The rows of a stored array: a tensor, or a collection of tensors cut along axis 0. Rows are read
 * where they lie, in the mapped partitions. */
#pragma once

#include "ops/op.h"
#include "store/arena/client.h"
#include "store/object/tensor.h"
#include "train/feed/row_plan.h"

#define MR_FEED_PARTS_MAX 65536 /* partitions of one array */

struct mr_feed_store { /* access to the object store; lent for the life of the rows */
    /* `source`: address from `find`; NULL: unknown. */
    int (*get)(void *ctx, mr_object_id id, const char *source, struct mr_store_view *out,
        struct mr_error *e);
    void (*release)(void *ctx, struct mr_store_view *view);
    void *ctx;
    /* For an error text: memory of the store, and how much of it is pinned. May be NULL. */
    void (*room)(void *ctx, uint64_t *memory, uint64_t *pinned);
    /* Finds, for objects that are wanted, the addresses of other stores that have them; NULL: the
     * object is here, or no store is known. The texts live as long as the feed. May be NULL. */
    void (*find)(void *ctx, const mr_object_id *ids, uint32_t n, const char **sources);
};

struct mr_feed_moved { /* fetched from stores of other nodes, by the first feed of a node */
    uint64_t parts, bytes;
};

struct mr_rows;

/* `arg`: an operator's argument, by reference or inline. `what` ("data.train.x") begins every error
 * text. All three are lent for the life of the rows. */
int mr_rows_open(const char *what, const struct mr_arg *arg, const struct mr_feed_store *store,
    struct mr_rows **out, struct mr_error *e);
/* The same from the bytes of a value. */
int mr_rows_open_value(const char *what, struct mr_str extent, const struct mr_feed_store *store,
    struct mr_rows **out, struct mr_error *e);
void mr_rows_close(struct mr_rows **r);

uint64_t mr_rows_count(const struct mr_rows *r);
uint64_t mr_rows_bytes(const struct mr_rows *r); /* of one row */
bool mr_rows_is_drawn(const struct mr_rows *r);  /* generated test data (store/object/value.h) */
/* x has to be float32 with `inputs` numbers a row. */
int mr_rows_check_x(const struct mr_rows *r, uint64_t inputs, struct mr_error *e);
/* y has to be class numbers (integers below `outputs`), or float32 rows of `outputs`. */
int mr_rows_check_y(const struct mr_rows *r, uint64_t outputs, bool *is_index, struct mr_error *e);

/* Partitions: their rows and bytes. Returns the object; no id: the partition is mapped already, or
 * came with the task. */
uint32_t mr_rows_parts(const struct mr_rows *r);
mr_object_id mr_rows_part(const struct mr_rows *r, uint32_t part, struct mr_row_part *out);

/* Maps the partitions of these rows. Call before mr_rows_at. */
int mr_rows_map(
    struct mr_rows *r, const struct mr_row_range *ranges, uint32_t count, struct mr_error *e);
struct mr_feed_moved mr_rows_moved(const struct mr_rows *r);
const void *mr_rows_at(const struct mr_rows *r, uint64_t i); /* row i */
/* The class numbers of `n` rows as int32. Each must be from 0 to outputs - 1; with one output any
 * int32 is right. */
int mr_rows_classes(const struct mr_rows *r, uint64_t first, uint64_t n, uint64_t outputs,
    int32_t *out, struct mr_error *e);
