/* A whole graph as bytes, for the journal and for clients that send columns. The layout (columns.h)
 * has a version and a checksum, and is little endian. */
#pragma once

#include "graph/build/builder.h"

/* Appends the graph to `out`. MR_ELIMIT: the buffer is full. */
int mr_graph_to_bytes(const struct mr_graph *g, struct mr_buf *out, struct mr_error *e);

/* Receives the bytes of a graph in pieces of equal size; only the last piece may be smaller. `next`
 * returns memory for the `n` bytes of the next piece; `total` is the size of all pieces. */
struct mr_graph_pieces {
    unsigned char *(*next)(void *ctx, size_t n, uint64_t total);
    void *ctx;
    size_t bytes; /* bytes of each piece but the last */
    uint64_t bytes_max;
};
int mr_graph_to_pieces(const struct mr_graph *g, const struct mr_graph_pieces *to, uint64_t *total,
    struct mr_error *e);

/* Reads a graph back, in the same order, and computes its hashes again. All bytes are checked.
 * MR_EFORMAT: mr_graph_to_bytes cannot have written the bytes. */
int mr_graph_from_bytes(struct mr_str bytes, struct mr_graph **out, struct mr_error *e);

/* Adds a client's columns to a builder. The nodes may have any order and may include nodes that no
 * target needs; the build orders and culls them like those of any submitted graph. */
int mr_builder_add_bytes(struct mr_builder *b, struct mr_str bytes, struct mr_error *e);
