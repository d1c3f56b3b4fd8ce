/* Reads the binary columns of a graph, as the scheduler gets them from its journal or from a
 * client. The target appends the right checksum, so mutations of the input get past the check of
 * the checksum. */
#include "base/alloc.h"
#include "base/assert.h"
#include "graph/bytes/bytes.h"

#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *bytes = mr_alloc(size + 8);
    if (size) memcpy(bytes, data, size);
    uint64_t sum = XXH3_64bits(bytes, size);
    memcpy(bytes + size, &sum, sizeof sum);

    struct mr_error e = {0};
    struct mr_graph *g = NULL;
    int err = mr_graph_from_bytes(mr_str_of(bytes, size + 8), &g, &e);
    mr_assert(!err == !!g);
    if (g) {
        mr_graph_check(g);
        struct mr_buf again;
        mr_buf_init(&again, size + 4096);
        err = mr_graph_to_bytes(g, &again, &e);
        mr_assert(!err || err == MR_ELIMIT);
        mr_buf_fini(&again);
    }
    mr_graph_free(&g);

    struct mr_builder *b = mr_builder_new();
    err = mr_builder_add_bytes(b, mr_str_of(bytes, size + 8), &e);
    if (!err) err = mr_graph_build(&b, NULL, &g, &e);
    mr_builder_free(&b);
    mr_assert(!err == !!g);
    if (g) mr_graph_check(g);
    mr_graph_free(&g);
    mr_release(bytes);
    return 0;
}
