/* The loop over gRPC's completion queue: how its thread waits, how other threads wake it, and how
 * an id finds its call. The file that starts a batch knows the meaning of the batch's tag. */
#include "rpc/core.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/os/log.h"

#include <dlfcn.h>
#include <grpc/support/log.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 1024 /* events in one turn */
#define FLUSH_EVERY 32  /* events after which queued messages are sent, even in a busy turn */
#define READ_DEFERRED_MAX MR_MS /* the longest time that a deferred read waits */
#define YOUNG_EVENTS 4          /* a turn with more events is busy */
#define SLEPT (3 * MR_US)       /* if an event took longer to come, the thread slept for it */
/* How long an eager loop polls before it sleeps. A wait up to this length is a short wait. */
#define SPIN (400 * MR_US)
/* An eager loop polls after this many short waits in a row. Heartbeats alone never cause so many
 * short waits. */
#define SHORT_WAITS 3
#define CROWD (500 * MR_US)  /* a sched_yield that took longer has let another thread run */
#define CROWDED (20 * MR_MS) /* how long the loop does not poll after such a sched_yield */

static gpr_timespec timespec_of(mr_time t)
{
    if (t == MR_NEVER) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    gpr_timespec at = {(int64_t)(t / MR_SECOND), (int32_t)(t % MR_SECOND), GPR_CLOCK_MONOTONIC};
    return at;
}

mr_time mr_rpc_time(gpr_timespec t)
{
    gpr_timespec at = gpr_convert_clock_type(t, GPR_CLOCK_MONOTONIC);
    if (gpr_time_cmp(at, gpr_inf_future(GPR_CLOCK_MONOTONIC)) == 0) return MR_NEVER;
    if (at.tv_sec < 0) return 0;
    return mr_time_after((mr_time)at.tv_sec * MR_SECOND, (mr_duration)at.tv_nsec);
}

/* Passes gRPC's log lines to our log. Callers get most of what these lines say as a status, so the
 * level is `debug`. The line before gRPC aborts has the level `error`. */
static void log_line(gpr_log_func_args *args)
{
    if (mr_rpc_tls_notice(args->message)) return;
    char text[MR_LOG_LINE_MAX];
    bool dying = strstr(args->message, "assertion failed");
    mr_log(dying ? MR_ERROR : MR_DEBUG, "grpc.message", "severity=%s text=%s",
        gpr_log_severity_string(args->severity),
        mr_log_quote(mr_str(args->message), text, sizeof text));
}

/* gRPC uses Abseil's locks, and Debian builds Abseil without NDEBUG: each lock operation searches
 * the graph of all locks for a cycle, which is a sixth of the cost of a message. One call turns the
 * search off. Where a build has no function of this name, nothing changes. */
static void trust_locks(void)
{
    enum { IGNORE = 0 };
    void (*set_mode)(int) = NULL;
    void *found = dlsym(
        RTLD_DEFAULT, "_ZN4absl7debian329SetMutexDeadlockDetectionModeENS0_15OnDeadlockCycleE");
    if (!found) return;
    /* ISO C cannot cast an object pointer to a function pointer */
    memcpy(&set_mode, &found, sizeof set_mode);
    set_mode(IGNORE);
}

#define BACKUP_POLL "GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS"
static bool leaves_idle_channels;

void mr_rpc_leave_idle_channels(void)
{
    leaves_idle_channels = !getenv(BACKUP_POLL);
}

/* Starts gRPC once for the process. There is no matching grpc_shutdown: the last grpc_shutdown may
 * wait 10 s for a thread of gRPC that a large write has left behind. */
static void init_grpc(void)
{
    gpr_set_log_function(log_line);
    trust_locks();
    if (leaves_idle_channels) (void)setenv(BACKUP_POLL, "0", 1);
    grpc_init(); /* reads the environment variable, which child processes must not inherit */
    if (leaves_idle_channels) (void)unsetenv(BACKUP_POLL);
}

static void woken(struct mr_rpc_tag *tag, bool ok)
{
    (void)ok;
    struct mr_rpc_loop *loop = MR_CONTAINER_OF(tag, struct mr_rpc_loop, wake_tag);
    loop->woken = true;
    atomic_store(&loop->wake_under_way, false);
}

struct mr_rpc_loop *mr_rpc_loop_new(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, init_grpc);
    struct mr_rpc_loop *loop = mr_alloc(sizeof *loop);
    loop->cq = grpc_completion_queue_create_for_next(NULL);
    loop->wake_channel = grpc_lame_client_channel_create("wake", GRPC_STATUS_UNAVAILABLE, "wake");
    loop->wake_call = grpc_channel_create_call(loop->wake_channel, NULL, GRPC_PROPAGATE_DEFAULTS,
        loop->cq, grpc_slice_from_static_string("/wake"), NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC),
        NULL);
    loop->wake_tag.done = woken;
    loop->slots_free = UINT32_MAX;
    mr_list_init(&loop->dirty);
    mr_list_init(&loop->owed);
    return loop;
}

void mr_rpc_loop_free(struct mr_rpc_loop **loop_at)
{
    if (!*loop_at) return;
    struct mr_rpc_loop *loop = MR_STEAL(*loop_at);
    mr_assert(!atomic_load(&loop->runner));
    /* The loop runs until the calls of closed channels have no batch on the queue any more. */
    while (loop->calls_count)
        (void)mr_rpc_loop_run(loop, MR_NEVER);
    mr_assert(!loop->owners_count);
    grpc_call_unref(loop->wake_call);
    grpc_channel_destroy(loop->wake_channel);
    grpc_completion_queue_shutdown(loop->cq);
    grpc_event ev;
    do {
        ev = grpc_completion_queue_next(loop->cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    } while (ev.type != GRPC_QUEUE_SHUTDOWN);
    grpc_completion_queue_destroy(loop->cq);
    mr_release(loop->slots);
    mr_release(loop);
}

void mr_rpc_loop_flush(struct mr_rpc_loop *loop)
{
    for (;;) {
        struct mr_list *node = mr_list_pop_head(&loop->dirty);
        if (!node) return;
        mr_rpc_call_flush(MR_LIST_ITEM(node, struct mr_rpc_call, dirty_node));
    }
}

/* Requests the next message of each call on `owed`. A request makes gRPC write a window update. The
 * update wakes the peer unless it travels together with a message. So in a turn with few events, a
 * call stays on `owed` until its handler has acted on the last message and may have sent an answer.
 * If `may_wait`, a call with `defers_read` stays on `owed` until the loop has slept once more,
 * unless a message of the call is being sent. In a busy turn no call stays. True: some calls have
 * stayed. */
static bool ask_owed(struct mr_rpc_loop *loop, bool may_wait)
{
    bool some = false;
    MR_LIST_EACH(node, &loop->owed)
    {
        struct mr_rpc_call *call = MR_LIST_ITEM(node, struct mr_rpc_call, owed_node);
        bool sends = mr_rpc_call_has_batch(call, MR_RPC_BATCH_SEND);
        if (may_wait && call->defers_read && !call->has_waited && !sends) {
            call->has_waited = some = true;
            continue;
        }
        mr_list_remove(node);
        call->defers_read = false;
        mr_rpc_call_pump(call);
    }
    return some;
}

void mr_rpc_loop_be_eager(struct mr_rpc_loop *loop, bool is_eager)
{
    loop->is_eager = is_eager;
}

void mr_rpc_loop_set_side(struct mr_rpc_loop *loop, struct mr_rpc_side side)
{
    loop->side = side;
}

/* Polls gRPC's queue and the second source of work (`side`) until the first event of a turn, the
 * deadline or the end of the polling time. */
static grpc_event spin(struct mr_rpc_loop *loop, mr_time begun, mr_time deadline)
{
    mr_time until = MR_MIN(begun + SPIN, deadline);
    for (mr_time now = begun;;) {
        /* `side` is polled before gRPC's queue, because a gRPC event ends the polling at once. */
        if (loop->side.look) loop->side.look(loop->side.ctx);
        grpc_event ev = grpc_completion_queue_next(loop->cq, gpr_time_0(GPR_CLOCK_MONOTONIC), NULL);
        if (ev.type != GRPC_QUEUE_TIMEOUT || loop->woken || now >= until) return ev;
        now = mr_clock_now();
        (void)sched_yield();
        mr_time after = mr_clock_now();
        if (after - now > CROWD) {
            loop->crowded_until = after + CROWDED;
            until = 0;
        }
        now = after;
    }
}

static grpc_event first_event(struct mr_rpc_loop *loop, mr_time begun, mr_time deadline)
{
    grpc_event ev = {.type = GRPC_QUEUE_TIMEOUT};
    bool spins = loop->is_eager && loop->short_waits >= SHORT_WAITS && begun >= loop->crowded_until;
    if (spins && loop->side.attend) loop->side.attend(loop->side.ctx, true);
    if (spins) ev = spin(loop, begun, deadline);
    bool found = spins && (ev.type != GRPC_QUEUE_TIMEOUT || loop->woken);
    if (!found) {
        if (loop->side.attend) loop->side.attend(loop->side.ctx, false);
        if (loop->side.sleep) loop->side.sleep(loop->side.ctx, true);
        ev = grpc_completion_queue_next(loop->cq, timespec_of(deadline), NULL);
        if (loop->side.sleep) loop->side.sleep(loop->side.ctx, false);
        found = ev.type != GRPC_QUEUE_TIMEOUT;
    }
    mr_duration took = mr_clock_now() - begun;
    if (took > SPIN || !found)
        loop->short_waits = 0;
    else if (took > SLEPT && loop->short_waits < SHORT_WAITS)
        loop->short_waits++;
    if (found) loop->turn_is_young = took > SLEPT;
    return ev;
}

/* Runs the events of a turn. The messages from the callback of the first event are sent at once,
 * for low latency. In a busy turn, messages are sent together after up to FLUSH_EVERY events. */
static size_t run_events(struct mr_rpc_loop *loop, mr_time deadline)
{
    const gpr_timespec at = gpr_time_0(GPR_CLOCK_MONOTONIC);
    size_t n = 0;
    while (n < EVENTS_MAX) {
        grpc_event ev = n ? grpc_completion_queue_next(loop->cq, at, NULL)
                          : first_event(loop, mr_clock_now(), loop->woken ? 0 : deadline);
        if (ev.type == GRPC_QUEUE_TIMEOUT) break;
        mr_assert(ev.type == GRPC_OP_COMPLETE);
        struct mr_rpc_tag *tag = ev.tag;
        if (n == YOUNG_EVENTS) {
            loop->turn_is_young = false;
            (void)ask_owed(loop, false);
        }
        tag->done(tag, ev.success != 0);
        if (n++ % FLUSH_EVERY == 0) mr_rpc_loop_flush(loop);
    }
    return n;
}

size_t mr_rpc_loop_run(struct mr_rpc_loop *loop, mr_time deadline)
{
    mr_assert(!atomic_load(&loop->runner)); /* a callback must not run the loop */
    atomic_store(&loop->runner, (uintptr_t)pthread_self());
    mr_rpc_loop_flush(loop);
    if (ask_owed(loop, true))
        deadline = MR_MIN(deadline, mr_time_after(mr_clock_now(), READ_DEFERRED_MAX));
    size_t n = run_events(loop, deadline);
    if (loop->turn) loop->turn(loop->turn_ctx);
    mr_rpc_loop_flush(loop);
    loop->woken = false;
    atomic_store(&loop->runner, 0);
    return n;
}

void mr_rpc_loop_wake(struct mr_rpc_loop *loop)
{
    if (atomic_load(&loop->runner) == (uintptr_t)pthread_self()) {
        loop->woken = true; /* a callback woke the loop, so the turn ends without waiting */
        return;
    }
    if (atomic_exchange(&loop->wake_under_way, true)) return;
    grpc_call_error err = grpc_call_start_batch(loop->wake_call, NULL, 0, &loop->wake_tag, NULL);
    mr_assert(err == GRPC_CALL_OK);
}

static void waiter_wait(void *ctx, mr_time deadline)
{
    (void)mr_rpc_loop_run(ctx, deadline);
}

static void waiter_wake(void *ctx)
{
    mr_rpc_loop_wake(ctx);
}

struct mr_waiter mr_rpc_loop_waiter(struct mr_rpc_loop *loop)
{
    return (struct mr_waiter){waiter_wait, waiter_wake, loop};
}

void mr_rpc_loop_set_turn(struct mr_rpc_loop *loop, void (*run)(void *ctx), void *ctx)
{
    loop->turn = run;
    loop->turn_ctx = ctx;
}

struct mr_rpc_call *mr_rpc_call_find(struct mr_rpc_loop *loop, mr_rpc_call_id id)
{
    uint32_t slot = (uint32_t)id.v;
    if (slot >= loop->slots_count) return NULL;
    const struct mr_rpc_slot *s = &loop->slots[slot];
    return s->generation == (uint32_t)(id.v >> 32) ? s->call : NULL;
}

#if defined(__SANITIZE_THREAD__)
/* gRPC's libraries are not instrumented: TSan does not see how their threads synchronise. Reports
 * with one of these libraries on the stack are suppressed. Reports of our own code stay. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:libgrpc.so\ncalled_from_lib:libgpr.so\n"
           "called_from_lib:libssl.so\ncalled_from_lib:libcrypto.so\n"
           "called_from_lib:libstdc++.so\n"
           "called_from_lib:libabsl_synchronization.so\n"
           "called_from_lib:libabsl_graphcycles_internal.so\n"
           "race:libabsl_\nrace:libgrpc.so\n";
}
#endif
