/* The stream between a worker and the scheduler, as bytes: each message is encoded by its sender
 * and decoded for its receiver, as in production. Bugs that are planted in the stream are here. */
#include "base/limits.h"
#include "services/scheduler/core/batch_message.h"
#include "tests/sim/sim.h"

#include <stdio.h>

static const uint32_t *uses_plant(
    struct sim *s, struct mr_virtual_message *m, const struct mr_ws_tasks *k)
{
    if (!k->uses || (s->plant != PLANT_USES && s->plant != PLANT_EARLY)) return k->uses;
    uint32_t *uses = mr_virtual_keep(m, k->uses, k->count * sizeof *uses);
    for (uint32_t i = 0; i < k->count; i++)
        uses[i] = s->plant == PLANT_USES ? 1 : uses[i] - (uses[i] > 1);
    return uses;
}

struct mr_virtual_message *sim_wire_down(
    struct sim *s, struct sim_session *x, const struct mr_sched_batch *b)
{
    struct mr_virtual_message *m = mr_virtual_message_new();
    const struct mr_ws_memory memory = mr_virtual_memory(m);
    struct mr_ws_down down;
    struct mr_error e = {0};
    size_t bytes = 0;
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
    int err = mr_virtual_down(m, &down, &bytes, &e);
    s->figures.messages++;
    s->figures.wire_bytes += bytes;
    if (err) sim_fail(s, "the scheduler's message: %s", e.text);
    return m;
}

/* Fills in what a worker's shell adds to Register. */
static void register_fill(
    struct sim *s, const struct sim_proc *p, struct mr_virtual_message *m, struct mr_ws_register *r)
{
    static const struct mr_ws_resource gpu = {MR_STR_INIT("gpu"), GPU};
    const struct sim_suspects *x = &s->suspects[p->name];
    struct mr_ws_operator *ops = mr_virtual_keep(m, NULL, OPS * sizeof *ops);
    char *text = mr_virtual_keep(m, NULL, 64);
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
static void plant_other(struct sim *s, struct mr_virtual_message *m)
{
    struct mr_ws_refs *tasks = &m->up.completed.tasks;
    if (s->plant != PLANT_OTHER || !sim_chance(s, 10)) return;
    struct mr_ws_run *runs =
        mr_virtual_keep(m, tasks->runs, tasks->runs_count * sizeof *tasks->runs);
    for (uint32_t i = 0; i < tasks->runs_count; i++)
        runs[i].job.v = sim_template_other(s, runs[i].job.v);
    tasks->runs = runs;
}

struct mr_virtual_message *sim_wire_up(
    struct sim *s, const struct sim_proc *p, const struct mr_ws_up *from)
{
    struct mr_virtual_message *m = mr_virtual_message_new();
    struct mr_ws_up up = *from;
    struct mr_ws_register reg;
    struct mr_error e = {0};
    size_t bytes = 0;
    if (up.reg) {
        reg = *up.reg;
        register_fill(s, p, m, &reg);
        up.reg = &reg;
    }
    int err = mr_virtual_up(m, &up, &bytes, &e);
    s->figures.messages++;
    s->figures.wire_bytes += bytes;
    if (err) sim_fail(s, "the worker's message: %s", e.text);
    if (up.reg) return m;
    plant_other(s, m);
    if (s->plant == PLANT_DONE && sim_chance(s, 50)) m->up.completed = (struct mr_ws_completed){0};
    return m;
}
