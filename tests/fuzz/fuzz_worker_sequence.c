/* Feeds sequences of events to a worker's core. A strand is a list of tasks that one executor runs
 * in order. The core may cut a strand: tasks at its end that have not started are removed. Each
 * byte chooses the next event: tasks, values, cancels, steals and releases arrive; strands run, are
 * cut, or end in any way; fetches end; the scheduler goes away and comes back. The messages are
 * well-formed; their order and content are arbitrary. A strand that was cut to nothing stays in the
 * executor's bounded inbox until let_go. After each step the core checks its invariants. */
#include "tests/unit/worker/rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NODES 24u
#define BYTES_MAX 4096u
#define ROWS_MAX 64u

struct fuzz {
    struct rig *r;
    const uint8_t *at, *end;
    uint32_t attempt[NODES];
    uint32_t incarnation;
    uint32_t rows; /* rows in the message that is being built */
};

static uint32_t take(struct fuzz *f)
{
    return f->at < f->end ? *f->at++ : 0;
}

static uint32_t below(struct fuzz *f, uint32_t n)
{
    return take(f) % n;
}

static mr_job_id any_job(struct fuzz *f)
{
    return (mr_job_id){5 + below(f, 2)};
}

static void deliver(struct fuzz *f)
{
    rig_deliver(f->r);
    f->rows = 0;
}

static void add_task(struct fuzz *f)
{
    struct rig *r = f->r;
    mr_job_id job = any_job(f);
    uint32_t i = below(f, NODES), op = 1 + below(f, OP_NONE), how = take(f);
    int inputs[4] = {-1, -1, -1, -1};
    for (uint32_t k = 0; how & 8 && k < how % 4; k++) {
        uint32_t input = below(f, NODES), more = take(f);
        inputs[k] = (int)input + (more % 4 == 0 ? 1000 : 0);
        if (more & 64) rig_value(r, job, input, more % 3);
    }
    f->attempt[i] += how % 8 != 7; /* in one of eight cases the same attempt is sent again */
    rig_task(r, job, i, MR_MAX(f->attempt[i], 1u), op, inputs);
    r->m.priority[r->m.down.tasks.count - 1] = (int32_t)(how >> 4) % 3;
    rig_uses(r, how >> 6);
    uint32_t more = take(f);
    if (more % 4) return;
    struct mr_ws_extra *x = rig_extra(r);
    x->want_object = more & 4;
    x->persist = more & 8;
    x->timeout_ns = more & 16 ? MR_MS : 0;
    x->alone = more & 32;
    x->long_running = more & 64;
}

static void add_ref(struct fuzz *f, struct mr_ws_refs *to, struct rig_refs *from)
{
    mr_job_id job = any_job(f);
    uint32_t i = below(f, NODES);
    rig_ref(to, from, job, i, f->attempt[i] + (take(f) % 8 == 0));
}

static void run_some(struct fuzz *f)
{
    static const enum mr_strand_end ends[] = {MR_STRAND_DONE, MR_STRAND_DONE, MR_STRAND_DONE,
        MR_STRAND_FAILED, MR_STRAND_STOPPED, MR_STRAND_NO_ROOM, MR_STRAND_STORE_GONE};
    struct rig *r = f->r;
    if (!r->strands_count) return;
    struct mr_strand *s = r->strands[below(f, r->strands_count)];
    if (!rig_begun(r, s) || s->reported == s->count) return;
    uint32_t until = s->reported + 1 + below(f, s->count - s->reported);
    for (uint32_t i = s->reported; i < until; i++) {
        struct mr_strand_item *item = &s->items[i];
        enum mr_strand_end end = ends[below(f, MR_ARRAY_LEN(ends))];
        uint32_t gone = 0;
        for (uint32_t k = 0; k < item->inputs_count; k++) {
            const struct mr_strand_input *in = &item->inputs[k];
            if (in->kind == MR_STRAND_OBJECT && take(f) % 4 == 0) {
                end = MR_STRAND_INPUT_GONE;
                gone = k;
            }
            if (in->kind != MR_STRAND_ITEM) continue;
            if (s->items[in->item].result.end == MR_STRAND_DONE) continue;
            end = MR_STRAND_SKIPPED;
            break;
        }
        rig_result(r, item, end);
        item->result.gone = gone;
    }
    rig_report(r, s, until);
}

/* Chooses a strand that was cut to nothing, and reports that its executor has released it.
 * Executors release such a strand late, because they work on another strand first. */
static void let_go(struct fuzz *f)
{
    struct rig *r = f->r;
    if (!r->cut_away_count) return;
    uint32_t k = below(f, r->cut_away_count), strand = r->cut_away[k];
    r->cut_away[k] = r->cut_away[--r->cut_away_count];
    rig_let_go(r, strand);
}

static void end_fetch(struct fuzz *f)
{
    struct rig *r = f->r;
    if (!r->fetched_count) return;
    struct rig_fetch *x = &r->fetched[below(f, r->fetched_count)];
    struct mr_worker_event ev = {
        .kind = MR_WORKER_FETCHED, .fetched = {.value = x->value, .serial = x->serial}};
    if (!x->here && take(f) % 4 == 0) {
        ev.fetched.err = MR_ELOST;
        ev.fetched.why = MR_STR("lost");
    }
    x->here = true;
    if (ev.fetched.err) rig_unpin(r, x->serial);
    rig_step(r, &ev);
    mr_worker_check(r->w);
}

static void reconnect(struct fuzz *f, uint32_t how)
{
    struct rig *r = f->r;
    if (f->rows) deliver(f);
    r->connected = false;
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_turn(r);
    run_some(f);
    if (how & 1) rig_event(r, MR_WORKER_REVOKED);
    rig_connect(r);
    for (uint32_t i = 0; i < NODES; i++) {
        if (how & 2) rig_ref(&r->m.registered.adopt, &r->m.adopt, RIG_JOB, i, f->attempt[i]);
        if (how & 4) rig_ref(&r->m.registered.keep, &r->m.keep, RIG_JOB, i, f->attempt[i]);
    }
    r->restarts += how >> 3 & 1;
    rig_register(r, how & 1 ? 100 + ++f->incarnation : 9);
    r->m.registered.adopt = (struct mr_ws_refs){0};
    r->m.registered.keep = (struct mr_ws_refs){0};
}

static void forget(struct fuzz *f)
{
    struct rig *r = f->r;
    r->m.forget[0] = any_job(f);
    r->m.down.forget_jobs = r->m.forget;
    r->m.down.forget_jobs_count = 1;
    deliver(f);
}

/* Chooses one of the rare events, each of which ends much work at once. */
static void rarely(struct fuzz *f)
{
    switch (take(f)) {
    case 0:
    case 1:
    case 2:
    case 3: reconnect(f, take(f)); break;
    case 4:
    case 5: forget(f); break;
    case 6: rig_event(f->r, MR_WORKER_DRAIN); break;
    case 7: f->r->now += MR_WORKER_GRACE; break;
    case 8: f->r->has_spilled = !f->r->has_spilled; break;
    default: break;
    }
}

static void next(struct fuzz *f)
{
    struct rig *r = f->r;
    struct mr_ws_down *down = &r->m.down;
    uint32_t what = below(f, 32);
    f->rows += what < 13;
    switch (what) {
    default: add_task(f); break;
    case 7: rig_value(r, any_job(f), below(f, NODES), below(f, 3)); break;
    case 8:
    case 9: add_ref(f, &down->cancel, &r->m.cancel); break;
    case 10: add_ref(f, &down->steal, &r->m.steal); break;
    case 11: add_ref(f, &down->release, &r->m.release); break;
    case 12:
        if (take(f) & 1)
            add_ref(f, &down->fetch, &r->m.fetch);
        else
            add_ref(f, &down->leave, &r->m.leave);
        break;
    case 13:
    case 14:
    case 15: run_some(f); break;
    case 16:
    case 17: let_go(f); break;
    case 18:
    case 19: end_fetch(f); break;
    case 20:
    case 21: r->now += MR_US << below(f, 16); break;
    case 22: rarely(f); break;
    case 23:
    case 24:
    case 25:
    case 26:
    case 27:
    case 28:
    case 29:
    case 30:
    case 31:
        if (f->rows) deliver(f);
        rig_turn(r);
        break;
    }
    if (f->rows == ROWS_MAX) deliver(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = {.at = data, .end = data + MR_MIN(size, (size_t)BYTES_MAX)};
    struct mr_worker_config c = {.slots = 1 + below(&f, 3),
        .tasks_max = 32, /* small limits, which are reached often */
        .values_max = 64,
        .outbox_max = 64,
        .bytes_max = 4096,
        .prefetch_bytes = 3 << 20};
    f.r = rig_new_with(&c);
    rig_clear(f.r);
    f.r->is_behind = true;
    rig_connect(f.r);
    rig_register(f.r, 9);
    while (f.at < f.end && !f.r->hung_up && !f.r->lethal)
        next(&f);
    rig_turn(f.r);
    rig_free(&f.r);
    return 0;
}
