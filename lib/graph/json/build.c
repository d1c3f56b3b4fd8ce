/* Builds a graph from a parsed document, and sets the limits of the builder. */
#include "graph/json/build.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "graph/json/internal.h"

struct mr_json *mr_json_new(const struct mr_json_limits *limits,
    const struct mr_graph_catalogue *catalogue, struct mr_error *e)
{
    struct mr_json *j = mr_alloc(sizeof *j);
    j->b = mr_builder_new();
    mr_builder_limit(j->b, limits->nodes_max, limits->args_bytes_max);
    j->b->parallel = limits->parallel;
    j->catalogue = catalogue;
    j->e = e;
    mr_buf_init(&j->text, MR_LITERAL_BYTES_MAX);
    return j;
}

void mr_json_free(struct mr_json **jp)
{
    struct mr_json *j = MR_STEAL(*jp);
    if (!j) return;
    mr_builder_free(&j->b);
    mr_buf_fini(&j->text);
    mr_release(j->frames);
    mr_release(j);
}

/* A large text is parsed in slices (slice.h) of about this many bytes. The parsed values of such a
 * slice fit into the cache of one processor core. */
#define SLICE_BYTES 65536

/* Returns the limits for a text of `text_bytes` bytes. A short document with "for" can ask for any
 * amount of keys and arguments, and each of their bytes is held several times while the graph is
 * built. So the bound on bytes grows with the text. */
struct mr_json_limits mr_json_widest(size_t text_bytes)
{
    size_t bytes = MR_MIN(MR_JOB_EXPAND_BYTES_MAX + 2 * text_bytes, MR_JOB_BODY_BYTES_MAX);
    return (struct mr_json_limits){MR_TASKS_MAX, bytes, SLICE_BYTES, NULL};
}

int mr_json_build(const struct mr_json_source *from, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e)
{
    const struct mr_json_limits limits = mr_json_widest(from->text_bytes);
    const struct mr_json_entries_source in_root = {.slices = NULL};
    MR_AUTO(mr_json_free) struct mr_json *j = mr_json_new(&limits, catalogue, e);
    j->given = from->given;
    j->is_any_kind = from->is_any_kind;
    int err = mr_json_document(j, from->root, &in_root);
    return err ? err : mr_graph_build(&j->b, catalogue, out, e);
}
