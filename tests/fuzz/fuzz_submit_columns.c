/* Reads the messages of a SubmitStream on the fast path, mr_pb_stream_add, and on the slow path,
 * mr_pb_columns_add. Messages that the fast path accepts must be accepted by the slow path, and
 * both must give the same graph. The input is messages, each after a byte B: the message has B
 * bytes or, if B is 128 or more, 16 * (B - 127) bytes. */
#include "base/alloc.h"
#include "base/assert.h"
#include "graph/bytes/bytes.h"
#include "services/scheduler/submit/pb_columns.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void frame(const uint8_t *data, size_t size, struct mr_buf *out)
{
    for (size_t at = 0; at < size;) {
        uint64_t n = data[at] < 128 ? data[at] : (data[at] - 127u) * 16u;
        at++;
        n = MR_MIN(n, (uint64_t)(size - at));
        mr_buf_add(out, &n, sizeof n);
        mr_buf_add(out, data + at, (size_t)n);
        at += (size_t)n;
    }
}

static void build(struct mr_builder **b, struct mr_buf *out, bool *good)
{
    struct mr_graph *g = NULL;
    *good = mr_graph_build(b, NULL, &g, NULL) == MR_OK;
    if (!*good) return;
    mr_graph_check(g);
    int err = mr_graph_to_bytes(g, out, NULL);
    mr_assert(!err);
    mr_graph_free(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_buf framed, fast, slow;
    mr_buf_init(&framed, size * 10 + 64);
    mr_buf_init(&fast, (size_t)1 << 26);
    mr_buf_init(&slow, (size_t)1 << 26);
    frame(data, size, &framed);
    struct mr_pb_stream *s = mr_pb_stream_new();
    for (size_t at = 0; at < framed.n;)
        mr_pb_stream_add(s, mr_pb_framed_next(mr_buf_str(&framed), &at));
    struct mr_builder *b = mr_pb_stream_end(s);
    mr_pb_stream_free(&s);
    struct mr_builder *words = mr_builder_new();
    struct mr_error e = {0};
    int err = mr_pb_columns_add(words, &framed, 1, &e);
    mr_assert(!b || !err);
    if (b) {
        bool is_good = false, is_good_too = false;
        build(&b, &fast, &is_good);
        build(&words, &slow, &is_good_too);
        mr_assert(is_good == is_good_too);
        mr_assert(fast.n == slow.n && (!fast.n || memcmp(fast.p, slow.p, fast.n) == 0));
    }
    mr_builder_free(&words);
    mr_buf_fini(&framed);
    mr_buf_fini(&fast);
    mr_buf_fini(&slow);
    return 0;
}
