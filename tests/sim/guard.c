/* Checks I10 (docs/invariants.md): after a restart of the scheduler, a task does not start again if
 * the journal has its completion or a living worker holds its value. The check marks each task
 * whose value the journal or a simulated worker has. Then it judges each start of a marked task
 * that the restarted scheduler has sent. */
#include "tests/sim/sim.h"

#define SMALL 16 /* values of up to 16 bytes need no room in the cache of inline values */

static struct sim_task *task_of(struct sim *s, uint64_t job, uint32_t index)
{
    struct sim_job *j = sim_job_of(s, job);
    return j && index < s->specs[j->spec].graph->nodes_count ? &j->task[index] : NULL;
}

static uint64_t take_int(struct mr_str *r, size_t n)
{
    uint64_t v = 0;
    mr_assert(r->n >= n);
    memcpy(&v, r->p, n);
    *r = mr_str_of(r->p + n, r->n - n);
    return v;
}

/* Returns how many events so far can be the reason why a value is gone: faults, workers that were
 * taken for dead while they lived, and values that were released before a job asked for them. */
uint64_t sim_losses(const struct sim *s)
{
    return s->losses + s->given_up + s->revived;
}

static void guard(struct sim *s, struct sim_task *t, enum sim_guard how)
{
    if (t->guard_life != s->life) t->guard = GUARD_NONE;
    t->guard |= how;
    t->guard_life = s->life;
    t->guard_losses = sim_losses(s);
    t->guard_stores = s->count.stores;
}

/* Called for a value that was found under its name when the job was accepted. */
void sim_guard_name(struct sim *s, struct sim_job *j, const struct mr_sched_resolved *r)
{
    if (sim_object_is_somewhere(s, r->object.number)) guard(s, &j->task[r->index], GUARD_NONE);
}

/* Called for a record that was read back. Rows of VALUES are laid out as in
 * services/scheduler/core/state/record.c. */
void sim_guard_record(struct sim *s, uint32_t type, struct mr_str r)
{
    if (type != MR_RECORD_VALUES) return;
    uint64_t job = take_int(&r, 8);
    while (r.n) {
        uint32_t index = (uint32_t)take_int(&r, 4);
        (void)take_int(&r, 4);
        size_t bytes = (size_t)take_int(&r, 4);
        struct sim_task *t = task_of(s, job, index);
        uint64_t object = 0;
        uint64_t store = 0;
        if (bytes) {
            r = mr_str_of(r.p + bytes, r.n - bytes);
        } else {
            (void)take_int(&r, 8); /* first half of the object's id: the maker */
            object = take_int(&r, 8);
            (void)take_int(&r, 8); /* bytes of the object */
            store = take_int(&r, 8);
        }
        sim_say(s,
            "    read back: %" PRIu32 " of job %" PRIx64 ", %zu bytes inline, object %" PRIu64,
            index, job, bytes, object);
        if (!t) continue;
        bool has_room = bytes <= SMALL || s->config.inline_blocks > 1000;
        t->gone_life = 0; /* the last record of a value counts */
        if (object) {
            /* The record's store has died, or has lost the object. The scheduler need not find a
             * copy elsewhere, such as on the dead store's disk, so the task may start again. */
            if (!sim_store_is_alive(s, store) || !sim_object_has(s, object, store)) {
                t->gone_life = s->life;
                continue;
            }
            guard(s, t, GUARD_OBJECT);
            t->guard_object = object;
        } else if (has_room) { /* a value for which the cache had no room may be made again */
            guard(s, t, GUARD_INLINE);
        } else {
            t->roomless_life = s->life;
        }
    }
}

/* Marks the inputs (parts) of values that refer to their inputs. Whether these parts exist is known
 * only when all workers are back. Until then the inputs of a part may be released and made
 * again. */
static void guard_referred(struct sim *s, const struct sim_job *j)
{
    const struct mr_graph *g = s->specs[j->spec].graph;
    for (uint32_t i = g->nodes_count; i-- > 0;) {
        uint32_t n;
        const uint32_t *in = mr_graph_inputs(g, i, &n);
        bool is_ref = mr_str_eq(mr_graph_op(g, i), mr_str(sim_ops[OP_REF]));
        if (is_ref && j->task[i].guard_life == s->life) j->task[i].referred_life = s->life;
        for (uint32_t k = 0; k < n && j->task[i].referred_life == s->life; k++)
            j->task[in[k]].referred_life = s->life;
    }
}

/* Called when the journal has been read. A value is lost if the cache of small values had no room
 * for it, or if its object is gone. When a job asks for a lost value, all its ancestors may be made
 * again, although they were not lost themselves. A restored value may refer to other values.
 * Whether these exist is known only when all workers are back, so they and their ancestors may be
 * made again, too. */
void sim_guard_replayed(struct sim *s)
{
    struct mr_sched_task_info info;
    for (uint32_t k = 0; k < s->jobs_count; k++) {
        const struct sim_job *j = &s->jobs[k];
        guard_referred(s, j);
        for (uint32_t i = 0; i < s->specs[j->spec].graph->nodes_count; i++)
            if (j->task[i].gone_life == s->life ||
                (j->task[i].roomless_life == s->life &&
                    mr_sched_task(s->sched, (mr_job_id){j->id}, i, &info) &&
                    info.state != MR_TASK_DONE))
                s->roomless_life = s->life;
    }
}

/* Called when a worker that an earlier life of the scheduler knew has registered again in time.
 * `c`: the values that the worker still has. */
void sim_guard_holding(struct sim *s, uint32_t session, const struct mr_ws_completed *c)
{
    uint32_t run = 0;
    uint32_t left = 0;
    uint32_t object = 0;
    for (uint32_t i = 0; i < c->tasks.count; i++, left--) {
        while (!left)
            left = c->tasks.runs[run++].count;
        struct sim_job *j = sim_job_of(s, c->tasks.runs[run - 1].job.v);
        uint64_t held = c->inline_bytes[i] ? 0 : c->object_number[object++];
        if (!j || (held && !sim_object_is_somewhere(s, held))) continue;
        struct sim_task *t = &j->task[c->tasks.index[i]];
        bool is_over = j->final || j->was_cancelled;
        if (t->sent_life == s->life && t->start_life == s->life && !is_over &&
            !(t->guard_life == s->life))
            sim_fail(s,
                "I10: task %" PRIu32 " of job %" PRIx64
                " was started again, and a worker that returns has its value",
                c->tasks.index[i], j->id);
        guard(s, t, GUARD_WORKER);
        t->guard_session = session;
        t->guard_held = held;
    }
}

/* Returns whether a release of the value is written but not yet sent to the worker. */
static bool is_to_be_released(const struct sim *s, uint32_t slot, uint64_t job, uint32_t index)
{
    if (!s->fx.worker[slot]) return false;
    const struct mr_sched_refs_out *r = &s->fx.worker[slot]->release;
    for (uint32_t i = 0, run = 0, k = 0; i < r->count; i++, k++) {
        for (; k == r->runs.p[run].count; k = 0)
            run++;
        if (r->runs.p[run].job.v == job && r->index[i] == index) return true;
    }
    return false;
}

static bool is_kept_by_worker(
    struct sim *s, const struct sim_job *j, uint32_t index, const struct sim_task *t)
{
    const struct sim_session *x = &s->sessions[t->guard_session];
    const struct sim_proc *p = &s->procs[x->proc];
    if (!(t->guard & GUARD_WORKER) || !p->is_alive || x->life != s->life) return false;
    /* The scheduler may take the worker for dead. */
    if (!x->is_up || !x->is_down || !x->has_joined) return false;
    if (is_to_be_released(s, x->slot, j->id, index)) return false;
    /* The value is an object, and the worker's store has lost this object. */
    if (t->guard_held && !sim_object_has(s, t->guard_held, p->store)) return false;
    return mr_worker_keeps(p->w, (mr_job_id){j->id}, index);
}

/* Called when the scheduler tells a worker that a value is no longer needed. */
void sim_guard_released(struct sim *s, uint64_t job, uint32_t index)
{
    struct sim_task *t = task_of(s, job, index);
    if (t) t->guard &= ~(uint32_t)GUARD_WORKER;
}

/* Called when a failed job is retried. A task of the job may then start again although a worker
 * still has its value: while the job was failed, the scheduler did not adopt the values of workers
 * that returned. The scheduler tells such a worker to drop them, but the message may arrive after
 * the retry. */
void sim_guard_retried(struct sim *s, struct sim_job *j)
{
    uint32_t n = s->specs[j->spec].graph->nodes_count;
    for (uint32_t i = 0; i < n; i++)
        j->task[i].guard &= ~(uint32_t)GUARD_WORKER;
}

/* Called when the scheduler releases an object. A task that is no target may then start again to
 * make the object anew. For example, a collection is a value that refers to other values, its
 * parts. If the collection found no room when the journal was read back, the scheduler releases the
 * parts, and has them made again when a job asks for the collection. */
void sim_guard_unheld(struct sim *s, uint64_t object)
{
    for (uint32_t k = 0; k < s->jobs_count; k++)
        for (uint32_t i = 0; i < s->specs[s->jobs[k].spec].graph->nodes_count; i++) {
            struct sim_task *t = &s->jobs[k].task[i];
            bool is_it = t->guard_life == s->life && t->guard & GUARD_OBJECT;
            if (is_it && t->guard_object == object && !t->is_target) t->guard_life = 0;
        }
}

/* Called for each task that this life of the scheduler sends. */
void sim_guard_sent(struct sim *s, uint32_t session, uint64_t job, uint32_t index, uint32_t attempt)
{
    struct sim_task *t = task_of(s, job, index);
    if (!t) return;
    t->sent_life = s->life;
    t->sent_session = session;
    t->sent_attempt = attempt;
}

void sim_guard_start(
    struct sim *s, struct sim_job *j, uint32_t index, uint32_t proc, uint32_t attempt)
{
    struct sim_task *t = &j->task[index];
    bool is_told = t->sent_life == s->life && t->sent_attempt == attempt &&
                   s->sessions[t->sent_session].proc == proc;
    /* the scheduler's present life did not send the task, or last sent it to another process or as
     * another attempt */
    if (!is_told) return;
    t->start_life = s->life;
    if (t->guard_life != s->life || j->was_cancelled) return;
    const char *who = NULL;
    if (is_kept_by_worker(s, j, index, t)) who = "a living worker holds its value";
    if (t->guard & GUARD_INLINE && t->is_target) who = "its value is journaled";
    if (t->guard & GUARD_OBJECT && t->is_target && t->guard_stores == s->count.stores &&
        sim_object_is_somewhere(s, t->guard_object))
        who = "its object is journaled, and there";
    bool is_complete = t->referred_life != s->life && t->guard_losses == sim_losses(s) &&
                       s->roomless_life != s->life;
    if (is_complete && !j->was_retried) who = "nothing was lost since";
    if (!who) return;
    sim_client_complain(s);
    sim_fail(s,
        "I10: task %" PRIu32 " of job %" PRIx64 " starts again, though %s (guard %" PRIu32
        ", session %" PRIu32 ", objects %" PRIu64 " %" PRIu64 ")",
        index, j->id, who, t->guard, t->guard_session, t->guard_held, t->guard_object);
}
