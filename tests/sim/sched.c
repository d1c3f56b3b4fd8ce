/* The process around the scheduler's core, simulated in virtual time: which stream belongs to which
 * worker, when batches leave, and in which order the core's effects are performed. Also the crash
 * of the scheduler, after which its next life (from a start to the next crash) reads the
 * journal. */
#include "tests/sim/sim.h"

#include <stdio.h>

#define BUSY_MAX 10000  /* turns in a row that each ask for another turn at once */
#define IN_FLIGHT_MAX 3 /* a stream with this many messages under way takes no further batch */

/* Plans a turn. One turn is planned at a time: the earliest that was asked for. */
static void turn_in(struct sim *s, mr_duration wait)
{
    if (s->turn_at <= s->now + wait) return;
    s->turn_at = s->now + wait;
    sim_push(s, wait, (struct mr_virtual_event){.kind = EV_SCHED_TURN, .a = s->life});
    s->turn_order = s->queue.order;
}

void sim_sched_step(struct sim *s, struct mr_sched_event *ev)
{
    ev->wall_ns = (uint64_t)1700000000 * MR_SECOND + s->now;
    mr_sched_step(s->sched, s->now, ev, &s->fx);
    s->steps++;
    if (s->steps % s->check_every == 0) mr_sched_check(s->sched);
    if (!s->in_turn) turn_in(s, sim_below(s, 50 * MR_US));
}

static mr_duration delay(struct sim *s)
{
    if (!s->calm && sim_chance(s, 40)) return sim_below(s, 300 * MR_MS);
    return 10 * MR_US + sim_below(s, 200 * MR_US);
}

static void refs_say(struct sim *s, const char *what, const struct mr_ws_run *runs,
    const uint32_t *index, uint32_t count)
{
    for (uint32_t i = 0, run = 0, at = 0; i < count; i++) {
        for (; at == runs[run].count; at = 0)
            run++;
        at++;
        sim_say(s, "    %s %" PRIu32 " of job %" PRIx64, what, index[i], runs[run].job.v);
    }
}

/* Tells the simulation's checks which tasks a message sends. The check of invariant I10 (guard.c)
 * also learns which values the message releases. */
static void guards(struct sim *s, uint32_t session, const struct mr_ws_down *m)
{
    for (uint32_t i = 0, run = 0, at = 0; i < m->tasks.count; i++, at++) {
        for (; at == m->tasks.runs[run].count; at = 0)
            run++;
        uint64_t job = m->tasks.runs[run].job.v;
        sim_guard_sent(s, session, job, m->tasks.index[i], mr_ws_attempt(&m->tasks, i));
        if (s->has_fair) sim_fair_sent(s, job);
        sim_template_sent(s, session, job, m->tasks.index[i], mr_ws_attempt(&m->tasks, i));
    }
    for (uint32_t i = 0, run = 0, at = 0; i < m->release.count; i++, at++) {
        for (; at == m->release.runs[run].count; at = 0)
            run++;
        sim_guard_released(s, m->release.runs[run].job.v, m->release.index[i]);
    }
}

void sim_flush(struct sim *s, uint32_t slot)
{
    uint32_t id = s->session_of[slot];
    const struct mr_sched_batch *b = s->fx.worker[slot];
    if (id == NONE || !b || b->session != id) return;
    struct sim_session *x = &s->sessions[id];
    if (x->flying_down >= IN_FLIGHT_MAX) {
        x->is_waiting = true;
        return;
    }
    struct mr_virtual_message *m = sim_wire_down(s, x, b);
    sim_say(s,
        "sched -> session %" PRIu32 ": %" PRIu32 " tasks, %" PRIu32 " values, %" PRIu32
        " cancels, %" PRIu32 " releases, %" PRIu32 " steals%s%s",
        id, m->down.tasks.count, m->down.values.count, m->down.cancel.count, m->down.release.count,
        m->down.steal.count, b->has_registered ? ", registered" : "", b->drain ? ", drain" : "");
    guards(s, id, &m->down);
    sim_digest_down(s, id, &m->down);
    for (uint32_t i = 0; s->trace && i < m->down.tasks.count; i++)
        sim_say(s, "    task %" PRIu32 " attempt %" PRIu32 " op %" PRIu32, m->down.tasks.index[i],
            mr_ws_attempt(&m->down.tasks, i), mr_ws_op(&m->down.tasks, i));
    if (s->trace) {
        refs_say(s, "assign", m->down.tasks.runs, m->down.tasks.index, m->down.tasks.count);
        if (m->down.registered)
            refs_say(s, "keep", m->down.registered->keep.runs, m->down.registered->keep.index,
                m->down.registered->keep.count);
        refs_say(s, "value", m->down.values.runs, m->down.values.index, m->down.values.count);
        refs_say(s, "fetch", m->down.fetch.runs, m->down.fetch.index, m->down.fetch.count);
        refs_say(s, "steal", m->down.steal.runs, m->down.steal.index, m->down.steal.count);
        refs_say(s, "cancel", m->down.cancel.runs, m->down.cancel.index, m->down.cancel.count);
        refs_say(s, "release", m->down.release.runs, m->down.release.index, m->down.release.count);
    }
    mr_sched_batch_put(&s->fx, &s->fx.worker[slot]);
    mr_time at = s->now + delay(s);
    x->last_down = MR_MAX(x->last_down, at);
    x->flying_down++;
    sim_push(
        s, x->last_down - s->now, (struct mr_virtual_event){.kind = EV_DOWN, .a = id, .msg = m});
}

/* Ends a stream from the scheduler's side. The worker gets all earlier messages first. */
static void end_stream(struct sim *s, uint32_t id, int code)
{
    struct sim_session *x = &s->sessions[id];
    if (!x->is_up) return;
    mr_time at = s->now + delay(s);
    x->last_down = MR_MAX(x->last_down, at);
    sim_push(s, x->last_down - s->now,
        (struct mr_virtual_event){.kind = EV_DOWN_END, .a = id, .c = code == MR_ESTATE});
    sim_push(s, 0, (struct mr_virtual_event){.kind = EV_UP_END, .a = id});
}

static void note(struct sim *s, const struct mr_sched_note *n)
{
    uint32_t id = NONE;
    switch (n->type) {
    case MR_NOTE_WORKER_JOINED: {
        struct sim_session *x = &s->sessions[n->session];
        uint32_t old = s->session_of[n->slot];
        if (old != NONE && old != n->session) {
            s->sessions[old].has_joined = false;
            end_stream(s, old, MR_ECANCELED);
        }
        s->session_of[n->slot] = (uint32_t)n->session;
        x->has_joined = true;
        x->slot = n->slot;
        x->incarnation = n->incarnation;
        sim_say(s, "session %" PRIu64 " is worker slot %" PRIu32 " incarnation %" PRIx64,
            n->session, n->slot, n->incarnation);
        return;
    }
    case MR_NOTE_WORKER_REFUSED:
        s->count.refused++;
        sim_say(s, "session %" PRIu64 " refused: %d", n->session, n->code);
        end_stream(s, (uint32_t)n->session, n->code);
        return;
    case MR_NOTE_WORKER_CLOSE:
        id = s->session_of[n->slot];
        sim_say(s, "worker slot %" PRIu32 " is closed, session %" PRIu32, n->slot, id);
        if (id != NONE && s->sessions[id].incarnation == n->incarnation) end_stream(s, id, n->code);
        return;
    case MR_NOTE_STORE_JOINED: return;
    case MR_NOTE_STORE_LOST:
        sim_say(s, "the scheduler gives up store %" PRIx64, n->incarnation);
        return;
    case MR_NOTE_REPLY:
    case MR_NOTE_JOB_STATE:
    case MR_NOTE_JOB_PROGRESS:
    case MR_NOTE_TARGETS_READY:
    case MR_NOTE_TARGET_BYTES:
    case MR_NOTE_TARGET_FAILED:
    case MR_NOTE_JOB_FORGOTTEN: sim_client_note(s, n); return;
    }
}

static void perform(struct sim *s)
{
    sim_journal_take(s);
    for (size_t at = 0; at < s->fx.notes.n; at += sizeof(struct mr_sched_note)) {
        struct mr_sched_note n;
        memcpy(&n, s->fx.notes.p + at, sizeof n);
        note(s, &n);
    }
    const uint32_t *workers = (const void *)s->fx.dirty_workers.p;
    for (size_t i = 0; i < s->fx.dirty_workers.n / sizeof *workers; i++)
        sim_flush(s, workers[i]);
    const uint32_t *stores = (const void *)s->fx.dirty_stores.p;
    for (size_t i = 0; i < s->fx.dirty_stores.n / sizeof *stores; i++)
        sim_store_send(s, stores[i]);
    sim_journal_take(s);
    mr_sched_effects_clear(&s->fx);
}

void sim_sched_turn(struct sim *s)
{
    s->turn_at = MR_NEVER;
    s->in_turn = true; /* effects of steps in this turn are performed at its end */
    if (mr_sched_deadline(s->sched) <= s->now) {
        struct mr_sched_event tick = {.type = MR_SCHED_TICK};
        sim_sched_step(s, &tick);
    }
    perform(s);
    mr_time at = mr_sched_deadline(s->sched);
    s->in_turn = false;
    s->busy_turns = at <= s->now ? s->busy_turns + 1 : 0;
    if (s->busy_turns > BUSY_MAX) sim_fail(s, "the scheduler turns and turns");
    if (at != MR_NEVER) turn_in(s, at > s->now ? at - s->now : 2 * MR_US);
}

static bool is_connected(const struct sim *s, uint64_t incarnation)
{
    struct mr_sched_worker_info w;
    for (uint32_t i = 0; i < mr_sched_worker_slots(s->sched); i++)
        if (mr_sched_worker(s->sched, i, &w) && w.incarnation == incarnation) return w.is_connected;
    return false;
}

/* Returns whether the scheduler has a worker of this name, connected or not. */
bool sim_sched_knows(struct sim *s, uint32_t name)
{
    struct mr_sched_worker_info w;
    char text[16];
    (void)snprintf(text, sizeof text, "w%" PRIu32, name);
    for (uint32_t i = 0; i < mr_sched_worker_slots(s->sched); i++)
        if (mr_sched_worker(s->sched, i, &w) && mr_str_eq(w.name, mr_str(text))) return true;
    return false;
}

static void joins(struct sim *s, uint32_t id, struct mr_virtual_message *m)
{
    const struct mr_ws_register *r = m->up.reg;
    struct mr_sched_event ev = {.type = MR_SCHED_WORKER_REGISTER, .session = id, .worker = *r};
    if (s->plant == PLANT_HOLDING) ev.worker.holding = (struct mr_ws_completed){0};
    sim_say(s,
        "session %" PRIu32 " registers incarnation %" PRIx64 ": holds %" PRIu32 ", queued %" PRIu32,
        id, r->incarnation, r->holding.tasks.count, r->queued.count);
    s->count.raised +=
        r->scheduler != s->config.incarnation && r->epoch >= mr_sched_epoch(s->sched);
    if (r->has_suspects) s->guesses += !sim_sched_knows(s, s->procs[s->sessions[id].proc].name);
    sim_sched_step(s, &ev);
    sim_journal_check_epoch(s, r);
}

static void rows_say(struct sim *s, const char *what, const struct mr_ws_refs *r)
{
    for (uint32_t i = 0, run = 0, at = 0; i < r->count; i++) {
        for (; at == r->runs[run].count; at = 0)
            run++;
        at++;
        sim_say(s, "    %s %" PRIu32 " attempt %" PRIu32 " of job %" PRIx64, what, r->index[i],
            mr_ws_attempt_of(r, i), r->runs[run].job.v);
    }
}

/* Counts tasks with the outcome MR_OUTCOME_USED_UP: all uses of the value ran on its worker. Fails
 * if such a task is a target, or if its job wants every task reported. */
static void count_used_up(struct sim *s, const struct mr_ws_completed *c)
{
    uint32_t run = 0, left = 0;
    for (uint32_t i = 0; i < c->tasks.count; i++, left--) {
        while (!left)
            left = c->tasks.runs[run++].count;
        if (!c->outcome || c->outcome[i] != MR_OUTCOME_USED_UP) continue;
        s->count.used_up++;
        const struct sim_job *j = sim_job_of(s, c->tasks.runs[run - 1].job.v);
        if (!j || s->plant == PLANT_USES) continue;
        if (j->task[c->tasks.index[i]].is_target || s->specs[j->spec].graph->job.unfused)
            sim_fail(s, "task %" PRIu32 " is used up, and others want it", c->tasks.index[i]);
    }
}

static void up_say(struct sim *s, uint32_t id, const struct mr_ws_up *m)
{
    sim_say(s,
        "session %" PRIu32 " -> sched: %" PRIu32 " completed, %" PRIu32 " given, %" PRIu32
        " started, %" PRIu32 " unknown, %" PRIu32 " missing%s%s",
        id, m->completed.tasks.count, m->given.count, m->started.count, m->unknown.count,
        m->missing_count, m->heartbeat ? ", heartbeat" : "", m->leaving ? ", leaving" : "");
    for (uint32_t i = 0; s->trace && i < m->completed.tasks.count; i++)
        sim_say(s, "    %" PRIu32 " attempt %" PRIu32 " outcome %" PRIu32,
            m->completed.tasks.index[i], m->completed.tasks.attempt[i],
            m->completed.outcome ? m->completed.outcome[i] : 0);
    if (s->trace) {
        rows_say(s, "given", &m->given);
        rows_say(s, "started", &m->started);
        rows_say(s, "unknown", &m->unknown);
        for (uint32_t i = 0; i < m->missing_count; i++)
            sim_say(s, "    missing %" PRIu32 " of job %" PRIx64, m->missing[i].input,
                m->missing[i].job.v);
    }
    s->count.stolen += m->given.count;
    count_used_up(s, &m->completed);
}

void sim_up(struct sim *s, uint32_t id, struct mr_virtual_message *m)
{
    struct sim_session *x = &s->sessions[id];
    x->flying_up--;
    /* The stream has room for another message, so the worker gets a turn. */
    if (x->is_down) sim_push(s, 0, (struct mr_virtual_event){.kind = EV_EXEC, .a = x->proc});
    if (!s->sched || x->life != s->life || !x->is_up) return;
    const struct mr_ws_register *r = m->up.reg;
    if (r) {
        if (x->has_registered) sim_fail(s, "session %" PRIu32 " registers twice", id);
        x->has_registered = true;
        joins(s, id, m);
        if (r->incarnation && r->scheduler != s->config.incarnation &&
            is_connected(s, r->incarnation))
            sim_guard_holding(s, id, &r->holding);
        return;
    }
    struct mr_sched_event ev = {.type = MR_SCHED_WORKER_MESSAGE,
        .slot = x->slot,
        .incarnation = x->incarnation,
        .message = m->up};
    up_say(s, id, &m->up);
    sim_digest_up(s, id, &m->up);
    if (!x->has_joined) return;
    uint64_t twice = s->calm ? 0 : sim_below(s, 20) == 0;
    if (m->up.heartbeat) {
        struct sim_proc *p = &s->procs[x->proc];
        p->held_bytes = m->up.heartbeat->held_bytes;
        p->queued = m->up.heartbeat->queued + m->up.heartbeat->running;
        p->has_told = true;
    }
    sim_sched_step(s, &ev);
    if (!twice || m->up.leaving) return;
    struct mr_sched_event again = {.type = MR_SCHED_WORKER_MESSAGE,
        .slot = x->slot,
        .incarnation = x->incarnation,
        .message = {.completed = m->up.completed}};
    sim_sched_step(s, &again); /* the completions are reported a second time */
}

void sim_up_end(struct sim *s, uint32_t id)
{
    struct sim_session *x = &s->sessions[id];
    if (!x->is_up) return;
    x->is_up = false;
    if (!s->sched || x->life != s->life) return;
    if (!x->has_joined || s->session_of[x->slot] != id) return;
    s->session_of[x->slot] = NONE;
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CLOSED, .slot = x->slot, .incarnation = x->incarnation};
    sim_say(s, "session %" PRIu32 " of slot %" PRIu32 " has ended", id, x->slot);
    sim_sched_step(s, &ev);
}

void sim_sched_start(struct sim *s)
{
    s->life++;
    sim_journal_save(s);
    s->config.epoch = ++s->journal.epoch;
    /* A hash and not the run's dice gives the incarnation, so that the runs of older seeds stay the
     * same. */
    do
        s->config.incarnation = mr_hash_u64(s->seed * 1000003 + ++s->draws);
    while (s->config.incarnation >> 32 < MR_TAG_DRAWN_MIN);
    memset(s->session_of, 0xff, sizeof s->session_of);
    mr_arena_init(&s->arena, mr_sched_arena_bytes(&s->config));
    mr_sched_effects_init(&s->fx, s->config.workers_max, s->config.stores_max);
    s->sched = mr_sched_new(&s->config, &s->arena);
    s->turn_at = MR_NEVER;
    sim_say(s, "the scheduler starts, life %" PRIu32, s->life);
    sim_journal_replay(s);
    for (uint32_t i = 0; i < s->nodes; i++)
        sim_push(s, s->life == 1 ? 0 : sim_below(s, 100 * MR_MS),
            (struct mr_virtual_event){.kind = EV_STORE_CONNECT, .a = i});
}

/* Adds up the counters of the core before the core is freed. */
void sim_sched_count(struct sim *s)
{
    struct mr_sched_totals t;
    mr_sched_totals(s->sched, &t);
    s->count.recomputed += t.recomputed;
    s->count.cached += t.placed_cached;
    s->count.repaired += t.placed_repaired;
    s->count.scored += t.placed_scored;
    s->count.roots_held += t.roots_held;
}

void sim_sched_crash(struct sim *s)
{
    if (!s->sched) return;
    s->count.crashes++;
    s->losses++;
    sim_say(s, "the scheduler dies");
    sim_sched_count(s);
    for (uint32_t i = 0; i < s->sessions_count; i++) {
        struct sim_session *x = &s->sessions[i];
        if (x->life != s->life || !x->is_up) continue;
        x->is_up = false;
        sim_push(s, 100 * MR_US + sim_below(s, 20 * MR_MS),
            (struct mr_virtual_event){.kind = EV_DOWN_END, .a = i});
    }
    mr_sched_free(&s->sched);
    mr_sched_effects_fini(&s->fx);
    mr_arena_fini(&s->arena);
    sim_journal_lose_tail(s);
    if (s->has_rewinds && !s->calm && sim_chance(s, 2)) sim_journal_rewind(s);
}
