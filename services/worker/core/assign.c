/* New tasks. Each task of a message becomes a row of the task table, with edges to its inputs and
 * copies of its bytes. The worker returns a task for which it has no room. */
#include "services/worker/core/internal.h"

/* estimate for an operator without a measurement and without a declared cost */
#define COST_UNKNOWN MR_MS

struct assign { /* a cursor over the rows of the message */
    const struct mr_ws_tasks *m;
    uint32_t row, input, last_use, extra;
    uint32_t attempt, inputs_count; /* these two are of the present row */
    size_t arg;
    mr_job_id job;
    bool unfused;
};

static void refuse(struct mr_worker *w, const struct assign *a, enum mr_outcome outcome, int code,
    const char *text)
{
    struct outrow *r = mr_worker__out_add(w, a->job, a->m->index[a->row], a->attempt, outcome);
    if (code) mr_worker__out_failure(w, r, code, mr_str(text), MR_STR(""), MR_STR(""));
}

/* Returns the class of tasks with these needs (resources, alone, long-running). NONE: this worker
 * can never satisfy them, or has no free class. */
static uint32_t need_get(struct mr_worker *w, const struct mr_ws_extra *x, bool is_long)
{
    struct need want = {.is_long = is_long, .alone = x && x->alone && !is_long};
    for (uint32_t i = 0; x && i < x->resources_count; i++) {
        uint32_t k = 0;
        while (
            k < w->config.resources_count && !mr_str_eq(w->resource_names[k], x->resources[i].name))
            k++;
        if (k == w->config.resources_count) {
            if (x->resources[i].micro) return NONE;
            continue;
        }
        want.micro[k] = x->resources[i].micro;
        if (want.micro[k] > w->resources[k]) return NONE;
    }
    for (uint32_t i = 0; i < w->needs_count; i++) {
        struct need *n = &w->needs[i];
        if (n->is_long == want.is_long && n->alone == want.alone &&
            !memcmp(n->micro, want.micro, sizeof n->micro))
            return i;
    }
    uint32_t free = 1; /* a class without tasks is used again */
    while (free < w->needs_count && w->needs[free].members)
        free++;
    if (free == MR_WORKER_CLASSES_MAX) return NONE;
    want.heap = w->needs[free].heap;
    w->needs[free] = want;
    w->needs_count = MR_MAX(w->needs_count, free + 1);
    return free;
}

static struct mr_blob *extra_new(struct mr_worker *w, const struct mr_ws_extra *x)
{
    size_t texts = x->key.n + x->persist_name.n + x->definition.n;
    struct mr_blob *b = mr_worker__blob_new(&w->pool, sizeof(struct extra) + texts);
    if (!b) return NULL;
    struct extra *e = mr_worker__blob_at(b);
    *e = (struct extra){.timeout_ns = x->timeout_ns,
        .want_object = x->want_object,
        .persist = x->persist,
        .key_bytes = (uint32_t)x->key.n,
        .name_bytes = (uint32_t)x->persist_name.n,
        .definition_bytes = (uint32_t)x->definition.n};
    char *p = (char *)(e + 1);
    if (x->key.n) memcpy(p, x->key.p, x->key.n);
    p += x->key.n;
    if (x->persist_name.n) memcpy(p, x->persist_name.p, x->persist_name.n);
    p += x->persist_name.n;
    if (x->definition.n) memcpy(p, x->definition.p, x->definition.n);
    return b;
}

/* True: the row's task is the last user of its input `i`. `*last` is a cursor: the caller sets it
 * to a->last_use and then asks for the inputs in ascending order. */
static bool is_last_use(const struct assign *a, uint32_t i, uint32_t *last)
{
    const struct mr_ws_tasks *m = a->m;
    while (*last < m->last_use_count && m->last_use[*last] < a->input + i)
        ++*last;
    return *last < m->last_use_count && m->last_use[*last] == a->input + i;
}

/* Marks the last uses of inputs for another attempt of a task that is here. The marks may differ
 * from those of the first attempt, because consumers on other workers came or went in between.
 * `is_given`: the first attempt was given to an executor and keeps its own marks. */
static void edges_mark(struct mr_worker *w, struct task *t, const struct assign *a, bool is_given)
{
    struct edge *edges = task_edges(t);
    uint32_t n = MR_MIN(t->inputs_count, a->inputs_count), last = a->last_use;
    for (uint32_t i = 0; i < n; i++) {
        bool is_same = w->values[edges[i].value].index == a->m->inputs[a->input + i];
        bool is_last = is_last_use(a, i, &last) && is_same;
        *(is_given ? &edges[i].last_again : &edges[i].last_use) = is_last;
    }
}

/* Stores arguments, extras and edges of a new task. False: there is no room; the caller ends the
 * task, which frees what was stored. */
static bool task_fill(
    struct mr_worker *w, uint32_t task, const struct assign *a, const struct mr_ws_extra *x)
{
    struct task *t = &w->tasks[task];
    uint32_t n = a->inputs_count;
    t->args =
        mr_worker__blob_copy(&w->pool, mr_str_of(a->m->args.p + a->arg, a->m->args_bytes[a->row]));
    if (n) t->edges = mr_worker__blob_new(&w->pool, n * sizeof(struct edge));
    if (x) t->extra = extra_new(w, x);
    if (!t->args || (n && !t->edges) || (x && !t->extra)) return false;
    struct edge *edges = task_edges(t);
    uint32_t last = a->last_use;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t value = mr_worker__value_get(w, a->job, a->m->inputs[a->input + i]);
        if (value == NONE) return false;
        struct value *v = &w->values[value];
        edges[i] = (struct edge){.value = value, .task = task};
        edges[i].last_use = is_last_use(a, i, &last);
        edges[i].has = mr_worker__value_serves(w, v, t);
        mr_list_add_tail(&v->users, &edges[i].users);
        t->inputs_count++;
        if (edges[i].has) continue;
        t->missing++;
        if (v->state == VALUE_PLACED) mr_worker__fetch_want(w, value, t);
    }
    return true;
}

static uint32_t task_row(struct mr_worker *w)
{
    if (w->tasks_free != NONE) {
        uint32_t task = w->tasks_free;
        w->tasks_free = w->tasks[task].value;
        return task;
    }
    return w->tasks_high < w->config.tasks_max ? w->tasks_high++ : NONE;
}

static void task_new(struct mr_worker *w, const struct assign *a, const struct mr_ws_extra *x,
    uint32_t op, uint32_t needs, uint32_t value)
{
    uint32_t task = task_row(w);
    if (task == NONE) {
        refuse(w, a, MR_OUTCOME_RETURNED, 0, "");
        mr_worker__value_settle(w, value);
        return;
    }
    const struct op *o = &w->ops[op];
    struct task *t = &w->tasks[task];
    *t = (struct task){.value = value,
        .attempt = a->attempt,
        .op = op,
        .order = mr_ws_cell(a->m->order, a->row, a->m->index[a->row]),
        .priority = a->m->priority ? a->m->priority[a->row] : 0,
        .needs = (uint8_t)needs,
        .uses = a->m->uses ? a->m->uses[a->row] & ~MR_USES_OF_LOOP : 0,
        .of_loop = a->m->uses && a->m->uses[a->row] & MR_USES_OF_LOOP,
        .solo = needs || a->unfused || (o->flags & MR_WORKER_OP_SOLO) || (x && x->timeout_ns) ||
                a->inputs_count > STRAND_INPUTS_MAX,
        .cost_ns = o->cost_ns ? o->cost_ns : COST_UNKNOWN};
    mr_worker__task_move(w, task, TASK_WAITING);
    mr_list_add_tail(&w->tasks_all, &t->all);
    w->tasks_count++;
    w->queue_cost_ns += t->cost_ns;
    w->values[value].task = task;
    w->needs[needs].members++;
    if (!task_fill(w, task, a, x)) {
        mr_worker__task_report(w, task, MR_OUTCOME_RETURNED);
        mr_worker__task_end(w, task, false);
    } else if (!t->missing) {
        mr_worker__task_ready(w, task);
    }
}

/* True: the task, or its result, is here already, and the row is handled. False: the caller makes a
 * new task. */
static bool known_already(struct mr_worker *w, const struct assign *a, uint32_t op, uint32_t value)
{
    struct value *v = &w->values[value];
    uint32_t attempt = a->attempt;
    if (v->task != NONE) {
        struct task *t = &w->tasks[v->task];
        /* the scheduler has sent this attempt, or a later one, before */
        if (attempt <= MR_MAX(t->attempt, t->again) && !t->mute) return true;
        edges_mark(w, t, a, t->state == TASK_GIVEN);
        if (t->state == TASK_GIVEN) {
            t->again = attempt; /* the later attempt starts if the running one fails */
        } else {
            t->attempt = attempt;
        }
        return true;
    }
    if (!v->made) return false;
    /* The value is here, so the worker usually reports it again. But a task whose result is an
     * object, or may refer to an object, runs again for a later attempt: that object may be
     * lost. */
    bool refers = w->ops[op].flags & MR_WORKER_OP_BY_REFERENCE;
    if ((v->blob && !refers) || attempt <= v->attempt) {
        v->released = false;
        mr_worker__out_held(w, v);
        return true;
    }
    mr_worker__value_withdraw(w, v);
    return false;
}

static void assign_row(struct mr_worker *w, const struct assign *a)
{
    const struct mr_ws_tasks *m = a->m;
    const struct mr_ws_extra *x = NULL;
    if (a->extra < m->extras_count && m->extras[a->extra].row == a->row) x = &m->extras[a->extra];
    if (w->draining || w->no_room || w->pool.bytes > w->config.bytes_max) {
        refuse(w, a, MR_OUTCOME_RETURNED, 0, "");
        return;
    }
    uint32_t number = mr_ws_op(m, a->row);
    uint32_t op = NONE;
    if (number >= 1 && number <= w->session_ops_count) op = w->session_ops[number - 1];
    if (op == NONE) {
        refuse(w, a, MR_OUTCOME_BAD_ARGUMENT, MR_EUNIMPL, "this worker does not have the operator");
        return;
    }
    bool is_long = (x && x->long_running) || (w->ops[op].flags & MR_WORKER_OP_LONG);
    uint32_t needs = x || is_long ? need_get(w, x, is_long) : 0;
    if (needs == NONE) {
        refuse(
            w, a, MR_OUTCOME_RETURNED, MR_ELIMIT, "this worker has not the resources it asks for");
        return;
    }
    uint32_t value = mr_worker__value_get(w, a->job, m->index[a->row]);
    if (value == NONE) {
        refuse(w, a, MR_OUTCOME_RETURNED, 0, "");
        return;
    }
    if (known_already(w, a, op, value)) return;
    task_new(w, a, x, op, needs, value);
}

void mr_worker__tasks_assign(struct mr_worker *w, const struct mr_ws_tasks *m)
{
    struct mr_ws_walk walk = {.runs = m->runs};
    struct assign a = {.m = m};
    for (; a.row < m->count; a.row++) {
        a.job = mr_ws_walk_next(&walk);
        a.unfused = mr_ws_walk_is_unfused(&walk);
        a.attempt = mr_ws_attempt(m, a.row);
        a.inputs_count = mr_ws_cell(m->inputs_count, a.row, 0);
        while (a.extra < m->extras_count && m->extras[a.extra].row < a.row)
            a.extra++;
        while (a.last_use < m->last_use_count && m->last_use[a.last_use] < a.input)
            a.last_use++;
        assign_row(w, &a);
        a.arg += m->args_bytes[a.row];
        a.input += a.inputs_count;
    }
}
