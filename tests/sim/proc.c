/* Worker processes: the worker's shell in virtual time. A process that sleeps (SIGSTOP) gets its
 * events when it wakes. */
#include "tests/sim/sim.h"

#define TURNS_MAX 8
#define MAKER 0x5157u

static bool is_open(const struct sim *s, const struct sim_proc *p)
{
    return p->session != NONE && s->sessions[p->session].is_down;
}

/* True: the worker had an earlier process. Then the new process knows which tasks ran when the
 * earlier process died, and also knows if no task ran. */
static bool had_one_before(const struct sim *s, uint32_t id, uint32_t name)
{
    for (uint32_t i = 0; i < id; i++)
        if (s->procs[i].name == name) return true;
    return false;
}

void sim_proc_start(struct sim *s, uint32_t name)
{
    static const struct mr_ws_resource gpu = {MR_STR_INIT("gpu"), GPU};
    static struct mr_worker_op ops[OPS];
    if (s->proc_of[name] != NONE || s->procs_count == PROCS_MAX) return;
    if (!s->store[name % s->nodes].id) { /* the process waits for its store */
        sim_push(s, 100 * MR_MS, (struct mr_virtual_event){.kind = EV_PROC_START, .a = name});
        return;
    }
    for (uint32_t i = 0; i < OPS; i++)
        ops[i] = (struct mr_worker_op){.name = mr_str(sim_ops[i]),
            .flags = i == OP_REF                        ? MR_WORKER_OP_BY_REFERENCE
                     : i == OP_LONG || i == OP_ROLE     ? MR_WORKER_OP_LONG
                     : i == OP_SLOW || i == OP_STUBBORN ? MR_WORKER_OP_SOLO
                                                        : 0};
    uint32_t id = s->procs_count++;
    struct sim_proc *p = &s->procs[id];
    *p = (struct sim_proc){.is_alive = true,
        .name = name,
        .node = name % s->nodes,
        .store = s->store[name % s->nodes].id,
        .session = NONE,
        .slots = 1 + name % 3,
        .wake_at = MR_NEVER,
        .has_suspects = had_one_before(s, id, name)};
    struct mr_worker_config c = {.slots = p->slots,
        .tasks_max = 512,
        .values_max = 2048,
        .outbox_max = 64 + name * 100,
        .bytes_max = 4 << 20,
        .prefetch_bytes = 1 << 20,
        .store = {p->store},
        .ops = ops,
        .ops_count = name % 2 ? OPS : OPS - 1,
        .resources = &gpu,
        .resources_count = name % 2};
    p->w = mr_worker_new(&c);
    s->proc_of[name] = id;
    sim_say(s, "process %" PRIu32 " starts: worker w%" PRIu32, id, name);
    sim_proc_turn(s, p);
}

/* Ends a stream. Each side sees the end after a delay of its own. `lose`: messages under way and
 * messages sent from now on are lost. */
void sim_session_cut(struct sim *s, uint32_t id, bool lose)
{
    struct sim_session *x = &s->sessions[id];
    mr_duration up = 100 * MR_US + sim_below(s, sim_chance(s, 4) ? 2 * MR_SECOND : 5 * MR_MS);
    mr_duration down = 100 * MR_US + sim_below(s, sim_chance(s, 4) ? 2 * MR_SECOND : 5 * MR_MS);
    if (s->calm) up = down = MR_MS;
    for (uint32_t i = 0; lose && i < s->queue.count; i++) { /* messages under way are lost */
        struct mr_virtual_event *ev = &s->queue.heap[i];
        if ((ev->kind == EV_UP || ev->kind == EV_DOWN) && ev->a == id && ev->msg)
            mr_virtual_message_free(&ev->msg);
    }
    if (lose) x->last_up = x->last_down = MR_NEVER; /* messages sent from now on are lost, too */
    sim_push(s, up, (struct mr_virtual_event){.kind = EV_UP_END, .a = id});
    sim_push(s, down, (struct mr_virtual_event){.kind = EV_DOWN_END, .a = id});
}

void sim_proc_kill(struct sim *s, uint32_t id)
{
    struct sim_proc *p = &s->procs[id];
    if (!p->is_alive) return;
    s->count.deaths++;
    s->losses++;
    /* A suspect is a task that ran when the process before this one died. If has_suspects is still
     * true, the scheduler has not learned the suspects from this process, and never will. */
    s->guesses += p->has_suspects;
    sim_say(s, "process %" PRIu32 " dies: worker w%" PRIu32, id, p->name);
    sim_exec_drop(s, p);
    p->is_alive = false;
    mr_worker_free(&p->w);
    mr_worker_effects_fini(&p->fx);
    for (uint32_t i = 0; i < MR_ARRAY_LEN(p->pins); i++)
        if (p->pins[i].object) sim_object_pin(s, p->pins[i].object, p->store, false);
    sim_store_client_gone(s, id);
    if (p->session != NONE) {
        s->sessions[p->session].is_down = false;
        sim_session_cut(s, p->session, false);
    }
    s->proc_of[p->name] = NONE;
    sim_push(s, 10 * MR_MS + sim_below(s, 500 * MR_MS),
        (struct mr_virtual_event){.kind = EV_PROC_START, .a = p->name});
}

static void send(struct sim *s, struct sim_proc *p, const struct mr_ws_up *up)
{
    if (!is_open(s, p)) return;
    struct sim_session *x = &s->sessions[p->session];
    if (x->last_up == MR_NEVER) return; /* messages of a broken stream are lost */
    mr_duration wait = 10 * MR_US + sim_below(s, 200 * MR_US);
    if (!s->calm && sim_chance(s, 40)) wait = sim_below(s, 300 * MR_MS);
    x->last_up = MR_MAX(x->last_up, s->now + wait);
    x->flying_up++;
    struct mr_virtual_event ev = {.kind = EV_UP, .a = p->session, .msg = sim_wire_up(s, p, up)};
    sim_push(s, x->last_up - s->now, ev);
}

static void fetch(struct sim *s, struct sim_proc *p, const struct mr_worker_effect *e)
{
    struct mr_virtual_event ev = {.kind = EV_FETCHED,
        .a = (uint32_t)(p - s->procs),
        .b = e->object.value,
        .c = (uint64_t)e->object.serial << 32 | e->object.object.number};
    mr_assert(e->object.object.number <= UINT32_MAX);
    for (uint32_t i = 0; i < MR_ARRAY_LEN(p->pins); i++) {
        if (p->pins[i].serial) continue;
        p->pins[i] = (struct sim_pin){.serial = e->object.serial};
        if (!sim_object_has(s, e->object.object.number, p->store))
            s->figures.moved_bytes += s->objects[e->object.object.number].bytes;
        sim_push(s, 50 * MR_US + sim_below(s, 5 * MR_MS), ev);
        return;
    }
    sim_fail(s, "worker w%" PRIu32 " fetches more than it may", p->name);
}

static void unpin(struct sim *s, struct sim_proc *p, uint32_t serial)
{
    for (uint32_t i = 0; i < MR_ARRAY_LEN(p->pins); i++) {
        struct sim_pin *pin = &p->pins[i];
        if (pin->serial != serial) continue;
        if (pin->object) sim_object_pin(s, pin->object, p->store, false);
        *pin = (struct sim_pin){0};
        return;
    }
    sim_fail(s, "worker w%" PRIu32 " unpins what it has not", p->name);
}

static void open_stream(struct sim *s, struct sim_proc *p, mr_time at)
{
    if (is_open(s, p)) {
        uint32_t old = p->session;
        s->sessions[old].is_down = false;
        sim_push(s, MR_MS, (struct mr_virtual_event){.kind = EV_UP_END, .a = old});
    }
    p->session = NONE;
    sim_push(s, at > s->now ? at - s->now : 0,
        (struct mr_virtual_event){.kind = EV_CONNECT, .a = (uint32_t)(p - s->procs)});
}

static void perform_one(struct sim *s, struct sim_proc *p, const struct mr_worker_effect *e)
{
    switch (e->kind) {
    case MR_WORKER_START: sim_exec_give(s, p, e->strand); break;
    case MR_WORKER_TAKE: sim_exec_take(s, p, e->item.strand, e->item.at); break;
    case MR_WORKER_LOOK: sim_exec_look(s, p, e->item.strand); break;
    case MR_WORKER_STOP: sim_exec_stop(s, p, e->item.strand, e->item.at); break;
    case MR_WORKER_MOVE: sim_exec_move(s, p, e->move.from, e->move.to); break;
    case MR_WORKER_FETCH: fetch(s, p, e); break;
    case MR_WORKER_UNPIN: unpin(s, p, e->object.serial); break;
    case MR_WORKER_DROP: sim_object_drop(s, e->object.object.number, p->store); break;
    case MR_WORKER_WANT:
    case MR_WORKER_SEND: break;
    case MR_WORKER_CONNECT: open_stream(s, p, e->at); break;
    /* MR_NEVER tells sim_proc_turn to kill the process. */
    case MR_WORKER_HANG_UP:
    case MR_WORKER_LETHAL: p->asleep_until = MR_NEVER; break;
    }
}

void sim_proc_step(struct sim *s, struct sim_proc *p, const struct mr_worker_event *ev)
{
    mr_worker_step(p->w, s->now, ev, &p->fx);
    s->steps++;
    if (s->steps % s->check_every == 0) mr_worker_check(p->w);
    for (uint32_t i = 0; i < p->fx.count; i++)
        if (p->fx.p[i].kind == MR_WORKER_SEND) {
            send(s, p, p->fx.p[i].send);
            p->fx.p[i].send = NULL;
        }
}

static void perform(struct sim *s, struct sim_proc *p)
{
    struct mr_worker_effects fx = p->fx;
    mr_worker_effects_init(&p->fx);
    for (uint32_t i = 0; i < fx.count; i++)
        perform_one(s, p, &fx.p[i]);
    mr_worker_effects_fini(&fx);
}

static void effects_say(struct sim *s, const struct sim_proc *p)
{
    static const char *const names[] = {[MR_WORKER_START] = "start",
        [MR_WORKER_TAKE] = "take",
        [MR_WORKER_LOOK] = "look",
        [MR_WORKER_STOP] = "stop",
        [MR_WORKER_MOVE] = "move",
        [MR_WORKER_FETCH] = "fetch",
        [MR_WORKER_UNPIN] = "unpin",
        [MR_WORKER_DROP] = "drop",
        [MR_WORKER_WANT] = "want",
        [MR_WORKER_SEND] = "send",
        [MR_WORKER_CONNECT] = "connect",
        [MR_WORKER_HANG_UP] = "hang up",
        [MR_WORKER_LETHAL] = "lethal"};
    for (uint32_t i = 0; i < p->fx.count; i++)
        if (p->fx.p[i].kind != MR_WORKER_SEND)
            sim_say(s, "  w%" PRIu32 " wants: %s", p->name, names[p->fx.p[i].kind]);
}

void sim_proc_turn(struct sim *s, struct sim_proc *p)
{
    uint32_t id = (uint32_t)(p - s->procs);
    for (int i = 0; i < TURNS_MAX; i++) {
        bool may = is_open(s, p) && s->sessions[p->session].flying_up < 2;
        struct mr_worker_event ev = {.kind = MR_WORKER_TURN,
            .turn = {.may_send = may, .has_spilled = id % 2, .memory_used_bytes = 1 << 20}};
        sim_proc_step(s, p, &ev);
        if (s->trace && p->fx.count) effects_say(s, p);
        perform(s, p);
        if (p->asleep_until == MR_NEVER) {
            p->asleep_until = 0;
            sim_say(s, "process %" PRIu32 " ends by itself", id);
            sim_proc_kill(s, id);
            return;
        }
        if (mr_worker_deadline(p->w) > s->now) break;
    }
    mr_time at = mr_worker_deadline(p->w);
    if (at <= s->now) at = s->now + 20 * MR_US;
    if (at >= p->wake_at) return; /* an earlier EV_WAKE is planned */
    p->wake_at = at;
    sim_push(s, at - s->now, (struct mr_virtual_event){.kind = EV_WAKE, .a = id});
    p->wake_order = s->queue.order;
}
