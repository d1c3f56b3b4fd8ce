/* The cluster and the offline files both give spans (struct mr_trace_span), which become recorded
 * tasks. A task gets the times of its last attempt that succeeded. */
#include "cli/trace/whatif_read.h"

#include "base/alloc.h"
#include "cli/trace/profile_offline.h"
#include "session/up.h"

#include <inttypes.h>
#include <xxhash.h>

#define PAGE_SPANS 100000u
#define GRAPH_NODES_MAX 100000u /* most nodes that the API's method Graph returns */
#define SPANS_MAX (8u << 20)

static void tasks_begin(struct mr_whatif_reading *r, uint32_t count)
{
    r->job.tasks_count = count;
    r->job.tasks = mr_alloc_array(MR_MAX(count, 1u), sizeof *r->job.tasks);
    for (uint32_t i = 0; i < count; i++)
        r->job.tasks[i].op = MR_WHATIF_NONE;
}

static void input_add(struct mr_whatif_reading *r, uint32_t task, uint32_t input)
{
    struct mr_whatif_job *j = &r->job;
    if (j->inputs_count == r->inputs_room) {
        uint32_t room = MR_MAX(1024u, 2 * r->inputs_room);
        r->inputs =
            mr_grow(r->inputs, r->inputs_room * sizeof *r->inputs, room * sizeof *r->inputs);
        r->inputs_room = room;
    }
    if (!j->tasks[task].inputs_count++) j->tasks[task].inputs_at = j->inputs_count;
    r->inputs[j->inputs_count++] = input;
    j->inputs = r->inputs;
}

/* Takes a span. Its op_id and worker_id are indexes in r->ops and r->workers. */
static void span_take(struct mr_whatif_reading *r, const struct mr_trace_span *s)
{
    bool has_made = s->outcome == MR_OUTCOME_OK || s->outcome == MR_OUTCOME_USED_UP;
    if (!has_made || s->index >= r->job.tasks_count || !s->started) return;
    struct mr_whatif_task *t = &r->job.tasks[s->index];
    if (t->op != MR_WHATIF_NONE && t->accounted > s->accounted) return;
    t->op = s->op_id;
    t->worker = s->worker_id;
    t->slot = s->slot;
    t->ready = s->ready;
    t->sent = s->sent;
    t->received = s->received;
    t->inputs = s->inputs;
    t->started = s->started;
    t->finished = MR_MAX(s->finished, s->started);
    t->accounted = MR_MAX(s->accounted, t->finished);
    t->cpu_ns = s->cpu_ns;
    t->input_ns = s->input_ns;
    t->output_ns = s->output_ns;
    t->room_ns = s->room_ns;
    t->late_ns = s->late_ns;
    t->delayed_ns = s->delayed_ns;
    t->bytes = s->bytes;
}

/* ---- offline --------------------------------------------------------------------------------- */

static void graph_take(struct mr_whatif_reading *r, const struct mr_graph *g)
{
    tasks_begin(r, g->nodes_count);
    r->job.is_unfused = g->job.unfused;
    for (uint32_t i = 0; i < g->nodes_count; i++)
        r->restricted += mr_graph_is_restricted(g, i);
    for (uint32_t i = 0; i < g->nodes_count; i++)
        for (uint32_t k = g->input_at[i]; k < g->input_at[i + 1]; k++)
            input_add(r, i, g->inputs[k]);
    for (uint32_t i = 0; i < g->targets_count; i++)
        r->job.tasks[g->targets[i]].is_target = true;
}

static int read_offline(struct mr_whatif_reading *r, const struct mr_offline_options *o,
    const char *text, struct mr_error *e)
{
    const struct mr_trace_want want = {.kind = MR_TRACE_TIMELINE, .spans_max = SPANS_MAX};
    mr_job_id job;
    struct mr_history *h = NULL;
    struct mr_graph *graph = NULL;
    struct mr_trace_gather g;
    mr_trace_gather_init(&g, &want);
    int err = mr_offline_open(o, text, &job, &h, e);
    if (!err) err = mr_history_graph(h, job, &graph, e);
    if (!err) err = mr_history_trace(h, job, &g, &r->not_recorded, e);
    if (!err) graph_take(r, graph);
    for (uint32_t i = 0; !err && i < g.count; i++) {
        struct mr_trace_span s = g.spans[i];
        s.op_id = mr_trace_names_number(&r->ops, g.ops.names[s.op_id]);
        s.worker_id = mr_trace_names_number(&r->workers, g.workers.names[s.worker_id]);
        span_take(r, &s);
    }
    mr_trace_gather_fini(&g);
    mr_graph_free(&graph);
    mr_history_close(&h);
    if (!err) err = mr_profile_offline(o, text, 0, &r->profile, e);
    return err;
}

/* ---- from the cluster ------------------------------------------------------------------------ */

static bool key_eq(const void *ctx, uint32_t item, const void *key)
{
    const struct mr_whatif_reading *r = ctx;
    return mr_str_eq(r->key[item], *(const struct mr_str *)key);
}

static struct mr_str text_of(yyjson_val *object, const char *name)
{
    return mr_str(mr_json_get_text(object, name));
}

static int graph_ask(
    struct mr_whatif_reading *r, const struct mr_client *c, const char *id, struct mr_error *e)
{
    size_t at = 0, max = 0, k = 0, inputs = 0;
    yyjson_val *node = NULL, *input = NULL;
    int err = mr_client_call(c, "GET", (struct mr_str){0}, &r->graph, e,
        "/v1/jobs/%s/graph?nodes_max=%u", id, GRAPH_NODES_MAX);
    if (err) return err;
    yyjson_val *root = yyjson_doc_get_root(r->graph), *nodes = yyjson_obj_get(root, "nodes");
    uint64_t count = mr_json_get_u64(root, "nodes_count");
    if (count > yyjson_arr_size(nodes))
        return mr_fail(e, MR_ELIMIT,
            "the job has %" PRIu64 " nodes, and the cluster answers with at most %u: use --offline",
            count, GRAPH_NODES_MAX);
    tasks_begin(r, (uint32_t)count);
    mr_index_init(&r->keys, MR_MAX((uint32_t)count, 16u));
    r->key = mr_alloc_array(MR_MAX(count, (uint64_t)1), sizeof *r->key);
    yyjson_arr_foreach(nodes, at, max, node)
    {
        struct mr_str key = text_of(node, "key");
        r->key[at] = key;
        mr_index_add(&r->keys, XXH3_64bits(key.p, key.n), (uint32_t)at, NULL, NULL);
        r->restricted += mr_json_get_bool(node, "restricted");
        r->job.tasks[at].is_target = mr_json_get_bool(node, "target");
        yyjson_arr_foreach(yyjson_obj_get(node, "inputs"), k, inputs, input)
        {
            uint64_t from = yyjson_get_uint(input);
            if (from < count) input_add(r, (uint32_t)at, (uint32_t)from);
        }
    }
    return MR_OK;
}

static void span_read(struct mr_whatif_reading *r, yyjson_val *v)
{
    struct mr_str key = text_of(v, "key");
    yyjson_val *times = yyjson_obj_get(v, "times");
    struct mr_trace_span s = {
        .index = mr_index_find(&r->keys, XXH3_64bits(key.p, key.n), key_eq, r, &key),
        .outcome = mr_json_get_bool(v, "failed") ? MR_OUTCOME_ERROR : MR_OUTCOME_OK,
        .slot = (uint32_t)mr_json_get_u64(v, "slot"),
        .ready = mr_json_get_u64(times, "ready_ns"),
        .sent = mr_json_get_u64(times, "sent_ns"),
        .received = mr_json_get_u64(times, "received_ns"),
        .inputs = mr_json_get_u64(times, "inputs_ns"),
        .started = mr_json_get_u64(times, "started_ns"),
        .finished = mr_json_get_u64(times, "finished_ns"),
        .accounted = mr_json_get_u64(times, "accounted_ns"),
        .cpu_ns = mr_json_get_u64(v, "cpu_ns"),
        .input_ns = mr_json_get_u64(v, "input_ns"),
        .output_ns = mr_json_get_u64(v, "output_ns"),
        .late_ns = mr_json_get_u64(v, "late_ns"),
        .room_ns = mr_json_get_u64(v, "room_ns"),
        .delayed_ns = mr_json_get_u64(v, "delayed_ns"),
        .bytes = mr_json_get_u64(v, "nbytes")};
    if (s.index == MR_INDEX_NONE) return;
    s.op_id = mr_trace_names_number(&r->ops, text_of(v, "op"));
    s.worker_id = mr_trace_names_number(&r->workers, text_of(v, "worker"));
    span_take(r, &s);
}

static int spans_ask(
    struct mr_whatif_reading *r, const struct mr_client *c, const char *id, struct mr_error *e)
{
    uint64_t after = 0;
    for (bool more = true; more;) {
        size_t at = 0, max = 0;
        yyjson_doc *doc = NULL;
        yyjson_val *v = NULL;
        int err = mr_client_call(c, "GET", (struct mr_str){0}, &doc, e,
            "/v1/jobs/%s/timeline?spans_max=%u&after_ns=%" PRIu64, id, PAGE_SPANS, after);
        if (err) return err;
        yyjson_val *root = yyjson_doc_get_root(doc), *spans = yyjson_obj_get(root, "spans");
        yyjson_arr_foreach(spans, at, max, v) span_read(r, v);
        r->not_recorded = mr_json_get_u64(root, "not_recorded");
        more = mr_json_get_bool(root, "more") && max;
        if (more)
            after =
                mr_json_get_u64(yyjson_obj_get(yyjson_arr_get_last(spans), "times"), "finished_ns");
        yyjson_doc_free(doc);
    }
    return MR_OK;
}

static int read_online(struct mr_whatif_reading *r, const struct mr_client_options *o,
    const char *text, struct mr_error *e)
{
    struct mr_client c = {0};
    MR_AUTO(mr_free_ptr) char *id = mr_http_escape(mr_str(text));
    int err = mr_client_open(o, &c, e);
    if (!err)
        err = mr_client_call(
            &c, "GET", (struct mr_str){0}, &r->profile, e, "/v1/jobs/%s/profile?steps_max=1", id);
    if (!err) err = graph_ask(r, &c, id, e);
    if (!err) err = spans_ask(r, &c, id, e);
    if (!err) r->job.is_unfused = mr_whatif_is_unfused(&r->job);
    mr_client_fini(&c);
    return err;
}

/* ---- both ------------------------------------------------------------------------------------ */

static int check(struct mr_whatif_reading *r, struct mr_error *e)
{
    yyjson_val *p = yyjson_doc_get_root(r->profile);
    struct mr_whatif_job *j = &r->job;
    if (!yyjson_obj_get(p, "critical_path"))
        return mr_fail(
            e, MR_ESTATE, "the job is not over; a prediction needs a job that has ended");
    if (!r->workers.count) return mr_fail(e, MR_ENOENT, "no task of the job has run");
    j->ops = r->ops.names;
    j->ops_count = r->ops.count;
    j->workers_count = r->workers.count;
    j->slots = (uint32_t)mr_json_get_u64(p, "slots");
    j->processors = (uint32_t)mr_json_get_u64(p, "processors");
    j->submitted = mr_json_get_u64(p, "from_ns");
    j->over = j->submitted + mr_json_get_u64(p, "wall_ns");
    r->node = mr_alloc_array(j->workers_count, sizeof *r->node);
    mr_whatif_nodes_find(j, r->node);
    j->node = r->node;
    return MR_OK;
}

int mr_whatif_read(const struct mr_client_options *client, const struct mr_offline_options *offline,
    const char *job, struct mr_whatif_reading *out, struct mr_error *e)
{
    *out = (struct mr_whatif_reading){0};
    mr_trace_names_init(&out->ops);
    mr_trace_names_init(&out->workers);
    int err = mr_offline_is_wanted(offline) ? read_offline(out, offline, job, e)
                                            : read_online(out, client, job, e);
    return err ? err : check(out, e);
}

void mr_whatif_reading_fini(struct mr_whatif_reading *r)
{
    mr_trace_names_fini(&r->ops);
    mr_trace_names_fini(&r->workers);
    if (r->key) mr_index_fini(&r->keys);
    mr_release(r->key);
    mr_release(r->job.tasks);
    mr_release(r->inputs);
    mr_release(r->node);
    yyjson_doc_free(r->graph);
    yyjson_doc_free(r->profile);
}
