/* The cluster and the offline files both give a graph and spans (struct mr_trace_span), of which
 * recorded.h makes the recorded job. */
#include "cli/trace/whatif_read.h"

#include "base/alloc.h"
#include "cli/trace/profile_offline.h"
#include "session/up.h"

#include <inttypes.h>
#include <xxhash.h>

#define PAGE_SPANS 100000u
#define GRAPH_NODES_MAX 100000u /* most nodes that the API's method Graph returns */

/* ---- offline --------------------------------------------------------------------------------- */

static int read_offline(struct mr_whatif_reading *r, const struct mr_offline_options *o,
    const char *text, struct mr_error *e)
{
    mr_job_id job;
    struct mr_history *h = NULL;
    int err = mr_offline_open(o, text, &job, &h, e);
    if (!err) err = mr_recorded_graph(&r->recorded, h, job, e);
    if (!err) err = mr_recorded_spans(&r->recorded, h, job, &r->not_recorded, e);
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
    mr_recorded_tasks(&r->recorded, (uint32_t)count);
    mr_index_init(&r->keys, MR_MAX((uint32_t)count, 16u));
    r->key = mr_alloc_array(MR_MAX(count, (uint64_t)1), sizeof *r->key);
    yyjson_arr_foreach(nodes, at, max, node)
    {
        struct mr_str key = text_of(node, "key");
        r->key[at] = key;
        mr_index_add(&r->keys, XXH3_64bits(key.p, key.n), (uint32_t)at, NULL, NULL);
        r->recorded.restricted += mr_json_get_bool(node, "restricted");
        r->recorded.job.tasks[at].is_target = mr_json_get_bool(node, "target");
        yyjson_arr_foreach(yyjson_obj_get(node, "inputs"), k, inputs, input)
        {
            uint64_t from = yyjson_get_uint(input);
            if (from < count) mr_recorded_input(&r->recorded, (uint32_t)at, (uint32_t)from);
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
        .restore_ns = mr_json_get_u64(v, "restore_ns"),
        .output_ns = mr_json_get_u64(v, "output_ns"),
        .late_ns = mr_json_get_u64(v, "late_ns"),
        .room_ns = mr_json_get_u64(v, "room_ns"),
        .delayed_ns = mr_json_get_u64(v, "delayed_ns"),
        .bytes = mr_json_get_u64(v, "nbytes")};
    if (s.index == MR_INDEX_NONE) return;
    s.op_id = mr_trace_names_number(&r->recorded.ops, text_of(v, "op"));
    s.worker_id = mr_trace_names_number(&r->recorded.workers, text_of(v, "worker"));
    mr_recorded_span(&r->recorded, &s);
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
    if (!err) r->recorded.job.is_unfused = mr_whatif_is_unfused(&r->recorded.job);
    mr_client_fini(&c);
    return err;
}

/* ---- both ------------------------------------------------------------------------------------ */

static int check(struct mr_whatif_reading *r, struct mr_error *e)
{
    yyjson_val *p = yyjson_doc_get_root(r->profile);
    if (!yyjson_obj_get(p, "critical_path"))
        return mr_fail(
            e, MR_ESTATE, "the job is not over; a prediction needs a job that has ended");
    const struct mr_recorded_times times = {.slots = (uint32_t)mr_json_get_u64(p, "slots"),
        .processors = (uint32_t)mr_json_get_u64(p, "processors"),
        .submitted = mr_json_get_u64(p, "from_ns"),
        .over = mr_json_get_u64(p, "from_ns") + mr_json_get_u64(p, "wall_ns")};
    int err = mr_recorded_finish(&r->recorded, &times, e);
    r->job = r->recorded.job;
    r->restricted = r->recorded.restricted;
    return err;
}

int mr_whatif_read(const struct mr_client_options *client, const struct mr_offline_options *offline,
    const char *job, struct mr_whatif_reading *out, struct mr_error *e)
{
    *out = (struct mr_whatif_reading){0};
    mr_recorded_init(&out->recorded);
    int err = mr_offline_is_wanted(offline) ? read_offline(out, offline, job, e)
                                            : read_online(out, client, job, e);
    return err ? err : check(out, e);
}

void mr_whatif_reading_fini(struct mr_whatif_reading *r)
{
    mr_recorded_fini(&r->recorded);
    if (r->key) mr_index_fini(&r->keys);
    mr_release(r->key);
    yyjson_doc_free(r->graph);
    yyjson_doc_free(r->profile);
}
