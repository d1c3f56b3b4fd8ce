/* The stream to the scheduler. Messages that come become events of the core; messages of the core
 * and the output of tasks are sent. */
#include "services/worker/shell/scheduler_session.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/unconst.h"
#include "host/os/log.h"
#include "rpc/status.h"
#include "services/worker/shell/effects.h"
#include "session/decode.h"
#include "session/encode.h"

#include <inttypes.h>

#define CONNECT_METHOD "/millrace.v1.WorkerSession/Connect"
/* a scheduler that starts together with the worker answers within this time */
#define ALONE (3 * MR_SECOND)
#define ALONE_AGAIN (60 * MR_SECOND)
#define LOGS_BYTES_MAX ((size_t)1 << 20)
/* bytes that are kept of each further text when LOGS_BYTES_MAX is reached */
#define LOG_LITTLE ((size_t)256)
#define GRPC_FAILED_PRECONDITION 9
#define GRPC_PERMISSION_DENIED 7
#define GRPC_UNAUTHENTICATED 16

static void logs_clear(struct mr_worker_shell *sh)
{
    for (uint32_t i = 0; i < sh->logs_count; i++)
        mr_release(mr_unconst(sh->logs[i].text.p));
    sh->logs_count = 0;
    sh->logs_bytes = 0;
}

static void log_add(struct mr_worker_shell *sh, struct mr_ws_log x)
{
    if (!x.text.n) return;
    if (sh->logs_count == MR_WORKER_LOGS_MAX) {
        mr_log(MR_WARN, "worker.log_dropped", "job=%" PRIu64 " index=%u bytes=%zu", x.job.v,
            x.index, x.text.n);
        return;
    }
    size_t over = sh->logs_bytes + x.text.n > LOGS_BYTES_MAX ? x.text.n : 0;
    over -= MR_MIN(over, LOG_LITTLE);
    x.lost += over;
    x.text = mr_str_of(mr_copy(x.text.p + over, x.text.n - over), x.text.n - over);
    sh->logs[sh->logs_count++] = x;
    sh->logs_bytes += x.text.n;
}

void mr_worker_link_log(struct mr_worker_shell *sh, const struct mr_strand_item *item)
{
    const struct mr_strand_result *r = &item->result;
    if (!r->log.n) return;
    struct mr_str rest = mr_str_of(r->log.p + r->log_reported, r->log.n - r->log_reported);
    log_add(sh, (struct mr_ws_log){item->job, item->index, item->attempt, rest, r->log_lost});
}

void mr_worker_link_logs_of_running(struct mr_worker_shell *sh)
{
    struct mr_buf text;
    uint64_t tag[MR_TAIL_TAG];
    uint64_t lost = 0;
    mr_buf_init(&text, 2 * MR_TASK_LOG_BYTES_MAX);
    for (uint32_t i = 0; i < sh->executors_count; i++) {
        mr_buf_clear(&text);
        if (!sh->executors[i] || !mr_executor_take_log(sh->executors[i], tag, &text, &lost))
            continue;
        log_add(sh, (struct mr_ws_log){
                        {tag[0]}, (uint32_t)tag[1], (uint32_t)tag[2], mr_buf_str(&text), lost});
    }
    mr_buf_fini(&text);
    if (sh->logs_count && sh->has_sent_register) mr_worker_link_send(sh, NULL);
}

bool mr_worker_link_may_send(const struct mr_worker_shell *sh)
{
    return sh->call && !mr_rpc_call_queued_bytes(sh->call);
}

void mr_worker_link_send(struct mr_worker_shell *sh, const struct mr_ws_up *up)
{
    struct mr_ws_up m = up ? *up : (struct mr_ws_up){0};
    struct mr_ws_register reg;
    mr_pb_arena_clear(&sh->arena_out);
    mr_buf_clear(&sh->wire);
    if (!sh->call) return;
    if (m.reg) {
        reg = *m.reg;
        mr_worker_identity_fill(&sh->identity, &sh->arena_out, &reg);
        m.reg = &reg;
    } else {
        m.logs = sh->logs;
        m.logs_count = sh->logs_count;
        m.paused_from_ns = sh->paused_from;
        m.paused_until_ns = sh->paused_until;
        sh->paused_from = sh->paused_until = 0;
    }
    mr_ws_encode_up(&m, &sh->wire);
    if (!m.reg) logs_clear(sh);
    sh->has_sent_register = true; /* the first message of a stream is Register */
    int err = mr_buf_status(&sh->wire);
    if (!err) err = mr_rpc_call_send(sh->call, mr_buf_str(&sh->wire));
    if (!err) return;
    /* A message of the core is lost. A new stream reconciles both sides. */
    mr_log(MR_WARN, "session.send", "bytes=%zu error=%s", sh->wire.n, mr_err_name(err));
    mr_rpc_call_cancel(sh->call);
}

static void *take(void *arena, size_t bytes)
{
    return mr_pb_arena_take(arena, bytes);
}

static void on_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_worker_shell *sh = mr_rpc_call_context(call);
    struct mr_error e;
    struct mr_ws_down down;
    if (call != sh->call) return; /* the stream was given up */
    mr_pb_arena_clear(&sh->arena_in);
    const struct mr_ws_memory memory = {take, &sh->arena_in, sh->arena_in.bytes_max};
    int err = mr_ws_decode_down(mr_rpc_message_str(m), &memory, &down, &e);
    if (err) {
        mr_log(MR_ERROR, "session.message", "error=\"%s\"", e.text);
        mr_rpc_call_cancel(call);
        return;
    }
    if (down.registered) {
        sh->incarnation = down.registered->incarnation;
        /* The scheduler knows now which tasks are suspected of a crash. */
        sh->identity.suspects = (struct mr_ws_refs){0};
        mr_log(MR_INFO, "session.registered",
            "incarnation=%" PRIu64 " epoch=%u scheduler=%016" PRIx64, down.registered->incarnation,
            down.registered->epoch, down.registered->scheduler);
    }
    /* An idle worker gets its first tasks. Most tasks are short, so an answer is sent soon, and the
     * next read can wait for it. */
    if (down.tasks.count && mr_worker_shell_is_idle(sh)) mr_rpc_call_defer_read(call);
    struct mr_worker_event ev = {.kind = MR_WORKER_MESSAGE, .message = &down};
    mr_worker_shell_step(sh, &ev);
}

static bool is_final(const struct mr_worker_shell *sh, int code)
{
    if (code == GRPC_UNAUTHENTICATED || code == GRPC_PERMISSION_DENIED) return true;
    /* FAILED_PRECONDITION has two causes. Without an incarnation, the worker cannot have been
     * declared lost. The cause is then its protocol or layout version. */
    return code == GRPC_FAILED_PRECONDITION && !sh->incarnation;
}

/* Before the first registration, the scheduler may be about to start. A scheduler that cannot be
 * reached is a warning after ALONE, and then once a minute. */
static enum mr_log_level level_of_loss(struct mr_worker_shell *sh)
{
    if (sh->incarnation) return MR_WARN;
    if (!sh->alone_since) sh->alone_since = sh->now;
    bool lasts = sh->now - sh->alone_since >= ALONE;
    if (!lasts || (sh->alone_reported && sh->now - sh->alone_reported < ALONE_AGAIN))
        return MR_DEBUG;
    sh->alone_reported = sh->now;
    return MR_WARN;
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct mr_worker_shell *sh = mr_rpc_call_context(call);
    if (call != sh->call) return;
    sh->call = NULL;
    sh->has_sent_register = false;
    char words[MR_LOG_LINE_MAX / 2];
    mr_log_quote(status->message, words, sizeof words);
    if (sh->ending) return;
    if (is_final(sh, status->code)) {
        mr_log(MR_ERROR, "session.refused", "code=%d message=%s", status->code, words);
        sh->exit_code = MR_WORKER_EXIT_FATAL;
        sh->end_at = sh->now;
        return;
    }
    bool revoked = status->code == GRPC_FAILED_PRECONDITION;
    mr_log(level_of_loss(sh), revoked ? "session.revoked" : "session.lost", "code=%d message=%s",
        status->code, words);
    if (revoked) sh->incarnation = 0;
    struct mr_worker_event ev = {.kind = revoked ? MR_WORKER_REVOKED : MR_WORKER_DISCONNECTED};
    mr_worker_shell_step(sh, &ev);
}

void mr_worker_link_open(struct mr_worker_shell *sh)
{
    static const struct mr_rpc_handler handler = {.on_message = on_message, .on_done = on_done};
    mr_worker_link_close(sh);
    mr_counter_add(sh->reconnects, 1);
    sh->call = mr_rpc_call_open(sh->channel, CONNECT_METHOD, &handler, sh, NULL);
    struct mr_worker_event ev = {.kind = MR_WORKER_CONNECTED};
    mr_worker_shell_step(sh, &ev);
}

void mr_worker_link_close(struct mr_worker_shell *sh)
{
    struct mr_rpc_call *call = sh->call;
    sh->call = NULL; /* so that on_done of the old call changes nothing */
    if (call) mr_rpc_call_cancel(call);
    sh->has_sent_register = false;
}

void mr_worker_link_free(struct mr_worker_shell *sh)
{
    mr_worker_link_close(sh);
    logs_clear(sh);
}
