/* Decides which tasks go to which slot, when, and how many at once. A slot is an executor thread. A
 * strand is a list of tasks, its items, that one slot runs back to back (strand_item.h). A strand
 * takes the best of the ready tasks and of the tasks that the strand itself makes ready, until it
 * holds about a millisecond of work. A cut takes items back from a strand when another slot is idle
 * or a more urgent task is ready. */
#include "services/worker/core/internal.h"

#define STRAND_COST MR_MS       /* work that a strand takes from the ready queue */
#define FUSED_COST (20 * MR_MS) /* a strand with this much work takes no more tasks at all */
/* a second strand may wait at a slot only if the slot's first strand has at most this much work */
#define BEHIND_COST (5 * MR_MS)
/* the tasks that make the other inputs of a dependent may join the strand only if the dependent has
 * at most this many inputs */
#define SIBLINGS_MAX 8u
/* a strand with less work than this takes ready tasks even beyond its `share` (struct build) */
#define STRAND_COST_MIN (20 * MR_US)
/* bounds of `branch_ns`: if a value has several dependents, those whose estimated time is longer
 * than `branch_ns` may be left for another slot */
#define BRANCH_COST_MIN (20 * MR_US)
#define BRANCH_COST_MAX (200 * MR_US)
#define CANDIDATES_MAX 64u
#define BALANCE_EVERY (50 * MR_US)
/* limit of the edges that mr_worker_wake_after reads to find tasks that wait for values */
#define USERS_LOOK 256u

struct build {
    struct mr_strand *s;
    uint32_t mark;
    uint32_t share; /* number of tasks to take from the ready queue */
    uint32_t taken;
    uint32_t idle;     /* number of idle slots */
    uint32_t siblings; /* number of ready tasks among the candidates */
    /* if a value has several dependents, those whose estimated time is longer than this do not join
     * the strand; UINT64_MAX: all may join */
    uint64_t branch_ns;
    /* tasks that may join: those that the strand makes ready, and siblings (siblings_add) */
    uint32_t candidates[CANDIDATES_MAX];
    uint32_t candidates_count;
};

/* Returns the first idle slot of `from` … `end` - 1; NONE: there is none. */
static uint32_t idle_slot(const struct mr_worker *w, uint32_t from, uint32_t end)
{
    while (from < end && !slot_is_idle(w, from))
        from++;
    return from < end ? from : NONE;
}

static uint32_t idle_slots(const struct mr_worker *w)
{
    uint32_t idle = 0;
    for (uint32_t k = 0; k < w->config.slots; k++)
        idle += slot_is_idle(w, k);
    return idle;
}

static struct mr_strand *strand_new(struct mr_worker *w, uint32_t slot)
{
    struct mr_strand *s;
    if (w->strands_free_count) {
        s = &w->strands[w->strands_free[--w->strands_free_count]];
    } else {
        s = &w->strands[w->strands_high];
        s->id = w->strands_high++;
        s->inputs = MR_ARENA_ARRAY(&w->arena, struct mr_strand_input, STRAND_INPUTS_MAX);
    }
    s->slot = slot;
    s->count = s->reported = s->inputs_count = 0;
    s->take_from = s->stop_at = s->leave_at = NONE;
    s->alive = s->held = true;
    s->left = s->taking = s->begun = false;
    s->measured = s->is_line = true;
    s->priority = INT32_MAX;
    s->nodes = w->nodes;
    s->nodes_count = w->nodes_count;
    s->cost_ns = 0;
    s->moved_ns = w->now;
    s->look_ns = mr_time_after(w->now, LOOK_AFTER);
    s->given_ns = w->slots[slot].count ? 0 : w->now;
    s->stop_ns = s->kill_ns = MR_NEVER;
    struct slot *k = &w->slots[slot];
    k->strands[k->count++] = s;
    k->held++;
    w->running_strands++;
    return s;
}

void mr_worker__strand_retire(struct mr_worker *w, struct mr_strand *s)
{
    struct slot *k = &w->slots[s->slot];
    _Static_assert(SLOT_STRANDS_MAX == 2, "of two strands the other one stays");
    if (k->strands[0] == s) k->strands[0] = k->strands[1];
    k->count--;
    struct need *n = &w->needs[s->needs];
    for (uint32_t r = 0; s->needs && r < w->config.resources_count; r++)
        w->resources_free[r] += n->micro[r];
    if (n->alone && !s->left) w->alone_running--;
    s->alive = false;
    mr_worker__blob_put(&w->pool, (struct mr_blob **)&s->inputs_held);
    w->running_strands--;
    if (!s->held) w->strands_free[w->strands_free_count++] = s->id;
}

/* Called when the executor has released a strand. A cut may take all items of a strand that still
 * stands in the executor's inbox. The empty strand keeps its place and its number until the
 * executor has come to it. */
void mr_worker__strand_let_go(struct mr_worker *w, struct mr_strand *s)
{
    mr_assert(w->slots[s->slot].held);
    w->slots[s->slot].held--;
    s->held = false;
    if (!s->alive) w->strands_free[w->strands_free_count++] = s->id;
}

static void input_fill(struct mr_worker *w, const struct build *b, const struct edge *e,
    const struct task *t, struct mr_strand_input *in)
{
    struct value *v = &w->values[e->value];
    *in = (struct mr_strand_input){.index = v->index};
    if (mr_worker__value_serves(w, v, t)) {
        in->kind = v->blob ? MR_STRAND_PACK : MR_STRAND_OBJECT;
        in->pack = mr_worker__blob_str(v->blob);
        in->held = mr_worker__blob_ref(v->blob);
        in->object = v->object;
        in->object_bytes = v->object_bytes;
        in->node = v->made ? 0 : v->node;
        return;
    }
    mr_assert(v->task != NONE);
    const struct task *maker = &w->tasks[v->task];
    mr_assert(maker->state == TASK_GIVEN && maker->strand == b->s->id); /* I22 */
    in->kind = MR_STRAND_ITEM;
    in->item = maker->item;
}

static void item_extra(struct mr_strand_item *item, struct task *t)
{
    const struct extra *x = mr_worker__blob_at(t->extra);
    const char *p = (const char *)(x + 1);
    item->timeout_ns = x->timeout_ns;
    item->want_object = x->want_object;
    item->persist = x->persist;
    item->key = mr_str_of(p, x->key_bytes);
    p += x->key_bytes;
    item->persist_name = mr_str_of(p, x->name_bytes);
    p += x->name_bytes;
    item->definition = mr_str_of(p, x->definition_bytes);
}

/* Called once for each missing input of `t` that a search finds, and counts these inputs. `mark`:
 * number of the search. True: the search has found all missing inputs of `t`. */
static bool comes_last(struct task *t, uint32_t mark)
{
    if (t->mark != mark) t->mark_count = 0;
    t->mark = mark;
    return ++t->mark_count == t->missing;
}

/* Looks at the missing inputs of `u` that the strand does not make. A ready task that makes one of
 * them becomes a candidate of this strand, unless an idle slot can run that task meanwhile. */
static void siblings_add(struct mr_worker *w, struct build *b, const struct task *u)
{
    if (b->branch_ns != UINT64_MAX || u->inputs_count > SIBLINGS_MAX) return;
    const struct edge *edges = task_edges(u);
    for (uint32_t i = 0; i < u->inputs_count; i++) {
        uint32_t maker = w->values[edges[i].value].task;
        if (edges[i].has || maker == NONE) continue;
        struct task *t = &w->tasks[maker];
        if (t->state != TASK_READY || t->solo || t->mark == b->mark) continue;
        if (w->needs[0].count <= b->idle + b->siblings) return; /* an idle slot can run this task */
        b->siblings++;
        t->mark = b->mark; /* so that it is added once */
        if (b->candidates_count < CANDIDATES_MAX) b->candidates[b->candidates_count++] = maker;
    }
}

/* Makes candidates of the tasks that wait for the result of `task` and otherwise only for other
 * results of this strand. Leaves out tasks that take longer than branch_ns, unless the result has
 * a single user. For a task that also waits for results of other tasks, siblings_add adds ready
 * tasks that make these results. */
static void candidates_add(struct mr_worker *w, struct build *b, uint32_t task)
{
    struct value *v = &w->values[w->tasks[task].value];
    bool only = v->users.next == v->users.prev;
    MR_LIST_EACH(node, &v->users)
    {
        const struct edge *e = MR_LIST_ITEM(node, struct edge, users);
        struct task *u = &w->tasks[e->task];
        if (e->has || u->state != TASK_WAITING || u->solo) continue;
        if (!comes_last(u, b->mark)) {
            siblings_add(w, b, u);
            continue;
        }
        if (!only && u->cost_ns > b->branch_ns) continue;
        if (b->candidates_count < CANDIDATES_MAX) b->candidates[b->candidates_count++] = e->task;
    }
}

static void item_add(struct mr_worker *w, struct build *b, uint32_t task)
{
    struct mr_strand *s = b->s;
    struct task *t = &w->tasks[task];
    struct value *v = &w->values[t->value];
    struct mr_strand_item *item = &s->items[s->count];
    struct mr_strand_input *inputs = &s->inputs[s->inputs_count];
    if (t->inputs_count > STRAND_INPUTS_MAX) inputs = mr_worker__blob_at(s->inputs_held);
    const struct edge *edges = task_edges(t);
    bool follows = !s->count;
    for (uint32_t i = 0; i < t->inputs_count; i++) {
        input_fill(w, b, &edges[i], t, &inputs[i]);
        follows |= inputs[i].kind == MR_STRAND_ITEM && inputs[i].item + 1 == s->count;
    }
    s->is_line = s->is_line && follows;
    *item = (struct mr_strand_item){.job = value_job(w, v),
        .index = v->index,
        .attempt = t->attempt,
        .op = t->op,
        .inputs_count = t->inputs_count,
        .inputs = inputs,
        .args = mr_worker__blob_str(t->args),
        .task = task};
    if (t->extra) item_extra(item, t);
    if (t->state != TASK_GIVEN) mr_worker__task_give(w, task);
    t->strand = s->id;
    t->item = s->count++;
    s->inputs_count += t->inputs_count;
    s->cost_ns += t->cost_ns;
    s->measured = s->measured && w->ops[t->op].measured;
    s->priority = MR_MIN(s->priority, t->priority);
    candidates_add(w, b, task);
}

static bool item_fits(const struct mr_worker *w, const struct build *b, uint32_t task)
{
    const struct task *t = &w->tasks[task];
    return b->s->inputs_count + t->inputs_count <= STRAND_INPUTS_MAX;
}

/* Returns the next task of the strand: the first of the ready queue or the best candidate,
 * whichever is better. NONE: the strand is complete. */
static uint32_t build_next(struct mr_worker *w, struct build *b)
{
    const struct mr_strand *s = b->s;
    if (s->count == MR_STRAND_ITEMS_MAX || s->cost_ns >= FUSED_COST) return NONE;
    uint32_t best = NONE, at = 0;
    for (uint32_t i = 0; i < b->candidates_count; i++) {
        if (best != NONE && !mr_worker__task_before(w, b->candidates[i], best)) continue;
        best = b->candidates[i];
        at = i;
    }
    const struct need *n = &w->needs[0];
    uint32_t top = n->count ? n->heap[0] : NONE;
    bool may_top = top != NONE && !w->tasks[top].solo && item_fits(w, b, top) &&
                   (b->taken < b->share || s->cost_ns < STRAND_COST_MIN) &&
                   s->cost_ns < STRAND_COST;
    if (may_top && (best == NONE || mr_worker__task_before(w, top, best))) {
        b->taken++;
        return top;
    }
    if (best == NONE || !item_fits(w, b, best)) return NONE;
    b->candidates[at] = b->candidates[--b->candidates_count];
    return best;
}

/* Marks items that the executor reports at once, because a task outside the strand waits for the
 * value. Sets `uses` where all users of a value are in the strand: such a value need not be
 * reported. */
static void build_mark_reports(struct mr_worker *w, const struct build *b)
{
    for (uint32_t i = 0; i < b->s->count; i++) {
        struct mr_strand_item *item = &b->s->items[i];
        const struct task *t = &w->tasks[item->task];
        struct value *v = &w->values[t->value];
        uint32_t users = 0;
        MR_LIST_EACH(node, &v->users)
        {
            const struct task *u = &w->tasks[MR_LIST_ITEM(node, struct edge, users)->task];
            users++;
            if (u->state == TASK_GIVEN && u->strand == b->s->id) continue;
            item->report = true;
            break;
        }
        if (!item->report && users == t->uses && !t->of_loop) item->uses = users;
    }
}

/* Sets branch_ns. If a value of the strand has several dependents, those join the strand that cost
 * at most four times the measured hand-off to another slot, within bounds. All of them may join if
 * the idle slots have other work. */
static void branches(const struct mr_worker *w, struct build *b)
{
    b->idle = idle_slots(w);
    b->branch_ns = UINT64_MAX;
    if (w->needs[0].count >= b->idle) return;
    b->branch_ns = MR_MAX(BRANCH_COST_MIN, MR_MIN(BRANCH_COST_MAX, 4 * w->handoff_ns));
}

static void strand_build(struct mr_worker *w, uint32_t slot, uint32_t first, uint32_t share)
{
    struct task *t = &w->tasks[first];
    struct mr_blob *many = NULL;
    if (t->inputs_count > STRAND_INPUTS_MAX) {
        many = mr_worker__blob_new(&w->pool, t->inputs_count * sizeof(struct mr_strand_input));
        if (!many) {
            mr_worker__task_fail(w, first, MR_OUTCOME_ERROR, MR_ELIMIT,
                MR_STR("this worker's memory for small values is full"));
            return;
        }
    }
    struct build b = {.s = strand_new(w, slot), .mark = ++w->mark, .share = share, .taken = 1};
    b.s->inputs_held = many;
    b.s->needs = t->needs;
    const struct need *n = &w->needs[t->needs];
    for (uint32_t r = 0; t->needs && r < w->config.resources_count; r++)
        w->resources_free[r] -= n->micro[r];
    if (n->alone) w->alone_running++;
    bool solo = t->solo;
    mr_worker__task_give(w, first);
    branches(w, &b);
    item_add(w, &b, first);
    for (uint32_t task; !solo && (task = build_next(w, &b)) != NONE;)
        item_add(w, &b, task);
    build_mark_reports(w, &b);
    mr_duration timeout_ns = b.s->items[0].timeout_ns;
    if (timeout_ns) b.s->stop_ns = mr_time_after(w->now, timeout_ns);
    mr_worker__fx_add(w, MR_WORKER_START)->strand = b.s;
}

static bool need_fits(const struct mr_worker *w, const struct need *n)
{
    for (uint32_t r = 0; r < w->config.resources_count; r++)
        if (n->micro[r] > w->resources_free[r]) return false;
    return true;
}

/* Returns the slot for a task of class `n`: an idle slot, or else a slot where the task waits
 * behind one short strand. If `solo` or n->is_long, only an idle slot will do. NONE: there is
 * none. */
static uint32_t slot_for(const struct mr_worker *w, const struct need *n, bool solo)
{
    if (n->is_long) return idle_slot(w, w->config.slots, w->slots_count);
    uint32_t idle = idle_slot(w, 0, w->config.slots);
    if (idle != NONE || solo) return idle;
    for (uint32_t k = 0; k < w->config.slots; k++) {
        const struct slot *s = &w->slots[k];
        if (s->held == MR_SLOT_STRANDS_MAX || s->count == SLOT_STRANDS_MAX) continue;
        /* A second strand may wait at a slot behind a strand that is known to be short. */
        const struct mr_strand *first = s->strands[0];
        if (first->measured && !first->needs && first->leave_at == NONE &&
            first->cost_ns <= BEHIND_COST && first->kill_ns == MR_NEVER)
            return k;
    }
    return NONE;
}

static bool is_any_slot_taken(const struct mr_worker *w)
{
    for (uint32_t k = 0; k < w->config.slots; k++)
        if (w->slots[k].count) return true;
    return false;
}

/* Returns the best task that may start now, and its slot in *slot; NONE: none may start. When the
 * next task has to run alone, no task starts until all others have ended. Long-running tasks do not
 * count, because they may never end. */
static uint32_t pick(struct mr_worker *w, uint32_t *slot)
{
    uint32_t best = NONE, alone = NONE;
    for (uint32_t i = 0; i < w->needs_count; i++) {
        const struct need *n = &w->needs[i];
        if (!n->count) continue;
        uint32_t top = n->heap[0];
        if (n->alone) {
            bool is_best = alone == NONE || mr_worker__task_before(w, top, alone);
            if (is_best && need_fits(w, n)) alone = top;
            continue;
        }
        if (best != NONE && !mr_worker__task_before(w, top, best)) continue;
        if (!need_fits(w, n)) continue;
        uint32_t k = slot_for(w, n, w->tasks[top].solo);
        if (k == NONE) continue;
        best = top;
        *slot = k;
    }
    if (alone == NONE || (best != NONE && mr_worker__task_before(w, best, alone))) return best;
    if (is_any_slot_taken(w)) return NONE;
    *slot = slot_for(w, &w->needs[w->tasks[alone].needs], true);
    return *slot == NONE ? NONE : alone;
}

void mr_worker__strands_dispatch(struct mr_worker *w)
{
    if (w->lethal) return;
    uint32_t idle = idle_slots(w), ready = w->needs[0].count;
    uint32_t share = idle ? (ready + idle - 1) / idle : MR_STRAND_ITEMS_MAX;
    while (w->ready_count && !w->alone_running && w->out_count < w->config.outbox_max) {
        uint32_t slot = NONE, first = pick(w, &slot);
        if (first == NONE) break;
        strand_build(w, slot, first, w->slots[slot].count ? MR_STRAND_ITEMS_MAX : share);
    }
}

/* Facts about items that have not been reported yet: after how many of their results a waiting task
 * could start, and whether the core must get each result at once. */
struct coming {
    uint32_t edges; /* edges read so far */
    uint32_t items;
    uint32_t least; /* number of further results that let the first waiting task start */
    bool urgent;    /* another process may need the value of an item, or an item has a timeout */
};

/* Adds to `c` what is known of the users of an item's value. */
static void coming_add(struct mr_worker *w, const struct mr_strand_item *item, struct coming *c)
{
    const struct task *t = &w->tasks[item->task];
    const struct value *v = &w->values[t->value];
    uint32_t users = 0;
    c->items++;
    MR_LIST_EACH(node, &v->users)
    {
        const struct edge *e = MR_LIST_ITEM(node, struct edge, users);
        struct task *u = &w->tasks[e->task];
        users++;
        if (++c->edges > USERS_LOOK) break;
        if (e->has || u->state != TASK_WAITING) continue;
        if (comes_last(u, w->mark)) c->least = MR_MIN(c->least, u->missing);
    }
    c->urgent = !users || users != t->uses || item->timeout_ns;
}

/* Returns how many results must come before the core has something to do. 0: the next result must
 * be reported at once. The number is valid until the next step. The caller waits only for a short
 * time, so the core gets every result in the end. A task that fails, writes output or returns
 * `true`, which may end a loop, wakes the core's thread in any case. */
uint32_t mr_worker_wake_after(struct mr_worker *w)
{
    struct coming c = {.least = UINT32_MAX};
    if (w->out_urgent || (w->out_count && w->now >= w->out_until)) return 0;
    if (w->tasks_count < 2 * w->config.slots || w->draining) return 0;
    if (w->link != LINK_REGISTERED) return 0;
    w->mark++;
    for (uint32_t k = 0; k < w->slots_count; k++)
        for (uint32_t i = 0; i < w->slots[k].count; i++) {
            const struct mr_strand *s = w->slots[k].strands[i];
            uint32_t end = w->ready_count ? MR_MIN(s->reported + 1, s->count) : s->count;
            for (uint32_t n = s->reported; n < end && !c.urgent; n++)
                coming_add(w, &s->items[n], &c);
        }
    if (c.urgent || !c.items) return 0; /* c.items 0: no strand has an item to report */
    return w->ready_count ? 1 : MR_MIN(c.least, c.items);
}

static void report_left(struct mr_worker *w, const struct mr_strand *s)
{
    const struct mr_strand_item *item = &s->items[s->count - 1];
    if (!w->tasks[item->task].mute)
        mr_worker__answer_add(w, &w->left, item->job, item->index, item->attempt);
}

/* Reports again the tasks that have given up their slots and still run. The scheduler may be a new
 * one, which does not know them. */
void mr_worker__strands_report_left(struct mr_worker *w)
{
    for (uint32_t k = w->config.slots; k < w->slots_count; k++) {
        const struct mr_strand *s = w->slots[k].count ? w->slots[k].strands[0] : NULL;
        if (s && s->left && s->reported < s->count) report_left(w, s);
    }
}

/* The executors of two slots change places, with all strands that they hold. */
static void executors_swap(struct mr_worker *w, uint32_t a, uint32_t b)
{
    uint32_t held = w->slots[a].held;
    w->slots[a].held = w->slots[b].held;
    w->slots[b].held = held;
    for (uint32_t i = 0; i < w->strands_high; i++) {
        struct mr_strand *s = &w->strands[i];
        if (!s->held || (s->slot != a && s->slot != b)) continue;
        s->slot = s->slot == a ? b : a;
    }
}

/* Moves strands with a task that shall leave its slot (leave_at) to places for long-running tasks.
 * The executor moves with its strand. So items behind that task, in the strand and in the slot, are
 * cut first. A strand stays in its slot while no place is free. */
void mr_worker__strands_leave(struct mr_worker *w)
{
    for (uint32_t k = 0; k < w->config.slots; k++) {
        struct slot *slot = &w->slots[k];
        struct mr_strand *s = slot->count ? slot->strands[0] : NULL;
        if (!s || s->leave_at == NONE) continue;
        s->take_from = MR_MIN(s->take_from, s->leave_at + 1);
        for (uint32_t i = 1; i < slot->count; i++)
            slot->strands[i]->take_from = 0;
        uint32_t to = idle_slot(w, w->config.slots, w->slots_count);
        if (slot->count > 1 || s->count != s->leave_at + 1 || s->taking || to == NONE) continue;
        s->left = true;
        if (w->needs[s->needs].alone) w->alone_running--;
        slot->count = 0;
        w->slots[to].strands[w->slots[to].count++] = s;
        executors_swap(w, k, to);
        struct mr_worker_effect *e = mr_worker__fx_add(w, MR_WORKER_MOVE);
        e->move.from = k;
        e->move.to = to;
        report_left(w, s);
    }
}

static void ask_cut(struct mr_worker *w, struct mr_strand *s)
{
    if (s->taking || s->take_from >= s->count) return;
    s->taking = true;
    struct mr_worker_effect *e = mr_worker__fx_add(w, MR_WORKER_TAKE);
    e->item.strand = s->id;
    e->item.at = s->asked = s->take_from;
    s->take_from = NONE;
}

/* Counts the items of a strand that another slot could start now. `first`: true if the strand is
 * the first one of its slot, so that one of its items runs. `*keep` becomes the position at which
 * the second half of the counted items begins. */
static uint32_t movable(
    const struct mr_worker *w, const struct mr_strand *s, bool first, uint32_t *keep)
{
    uint32_t n = 0;
    for (uint32_t i = s->reported + first; i < s->count; i++)
        n += w->tasks[s->items[i].task].missing == 0;
    uint32_t left = (n + 1) / 2, i = s->count;
    while (left)
        left -= w->tasks[s->items[--i].task].missing == 0;
    *keep = i;
    return n;
}

/* Finds work for an idle slot. Chooses the strand with the most items that another slot could start
 * now, and marks the second half of these items for a cut. Sets `starved` if the core should look
 * again at w->balance_at, even if no event comes until then. */
static void balance_idle(struct mr_worker *w)
{
    struct mr_strand *full = NULL;
    uint32_t most = 0, from = 0;
    w->starved = w->now < w->balance_at;
    if (w->starved) return;
    w->balance_at = w->now + BALANCE_EVERY;
    for (uint32_t k = 0; k < w->config.slots; k++) {
        const struct slot *slot = &w->slots[k];
        for (uint32_t i = 0; i < slot->count; i++) {
            struct mr_strand *s = slot->strands[i];
            if (s->taking || s->needs || s->begun) continue;
            uint32_t keep, n = movable(w, s, i == 0, &keep);
            if (n <= most) continue;
            if (s->cost_ns < STRAND_COST_MIN && w->now < s->moved_ns + STRAND_COST_MIN) {
                w->starved = true; /* the strand will probably end before a cut helps */
                continue;
            }
            full = s;
            most = n;
            from = keep;
        }
    }
    if (full) full->take_from = MR_MIN(full->take_from, from);
}

/* Called when no slot is idle and tasks are ready. Cuts the items that are less urgent than the
 * first ready task off each strand. */
static void balance_urgent(struct mr_worker *w)
{
    int32_t priority = w->tasks[w->needs[0].heap[0]].priority;
    for (uint32_t k = 0; k < w->config.slots; k++) {
        const struct slot *slot = &w->slots[k];
        for (uint32_t i = 0; i < slot->count; i++) {
            struct mr_strand *s = slot->strands[i];
            if (s->begun || s->priority >= priority) continue;
            /* Items at least as urgent as the first ready task stay: the slot would get them again
             * at once. */
            uint32_t from = 0;
            while (from < s->count && w->tasks[s->items[from].task].priority >= priority)
                from++;
            if (from < s->count && s->count - s->reported > (i == 0)) s->take_from = from;
        }
    }
}

/* Asks for reports of running strands: an idle slot may need results that a strand has not reported
 * yet. */
static void look(struct mr_worker *w)
{
    for (uint32_t k = 0; k < w->config.slots; k++) {
        struct mr_strand *s = w->slots[k].count ? w->slots[k].strands[0] : NULL;
        if (!s || s->taking || s->begun || s->is_line || s->count - s->reported < 2) continue;
        if (s->look_ns <= w->now) {
            mr_worker__fx_add(w, MR_WORKER_LOOK)->item.strand = s->id;
            s->look_ns = mr_time_after(w->now, w->now - s->moved_ns);
        }
        w->look_at = MR_MIN(w->look_at, s->look_ns);
    }
}

void mr_worker__strands_balance(struct mr_worker *w)
{
    bool idle = idle_slot(w, 0, w->config.slots) != NONE;
    w->starved = false;
    w->look_at = MR_NEVER;
    if (idle && !w->ready_count && w->running_strands && !w->draining) {
        balance_idle(w);
        look(w);
    }
    if (!idle && w->needs[0].count) balance_urgent(w);
    for (uint32_t k = 0; k < w->slots_count; k++)
        for (uint32_t i = 0; i < w->slots[k].count; i++)
            ask_cut(w, w->slots[k].strands[i]);
}
