/* The rig is a scheduler's core with simulated surroundings. This file has start and restart, the
 * journal, and the core's effects. scheduler_rig_play.c has clients, workers and stores. */
#include "tests/support/scheduler_rig.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "tests/support/scheduler_same.h"

#include <stdio.h>

#define TURNS_MAX 100000

/* ---- start and end --------------------------------------------------------------------------- */

void rig_config(struct mr_sched_config *c)
{
    mr_sched_config_default(c);
    c->tasks_max = 65536;
    c->jobs_max = 64;
    c->workers_max = RIG_WORKERS;
    c->stores_max = RIG_STORES;
    c->ops_max = 64;
    c->inline_blocks = 4096;
    c->failures_max = 64;
}

static void start(struct rig *r)
{
    mr_arena_init(&r->arena, mr_sched_arena_bytes(&r->c));
    mr_sched_effects_init(&r->fx, r->c.workers_max, r->c.stores_max);
    r->s = mr_sched_new(&r->c, &r->arena);
}

static void stop(struct rig *r)
{
    mr_sched_free(&r->s);
    mr_sched_effects_fini(&r->fx);
    mr_arena_fini(&r->arena);
    for (uint32_t i = 0; i < r->notes_count; i++)
        mr_release(r->texts[i]);
    r->notes_count = 0;
    mr_buf_clear(&r->notes);
}

static struct rig *live;

struct rig *rig_new_with(const struct mr_sched_config *c)
{
    struct rig *r = mr_alloc(sizeof *r);
    mr_assert(!live);
    live = r;
    r->c = *c;
    r->now = MR_SECOND;
    r->acks = true;
    mr_buf_init(&r->journal, (size_t)1 << 30);
    mr_buf_init(&r->notes, (size_t)1 << 30);
    mr_buf_init(&r->spans, (size_t)1 << 24);
    start(r);
    struct mr_sched_event ev = {.type = MR_SCHED_RECOVERED};
    rig_step(r, &ev);
    rig_turn(r);
    return r;
}

/* Runs a first job, so that the test's jobs do not have the first slot of a table, the first number
 * of a task or the first placement class. Number 0 would hide mistakes such as an addition where a
 * subtraction is right. */
static void take_first_places(struct rig *r)
{
    r->first = rig_submit(r, "{\"dsk\":{\"first\":1},\"targets\":[\"first\"]}");
    mr_assert(rig_job(r, r->first) == MR_JOB_DONE);
    rig_forget_rows(r);
}

struct rig *rig_new_empty(void)
{
    struct mr_sched_config c;
    rig_config(&c);
    return rig_new_with(&c);
}

struct rig *rig_new(void)
{
    struct rig *r = rig_new_empty();
    take_first_places(r);
    return r;
}

const char *rig_leftover(struct rig *r)
{
    if (r->first) (void)rig_ask(r, MR_SCHED_FORGET, r->first);
    r->first = 0;
    return mr_sched_leftover(r->s);
}

int rig_teardown(void **state)
{
    (void)state;
    struct rig *r = live;
    live = NULL;
    if (!r) return 0;
    stop(r);
    mr_buf_fini(&r->journal);
    mr_buf_fini(&r->notes);
    mr_buf_fini(&r->spans);
    mr_release(r->rows);
    mr_release(r);
    return 0;
}

/* ---- the core's effects ---------------------------------------------------------------------- */

static struct rig_row *row_new(struct rig *r)
{
    if (r->rows_count == r->rows_room) {
        uint32_t room = r->rows_room ? 2 * r->rows_room : 256;
        r->rows = mr_grow(r->rows, r->rows_room * sizeof *r->rows, room * sizeof *r->rows);
        r->rows_room = room;
    }
    return &r->rows[r->rows_count++];
}

static void take_refs(
    struct rig *r, uint32_t slot, enum rig_said said, const struct mr_sched_refs_out *refs)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < refs->runs.count; i++)
        for (uint32_t k = 0; k < refs->runs.p[i].count; k++, at++)
            *row_new(r) = (struct rig_row){.said = said,
                .slot = slot,
                .job = refs->runs.p[i].job.v,
                .index = refs->index[at],
                .attempt = said == SAID_VALUE ? 0 : refs->attempt[at]};
    mr_assert(at == refs->count);
}

static void take_tasks(struct rig *r, uint32_t slot, const struct mr_sched_rows *rows)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < rows->runs.count; i++)
        for (uint32_t k = 0; k < rows->runs.p[i].count; k++, at++)
            *row_new(r) = (struct rig_row){.said = SAID_TASK,
                .slot = slot,
                .job = rows->runs.p[i].job.v,
                .index = mr_sched_cell(rows, MR_COLUMN_INDEX, at),
                .attempt = mr_sched_cell(rows, MR_COLUMN_ATTEMPT, at)};
    mr_assert(at == rows->count);
}

static void take_batch(struct rig *r, uint32_t slot)
{
    const struct mr_sched_batch *b = r->fx.worker[slot];
    if (!b) return;
    if (r->on_batch) r->on_batch(r, slot, b);
    take_refs(r, slot, SAID_ADOPT, &b->adopt);
    take_refs(r, slot, SAID_KEEP, &b->keep);
    take_refs(r, slot, SAID_VALUE, &b->values);
    uint32_t first = r->rows_count;
    take_tasks(r, slot, &b->tasks);
    const struct mr_sched_extra *extra = (const void *)b->extra.p;
    for (size_t i = 0; i < b->extra.n / sizeof *extra; i++) {
        struct rig_row *row = &r->rows[first + extra[i].row];
        row->alone = extra[i].alone;
        row->long_running = extra[i].long_running;
        row->timeout_ns = extra[i].timeout_ns;
        row->persist = extra[i].persist;
    }
    take_refs(r, slot, SAID_CANCEL, &b->cancel);
    take_refs(r, slot, SAID_RELEASE, &b->release);
    take_refs(r, slot, SAID_STEAL, &b->steal);
    take_refs(r, slot, SAID_FETCH, &b->fetch);
    take_refs(r, slot, SAID_LEAVE, &b->leave);
    if (b->drain) r->last.was_drained = true;
    mr_sched_batch_put(&r->fx, &r->fx.worker[slot]);
}

static struct rig_hold *hold_of(struct rig *r, mr_object_id id, uint32_t store)
{
    for (uint32_t i = 0; i < r->holds_count; i++)
        if (mr_object_id_eq(r->holds[i].object, id) && r->holds[i].store == store)
            return &r->holds[i];
    mr_assert(r->holds_count < MR_ARRAY_LEN(r->holds));
    r->holds[r->holds_count] = (struct rig_hold){.object = id, .store = store};
    return &r->holds[r->holds_count++];
}

static void take_store(struct rig *r, uint32_t store)
{
    struct mr_sched_store_batch *b = &r->fx.store[store];
    const mr_object_id *hold = (const void *)b->hold.p, *unhold = (const void *)b->unhold.p;
    for (uint32_t i = 0; b->has_registered && i < r->holds_count; i++)
        /* After a store has registered, the core tells the store again which objects to hold. */
        if (r->holds[i].store == store) r->holds[i].count = 0;
    for (size_t i = 0; i < b->hold.n / sizeof *hold; i++)
        hold_of(r, hold[i], store)->count = 1;
    const mr_object_id *verify = (const void *)b->verify.p;
    for (size_t i = 0; i < b->verify.n / sizeof *verify; i++) {
        if (r->has_disk) {
            hold_of(r, verify[i], store)->count = 1;
        } else if (r->missing_count < MR_ARRAY_LEN(r->missing)) {
            r->missing[r->missing_count++] = verify[i];
            r->missing_store = store;
        }
    }
    for (size_t i = 0; i < b->unhold.n / sizeof *unhold; i++)
        hold_of(r, unhold[i], store)->count = 0;
    mr_sched_store_batch_clear(b);
}

static void take_note(struct rig *r, const struct mr_sched_note *n)
{
    mr_assert(r->notes_count < MR_ARRAY_LEN(r->texts));
    char *text = mr_alloc(n->text_bytes + 1);
    if (n->text_bytes) memcpy(text, r->fx.text.p + n->text_at, n->text_bytes);
    r->texts[r->notes_count++] = text;
    mr_buf_add(&r->notes, n, sizeof *n);
    if (n->type == MR_NOTE_WORKER_JOINED)
        r->last = (struct rig_worker){
            .slot = n->slot, .incarnation = n->incarnation, .session = n->session};
    if (n->type == MR_NOTE_WORKER_CLOSE && n->slot == r->last.slot) r->last.was_closed = true;
    if (n->type != MR_NOTE_REPLY && n->type != MR_NOTE_WORKER_REFUSED) return;
    if (n->type == MR_NOTE_WORKER_REFUSED) r->last.was_refused = true;
    r->code = n->code;
    (void)snprintf(r->text, sizeof r->text, "%s", text);
}

static void take_all(struct rig *r)
{
    for (size_t at = 0; at < r->fx.journal.n;) {
        struct mr_sched_record_head h;
        memcpy(&h, r->fx.journal.p + at, sizeof h);
        mr_assert(h.sequence == r->sequence + 1);
        r->sequence = h.sequence;
        at += sizeof h + (size_t)mr_align_up(h.bytes, 8);
    }
    mr_buf_add(&r->journal, r->fx.journal.p, r->fx.journal.n);
    for (size_t at = 0; at < r->fx.notes.n; at += sizeof(struct mr_sched_note))
        take_note(r, (const void *)(r->fx.notes.p + at));
    const uint32_t *workers = (const void *)r->fx.dirty_workers.p;
    for (size_t i = 0; i < r->fx.dirty_workers.n / sizeof *workers; i++)
        take_batch(r, workers[i]);
    const uint32_t *stores = (const void *)r->fx.dirty_stores.p;
    for (size_t i = 0; i < r->fx.dirty_stores.n / sizeof *stores; i++)
        take_store(r, stores[i]);
    mr_buf_add(&r->spans, r->fx.spans.p, r->fx.spans.n);
    mr_sched_effects_clear(&r->fx);
}

void rig_step(struct rig *r, struct mr_sched_event *ev)
{
    ev->wall_ns = (uint64_t)1700000000 * MR_SECOND + r->now;
    mr_sched_step(r->s, r->now, ev, &r->fx);
    mr_sched_check(r->s);
    take_all(r);
}

void rig_ack(struct rig *r)
{
    if (r->acked == r->sequence) return;
    r->acked = r->sequence;
    struct mr_sched_event ev = {.type = MR_SCHED_JOURNAL_ACKED, .sequence = r->acked};
    rig_step(r, &ev);
}

static void tell_missing(struct rig *r)
{
    struct mr_sched_event ev = {.type = MR_SCHED_OBJECTS_LOST};
    struct mr_str node, address;
    bool is_alive;
    mr_assert(
        mr_sched_store(r->s, r->missing_store, &ev.objects.store, &node, &address, &is_alive));
    ev.objects.ids = r->missing;
    ev.objects.count = r->missing_count;
    r->missing_count = 0;
    rig_step(r, &ev);
}

void rig_turn(struct rig *r)
{
    uint64_t turns = 0;
    do {
        struct mr_sched_event ev = {.type = MR_SCHED_TICK};
        if (mr_sched_deadline(r->s) <= r->now) rig_step(r, &ev);
        if (r->acks) rig_ack(r);
        if (r->missing_count) tell_missing(r);
        mr_assert(++turns < TURNS_MAX);
    } while (mr_sched_deadline(r->s) <= r->now);
    r->steps_work = MR_MAX(r->steps_work, turns);
}

void rig_pass(struct rig *r, mr_duration time)
{
    mr_time until = r->now + time;
    for (mr_time next = mr_sched_deadline(r->s); next < until; next = mr_sched_deadline(r->s)) {
        r->now = MR_MAX(next, r->now + 1);
        rig_turn(r);
    }
    r->now = until;
    rig_turn(r);
}

/* ---- restarts -------------------------------------------------------------------------------- */

void rig_crash(struct rig *r)
{
    stop(r);
    r->holds_count = r->rows_count = 0;
    r->c.epoch++;
    r->c.incarnation += (uint64_t)1 << 32;
    start(r);
    size_t kept = 0;
    for (size_t at = 0; at < r->journal.n;) {
        struct mr_sched_record_head h;
        memcpy(&h, r->journal.p + at, sizeof h);
        if (h.sequence > r->acked) break;
        struct mr_sched_event ev = {.type = MR_SCHED_RECORD, .sequence = h.sequence};
        ev.record.type = h.type;
        ev.record.bytes = mr_str_of(r->journal.p + at + sizeof h, h.bytes);
        rig_step(r, &ev);
        at += sizeof h + (size_t)mr_align_up(h.bytes, 8);
        kept = at;
    }
    r->journal.n = kept;
    r->sequence = r->acked;
    struct mr_sched_event ev = {.type = MR_SCHED_RECOVERED, .sequence = r->acked};
    rig_step(r, &ev);
    char why[128];
    if (!sched_is_same_when_read_again(r->s, &r->c, r->now, why)) MR_PANIC("%s", why);
    rig_turn(r);
}

void rig_compact(struct rig *r)
{
    rig_ack(r);
    mr_buf_clear(&r->journal);
    mr_sched_snapshot(r->s, &r->journal);
}
