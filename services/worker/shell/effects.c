/* Gives events to the core and carries out its effects. A turn is one pass of the loop of the
 * thread that steps the core; the event TURN ends it. A strand is a list of tasks, its items, that
 * one executor runs back to back. */
#include "services/worker/shell/effects.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "services/worker/shell/scheduler_session.h"

#include <inttypes.h>

#define TURNS_MAX 8 /* turns in a row before the network is polled again */

void mr_worker_shell_step(struct mr_worker_shell *sh, const struct mr_worker_event *ev)
{
    sh->now = MR_MAX(sh->now, mr_clock_now());
    mr_worker_step(sh->core, sh->now, ev, &sh->fx);
}

static struct mr_executor *executor_of(struct mr_worker_shell *sh, uint32_t slot)
{
    mr_assert(slot < sh->executors_count);
    if (!sh->executors[slot]) sh->executors[slot] = mr_executor_start(&sh->env, slot);
    return sh->executors[slot];
}

static void wants_flush(struct mr_worker_shell *sh)
{
    if (sh->wants_count) mr_store_want(sh->store, sh->wants, sh->wants_count, sh->wants_at_once);
    sh->wants_count = 0;
}

/* Many tasks in a row read the same object, so an id that equals the one before is not repeated. */
static void want(struct mr_worker_shell *sh, mr_object_id id, bool at_once)
{
    if (!sh->store) return;
    uint32_t n = sh->wants_count;
    if (n && sh->wants_at_once == at_once && mr_object_id_eq(sh->wants[n - 1], id)) return;
    if (n == MR_ARRAY_LEN(sh->wants) || sh->wants_at_once != at_once) wants_flush(sh);
    sh->wants_at_once = at_once;
    sh->wants[sh->wants_count++] = id;
}

/* Asks the store to restore the spilled inputs of the whole strand together, because the executor
 * will ask for one input after the other. */
static void want_inputs(struct mr_worker_shell *sh, const struct mr_strand *strand)
{
    if (!sh->store || !mr_store_has_spilled(sh->store)) return;
    for (uint32_t i = 0; i < strand->count; i++) {
        const struct mr_strand_item *item = &strand->items[i];
        if (sh->env.ops[item->op]->flags & MR_OP_BY_REFERENCE) continue;
        for (uint32_t k = 0; k < item->inputs_count; k++)
            if (item->inputs[k].kind == MR_STRAND_OBJECT) want(sh, item->inputs[k].object, true);
    }
    wants_flush(sh);
}

static void start(struct mr_worker_shell *sh, struct mr_strand *strand)
{
    want_inputs(sh, strand);
    if (strand->id >= sh->runs_room) {
        uint32_t room = MR_MAX(strand->id + 1, sh->runs_room * 2);
        sh->runs = mr_grow(sh->runs, sh->runs_room * sizeof *sh->runs, room * sizeof *sh->runs);
        sh->runs_room = room;
    }
    struct mr_run *run = mr_run_new(strand);
    bool here = !sh->runs_count && !sh->by_delegate && strand->slot < sh->identity.slots &&
                mr_executor_is_small(&sh->env, strand);
    sh->runs[strand->id] = run;
    sh->runs_count++;
    mr_counter_add(sh->strands, 1);
    /* A small strand runs on this thread if no other strand runs: to hand the strand to the slot's
     * sleeping thread, and its result back, takes twenty times as long as to run it. */
    if (here)
        mr_executor_run_here(sh->here, run);
    else
        mr_executor_give(executor_of(sh, strand->slot), run);
}

/* The executor moves with the strand that it runs, and another executor takes its slot. */
static void move(struct mr_worker_shell *sh, uint32_t from, uint32_t to)
{
    struct mr_executor *fresh = executor_of(sh, to);
    sh->executors[to] = sh->executors[from];
    sh->executors[from] = fresh;
    mr_executor_help(sh->executors[to], false);
    mr_executor_help(fresh, true);
}

static struct mr_run *run_of(struct mr_worker_shell *sh, uint32_t strand)
{
    return strand < sh->runs_room ? sh->runs[strand] : NULL;
}

static void take(struct mr_worker_shell *sh, uint32_t strand, uint32_t keep)
{
    struct mr_run *run = run_of(sh, strand);
    mr_assert(run); /* the core lends the strand until it is reported */
    struct mr_worker_event ev = {.kind = MR_WORKER_CUT,
        .cut = {.strand = strand, .count = mr_strand_cursor_cut(&run->cursor, keep)}};
    mr_worker_shell_step(sh, &ev);
}

/* Reports the items of the strand that are finished so far, in place of the executor. The executor
 * itself reports only after an item, and the running item may take long. */
static void look(struct mr_worker_shell *sh, uint32_t strand)
{
    struct mr_run *run = run_of(sh, strand);
    uint32_t done = run ? mr_strand_cursor_settled(&run->cursor) : 0;
    struct mr_run_report r = {.run = run, .done = done};
    if (done) mr_worker_shell_report(sh, &r);
}

static void fetch(struct mr_worker_shell *sh, const struct mr_worker_effect *e)
{
    const char *address = mr_worker_node(sh->core, e->object.node)->address.p;
    int err = MR_EUNIMPL;
    mr_counter_add(sh->fetches, 1);
    if (sh->prefetch)
        err = mr_prefetch_fetch(
            sh->prefetch, e->object.value, e->object.serial, e->object.object, address);
    if (!err) return;
    struct mr_worker_event ev = {.kind = MR_WORKER_FETCHED,
        .fetched = {.value = e->object.value,
            .serial = e->object.serial,
            .err = err,
            .why = sh->prefetch ? MR_STR("too many fetches wait")
                                : MR_STR("this worker has no object store")}};
    mr_worker_shell_step(sh, &ev);
}

static void drops_flush(struct mr_worker_shell *sh)
{
    struct mr_store_holder holder = {MR_HOLD_JOB, sh->drops_job.v};
    if (sh->drops_count) mr_store_unhold(sh->store, sh->drops, sh->drops_count, holder);
    sh->drops_count = 0;
}

/* Collects objects to drop, so that drops_flush releases many objects of a job with one call to the
 * store. When a job is forgotten, all its objects are dropped. */
static void drop(struct mr_worker_shell *sh, const struct mr_worker_effect *e)
{
    if (!sh->store) return;
    if (sh->drops_job.v != e->object.job.v || sh->drops_count == MR_ARRAY_LEN(sh->drops))
        drops_flush(sh);
    sh->drops_job = e->object.job;
    sh->drops[sh->drops_count++] = e->object.object;
}

static void end_soon(struct mr_worker_shell *sh, int code, mr_duration grace)
{
    sh->ending = true;
    sh->exit_code = code;
    sh->end_at = mr_time_after(sh->now, grace);
}

static void perform_one(struct mr_worker_shell *sh, const struct mr_worker_effect *e)
{
    switch (e->kind) {
    case MR_WORKER_START:
    case MR_WORKER_MOVE:
    case MR_WORKER_SEND:
        /* `perform` has carried these out before the other effects. The other effects may step the
         * core, and the message of SEND is lent only until the next step. */
        break;
    case MR_WORKER_TAKE: take(sh, e->item.strand, e->item.at); break;
    case MR_WORKER_LOOK: look(sh, e->item.strand); break;
    case MR_WORKER_STOP:
        if (run_of(sh, e->item.strand)) mr_run_stop(run_of(sh, e->item.strand), e->item.at);
        break;
    case MR_WORKER_FETCH: fetch(sh, e); break;
    case MR_WORKER_UNPIN:
        if (sh->prefetch) mr_prefetch_unpin(sh->prefetch, e->object.serial);
        break;
    case MR_WORKER_DROP: drop(sh, e); break;
    case MR_WORKER_WANT: want(sh, e->object.object, false); break;
    case MR_WORKER_CONNECT:
        mr_worker_link_close(sh);
        sh->connect_at = e->at;
        break;
    case MR_WORKER_HANG_UP:
        mr_log(MR_INFO, "worker.drained", "name=%s", sh->identity.name);
        if (sh->call) (void)mr_rpc_call_half_close(sh->call);
        end_soon(sh, 0, 200 * MR_MS);
        break;
    case MR_WORKER_LETHAL:
        mr_log(MR_ERROR, "task.cancel_ignored", "name=%s why=\"a task ignored its cancel flag\"",
            sh->identity.name);
        if (sh->crash_record)
            /* the worker reports the task to the scheduler, so no task is suspected of a crash */
            mr_crash_record_clear(sh->crash_record);
        if (sh->call) (void)mr_rpc_call_half_close(sh->call);
        end_soon(sh, MR_WORKER_EXIT_LETHAL, 300 * MR_MS);
        break;
    }
}

static void perform(struct mr_worker_shell *sh)
{
    struct mr_worker_effects fx = sh->fx;
    /* carrying out an effect may step the core, which adds effects */
    mr_worker_effects_init(&sh->fx);
    /* strands first; START and MOVE do not step the core */
    for (uint32_t i = 0; i < fx.count; i++) {
        if (fx.p[i].kind == MR_WORKER_START) start(sh, fx.p[i].strand);
        if (fx.p[i].kind == MR_WORKER_MOVE) move(sh, fx.p[i].move.from, fx.p[i].move.to);
    }
    for (uint32_t i = 0; i < fx.count; i++)
        if (fx.p[i].kind == MR_WORKER_SEND) mr_worker_link_send(sh, fx.p[i].send);
    for (uint32_t i = 0; i < fx.count; i++)
        perform_one(sh, &fx.p[i]);
    if (sh->store) drops_flush(sh);
    wants_flush(sh);
    fx.count = 0;
    if (sh->fx.count) {
        mr_worker_effects_fini(&fx);
    } else {
        mr_worker_effects_fini(&sh->fx);
        sh->fx = fx; /* keeps the memory for the next effects */
    }
}

/* True: an effect opens the stream, closes it or ends the process, which only the network thread
 * may do. */
static bool is_for_owner(const struct mr_worker_effects *fx)
{
    for (uint32_t i = 0; i < fx->count; i++) {
        enum mr_worker_effect_kind k = fx->p[i].kind;
        if (k == MR_WORKER_CONNECT || k == MR_WORKER_HANG_UP || k == MR_WORKER_LETHAL) return true;
    }
    return false;
}

bool mr_worker_shell_delegate_turn(struct mr_worker_shell *sh)
{
    struct mr_worker_event ev = {.kind = MR_WORKER_TURN,
        .turn = {.has_spilled = sh->store && mr_store_has_spilled(sh->store),
            .memory_used_bytes = sh->memory_used}};
    mr_worker_shell_step(sh, &ev);
    if (is_for_owner(&sh->fx)) return false;
    sh->by_delegate = true;
    perform(sh);
    sh->by_delegate = false;
    return true;
}

void mr_worker_shell_turn(struct mr_worker_shell *sh)
{
    for (int i = 0; i < TURNS_MAX; i++) {
        struct mr_worker_event ev = {.kind = MR_WORKER_TURN,
            .turn = {.may_send = mr_worker_link_may_send(sh),
                .has_spilled = sh->store && mr_store_has_spilled(sh->store),
                .memory_used_bytes = sh->memory_used}};
        mr_worker_shell_step(sh, &ev);
        perform(sh);
        if (sh->has_here_report) {
            sh->has_here_report = false;
            struct mr_run_report r = sh->here_report;
            mr_worker_shell_report(sh, &r);
        } else if (mr_worker_deadline(sh->core) > sh->now) {
            return;
        }
    }
}

static void count_results(
    struct mr_worker_shell *sh, const struct mr_run *run, uint32_t from, uint32_t to)
{
    uint32_t failed = 0;
    for (uint32_t i = from; i < to; i++) {
        const struct mr_strand_item *item = &run->strand->items[i];
        failed += item->result.end == MR_STRAND_FAILED;
        mr_worker_link_log(sh, item);
    }
    mr_counter_add(sh->tasks_done, to - from - failed);
    mr_counter_add(sh->tasks_failed, failed);
}

void mr_worker_shell_report(struct mr_worker_shell *sh, const struct mr_run_report *r)
{
    struct mr_run *run = r->run;
    if (r->done > run->reported || r->last) {
        count_results(sh, run, run->reported, MR_MAX(run->reported, r->done));
        run->reported = MR_MAX(run->reported, r->done);
        struct mr_worker_event ev = {.kind = MR_WORKER_REPORT,
            .report = {.strand = run->id, .done = run->reported, .last = r->last}};
        mr_worker_shell_step(sh, &ev);
    }
    if (!r->last) return;
    mr_assert(sh->runs[run->id] == run);
    sh->runs[run->id] = NULL;
    sh->runs_count--;
    mr_run_free(&run);
}
