/* The faults of a simulated run, chosen by random numbers. sim_calm ends the faults. From then on
 * every job must end within CALM_MAX (main.c). */
#include "tests/sim/sim.h"

enum fault {
    KILL,
    CUT,
    CUT_LOSSY,
    SLEEP,
    STORE,
    OBJECT,
    CRASH,
    AWAY,
    RETIRE,
    COMPACT,
    EMPTY,
    STORE_CUT,
    FAULTS
};

const uint32_t sim_crashes = 1u << CRASH;
const uint32_t sim_deaths_of_stores = 1u << STORE;

static uint32_t any_proc(struct sim *s)
{
    uint32_t p = s->proc_of[sim_below(s, s->names)];
    return p == NONE || s->procs[p].asleep_until ? NONE : p;
}

static void cut(struct sim *s, bool lose)
{
    uint32_t p = any_proc(s);
    if (p == NONE || s->procs[p].session == NONE || !s->sessions[s->procs[p].session].is_down)
        return;
    s->losses++;
    s->count.disconnects++;
    sim_say(s, "the stream of w%" PRIu32 " breaks%s", s->procs[p].name, lose ? ", lossy" : "");
    sim_session_cut(s, s->procs[p].session, lose);
}

static void sleep_long(struct sim *s)
{
    uint32_t p = any_proc(s);
    if (p == NONE) return;
    s->losses++;
    s->count.sleeps++;
    s->procs[p].asleep_until = s->now + sim_below(s, 4 * s->config.lease);
    sim_say(s, "w%" PRIu32 " sleeps until %.6f", s->procs[p].name,
        (double)s->procs[p].asleep_until / 1e9);
}

static void crash(struct sim *s)
{
    if (!s->sched || s->journal.is_amnesic) return;
    sim_sched_crash(s);
    s->journal.is_away = false;
    sim_push(s, MR_MS + sim_below(s, sim_chance(s, 4) ? 3 * MR_SECOND : 200 * MR_MS),
        (struct mr_virtual_event){.kind = EV_SCHED_START});
}

/* Compacts the journal; sometimes the scheduler dies in the middle of the snapshot. */
static void compact(struct sim *s)
{
    sim_journal_compact(s);
    if (s->journal.has_snapshot && s->faults_mask & 1u << CRASH && sim_chance(s, 3)) crash(s);
}

static void retire(struct sim *s)
{
    struct mr_sched_worker_info w;
    if (!s->sched || !sim_chance(s, 3)) return;
    uint32_t slot = (uint32_t)sim_below(s, mr_sched_worker_slots(s->sched) + 1);
    if (!mr_sched_worker(s->sched, slot, &w)) return;
    s->losses++;
    s->count.retired++;
    sim_say(s, "worker slot %" PRIu32 " is to retire", slot);
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_RETIRE, .slot = slot, .incarnation = w.incarnation};
    sim_sched_step(s, &ev);
}

void sim_fault(struct sim *s)
{
    if (s->calm) return;
    sim_push(s, sim_below(s, 400 * MR_MS), (struct mr_virtual_event){.kind = EV_FAULT});
    enum fault f = (enum fault)sim_below(s, FAULTS);
    if (s->has_stores && f == RETIRE) f = STORE;
    if (!(s->faults_mask & 1u << f)) return;
    switch (f) {
    case KILL:
        if (any_proc(s) != NONE) {
            uint32_t p = any_proc(s);
            if (p != NONE) sim_proc_kill(s, p);
        }
        break;
    case CUT: cut(s, false); break;
    case CUT_LOSSY: cut(s, true); break;
    case SLEEP: sleep_long(s); break;
    case STORE:
        if (s->has_stores || sim_chance(s, 3)) sim_store_lose(s, (uint32_t)sim_below(s, s->nodes));
        break;
    case OBJECT: sim_object_lose(s); break;
    case CRASH:
        if (sim_chance(s, 2)) crash(s);
        break;
    case AWAY: sim_journal_away(s, !s->journal.is_away); break;
    case RETIRE: retire(s); break;
    case COMPACT: compact(s); break;
    case EMPTY:
        if (sim_chance(s, 3)) sim_journal_empty(s);
        break;
    case STORE_CUT: sim_store_cut(s, (uint32_t)sim_below(s, s->nodes)); break;
    case FAULTS: break;
    }
}

/* Sometimes kills a worker, or breaks its stream, in the middle of a strand (a list of tasks that
 * one executor runs). This is the worst time, because the scheduler does not know yet how much of
 * the strand ran. A hash and not the run's dice decides, so that the runs of older seeds stay the
 * same. True: the worker was killed. */
bool sim_tears(struct sim *s, struct sim_proc *p, const struct sim_run *r)
{
    uint64_t k = mr_hash_u64(s->seed * 1000003 + ++s->tears);
    if (!s->has_tears || s->calm || r->next + 1 >= r->count || k % (r->locals ? 10 : 60))
        return false;
    uint32_t id = (uint32_t)(p - s->procs), how = (uint32_t)(k >> 32) % 4;
    bool is_open = p->session != NONE && s->sessions[p->session].is_down;
    if (how == 0 && is_open && s->faults_mask & 1u << CUT_LOSSY) {
        s->losses++;
        s->count.disconnects++;
        sim_say(s, "the stream of w%" PRIu32 " breaks in the middle of a strand", p->name);
        sim_session_cut(s, p->session, true);
        return false;
    }
    if (!(s->faults_mask & 1u << KILL)) return false;
    sim_proc_kill(s, id);
    return true;
}

void sim_calm(struct sim *s)
{
    s->calm = true;
    sim_say(s, "faults end");
    sim_journal_away(s, false);
}
