/* The scheduler core as a whole: made, stepped, asked when it next wants time. An event changes
 * what the state says; what follows from it (dispatch, leases, deadlines, records of values)
 * happens in the tick that ends a turn, which the deadline asks for at once when there is work. */
#include "services/scheduler/core/core.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
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

#define SWEEP_TASKS_MAX 8192
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
        .acquit = 2 * MR_SECOND,
        .keep_jobs = 24 * 3600 * MR_SECOND,
        .keep_jobs_max = 1000};
}

static size_t stack_count(const struct mr_sched_config *c)
{
    return (size_t)c->tasks_max * 8; /* a walk may see a node once for each of its edges */
}

/* Takes every array of the state; with `s` NULL it only adds up. */
static void take_all(struct mr_sched *s, const struct mr_sched_config *c, struct mr_arena *a)
{
    size_t tasks = c->tasks_max;
    s->tasks = MR_ARENA_ARRAY(a, struct task, tasks);
    s->job_at = MR_ARENA_ARRAY(a, uint32_t, tasks / JOB_ALIGN + 1);
    s->free_tasks = MR_ARENA_ARRAY(a, struct extent, c->jobs_max + 2);
    for (size_t level = 0, words = tasks / 64 + 1; level < 4; level++, words = words / 64 + 1)
        s->queue[level] = MR_ARENA_ARRAY(a, uint64_t, words + 1);
    s->join_source = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->join_next = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->join_head = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->rank_of = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->ranked = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->stack = MR_ARENA_ARRAY(a, uint32_t, stack_count(c));
    s->jobs = MR_ARENA_ARRAY(a, struct job, c->jobs_max);
    s->heap = MR_ARENA_ARRAY(a, uint32_t, c->jobs_max);
    s->sweeps = MR_ARENA_ARRAY(a, uint32_t, c->jobs_max);
    s->values = MR_ARENA_ARRAY(a, struct value, tasks);
    s->blocks = MR_ARENA_ARRAY(a, struct block, c->inline_blocks);
    s->rows = MR_ARENA_ARRAY(a, struct sent_row, SENT_ROWS);
    s->workers = MR_ARENA_ARRAY(a, struct worker, c->workers_max);
    s->worker_facts = MR_ARENA_ARRAY(a, struct worker_facts, c->workers_max);
    s->worker_op_words = c->ops_max / 64 + 1;
    s->worker_ops = MR_ARENA_ARRAY(a, uint64_t, (size_t)c->workers_max * s->worker_op_words);
    s->ops = MR_ARENA_ARRAY(a, struct op, c->ops_max);
    s->classes = MR_ARENA_ARRAY(a, struct class, 2 * (size_t)c->ops_max);
    s->active = MR_ARENA_ARRAY(a, uint32_t, 2 * (size_t)c->ops_max);
    s->suspects = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->squeezed = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->stores = MR_ARENA_ARRAY(a, struct store, (size_t)c->stores_max + 1);
    s->scans_max = 4 * c->stores_max + 64;
    s->scans = MR_ARENA_ARRAY(a, struct scan, s->scans_max);
    s->stories = MR_ARENA_ARRAY(a, struct story, c->failures_max);
    s->pending = MR_ARENA_ARRAY(a, struct pending, tasks);
    s->ring = MR_ARENA_ARRAY(a, uint32_t, tasks);
    s->forgotten = MR_ARENA_ARRAY(a, struct forgotten, FORGOTTEN_MAX);
}

size_t mr_sched_arena_bytes(const struct mr_sched_config *c)
{
    size_t tasks = c->tasks_max;
    size_t each = sizeof(struct task) + sizeof(struct value) + sizeof(struct pending) +
                  9 * sizeof(uint32_t) * 2;
    size_t workers = sizeof(struct worker) + sizeof(struct worker_facts) +
                     sizeof(uint64_t) * (c->ops_max / 64 + 2);
    size_t ops = sizeof(struct op) + 2 * sizeof(struct class) + 16;
    size_t jobs = sizeof(struct job) + 64;
    return sizeof(struct mr_sched) + tasks * each + c->workers_max * workers + c->ops_max * ops +
           c->jobs_max * jobs + c->inline_blocks * sizeof(struct block) +
           SENT_ROWS * sizeof(struct sent_row) + (c->stores_max + 1) * sizeof(struct store) +
           (4 * (size_t)c->stores_max + 64) * sizeof(struct scan) +
           c->failures_max * sizeof(struct story) + FORGOTTEN_MAX * sizeof(struct forgotten) +
           ((size_t)1 << 22);
}

struct mr_sched *mr_sched_new(const struct mr_sched_config *c, struct mr_arena *arena)
{
    struct mr_sched *s = MR_ARENA_ARRAY(arena, struct mr_sched, 1);
    mr_assert(c->ops_max >= 2 && 2 * c->ops_max <= UINT16_MAX && c->stores_max < UINT16_MAX);
    s->config = *c;
    s->config.tasks_max = c->tasks_max & ~63u;
    take_all(s, c, arena);
    s->jobs_free = s->newest = s->oldest = s->values_free = s->blocks_free = s->reserved =
        s->alone = NONE;
    s->sticky_worker = s->told_worker = s->unplanned = NONE;
    s->blocks_left = c->inline_blocks;
    s->classes_top = c->ops_max;
    s->deadline = s->lease_check_at = s->steal_at = s->job_deadline = s->progress_at = s->keep_at =
        MR_NEVER;
    memset(s->bucket_head, 0xff, sizeof s->bucket_head);
    memset(s->bucket_tail, 0xff, sizeof s->bucket_tail);
    for (uint32_t i = 0; i < c->failures_max; i++)
        s->stories[i].task = NONE;
    mr_index_init(&s->job_index, c->jobs_max);
    mr_index_init(&s->request_index, c->jobs_max);
    mr_index_init(&s->key_index, 64);
    mr_index_init(&s->op_index, c->ops_max);
    mr_index_init(&s->story_index, c->failures_max);
    mr_index_init(&s->worker_names, c->workers_max);
    mr_index_init(&s->worker_incarnations, c->workers_max);
    mr_buf_init(&s->scratch, (size_t)1 << 30);
    mr_buf_init(&s->payload, (size_t)1 << 32);
    mr_buf_init(&s->open, (size_t)1 << 32);
    mr_buf_init(&s->recovered, (size_t)1 << 36);
    return s;
}

void mr_sched_free(struct mr_sched **sp)
{
    struct mr_sched *s = *sp;
    *sp = NULL;
    if (!s) return;
    for (uint32_t i = 0; i < s->jobs_top; i++) {
        struct job *j = &s->jobs[i];
        if (!j->id) continue;
        mr_release(j->ops);
        mr_release(j->loops);
        mr_sc_cache_drop(s, j);
        if (j->has_error) mr_sc_story_fini(&j->error);
        mr_graph_free(&j->graph);
    }
    for (uint32_t i = 0; i < s->config.failures_max; i++)
        if (s->stories[i].task != NONE) mr_sc_story_fini(&s->stories[i]);
    for (uint32_t i = 1; i <= s->ops_count; i++)
        mr_release((void *)(uintptr_t)s->ops[i].name.p);
    for (uint32_t i = s->config.ops_max; i < s->classes_top; i++)
        mr_release(s->classes[i].names);
    for (uint32_t i = 1; i <= s->stores_count; i++)
        mr_release(s->stores[i].address);
    mr_sc_cache_fini(s);
    mr_sc_scan_fini(s);
    mr_index_fini(&s->worker_names);
    mr_index_fini(&s->worker_incarnations);
    mr_index_fini(&s->job_index);
    mr_index_fini(&s->request_index);
    mr_index_fini(&s->key_index);
    mr_index_fini(&s->op_index);
    mr_index_fini(&s->story_index);
    mr_buf_fini(&s->scratch);
    mr_buf_fini(&s->payload);
    mr_buf_fini(&s->open);
    mr_buf_fini(&s->recovered);
}

/* At most 10 times a second a job's counts are told, while they change. */
static void tell_progress(struct mr_sched *s)
{
    bool has_running = false;
    if (s->now < s->progress_at) return;
    s->progress_at = MR_NEVER;
    for (uint32_t i = 0; i < s->jobs_top; i++) {
        struct job *j = &s->jobs[i];
        if (!j->id || j->state >= MR_JOB_DONE) continue;
        has_running = true;
        if (!(j->flags & J_DIRTY) || !(j->flags & J_ACCEPTED)) continue;
        j->flags &= ~(uint32_t)J_DIRTY;
        mr_sc_note(s, MR_NOTE_JOB_PROGRESS)->job = (mr_job_id){j->id};
    }
    if (has_running) s->progress_at = mr_time_after(s->now, PROGRESS_EVERY);
}

static void keep(struct mr_sched *s)
{
    uint32_t ended = s->jobs_count - s->jobs_running;
    if (s->now < s->keep_at && ended <= s->config.keep_jobs_max) return;
    mr_sc_job_keep(s);
    s->keep_at = s->jobs_count ? mr_time_after(s->now, KEEP_EVERY) : MR_NEVER;
}

static void tick(struct mr_sched *s)
{
    if (!s->is_recovered) return;
    mr_sc_worker_leases(s);
    mr_sc_store_leases(s);
    mr_sc_scan_tick(s);
    mr_sc_job_deadlines(s);
    keep(s);
    mr_sc_dispatch(s);
    mr_sc_job_sweep(s, SWEEP_TASKS_MAX);
    tell_progress(s);
    mr_sc_journal_flush(s);
    mr_sc_journal_tell(s);
}

static void perform(struct mr_sched *s, const struct mr_sched_event *ev)
{
    switch (ev->type) {
    case MR_SCHED_TICK: tick(s); break;
    case MR_SCHED_SUBMIT:
        mr_sc_job_submit(s, ev);
        s->progress_at = MR_MIN(s->progress_at, mr_time_after(s->now, PROGRESS_EVERY));
        s->keep_at = MR_MIN(s->keep_at, mr_time_after(s->now, KEEP_EVERY));
        break;
    case MR_SCHED_CANCEL:
    case MR_SCHED_RETRY:
    case MR_SCHED_FORGET: mr_sc_job_request(s, ev); break;
    case MR_SCHED_WANT: mr_sc_job_want(s, ev); break;
    case MR_SCHED_WORKER_REGISTER: mr_sc_worker_register(s, &ev->worker); break;
    case MR_SCHED_WORKER_MESSAGE: mr_sc_worker_message(s, &ev->message); break;
    case MR_SCHED_WORKER_CLOSED: mr_sc_worker_closed(s, ev->slot, ev->incarnation); break;
    case MR_SCHED_WORKER_CRASHED:
        if (ev->slot < s->workers_top && s->workers[ev->slot].state != W_FREE &&
            s->workers[ev->slot].incarnation == ev->incarnation)
            mr_sc_worker_lost(s, ev->slot, &ev->refs, "its process died");
        break;
    case MR_SCHED_WORKER_RETIRE: mr_sc_worker_retire(s, ev->slot, ev->incarnation); break;
    case MR_SCHED_STORE_REGISTER: mr_sc_store_register(s, &ev->store); break;
    case MR_SCHED_STORE_HEARD: mr_sc_store_heard(s, &ev->store, true); break;
    case MR_SCHED_STORE_CLOSED: mr_sc_store_heard(s, &ev->store, false); break;
    case MR_SCHED_OBJECTS_LOST: mr_sc_objects_lost(s, &ev->objects); break;
    case MR_SCHED_OBJECTS_UNHELD: mr_sc_objects_unheld(s, &ev->objects); break;
    case MR_SCHED_JOURNAL_ACKED: mr_sc_journal_acked(s, ev->sequence); break;
    case MR_SCHED_JOURNAL_AWAY: s->journal_is_away = true; break;
    case MR_SCHED_JOURNAL_BACK: s->journal_is_away = false; break;
    case MR_SCHED_RECORD: mr_sc_replay(s, ev->record.type, ev->record.bytes, ev->sequence); break;
    case MR_SCHED_RECOVERED: mr_sc_replay_end(s, ev->sequence); break;
    }
}

void mr_sched_step(
    struct mr_sched *s, mr_time now, const struct mr_sched_event *ev, struct mr_sched_effects *fx)
{
    mr_assert(now >= s->now);
    s->now = now;
    s->fx = fx;
    if (ev->wall_ns) s->wall_offset = ev->wall_ns - now;
    mr_sc_job_plan(s);
    perform(s, ev);
    mr_assert(!s->stack_count);
    s->fx = NULL;
}

mr_time mr_sched_deadline(const struct mr_sched *s)
{
    if (!s->is_recovered) return MR_NEVER;
    if (s->has_work || s->open.n || s->sweeps_count || s->scans_count) return s->now;
    mr_time t = MR_MIN(s->lease_check_at, s->job_deadline);
    t = MR_MIN(t, MR_MIN(s->steal_at, s->progress_at));
    return MR_MAX(MR_MIN(t, s->keep_at), s->now);
}
