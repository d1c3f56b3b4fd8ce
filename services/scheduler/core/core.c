/* Creation, step and deadline of the core. An event changes the state. Dispatch, leases, deadlines
 * of jobs, and records of values wait for the tick that ends each turn (pass of the shell's loop).
 * While such work waits, the core's deadline is the present time. */
#include "services/scheduler/core/core.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/unconst.h"
#include "services/scheduler/core/cluster/register.h"
#include "services/scheduler/core/cluster/store.h"
#include "services/scheduler/core/cluster/value_scan.h"
#include "services/scheduler/core/cluster/worker.h"
#include "services/scheduler/core/cluster/worker_message.h"
#include "services/scheduler/core/index/placement_table.h"
#include "services/scheduler/core/job/job.h"
#include "services/scheduler/core/job/replay.h"
#include "services/scheduler/core/place/dispatch.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/state/failure.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/journal.h"

#include <string.h>

#define RECLAIM_TASKS_MAX 8192
#define PROGRESS_EVERY (100 * MR_MS)
#define KEEP_EVERY (5 * MR_SECOND)

void mr_sched_config_default(struct mr_sched_config *c)
{
    *c = (struct mr_sched_config){.epoch = 1,
        .incarnation = (uint64_t)1 << 32,
        .tasks_max = 16u << 20,
        .jobs_max = 32768,
        .workers_max = 4096,
        .stores_max = 1024,
        .ops_max = 4096,
        .inline_blocks = 2u << 20,
        .failures_max = 4096,
        .scan_values = 65536,
        .unacked_bytes_max = (uint64_t)64 << 20,
        .heartbeat = MR_SECOND,
        .lease = 10 * MR_SECOND,
        .queue = 5 * MR_MS,
        .probation = 2 * MR_SECOND,
        .keep_jobs = 24 * 3600 * MR_SECOND,
        .keep_jobs_max = 1000};
}

static size_t stack_count(const struct mr_sched_config *c)
{
    /* a walk over a graph may push a node once for each edge that leads to it */
    return (size_t)c->tasks_max * 8;
}

/* Takes every array of the state from the arena. Called with an arena that only counts bytes, it
 * computes the size of all arrays. */
static void take_all(struct mr_sched *s, const struct mr_sched_config *c, struct mr_arena *a)
{
    size_t tasks = c->tasks_max;
    s->tasks = MR_ARENA_ARRAY(a, struct task, tasks);
    s->job_at = MR_ARENA_ARRAY(a, uint32_t, tasks / JOB_ALIGN + 1);
    s->numbers.free = MR_ARENA_ARRAY(a, struct extent, c->jobs_max + 2);
    for (size_t level = 0, words = tasks / 64 + 1; level < 4; level++, words = words / 64 + 1)
        s->queue.bits[level] = MR_ARENA_ARRAY(a, uint64_t, words + 1);
    s->keys.source = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->keys.next = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->keys.head = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->queue.rank_of = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->queue.ranked = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->stack = MR_ARENA_ARRAY(a, uint32_t, stack_count(c));
    s->jobs = MR_ARENA_ARRAY(a, struct job, c->jobs_max);
    s->queue.heap = MR_ARENA_ARRAY(a, uint32_t, c->jobs_max);
    s->job_list.reclaims = MR_ARENA_ARRAY(a, uint32_t, c->jobs_max);
    s->values = MR_ARENA_ARRAY(a, struct value, tasks);
    s->blocks.at = MR_ARENA_ARRAY(a, struct block, c->inline_blocks);
    s->rows = MR_ARENA_ARRAY(a, struct sent_row, SENT_ROWS);
    s->workers = MR_ARENA_ARRAY(a, struct worker, c->workers_max);
    s->worker_list.facts = MR_ARENA_ARRAY(a, struct worker_facts, c->workers_max);
    s->worker_list.op_words = c->ops_max / 64 + 1;
    s->worker_list.op_bits =
        MR_ARENA_ARRAY(a, uint64_t, (size_t)c->workers_max * s->worker_list.op_words);
    s->ops = MR_ARENA_ARRAY(a, struct op, c->ops_max);
    s->classes = MR_ARENA_ARRAY(a, struct class, 2 * (size_t)c->ops_max);
    s->class_list.active = MR_ARENA_ARRAY(a, uint32_t, 2 * (size_t)c->ops_max);
    s->quarantine.ring.at = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->memory_retry.ring.at = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->stores = MR_ARENA_ARRAY(a, struct store, (size_t)c->stores_max + 1);
    s->scans.max = 4 * c->stores_max + 64;
    s->scans.at = MR_ARENA_ARRAY(a, struct scan, s->scans.max);
    s->failures.at = MR_ARENA_ARRAY(a, struct failure, c->failures_max);
    s->journal.pending = MR_ARENA_ARRAY(a, struct pending, tasks);
    s->journal.unacked = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->job_list.forgotten = MR_ARENA_ARRAY(a, struct forgotten, FORGOTTEN_MAX);
}

size_t mr_sched_arena_bytes(const struct mr_sched_config *c)
{
    struct mr_arena counting = {.bytes_max = SIZE_MAX};
    struct mr_sched none;
    (void)MR_ARENA_ARRAY(&counting, struct mr_sched, 1);
    take_all(&none, c, &counting);
    return counting.bytes;
}

struct mr_sched *mr_sched_new(const struct mr_sched_config *c, struct mr_arena *arena)
{
    struct mr_sched *s = MR_ARENA_ARRAY(arena, struct mr_sched, 1);
    mr_assert(c->ops_max >= 2 && 2 * c->ops_max <= UINT16_MAX && c->stores_max < UINT16_MAX);
    s->config = *c;
    s->config.tasks_max = c->tasks_max & ~63u;
    take_all(s, c, arena);
    s->job_list.free = s->job_list.newest = s->job_list.oldest = s->value_list.free =
        s->blocks.free = s->quarantine.reserved = s->memory_retry.reserved_task = NONE;
    s->sticky.worker = s->load.held_out = s->job_list.unplanned = NONE;
    s->blocks.left = c->inline_blocks;
    s->class_list.top = c->ops_max;
    s->due.leases = s->due.steal = s->due.jobs = s->due.progress = s->due.keep = MR_NEVER;
    memset(s->load.head, 0xff, sizeof s->load.head);
    memset(s->load.tail, 0xff, sizeof s->load.tail);
    for (uint32_t i = 0; i < c->failures_max; i++)
        s->failures.at[i].task = NONE;
    mr_index_init(&s->job_list.by_id, c->jobs_max);
    mr_index_init(&s->job_list.by_request, c->jobs_max);
    mr_index_init(&s->keys.index, 64);
    mr_index_init(&s->op_list.index, c->ops_max);
    mr_index_init(&s->failures.index, c->failures_max);
    mr_index_init(&s->worker_list.by_name, c->workers_max);
    mr_index_init(&s->worker_list.by_incarnation, c->workers_max);
    mr_buf_init(&s->scratch, (size_t)1 << 30);
    mr_buf_init(&s->journal.payload, (size_t)1 << 32);
    mr_buf_init(&s->journal.open, (size_t)1 << 32);
    mr_buf_init(&s->replay.graph, (size_t)1 << 36);
    return s;
}

void mr_sched_free(struct mr_sched **sp)
{
    struct mr_sched *s = *sp;
    *sp = NULL;
    if (!s) return;
    for (uint32_t i = 0; i < s->job_list.top; i++) {
        struct job *j = &s->jobs[i];
        if (!j->id) continue;
        mr_release(j->ops);
        mr_release(j->op_tasks);
        mr_release(j->loops);
        mr_sched__cache_drop(&s->placements, j);
        if (j->has_failure) mr_sched__failure_fini(&j->failure);
        mr_graph_free(&j->graph);
    }
    for (uint32_t i = 0; i < s->config.failures_max; i++)
        if (s->failures.at[i].task != NONE) mr_sched__failure_fini(&s->failures.at[i]);
    for (uint32_t i = 1; i <= s->op_list.count; i++)
        mr_release(mr_unconst(s->ops[i].name.p));
    for (uint32_t i = s->config.ops_max; i < s->class_list.top; i++)
        mr_release(s->classes[i].names);
    for (uint32_t i = 1; i <= s->store_list.count; i++)
        mr_release(s->stores[i].address);
    mr_sched__cache_fini(&s->placements);
    mr_sched__scan_fini(&s->scans);
    mr_index_fini(&s->worker_list.by_name);
    mr_index_fini(&s->worker_list.by_incarnation);
    mr_index_fini(&s->job_list.by_id);
    mr_index_fini(&s->job_list.by_request);
    mr_index_fini(&s->keys.index);
    mr_index_fini(&s->op_list.index);
    mr_index_fini(&s->failures.index);
    mr_buf_fini(&s->scratch);
    mr_buf_fini(&s->journal.payload);
    mr_buf_fini(&s->journal.open);
    mr_buf_fini(&s->replay.graph);
}

/* Announces changed counts of running jobs, at most 10 times a second for each job. */
static void tell_progress(struct mr_sched *s)
{
    bool has_running = false;
    if (s->now < s->due.progress) return;
    s->due.progress = MR_NEVER;
    for (uint32_t i = 0; i < s->job_list.top; i++) {
        struct job *j = &s->jobs[i];
        if (!j->id || j->state >= MR_JOB_DONE) continue;
        has_running = true;
        if (!(j->flags & J_DIRTY) || !(j->flags & J_ACCEPTED)) continue;
        j->flags &= ~(uint32_t)J_DIRTY;
        mr_sched__note(s, MR_NOTE_JOB_PROGRESS)->job = (mr_job_id){j->id};
    }
    if (has_running) s->due.progress = mr_time_after(s->now, PROGRESS_EVERY);
}

static void keep(struct mr_sched *s)
{
    uint32_t ended = s->job_list.count - s->job_list.running;
    if (s->now < s->due.keep && ended <= s->config.keep_jobs_max) return;
    mr_sched__job_keep(s);
    s->due.keep = s->job_list.count ? mr_time_after(s->now, KEEP_EVERY) : MR_NEVER;
}

static void tick(struct mr_sched *s)
{
    if (!s->is_recovered) return;
    mr_sched__worker_leases(s);
    mr_sched__store_leases(s);
    mr_sched__scan_tick(s);
    mr_sched__job_deadlines(s);
    keep(s);
    mr_sched__dispatch(s);
    mr_sched__job_reclaim(s, RECLAIM_TASKS_MAX);
    tell_progress(s);
    mr_sched__journal_flush(s);
    mr_sched__journal_tell(s);
}

static void perform(struct mr_sched *s, const struct mr_sched_event *ev)
{
    switch (ev->type) {
    case MR_SCHED_TICK: tick(s); break;
    case MR_SCHED_SUBMIT:
        mr_sched__job_submit(s, ev);
        s->due.progress = MR_MIN(s->due.progress, mr_time_after(s->now, PROGRESS_EVERY));
        s->due.keep = MR_MIN(s->due.keep, mr_time_after(s->now, KEEP_EVERY));
        break;
    case MR_SCHED_CANCEL:
    case MR_SCHED_RETRY:
    case MR_SCHED_FORGET: mr_sched__job_request(s, ev); break;
    case MR_SCHED_WANT: mr_sched__job_want(s, ev); break;
    case MR_SCHED_WORKER_REGISTER: mr_sched__worker_register(s, ev->session, &ev->worker); break;
    case MR_SCHED_WORKER_MESSAGE:
        mr_sched__worker_message(s, ev->slot, ev->incarnation, &ev->message);
        break;
    case MR_SCHED_WORKER_CLOSED: mr_sched__worker_closed(s, ev->slot, ev->incarnation); break;
    case MR_SCHED_WORKER_CRASHED:
        if (ev->slot < s->worker_list.top && s->workers[ev->slot].state != W_FREE &&
            s->workers[ev->slot].incarnation == ev->incarnation)
            mr_sched__worker_lost(s, ev->slot, &ev->refs, "its process died");
        break;
    case MR_SCHED_WORKER_RETIRE: mr_sched__worker_retire(s, ev->slot, ev->incarnation); break;
    case MR_SCHED_STORE_REGISTER: mr_sched__store_register(s, &ev->store); break;
    case MR_SCHED_STORE_HEARD: mr_sched__store_heard(s, &ev->store, true); break;
    case MR_SCHED_STORE_CLOSED: mr_sched__store_heard(s, &ev->store, false); break;
    case MR_SCHED_OBJECTS_LOST: mr_sched__objects_lost(s, &ev->objects); break;
    case MR_SCHED_OBJECTS_UNHELD: mr_sched__objects_unheld(s, &ev->objects); break;
    case MR_SCHED_JOURNAL_ACKED: mr_sched__journal_acked(s, ev->sequence); break;
    case MR_SCHED_JOURNAL_AWAY: s->journal.is_away = true; break;
    case MR_SCHED_JOURNAL_BACK: s->journal.is_away = false; break;
    case MR_SCHED_RECORD:
        mr_sched__replay(s, ev->record.type, ev->record.bytes, ev->sequence);
        break;
    case MR_SCHED_RECOVERED: mr_sched__replay_end(s, ev->sequence); break;
    }
}

void mr_sched_step(
    struct mr_sched *s, mr_time now, const struct mr_sched_event *ev, struct mr_sched_effects *fx)
{
    mr_assert(now >= s->now);
    s->now = now;
    s->fx = fx;
    if (ev->wall_ns) s->wall_offset = ev->wall_ns - now;
    mr_sched__job_plan(s);
    perform(s, ev);
    mr_assert(!s->stack_count);
    s->fx = NULL;
}

mr_time mr_sched_deadline(const struct mr_sched *s)
{
    if (!s->is_recovered) return MR_NEVER;
    if (s->has_work || s->journal.open.n || s->job_list.reclaims_count || s->scans.count)
        return s->now;
    mr_time t = MR_MIN(s->due.leases, s->due.jobs);
    t = MR_MIN(t, MR_MIN(s->due.steal, s->due.progress));
    return MR_MAX(MR_MIN(t, s->due.keep), s->now);
}
