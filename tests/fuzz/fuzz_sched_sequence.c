/* Feeds sequences of events to the scheduler's core. Each byte chooses the next event. Jobs are
 * submitted, cancelled and retried. Workers register, leave and crash; they report anything about
 * any task, sent by this start of the scheduler or by an earlier one. Stores report falsely. Redis,
 * which has the journal, goes away. The scheduler restarts. The messages have a form that the shell
 * would accept; their content is arbitrary. After each step the core checks its invariants. */
#include "base/alloc.h"
#include "tests/support/scheduler_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BYTES_MAX 2048u
#define ROWS_MAX 6u
#define JOBS_MAX 12u

static const char *const graphs[] = {
    "{\"tasks\":{\"a\":{\"op\":\"f\",\"args\":[1]},\"b\":{\"op\":\"f\",\"args\":[{\"ref\":\"a\"}]},"
    "\"c\":{\"op\":\"g\",\"args\":[{\"ref\":\"b\"}]}},\"targets\":[\"c\"]}",
    "{\"tasks\":{\"a\":{\"op\":\"f\"},\"b\":{\"op\":\"f\"},\"c\":{\"op\":\"h\",\"args\":[{\"ref\":"
    "\"a\"},{\"ref\":\"b\"}],\"retries\":2},\"d\":{\"op\":\"f\",\"args\":[{\"ref\":\"a\"}]}},"
    "\"targets\":[\"c\",\"d\"],\"priority\":3}",
    "{\"namespace\":\"n\",\"tasks\":{\"a\":{\"op\":\"f\",\"args\":[7]},\"i\":{\"op\":\"identity\","
    "\"args\":[{\"ref\":\"a\"}]},\"r\":{\"op\":\"ref\",\"args\":[{\"ref\":\"i\"}],\"timeout_s\":1}}"
    ",\"targets\":[\"i\",\"r\"]}",
    "{\"namespace\":\"n\",\"tasks\":{\"a\":{\"op\":\"f\",\"args\":[7]},\"s\":{\"op\":\"g\","
    "\"args\":[{\"ref\":\"a\"}],\"pure\":false}},\"targets\":[\"s\"]}",
    "{\"tasks\":{\"l\":{\"op\":\"long\"},\"m\":{\"op\":\"long\"},\"x\":{\"op\":\"rare\"},"
    "\"y\":{\"op\":\"f\",\"args\":[{\"ref\":\"l\"}]}},\"targets\":[\"y\",\"x\",\"m\"]}",
    "{\"tasks\":{\"a\":{\"op\":\"f\"},\"b\":{\"op\":\"f\",\"args\":[{\"ref\":\"a\"}]},\"c\":{\"op\":"
    "\"f\",\"args\":[{\"ref\":\"a\"}]},\"d\":{\"op\":\"f\",\"args\":[{\"ref\":\"b\"},{\"ref\":\"c\"}"
    "]},\"e\":{\"op\":\"dice\",\"args\":[{\"ref\":\"d\"}]}},\"targets\":[\"e\"]}",
};

struct fuzz {
    struct rig *r;
    const uint8_t *at, *end;
    uint64_t jobs[JOBS_MAX];
    uint32_t jobs_count;
    struct rig_worker workers[RIG_WORKERS * 2];
    uint32_t workers_count;
    uint64_t stores;
};

static uint32_t take(struct fuzz *f)
{
    return f->at < f->end ? *f->at++ : 0;
}

static uint32_t below(struct fuzz *f, uint32_t n)
{
    return take(f) % n;
}

static uint64_t any_job(struct fuzz *f)
{
    uint32_t k = below(f, f->jobs_count + 2);
    if (k < f->jobs_count) return f->jobs[k];
    return k == f->jobs_count ? (uint64_t)7 << 32 | 1 : f->jobs_count ? f->jobs[0] : 0;
}

/* The rows of one worker's message, each about one attempt of a task. Most rows name an attempt
 * that the worker was sent; others name any job, task and attempt. */
struct rows {
    struct mr_ws_run runs[ROWS_MAX];
    uint32_t index[ROWS_MAX], attempt[ROWS_MAX], outcome[ROWS_MAX], bytes[ROWS_MAX];
    uint64_t maker[ROWS_MAX], number[ROWS_MAX], object_bytes[ROWS_MAX];
    uint64_t started[ROWS_MAX], duration[ROWS_MAX];
    struct mr_ws_failure failures[ROWS_MAX];
    char data[ROWS_MAX];
    struct mr_ws_refs refs;
};

/* Returns one of the last eight attempts that the worker was sent, or NULL if the worker was sent
 * none. */
static const struct rig_row *any_told(struct fuzz *f, struct rig_worker w)
{
    uint32_t skip = take(f) % 8;
    const struct rig_row *found = NULL;
    for (uint32_t i = f->r->rows_count; i-- > 0;) {
        const struct rig_row *x = &f->r->rows[i];
        if (x->said != SAID_TASK || x->slot != w.slot) continue;
        found = x;
        if (!skip--) break;
    }
    return found;
}

static void any_rows(struct fuzz *f, struct rig_worker w, struct rows *x)
{
    uint32_t n = 1 + below(f, ROWS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t how = take(f);
        const struct rig_row *told = how % 8 ? any_told(f, w) : NULL;
        x->runs[i] = (struct mr_ws_run){.job = {told ? told->job : any_job(f)}, .count = 1};
        x->index[i] = told ? told->index : below(f, 6) + (how == 248 ? UINT32_MAX - 8 : 0);
        x->attempt[i] = told && how % 16 ? told->attempt : how / 16 % 6;
    }
    x->refs = (struct mr_ws_refs){x->runs, n, x->index, x->attempt, n};
}

static void any_completed(
    struct fuzz *f, struct rig_worker w, struct rows *x, struct mr_ws_completed *out)
{
    uint32_t objects = 0, failures = 0, inlined = 0;
    any_rows(f, w, x);
    for (uint32_t i = 0; i < x->refs.count; i++) {
        uint32_t how = take(f);
        /* The last outcome, 9, is MR_OUTCOME_LOST, which a worker must not report. */
        x->outcome[i] = how & 7 ? 0 : (how >> 3) % 10;
        x->bytes[i] = x->outcome[i] == 0 && how & 32;
        x->data[i] = (char)0xc0;
        inlined += x->bytes[i];
        x->started[i] = how & 64 ? 0 : (uint64_t)how << 20;
        x->duration[i] = how & 128 ? UINT64_MAX : how;
        if (x->outcome[i])
            x->failures[failures++] = (struct mr_ws_failure){
                .row = i, .code = (int32_t)how, .message = MR_STR("it went wrong")};
        if (x->outcome[i] || x->bytes[i]) continue;
        x->maker[objects] = 1 + how / 16 % 3;
        x->number[objects] = how % 16;
        x->object_bytes[objects++] = how == 129 ? UINT64_MAX : 4096;
    }
    *out = (struct mr_ws_completed){.tasks = x->refs,
        .outcome = x->outcome,
        .inline_bytes = x->bytes,
        .inlined = mr_str_of(x->data, inlined),
        .object_maker = x->maker,
        .object_number = x->number,
        .object_bytes = x->object_bytes,
        .objects_count = objects,
        .base_ns = f->r->now,
        .started_ns = x->started,
        .duration_ns = x->duration,
        .failures = x->failures,
        .failures_count = failures};
}

static struct rig_worker any_worker(struct fuzz *f)
{
    struct rig_worker w = {.slot = below(f, RIG_WORKERS), .incarnation = take(f)};
    return f->workers_count ? f->workers[below(f, f->workers_count)] : w;
}

static void submit(struct fuzz *f)
{
    uint32_t how = take(f);
    struct mr_sched_submit more = {0};
    if (how & 128)
        more.parent = (struct mr_sched_parent){{any_job(f)}, below(f, 6), 1 + below(f, 3)};
    uint64_t job = rig_submit_with(f->r, graphs[how % MR_ARRAY_LEN(graphs)], &more);
    if (job && f->jobs_count < JOBS_MAX) f->jobs[f->jobs_count++] = job;
}

static void join(struct fuzz *f)
{
    static const char *const names[] = {"w0", "w1", "w2", "w3"};
    static const char *const nodes[] = {"n0", "n1"};
    uint32_t how = take(f);
    struct rig_spec spec = {.name = names[how & 3],
        .node = nodes[how >> 2 & 1],
        .slots = 1 + (how >> 3 & 1),
        .ops = how & 16 ? "f g h rare identity long dice ref" : NULL,
        .store = how & 32 ? 1 + (how >> 2 & 1) : 0,
        .memory = how & 64 ? 8192 : 0};
    struct mr_ws_register more = {0};
    struct rows held, queued, suspects;
    struct rig_worker before = any_worker(f);
    if (how >= 224) {
        more.incarnation = take(f) & 1 ? before.incarnation : take(f);
        more.epoch = f->r->c.epoch - below(f, 3);
        any_completed(f, before, &held, &more.holding);
        any_rows(f, before, &queued);
        more.queued = queued.refs;
        more.has_suspects = take(f) & 1;
        any_rows(f, before, &suspects);
        if (more.has_suspects) more.suspects = suspects.refs;
    }
    struct rig_worker w = rig_join_as(f->r, &spec, &more);
    if (w.slot != UINT32_MAX)
        f->workers[f->workers_count < MR_ARRAY_LEN(f->workers) ? f->workers_count++
                                                               : below(f, f->workers_count)] = w;
}

static void message(struct fuzz *f)
{
    struct rig_worker w = any_worker(f);
    struct mr_ws_up m = {0};
    struct rows rows, more;
    uint32_t how = take(f);
    struct mr_ws_missing missing = {0};
    struct mr_ws_heartbeat h = {0};
    if (how < 128) any_completed(f, w, &rows, &m.completed);
    if (how & 64) {
        any_rows(f, w, &more);
        if ((how & 7) == 0) m.given = more.refs;
        if ((how & 7) == 1) m.started = more.refs;
        if ((how & 7) == 2) m.unknown = more.refs;
        if ((how & 7) == 3) m.left_slot = more.refs;
        if ((how & 7) == 4) h.running_tasks = more.refs;
        if ((how & 7) == 5)
            missing = (struct mr_ws_missing){
                more.runs[0].job, more.index[0], more.attempt[0], below(f, 6), MR_STR("gone")};
    }
    m.missing = &missing;
    m.missing_count = (how & 64) && (how & 7) == 5;
    if (how & 16 || h.running_tasks.count) m.heartbeat = &h;
    h.time_ns = take(f) == 255 ? UINT64_MAX : f->r->now;
    h.memory_used_bytes = how == 200 ? UINT64_MAX : 1000;
    h.queue_ns = how == 201 ? UINT64_MAX : 1000;
    m.leaving = how == 255;
    rig_message(f->r, w, &m);
}

static void worker_end(struct fuzz *f, enum mr_sched_event_type type)
{
    struct rig_worker w = any_worker(f);
    struct rows rows;
    struct mr_sched_event ev = {.type = type, .slot = w.slot, .incarnation = w.incarnation};
    if (type == MR_SCHED_WORKER_CRASHED) {
        any_rows(f, w, &rows);
        ev.refs = rows.refs;
    }
    rig_step(f->r, &ev);
    rig_turn(f->r);
}

static void store(struct fuzz *f)
{
    uint64_t number = 1 + below(f, 3);
    const mr_object_id id = {1 + below(f, 3), below(f, 16)};
    struct mr_sched_event ev = {.type = MR_SCHED_OBJECTS_UNHELD};
    ev.objects.store = number;
    ev.objects.ids = &id;
    ev.objects.count = 1;
    switch (below(f, 4)) {
    case 0: rig_store(f->r, number, number == 1 ? "n0" : "n1"); break;
    case 1: rig_store_close(f->r, number); break;
    case 2: rig_object_lost(f->r, number, id); break;
    default:
        rig_step(f->r, &ev);
        rig_turn(f->r);
        break;
    }
}

static void journal(struct fuzz *f, uint32_t what)
{
    struct rig *r = f->r;
    struct mr_sched_event ev = {
        .type = what == 0 ? MR_SCHED_JOURNAL_AWAY : MR_SCHED_JOURNAL_BACK, .sequence = r->acked};
    if (what == 2) r->acks = !r->acks;
    if (what == 3) rig_ack(r);
    if (what == 4) rig_compact(r);
    if (what == 5) {
        rig_crash(r);
        f->workers_count = 0;
    }
    if (what > 1) return;
    rig_step(r, &ev);
    rig_turn(r);
}

static void next(struct fuzz *f)
{
    static const enum mr_sched_event_type asked[] = {
        MR_SCHED_CANCEL, MR_SCHED_RETRY, MR_SCHED_FORGET};
    struct mr_sched_event want = {.type = MR_SCHED_WANT};
    switch (below(f, 32)) {
    case 0:
    case 1:
    case 2: submit(f); break;
    case 3:
    case 4:
    case 5: join(f); break;
    default: message(f); break;
    case 9: (void)rig_ask(f->r, asked[below(f, 3)], any_job(f)); break;
    case 10:
        want.job.v = any_job(f);
        want.index = below(f, 8);
        rig_step(f->r, &want);
        rig_turn(f->r);
        break;
    case 11: worker_end(f, MR_SCHED_WORKER_CLOSED); break;
    case 12: worker_end(f, take(f) & 1 ? MR_SCHED_WORKER_CRASHED : MR_SCHED_WORKER_RETIRE); break;
    case 13: store(f); break;
    case 14: journal(f, take(f)); break;
    case 15:
    case 16:
    case 17: rig_pass(f->r, MR_US << below(f, 27)); break; /* lets a microsecond to a minute pass */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = {.at = data, .end = data + MR_MIN(size, (size_t)BYTES_MAX)};
    struct mr_sched_config c;
    rig_config(&c);
    c.tasks_max = 256; /* small limits, which are reached often */
    c.jobs_max = 8;
    c.inline_blocks = 64;
    c.failures_max = 4;
    f.r = rig_new_with(&c);
    while (f.at < f.end && f.r->notes_count < 3000 && f.r->holds_count < 800)
        next(&f);
    void *state = NULL;
    (void)rig_teardown(&state);
    return 0;
}
