/* Simulated clients, workers and object stores around a scheduler's core, and functions that look
 * at what the core has sent them. */
#include "tests/support/scheduler_rig.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "graph/explain.h"
#include "graph/json/json.h"

#include <stdio.h>

#define MAKER 0x717u

static const char *const ops[] = {"f", "g", "h", "rare", "identity", "long", "dice", "ref"};

static bool find_op(const void *ctx, struct mr_str op, struct mr_graph_op_info *out)
{
    (void)ctx;
    (void)op;
    *out = (struct mr_graph_op_info){.any_positional = true, .any_named = true};
    return true;
}

/* ---- clients --------------------------------------------------------------------------------- */

uint64_t rig_submit_with(struct rig *r, const char *json, const struct mr_sched_submit *more)
{
    const struct mr_graph_catalogue catalogue = {.find = find_op};
    struct mr_graph *g = NULL;
    struct mr_error e = {0};
    if (mr_graph_from_json(mr_str(json), &catalogue, &g, &e)) MR_PANIC("%s", e.text);
    struct mr_sched_event ev = {.type = MR_SCHED_SUBMIT};
    if (more) ev.submit = *more;
    ev.submit.ticket = ++r->ticket;
    ev.submit.graph = g;
    uint32_t before = r->notes_count;
    rig_step(r, &ev);
    rig_turn(r);
    const struct mr_sched_note *n = (const void *)r->notes.p;
    for (uint32_t i = before; i < r->notes_count; i++)
        if (n[i].type == MR_NOTE_REPLY && n[i].ticket == r->ticket)
            return n[i].code ? 0 : n[i].job.v;
    return mr_sched_job_newest(r->s).v; /* no reply yet: the journal has not acknowledged the job */
}

uint64_t rig_submit(struct rig *r, const char *json)
{
    return rig_submit_with(r, json, NULL);
}

int rig_ask(struct rig *r, enum mr_sched_event_type type, uint64_t job)
{
    struct mr_sched_event ev = {.type = type, .job = {job}, .ticket = ++r->ticket};
    r->code = 1;
    rig_step(r, &ev);
    rig_turn(r);
    return r->code;
}

uint32_t rig_index(struct rig *r, uint64_t job, const char *key)
{
    struct mr_sched_job_info info;
    if (!mr_sched_job(r->s, (mr_job_id){job}, &info)) MR_PANIC("no job for \"%s\"", key);
    uint32_t index = mr_graph_find(info.graph, mr_str(key));
    if (index >= info.graph->nodes_count) MR_PANIC("no key \"%s\"", key);
    return index;
}

void rig_want(struct rig *r, uint64_t job, const char *key)
{
    struct mr_sched_event ev = {
        .type = MR_SCHED_WANT, .job = {job}, .index = rig_index(r, job, key)};
    rig_step(r, &ev);
    rig_turn(r);
}

struct mr_sched_task_info rig_task(struct rig *r, uint64_t job, const char *key)
{
    struct mr_sched_task_info info = {0};
    if (!mr_sched_task(r->s, (mr_job_id){job}, rig_index(r, job, key), &info))
        MR_PANIC("no task \"%s\"", key);
    return info;
}

enum mr_task_state rig_state(struct rig *r, uint64_t job, const char *key)
{
    return rig_task(r, job, key).state;
}

enum mr_job_state rig_job(struct rig *r, uint64_t job)
{
    struct mr_sched_job_info info;
    return mr_sched_job(r->s, (mr_job_id){job}, &info) ? info.state : MR_JOB_NONE;
}

struct mr_sched_value rig_value(struct rig *r, uint64_t job, const char *key, char out[64])
{
    struct mr_sched_value v = {0};
    struct mr_buf b;
    mr_buf_init(&b, 1 << 20);
    (void)mr_sched_value(r->s, (mr_job_id){job}, rig_index(r, job, key), &b, &v);
    if (out) (void)snprintf(out, 64, "%.*s", (int)MR_MIN(b.n, (size_t)63), b.p ? (char *)b.p : "");
    mr_buf_fini(&b);
    return v;
}

/* ---- workers --------------------------------------------------------------------------------- */

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
    return false;
}

struct rig_worker rig_join_as(
    struct rig *r, const struct rig_spec *spec, const struct mr_ws_register *more)
{
    struct mr_ws_operator list[MR_ARRAY_LEN(ops)];
    uint32_t n = 0;
    for (size_t i = 0; i < MR_ARRAY_LEN(ops); i++) {
        const char *op = ops[i];
        bool is_usual = strcmp(op, "rare") != 0;
        if (spec->ops ? !has_word(spec->ops, op) : !is_usual) continue;
        list[n++] = (struct mr_ws_operator){.name = mr_str(op),
            .deterministic = strcmp(op, "dice") != 0,
            .long_running = !strcmp(op, "long"),
            .by_reference = !strcmp(op, "ref"),
            .passes = !strcmp(op, "identity")};
    }
    const struct mr_ws_resource resource = {mr_str(spec->resource), (uint64_t)(spec->amount * 1e6)};
    struct mr_sched_event ev = {.type = MR_SCHED_WORKER_REGISTER};
    if (more) ev.worker = *more;
    ev.session = ++r->session;
    ev.worker.name = mr_str(spec->name ? spec->name : "w");
    ev.worker.node = mr_str(spec->node ? spec->node : "n");
    ev.worker.slots = spec->slots ? spec->slots : 1;
    ev.worker.memory_bytes = spec->memory ? spec->memory : (uint64_t)1 << 40;
    ev.worker.store = spec->store;
    ev.worker.store_address = mr_str("a");
    if (!ev.worker.time_ns) ev.worker.time_ns = r->now;
    ev.worker.ops = list;
    ev.worker.ops_count = n;
    ev.worker.resources = &resource;
    ev.worker.resources_count = spec->resource ? 1 : 0;
    r->last = (struct rig_worker){.slot = UINT32_MAX};
    rig_step(r, &ev);
    struct rig_worker w = r->last;
    rig_turn(r);
    return w;
}

struct rig_worker rig_join(struct rig *r, const struct rig_spec *spec)
{
    return rig_join_as(r, spec, NULL);
}

void rig_close(struct rig *r, struct rig_worker w)
{
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CLOSED, .slot = w.slot, .incarnation = w.incarnation};
    rig_step(r, &ev);
    rig_turn(r);
}

void rig_message(struct rig *r, struct rig_worker w, struct mr_ws_up *m)
{
    struct mr_sched_event ev = {.type = MR_SCHED_WORKER_MESSAGE,
        .message = *m,
        .slot = w.slot,
        .incarnation = w.incarnation};
    rig_step(r, &ev);
    rig_turn(r);
}

void rig_heartbeat(struct rig *r, struct rig_worker w)
{
    const struct mr_ws_heartbeat h = {.time_ns = r->now};
    struct mr_ws_up m = {.heartbeat = &h};
    rig_message(r, w, &m);
}

uint32_t rig_sent(const struct rig *r, struct rig_worker w, uint64_t job, uint32_t index)
{
    for (uint32_t i = r->rows_count; i-- > 0;) {
        const struct rig_row *x = &r->rows[i];
        bool is_it = x->said == SAID_TASK && x->slot == w.slot && x->job == job;
        if (is_it && x->index == index) return x->attempt;
    }
    return 0;
}

uint32_t rig_attempt(struct rig *r, struct rig_worker w, uint64_t job, const char *key)
{
    return rig_sent(r, w, job, rig_index(r, job, key));
}

void rig_done_as(struct rig *r, struct rig_worker w, uint64_t job, const char *key,
    uint32_t attempt, enum mr_outcome outcome, mr_object_id object, uint32_t bytes,
    mr_duration took)
{
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    uint32_t index = rig_index(r, job, key), code = outcome;
    uint64_t started = 0, duration = took,
             object_bytes = r->object_bytes ? r->object_bytes : 100000;
    MR_AUTO(mr_free_ptr) char *value = mr_alloc(bytes + 1);
    (void)snprintf(value, bytes + 1, "%s", key);
    if (r->says.n) memcpy(value, r->says.p, bytes);
    const struct mr_ws_failure why = {.code = 2,
        .message = MR_STR("it went wrong"),
        .arguments = MR_STR("[1]"),
        .log = MR_STR("a line\n")};
    struct mr_ws_up m = {0};
    m.completed = (struct mr_ws_completed){.tasks = {&run, 1, &index, &attempt, 1},
        .outcome = &code,
        .inline_bytes = &bytes,
        .inlined = mr_str_of(value, bytes),
        .base_ns = r->now,
        .started_ns = &started,
        .duration_ns = &duration};
    bool is_object = outcome == MR_OUTCOME_OK && !bytes;
    m.completed.object_maker = &object.maker;
    m.completed.object_number = &object.number;
    m.completed.object_bytes = &object_bytes;
    m.completed.objects_count = is_object;
    m.completed.failures = &why;
    m.completed.failures_count = outcome != MR_OUTCOME_OK;
    rig_message(r, w, &m);
}

void rig_done_bytes(
    struct rig *r, struct rig_worker w, uint64_t job, const char *key, uint32_t bytes)
{
    uint32_t attempt = rig_attempt(r, w, job, key);
    if (!attempt) MR_PANIC("\"%s\" was not sent to slot %u", key, w.slot);
    rig_done_as(r, w, job, key, attempt, MR_OUTCOME_OK, (mr_object_id){0, 0}, bytes, MR_MS);
}

void rig_done_value(
    struct rig *r, struct rig_worker w, uint64_t job, const char *key, struct mr_str value)
{
    r->says = value;
    rig_done_bytes(r, w, job, key, (uint32_t)value.n);
    r->says = (struct mr_str){0};
}

void rig_done(struct rig *r, struct rig_worker w, uint64_t job, const char *key)
{
    rig_done_bytes(r, w, job, key, (uint32_t)strlen(key));
}

mr_object_id rig_done_object(struct rig *r, struct rig_worker w, uint64_t job, const char *key)
{
    uint32_t attempt = rig_attempt(r, w, job, key);
    if (!attempt) MR_PANIC("\"%s\" was not sent to slot %u", key, w.slot);
    mr_object_id id = {MAKER, ++r->objects};
    rig_done_as(r, w, job, key, attempt, MR_OUTCOME_OK, id, 0, MR_MS);
    return id;
}

void rig_end(
    struct rig *r, struct rig_worker w, uint64_t job, const char *key, enum mr_outcome outcome)
{
    uint32_t attempt = rig_attempt(r, w, job, key);
    if (!attempt) MR_PANIC("\"%s\" was not sent to slot %u", key, w.slot);
    rig_done_as(r, w, job, key, attempt, outcome, (mr_object_id){0, 0}, 0, MR_MS);
}

void rig_warm(struct rig *r, struct rig_worker w)
{
    static const char *const keys[] = {"f", "g"};
    uint64_t job = rig_submit(r,
        "{\"tasks\":{\"f\":{\"op\":\"f\",\"args\":[1],\"workers\":[\"a\",\"one\"]},"
        "\"g\":{\"op\":\"g\",\"args\":[1],\"workers\":[\"a\",\"one\"]}},\"targets\":[\"f\",\"g\"]}");
    for (int i = 0; i < 4; i++) {
        const char *key = keys[i % 2];
        if (rig_attempt(r, w, job, key) && rig_state(r, job, key) != MR_TASK_DONE)
            rig_done(r, w, job, key);
    }
    mr_assert(rig_job(r, job) == MR_JOB_DONE);
    rig_forget_rows(r);
}

void rig_tell(struct rig *r, struct rig_worker w, enum rig_told what, uint64_t job, const char *key)
{
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    uint32_t index = rig_index(r, job, key), attempt = rig_sent(r, w, job, index);
    const struct mr_ws_refs refs = {&run, 1, &index, &attempt, 1};
    struct mr_ws_up m = {0};
    if (what == TOLD_GIVEN) m.given = refs;
    if (what == TOLD_STARTED) m.started = refs;
    if (what == TOLD_UNKNOWN) m.unknown = refs;
    if (what == TOLD_LEFT_SLOT) m.left_slot = refs;
    rig_message(r, w, &m);
}

/* ---- questions ------------------------------------------------------------------------------- */

uint32_t rig_count(
    struct rig *r, enum rig_said said, struct rig_worker w, uint64_t job, const char *key)
{
    uint32_t n = 0, index = key ? rig_index(r, job, key) : 0;
    for (uint32_t i = 0; i < r->rows_count; i++) {
        const struct rig_row *x = &r->rows[i];
        if (x->said != said || x->slot != w.slot || x->job != job) continue;
        n += !key || x->index == index;
    }
    return n;
}

const struct rig_row *rig_row(struct rig *r, enum rig_said said, uint64_t job, const char *key)
{
    uint32_t index = rig_index(r, job, key);
    for (uint32_t i = r->rows_count; i-- > 0;) {
        const struct rig_row *x = &r->rows[i];
        if (x->said == said && x->job == job && x->index == index) return x;
    }
    return NULL;
}

uint32_t rig_notes(const struct rig *r, enum mr_sched_note_type type, uint64_t job)
{
    const struct mr_sched_note *n = (const void *)r->notes.p;
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->notes_count; i++)
        count += n[i].type == type && n[i].job.v == job;
    return count;
}

void rig_forget_rows(struct rig *r)
{
    r->rows_count = 0;
}

/* ---- stores ---------------------------------------------------------------------------------- */

static void tell_store(
    struct rig *r, enum mr_sched_event_type type, uint64_t store, const char *node)
{
    struct mr_sched_event ev = {.type = type};
    ev.store = (struct mr_sched_store){.store = store,
        .node = mr_str(node),
        .address = mr_str("a"),
        .memory_bytes = r->store_memory ? r->store_memory : 1 << 30};
    rig_step(r, &ev);
    rig_turn(r);
}

void rig_store(struct rig *r, uint64_t store, const char *node)
{
    tell_store(r, MR_SCHED_STORE_REGISTER, store, node);
}

void rig_store_close(struct rig *r, uint64_t store)
{
    tell_store(r, MR_SCHED_STORE_CLOSED, store, "");
}

void rig_object_lost(struct rig *r, uint64_t store, mr_object_id id)
{
    struct mr_sched_event ev = {.type = MR_SCHED_OBJECTS_LOST};
    ev.objects = (struct mr_sched_objects){.store = store, .ids = &id, .count = 1};
    /* The store has lost the object together with its list of holders. */
    for (uint32_t i = 0; i < r->holds_count; i++)
        if (mr_object_id_eq(r->holds[i].object, id)) r->holds[i].count = 0;
    rig_step(r, &ev);
    rig_turn(r);
}

bool rig_is_held(const struct rig *r, mr_object_id id)
{
    for (uint32_t i = 0; i < r->holds_count; i++)
        if (mr_object_id_eq(r->holds[i].object, id) && r->holds[i].count) return true;
    return false;
}

uint32_t rig_held(const struct rig *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->holds_count; i++)
        n += r->holds[i].count;
    return n;
}
