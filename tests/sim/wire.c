/* The stream between a worker and the scheduler, as bytes: each message is encoded by its sender
 * and decoded for its receiver, as in production. Bugs that are planted in the stream are here. */
#include "services/scheduler/core/batch_message.h"
#include "session/decode.h"
#include "session/encode.h"
#include "tests/sim/sim.h"

#include "base/limits.h"

#include <stdio.h>

static void *take(void *msg, size_t bytes)
{
    return sim_keep(msg, NULL, bytes);
}

static struct mr_ws_memory memory_of(struct sim_msg *m)
{
    return (struct mr_ws_memory){take, m, MR_MESSAGE_BYTES_MAX};
}

/* Copies the encoded bytes into the memory of the message, because texts of the decoded message
 * point into them. */
static struct mr_str keep_bytes(struct sim_msg *m, struct mr_buf *wire)
{
    struct mr_str bytes = mr_str_of(sim_keep(m, wire->p, wire->n), wire->n);
    mr_assert(!mr_buf_status(wire));
    mr_buf_fini(wire);
    return bytes;
}

static const uint32_t *uses_plant(struct sim *s, struct sim_msg *m, const struct mr_ws_tasks *k)
{
    if (!k->uses || (s->plant != PLANT_USES && s->plant != PLANT_EARLY)) return k->uses;
    uint32_t *uses = sim_keep(m, k->uses, k->count * sizeof *uses);
    for (uint32_t i = 0; i < k->count; i++)
        uses[i] = s->plant == PLANT_USES ? 1 : uses[i] - (uses[i] > 1);
    return uses;
}

struct sim_msg *sim_wire_down(struct sim *s, struct sim_session *x, const struct mr_sched_batch *b)
{
    struct sim_msg *m = mr_alloc(sizeof *m);
    const struct mr_ws_memory memory = memory_of(m);
    struct mr_ws_down down;
    struct mr_error e = {0};
    struct mr_buf wire;
    if (b->has_registered) {
        s->count.adopted += b->adopt.count;
        sim_journal_check_adopted(s, &b->adopt);
    }
    mr_sched_batch_message(s->sched, b, &x->numbers, &memory, &down);
    down.tasks.uses = uses_plant(s, m, &down.tasks);
    if (s->plant == PLANT_VALUE && down.values.count && sim_chance(s, 4))
        down.values = (struct mr_ws_values){0};
    if (s->plant == PLANT_RELEASE) down.release = (struct mr_ws_refs){0};
    for (uint32_t i = 0; i < down.tasks.runs_count; i++)
        /* adds the job to s->jobs now, because the scheduler may forget the job later */
        (void)sim_job_of(s, down.tasks.runs[i].job.v);
    mr_buf_init(&wire, MR_MESSAGE_BYTES_MAX);
    mr_ws_encode_down(&down, &wire);
    s->figures.messages++;
    s->figures.wire_bytes += wire.n;
    if (mr_ws_decode_down(keep_bytes(m, &wire), &memory, &m->down, &e))
        sim_fail(s, "the scheduler's message: %s", e.text);
    return m;
}

/* Fills in what a worker's shell adds to Register. */
static void register_fill(
    struct sim *s, const struct sim_proc *p, struct sim_msg *m, struct mr_ws_register *r)
{
    static const struct mr_ws_resource gpu = {MR_STR_INIT("gpu"), GPU};
    const struct sim_suspects *x = &s->suspects[p->name];
    struct mr_ws_operator *ops = sim_keep(m, NULL, OPS * sizeof *ops);
    char *text = sim_keep(m, NULL, 64);
    for (uint32_t i = 0; i < OPS; i++)
        ops[i] = (struct mr_ws_operator){.name = mr_str(sim_ops[i]),
            .deterministic = i != OP_DICE,
            .by_reference = i == OP_REF,
            .passes = i == OP_IDENTITY,
            .long_running = i == OP_LONG || i == OP_ROLE};
    r->ops = ops;
    r->ops_count = p->name % 2 ? OPS : OPS - 1;
    r->protocol_version = MR_PROTOCOL_VERSION;
    r->layout_version = MR_LAYOUT_VERSION;
    r->store = p->store;
    r->slots = p->slots;
    r->memory_bytes = (uint64_t)1 << 30;
    r->resources = &gpu;
    r->resources_count = p->name % 2;
    r->has_suspects = !r->incarnation && p->has_suspects;
    if (r->has_suspects)
        r->suspects = (struct mr_ws_refs){x->run, x->count, x->index, x->attempt, x->count};
    (void)snprintf(text, 32, "w%" PRIu32, p->name);
    (void)snprintf(text + 32, 32, "n%" PRIu32, p->node);
    r->name = mr_str(text);
    r->node = r->store_address = mr_str(text + 32);
}

/* Reports a result under the id of another job of the same template. */
static void plant_other(struct sim *s, struct sim_msg *m)
{
    struct mr_ws_refs *tasks = &m->up.completed.tasks;
    if (s->plant != PLANT_OTHER || !sim_chance(s, 10)) return;
    struct mr_ws_run *runs = sim_keep(m, tasks->runs, tasks->runs_count * sizeof *tasks->runs);
    for (uint32_t i = 0; i < tasks->runs_count; i++)
        runs[i].job.v = sim_template_other(s, runs[i].job.v);
    tasks->runs = runs;
}

struct sim_msg *sim_wire_up(struct sim *s, const struct sim_proc *p, const struct mr_ws_up *from)
{
    struct sim_msg *m = mr_alloc(sizeof *m);
    const struct mr_ws_memory memory = memory_of(m);
    struct mr_ws_up up = *from;
    struct mr_ws_register reg;
    struct mr_error e = {0};
    struct mr_buf wire;
    if (up.reg) {
        reg = *up.reg;
        register_fill(s, p, m, &reg);
        up.reg = &reg;
    }
    mr_buf_init(&wire, MR_MESSAGE_BYTES_MAX);
    mr_ws_encode_up(&up, &wire);
    s->figures.messages++;
    s->figures.wire_bytes += wire.n;
    if (mr_ws_decode_up(keep_bytes(m, &wire), &memory, &m->up, &e))
        sim_fail(s, "the worker's message: %s", e.text);
    if (up.reg) return m;
    plant_other(s, m);
    if (s->plant == PLANT_DONE && sim_chance(s, 50)) m->up.completed = (struct mr_ws_completed){0};
    return m;
}
