/* Makes a graph from the JSON of a job (json.h). */
#include "graph/json/json.h"

#include "base/limits.h"
#include "graph/json/internal.h"
#include "graph/json/slice.h"

static int fill(struct mr_str text, const struct mr_json_slices *slices,
    const struct mr_graph_catalogue *catalogue, const struct mr_json_limits *limits,
    struct mr_builder **out, struct mr_error *e)
{
    yyjson_doc *doc = mr_json_parse_rest(text, slices, e);
    if (!doc) return e->code;
    const struct mr_json_entries_source entries = {.text = text, .slices = slices};
    MR_AUTO(mr_json_free) struct mr_json *j = mr_json_new(limits, catalogue, e);
    int err = mr_json_document(j, yyjson_doc_get_root(doc), &entries);
    if (!err) *out = MR_STEAL(j->b);
    yyjson_doc_free(doc);
    return err;
}

/* Reads a large text in slices (slice.h). After an error in a slice, the text is read again as a
 * whole, and `e` gets the error of that second reading. */
static int to_builder(struct mr_str text, const struct mr_graph_catalogue *catalogue,
    const struct mr_json_limits *limits, struct mr_builder **out, struct mr_error *e)
{
    struct mr_error own;
    if (!e) e = &own;
    if (text.n > MR_JOB_BODY_BYTES_MAX)
        return mr_fail(e, MR_ETOOBIG, "the job has %zu bytes, the limit is %zu", text.n,
            MR_JOB_BODY_BYTES_MAX);
    struct mr_json_slices slices;
    if (text.n < (size_t)limits->slice_bytes * 4 ||
        !mr_json_slices_find(text, limits->slice_bytes, &slices))
        return fill(text, NULL, catalogue, limits, out, e);
    int err =
        slices.keys_count > limits->nodes_max
            ? mr_fail(e, MR_ELIMIT, "more than %u tasks and values in one job", limits->nodes_max)
            : fill(text, &slices, catalogue, limits, out, e);
    mr_json_slices_fini(&slices);
    if (!err || err == MR_ELIMIT) return err;
    return fill(text, NULL, catalogue, limits, out, e);
}

int mr_graph_from_json_within(struct mr_str text, const struct mr_graph_catalogue *catalogue,
    const struct mr_json_limits *limits, struct mr_graph **out, struct mr_error *e)
{
    struct mr_builder *b = NULL;
    int err = to_builder(text, catalogue, limits, &b, e);
    return err ? err : mr_graph_build(&b, catalogue, out, e);
}

int mr_graph_from_json(struct mr_str text, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e)
{
    const struct mr_json_limits limits = mr_json_widest(text.n);
    return mr_graph_from_json_within(text, catalogue, &limits, out, e);
}

int mr_graph_from_json_buf(struct mr_buf *text, const struct mr_graph_catalogue *catalogue,
    const struct mr_graph_parallel *parallel, struct mr_graph **out, struct mr_error *e)
{
    struct mr_builder *b = NULL;
    struct mr_json_limits limits = mr_json_widest(text->n);
    limits.parallel = parallel;
    int err = to_builder(mr_buf_str(text), catalogue, &limits, &b, e);
    mr_buf_fini(text);
    return err ? err : mr_graph_build(&b, catalogue, out, e);
}
