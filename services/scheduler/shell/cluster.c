#include "services/scheduler/shell/cluster.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/page.h"
#include "host/clock.h"
#include "host/config/help.h"
#include "host/config/value.h"
#include "services/scheduler/base/catalogue.h"
#include "services/scheduler/telemetry/cluster_watch.h"
#include "services/scheduler/telemetry/trace.h"
#include "services/scheduler/base/journal_link.h"
#include "services/scheduler/live/live.h"
#include "services/scheduler/live/usage.h"
#include "services/scheduler/shell/sessions.h"

#include <inttypes.h>
#include <stdio.h>

#define ACCOUNT_WINDOW (60 * MR_SECOND)
#define SAMPLES_WINDOW (600 * MR_SECOND)
#define SAMPLES_POINTS 300u
#define SAMPLES_POINTS_MAX 10000u
#define SAMPLES_PROCESSES 32u
#define SAMPLES_PAGE_POINTS_MAX 100000u /* of all processes of a page */

static Millrace__V1__StoreInfo *store_out(struct mr_shell *sh, uint32_t number)
{
    struct mr_store_facts facts = {0};
    uint64_t incarnation = 0;
    struct mr_str node;
    struct mr_str address;
    bool alive = false;
    if (!mr_sched_store(sh->core, number, &incarnation, &node, &address, &alive) || !alive)
        return NULL;
    (void)mr_sessions_store_facts(sh, number, &facts);
    Millrace__V1__StoreInfo *m = mr_shell_take(sh, sizeof *m);
    millrace__v1__store_info__init(m);
    m->node = mr_shell_text(sh, node);
    m->address = mr_shell_text(sh, address);
    m->memory_bytes = facts.memory_bytes;
    m->used_bytes = facts.used_bytes;
    m->spilled_bytes = facts.spilled_bytes;
    m->objects = facts.objects;
    m->disk_full = mr_shell_text(sh, mr_str(facts.disk_full));
    return m;
}

static const char *why_not_ready(
    const struct mr_shell *sh, const struct mr_sched_totals *t, size_t stores)
{
    if (mr_journal_link_state(sh).n) return "Redis is away";
    if (!t->workers) return "no worker is connected";
    if (!stores) return "no object store is connected";
    return NULL;
}

static void info(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = mr_shell_of(call);
    if (!mr_shell_request(sh, call, msg, &millrace__v1__info_request__descriptor)) return;
    struct mr_sched_totals t;
    mr_sched_totals(sh->core, &t);
    Millrace__V1__InfoResponse r = MILLRACE__V1__INFO_RESPONSE__INIT;
    r.version = mr_shell_text(sh, mr_str(mr_version()));
    r.cluster_id = sh->cluster_id;
    r.epoch = t.epoch;
    char incarnation[24];
    (void)snprintf(incarnation, sizeof incarnation, "%016" PRIx64, sh->options.core.incarnation);
    r.incarnation = incarnation;
    r.protocol_version = MR_PROTOCOL_VERSION;
    r.layout_version = MR_LAYOUT_VERSION;
    r.workers = t.workers;
    r.slots = t.slots;
    r.jobs_running = t.jobs_running;
    r.tasks_done = t.tasks_done;
    r.started_ns = sh->started_wall_ns;
    uint32_t stores = mr_sched_stores_count(sh->core);
    r.store = mr_shell_take(sh, stores * sizeof *r.store);
    for (uint32_t i = 1; i <= stores; i++) {
        Millrace__V1__StoreInfo *row = store_out(sh, i);
        if (row) r.store[r.n_store++] = row;
    }
    r.stores = (uint32_t)r.n_store;
    const char *why = why_not_ready(sh, &t, r.n_store);
    r.ready = !why;
    if (why) r.not_ready = mr_shell_text(sh, mr_str(why));
    (void)mr_rpc_call_reply_pb(call, &r.base);
}

static void add_facts(struct mr_shell *sh, Millrace__V1__WorkerInfo *m, uint32_t slot)
{
    struct mr_session_facts facts;
    if (!mr_sessions_facts(sh, slot, &facts)) return;
    m->pid = facts.pid;
    m->address = mr_shell_text(sh, mr_str(facts.address));
    m->n_runtimes = facts.runtimes_count;
    m->runtimes = mr_shell_take(sh, facts.runtimes_count * sizeof *m->runtimes);
    for (size_t i = 0; i < facts.runtimes_count; i++)
        m->runtimes[i] = mr_shell_text(sh, mr_str(facts.runtimes[i]));
    m->resources = mr_shell_take(sh, facts.resources_count * sizeof *m->resources);
    for (size_t i = 0; i < facts.resources_count; i++) {
        Millrace__V1__WorkerInfo__ResourcesEntry *row = mr_shell_take(sh, sizeof *row);
        millrace__v1__worker_info__resources_entry__init(row);
        row->key = mr_shell_text(sh, facts.resources[i].name);
        row->value = (double)facts.resources[i].micro / 1e6;
        m->resources[m->n_resources++] = row;
    }
}

static Millrace__V1__WorkerInfo *worker_out(
    struct mr_shell *sh, uint32_t slot, const struct mr_sched_worker_info *w)
{
    Millrace__V1__WorkerInfo *m = mr_shell_take(sh, sizeof *m);
    char incarnation[24];
    millrace__v1__worker_info__init(m);
    (void)snprintf(incarnation, sizeof incarnation, "%016" PRIx64, w->incarnation);
    m->name = mr_shell_text(sh, w->name);
    m->node = mr_shell_text(sh, w->node);
    m->state = mr_shell_text(sh, mr_str(!w->is_connected ? "silent"
                                        : w->is_retiring ? "retiring"
                                                         : "connected"));
    m->slots = w->slots;
    m->running = w->running;
    m->queued = w->sent > w->running ? w->sent - w->running : 0;
    m->memory_bytes = w->memory_bytes;
    m->memory_used_bytes = w->memory_used_bytes;
    m->held_bytes = w->held_bytes;
    m->tasks_started = w->tasks_started;
    m->tasks_done = w->tasks_done;
    mr_time now = mr_clock_now();
    m->last_heard_ns = now > w->last_heard ? now - w->last_heard : 0;
    m->incarnation = mr_shell_text(sh, mr_str(incarnation));
    add_facts(sh, m, slot);
    return m;
}

/* Reads where the page begins and how many rows it has. A page token is "~" and the slot of the
 * page's first worker. */
static int read_workers_page(
    const Millrace__V1__WorkersRequest *m, uint32_t *from, uint32_t *rows_max, struct mr_error *e)
{
    uint64_t at = 0;
    const char *token = m->page_token;
    if (m->page_size > MR_WORKERS_MAX)
        return mr_fail(e, MR_EINVAL, "page_size: %u is not within 0 to %u (0: %u)", m->page_size,
            (unsigned)MR_WORKERS_MAX, MR_PAGE_ROWS_MAX);
    if (token[0] &&
        (token[0] != '~' || mr_config_parse_u64(mr_str(token + 1), &at) || !at || at > UINT32_MAX))
        return mr_fail(e, MR_EINVAL, "page_token: \"%.64s\" is not from an earlier answer", token);
    *from = (uint32_t)at;
    *rows_max = m->page_size ? m->page_size : MR_PAGE_ROWS_MAX;
    return MR_OK;
}

static void workers(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = mr_shell_of(call);
    struct mr_error e;
    uint32_t from = 0, rows_max = 0;
    const Millrace__V1__WorkersRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__workers_request__descriptor);
    if (!m) return;
    if (read_workers_page(m, &from, &rows_max, &e)) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    Millrace__V1__WorkersResponse r = MILLRACE__V1__WORKERS_RESPONSE__INIT;
    char next[16] = "";
    uint32_t slots = mr_sched_worker_slots(sh->core);
    r.workers = mr_shell_take(sh, (MR_MIN(slots, rows_max) + 1) * sizeof *r.workers);
    for (uint32_t i = from; i < slots; i++) {
        struct mr_sched_worker_info w;
        if (!mr_sched_worker(sh->core, i, &w)) continue;
        if (r.n_workers == rows_max) {
            (void)snprintf(next, sizeof next, "~%" PRIu32, i);
            break;
        }
        r.workers[r.n_workers++] = worker_out(sh, i, &w);
    }
    r.next_page_token = next;
    (void)mr_rpc_call_reply_pb(call, &r.base);
}

static void retire(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = mr_shell_of(call);
    const Millrace__V1__RetireRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__retire_request__descriptor);
    if (!m) return;
    for (uint32_t i = 0; i < mr_sched_worker_slots(sh->core); i++) {
        struct mr_sched_worker_info w;
        if (!mr_sched_worker(sh->core, i, &w) || !mr_str_eq(w.name, mr_str(m->worker))) continue;
        struct mr_sched_event ev = {
            .type = MR_SCHED_WORKER_RETIRE, .slot = i, .incarnation = w.incarnation};
        const Millrace__V1__RetireResponse r = MILLRACE__V1__RETIRE_RESPONSE__INIT;
        (void)mr_rpc_call_reply_pb(call, &r.base);
        mr_shell_step(sh, &ev);
        mr_cluster_watch_dirty(sh);
        return;
    }
    mr_shell_fail(call, MR_ENOENT, "there is no worker \"%.200s\"", m->worker);
}

static void ops(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = mr_shell_of(call);
    const Millrace__V1__OpsRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__ops_request__descriptor);
    if (!m) return;
    struct mr_page page;
    struct mr_error e;
    if (mr_page_read(m->page_size, m->page_token, MR_PAGE_ROWS_MAX, &page, &e)) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    Millrace__V1__OpsResponse r = MILLRACE__V1__OPS_RESPONSE__INIT;
    bool more = false;
    r.ops = mr_catalogue_list(sh, mr_str(m->name), &page, &r.n_ops, &more);
    if (m->name[0] && !r.n_ops && !page.after.n) {
        mr_shell_fail(call, MR_ENOENT, "there is no operator \"%.200s\"", m->name);
        return;
    }
    MR_AUTO(mr_free_ptr) char *next = more ? mr_page_token(r.ops[r.n_ops - 1]->name) : NULL;
    if (next) r.next_page_token = next;
    (void)mr_rpc_call_reply_pb(call, &r.base);
}

static void account(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = mr_shell_of(call);
    const Millrace__V1__AccountRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__account_request__descriptor);
    if (!m) return;
    struct mr_trace_ask ask = {.kind = MR_TRACE_ASK_ACCOUNT, .name_space = mr_str(m->namespace_)};
    ask.until_ns = m->until_ns ? m->until_ns : mr_clock_wall();
    ask.from_ns = m->from_ns ? m->from_ns : ask.until_ns - MR_MIN(ask.until_ns - 1, ACCOUNT_WINDOW);
    if (ask.from_ns >= ask.until_ns) {
        mr_shell_fail(call, MR_EINVAL, "from_ns: expected a time before until_ns (%" PRIu64 ")",
            ask.until_ns);
        return;
    }
    mr_trace_ask(sh, call, &ask);
}

static void account_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    (void)status;
    mr_trace_call_done(mr_shell_of(call), call);
}

static void samples(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = mr_shell_of(call);
    struct mr_error e;
    const Millrace__V1__SamplesRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__samples_request__descriptor);
    if (!m) return;
    struct mr_series_ask series = {.until_ns = m->until_ns ? m->until_ns : mr_clock_wall(),
        .points_max = m->points_max ? m->points_max : SAMPLES_POINTS};
    series.from_ns =
        m->from_ns ? m->from_ns : series.until_ns - MR_MIN(series.until_ns - 1, SAMPLES_WINDOW);
    struct mr_page page;
    int err = mr_page_read(m->page_size, m->page_token, SAMPLES_PROCESSES, &page, &e);
    if (!err && series.from_ns >= series.until_ns)
        err = mr_fail(&e, MR_EINVAL, "from_ns: expected a time before until_ns (%" PRIu64 ")",
            series.until_ns);
    if (!err && series.points_max > SAMPLES_POINTS_MAX)
        err = mr_fail(&e, MR_EINVAL, "points_max: expected 1 to %u, not %" PRIu32,
            SAMPLES_POINTS_MAX, series.points_max);
    if (err) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    uint32_t rows = SAMPLES_PAGE_POINTS_MAX / series.points_max;
    series.processes_max = MR_MIN((uint32_t)page.rows_max, rows);
    /* no process has a longer name */
    (void)snprintf(series.process, sizeof series.process, "%s", m->process);
    (void)snprintf(series.after, sizeof series.after, "%.*s", MR_STR_ARG(page.after));
    mr_trace_ask(sh, call, &(struct mr_trace_ask){.kind = MR_TRACE_ASK_SAMPLES, .series = &series});
}

static void report(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_shell *sh = mr_shell_of(call);
    struct mr_error e;
    const Millrace__V1__ReportUsageRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__report_usage_request__descriptor);
    if (!m) return;
    if (mr_usage_report(sh, m, &e)) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    const Millrace__V1__ReportUsageResponse r = MILLRACE__V1__REPORT_USAGE_RESPONSE__INIT;
    (void)mr_rpc_call_reply_pb(call, &r.base);
}

static const struct mr_rpc_handler info_handler = {.on_message = info};
static const struct mr_rpc_handler workers_handler = {.on_message = workers};
static const struct mr_rpc_handler retire_handler = {.on_message = retire};
static const struct mr_rpc_handler ops_handler = {.on_message = ops};
static const struct mr_rpc_handler account_handler = {
    .on_message = account, .on_done = account_done};

static const struct mr_rpc_handler samples_handler = {
    .on_message = samples, .on_done = account_done};
static const struct mr_rpc_handler report_handler = {.on_message = report};

static const struct mr_rpc_method methods[] = {
    {.name = "Info", .handler = &info_handler},
    {.name = "Workers", .handler = &workers_handler},
    {.name = "Retire", .handler = &retire_handler},
    {.name = "Ops", .handler = &ops_handler},
    {.name = "Account", .handler = &account_handler},
    {.name = "Live", .server_streaming = true, .handler = &mr_live_handler},
    {.name = "Samples", .handler = &samples_handler},
    {.name = "ReportUsage", .handler = &report_handler},
    {.name = "Watch", .server_streaming = true, .handler = &mr_cluster_watch_handler},
};

const struct mr_rpc_service mr_cluster_service = {
    .name = "millrace.v1.Cluster", .methods = methods, .methods_count = MR_ARRAY_LEN(methods)};
