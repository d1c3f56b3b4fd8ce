/* `millrace timeline`: when each task of a job waited and ran. The data comes from the cluster or,
 * with --offline, from Redis and the scheduler's files beneath --dir. The output has the same
 * format in both cases. */
#include "base/alloc.h"
#include "account/training_shares.h"
#include "cli/internal.h"
#include "cli/trace/offline.h"
#include "cli/trace/span_names.h"
#include "cli/term/table.h"
#include "cli/trace/timeline_export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SPANS_INIT 1000
#define SPANS_MAX 100000 /* of one answer */

struct timeline_config {
    struct mr_client_options client;
    uint64_t spans;
    uint64_t after;
    const char *chrome;
    const char *perfetto;
    struct mr_offline_options offline;
};

static const struct mr_option timeline_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "spans",
        .type = MR_OPTION_U64,
        .value = "N",
        .help = "at most N spans (default: 1000; in a file: all)",
        .at = offsetof(struct timeline_config, spans),
        .min = 1,
        .max = UINT32_MAX},
    {.name = "after",
        .type = MR_OPTION_U64,
        .value = "NS",
        .init = "0",
        .help = "only spans that ended after this time (ns since 1970)",
        .at = offsetof(struct timeline_config, after),
        .max = UINT64_MAX},
    {.name = "chrome",
        .type = MR_OPTION_TEXT,
        .value = "FILE",
        .help = "write all spans as Trace Event Format (JSON) for chrome://tracing; -: stdout",
        .at = offsetof(struct timeline_config, chrome),
        .not_with = "json"},
    {.name = "perfetto",
        .type = MR_OPTION_TEXT,
        .value = "FILE",
        .help = "write all spans as a trace for ui.perfetto.dev; -: stdout",
        .at = offsetof(struct timeline_config, perfetto),
        .not_with = "json"},
    MR_OFFLINE_OPTIONS(struct timeline_config, offline),
};

const struct mr_config_spec mr_timeline_spec = {.program = "millrace timeline",
    .summary = "Shows when each task of a job waited and ran, in the order of their ends.",
    .usage = "[flags] JOB",
    .examples = "  millrace timeline j1kq07ab-7\n"
                "  millrace timeline j1kq07ab-7 --perfetto job.pftrace\n"
                "  millrace timeline j1kq07ab-7 --offline --dir ~/.millrace/cluster\n"
                "  millrace timeline j1kq07ab-7 --offline --redis 10.0.0.5:6379 --json\n",
    .options = timeline_options,
    .options_count = MR_ARRAY_LEN(timeline_options),
    .rest_min = 1,
    .rest_max = 1};

/* ---- without the scheduler ------------------------------------------------------------------- */

static void add_u64(yyjson_mut_doc *d, yyjson_mut_val *to, const char *name, uint64_t v)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, v);
    /* The number is quoted, as in the gateway's answers. */
    (void)yyjson_mut_obj_add_strcpy(d, to, name, text);
}

static void add_text(yyjson_mut_doc *d, yyjson_mut_val *to, const char *name, struct mr_str s)
{
    (void)yyjson_mut_obj_add_strncpy(d, to, name, s.p ? s.p : "", s.n);
}

static yyjson_mut_val *span_out(yyjson_mut_doc *d, const struct mr_trace_gather *g,
    const struct mr_graph *graph, const struct mr_trace_span *s)
{
    yyjson_mut_val *o = yyjson_mut_obj(d);
    char index[24];
    (void)snprintf(index, sizeof index, "#%" PRIu32, s->index);
    bool known = graph && s->index < graph->nodes_count;
    add_text(d, o, "key", known ? mr_graph_key(graph, s->index) : mr_str(index));
    add_text(d, o, "op", g->ops.names[s->op_id]);
    add_text(d, o, "worker", g->workers.names[s->worker_id]);
    (void)yyjson_mut_obj_add_uint(d, o, "slot", s->slot);
    (void)yyjson_mut_obj_add_uint(d, o, "attempt", s->attempt);
    (void)yyjson_mut_obj_add_bool(d, o, "failed", s->outcome != 0);
    yyjson_mut_val *t = yyjson_mut_obj_add_obj(d, o, "times");
    add_u64(d, t, "ready_ns", s->ready);
    add_u64(d, t, "sent_ns", s->sent);
    add_u64(d, t, "started_ns", s->started);
    add_u64(d, t, "finished_ns", s->finished);
    add_u64(d, t, "accounted_ns", s->accounted);
    add_u64(d, t, "received_ns", s->received);
    add_u64(d, t, "inputs_ns", s->inputs);
    add_u64(d, o, "cpu_ns", s->cpu_ns);
    (void)yyjson_mut_obj_add_str(d, o, "outcome", mr_span_outcome_name(s->outcome));
    add_u64(d, o, "nbytes", s->bytes);
    add_u64(d, o, "input_ns", s->input_ns);
    add_u64(d, o, "output_ns", s->output_ns);
    add_u64(d, o, "late_ns", s->late_ns);
    add_u64(d, o, "delayed_ns", s->delayed_ns);
    add_u64(d, o, "room_ns", s->room_ns);
    add_u64(d, o, "restore_ns", s->restore_ns);
    mr_duration ran = s->finished > s->started ? s->finished - s->started : 0;
    add_u64(d, o, "feed_ns", mr_training_part_ns(s->training, MR_TRAINING_FEED, ran));
    add_u64(d, o, "pull_ns", mr_training_part_ns(s->training, MR_TRAINING_PULL, ran));
    add_u64(d, o, "push_ns", mr_training_part_ns(s->training, MR_TRAINING_PUSH, ran));
    add_u64(d, o, "wait_ns", mr_training_part_ns(s->training, MR_TRAINING_WAIT, ran));
    (void)yyjson_mut_obj_add_str(d, o, "held", mr_span_held_name(s->held));
    return o;
}

static yyjson_doc *answer_of(
    const struct mr_trace_gather *g, const struct mr_graph *graph, uint64_t not_recorded)
{
    yyjson_mut_doc *d = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(d);
    yyjson_mut_doc_set_root(d, root);
    yyjson_mut_val *spans = yyjson_mut_obj_add_arr(d, root, "spans");
    for (uint32_t i = 0; i < g->count; i++)
        (void)yyjson_mut_arr_append(spans, span_out(d, g, graph, &g->spans[i]));
    (void)yyjson_mut_obj_add_bool(d, root, "more", g->more);
    add_u64(d, root, "not_recorded", not_recorded);
    yyjson_doc *doc = yyjson_mut_doc_imut_copy(d, NULL);
    yyjson_mut_doc_free(d);
    return doc;
}

static int read_from(struct mr_history *h, const struct timeline_config *k, mr_job_id job,
    yyjson_doc **doc, struct mr_error *e)
{
    const struct mr_trace_want want = {
        .kind = MR_TRACE_TIMELINE, .after_ns = k->after, .spans_max = (uint32_t)k->spans};
    struct mr_trace_gather g;
    struct mr_graph *graph = NULL;
    uint64_t not_recorded = 0;
    mr_trace_gather_init(&g, &want);
    int err = mr_history_trace(h, job, &g, &not_recorded, e);
    if (!err && mr_history_graph(h, job, &graph, NULL))
        (void)fprintf(stderr, "millrace timeline: the journal has no graph of the job: "
                              "tasks are shown by their number\n");
    if (!err) *doc = answer_of(&g, graph, not_recorded);
    mr_graph_free(&graph);
    mr_trace_gather_fini(&g);
    return err;
}

static int read_offline(
    const struct timeline_config *k, const char *text, yyjson_doc **doc, struct mr_error *e)
{
    mr_job_id job;
    struct mr_history *h = NULL;
    int err = mr_offline_open(&k->offline, text, &job, &h, e);
    if (!err) err = read_from(h, k, job, doc, e);
    mr_history_close(&h);
    return err;
}

/* ---- both ------------------------------------------------------------------------------------ */

static const struct mr_column span_columns[] = {{"start ms", MR_COLUMN_NUMBER, false},
    {"waited ms", MR_COLUMN_NUMBER, false}, {"ran ms", MR_COLUMN_NUMBER, false},
    {"worker", MR_COLUMN_KEY, false}, {"op", MR_COLUMN_KEY, false}, {"key", MR_COLUMN_KEY, false}};

static void print_spans(yyjson_val *root)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *s = NULL;
    yyjson_val *spans = yyjson_obj_get(root, "spans");
    uint64_t first = UINT64_MAX;
    yyjson_arr_foreach(spans, at, max, s)
    {
        uint64_t t = mr_json_get_u64(yyjson_obj_get(s, "times"), "started_ns");
        if (t < first) first = t;
    }
    MR_AUTO(mr_table_free)
    struct mr_table *table = mr_table_new(span_columns, MR_ARRAY_LEN(span_columns));
    yyjson_arr_foreach(spans, at, max, s)
    {
        yyjson_val *t = yyjson_obj_get(s, "times");
        uint64_t ready = mr_json_get_u64(t, "ready_ns");
        uint64_t started = mr_json_get_u64(t, "started_ns");
        uint64_t finished = mr_json_get_u64(t, "finished_ns");
        mr_table_add(table, "%.3f", (double)(started - first) / 1e6);
        mr_table_add(
            table, "%.3f", ready && ready < started ? (double)(started - ready) / 1e6 : 0.0);
        mr_table_add(table, "%.3f", finished > started ? (double)(finished - started) / 1e6 : 0.0);
        mr_table_add(table, "%s", mr_json_get_text(s, "worker"));
        mr_table_add(table, "%s", mr_json_get_text(s, "op"));
        mr_table_add(table, "%s%s", mr_json_get_text(s, "key"),
            mr_json_get_bool(s, "failed") ? " (failed)" : "");
    }
    mr_table_print(table);
    uint64_t lost = mr_json_get_u64(root, "not_recorded");
    if (lost) (void)printf("%" PRIu64 " spans are not recorded\n", lost);
    if (mr_json_get_bool(root, "more") && max) {
        yyjson_val *t = yyjson_obj_get(yyjson_arr_get_last(spans), "times");
        (void)printf("there are more: --after %" PRIu64 "\n", mr_json_get_u64(t, "finished_ns"));
    }
}

static int ask(
    const struct timeline_config *k, const char *job, yyjson_doc **doc, struct mr_error *e)
{
    struct mr_client c = {0};
    MR_AUTO(mr_free_ptr) char *id = mr_http_escape(mr_str(job));
    int err = mr_client_open(&k->client, &c, e);
    if (!err)
        err = mr_client_call(&c, "GET", (struct mr_str){0}, doc, e,
            "/v1/jobs/%s/timeline?spans_max=%" PRIu64 "&after_ns=%" PRIu64, id, k->spans, k->after);
    mr_client_fini(&c);
    return err;
}

/* Prints the spans. */
static int show(struct timeline_config *k, const char *job, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    if (k->spans > SPANS_MAX)
        return mr_fail(e, MR_EINVAL, "--spans: expected at most %u without a file", SPANS_MAX);
    if (!k->spans) k->spans = SPANS_INIT;
    int err =
        mr_offline_is_wanted(&k->offline) ? read_offline(k, job, &doc, e) : ask(k, job, &doc, e);
    if (!err && k->client.json) mr_client_print(doc);
    if (!err && !k->client.json) print_spans(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    return err;
}

int mr_command_timeline(int argc, char **argv)
{
    struct timeline_config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    mr_config_load(&mr_timeline_spec, argc, argv, &k, &rest);
    const struct mr_timeline_export export = {.client = &k.client,
        .offline = &k.offline,
        .job = rest.items[0],
        .chrome = k.chrome,
        .perfetto = k.perfetto,
        .after_ns = k.after,
        .spans_max = k.spans};
    int err =
        k.chrome || k.perfetto ? mr_timeline_export(&export, &e) : show(&k, rest.items[0], &e);
    mr_texts_fini(&rest);
    mr_config_fini(&mr_timeline_spec, &k);
    return err ? mr_client_fail("timeline", &e) : MR_EXIT_OK;
}
