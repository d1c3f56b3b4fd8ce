/* A whole graph as bytes: what the journal keeps (cut into chunks anywhere) and what a client may
 * send as columns. Versioned, little endian, checksummed; layout in columns.h. */
#pragma once

#include "graph/build/builder.h"

/* Appends the graph. MR_ELIMIT if the buffer's ceiling is reached. */
int mr_graph_to_bytes(const struct mr_graph *g, struct mr_buf *out, struct mr_error *e);

/* The same bytes in pieces, full but for the last: each is asked for when the one before is full,
 * and has room for the `n` bytes that come; all have `total`. */
struct mr_graph_pieces {
    unsigned char *(*next)(void *ctx, size_t n, uint64_t total);
    void *ctx;
    size_t bytes; /* of one */
    uint64_t bytes_max;
};
int mr_graph_to_pieces(const struct mr_graph *g, const struct mr_graph_pieces *to, uint64_t *total,
    struct mr_error *e);

/* Reads back exactly what was written, canonical order included; hashes are computed anew.
 * Everything is checked: MR_EFORMAT for what no mr_graph_to_bytes wrote. */
int mr_graph_from_bytes(struct mr_str bytes, struct mr_graph **out, struct mr_error *e);

/* Columns from a client: nodes in any order, neither culled nor ordered; they are added to a
 * builder and take the way of every other submitted graph. */
int mr_builder_add_bytes(struct mr_builder *b, struct mr_str bytes, struct mr_error *e);
