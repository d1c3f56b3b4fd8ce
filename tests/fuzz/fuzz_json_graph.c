/* Reads a job in JSON. An accepted job must be a valid graph whose binary form reads back as the
 * same graph. A refused job must have an error text. */
#include "base/assert.h"
#include "base/utf8.h"
#include "graph/bytes/bytes.h"
#include "graph/json/json.h"
#include "graph/json/stream.h"
#include "tests/unit/graph/same.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool find_op(const void *ctx, struct mr_str op, struct mr_graph_op_info *out)
{
    static const struct mr_graph_param params[] = {
        {MR_STR_INIT("x"), true}, {MR_STR_INIT("axis"), false}};
    (void)ctx;
    bool inc = mr_str_eq(op, MR_STR("inc"));
    *out = (struct mr_graph_op_info){params, inc ? 1 : 2, !inc, !inc};
    return inc || mr_str_eq(op, MR_STR("sum")) || mr_str_eq(op, MR_STR("identity"));
}

static struct mr_str name_at(const void *ctx, uint32_t i)
{
    (void)ctx;
    return i < 1 ? MR_STR("inc") : (struct mr_str){0};
}

static const struct mr_graph_catalogue catalogue = {find_op, name_at, NULL};

static void check_bytes(const struct mr_graph *g)
{
    struct mr_error e = {0};
    struct mr_buf once, twice;
    struct mr_graph *again = NULL;
    mr_buf_init(&once, (size_t)1 << 28);
    mr_buf_init(&twice, (size_t)1 << 28);
    int err = mr_graph_to_bytes(g, &once, &e);
    mr_assert(!err);
    err = mr_graph_from_bytes(mr_buf_str(&once), &again, &e);
    if (err) MR_PANIC("own bytes refused: %s", e.text);
    err = mr_graph_to_bytes(again, &twice, &e);
    mr_assert(!err);
    mr_assert(mr_str_eq(mr_buf_str(&once), mr_buf_str(&twice)));
    mr_graph_free(&again);
    mr_buf_fini(&once);
    mr_buf_fini(&twice);
}

/* Runs the items on the calling thread, the last item first. */
static void run_backwards(
    void *ctx, void (*work)(void *arg, uint32_t item, uint32_t worker), void *arg, uint32_t count)
{
    (void)ctx;
    while (count-- > 0)
        work(arg, count, count % 2);
}

static const struct mr_graph_parallel parallel = {2, run_backwards, NULL};

/* Reads the text in pieces of `piece_bytes`, as from a network. Returns MR_OK with the graph in
 * `out`, or an error code. */
static int from_pieces(struct mr_str text, size_t piece_bytes, const struct mr_json_limits *limits,
    struct mr_graph **out)
{
    struct mr_json_stream *a = mr_json_stream_new_within(limits);
    for (size_t at = 0; at < text.n; at += piece_bytes) {
        struct mr_buf piece;
        mr_buf_init(&piece, text.n);
        mr_buf_add(&piece, text.p + at, MR_MIN(piece_bytes, text.n - at));
        mr_json_stream_feed(a, &catalogue, &piece);
    }
    int err = mr_json_stream_end(a, &catalogue, out, NULL);
    mr_json_stream_free(&a);
    return err;
}

/* Reads the text again in slices of 16 bytes, on the threads of `by` (NULL: on this thread), and in
 * pieces of `piece_bytes` (0: the text is there as a whole). Checks that the result is `want` and
 * the graph equals `g`. */
static void check_slices(struct mr_str text, const struct mr_graph_parallel *by, size_t piece_bytes,
    int want, const struct mr_graph *g)
{
    const struct mr_json_limits limits = {2000, (size_t)1 << 20, 16, by};
    struct mr_graph *sliced = NULL;
    int err = piece_bytes ? from_pieces(text, piece_bytes, &limits, &sliced)
                          : mr_graph_from_json_within(text, &catalogue, &limits, &sliced, NULL);
    /* With slices, a limit may be reached before another error is found. */
    mr_assert(err == want || (want && (err == MR_ELIMIT || want == MR_ELIMIT)));
    if (!g) return;
    if (piece_bytes) {
        mr_assert(same_graph(g, sliced));
        mr_graph_free(&sliced);
        return;
    }
    struct mr_buf a, b;
    mr_buf_init(&a, (size_t)1 << 28);
    mr_buf_init(&b, (size_t)1 << 28);
    (void)mr_graph_to_bytes(g, &a, NULL);
    (void)mr_graph_to_bytes(sliced, &b, NULL);
    mr_assert(mr_str_eq(mr_buf_str(&a), mr_buf_str(&b)));
    mr_buf_fini(&a);
    mr_buf_fini(&b);
    mr_graph_free(&sliced);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct mr_json_limits limits = {2000, (size_t)1 << 20, 1 << 20, NULL};
    struct mr_error e = {0};
    struct mr_graph *g = NULL;
    struct mr_str text = mr_str_of(data, size);
    int err = mr_graph_from_json_within(text, &catalogue, &limits, &g, &e);
    check_slices(text, NULL, 0, err, g);
    check_slices(text, &parallel, 0, err, g);
    check_slices(text, &parallel, 1 + size % 40, err, g);
    if (err) {
        mr_assert(!g);
        mr_assert(e.code == err);
        mr_assert(e.text[0] && mr_utf8_is_valid(mr_str(e.text)));
        return 0;
    }
    mr_graph_check(g);
    check_bytes(g);
    mr_graph_free(&g);
    return 0;
}
