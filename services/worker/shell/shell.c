#include "services/worker/shell/shell.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "host/os/file.h"
#include "host/os/log.h"
#include "host/os/machine.h"
#include "host/os/process_dir.h"
#include "proto/methods.h"
#include "rpc/util/metrics.h"
#include "lib/host/os/subprocess.h"
#include "services/worker/shell/delegate.h"
#include "services/worker/shell/effects.h"
#include "services/worker/shell/scheduler_session.h"
#include "train/member/env.h"
#include "train/transport/transport.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define BATCH 256
#define INBOX_MAX 16384u
#define STORE_WAIT (60 * MR_SECOND) /* limit of the wait for the store when this process starts */
#define DRAIN_MAX (30 * MR_SECOND)  /* after a signal, running tasks have this time to end */
#define TASKS_MAX (1u << 20)
#define VALUES_MAX (1u << 23)
#define OUTBOX_MAX (1u << 20)
#define CORE_BYTES_MAX ((uint64_t)4 << 30)
#define MEMORY_EVERY (250 * MR_MS)
#define LOGS_EVERY (100 * MR_MS) /* how often the output of running tasks is sent, at most */

/* Called by sh->here, an executor that has no thread of its own. Keeps the report until the end of
 * the turn. sh->here runs one task at a time, so at most one report is kept. */
static void on_report_here(void *ctx, const struct mr_run_report *r)
{
    struct mr_worker_shell *sh = ctx;
    mr_assert(!sh->has_here_report);
    sh->here_report = *r;
    sh->has_here_report = true;
}

static void on_fetched(void *ctx, const struct mr_fetched *f)
{
    struct mr_worker_shell *sh = ctx;
    struct mr_item item = {.kind = MR_ITEM_FETCHED, .fetched = *f};
    (void)mr_inbox_push_wait(sh->inbox, &item, MR_NEVER);
}

static void on_logged(void *ctx)
{
    struct mr_worker_shell *sh = ctx;
    struct mr_item item = {.kind = MR_ITEM_LOGGED};
    (void)mr_inbox_push_wait(sh->inbox, &item, MR_NEVER);
}

void mr_worker_shell_signal(struct mr_worker_shell *sh)
{
    struct mr_item item = {.kind = MR_ITEM_SIGNAL};
    (void)mr_inbox_push(sh->inbox, &item);
}

void mr_worker_shell_continued(struct mr_worker_shell *sh, mr_time at)
{
    struct mr_item item = {.kind = MR_ITEM_CONTINUED, .at = at};
    (void)mr_inbox_push(sh->inbox, &item);
}

static int store_open(
    struct mr_worker_shell *sh, const struct mr_worker_options *o, struct mr_error *e)
{
    if (!o->store_socket) return MR_OK;
    mr_time until = mr_time_after(mr_clock_now(), STORE_WAIT);
    int err;
    while ((err = mr_store_open(o->store_socket, o->name, &sh->store, e)) == MR_EAWAY) {
        if (mr_clock_now() >= until) break;
        mr_clock_sleep(20 * MR_MS);
    }
    return err ? err : mr_store_limit(sh->store, &o->limit, e);
}

static void ops_fill(struct mr_worker_shell *sh, const struct mr_registry *registry)
{
    uint32_t n = mr_registry_count(registry);
    sh->ops = mr_alloc_array(n, sizeof *sh->ops);
    sh->core_ops = mr_alloc_array(n, sizeof *sh->core_ops);
    for (uint32_t i = 0; i < n; i++) {
        const struct mr_op_desc *op = mr_registry_at(registry, i);
        sh->ops[i] = op;
        sh->core_ops[i] = (struct mr_worker_op){.name = mr_str(op->name), .cost_ns = op->cost_ns};
        if (op->flags & MR_OP_BY_REFERENCE) sh->core_ops[i].flags |= MR_WORKER_OP_BY_REFERENCE;
        if (op->flags & MR_OP_MAY_BLOCK) sh->core_ops[i].flags |= MR_WORKER_OP_SOLO;
        if (op->flags & MR_OP_LONG_RUNNING) sh->core_ops[i].flags |= MR_WORKER_OP_LONG;
    }
}

static int crash_record_open(
    struct mr_worker_shell *sh, const struct mr_worker_options *o, struct mr_error *e)
{
    if (!o->dir) return MR_OK;
    uint32_t n = 0;
    int err = mr_file_make_dirs(o->dir, 0700, e);
    if (!err)
        err = mr_crash_record_open(o->dir, o->name, o->slots + MR_LONG_TASKS_MAX, &sh->crash_record,
            sh->suspects_found, MR_ARRAY_LEN(sh->suspects_found), &n, e);
    if (err == MR_EDISKFULL) { /* without a record, all tasks of a worker that dies are suspected */
        mr_log(MR_WARN, "crash_record.off", "what=\"%s\"", e->text);
        return MR_OK;
    }
    if (err) return err;
    sh->suspect_runs = mr_alloc_array(n + 1, sizeof *sh->suspect_runs + 2 * sizeof(uint32_t));
    uint32_t *index = (uint32_t *)(void *)(sh->suspect_runs + n + 1);
    uint32_t *attempt = index + n;
    for (uint32_t i = 0; i < n; i++) {
        sh->suspect_runs[i] = (struct mr_ws_run){.job = sh->suspects_found[i].job, .count = 1};
        index[i] = sh->suspects_found[i].index;
        attempt[i] = sh->suspects_found[i].attempt;
        mr_log(MR_WARN, "worker.suspect", "job=%" PRIu64 " index=%u attempt=%u",
            sh->suspects_found[i].job.v, index[i], attempt[i]);
    }
    sh->identity.suspects = (struct mr_ws_refs){sh->suspect_runs, n, index, attempt, n};
    sh->identity.knows_suspects = mr_crash_record_was_left(sh->crash_record);
    return MR_OK;
}

static void identity_fill(struct mr_worker_shell *sh, const struct mr_worker_options *o)
{
    struct mr_worker_identity *id = &sh->identity;
    struct mr_machine machine;
    mr_machine_read(&machine);
    id->name = o->name;
    id->node = o->node;
    id->store_address = o->store_address ? o->store_address : "";
    id->address = sh->address ? sh->address : "";
    id->store = sh->store ? mr_store_node(sh->store) : (mr_node_id){0};
    id->slots = o->slots;
    id->memory_bytes = o->memory_bytes;
    id->resources = o->resources;
    id->resources_count = o->resources_count;
    id->runtimes[id->runtimes_count++] = MR_STR("native");
    if (o->allow_exec) id->runtimes[id->runtimes_count++] = MR_STR("exec");
    id->ops = o->registry;
    id->builtin = o->builtin;
    id->pid = (uint32_t)getpid();
    id->processors = machine.cpus;
    id->began = o->began;
}

static void core_open(struct mr_worker_shell *sh, const struct mr_worker_options *o)
{
    struct mr_worker_config c = {.slots = o->slots,
        .tasks_max = TASKS_MAX,
        .values_max = VALUES_MAX,
        .outbox_max = OUTBOX_MAX,
        .bytes_max = MR_MIN(CORE_BYTES_MAX, o->memory_bytes / 2),
        .prefetch_bytes = o->memory_bytes / 4,
        .store = sh->identity.store,
        .ops = sh->core_ops,
        .ops_count = mr_registry_count(o->registry),
        .resources = o->resources,
        .resources_count = o->resources_count};
    sh->core = mr_worker_new(&c);
    sh->executors_count = o->slots + MR_LONG_TASKS_MAX;
    if (o->slots > 1) sh->work_sharing = mr_work_sharing_new(sh->executors_count);
    sh->env = (struct mr_executor_env){.ops = sh->ops,
        .ops_count = c.ops_count,
        .store = sh->store,
        .store_address = sh->identity.store_address,
        .credential = mr_rpc_auth_credential(o->auth, MR_SERVICE_OBJECTSTORE),
        .roots = o->roots,
        .crash_record = sh->crash_record,
        .work_sharing = sh->work_sharing,
        .wake_counter = &sh->wake_counter,
        .slots = o->slots,
        .scratch_bytes_max = o->memory_bytes,
        .report = mr_worker_shell_on_report,
        .logged = on_logged,
        .ctx = sh};
    const struct mr_role_env roles = {.trainer = o->trainer,
        .for_trainer = mr_rpc_auth_credential(o->auth, MR_SERVICE_TRAINER),
        .for_store = sh->env.credential,
        .address = sh->identity.address,
        .node = o->node,
        .processor = o->processor,
        .store = sh->store,
        .store_address = sh->identity.store_address};
    mr_role_configure(&roles);
    sh->env.network_delay_fd = mr_clock_delay_open();
    sh->here_env = sh->env;
    sh->here_env.report = on_report_here;
    sh->here = mr_executor_new(&sh->here_env);
    sh->executors = mr_alloc_array(sh->executors_count, sizeof *sh->executors);
    for (uint32_t i = 0; i < o->slots; i++) {
        sh->executors[i] = mr_executor_start(&sh->env, i);
        mr_executor_help(sh->executors[i], true);
    }
    if (sh->store) sh->prefetch = mr_prefetch_start(sh->store, on_fetched, sh);
}

static double ask(void *ctx)
{
    return (double)atomic_load((const _Atomic uint64_t *)ctx);
}

static void train_stats_open(struct mr_stats *stats)
{
    static const char name[] = "millrace_train_links_total",
                      help[] = "Ways of roles to parameter servers and groups.";
    struct mr_transport_traffic *t = mr_transport_traffic();
    mr_stats_counter_ask(stats, name, help, "path=\"memory\"", ask, &t->shm_links);
    mr_stats_counter_ask(stats, name, help, "path=\"grpc\"", ask, &t->grpc_links);
    mr_stats_counter_ask(stats, "millrace_train_grpc_bytes_total",
        "Bytes of parameters and gradients that left or came by gRPC.", NULL, ask, &t->grpc_bytes);
    mr_stats_counter_ask(stats, "millrace_train_ring_steps_total",
        "Steps of ranks that form a ring over gRPC.", NULL, ask, &t->ring_steps);
    mr_stats_counter_ask(stats, "millrace_train_ring_streams_total",
        "Streams that ranks opened to the next one.", NULL, ask, &t->ring_streams);
    mr_stats_counter_ask(stats, "millrace_train_ring_messages_total",
        "Messages that ranks sent to the next one.", NULL, ask, &t->ring_messages);
    mr_stats_counter_ask(stats, "millrace_train_ring_bytes_total",
        "Bytes of those messages, before TLS.", NULL, ask, &t->ring_bytes);
    mr_stats_counter_ask(stats, "millrace_train_ring_wakes_total",
        "Times that a block woke the rank that waited for it.", NULL, ask, &t->ring_wakes);
}

static void stats_open(struct mr_worker_shell *sh)
{
    sh->stats = mr_stats_new();
    sh->tasks_done = mr_stats_counter(
        sh->stats, "millrace_worker_tasks_total", "Tasks that ended.", "state=\"done\"");
    sh->tasks_failed = mr_stats_counter(
        sh->stats, "millrace_worker_tasks_total", "Tasks that ended.", "state=\"failed\"");
    sh->strands = mr_stats_counter(
        sh->stats, "millrace_worker_strands_total", "Strands given to executors.", NULL);
    sh->fetches = mr_stats_counter(
        sh->stats, "millrace_worker_fetches_total", "Objects brought from other nodes.", NULL);
    sh->reconnects = mr_stats_counter(
        sh->stats, "millrace_worker_connects_total", "Streams opened to the scheduler.", NULL);
    sh->memory = mr_stats_gauge(
        sh->stats, "millrace_worker_memory_bytes", "Resident memory of the process.", NULL);
    train_stats_open(sh->stats);
}

/* Keeps the worker's address for other processes, with the port that the system chose instead of
 * port 0. */
static void address_note(struct mr_worker_shell *sh, const char *listened, int port)
{
    size_t n = strlen(listened);
    bool is_chosen = port && n > 2 && !strcmp(listened + n - 2, ":0");
    mr_release(sh->address);
    sh->address =
        is_chosen ? mr_format("%.*s:%d", (int)(n - 2), listened, port) : mr_copy_text(listened);
    mr_log(MR_INFO, "worker.listening", "address=%s", sh->address);
}

static int server_open(
    struct mr_worker_shell *sh, const struct mr_worker_options *o, struct mr_error *e)
{
    if (!o->listen_count) return MR_OK;
    const struct mr_rpc_server_options options = {
        .peers = o->peers, .auth = mr_rpc_auth_callback(o->auth), .auth_ctx = mr_unconst(o->auth)};
    sh->server = mr_rpc_server_new(sh->loop, &options);
    mr_rpc_server_add_metrics(sh->server, sh->stats);
    sh->params = mr_params_service_open(sh->server, sh->loop);
    int err = mr_rpc_server_add_descriptors(sh->server, mr_proto_descriptor_set(), e);
    for (size_t i = 0; i < o->listen_count && !err; i++) {
        int port = 0;
        err = mr_rpc_auth_listen(o->auth, sh->server, o->listen[i], &port, e);
        if (!err) address_note(sh, o->listen[i], port);
    }
    if (!err) mr_rpc_server_start(sh->server);
    return err;
}

/* Removes shared memory and directories that killed processes of this user have left. */
static void leftovers_remove(void)
{
    size_t n = mr_transport_sweep() + mr_process_dir_sweep("/tmp", MR_PROCESS_DIR_KIND);
    mr_process_files_begin();
    n += mr_process_dir_sweep("/tmp", MR_PROCESS_DIR_KIND);
    mr_process_files_end();
    if (n) mr_log(MR_INFO, "scratch.swept", "directories=%zu", n);
}

int mr_worker_shell_open(
    const struct mr_worker_options *o, struct mr_worker_shell **out, struct mr_error *e)
{
    MR_AUTO(mr_worker_shell_close) struct mr_worker_shell *sh = mr_alloc(sizeof *sh);
    sh->connect_at = sh->end_at = sh->logs_at = MR_NEVER;
    sh->scheduler = o->scheduler;
    const struct mr_transport_options share = {.node = o->node,
        .credential = mr_rpc_auth_credential(o->auth, MR_SERVICE_WORKER),
        .peers = o->peers};
    mr_transport_configure(&share);
    leftovers_remove();
    /* Channels without a call need not be polled. The channel to the scheduler always has a call.
     * On the channels of training roles a call may fail, and the roles repeat it. */
    mr_rpc_leave_idle_channels();
    sh->loop = mr_rpc_loop_new();
    mr_loan_lock_init(&sh->loan_lock);
    sh->inbox = mr_inbox_new(INBOX_MAX, sizeof(struct mr_item));
    mr_inbox_set_waiter(sh->inbox, mr_rpc_loop_waiter(sh->loop));
    mr_pb_arena_init(&sh->arena_in, (size_t)256 << 20);
    mr_pb_arena_init(&sh->arena_out, (size_t)1 << 30);
    mr_buf_init(&sh->wire, MR_MESSAGE_BYTES_MAX);
    sh->logs = mr_alloc_array(MR_WORKER_LOGS_MAX, sizeof *sh->logs);
    stats_open(sh);
    ops_fill(sh, o->registry);
    int err = store_open(sh, o, e);
    if (!err) err = crash_record_open(sh, o, e);
    if (!err) err = server_open(sh, o, e);
    if (err) return err;
    identity_fill(sh, o);
    core_open(sh, o);
    struct mr_rpc_channel_options channel = {
        .credential = mr_rpc_auth_credential(o->auth, MR_SERVICE_SCHEDULER)};
    sh->channel = mr_rpc_channel_open(sh->loop, o->scheduler, &channel);
    *out = MR_STEAL(sh);
    return MR_OK;
}

void mr_worker_shell_close(struct mr_worker_shell **shell)
{
    struct mr_worker_shell *sh = *shell;
    if (!sh) return;
    sh->ending = true;
    for (uint32_t i = 0; i < sh->executors_count; i++)
        mr_executor_stop(&sh->executors[i]);
    mr_executor_stop(&sh->here);
    mr_clock_delay_close(&sh->env.network_delay_fd);
    mr_work_sharing_free(&sh->work_sharing);
    mr_transport_close();
    mr_prefetch_stop(&sh->prefetch);
    if (sh->channel) mr_worker_link_free(sh);
    if (sh->channel) mr_rpc_channel_close(&sh->channel);
    if (sh->server) mr_rpc_server_close(&sh->server, 100 * MR_MS);
    mr_params_service_close(&sh->params);
    for (struct mr_item item; mr_inbox_take(sh->inbox, &item, 1);)
        if (item.kind == MR_ITEM_REPORT && item.report.last) mr_run_free(&item.report.run);
    mr_rpc_loop_free(&sh->loop);
    mr_inbox_free(&sh->inbox);
    mr_loan_lock_fini(&sh->loan_lock);
    mr_worker_free(&sh->core);
    mr_worker_effects_fini(&sh->fx);
    mr_crash_record_close(&sh->crash_record);
    mr_store_close(&sh->store);
    mr_pb_arena_fini(&sh->arena_in);
    mr_pb_arena_fini(&sh->arena_out);
    mr_buf_fini(&sh->wire);
    mr_stats_free(&sh->stats);
    mr_release(sh->address);
    mr_release(sh->logs);
    mr_release(sh->suspect_runs);
    mr_release(sh->executors);
    mr_release(sh->runs);
    mr_release(sh->ops);
    mr_release(sh->core_ops);
    mr_release(sh);
    *shell = NULL;
}

bool mr_worker_shell_is_idle(const struct mr_worker_shell *sh)
{
    return !sh->runs_count;
}

/* Determines when a pause began. The pause ended before `until`. The next message tells the
 * scheduler of it. */
static void paused(struct mr_worker_shell *sh, mr_time until)
{
    mr_time from = 0;
    mr_pulse_narrow(&sh->pulse, &from, &until);
    for (uint32_t i = 0; i < sh->identity.slots; i++)
        if (sh->executors[i]) mr_pulse_narrow(mr_executor_pulse(sh->executors[i]), &from, &until);
    if (!from) return;
    mr_log(MR_WARN, "worker.paused", "name=%s for_ms=%" PRIu64, sh->identity.name,
        (until - from) / MR_MS);
    sh->paused_from = from;
    sh->paused_until = until;
}

void mr_worker_shell_take(struct mr_worker_shell *sh, const struct mr_item *item)
{
    struct mr_worker_event ev = {.kind = MR_WORKER_DRAIN};
    switch (item->kind) {
    case MR_ITEM_LOGGED:
        sh->logs_at = MR_MIN(sh->logs_at, mr_time_after(sh->logs_looked_at, LOGS_EVERY));
        return;
    case MR_ITEM_REPORT:
        /* sh->here is an executor without a thread. Neither sh->reported nor sh->wake_counter
         * counts the tasks that sh->here ran. */
        sh->reported += item->report.fresh;
        mr_worker_shell_report(sh, &item->report);
        return;
    case MR_ITEM_FETCHED:
        ev.kind = MR_WORKER_FETCHED;
        ev.fetched.value = item->fetched.value;
        ev.fetched.serial = item->fetched.serial;
        ev.fetched.err = item->fetched.err;
        ev.fetched.why = mr_str(item->fetched.why);
        break;
    case MR_ITEM_CONTINUED: paused(sh, item->at); return;
    case MR_ITEM_SIGNAL:
        if (sh->signals++) {
            sh->end_at = sh->now;
            return;
        }
        mr_log(MR_INFO, "worker.drain", "name=%s", sh->identity.name);
        sh->end_at = mr_time_after(sh->now, DRAIN_MAX);
        break;
    }
    mr_worker_shell_step(sh, &ev);
}

static mr_time next_time(const struct mr_worker_shell *sh)
{
    mr_time at = MR_MIN(mr_worker_deadline(sh->core), sh->end_at);
    if (sh->params) at = MR_MIN(at, mr_params_service_deadline(sh->params));
    return MR_MIN(MR_MIN(at, sh->logs_at), sh->connect_at);
}

static void watch(struct mr_worker_shell *sh)
{
    if (sh->store && !mr_store_is_alive(sh->store) && !sh->ending) {
        /* The shared memory of a store is lost with the store: no process can read the objects that
         * this worker holds. */
        mr_log(MR_ERROR, "store.lost", "name=%s", sh->identity.name);
        if (sh->crash_record) mr_crash_record_clear(sh->crash_record);
        sh->exit_code = MR_WORKER_EXIT_STORE;
        sh->end_at = sh->now;
    }
    if (sh->logs_at <= sh->now) {
        bool is_behind = sh->call && !mr_worker_link_may_send(sh);
        sh->logs_at = is_behind ? mr_time_after(sh->now, LOGS_EVERY) : MR_NEVER;
        sh->logs_looked_at = sh->now;
        if (!is_behind) mr_worker_link_logs_of_running(sh);
    }
    if (sh->now < sh->memory_at) return;
    sh->memory_at = mr_time_after(sh->now, MEMORY_EVERY);
    sh->memory_used = mr_machine_resident();
    sh->cpu_ns = mr_clock_process_cpu();
    sh->traffic = mr_rpc_traffic();
    mr_gauge_set(sh->memory, (int64_t)sh->memory_used);
}

int mr_worker_shell_run(struct mr_worker_shell *sh)
{
    struct mr_item batch[BATCH];
    mr_log(MR_INFO, "worker.start", "name=%s node=%s slots=%u scheduler=%s ops=%u",
        sh->identity.name, sh->identity.node, sh->identity.slots, sh->scheduler,
        mr_registry_count(sh->identity.ops));
    sh->now = mr_clock_now();
    mr_worker_shell_allow_delegates(sh, true);
    for (;;) {
        if (!sh->ending) mr_worker_shell_turn(sh);
        if (sh->connect_at <= sh->now && !sh->ending) {
            sh->connect_at = MR_NEVER;
            mr_worker_link_open(sh);
            continue;
        }
        mr_time deadline = sh->ending ? sh->end_at : next_time(sh);
        mr_rpc_loop_be_eager(sh->loop, mr_worker_shell_is_idle(sh));
        size_t n =
            mr_inbox_wait(sh->inbox, mr_worker_shell_sleep_deadline(sh, deadline), batch, BATCH);
        sh->now = MR_MAX(sh->now, mr_clock_now());
        mr_pulse_mark(&sh->pulse, sh->now);
        for (size_t i = 0; i < n; i++)
            mr_worker_shell_take(sh, &batch[i]);
        watch(sh);
        if (sh->end_at <= sh->now || (sh->ending && !sh->call)) break;
    }
    mr_worker_shell_allow_delegates(sh, false);
    mr_transport_unlink(); /* callers may exit without mr_worker_shell_close */
    return sh->exit_code;
}
