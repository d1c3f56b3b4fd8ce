/* The spans come from the cluster in pages, or with --offline from Redis and files block by block.
 * So memory holds one page or one block of spans, and the graph. With --offline the trace is read
 * twice: the first pass finds its earliest time. */
#include "cli/trace/timeline_export.h"

#include "account/training_shares.h"
#include "base/alloc.h"
#include "cli/export/export.h"
#include "cli/trace/span_names.h"
#include "host/os/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_SPANS 50000    /* spans of one page; the answer is also limited in bytes */
#define GRAPH_NODES 100000u /* most nodes that /v1/jobs/{id}/graph returns */

struct output {
    const char *path;
    /* Path of the temporary file that is written and replaces `path` at the end. NULL: `path` is
     * stdout or no regular file, and is written directly. */
    char *part;
    FILE *file;
    struct mr_export *export;
    int number; /* errno of the first write that failed */
};

struct columns { /* a graph that came from the cluster */
    uint32_t *input_at, *inputs, *dependent_at, *dependents;
    struct mr_trace_names keys; /* a node's number is the number of its key */
};

struct exporting {
    const struct mr_timeline_export *k;
    struct output outputs[2];
    unsigned outputs_count;
    struct mr_export_edges edges;
    unsigned char *is_target;
    struct columns columns;
    const struct mr_graph *graph; /* with --offline; NULL: the journal does not have it */
    uint64_t from_ns, spans, not_recorded;
    int err;
};

/* ---- files ----------------------------------------------------------------------------------- */

static int write_out(void *ctx, struct mr_str bytes)
{
    struct output *o = ctx;
    if (fwrite(bytes.p, 1, bytes.n, o->file) == bytes.n) return MR_OK;
    if (!o->number) o->number = errno;
    return mr_file_write_error(o->number);
}

static int output_add(struct exporting *x, const char *path, const struct mr_export_format *format,
    bool has_edges, struct mr_error *e)
{
    if (!path) return MR_OK;
    struct output *o = &x->outputs[x->outputs_count];
    struct stat about;
    bool is_stdout = !strcmp(path, "-");
    bool is_special = is_stdout || (!stat(path, &about) && !S_ISREG(about.st_mode));
    o->path = path;
    o->part = is_special ? NULL : mr_format("%s.part", path);
    o->file = is_stdout ? stdout : fopen(o->part ? o->part : path, "wb");
    if (!o->file) {
        int number = errno;
        mr_release(o->part);
        return mr_fail(
            e, mr_file_write_error(number), "%s cannot be written: %s", path, strerror(number));
    }
    const struct mr_export_config config = {.format = format,
        .about = {mr_str(x->k->job), x->from_ns},
        .edges = has_edges ? &x->edges : NULL,
        .write = write_out,
        .ctx = o};
    o->export = mr_export_open(&config);
    x->outputs_count++;
    return MR_OK;
}

static int outputs_open(struct exporting *x, bool has_edges, struct mr_error *e)
{
    int err = output_add(x, x->k->chrome, &mr_export_chrome, has_edges, e);
    return err ? err : output_add(x, x->k->perfetto, &mr_export_perfetto, has_edges, e);
}

/* Ends a file. `err`: the error of an earlier step, or MR_OK. Removes the temporary file if that
 * step or this one has failed. */
static int output_close(struct output *o, int err, struct mr_error *e)
{
    int write_err = mr_export_close(&o->export);
    if (o->file == stdout ? fflush(o->file) : fclose(o->file)) {
        if (!o->number) o->number = errno;
        write_err = mr_file_write_error(o->number);
    }
    bool is_whole = !err && !write_err;
    if (o->part && is_whole && rename(o->part, o->path)) {
        o->number = errno;
        write_err = mr_file_write_error(o->number);
        is_whole = false;
    }
    if (o->part && !is_whole) (void)unlink(o->part);
    mr_release(o->part);
    if (!write_err || (err && !o->number)) return err;
    return mr_fail(e, write_err, "%s cannot be written%s%s", o->path, o->number ? ": " : "",
        o->number ? strerror(o->number) : "");
}

static int outputs_close(struct exporting *x, int err, struct mr_error *e)
{
    for (unsigned i = 0; i < x->outputs_count; i++)
        err = output_close(&x->outputs[i], err, e);
    return err;
}

static int span_add(struct exporting *x, const struct mr_export_span *span)
{
    for (unsigned i = 0; i < x->outputs_count && !x->err; i++)
        x->err = mr_export_span(x->outputs[i].export, span);
    if (x->k->raster) mr_raster_add(x->k->raster, span);
    x->spans++;
    return x->err;
}

static void report(const struct exporting *x, bool has_edges)
{
    for (unsigned i = 0; i < x->outputs_count; i++)
        if (x->outputs[i].file != stdout)
            (void)fprintf(stderr, "millrace timeline: %s has %" PRIu64 " spans\n",
                x->outputs[i].path, x->spans);
    if (x->not_recorded)
        (void)fprintf(
            stderr, "millrace timeline: %" PRIu64 " spans are not recorded\n", x->not_recorded);
    if (!has_edges && x->outputs_count)
        (void)fprintf(stderr,
            "millrace timeline: the graph of the job is not known, or has more "
            "than %u nodes: there are no arrows between tasks\n",
            GRAPH_NODES);
}

/* ---- from the cluster ------------------------------------------------------------------------ */

static void columns_fini(struct columns *c)
{
    mr_release(c->input_at);
    mr_release(c->inputs);
    mr_release(c->dependent_at);
    mr_release(c->dependents);
    mr_trace_names_fini(&c->keys);
}

/* Fills the dependents of each node from the inputs. */
static void link_dependents(struct columns *c, uint32_t nodes)
{
    c->dependent_at = mr_alloc_array((size_t)nodes + 2, sizeof(uint32_t));
    c->dependents = mr_alloc_array(MR_MAX(c->input_at[nodes], 1u), sizeof(uint32_t));
    /* at[i] is the begin of the dependents of node i, and their end when they are filled in. The
     * end is the begin of the next node's dependents, so then dependent_at is right. */
    uint32_t *at = c->dependent_at + 1;
    for (uint32_t i = 0; i < c->input_at[nodes]; i++)
        at[c->inputs[i] + 1]++;
    for (uint32_t i = 0; i < nodes; i++)
        at[i + 1] += at[i];
    for (uint32_t i = 0; i < nodes; i++)
        for (uint32_t k = c->input_at[i]; k < c->input_at[i + 1]; k++)
            c->dependents[at[c->inputs[k]]++] = i;
}

/* Takes the nodes of a GraphResponse. Returns false if they make no valid graph. */
static bool columns_fill(struct exporting *x, yyjson_val *list, uint32_t nodes)
{
    struct columns *c = &x->columns;
    size_t at = 0, max = 0, edges = 0;
    yyjson_val *node = NULL;
    yyjson_arr_foreach(list, at, max, node) edges +=
        yyjson_arr_size(yyjson_obj_get(node, "inputs"));
    c->input_at = mr_alloc_array((size_t)nodes + 1, sizeof(uint32_t));
    c->inputs = mr_alloc_array(MR_MAX(edges, (size_t)1), sizeof(uint32_t));
    x->is_target = mr_alloc(MR_MAX(nodes, 1u));
    uint32_t n = 0;
    yyjson_arr_foreach(list, at, max, node)
    {
        size_t k = 0, k_max = 0;
        yyjson_val *input = NULL;
        yyjson_arr_foreach(yyjson_obj_get(node, "inputs"), k, k_max, input)
        {
            if (yyjson_get_uint(input) >= nodes) return false;
            c->inputs[n++] = (uint32_t)yyjson_get_uint(input);
        }
        c->input_at[at + 1] = n;
        x->is_target[at] = mr_json_get_bool(node, "target");
        if (mr_trace_names_number(&c->keys, mr_str(mr_json_get_text(node, "key"))) != at)
            return false;
    }
    link_dependents(c, nodes);
    x->edges = (struct mr_export_edges){
        nodes, c->input_at, c->inputs, c->dependent_at, c->dependents, x->is_target};
    return true;
}

static int ask_graph(struct exporting *x, const struct mr_client *c, const char *id,
    bool *has_edges, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    int err = mr_client_call(
        c, "GET", (struct mr_str){0}, &doc, e, "/v1/jobs/%s/graph?nodes_max=%u", id, GRAPH_NODES);
    if (err) return err;
    yyjson_val *nodes = yyjson_obj_get(yyjson_doc_get_root(doc), "nodes");
    size_t n = yyjson_arr_size(nodes);
    bool is_whole = mr_json_get_u64(yyjson_doc_get_root(doc), "nodes_count") == n;
    *has_edges = is_whole && columns_fill(x, nodes, (uint32_t)n);
    yyjson_doc_free(doc);
    return MR_OK;
}

static void span_of_json(struct exporting *x, yyjson_val *s, struct mr_export_span *out)
{
    yyjson_val *t = yyjson_obj_get(s, "times");
    *out = (struct mr_export_span){.key = mr_str(mr_json_get_text(s, "key")),
        .op = mr_str(mr_json_get_text(s, "op")),
        .worker = mr_str(mr_json_get_text(s, "worker")),
        .outcome = mr_str(mr_json_get_text(s, "outcome")),
        .held = mr_str(mr_json_get_text(s, "held")),
        .node = MR_EXPORT_NODE_NONE,
        .slot = (uint32_t)mr_json_get_u64(s, "slot"),
        .attempt = (uint32_t)mr_json_get_u64(s, "attempt"),
        .ready = mr_json_get_u64(t, "ready_ns"),
        .sent = mr_json_get_u64(t, "sent_ns"),
        .received = mr_json_get_u64(t, "received_ns"),
        .inputs = mr_json_get_u64(t, "inputs_ns"),
        .started = mr_json_get_u64(t, "started_ns"),
        .finished = mr_json_get_u64(t, "finished_ns"),
        .accounted = mr_json_get_u64(t, "accounted_ns"),
        .cpu_ns = mr_json_get_u64(s, "cpu_ns"),
        .nbytes = mr_json_get_u64(s, "nbytes")};
    for (unsigned i = 0; i < MR_EXPORT_PARTS; i++)
        out->parts[i] = mr_json_get_u64(s, mr_export_part_name((enum mr_export_part)i));
    out->failed = !mr_str_eq(out->outcome, MR_STR("SPAN_OUTCOME_OK"));
    if (x->edges.nodes_count) out->node = mr_trace_names_number(&x->columns.keys, out->key);
}

/* Exports the spans of a page. Sets `*after` to the end of the last span; 0: no more pages are
 * wanted. */
static int page_add(struct exporting *x, yyjson_val *root, uint64_t *after)
{
    size_t at = 0, max = 0;
    yyjson_val *s = NULL;
    struct mr_export_span span = {0};
    x->not_recorded = mr_json_get_u64(root, "not_recorded");
    yyjson_arr_foreach(yyjson_obj_get(root, "spans"), at, max, s)
    {
        span_of_json(x, s, &span);
        int err = span_add(x, &span);
        if (err) return err;
    }
    bool is_enough = x->k->spans_max && x->spans >= x->k->spans_max;
    *after = mr_json_get_bool(root, "more") && !is_enough ? span.finished : 0;
    return MR_OK;
}

static int pages_add(
    struct exporting *x, const struct mr_client *c, const char *id, struct mr_error *e)
{
    uint64_t after = x->k->after_ns;
    int err = MR_OK;
    do {
        yyjson_doc *doc = NULL;
        uint64_t left = x->k->spans_max ? x->k->spans_max - x->spans : PAGE_SPANS;
        err = mr_client_call(c, "GET", (struct mr_str){0}, &doc, e,
            "/v1/jobs/%s/timeline?spans_max=%" PRIu64 "&after_ns=%" PRIu64, id,
            MR_MIN(left, (uint64_t)PAGE_SPANS), after);
        if (!err) err = page_add(x, yyjson_doc_get_root(doc), &after);
        yyjson_doc_free(doc);
    } while (!err && after);
    return err;
}

static int export_live(struct exporting *x, struct mr_error *e)
{
    struct mr_client c = {0};
    MR_AUTO(mr_free_ptr) char *id = mr_http_escape(mr_str(x->k->job));
    yyjson_doc *job = NULL;
    bool has_edges = false;
    int err = mr_client_open(x->k->client, &c, e);
    if (!err) err = mr_client_call(&c, "GET", (struct mr_str){0}, &job, e, "/v1/jobs/%s", id);
    if (!err) x->from_ns = mr_json_get_u64(yyjson_doc_get_root(job), "created_ns");
    /* The image of a report has no arrows, so it does not need the graph. */
    if (!err && (x->k->chrome || x->k->perfetto)) err = ask_graph(x, &c, id, &has_edges, e);
    if (!err) err = outputs_open(x, has_edges, e);
    if (!err) err = pages_add(x, &c, id, e);
    err = outputs_close(x, err, e);
    if (!err) report(x, has_edges);
    yyjson_doc_free(job);
    mr_client_fini(&c);
    return err;
}

/* ---- without the cluster --------------------------------------------------------------------- */

static void note_begin(void *ctx, const struct mr_trace_span *s)
{
    struct exporting *x = ctx;
    uint64_t first = s->ready ? s->ready : s->started;
    if (first && first < x->from_ns) x->from_ns = first;
}

static void on_span(void *ctx, const struct mr_trace_span *s)
{
    struct exporting *x = ctx;
    char number[24];
    bool is_enough = x->k->spans_max && x->spans >= x->k->spans_max;
    if (x->err || is_enough || !s->started || s->finished <= x->k->after_ns) return;
    (void)snprintf(number, sizeof number, "#%" PRIu32, s->index);
    mr_duration ran = s->finished > s->started ? s->finished - s->started : 0;
    bool is_known = x->graph && s->index < x->graph->nodes_count;
    const struct mr_export_span span = {
        .key = is_known ? mr_graph_key(x->graph, s->index) : mr_str(number),
        .op = s->op,
        .worker = s->worker,
        .outcome = mr_str(mr_span_outcome_name(s->outcome)),
        .held = mr_str(mr_span_held_name(s->held)),
        .node = s->index,
        .slot = s->slot,
        .attempt = s->attempt,
        .failed = strcmp(mr_span_outcome_name(s->outcome), "SPAN_OUTCOME_OK") != 0,
        .ready = s->ready,
        .sent = s->sent,
        .received = s->received,
        .inputs = s->inputs,
        .started = s->started,
        .finished = s->finished,
        .accounted = s->accounted,
        .cpu_ns = s->cpu_ns,
        .nbytes = s->bytes,
        .parts = {[MR_EXPORT_INPUT] = s->input_ns,
            [MR_EXPORT_RESTORE] = s->restore_ns,
            [MR_EXPORT_OUTPUT] = s->output_ns,
            [MR_EXPORT_ROOM] = s->room_ns,
            [MR_EXPORT_LATE] = s->late_ns,
            [MR_EXPORT_DELAYED] = s->delayed_ns,
            [MR_EXPORT_FEED] = mr_training_part_ns(s->training, MR_TRAINING_FEED, ran),
            [MR_EXPORT_PULL] = mr_training_part_ns(s->training, MR_TRAINING_PULL, ran),
            [MR_EXPORT_PUSH] = mr_training_part_ns(s->training, MR_TRAINING_PUSH, ran),
            [MR_EXPORT_WAIT] = mr_training_part_ns(s->training, MR_TRAINING_WAIT, ran)}};
    (void)span_add(x, &span);
}

static void take_graph(struct exporting *x, const struct mr_graph *g)
{
    x->graph = g;
    x->is_target = mr_alloc(MR_MAX(g->nodes_count, 1u));
    for (uint32_t i = 0; i < g->targets_count; i++)
        x->is_target[g->targets[i]] = 1;
    x->edges = (struct mr_export_edges){
        g->nodes_count, g->input_at, g->inputs, g->dependent_at, g->dependents, x->is_target};
}

static int export_offline(struct exporting *x, struct mr_error *e)
{
    mr_job_id job;
    struct mr_history *h = NULL;
    struct mr_graph *graph = NULL;
    const struct mr_history_visit begins = {NULL, note_begin, x}, spans = {NULL, on_span, x};
    x->from_ns = UINT64_MAX;
    int err = mr_offline_open(x->k->offline, x->k->job, &job, &h, e);
    if (!err) err = mr_history_spans(h, job, &begins, &x->not_recorded, e);
    if (!err && !mr_history_graph(h, job, &graph, NULL)) take_graph(x, graph);
    if (!err) err = outputs_open(x, graph != NULL, e);
    if (!err) err = mr_history_spans(h, job, &spans, &x->not_recorded, e);
    err = outputs_close(x, err ? err : x->err, e);
    if (!err) report(x, graph != NULL);
    mr_graph_free(&graph);
    mr_history_close(&h);
    return err;
}

int mr_timeline_export(const struct mr_timeline_export *k, struct mr_error *e)
{
    struct exporting x = {.k = k};
    mr_trace_names_init(&x.columns.keys);
    int err = mr_offline_is_wanted(k->offline) ? export_offline(&x, e) : export_live(&x, e);
    columns_fini(&x.columns);
    mr_release(x.is_target);
    return err;
}
