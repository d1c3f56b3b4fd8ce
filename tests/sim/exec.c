/* Executors of the simulation. A strand is a list of tasks, its items. Each slot of a worker has an
 * executor, which runs strands, one item after another. A value is a hash of the operator, its
 * arguments and the values of its inputs. Dice and the operator determine how long an item takes
 * and whether it fails. */
#include "tests/sim/sim.h"

#define MAKER 0x5157u
#define ROLE_TURN (50 * MR_MS)

static struct sim_run *head_of(struct sim_proc *p, uint32_t slot)
{
    struct sim_run *r = p->runs;
    while (r && r->slot != slot)
        r = r->next_run;
    return r;
}

static void unlink_run(struct sim_proc *p, const struct sim_run *r)
{
    struct sim_run **at = &p->runs;
    while (*at != r)
        at = &(*at)->next_run;
    *at = r->next_run;
}

static void run_free(struct sim_run *r)
{
    for (uint32_t i = 0; i < MR_STRAND_ITEMS_MAX; i++)
        mr_release(r->pack[i]);
    mr_release(r);
}

/* Drops what a dead process ran. The tasks that were running become suspects: the next process of
 * the worker reports them. */
void sim_exec_drop(struct sim *s, struct sim_proc *p)
{
    struct sim_suspects *x = &s->suspects[p->name];
    x->count = 0;
    while (p->runs) {
        struct sim_run *r = p->runs;
        s->count.torn += (r->next || r->running) && r->next + r->running < r->count;
        s->count.lost_locals += r->locals;
        if (r->running) {
            const struct mr_strand_item *item = &r->strand->items[r->next];
            struct sim_job *j = sim_job_of(s, item->job.v);
            uint32_t n = x->count++;
            mr_assert(n < SUSPECTS_MAX);
            x->run[n] = (struct mr_ws_run){.job = item->job, .count = 1};
            x->index[n] = s->plant == PLANT_SUSPECT ? item->index ^ 1 : item->index;
            x->attempt[n] = item->attempt;
            if (j) j->task[item->index].deaths++;
        }
        p->runs = r->next_run;
        run_free(r);
    }
}

static void object_make(struct sim *s, struct sim_proc *p, const struct sim_run *r, uint32_t at)
{
    struct mr_strand_result *x = &r->strand->items[at].result;
    x->object_bytes = (4096 + r->value[at] % 200000) * (s->seed % 4 ? OBJECT_SCALE : 1);
    x->object = (mr_object_id){
        MAKER, sim_object_make(s, (uint32_t)(p - s->procs), r->value[at], x->object_bytes)};
    s->figures.stored_bytes += x->object_bytes;
    sim_say(s, "w%" PRIu32 " makes object %" PRIu64, p->name, x->object.number);
}

/* Makes objects of the values that are in no store yet, so that the finished items can be
 * reported. */
static void settle(struct sim *s, struct sim_proc *p, struct sim_run *r)
{
    for (uint32_t i = 0; r->locals && i < r->next; i++) {
        if (!r->uses[i]) continue;
        object_make(s, p, r, i);
        r->uses[i] = 0;
        r->locals--;
    }
}

/* Counts the uses of values that are in no store. The last use in the strand drops a value. */
static void uses_count(struct sim_run *r, const struct mr_strand_item *item)
{
    for (uint32_t i = 0; i < item->inputs_count; i++) {
        const struct mr_strand_input *in = &item->inputs[i];
        if (in->kind != MR_STRAND_ITEM || !r->uses[in->item] || --r->uses[in->item]) continue;
        r->locals--;
        r->strand->items[in->item].result.used = true;
    }
}

static void report(struct sim *s, struct sim_proc *p, struct sim_run *r, uint32_t done)
{
    if (done <= r->reported || r->locals) return;
    r->reported = done;
    struct mr_worker_event ev = {.kind = MR_WORKER_REPORT, .report = {r->id, done, false}};
    sim_proc_step(s, p, &ev);
}

static void report_last(struct sim *s, struct sim_proc *p, struct sim_run *r)
{
    struct mr_worker_event ev = {.kind = MR_WORKER_REPORT, .report = {r->id, r->next, true}};
    sim_proc_step(s, p, &ev);
}

/* Gets the values of the item's inputs. False: an input is gone (`gone` is its position) or was not
 * made (`gone` is NONE). */
static bool inputs_of(struct sim *s, const struct sim_proc *p, const struct sim_run *r,
    const struct mr_strand_item *item, uint64_t *in, uint32_t *gone)
{
    *gone = NONE;
    for (uint32_t i = 0; i < item->inputs_count; i++) {
        const struct mr_strand_input *x = &item->inputs[i];
        switch (x->kind) {
        case MR_STRAND_PACK: in[i] = sim_value_of_pack(x->pack); break;
        case MR_STRAND_OBJECT:
            if (x->object.maker != MAKER || x->object.number > s->objects_count)
                sim_fail(s, "an object that nobody made is an input");
            in[i] = s->objects[x->object.number].value;
            if (item->op == OP_REF || sim_object_has(s, x->object.number, p->store)) break;
            *gone = i;
            s->losses++; /* the loss is noticed only now */
            return false;
        case MR_STRAND_ITEM:
            if (r->strand->items[x->item].result.end != MR_STRAND_DONE) return false;
            in[i] = r->value[x->item];
            break;
        }
    }
    return true;
}

static mr_duration duration(struct sim *s, const struct mr_strand_item *item)
{
    if (s->is_steady) return sim_schedules_duration(s, item);
    switch ((enum sim_op)item->op) {
    case OP_SLOW:
    case OP_STUBBORN: return 60 * MR_SECOND;
    case OP_ROLE: return ROLE_TURN;
    case OP_LONG: return 20 * MR_MS + sim_below(s, 200 * MR_MS);
    case OP_LARGE: return 100 * MR_US + sim_below(s, 5 * MR_MS);
    case OP_POISON: return 1 + sim_below(s, MR_MS);
    case OP_SMALL:
    case OP_MEDIUM:
    case OP_REF:
    case OP_DICE:
    case OP_IDENTITY:
    case OP_UNTIL:
    case OP_FLAKY:
    case OP_BAD:
    case OP_RARE:
    case OPS: break;
    }
    return sim_chance(s, 50) ? sim_below(s, 100 * MR_MS) : 1 + sim_below(s, 300 * MR_US);
}

static void count_start(struct sim *s, struct sim_proc *p, const struct mr_strand_item *item)
{
    struct sim_job *j = sim_job_of(s, item->job.v);
    s->count.starts++;
    s->figures.starts++;
    sim_say(s, "w%" PRIu32 " starts task %" PRIu32 " attempt %" PRIu32 " of job %" PRIx64, p->name,
        item->index, item->attempt, item->job.v);
    if (!j) sim_fail(s, "a task of an unknown job starts");
    j->task[item->index].runs++;
    /* A task of the operator "ref" rightly runs again when a value that it refers to is lost, so
     * its starts are not checked. */
    if (item->op != OP_REF)
        sim_guard_start(s, j, item->index, (uint32_t)(p - s->procs), item->attempt);
}

/* True: the task fails, because a store has just died and an object that the task reads, makes or
 * persists is away. The dice decide. The object may be the task's result, or a part of a
 * collection, which is no input of the task. */
static bool has_no_store(struct sim *s, const struct mr_strand_item *item)
{
    if (!s->has_stores || !s->store_died || s->now > s->store_died + 500 * MR_MS) return false;
    if (item->op == OP_LONG || item->op == OP_ROLE || !sim_chance(s, 3)) return false;
    s->count.store_failures++;
    return true;
}

static void finish(
    struct sim *s, struct sim_proc *p, struct sim_run *r, struct mr_strand_item *item)
{
    static const char words[] = "it went wrong";
    uint32_t at = r->next;
    struct mr_strand_result *x = &item->result;
    *x = (struct mr_strand_result){.end = MR_STRAND_DONE,
        .started_ns = r->started,
        .duration_ns = MR_MAX(s->now - r->started, 1u),
        .cpu_ns = 1};
    struct sim_job *j = sim_job_of(s, item->job.v);
    const struct sim_task *t = &j->task[item->index];
    bool fails = item->op == OP_BAD || (item->op == OP_FLAKY && t->runs % 3 != 0);
    if (r->stopped) {
        x->end = MR_STRAND_STOPPED;
    } else if (has_no_store(s, item)) {
        x->end = MR_STRAND_STORE_GONE;
        x->code = MR_EAWAY;
        x->message = mr_str("Socket closed");
    } else if (fails) {
        x->end = MR_STRAND_FAILED;
        x->code = MR_EUNKNOWN;
        x->message = mr_str(words);
    } else if (item->op == OP_LARGE && item->uses && !item->want_object && !item->persist) {
        r->uses[at] = item->uses;
        r->locals++;
    } else if (item->op == OP_LARGE || item->want_object || item->persist) {
        object_make(s, p, r, at);
        if (item->persist) {
            sim_object_persist(s, x->object.number, p->store);
            sim_name_set(s, item->persist_name, s->specs[j->spec].graph->hash[item->index],
                x->object, x->object_bytes);
        }
    } else {
        struct mr_buf b;
        mr_buf_init(&b, 8192);
        if (item->op == OP_MEDIUM) {
            unsigned char bytes[2048] = {0};
            memcpy(bytes, &r->value[at], sizeof r->value[at]);
            mr_pack_bytes(&b, mr_str_of(bytes, 20 + r->value[at] % 2000));
        } else {
            mr_pack_uint(&b, r->value[at]);
        }
        r->pack[at] = mr_copy(b.p, b.n);
        x->pack = mr_str_of(r->pack[at], b.n);
        mr_buf_fini(&b);
    }
}

static bool has_end(uint32_t op)
{
    return op != OP_LONG && op != OP_ROLE && op != OP_SLOW && op != OP_STUBBORN;
}

/* Returns whether a process runs a task that has an end. Such a task keeps its memory while its
 * process sleeps, is being stopped or was taken for dead. */
static bool is_busy(const struct sim_proc *p)
{
    if (!p->is_alive) return false;
    for (const struct sim_run *r = p->runs; r; r = r->next_run)
        if (r->running && r->slot < p->slots && has_end(r->strand->items[r->next].op)) return true;
    return false;
}

/* Returns whether a task finds room in memory. For a large task the dice decide while other tasks
 * run on its node. A large task that runs alone finds room, and so do small tasks, long-running
 * tasks, and all tasks when the faults have ended. */
static bool has_room(struct sim *s, const struct sim_proc *p, const struct mr_strand_item *item)
{
    bool is_large = item->op == OP_LARGE || item->want_object || item->persist;
    for (uint32_t i = 0; i < item->inputs_count; i++)
        is_large |= item->inputs[i].kind == MR_STRAND_OBJECT && item->op != OP_REF;
    if (!is_large || s->calm || item->op == OP_LONG || !sim_chance(s, 3)) return true;
    for (uint32_t i = 0; i < s->procs_count; i++)
        if (s->procs[i].store == p->store && is_busy(&s->procs[i])) return false;
    return true;
}

/* Begins the next item. False: the item ended at once, without a start. */
static bool begin(struct sim *s, struct sim_proc *p, struct sim_run *r)
{
    struct mr_strand_item *item = &r->strand->items[r->next];
    uint32_t gone = NONE;
    uint64_t in[512] = {0};
    item->result = (struct mr_strand_result){0};
    r->stopped = false;
    mr_assert(item->inputs_count <= MR_ARRAY_LEN(in));
    if (r->stop[r->next]) {
        item->result.end = MR_STRAND_STOPPED;
        return false;
    }
    if (!inputs_of(s, p, r, item, in, &gone)) {
        item->result.end = gone == NONE ? MR_STRAND_SKIPPED : MR_STRAND_INPUT_GONE;
        item->result.gone = gone;
        item->result.message = mr_str("the object is gone");
        return false;
    }
    if (!has_room(s, p, item)) {
        item->result.end = MR_STRAND_NO_ROOM;
        item->result.message = mr_str("there was no room");
        s->count.squeezes++;
        return false;
    }
    count_start(s, p, item);
    uint64_t v = sim_value((enum sim_op)item->op, item->args, in, item->inputs_count);
    if (item->op == OP_DICE) v = mr_hash_u64(v + ++s->serial);
    if (s->plant == PLANT_ATTEMPT && item->attempt > 1) v++;
    r->value[r->next] = v;
    r->running = true;
    r->started = s->now;
    r->serial = ++s->serial;
    sim_push(s, duration(s, item),
        (struct mr_virtual_event){.kind = EV_EXEC, .a = (uint32_t)(p - s->procs), .c = r->serial});
    return true;
}

static void pump(struct sim *s, struct sim_proc *p, uint32_t slot)
{
    for (struct sim_run *r = head_of(p, slot); r; r = head_of(p, slot)) {
        if (r->running) return;
        if (r->next >= r->count) {
            unlink_run(p, r);
            settle(s, p, r);
            report_last(s, p, r);
            run_free(r);
            continue;
        }
        if (begin(s, p, r)) return;
        bool at_once = r->strand->items[r->next].report;
        r->next++;
        if (at_once) settle(s, p, r);
        if (at_once && r->next < r->count) report(s, p, r, r->next);
    }
}

/* Plans an event for the slot's executor. Executors are threads of their own, so they act after the
 * turn that gave them work. */
static void wake_slot(struct sim *s, const struct sim_proc *p, uint32_t slot)
{
    sim_push(s, 1 + sim_below(s, 5 * MR_US),
        (struct mr_virtual_event){.kind = EV_EXEC, .a = (uint32_t)(p - s->procs), .b = slot});
}

void sim_exec_give(struct sim *s, struct sim_proc *p, struct mr_strand *strand)
{
    struct sim_run *r = mr_alloc(sizeof *r);
    *r = (struct sim_run){
        .strand = strand, .id = strand->id, .slot = strand->slot, .count = strand->count};
    struct sim_run **at = &p->runs;
    uint32_t behind = 0;
    for (; *at; at = &(*at)->next_run)
        behind += (*at)->slot == r->slot;
    if (behind >= MR_SLOT_STRANDS_MAX) sim_fail(s, "an executor's inbox has no room");
    *at = r;
    wake_slot(s, p, r->slot);
}

static struct sim_run *find(struct sim_proc *p, uint32_t strand)
{
    struct sim_run *r = p->runs;
    while (r && r->id != strand)
        r = r->next_run;
    return r;
}

/* Exchanges the executors of two slots, together with the strands that they run. */
void sim_exec_move(struct sim *s, struct sim_proc *p, uint32_t from, uint32_t to)
{
    s->count.moves++;
    for (struct sim_run *r = p->runs; r; r = r->next_run)
        if (r->slot == from || r->slot == to) r->slot = r->slot == from ? to : from;
    wake_slot(s, p, from);
    wake_slot(s, p, to);
}

void sim_exec_take(struct sim *s, struct sim_proc *p, uint32_t strand, uint32_t keep)
{
    struct sim_run *r = find(p, strand);
    struct mr_worker_event ev = {.kind = MR_WORKER_CUT, .cut = {.strand = strand}};
    if (!r) { /* the strand has finished, and its report has been taken */
        ev.cut.count = MR_STRAND_ITEMS_MAX;
        sim_proc_step(s, p, &ev);
        return;
    }
    uint32_t begun = r->next + r->running;
    uint32_t slot = r->slot;
    s->count.cuts += MR_MAX(begun, keep) < r->count;
    r->count = MR_MIN(r->count, MR_MAX(begun, keep));
    ev.cut.count = r->count + (s->plant == PLANT_CUT && r->count < r->strand->count);
    sim_proc_step(s, p, &ev);
    /* A strand that has lost all its items still waits in the slot; its executor removes it. */
    if (!r->running) wake_slot(s, p, slot);
}

void sim_exec_look(struct sim *s, struct sim_proc *p, uint32_t strand)
{
    struct sim_run *r = find(p, strand);
    if (r) report(s, p, r, r->next);
}

void sim_exec_stop(struct sim *s, struct sim_proc *p, uint32_t strand, uint32_t at)
{
    struct sim_run *r = find(p, strand);
    if (!r || at >= MR_STRAND_ITEMS_MAX) return;
    r->stop[at] = true;
    if (!r->running || r->next != at) return;
    if (r->strand->items[at].op == OP_STUBBORN) return;
    r->stopped = true;
    r->serial = ++s->serial;
    sim_push(s, sim_below(s, 5 * MR_MS),
        (struct mr_virtual_event){.kind = EV_EXEC, .a = (uint32_t)(p - s->procs), .c = r->serial});
}

static bool is_running(const struct sim *s, const struct sim_job *j, uint32_t index)
{
    for (uint32_t i = 0; i < s->procs_count; i++)
        for (const struct sim_run *r = s->procs[i].runs; r; r = r->next_run) {
            const struct mr_strand_item *item = &r->strand->items[r->next];
            bool is_it = r->running && item->job.v == j->id && item->index == index;
            if (is_it && s->procs[i].asleep_until <= s->now) return true;
        }
    return false;
}

/* Returns whether the scheduler regards the task as ended. A role is a task of OP_ROLE. It may have
 * ended although the roles of its job have not all run at the same time. Then it failed, the
 * scheduler blamed it for the deaths of workers, or it ended before its job was retried. */
static bool is_over(const struct sim *s, const struct sim_job *j, uint32_t index)
{
    struct mr_sched_task_info info;
    return s->sched && mr_sched_task(s->sched, (mr_job_id){j->id}, index, &info) &&
           info.state > MR_TASK_RUNNING;
}

/* True: the task is a role, and some role of its job neither runs nor has ended. Roles end
 * together: none ends before all of them have run at the same time. */
static bool waits_for_others(struct sim *s, const struct mr_strand_item *item)
{
    struct sim_job *j = sim_job_of(s, item->job.v);
    if (item->op != OP_ROLE || !j || j->is_formed) return false;
    const struct mr_graph *g = s->specs[j->spec].graph;
    for (uint32_t i = 0; i < g->nodes_count; i++)
        if (mr_str_eq(mr_graph_op(g, i), mr_str(sim_ops[OP_ROLE])) && !is_running(s, j, i) &&
            !is_over(s, j, i))
            return true;
    j->is_formed = true;
    return false;
}

void sim_exec_end(struct sim *s, struct sim_proc *p, uint32_t at_slot, uint64_t serial)
{
    if (!serial) {
        pump(s, p, at_slot);
        return;
    }
    struct sim_run *r = p->runs;
    while (r && (!r->running || r->serial != serial))
        r = r->next_run;
    if (!r) return;
    struct mr_strand_item *item = &r->strand->items[r->next];
    uint32_t slot = r->slot;
    if (item->op == OP_POISON && !r->stopped) {
        sim_proc_kill(s, (uint32_t)(p - s->procs));
        return;
    }
    if (!r->stopped && waits_for_others(s, item)) {
        sim_push(s, ROLE_TURN,
            (struct mr_virtual_event){.kind = EV_EXEC, .a = (uint32_t)(p - s->procs), .c = serial});
        return;
    }
    if (sim_tears(s, p, r)) return;
    finish(s, p, r, item);
    r->running = false;
    r->next++;
    if (item->result.end == MR_STRAND_DONE) uses_count(r, item);
    if (item->report) settle(s, p, r);
    if (r->next < r->count && (item->report || sim_chance(s, 3))) report(s, p, r, r->next);
    pump(s, p, slot);
}
