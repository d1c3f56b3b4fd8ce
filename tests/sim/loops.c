/* Jobs with loops: how they are made, and the values that they must have. Also checks that the end
 * of a loop does not change in one life of the scheduler. After a restart only those ends must stay
 * the same that the journal has. */
#include "tests/sim/sim.h"

#include "graph/build/unroll.h"

#include <stdio.h>

struct body {
    struct sim *s;
    struct mr_builder *b;
    char name[16];
};

static uint32_t node(struct body *w, const char *key)
{
    char text[48];
    uint32_t at = 0;
    (void)snprintf(text, sizeof text, "%s[0].%s", w->name, key);
    int err = mr_builder_node(w->b, mr_str(text), &at, NULL);
    mr_assert(!err);
    return at;
}

static void task(struct body *w, uint32_t at, enum sim_op op, const uint32_t *in, uint32_t n)
{
    int err = mr_builder_task(w->b, at, mr_str(sim_ops[op]), NULL);
    mr_assert(!err);
    mr_pack_list(mr_builder_args(w->b), n + 1);
    mr_pack_int(mr_builder_args(w->b), (int64_t)sim_below(w->s, 1u << 30));
    for (uint32_t i = 0; i < n; i++)
        (void)mr_builder_input(w->b, in[i], NULL);
    err = mr_builder_task_end(w->b, NULL);
    mr_assert(!err);
    struct mr_task_options o = {.pure = op != OP_DICE};
    if (op == OP_DICE) o.given |= MR_OPTION_PURE;
    if (op == OP_FLAKY) o.given |= MR_OPTION_RETRIES, o.retries = (uint32_t)sim_below(w->s, 6);
    if (o.given) err = mr_builder_options(w->b, at, &o, NULL);
    mr_assert(!err);
}

static enum sim_op plain_op(struct sim *s)
{
    if (sim_chance(s, 30)) return sim_chance(s, 2) ? OP_DICE : OP_FLAKY;
    return (enum sim_op)sim_below(s, OP_LARGE + 1);
}

/* Makes a loop. A round computes parts from a value outside the loop and from the carried values,
 * then the next values to carry, then the condition. Stores the nodes with the loop's results in
 * `out` and returns how many they are. */
uint32_t sim_loop_make(struct sim *s, struct mr_builder *b, uint32_t spec, uint32_t out[2])
{
    struct body w = {.s = s, .b = b};
    uint32_t in[8], n = 1 + (uint32_t)sim_below(s, 5);
    /* true: the loop takes so long that the journal gets records while the loop runs */
    bool is_slow = sim_chance(s, 4);
    struct mr_repeat_carry carry[2] = {{.name = MR_STR("s")}, {.name = MR_STR("t")}};
    (void)snprintf(w.name, sizeof w.name, "l%" PRIu32, spec);
    struct mr_repeat r = {.name = mr_str(w.name),
        .rounds = 1 + (uint32_t)sim_below(s, 12),
        .carry = carry,
        .carry_count = sim_chance(s, 3) ? 2 : 1,
        .until = MR_NODE_NONE};
    int err = mr_repeat_declare(b, &r, NULL);
    mr_assert(!err);
    uint32_t outside = node(&w, "x"); /* a node before the body, outside the loop */
    task(&w, outside, OP_LARGE, NULL, 0);
    carry[0].first = node(&w, "s");
    carry[1].first = node(&w, "t");
    task(&w, carry[0].first, OP_SMALL, NULL, 0);
    task(&w, carry[1].first, OP_SMALL, NULL, 0);
    r.from = carry[1].first + 1;
    for (uint32_t i = 0; i < n; i++) {
        char key[16];
        uint32_t of[2] = {outside, carry[i % r.carry_count].first};
        (void)snprintf(key, sizeof key, "p%" PRIu32, i);
        in[i] = node(&w, key);
        task(&w, in[i], is_slow && !i ? OP_LONG : plain_op(s), of, 2);
    }
    carry[0].next = node(&w, "n");
    task(&w, carry[0].next, plain_op(s), in, n);
    carry[1].next = sim_chance(s, 2) ? carry[0].first : in[0];
    if (!sim_chance(s, 8)) {
        r.until = node(&w, "u");
        task(&w, r.until, OP_UNTIL, &carry[0].next, 1);
    }
    struct mr_error e = {0};
    err = mr_builder_repeat(b, &r, &e);
    if (err) sim_fail(s, "the loop cannot be built: %s", e.text);
    char text[32];
    (void)snprintf(text, sizeof text, "%s.s", w.name);
    (void)mr_builder_node(b, mr_str(text), &out[0], NULL);
    (void)snprintf(text, sizeof text, "%s.count", w.name);
    (void)mr_builder_node(b, mr_str(text), &out[1], NULL);
    return 2;
}

/* Returns the last round, by the expected values of the condition `until`. `exit` gets the fate of
 * the conditions (whether they may fail) and their taint (whether they depend on random values). */
static uint32_t last_round(
    const struct mr_graph_loop *l, const struct sim_task *task, struct sim_task *exit)
{
    uint32_t r = 0;
    for (; r + 1 < l->rounds; r++) {
        const struct sim_task *t = &task[l->until[r]];
        exit->fate = MR_MAX(exit->fate, t->fate);
        exit->is_tainted |= t->is_tainted;
        if (t->expect) break;
    }
    return r;
}

bool sim_loop_expect(const struct mr_graph *g, uint32_t i, struct sim_task *task)
{
    struct sim_task *t = &task[i];
    for (uint32_t l = 0; l < g->loops_count; l++)
        for (uint32_t k = 0; k < g->loops[l].exits_count; k++) {
            uint32_t n;
            if (g->loops[l].exits[k] != i) continue;
            uint32_t round = last_round(&g->loops[l], task, t);
            const uint32_t *in = mr_graph_inputs(g, i, &n);
            t->expect = (uint64_t)(round + 1) | 1ull << 63;
            if (mr_graph_is_count(g, &g->loops[l], i)) return true;
            t->expect = task[in[round]].expect;
            t->fate = MR_MAX(t->fate, task[in[round]].fate);
            t->is_tainted |= task[in[round]].is_tainted;
            /* With random values, any round may be the last. */
            for (uint32_t r = 0; r < n && t->is_tainted; r++)
                t->fate = MR_MAX(t->fate, task[in[r]].fate);
            return true;
        }
    return false;
}

/* Returns the value of the operator `identity`: the value of its input, or, without inputs, a value
 * made from the number of rounds. */
uint64_t sim_loop_identity(struct mr_str args, const uint64_t *in, uint32_t n)
{
    struct mr_pack_reader r = mr_pack_read(args);
    struct mr_pack_item item = {0};
    if (n) return in[0];
    (void)mr_pack_next(&r, &item);
    (void)mr_pack_next(&r, &item);
    return (uint64_t)item.i | 1ull << 63;
}

/* ---- where they ended ------------------------------------------------------------------------ */

struct loop_record { /* laid out as in services/scheduler/core/state/record.c */
    uint64_t job;
    uint32_t loop, at, stop;
};

static struct loop_record read_record(struct mr_str record)
{
    struct loop_record t;
    mr_assert(record.n == 20);
    memcpy(&t.job, record.p, 8);
    memcpy(&t.loop, record.p + 8, 12);
    return t;
}

/* Called when a scheduler begins to read the journal: a loop whose end the journal does not have
 * may end in another round. */
void sim_loop_forget(struct sim *s)
{
    for (uint32_t i = 0; i < s->jobs_count; i++)
        memset(s->jobs[i].ends, 0, sizeof s->jobs[i].ends);
}

void sim_loop_record(struct sim *s, struct mr_str record, bool is_read)
{
    struct loop_record t = read_record(record);
    struct sim_job *j = sim_job_of(s, t.job);
    if (!j || t.loop >= LOOPS_SEEN) return;
    uint32_t *end = &j->ends[t.loop], now = t.stop == NONE ? 0 : t.stop + 1;
    if (is_read && now) s->count.ends_read++;
    if (is_read && !now && t.at) s->count.rounds_read++;
    if (!is_read && *end && *end != now && !j->was_retried)
        sim_fail(s,
            "I32: loop %" PRIu32 " of job %" PRIx64 " had ended after %" PRIu32
            " rounds, and now after %" PRIu32,
            t.loop, t.job, *end, now);
    *end = now;
}

/* Replaces a record that ends a loop by one that a scheduler would have written if the loop went on
 * (PLANT_LOOP). Returns any other record unchanged. */
struct mr_str sim_loop_plant(struct sim *s, struct mr_str record, unsigned char out[24])
{
    struct loop_record t = read_record(record);
    if (s->plant != PLANT_LOOP || t.stop == NONE) return record;
    t.at = t.stop + 1;
    t.stop = NONE;
    memcpy(out, &t.job, 8);
    memcpy(out + 8, &t.loop, 12);
    return mr_str_of(out, 20);
}
