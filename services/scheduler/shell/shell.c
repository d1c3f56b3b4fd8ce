/* The loop. A turn waits for messages and gRPC events, steps the core with each, and performs the
 * effects once. mr_inbox_wait is the only call of this thread that blocks. */
#include "services/scheduler/shell/shell.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "host/os/stats.h"
#include "proto/methods.h"
#include "services/scheduler/base/catalogue.h"
#include "services/scheduler/live/live.h"
#include "services/scheduler/live/usage.h"
#include "services/scheduler/predict/predict.h"
#include "services/scheduler/shell/cluster.h"
#include "services/scheduler/telemetry/cluster_watch.h"
#include "services/scheduler/shell/jobs.h"
#include "services/scheduler/base/journal_link.h"
#include "services/scheduler/telemetry/logs.h"
#include "services/scheduler/telemetry/metrics.h"
#include "services/scheduler/shell/session_send.h"
#include "services/scheduler/shell/sessions.h"
#include "services/scheduler/shell/submit.h"
#include "services/scheduler/shell/templates_service.h"
#include "services/scheduler/telemetry/trace_reader.h"
#include "services/scheduler/shell/watch.h"
#include "services/scheduler/submit/parser.h"

#include <inttypes.h>

#define BATCH_MAX 64
#define DRAIN_TIME MR_SECOND /* how long a shutdown waits for Redis to confirm submissions */
#define INBOX_MAX 65536
/* limit of the time that a parser thread waits while the inbox is full */
#define INBOX_TIMEOUT (60 * MR_SECOND)
#define SCRATCH_BYTES_MAX ((size_t)1 << 30)

static void joined(struct mr_shell *sh, uint32_t slot)
{
    struct mr_session_facts facts = {0};
    (void)mr_sessions_facts(sh, slot, &facts);
    mr_trace_worker(sh, slot, facts.began, facts.processors);
}

static void perform_note(struct mr_shell *sh, const struct mr_sched_note *n)
{
    struct mr_str text = mr_str_of(sh->fx.text.p + n->text_at, n->text_bytes);
    const uint32_t *ready = (const void *)sh->fx.ready.p;
    switch (n->type) {
    case MR_NOTE_REPLY:
        if (n->index) mr_cluster_watch_job(sh, n->job, (enum mr_job_state)n->index);
        if (n->index) mr_trace_job_accepted(sh, n->job, mr_submit_client(sh, n->ticket));
        mr_submit_reply(sh, n, text);
        break;
    case MR_NOTE_JOB_STATE:
        mr_cluster_watch_job(sh, n->job, (enum mr_job_state)n->index);
        mr_watch_job_changed(sh, n->job, false);
        mr_trace_job_changed(sh, n->job);
        mr_logs_job_changed(sh, n->job);
        break;
    case MR_NOTE_JOB_PROGRESS:
        mr_watch_job_changed(sh, n->job, true);
        mr_logs_job_changed(sh, n->job);
        break;
    case MR_NOTE_TARGETS_READY: mr_watch_targets_ready(sh, n->job, ready + n->at, n->count); break;
    case MR_NOTE_TARGET_BYTES: mr_watch_target_bytes(sh, n->job, n->index, text); break;
    case MR_NOTE_TARGET_FAILED: mr_watch_target_failed(sh, n->job, n->index, n->code, text); break;
    case MR_NOTE_JOB_FORGOTTEN:
        mr_cluster_watch_forgotten(sh, n->job);
        mr_watch_forgotten(sh, n->job);
        mr_trace_forget(sh, n->job);
        mr_logs_forget(sh, n->job);
        break;
    case MR_NOTE_WORKER_JOINED:
        mr_cluster_watch_dirty(sh);
        mr_sessions_note(sh, n, text);
        joined(sh, n->slot);
        break;
    case MR_NOTE_WORKER_CLOSE:
        mr_trace_worker_gone(sh, n->slot, n->incarnation);
        mr_cluster_watch_dirty(sh);
        mr_sessions_note(sh, n, text);
        break;
    case MR_NOTE_WORKER_REFUSED:
    case MR_NOTE_STORE_JOINED:
    case MR_NOTE_STORE_LOST:
        mr_cluster_watch_dirty(sh);
        mr_sessions_note(sh, n, text);
        break;
    }
}

/* Performs the effects in this order: notes to clients, batches to workers, the journal's records
 * to Redis. Dispatch needs no acknowledgement of the journal, and the core keeps replies back until
 * there is one. The write to Redis takes as long as a worker needs to start a task, so tasks leave
 * before the write. */
static void perform(struct mr_shell *sh)
{
    mr_journal_link_perform(sh);
    mr_buf_clear(&sh->fx.journal);
    for (size_t at = 0; at < sh->fx.notes.n; at += sizeof(struct mr_sched_note)) {
        struct mr_sched_note n; /* a copy: a handler may step the core, which may move the buffer */
        memcpy(&n, sh->fx.notes.p + at, sizeof n);
        perform_note(sh, &n);
    }
    mr_sessions_receipts(sh);
    mr_trace_add(sh);
    if (mr_sessions_flush(sh)) mr_rpc_loop_flush(sh->loop);
    mr_journal_link_perform(sh);
    mr_journal_link_flush(sh);
    mr_sched_effects_clear(&sh->fx);
}

static void parsed(struct mr_shell *sh, struct mr_parser_result *done)
{
    mr_parser_received(sh->parser, done);
    if (done->form >= MR_PARSER_INSTALL) {
        mr_template_answered(sh, done);
        mr_parser_result_free(&done);
    } else {
        mr_submit_parsed(sh, done);
    }
}

/* Reports the pause of this process that ended before `until`. */
static void paused(struct mr_shell *sh, mr_time until)
{
    mr_time from = 0;
    mr_pulse_narrow(&sh->pulse, &from, &until);
    if (!from) return;
    mr_log(MR_WARN, "scheduler.paused", "for_ms=%" PRIu64, (until - from) / MR_MS);
    mr_trace_paused(sh, from, until);
}

static void on_message(struct mr_shell *sh, const struct mr_shell_message *m)
{
    switch (m->kind) {
    case MR_SHELL_PARSED: parsed(sh, m->p); break;
    case MR_SHELL_TRACE: {
        struct mr_trace_answer *answer = m->p;
        mr_trace_answered(sh, &answer);
        break;
    }
    case MR_SHELL_PREDICTED: {
        struct mr_predict_run *run = m->p;
        mr_predict_ended(sh, &run);
        break;
    }
    case MR_SHELL_SIGNAL:
        mr_log(MR_INFO, "scheduler.stopping", "signal=%" PRIu64, m->n);
        sh->is_stopping = true;
        break;
    case MR_SHELL_CONTINUED: paused(sh, m->n); break;
    case MR_SHELL_ACKED:
    case MR_SHELL_AWAY:
    case MR_SHELL_BACK:
    case MR_SHELL_REWIND:
    case MR_SHELL_REFUSED: mr_journal_link_message(sh, m); break;
    }
}

static void turn(struct mr_shell *sh, mr_time until)
{
    struct mr_shell_message batch[BATCH_MAX];
    mr_time deadline = MR_MIN(mr_sched_deadline(sh->core), mr_watch_deadline(sh));
    deadline = MR_MIN(deadline, mr_sessions_deadline(sh));
    deadline = MR_MIN(deadline, mr_trace_deadline(sh));
    deadline = MR_MIN(deadline, mr_submit_deadline(sh));
    deadline = MR_MIN(deadline, mr_usage_deadline(sh));
    deadline = MR_MIN(deadline, mr_live_deadline(sh));
    deadline = MR_MIN(deadline, mr_cluster_watch_deadline(sh));
    deadline = MR_MIN(deadline, until);
    mr_rpc_loop_be_eager(sh->loop, mr_sched_has_idle_slots(sh->core));
    mr_pulse_mark(&sh->pulse, mr_clock_now());
    size_t n = mr_inbox_wait(sh->inbox, deadline, batch, MR_ARRAY_LEN(batch));
    for (size_t i = 0; i < n; i++)
        on_message(sh, &batch[i]);
    mr_time now = mr_clock_now();
    if (mr_sched_deadline(sh->core) <= now) {
        struct mr_sched_event tick = {.type = MR_SCHED_TICK};
        mr_shell_step(sh, &tick);
    }
    mr_watch_tick(sh, now);
    mr_submit_tick(sh, now);
    perform(sh);
    mr_cluster_watch_tell(sh, now);
    mr_usage_tick(sh, now);
    mr_trace_tick(sh, now);
    mr_live_tick(sh, now);
}

/* Answers every call that waits. Submissions wait up to DRAIN_TIME until Redis confirms them. */
static void drain(struct mr_shell *sh)
{
    mr_rpc_server_drain(sh->server);
    mr_watch_stop(sh);
    mr_cluster_watch_stop(sh);
    mr_live_stop(sh);
    mr_time until = mr_clock_now() + DRAIN_TIME;
    while (!mr_list_is_empty(&sh->answers) && mr_clock_now() < until)
        turn(sh, until);
    mr_submit_stop(sh);
}

int mr_shell_run(struct mr_shell *sh)
{
    perform(sh);
    while (!sh->is_stopping)
        turn(sh, MR_NEVER);
    /* exit_code is not 0: another scheduler has taken over, so answers from here could be stale */
    if (!sh->exit_code) drain(sh);
    return sh->exit_code;
}

/* Passes a result to the core thread. Runs on a parser thread. */
static void on_parsed(void *ctx, struct mr_parser_result **result)
{
    const struct mr_shell *sh = ctx;
    const struct mr_shell_message m = {.kind = MR_SHELL_PARSED, .p = *result};
    if (mr_inbox_push_wait(sh->inbox, &m, mr_clock_now() + INBOX_TIMEOUT))
        mr_parser_result_free(result);
    *result = NULL;
}

static void end_waits(void *ctx, struct mr_str waiter)
{
    mr_watch_end_waits(ctx, waiter);
}

static int listen_all(
    struct mr_shell *sh, const char *const *listen, size_t count, struct mr_error *e)
{
    int err = mr_rpc_server_add_descriptors(sh->server, mr_proto_descriptor_set(), e);
    for (size_t i = 0; i < count && !err; i++) {
        int port = 0;
        err = mr_rpc_auth_listen(sh->auth, sh->server, listen[i], &port, e);
        if (!err) mr_log(MR_INFO, "scheduler.listening", "address=%s port=%d", listen[i], port);
    }
    return err;
}

int mr_shell_open(const struct mr_scheduler_options *options, const char *const *listen,
    size_t listen_count, struct mr_shell **out, struct mr_error *e)
{
    MR_AUTO(mr_shell_close) struct mr_shell *sh = mr_alloc(sizeof *sh);
    sh->options = *options;
    mr_list_init(&sh->answers);
    sh->answers_due = MR_NEVER;
    mr_list_init(&sh->reading);
    sh->reading_due = MR_NEVER;
    sh->started_wall_ns = mr_clock_wall();
    sh->loop = mr_rpc_loop_new();
    sh->inbox = mr_inbox_new(INBOX_MAX, sizeof(struct mr_shell_message));
    mr_inbox_set_waiter(sh->inbox, mr_rpc_loop_waiter(sh->loop));
    mr_pb_arena_init(&sh->scratch, SCRATCH_BYTES_MAX);
    const struct mr_rpc_auth_options access = {.token_file = options->token_file,
        .secret_file = options->secret_file,
        .role_of = mr_proto_role,
        .callers_of = mr_proto_callers};
    int err = mr_rpc_auth_new(&access, &sh->auth, e);
    if (!err) err = mr_journal_link_open(sh, e);
    if (err) return err;
    mr_arena_init(&sh->arena, mr_sched_arena_bytes(&sh->options.core));
    mr_sched_effects_init(&sh->fx, sh->options.core.workers_max, sh->options.core.stores_max);
    sh->core = mr_sched_new(&sh->options.core, &sh->arena);
    sh->sessions = mr_sessions_new(sh);
    sh->watch = mr_watch_new(sh);
    sh->logs = mr_logs_new();
    sh->cluster_watch = mr_cluster_watch_new(sh);
    sh->usage = mr_usage_new(sh);
    sh->live = mr_live_new();
    sh->catalogue = mr_catalogue_new();
    const struct mr_parser_options parser = {.redis = options->redis,
        .redis_password = options->redis_password,
        .auth = sh->auth,
        .reading_bytes = options->reading_bytes,
        .on_result = on_parsed,
        .ctx = sh};
    err = mr_parser_open(&parser, &sh->parser, e);
    if (err) return err;
    mr_journal_link_replay(sh);
    err = mr_trace_open(sh, e);
    if (err) return err;
    sh->predict = mr_predict_open(sh);
    const struct mr_rpc_server_options server = {.fixed_window = true,
        .peers = options->peers,
        .auth = mr_rpc_auth_callback(sh->auth),
        .auth_ctx = sh->auth};
    sh->server = mr_rpc_server_new(sh->loop, &server);
    mr_rpc_server_add_service(sh->server, &mr_jobs_service, sh);
    mr_rpc_server_add_service(sh->server, &mr_cluster_service, sh);
    mr_rpc_server_add_service(sh->server, &mr_templates_service, sh);
    mr_rpc_server_add_service(sh->server, &mr_worker_session_service, sh);
    mr_rpc_server_add_service(sh->server, &mr_store_session_service, sh);
    sh->waits = (struct mr_rpc_waits){end_waits, sh};
    mr_rpc_server_add_waits(sh->server, &sh->waits);
    mr_metrics_add(sh);
    err = listen_all(sh, listen, listen_count, e);
    if (err) return err;
    mr_rpc_server_start(sh->server);
    *out = MR_STEAL(sh);
    return MR_OK;
}

void mr_shell_close(struct mr_shell **shp)
{
    struct mr_shell *sh = *shp;
    *shp = NULL;
    if (!sh) return;
    if (sh->server) mr_rpc_server_close(&sh->server, MR_SECOND / 2);
    if (sh->core) {
        mr_journal_link_perform(sh);
        mr_journal_link_flush(sh);
    }
    mr_parser_close(&sh->parser);
    mr_journal_link_close(&sh->journal);
    mr_watch_free(&sh->watch);
    mr_logs_free(&sh->logs);
    mr_cluster_watch_free(&sh->cluster_watch);
    mr_live_free(&sh->live);
    mr_usage_free(&sh->usage);
    mr_predict_close(&sh->predict);
    mr_trace_close(&sh->trace);
    mr_sessions_free(&sh->sessions);
    mr_catalogue_free(&sh->catalogue);
    if (sh->core) {
        mr_sched_free(&sh->core);
        mr_sched_effects_fini(&sh->fx);
        mr_arena_fini(&sh->arena);
    }
    mr_pb_arena_fini(&sh->scratch);
    struct mr_shell_message m;
    while (mr_inbox_take(sh->inbox, &m, 1)) {
        struct mr_trace_answer *answer = m.kind == MR_SHELL_TRACE ? m.p : NULL;
        mr_trace_answer_free(&answer);
        struct mr_parser_result *done = m.kind == MR_SHELL_PARSED ? m.p : NULL;
        mr_parser_result_free(&done);
        struct mr_predict_run *run = m.kind == MR_SHELL_PREDICTED ? m.p : NULL;
        mr_predict_run_free(&run);
    }
    mr_inbox_free(&sh->inbox);
    mr_rpc_loop_free(&sh->loop);
    mr_stats_free(&sh->stats);
    mr_rpc_auth_free(&sh->auth);
    mr_release(sh);
}
