/* The worker's core: its life cycle, its events, and the order of work in a turn (one pass of the
 * shell's loop). */
#include "services/worker/core/internal.h"

#include "base/alloc.h"

#define BACKOFF_MIN (50 * MR_MS)
#define BACKOFF_MAX (2 * MR_SECOND)
#define HANDOFF_GUESS (12 * MR_US) /* first value of handoff_ns; measurements replace it */
/* longest wait for the last completions to be sent before the process ends */
#define FAREWELL (MR_SECOND)

struct mr_worker_effect *mr_worker__fx_add(struct mr_worker *w, enum mr_worker_effect_kind kind)
{
    struct mr_worker_effects *fx = w->fx;
    if (fx->count == fx->room) {
        uint32_t room = fx->room ? fx->room * 2 : 64;
        fx->p = mr_grow(fx->p, fx->room * sizeof *fx->p, room * sizeof *fx->p);
        fx->room = room;
    }
    struct mr_worker_effect *e = &fx->p[fx->count++];
    *e = (struct mr_worker_effect){.kind = kind};
    return e;
}

void mr_worker_effects_init(struct mr_worker_effects *fx)
{
    *fx = (struct mr_worker_effects){0};
}

void mr_worker_effects_fini(struct mr_worker_effects *fx)
{
    mr_release(fx->p);
    *fx = (struct mr_worker_effects){0};
}

/* Returns the operator's number in the config; NONE: the config does not have it. This function is
 * called once for each name on a stream to the scheduler, so no index is kept. */
static uint32_t op_find(const struct mr_worker *w, struct mr_str name)
{
    for (uint32_t i = 0; i < w->config.ops_count; i++)
        if (mr_str_eq(w->config.ops[i].name, name)) return i;
    return NONE;
}

static struct refs refs_new(struct mr_arena *a, uint32_t room)
{
    return (struct refs){.runs = MR_ARENA_ARRAY(a, struct mr_ws_run, room),
        .index = MR_ARENA_ARRAY(a, uint32_t, room),
        .attempt = MR_ARENA_ARRAY(a, uint32_t, room),
        .room = room};
}

static struct columns columns_new(struct mr_arena *a)
{
    struct columns c = {.runs = MR_ARENA_ARRAY(a, struct mr_ws_run, SEND_ROWS_MAX),
        .index = MR_ARENA_ARRAY(a, uint32_t, SEND_ROWS_MAX),
        .attempt = MR_ARENA_ARRAY(a, uint32_t, SEND_ROWS_MAX),
        .inline_bytes = MR_ARENA_ARRAY(a, uint32_t, SEND_ROWS_MAX),
        .slot = MR_ARENA_ARRAY(a, uint32_t, SEND_ROWS_MAX),
        .outcome = MR_ARENA_ARRAY(a, uint32_t, SEND_ROWS_MAX),
        .inlined = MR_ARENA_ARRAY(a, unsigned char, SEND_INLINE_MAX),
        .maker = MR_ARENA_ARRAY(a, uint64_t, SEND_ROWS_MAX),
        .number = MR_ARENA_ARRAY(a, uint64_t, SEND_ROWS_MAX),
        .object_bytes = MR_ARENA_ARRAY(a, uint64_t, SEND_ROWS_MAX),
        .started = MR_ARENA_ARRAY(a, uint64_t, SEND_ROWS_MAX),
        .duration = MR_ARENA_ARRAY(a, uint64_t, SEND_ROWS_MAX),
        .cpu = MR_ARENA_ARRAY(a, uint64_t, SEND_ROWS_MAX),
        .failures = MR_ARENA_ARRAY(a, struct mr_ws_failure, SEND_TEXTS_MAX),
        .texts = MR_ARENA_ARRAY(a, struct mr_blob *, SEND_TEXTS_MAX)};
    for (unsigned p = 0; p < PARTS; p++)
        c.parts[p] = MR_ARENA_ARRAY(a, uint64_t, SEND_ROWS_MAX);
    return c;
}

static uint32_t strands_max(const struct mr_worker_config *c)
{
    return (c->slots + MR_LONG_TASKS_MAX) * MR_SLOT_STRANDS_MAX;
}

/* Returns the size of the arena, which has room for the largest legal state. The arena reserves
 * address space; its pages are committed when they are touched. */
static size_t arena_bytes(const struct mr_worker_config *c)
{
    size_t tasks = c->tasks_max, strands = strands_max(c);
    size_t row = sizeof(struct task) + MR_WORKER_CLASSES_MAX * 4 + sizeof(struct outrow) +
                 sizeof(struct outparts) + 64;
    size_t refs = (sizeof(struct mr_ws_run) + 8) * ((size_t)ANSWERS_MAX * 4 + tasks + 8192);
    return tasks * row + c->values_max * (sizeof(struct value) + 4) +
           c->outbox_max * (sizeof(struct outrow) + sizeof(struct outparts)) + refs +
           ANSWERS_MAX * sizeof(struct missing_row) +
           strands *
               (sizeof(struct mr_strand) + 8 + STRAND_INPUTS_MAX * sizeof(struct mr_strand_input)) +
           JOBS_MAX * sizeof(struct job) + NODES_MAX * 1024 + ((size_t)64 << 20);
}

static void tables_new(struct mr_worker *w)
{
    const struct mr_worker_config *c = &w->config;
    struct mr_arena *a = &w->arena;
    w->jobs = MR_ARENA_ARRAY(a, struct job, JOBS_MAX);
    w->values = MR_ARENA_ARRAY(a, struct value, c->values_max);
    w->tasks = MR_ARENA_ARRAY(a, struct task, c->tasks_max);
    w->ops = MR_ARENA_ARRAY(a, struct op, c->ops_count);
    w->session_ops = MR_ARENA_ARRAY(a, uint32_t, SESSION_OPS_MAX);
    w->session_nodes = MR_ARENA_ARRAY(a, uint32_t, NODES_MAX);
    w->nodes = MR_ARENA_ARRAY(a, struct mr_ws_node, NODES_MAX);
    w->fetch_heap = MR_ARENA_ARRAY(a, uint32_t, c->values_max);
    w->slots_count = c->slots + MR_LONG_TASKS_MAX;
    w->slots = MR_ARENA_ARRAY(a, struct slot, w->slots_count);
    w->strands = MR_ARENA_ARRAY(a, struct mr_strand, strands_max(c));
    w->strands_free = MR_ARENA_ARRAY(a, uint32_t, strands_max(c));
    w->outbox = MR_ARENA_ARRAY(a, struct outrow, c->outbox_max + c->tasks_max);
    w->out_parts = MR_ARENA_ARRAY(a, struct outparts, c->outbox_max + c->tasks_max);
    w->given = refs_new(a, ANSWERS_MAX);
    w->started = refs_new(a, ANSWERS_MAX);
    w->unknown = refs_new(a, ANSWERS_MAX);
    w->left = refs_new(a, ANSWERS_MAX);
    w->queued = refs_new(a, c->tasks_max);
    w->running = refs_new(a, w->slots_count);
    w->running_ns = MR_ARENA_ARRAY(a, uint64_t, w->slots_count);
    w->missing = MR_ARENA_ARRAY(a, struct missing_row, ANSWERS_MAX);
    w->missing_out = MR_ARENA_ARRAY(a, struct mr_ws_missing, SEND_ROWS_MAX);
    w->columns = columns_new(a);
    for (uint32_t i = 0; i < MR_WORKER_CLASSES_MAX; i++)
        w->needs[i].heap = MR_ARENA_ARRAY(a, uint32_t, c->tasks_max);
}

static struct mr_str text_keep(struct mr_worker *w, struct mr_str s)
{
    char *p = mr_arena_take(&w->arena, s.n + 1, 1);
    if (s.n) memcpy(p, s.p, s.n);
    return mr_str_of(p, s.n);
}

struct mr_worker *mr_worker_new(const struct mr_worker_config *config)
{
    mr_assert(config->slots >= 1);
    mr_assert(config->slots <= MR_SLOTS_MAX);
    mr_assert(config->tasks_max >= 1);
    mr_assert(config->values_max > config->tasks_max);
    mr_assert(config->resources_count <= MR_RESOURCES_MAX);
    struct mr_worker *w = mr_alloc(sizeof *w);
    w->config = *config;
    mr_arena_init(&w->arena, arena_bytes(config));
    mr_worker__blob_pool_init(&w->pool, config->bytes_max + config->bytes_max / 4);
    tables_new(w);
    mr_index_init(&w->job_index, 64);
    /* job_index and value_index start small and double when full: an index for the largest state
     * would touch all of its pages at once */
    mr_index_init(&w->value_index, 1024);
    for (uint32_t i = 0; i < config->ops_count; i++) {
        w->ops[i].flags = config->ops[i].flags;
        w->ops[i].cost_ns = config->ops[i].cost_ns;
    }
    for (uint32_t i = 0; i < config->resources_count; i++) {
        w->resource_names[i] = text_keep(w, config->resources[i].name);
        w->resources[i] = w->resources_free[i] = config->resources[i].micro;
    }
    mr_list_init(&w->tasks_all);
    w->job_last = w->jobs_free = w->values_free = w->tasks_free = w->brought = NONE;
    w->needs_count = 1;
    w->look_at = MR_NEVER;
    w->handoff_ns = config->handoff_ns ? config->handoff_ns : HANDOFF_GUESS;
    w->nodes[0].address = MR_STR("");
    w->nodes_count = 1;
    return w;
}

void mr_worker_free(struct mr_worker **worker)
{
    struct mr_worker *w = *worker;
    *worker = NULL;
    if (!w) return;
    mr_index_fini(&w->job_index);
    mr_index_fini(&w->value_index);
    mr_worker__blob_pool_fini(&w->pool);
    mr_arena_fini(&w->arena);
    mr_release(w);
}

const struct mr_ws_node *mr_worker_node(const struct mr_worker *w, uint32_t node)
{
    return &w->nodes[node < w->nodes_count ? node : 0];
}

static uint32_t node_get(struct mr_worker *w, const struct mr_ws_node *n)
{
    for (uint32_t i = 1; i < w->nodes_count; i++)
        if (w->nodes[i].id.v == n->id.v && mr_str_eq(w->nodes[i].address, n->address)) return i;
    if (w->nodes_count == NODES_MAX || n->address.n > 1000) return 0;
    w->nodes[w->nodes_count] = (struct mr_ws_node){text_keep(w, n->address), n->id};
    return w->nodes_count++;
}

static void session_tables(struct mr_worker *w, const struct mr_ws_down *m)
{
    for (uint32_t i = 0; i < m->ops_count; i++) {
        if (w->session_ops_count == SESSION_OPS_MAX) {
            w->overflow = true;
            return;
        }
        w->session_ops[w->session_ops_count++] = op_find(w, m->ops[i]);
    }
    for (uint32_t i = 0; i < m->nodes_count; i++) {
        if (w->session_nodes_count == NODES_MAX) {
            w->overflow = true;
            return;
        }
        w->session_nodes[w->session_nodes_count++] = node_get(w, &m->nodes[i]);
    }
}

static void drain(struct mr_worker *w)
{
    if (w->draining) return;
    w->draining = true;
    mr_worker__tasks_return_all(w);
}

/* Keeps the time at which a message with tasks came. If RECEIVED_MAX times are kept already, drops
 * the oldest time. */
static void received(struct mr_worker *w)
{
    if (w->received_count == RECEIVED_MAX) {
        w->received_count--;
        w->received_first++;
        memmove(w->received, w->received + 1, w->received_count * sizeof *w->received);
    }
    w->received[w->received_count++] = w->now;
}

static void on_message(struct mr_worker *w, const struct mr_ws_down *m)
{
    if (w->link < LINK_ASKED) return; /* the message belongs to a stream that has ended */
    if (m->registered) mr_worker__registered_apply(w, m->registered);
    w->no_room = false;
    session_tables(w, m);
    struct mr_ws_walk walk = {.runs = m->release.runs};
    for (uint32_t i = 0; i < m->release.count; i++)
        mr_worker__value_release(
            w, mr_ws_walk_next(&walk), m->release.index[i], mr_ws_attempt_of(&m->release, i));
    if (m->tasks.count) received(w);
    mr_worker__values_bring(w, &m->values);
    mr_worker__tasks_assign(w, &m->tasks);
    mr_worker__values_sweep(w);
    mr_worker__tasks_cancel(w, &m->cancel);
    mr_worker__tasks_steal(w, &m->steal);
    mr_worker__out_fetch(w, &m->fetch);
    mr_worker__tasks_leave(w, &m->leave);
    for (uint32_t i = 0; i < m->forget_jobs_count; i++)
        mr_worker__job_forget(w, m->forget_jobs[i]);
    if (m->drain) drain(w);
}

static void link_down(struct mr_worker *w)
{
    w->link = LINK_DOWN;
    /* drops the unsent answers to steals, cancels and other requests of the scheduler: the next
     * Register lists the tasks that are here */
    w->given.count = w->given.runs_count = 0;
    w->started.count = w->started.runs_count = 0;
    w->unknown.count = w->unknown.runs_count = 0;
    w->left.count = w->left.runs_count = 0;
    w->overflow = false;
}

/* The scheduler has given up this incarnation and its tasks. All tasks stop without a report.
 * Values stay, and the next Register offers them. */
static void on_revoked(struct mr_worker *w)
{
    link_down(w);
    w->incarnation = 0;
    MR_LIST_EACH(node, &w->tasks_all)
    mr_worker__task_stop(w, (uint32_t)(MR_LIST_ITEM(node, struct task, all) - w->tasks), true);
    mr_worker__out_clear(w);
}

static void on_connected(struct mr_worker *w)
{
    w->link = LINK_OPEN;
    w->session_ops_count = w->session_nodes_count = 0;
    w->received_count = 0;
    w->received_first = 0;
}

static void connect_again(struct mr_worker *w)
{
    mr_duration wait = 0;
    if (w->attempts) {
        wait = BACKOFF_MIN << MR_MIN(w->attempts - 1, 8u);
        wait = MR_MIN(wait, BACKOFF_MAX);
        /* Each worker waits for a different time, so that workers that lost the same scheduler do
         * not all reconnect at once. */
        wait -= mr_hash_u64(w->incarnation + w->attempts) % (wait / 2);
    }
    w->attempts++;
    w->link = LINK_OPENING;
    mr_worker__fx_add(w, MR_WORKER_CONNECT)->at = mr_time_after(w->now, wait);
}

static void farewell(struct mr_worker *w)
{
    if (w->lethal && !w->hung_up) {
        mr_worker__fx_add(w, MR_WORKER_LETHAL);
        w->hung_up = true;
    }
    if (!w->draining || w->hung_up) return;
    if (w->tasks_count) {
        w->idle_since = w->now;
        return;
    }
    bool reported = w->link == LINK_REGISTERED && w->leaving_sent && !w->out_count;
    if (!reported && w->now < mr_time_after(w->idle_since, FAREWELL)) return;
    mr_worker__fx_add(w, MR_WORKER_HANG_UP);
    w->hung_up = true;
}

static void on_turn(struct mr_worker *w, const struct mr_worker_event *ev)
{
    w->memory_used = ev->turn.memory_used_bytes;
    w->cpu_ns = ev->turn.cpu_ns;
    w->received_bytes = ev->turn.received_bytes;
    w->sent_bytes = ev->turn.sent_bytes;
    w->may_send = ev->turn.may_send;
    w->has_spilled = ev->turn.has_spilled;
    w->more = false;
    mr_worker__strands_watch(w);
    if (w->overflow && w->link >= LINK_OPEN) {
        link_down(w); /* the effect CONNECT closes the open stream first */
    }
    mr_worker__strands_leave(w);
    mr_worker__strands_dispatch(w);
    mr_worker__strands_balance(w);
    mr_worker__fetch_start(w);
    if (w->link == LINK_DOWN && !w->hung_up) connect_again(w);
    mr_worker__send_turn(w);
    farewell(w);
}

void mr_worker_step(struct mr_worker *w, mr_time now, const struct mr_worker_event *ev,
    struct mr_worker_effects *fx)
{
    mr_assert(now >= w->now);
    w->now = now;
    w->fx = fx;
    mr_worker__send_free(w);
    switch (ev->kind) {
    case MR_WORKER_TICK: break;
    case MR_WORKER_TURN: on_turn(w, ev); break;
    case MR_WORKER_CONNECTED: on_connected(w); break;
    case MR_WORKER_DISCONNECTED: link_down(w); break;
    case MR_WORKER_REVOKED: on_revoked(w); break;
    case MR_WORKER_MESSAGE: on_message(w, ev->message); break;
    case MR_WORKER_REPORT: mr_worker__strand_reported(w, ev); break;
    case MR_WORKER_CUT: mr_worker__strand_cut(w, ev); break;
    case MR_WORKER_FETCHED: mr_worker__fetch_done(w, ev); break;
    case MR_WORKER_DRAIN: drain(w); break;
    }
    w->fx = NULL;
}

mr_time mr_worker_deadline(const struct mr_worker *w)
{
    if (w->more) return w->now;
    mr_time at = mr_worker__strands_deadline(w);
    /* While the stream takes no message, no deadline is set for sending: the shell makes a turn
     * when the stream takes messages again. */
    if (w->link == LINK_REGISTERED && w->may_send) {
        at = MR_MIN(at, mr_worker__heartbeat_due(w));
        if (w->out_count) at = MR_MIN(at, w->out_until);
    }
    if (w->starved) at = MR_MIN(at, w->balance_at);
    at = MR_MIN(at, w->look_at);
    if (w->draining && !w->hung_up && !w->tasks_count)
        at = MR_MIN(at, mr_time_after(w->idle_since, FAREWELL));
    if (w->link == LINK_DOWN && !w->hung_up) at = w->now;
    return at;
}
