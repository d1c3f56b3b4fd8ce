/* The service Jobs. Answers at once what the core knows. Calls that wait go to watch.c, logs.c,
 * trace.c or predict.c. */
#include "services/scheduler/shell/jobs.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/unconst.h"
#include "graph/explain.h"
#include "host/config/value.h"
#include "services/scheduler/base/job_lookup.h"
#include "services/scheduler/predict/predict.h"
#include "services/scheduler/shell/job_message.h"
#include "services/scheduler/telemetry/logs.h"
#include "services/scheduler/shell/submit.h"
#include "services/scheduler/telemetry/trace.h"
#include "services/scheduler/shell/watch.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_S_MAX 3600.0
#define KEYS_SHOWN_MAX 100
/* a page of List ends after the job with which it has more bytes than this; each job shows the keys
 * of up to 1000 targets */
#define PAGE_BYTES_MAX ((size_t)4 << 20)

static bool take_wait(struct mr_rpc_call *call, double wait_s, mr_duration *out)
{
    if (!(wait_s >= 0 && wait_s <= WAIT_S_MAX)) {
        mr_shell_fail(call, MR_EINVAL, "wait_s: expected 0 to %g seconds", WAIT_S_MAX);
        return false;
    }
    *out = (mr_duration)llround(wait_s * 1e9);
    return true;
}

/* The context of every call of this file. watch.c relies on the first member. */
struct context {
    struct mr_shell *sh;
};

static void on_open(struct mr_rpc_call *call)
{
    struct context *c = mr_alloc(sizeof *c);
    c->sh = mr_shell_of(call);
    mr_rpc_call_set_context(call, c);
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    const struct context *c = mr_rpc_call_context(call);
    (void)status;
    mr_watch_call_done(call);
    mr_logs_call_done(c->sh, call);
    mr_trace_call_done(c->sh, call);
    mr_predict_call_done(c->sh, call);
    mr_release(mr_rpc_call_context(call));
}

static struct mr_shell *shell_of(const struct mr_rpc_call *call)
{
    const struct context *c = mr_rpc_call_context(call);
    return c->sh;
}

static void get(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = shell_of(call);
    struct mr_sched_job_info info;
    struct mr_watcher_spec spec = {.kind = MR_WATCH_GET};
    const Millrace__V1__GetJobRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__get_job_request__descriptor);
    if (!m || !take_wait(call, m->wait_s, &spec.wait)) return;
    if (mr_job_lookup(sh, call, m->id, &spec.job, &info)) mr_watch_add(sh, call, &spec);
}

static void watch(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = shell_of(call);
    struct mr_sched_job_info info;
    struct mr_watcher_spec spec = {.kind = MR_WATCH_EVENTS};
    const Millrace__V1__WatchJobRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__watch_job_request__descriptor);
    if (!m || !mr_job_lookup(sh, call, m->id, &spec.job, &info)) return;
    char *end = NULL;
    spec.after_event = strtoull(m->last_event_id, &end, 10);
    if (*end || m->last_event_id[0] == '-') {
        mr_shell_fail(
            call, MR_EINVAL, "last_event_id: \"%.40s\" is no event id of a job", m->last_event_id);
        return;
    }
    mr_watch_add(sh, call, &spec);
}

static void result(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = shell_of(call);
    struct mr_sched_job_info info;
    uint32_t node = 0;
    struct mr_watcher_spec spec = {.kind = MR_WATCH_RESULT, .nodes = &node, .nodes_count = 1};
    const Millrace__V1__ResultRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__result_request__descriptor);
    if (!m || !take_wait(call, m->wait_s, &spec.wait)) return;
    if (!mr_job_lookup(sh, call, m->id, &spec.job, &info) ||
        !mr_job_node(call, &info, m->key, &node))
        return;
    spec.accept = mr_str(m->accept);
    mr_watch_add(sh, call, &spec);
}

static void results(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = shell_of(call);
    struct mr_sched_job_info info;
    struct mr_watcher_spec spec = {.kind = MR_WATCH_RESULTS};
    const Millrace__V1__ResultsRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__results_request__descriptor);
    if (!m || !take_wait(call, m->wait_s, &spec.wait)) return;
    if (!mr_job_lookup(sh, call, m->id, &spec.job, &info)) return;
    uint32_t *nodes = mr_shell_take(sh, m->n_key * sizeof *nodes);
    for (size_t i = 0; i < m->n_key; i++)
        if (!mr_job_node(call, &info, m->key[i], &nodes[i])) return;
    /* a copy outside of the scratch arena, which an answer may clear */
    uint32_t *kept = mr_copy(nodes, m->n_key * sizeof *nodes);
    spec.nodes = m->n_key ? kept : NULL;
    spec.nodes_count = (uint32_t)m->n_key;
    spec.json = m->json;
    mr_watch_add(sh, call, &spec);
    mr_release(kept);
}

static bool has_label(const struct mr_graph *g, const char *wanted)
{
    const char *equals = strchr(wanted, '=');
    struct mr_str name = mr_str_of(wanted, equals ? (size_t)(equals - wanted) : strlen(wanted));
    for (uint32_t i = 0; i < g->job.labels_count; i++)
        if (mr_str_eq(g->job.labels[i].name, name) &&
            (!equals || mr_str_eq(g->job.labels[i].value, mr_str(equals + 1))))
            return true;
    return false;
}

/* Reads a page token, which names the first job of the page. If that job was forgotten meanwhile,
 * the page begins with the newest job that is not younger than `created_ns`. */
static int read_token(const char *token, mr_job_id *id, uint64_t *created_ns)
{
    const char *dot = strchr(token, '.');
    if (!dot || mr_job_id_parse(mr_str_of(token, (size_t)(dot - token)), id)) return MR_EINVAL;
    return mr_config_parse_u64(mr_str(dot + 1), created_ns);
}

static mr_job_id page_begin(const struct mr_sched *core, mr_job_id id, uint64_t created_ns)
{
    struct mr_sched_job_info info;
    if (mr_sched_job(core, id, &info)) return id;
    mr_job_id at = mr_sched_job_newest(core);
    while (at.v && mr_sched_job(core, at, &info) && info.created_wall_ns > created_ns)
        at = mr_sched_job_older(core, at);
    return at;
}

static void list(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = shell_of(call);
    const Millrace__V1__ListJobsRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__list_jobs_request__descriptor);
    if (!m) return;
    uint32_t page = m->page_size ? m->page_size : 100;
    mr_job_id at = mr_sched_job_newest(sh->core);
    uint64_t created_ns = 0;
    if (page > 1000) {
        mr_shell_fail(call, MR_EINVAL, "page_size: expected 1 to 1000, not %u", page);
        return;
    }
    if (m->page_token[0] && read_token(m->page_token, &at, &created_ns)) {
        mr_shell_fail(
            call, MR_EINVAL, "page_token: \"%.64s\" came from no answer of List", m->page_token);
        return;
    }
    Millrace__V1__ListJobsResponse r = MILLRACE__V1__LIST_JOBS_RESPONSE__INIT;
    char next[MR_JOB_ID_TEXT_MAX + 24] = "";
    r.jobs = mr_shell_take(sh, page * sizeof *r.jobs);
    if (m->page_token[0]) at = page_begin(sh->core, at, created_ns);
    for (; at.v; at = mr_sched_job_older(sh->core, at)) {
        struct mr_sched_job_info info;
        if (!mr_sched_job(sh->core, at, &info) || !info.accepted) continue;
        if (m->state && (uint32_t)m->state != (uint32_t)info.state) continue;
        if (m->label[0] && !has_label(info.graph, m->label)) continue;
        if (r.n_jobs == page || sh->scratch.bytes > PAGE_BYTES_MAX) {
            mr_job_id_format(at, next);
            (void)snprintf(next + strlen(next), 24, ".%" PRIu64, info.created_wall_ns);
            break;
        }
        r.jobs[r.n_jobs++] = mr_job_message(sh, at);
    }
    r.next_page_token = next;
    (void)mr_rpc_call_reply_pb(call, &r.base);
}

static void logs(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = shell_of(call);
    const Millrace__V1__LogsRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__logs_request__descriptor);
    if (m) mr_logs_answer(sh, call, m);
}

static void follow_logs(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = shell_of(call);
    const Millrace__V1__FollowLogsRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__follow_logs_request__descriptor);
    if (m) mr_logs_follow(sh, call, m);
}

static Millrace__V1__TaskState task_state(const struct mr_sched_task_info *task)
{
    if (task->is_skipped) return MILLRACE__V1__TASK_STATE__TASK_SKIPPED;
    if (task->is_abandoned) return MILLRACE__V1__TASK_STATE__TASK_CANCELLED;
    if (task->state == MR_TASK_RUNNING) return MILLRACE__V1__TASK_STATE__TASK_SENT;
    return (Millrace__V1__TaskState)task->state;
}

static char **keys_out(
    struct mr_shell *sh, const struct mr_graph *g, const uint32_t *nodes, uint32_t count, size_t *n)
{
    char **out = mr_shell_take(sh, KEYS_SHOWN_MAX * sizeof *out);
    *n = MR_MIN(count, (uint32_t)KEYS_SHOWN_MAX);
    for (size_t i = 0; i < *n; i++)
        out[i] = mr_shell_text(sh, mr_graph_key(g, nodes[i]));
    return out;
}

static void explain_times(
    struct mr_shell *sh, Millrace__V1__Explanation *r, const struct mr_trace_span *span)
{
    if (!span) return;
    Millrace__V1__TaskTimes *t = mr_shell_take(sh, sizeof *t);
    millrace__v1__task_times__init(t);
    t->ready_ns = span->ready;
    t->sent_ns = span->sent;
    t->started_ns = span->started;
    t->finished_ns = span->finished;
    t->accounted_ns = span->accounted;
    t->received_ns = span->received;
    t->inputs_ns = span->inputs;
    r->times = t;
    if (span->worker.n) r->worker = mr_shell_text(sh, span->worker);
}

static void explain_value(
    struct mr_shell *sh, Millrace__V1__Explanation *r, mr_job_id job, uint32_t node)
{
    struct mr_buf bytes;
    struct mr_sched_value value = {0};
    uint64_t incarnation = 0;
    struct mr_str name = MR_STR("");
    struct mr_str address;
    bool alive = false;
    mr_buf_init(&bytes, MR_INLINE_VALUE_BYTES_MAX * 2);
    (void)mr_sched_value(sh->core, job, node, &bytes, &value);
    r->nbytes = value.kind == MR_SCHED_VALUE_INLINE ? bytes.n : value.bytes;
    if (value.kind == MR_SCHED_VALUE_INLINE) r->place = mr_shell_text(sh, MR_STR("inline"));
    if (value.kind == MR_SCHED_VALUE_OBJECT && value.store &&
        mr_sched_store(sh->core, value.store, &incarnation, &name, &address, &alive))
        r->place = mr_shell_text(sh, name);
    mr_buf_fini(&bytes);
}

/* Splits the core's text into the message's texts: the first line is the sentence, the others are
 * the reasons. */
static void split_lines(struct mr_shell *sh, Millrace__V1__Explanation *r, struct mr_str text)
{
    size_t lines = 1;
    for (size_t i = 0; i < text.n; i++)
        lines += text.p[i] == '\n';
    r->reasons = mr_shell_take(sh, lines * sizeof *r->reasons);
    for (size_t at = 0, line = 0; at < text.n; line++) {
        const char *end = memchr(text.p + at, '\n', text.n - at);
        size_t n = end ? (size_t)(end - text.p) - at : text.n - at;
        char *copy = mr_shell_text(sh, mr_str_of(text.p + at, n));
        if (line == 0)
            r->sentence = copy;
        else if (n)
            r->reasons[r->n_reasons++] = copy;
        at += n + 1;
    }
}

static void explain_culled(struct mr_rpc_call *call, struct mr_shell *sh,
    const struct mr_sched_job_info *info, const char *key)
{
    struct mr_buf text;
    Millrace__V1__Explanation r = MILLRACE__V1__EXPLANATION__INIT;
    mr_buf_init(&text, 65536);
    mr_graph_explain_key(info->graph, mr_str(key), &text);
    r.key = mr_shell_text(sh, mr_str(key));
    r.state = MILLRACE__V1__TASK_STATE__TASK_CULLED;
    r.sentence = mr_shell_text(sh, mr_buf_str(&text));
    (void)mr_rpc_call_reply_pb(call, &r.base);
    mr_buf_fini(&text);
}

/* Answers a call of Explain. `span`: of the task's last attempt; NULL: none is recorded. The job
 * exists. */
static void explain_task(struct mr_shell *sh, struct mr_rpc_call *call, mr_job_id job,
    uint32_t node, const struct mr_trace_span *span)
{
    struct mr_sched_job_info info;
    struct mr_sched_task_info task = {0};
    (void)mr_sched_job(sh->core, job, &info);
    Millrace__V1__Explanation r = MILLRACE__V1__EXPLANATION__INIT;
    struct mr_buf lines;
    uint32_t count = 0;
    mr_buf_init(&lines, 1 << 20);
    (void)mr_sched_task(sh->core, job, node, &task);
    (void)mr_sched_explain(sh->core, job, node, &lines);
    split_lines(sh, &r, mr_buf_str(&lines));
    r.key = mr_shell_text(sh, mr_graph_key(info.graph, node));
    r.state = task_state(&task);
    if (mr_sched_is_running(sh->core, job, node)) r.state = MILLRACE__V1__TASK_STATE__TASK_RUNNING;
    r.attempts = task.attempt;
    if (task.op) r.op = mr_shell_text(sh, mr_sched_op_name(sh->core, task.op));
    const uint32_t *dependents = mr_graph_dependents(info.graph, node, &count);
    r.needed_by = keys_out(sh, info.graph, dependents, count, &r.n_needed_by);
    const uint32_t *inputs = mr_graph_inputs(info.graph, node, &count);
    uint32_t *missing = mr_shell_take(sh, count * sizeof *missing);
    uint32_t missing_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct mr_sched_task_info input = {0};
        (void)mr_sched_task(sh->core, job, inputs[i], &input);
        if (input.state != MR_TASK_DONE && input.state != MR_TASK_RELEASED)
            missing[missing_count++] = inputs[i];
    }
    if (task.state == MR_TASK_WAITING)
        r.waits_for = keys_out(sh, info.graph, missing, missing_count, &r.n_waits_for);
    if (task.has_error) {
        Millrace__V1__JobError *x = mr_shell_take(sh, sizeof *x);
        millrace__v1__job_error__init(x);
        x->key = r.key;
        x->message = mr_shell_text(sh, task.error.message);
        x->arguments = mr_shell_text(sh, task.error.arguments);
        x->worker = mr_shell_text(sh, task.error.worker);
        x->attempts = task.error.attempts;
        x->op = r.op;
        r.error = x;
    }
    explain_times(sh, &r, span);
    explain_value(sh, &r, job, node);
    (void)mr_rpc_call_reply_pb(call, &r.base);
    mr_buf_fini(&lines);
}

static void explain(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = shell_of(call);
    struct mr_sched_job_info info;
    struct mr_trace_ask ask = {.want.kind = MR_TRACE_TASK, .on_task = explain_task};
    const Millrace__V1__ExplainRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__explain_request__descriptor);
    if (!m || !mr_job_lookup(sh, call, m->id, &ask.job, &info)) return;
    if (mr_graph_was_culled(info.graph, mr_str(m->key))) {
        explain_culled(call, sh, &info, m->key);
        return;
    }
    if (mr_job_node(call, &info, m->key, &ask.want.index)) mr_trace_ask(sh, call, &ask);
}

#define FILTER_MAX 1024u /* workers, and slots, of one request */

/* Copies the workers and slots of a request. NULL: the request has none. */
static struct mr_trace_filter *filter_of(const Millrace__V1__TimelineRequest *m)
{
    if (!m->n_worker && !m->n_slot) return NULL;
    struct mr_trace_filter *f = mr_alloc(sizeof *f);
    f->workers_count = m->n_worker;
    f->workers = mr_alloc_array(MR_MAX(m->n_worker, (size_t)1), sizeof *f->workers);
    for (size_t i = 0; i < m->n_worker; i++)
        f->workers[i] = mr_copy_text(m->worker[i]);
    f->slots_count = m->n_slot;
    f->slots = mr_alloc_array(MR_MAX(m->n_slot, (size_t)1), sizeof *f->slots);
    if (m->n_slot) memcpy(f->slots, m->slot, m->n_slot * sizeof *f->slots);
    return f;
}

static void timeline(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = shell_of(call);
    struct mr_sched_job_info info;
    struct mr_trace_ask ask = {.want.kind = MR_TRACE_TIMELINE};
    const Millrace__V1__TimelineRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__timeline_request__descriptor);
    if (!m || !mr_job_lookup(sh, call, m->id, &ask.job, &info)) return;
    ask.want.after_ns = m->after_ns;
    ask.want.from_ns = m->from_ns;
    ask.want.until_ns = m->until_ns;
    if (m->until_ns && m->from_ns >= m->until_ns) {
        mr_shell_fail(
            call, MR_EINVAL, "from_ns: expected a time before until_ns (%" PRIu64 ")", m->until_ns);
        return;
    }
    if (m->n_worker > FILTER_MAX || m->n_slot > FILTER_MAX) {
        mr_shell_fail(call, MR_EINVAL, "%s: at most %u are allowed",
            m->n_worker > FILTER_MAX ? "worker" : "slot", FILTER_MAX);
        return;
    }
    ask.want.spans_max = m->spans_max ? m->spans_max : 10000;
    if (ask.want.spans_max > 100000) {
        mr_shell_fail(
            call, MR_EINVAL, "spans_max: expected 1 to 100000, not %u", ask.want.spans_max);
        return;
    }
    ask.filter = filter_of(m);
    mr_trace_ask(sh, call, &ask);
}

static void tiles(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = shell_of(call);
    struct mr_sched_job_info info;
    struct mr_trace_ask ask = {.kind = MR_TRACE_ASK_TILES};
    struct mr_job_tiles_ask *t = &ask.tiles;
    const Millrace__V1__TilesRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__tiles_request__descriptor);
    if (!m || !mr_job_lookup(sh, call, m->id, &ask.job, &info)) return;
    t->from_ns = m->from_ns;
    t->until_ns = m->until_ns;
    t->width = m->width ? m->width : 1024;
    t->first_row = m->first_row;
    t->rows = m->rows ? m->rows : 64;
    if (m->color == MILLRACE__V1__TILE_COLOR__TILE_COLOR_CLASS) t->color = MR_JOB_TILES_CLASS;
    if (t->width > 4096)
        mr_shell_fail(call, MR_EINVAL, "width: expected 1 to 4096, not %u", t->width);
    else if (t->rows > 256)
        mr_shell_fail(call, MR_EINVAL, "rows: expected 1 to 256, not %u", t->rows);
    else if (m->color > MILLRACE__V1__TILE_COLOR__TILE_COLOR_CLASS)
        mr_shell_fail(call, MR_EINVAL, "color: there is no color %d", (int)m->color);
    else if (m->until_ns && m->from_ns >= m->until_ns)
        mr_shell_fail(
            call, MR_EINVAL, "from_ns: expected a time before until_ns (%" PRIu64 ")", m->until_ns);
    else
        mr_trace_ask(sh, call, &ask);
}

static void profile(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = shell_of(call);
    struct mr_sched_job_info info;
    struct mr_trace_ask ask = {.kind = MR_TRACE_ASK_ACCOUNT};
    const Millrace__V1__ProfileRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__profile_request__descriptor);
    if (!m || !mr_job_lookup(sh, call, m->id, &ask.job, &info)) return;
    ask.steps_max = m->steps_max ? m->steps_max : 1000;
    if (ask.steps_max > 100000) {
        mr_shell_fail(call, MR_EINVAL, "steps_max: expected 1 to 100000, not %u", ask.steps_max);
        return;
    }
    mr_trace_ask(sh, call, &ask);
}

static void what_if(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = shell_of(call);
    struct mr_sched_job_info info;
    mr_job_id job;
    const Millrace__V1__WhatIfRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__what_if_request__descriptor);
    if (m && mr_job_lookup(sh, call, m->id, &job, &info)) mr_predict_ask(sh, call, &info, m);
}

static Millrace__V1__GraphNode *node_out(
    struct mr_shell *sh, const struct mr_sched_job_info *info, uint32_t i)
{
    Millrace__V1__GraphNode *n = mr_shell_take(sh, sizeof *n);
    struct mr_sched_task_info task = {0};
    uint32_t count = 0;
    millrace__v1__graph_node__init(n);
    (void)mr_sched_task(sh->core, info->id, i, &task);
    const uint32_t *inputs = mr_graph_inputs(info->graph, i, &count);
    n->key = mr_shell_text(sh, mr_graph_key(info->graph, i));
    n->op = mr_shell_text(sh, mr_graph_op(info->graph, i));
    n->state = task_state(&task);
    n->restricted = mr_graph_is_restricted(info->graph, i);
    n->n_inputs = count;
    n->inputs = mr_unconst(inputs);
    return n;
}

static void graph(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = shell_of(call);
    struct mr_sched_job_info info;
    mr_job_id job;
    const Millrace__V1__GraphRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__graph_request__descriptor);
    if (!m || !mr_job_lookup(sh, call, m->id, &job, &info)) return;
    uint32_t nodes_max = m->nodes_max ? m->nodes_max : 5000;
    if (nodes_max > 100000) {
        mr_shell_fail(call, MR_EINVAL, "nodes_max: expected 1 to 100000, not %u", nodes_max);
        return;
    }
    Millrace__V1__GraphResponse r = MILLRACE__V1__GRAPH_RESPONSE__INIT;
    r.nodes_count = info.graph->nodes_count;
    r.n_nodes = MR_MIN(nodes_max, info.graph->nodes_count);
    r.nodes = mr_shell_take(sh, r.n_nodes * sizeof *r.nodes);
    for (uint32_t i = 0; i < r.n_nodes; i++)
        r.nodes[i] = node_out(sh, &info, i);
    struct mr_buf running;
    mr_buf_init(&running, (size_t)info.graph->nodes_count * sizeof(uint32_t));
    uint32_t count = mr_sched_running(sh->core, job, &running);
    const uint32_t *index = (const void *)running.p;
    for (uint32_t i = 0; i < count; i++)
        if (index[i] < r.n_nodes) r.nodes[index[i]]->state = MILLRACE__V1__TASK_STATE__TASK_RUNNING;
    mr_buf_fini(&running);
    for (uint32_t i = 0; i < info.graph->targets_count; i++)
        if (info.graph->targets[i] < r.n_nodes) r.nodes[info.graph->targets[i]]->target = true;
    (void)mr_rpc_call_reply_pb(call, &r.base);
}

static void on_writable(struct mr_rpc_call *call)
{
    mr_watch_writable(shell_of(call), call);
    mr_logs_writable(shell_of(call), call);
}

/* A handler of a call. Every handler has the same on_open, which sets what shell_of reads, and the
 * same on_done, which removes the call from all lists. */
#define HANDLER(fn)                                                                                \
    {                                                                                              \
        .on_open = on_open, .on_message = (fn), .on_writable = on_writable, .on_done = on_done     \
    }

static const struct mr_rpc_handler get_handler = HANDLER(get);
static const struct mr_rpc_handler list_handler = HANDLER(list);
static const struct mr_rpc_handler watch_handler = HANDLER(watch);
static const struct mr_rpc_handler result_handler = HANDLER(result);
static const struct mr_rpc_handler results_handler = HANDLER(results);
static const struct mr_rpc_handler logs_handler = HANDLER(logs);
static const struct mr_rpc_handler follow_logs_handler = HANDLER(follow_logs);
static const struct mr_rpc_handler explain_handler = HANDLER(explain);
static const struct mr_rpc_handler timeline_handler = HANDLER(timeline);
static const struct mr_rpc_handler tiles_handler = HANDLER(tiles);
static const struct mr_rpc_handler graph_handler = HANDLER(graph);
static const struct mr_rpc_handler profile_handler = HANDLER(profile);
static const struct mr_rpc_handler what_if_handler = HANDLER(what_if);

static const struct mr_rpc_method methods[] = {
    {.name = "Submit", .client_streaming = true, .handler = &mr_submit_handler},
    {.name = "SubmitGraph", .handler = &mr_submit_graph_handler},
    {.name = "SubmitStream", .client_streaming = true, .handler = &mr_submit_stream_handler},
    {.name = "Get", .handler = &get_handler},
    {.name = "List", .handler = &list_handler},
    {.name = "Cancel", .handler = &mr_change_handler},
    {.name = "Retry", .handler = &mr_change_handler},
    {.name = "Forget", .handler = &mr_change_handler},
    {.name = "Watch", .server_streaming = true, .handler = &watch_handler},
    {.name = "Result", .server_streaming = true, .handler = &result_handler},
    {.name = "Results", .server_streaming = true, .handler = &results_handler},
    {.name = "Logs", .handler = &logs_handler},
    {.name = "FollowLogs", .server_streaming = true, .handler = &follow_logs_handler},
    {.name = "Explain", .handler = &explain_handler},
    {.name = "Timeline", .handler = &timeline_handler},
    {.name = "Tiles", .handler = &tiles_handler},
    {.name = "Graph", .handler = &graph_handler},
    {.name = "Profile", .handler = &profile_handler},
    {.name = "WhatIf", .handler = &what_if_handler},
};

const struct mr_rpc_service mr_jobs_service = {
    .name = "millrace.v1.Jobs", .methods = methods, .methods_count = MR_ARRAY_LEN(methods)};
