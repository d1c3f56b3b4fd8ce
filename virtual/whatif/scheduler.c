/* The scheduler's process in virtual time. Its thread takes the messages that wait and steps the
 * core. Then the thread works for a time that depends on the number of completions and of sent
 * tasks, and performs the effects. The journal never fails. */
#include "virtual/whatif/internal.h"

#include "base/alloc.h"

#define TURNS_AT_ONCE_MAX 10000u
#define ACK_NS (100 * MR_US) /* time until the journal has a record */
#define WALL ((uint64_t)1700000000 * MR_SECOND)

static void turn_at(struct mr_whatif_cluster *c, mr_time at)
{
    if (c->is_deciding) {
        c->turn_wanted = MR_MIN(c->turn_wanted, at);
        return;
    }
    at = MR_MAX(at, c->now);
    if (c->turn_at <= at) return;
    c->turn_at = at;
    mr_virtual_push(&c->queue, at, (struct mr_virtual_event){.kind = MR_WHATIF_TURN});
}

static void step(struct mr_whatif_cluster *c, struct mr_sched_event *ev)
{
    ev->wall_ns = WALL + c->now;
    mr_sched_step(c->sched, c->now, ev, &c->fx);
}

/* Sends a worker the message that the core has collected for it. */
static void flush(struct mr_whatif_cluster *c, uint32_t number)
{
    struct mr_whatif_worker *w = &c->workers[number];
    struct mr_sched_batch *b = w->incarnation ? c->fx.worker[w->place] : NULL;
    if (!b) return;
    struct mr_virtual_message *m = mr_virtual_message_new();
    const struct mr_ws_memory memory = mr_virtual_memory(m);
    struct mr_ws_down down;
    size_t bytes = 0;
    mr_sched_batch_message(c->sched, b, &w->numbers, &memory, &down);
    int err = mr_virtual_down(m, &down, &bytes, c->error);
    if (err && !c->err) c->err = err;
    mr_sched_batch_put(&c->fx, &c->fx.worker[w->place]);
    w->last_down = MR_MAX(w->last_down, c->now + (mr_duration)c->costs.send_ns);
    c->out->messages++;
    mr_virtual_push(&c->queue, w->last_down,
        (struct mr_virtual_event){.kind = MR_WHATIF_DOWN, .a = number, .msg = m});
}

static void fail(struct mr_whatif_cluster *c, const char *why)
{
    if (!c->err) c->err = mr_fail(c->error, MR_EUNKNOWN, "the replay: %s", why);
}

static void note(struct mr_whatif_cluster *c, const struct mr_sched_note *n)
{
    if (n->type == MR_NOTE_WORKER_JOINED) {
        struct mr_whatif_worker *w = &c->workers[n->session];
        w->place = n->slot;
        w->incarnation = n->incarnation;
        c->worker_at[n->slot] = (uint32_t)n->session;
    } else if (n->type == MR_NOTE_WORKER_REFUSED || n->type == MR_NOTE_WORKER_CLOSE) {
        fail(c, "the scheduler refused a worker");
    } else if (n->type == MR_NOTE_REPLY && n->code) {
        fail(c, "the scheduler refused the job");
    } else if (n->type == MR_NOTE_JOB_STATE && n->index >= MR_JOB_DONE) {
        c->over = c->now;
        if (n->index != MR_JOB_DONE) fail(c, "the job has failed");
    }
}

/* Returns the number of tasks in the messages that are about to be sent. */
static uint32_t tasks_sent(const struct mr_whatif_cluster *c)
{
    uint32_t tasks = 0;
    const uint32_t *workers = (const void *)c->fx.dirty_workers.p;
    for (size_t i = 0; i < c->fx.dirty_workers.n / sizeof *workers; i++)
        if (c->fx.worker[workers[i]]) tasks += c->fx.worker[workers[i]]->tasks.count;
    return tasks;
}

/* Plans the acknowledgement of the records that the core has written. */
static void journal_take(struct mr_whatif_cluster *c)
{
    uint64_t last = 0;
    for (size_t at = 0; at < c->fx.journal.n;) {
        struct mr_sched_record_head head;
        memcpy(&head, c->fx.journal.p + at, sizeof head);
        last = head.sequence;
        at += sizeof head + (size_t)mr_align_up(head.bytes, 8);
    }
    mr_buf_clear(&c->fx.journal);
    if (last)
        mr_virtual_push(&c->queue, c->now + ACK_NS,
            (struct mr_virtual_event){.kind = MR_WHATIF_ACK, .c = last});
}

/* Performs the effects of a turn. */
static void perform(struct mr_whatif_cluster *c)
{
    journal_take(c);
    mr_whatif__spans_take(c, &c->fx.spans);
    for (size_t i = 0; i < c->fx.notes.n; i += sizeof(struct mr_sched_note)) {
        struct mr_sched_note n;
        memcpy(&n, c->fx.notes.p + i, sizeof n);
        note(c, &n);
    }
    const uint32_t *workers = (const void *)c->fx.dirty_workers.p;
    for (size_t i = 0; i < c->fx.dirty_workers.n / sizeof *workers; i++)
        flush(c, c->worker_at[workers[i]]);
    const uint32_t *stores = (const void *)c->fx.dirty_stores.p;
    for (size_t i = 0; i < c->fx.dirty_stores.n / sizeof *stores; i++)
        mr_sched_store_batch_clear(&c->fx.store[stores[i]]);
    journal_take(c);
    mr_sched_effects_clear(&c->fx);
}

/* Steps the core with a worker's message. Returns the number of completions in it. */
static uint32_t message_take(struct mr_whatif_cluster *c, const struct mr_virtual_event *from)
{
    struct mr_whatif_worker *w = &c->workers[from->a];
    const struct mr_ws_up *up = &from->msg->up;
    struct mr_sched_event ev = {.type = MR_SCHED_WORKER_MESSAGE,
        .slot = w->place,
        .incarnation = w->incarnation,
        .message = *up};
    if (up->reg)
        ev = (struct mr_sched_event){
            .type = MR_SCHED_WORKER_REGISTER, .session = from->a, .worker = *up->reg};
    step(c, &ev);
    return up->reg ? 0 : up->completed.tasks.count;
}

/* The scheduler's thread has done the work of its turn. */
static void decided(struct mr_whatif_cluster *c)
{
    c->is_deciding = false;
    perform(c);
    if (c->turn_wanted != MR_NEVER) turn_at(c, c->turn_wanted);
}

static void turn(struct mr_whatif_cluster *c)
{
    uint32_t rows = 0;
    c->turn_at = MR_NEVER;
    struct mr_virtual_event *inbox = (void *)c->inbox.p;
    for (size_t i = 0; i < c->inbox.n / sizeof *inbox; i++) {
        rows += message_take(c, &inbox[i]);
        mr_virtual_message_free(&inbox[i].msg);
    }
    mr_buf_clear(&c->inbox);
    if (mr_sched_deadline(c->sched) <= c->now) {
        struct mr_sched_event tick = {.type = MR_SCHED_TICK};
        step(c, &tick);
    }
    rows += tasks_sent(c);
    mr_time at = mr_sched_deadline(c->sched);
    c->turns_at_once = at <= c->now && !rows ? c->turns_at_once + 1 : 0;
    if (c->turns_at_once > TURNS_AT_ONCE_MAX) fail(c, "the scheduler does not come to rest");
    c->is_deciding = true;
    c->turn_wanted = at == MR_NEVER ? at : MR_MAX(at, c->now + MR_US);
    if (rows)
        mr_whatif__processors_use(c, 0, c->costs.decide_ns / 2 * rows,
            (struct mr_virtual_event){.kind = MR_WHATIF_DECIDED});
    else
        decided(c);
}

static void submit(struct mr_whatif_cluster *c)
{
    struct mr_sched_event ev = {.type = MR_SCHED_SUBMIT};
    ev.submit.ticket = 1;
    ev.submit.graph = c->graph;
    c->graph = NULL;
    ev.submit.body_hash = (mr_graph_hash){1, 1};
    step(c, &ev);
    turn_at(c, c->now);
}

void mr_whatif__scheduler_event(struct mr_whatif_cluster *c, const struct mr_virtual_event *ev)
{
    if (ev->kind == MR_WHATIF_TURN) {
        if (ev->at == c->turn_at) turn(c);
    } else if (ev->kind == MR_WHATIF_DECIDED) {
        decided(c);
    } else if (ev->kind == MR_WHATIF_SUBMIT) {
        submit(c);
    } else if (ev->kind == MR_WHATIF_ACK) {
        struct mr_sched_event ack = {.type = MR_SCHED_JOURNAL_ACKED, .sequence = ev->c};
        step(c, &ack);
        turn_at(c, c->now);
    } else {
        struct mr_whatif_worker *w = &c->workers[ev->a];
        mr_buf_add(&c->inbox, ev, sizeof *ev);
        w->flying_up--;
        mr_whatif__worker_turn(c, w); /* the worker may send one message more */
        turn_at(c, c->now);
    }
}

void mr_whatif__scheduler_begin(struct mr_whatif_cluster *c)
{
    struct mr_sched_config config;
    mr_sched_config_default(&config);
    config.incarnation = (uint64_t)MR_TAG_DRAWN_MIN << 32 | 1;
    config.tasks_max = 2 * c->graph->nodes_count + 4096;
    config.jobs_max = 16;
    config.workers_max = c->workers_count + 4;
    config.stores_max = c->workers_count + 4;
    config.ops_max = MR_MAX(64u, c->job->ops_count + 8);
    config.lease = (mr_duration)1 << 62; /* no worker and no store is ever silent for too long */
    config.keep_jobs = 0;
    mr_arena_init(&c->arena, mr_sched_arena_bytes(&config));
    mr_sched_effects_init(&c->fx, config.workers_max, config.stores_max);
    c->sched = mr_sched_new(&config, &c->arena);
    c->turn_at = MR_NEVER;
    mr_buf_init(&c->inbox, (size_t)1 << 30);
    struct mr_sched_event ev = {.type = MR_SCHED_RECOVERED};
    step(c, &ev);
    for (uint32_t i = 0; i < c->workers_count; i++) {
        char name[16];
        uint32_t node = c->job->node ? c->job->node[i] : 0;
        if (node != i) continue; /* a node has the number of its first worker */
        (void)snprintf(name, sizeof name, "n%" PRIu32, node);
        struct mr_sched_event store = {.type = MR_SCHED_STORE_REGISTER,
            .store = {
                .store = MR_WHATIF_STORE + node, .node = mr_str(name), .address = mr_str(name)}};
        step(c, &store);
    }
    turn_at(c, c->now);
}

void mr_whatif__scheduler_fini(struct mr_whatif_cluster *c)
{
    struct mr_virtual_event *inbox = (void *)c->inbox.p;
    for (size_t i = 0; i < c->inbox.n / sizeof *inbox; i++)
        mr_virtual_message_free(&inbox[i].msg);
    mr_buf_fini(&c->inbox);
    if (c->sched) {
        mr_sched_free(&c->sched);
        mr_sched_effects_fini(&c->fx);
        mr_arena_fini(&c->arena);
    }
}
