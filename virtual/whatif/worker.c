/* A worker's process in virtual time. Its thread steps the core. As in
 * services/worker/shell/delegate.c, the thread sleeps although reports come, until the reports let
 * a task start. */
#include "virtual/whatif/internal.h"

#include "base/alloc.h"

#define TURNS_MAX 64
#define NAP (32 * MR_MS) /* limit of the sleep while reports wait */
#define FLYING_MAX 2     /* most messages of one worker on their way to the scheduler */

/* Limits of the core, like those that services/worker/shell/shell.c sets. */
#define TASKS_MAX (1u << 20)
#define VALUES_MAX (1u << 23)
#define OUTBOX_MAX (1u << 20)
#define CORE_BYTES_MAX ((uint64_t)4 << 30)
#define PREFETCH_BYTES ((uint64_t)1 << 30)

static uint32_t number_of(const struct mr_whatif_cluster *c, const struct mr_whatif_worker *w)
{
    return (uint32_t)(w - c->workers);
}

/* Fills in what the shell of a real worker adds to Register. */
static void register_fill(struct mr_whatif_cluster *c, const struct mr_whatif_worker *w,
    struct mr_virtual_message *m, struct mr_ws_register *r)
{
    const struct mr_whatif_job *j = c->job;
    uint32_t number = number_of(c, w);
    struct mr_ws_operator *ops = mr_virtual_keep(m, NULL, j->ops_count * sizeof *ops);
    char *text = mr_virtual_keep(m, NULL, 64);
    for (uint32_t i = 0; i < j->ops_count; i++)
        ops[i] = (struct mr_ws_operator){
            .name = j->ops[i], .deterministic = true, .cost_ns = c->ops[i].cost_ns};
    (void)snprintf(text, 32, "w%" PRIu32, number);
    (void)snprintf(text + 32, 32, "n%" PRIu32, w->node);
    r->protocol_version = MR_PROTOCOL_VERSION;
    r->layout_version = MR_LAYOUT_VERSION;
    r->name = mr_str(text);
    r->node = r->store_address = mr_str(text + 32);
    r->store = MR_WHATIF_STORE + w->node;
    r->slots = w->slots;
    r->memory_bytes = (uint64_t)1 << 40;
    r->ops = ops;
    r->ops_count = j->ops_count;
}

/* Begins the first work of the worker's thread, unless the thread is busy. */
static void works_begin(struct mr_whatif_cluster *c, struct mr_whatif_worker *w)
{
    const struct mr_whatif_work *work = (const void *)w->works.p;
    if (w->is_working || !w->works.n) return;
    w->is_working = true;
    if (work->message.kind == MR_WHATIF_DOWN) {
        const struct mr_ws_tasks *k = &work->message.msg->down.tasks;
        for (uint32_t i = 0; i < k->count; i++)
            c->received[c->task_of[k->index[i]]] = c->now;
    }
    mr_whatif__processors_use(c, w->node, work->ns,
        (struct mr_virtual_event){.kind = MR_WHATIF_WORKED, .a = number_of(c, w)});
}

static void work_add(struct mr_whatif_cluster *c, struct mr_whatif_worker *w,
    const struct mr_virtual_event *message, double ns)
{
    const struct mr_whatif_work work = {.message = *message, .ns = ns};
    mr_buf_add(&w->works, &work, sizeof work);
    works_begin(c, w);
}

/* Removes the work that is done. Returns its message. */
static struct mr_virtual_event work_take(struct mr_whatif_worker *w)
{
    struct mr_whatif_work work;
    memcpy(&work, w->works.p, sizeof work);
    memmove(w->works.p, w->works.p + sizeof work, w->works.n - sizeof work);
    w->works.n -= sizeof work;
    w->is_working = false;
    return work.message;
}

static void send(
    struct mr_whatif_cluster *c, struct mr_whatif_worker *w, const struct mr_ws_up *from)
{
    struct mr_virtual_message *m = mr_virtual_message_new();
    struct mr_ws_up up = *from;
    struct mr_ws_register reg;
    size_t bytes = 0;
    if (up.reg) {
        reg = *up.reg;
        register_fill(c, w, m, &reg);
        up.reg = &reg;
    }
    int err = mr_virtual_up(m, &up, &bytes, c->error);
    if (err && !c->err) c->err = err;
    w->flying_up++;
    c->out->messages++;
    const struct mr_virtual_event ev = {.kind = MR_WHATIF_UP, .a = number_of(c, w), .msg = m};
    /* the workers of the recorded cluster had registered before the job came */
    if (up.reg)
        mr_virtual_push(&c->queue, c->now, ev);
    else
        work_add(c, w, &ev, c->costs.report.each_ns * up.completed.tasks.count);
}

/* Sends the message that the worker's thread has made. */
static void sent(
    struct mr_whatif_cluster *c, struct mr_whatif_worker *w, const struct mr_virtual_event *message)
{
    w->last_up = MR_MAX(w->last_up, c->now + (mr_duration)c->costs.report.first_ns);
    mr_virtual_push(&c->queue, w->last_up, *message);
}

/* Plans the end of a fetch. The worker's network link carries one value after the other. */
static void fetch(
    struct mr_whatif_cluster *c, struct mr_whatif_worker *w, const struct mr_worker_effect *e)
{
    const struct mr_whatif_line *cost = &c->costs.transfer;
    double speed = c->change->bandwidth > 0 ? c->change->bandwidth : 1;
    mr_time from = MR_MAX(c->now, w->link_free);
    w->link_free = from + (mr_duration)(cost->each_ns * (double)e->object.bytes / speed);
    mr_virtual_push(&c->queue, w->link_free + (mr_duration)cost->first_ns,
        (struct mr_virtual_event){.kind = MR_WHATIF_FETCHED,
            .a = number_of(c, w),
            .b = e->object.value,
            .c = e->object.serial});
}

static void perform_one(
    struct mr_whatif_cluster *c, struct mr_whatif_worker *w, const struct mr_worker_effect *e)
{
    switch (e->kind) {
    case MR_WORKER_START: mr_whatif__execute_give(c, w, e->strand); break;
    case MR_WORKER_TAKE: mr_whatif__execute_take(c, w, e->item.strand, e->item.at); break;
    case MR_WORKER_LOOK: mr_whatif__execute_look(c, w, e->item.strand); break;
    case MR_WORKER_MOVE: mr_whatif__execute_move(w, e->move.from, e->move.to); break;
    case MR_WORKER_FETCH: fetch(c, w, e); break;
    case MR_WORKER_CONNECT: {
        struct mr_worker_event ev = {.kind = MR_WORKER_CONNECTED};
        mr_whatif__worker_step(c, w, &ev);
        break;
    }
    case MR_WORKER_STOP:    /* no task is cancelled */
    case MR_WORKER_UNPIN:   /* stores keep all objects */
    case MR_WORKER_DROP:    /* stores keep all objects */
    case MR_WORKER_WANT:    /* no object is on disk */
    case MR_WORKER_SEND:    /* sent by mr_whatif__worker_step */
    case MR_WORKER_HANG_UP: /* no worker is drained */
    case MR_WORKER_LETHAL: break;
    }
}

void mr_whatif__worker_step(
    struct mr_whatif_cluster *c, struct mr_whatif_worker *w, const struct mr_worker_event *ev)
{
    mr_worker_step(w->core, c->now, ev, &w->fx);
    for (uint32_t i = 0; i < w->fx.count; i++)
        if (w->fx.p[i].kind == MR_WORKER_SEND && w->fx.p[i].send) {
            send(c, w, w->fx.p[i].send);
            w->fx.p[i].send = NULL;
        }
}

/* Passes the reports of executors to the core. */
static void reports_take(struct mr_whatif_cluster *c, struct mr_whatif_worker *w)
{
    const struct mr_whatif_report *reports = (const void *)w->reports.p;
    for (size_t i = 0; i < w->reports.n / sizeof *reports; i++) {
        struct mr_whatif_report r = reports[i];
        bool is_new = r.done > r.run->reported || r.is_last;
        r.run->reported = MR_MAX(r.run->reported, r.done);
        struct mr_worker_event ev = {.kind = MR_WORKER_REPORT,
            .report = {.strand = r.run->id, .done = r.run->reported, .last = r.is_last}};
        if (is_new) mr_whatif__worker_step(c, w, &ev);
        if (r.is_last) mr_release(r.run);
    }
    mr_buf_clear(&w->reports);
    w->taken = w->told;
}

static void perform(struct mr_whatif_cluster *c, struct mr_whatif_worker *w)
{
    struct mr_worker_effects fx = w->fx;
    mr_worker_effects_init(&w->fx);
    for (uint32_t i = 0; i < fx.count; i++)
        perform_one(c, w, &fx.p[i]);
    mr_worker_effects_fini(&fx);
}

void mr_whatif__worker_turn(struct mr_whatif_cluster *c, struct mr_whatif_worker *w)
{
    uint32_t wake_after = 0;
    if (w->is_working) return; /* a turn follows when the thread's work is done */
    for (int i = 0; i < TURNS_MAX; i++) {
        reports_take(c, w);
        struct mr_worker_event ev = {
            .kind = MR_WORKER_TURN, .turn = {.may_send = w->flying_up < FLYING_MAX}};
        mr_whatif__worker_step(c, w, &ev);
        perform(c, w);
        if (mr_worker_deadline(w->core) > c->now) break;
    }
    wake_after = mr_worker_wake_after(w->core);
    w->wake_at = w->taken + MR_MAX(wake_after, 1u);
    mr_time at = mr_worker_deadline(w->core);
    if (wake_after) at = MR_MIN(at, c->now + NAP);
    if (at <= c->now) at = c->now + 20 * MR_US;
    if (at >= w->wake && w->wake > c->now) return; /* an earlier WAKE is planned */
    w->wake = at;
    if (at != MR_NEVER)
        mr_virtual_push(
            &c->queue, at, (struct mr_virtual_event){.kind = MR_WHATIF_WAKE, .a = number_of(c, w)});
}

/* Handles the end of a work of the worker's thread. */
static void worked(struct mr_whatif_cluster *c, struct mr_whatif_worker *w)
{
    struct mr_virtual_event message = work_take(w);
    if (message.kind == MR_WHATIF_UP) {
        sent(c, w, &message);
    } else {
        struct mr_worker_event m = {.kind = MR_WORKER_MESSAGE, .message = &message.msg->down};
        w->begin_ns = c->costs.handoff.first_ns;
        mr_whatif__worker_step(c, w, &m);
        mr_virtual_message_free(&message.msg);
    }
    mr_whatif__worker_turn(c, w);
    w->begin_ns = c->costs.local_ns;
    works_begin(c, w);
}

void mr_whatif__worker_event(struct mr_whatif_cluster *c, struct mr_virtual_event *ev)
{
    struct mr_whatif_worker *w = &c->workers[ev->a];
    struct mr_worker_event m = {.kind = MR_WORKER_TICK};
    if (ev->kind == MR_WHATIF_DOWN) {
        work_add(c, w, ev, c->costs.handoff.each_ns * ev->msg->down.tasks.count);
        ev->msg = NULL;
        return;
    }
    if (ev->kind == MR_WHATIF_WORKED) {
        worked(c, w);
        return;
    }
    if (ev->kind == MR_WHATIF_FETCHED)
        m = (struct mr_worker_event){
            .kind = MR_WORKER_FETCHED, .fetched = {.value = ev->b, .serial = (uint32_t)ev->c}};
    else if (w->wake != ev->at)
        return;
    else
        w->wake = MR_NEVER;
    w->begin_ns = c->costs.handoff.first_ns;
    mr_whatif__worker_step(c, w, &m);
    mr_whatif__worker_turn(c, w);
    w->begin_ns = c->costs.local_ns;
}

void mr_whatif__worker_begin(struct mr_whatif_cluster *c, uint32_t number)
{
    struct mr_whatif_worker *w = &c->workers[number];
    w->node = c->job->node ? c->job->node[number] : 0;
    const struct mr_worker_config config = {.slots = w->slots,
        .tasks_max = TASKS_MAX,
        .values_max = VALUES_MAX,
        .outbox_max = OUTBOX_MAX,
        .bytes_max = CORE_BYTES_MAX,
        .prefetch_bytes = PREFETCH_BYTES,
        .store = {MR_WHATIF_STORE + w->node},
        .ops = c->ops,
        .ops_count = c->job->ops_count,
        .handoff_ns = (mr_duration)c->costs.learned_ns};
    w->core = mr_worker_new(&config);
    w->wake = MR_NEVER;
    w->begin_ns = c->costs.local_ns;
    mr_buf_init(&w->reports, (size_t)1 << 30);
    mr_buf_init(&w->works, (size_t)1 << 30);
    mr_worker_effects_init(&w->fx);
    mr_whatif__worker_turn(c, w); /* opens the stream */
    mr_whatif__worker_turn(c, w); /* registers */
}

void mr_whatif__worker_fini(struct mr_whatif_worker *w)
{
    const struct mr_whatif_report *reports = (const void *)w->reports.p;
    for (size_t i = 0; i < w->reports.n / sizeof *reports; i++)
        if (reports[i].is_last) mr_release(reports[i].run);
    struct mr_whatif_work *works = (void *)w->works.p;
    for (size_t i = 0; i < w->works.n / sizeof *works; i++)
        mr_virtual_message_free(&works[i].message.msg);
    mr_buf_fini(&w->works);
    mr_whatif__execute_fini(w);
    mr_worker_free(&w->core);
    mr_worker_effects_fini(&w->fx);
    mr_sched_numbers_fini(&w->numbers);
    mr_buf_fini(&w->reports);
}
