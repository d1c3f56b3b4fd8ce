/* Measures the scheduler's core alone: how many tasks a second it sends and completes, with workers
 * that answer at once, and how much memory a task takes. There is no network, and the journal stays
 * in memory.
 *     sched_bench [TASKS] [WORKERS] [wide|chain|tree|chains|diamonds] [told]
 * In `chains` (of ten tasks) and `diamonds`, workers keep only the value of the last task of a
 * chain or diamond and report the other values as used up, as a worker that fuses tasks does; with
 * `told`, they report all values. A task changes its state at least four times, to waiting, ready,
 * running and done, and to released if it is no target. So the core makes at least four times as
 * many changes a second as it completes tasks. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/pack.h"
#include "graph/build/builder.h"
#include "services/scheduler/core/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct bench {
    struct mr_sched *s;
    struct mr_sched_effects fx;
    mr_time now;
    uint64_t sequence, done;
    size_t journal_at; /* bytes of the effects' journal that were read */
    uint32_t *inline_bytes, *outcome, *attempt;
    bool is_fusing;
    uint64_t *started, *duration;
    unsigned char *values;
    size_t room;
};

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool find_op(const void *ctx, struct mr_str op, struct mr_graph_op_info *out)
{
    (void)ctx;
    (void)op;
    *out = (struct mr_graph_op_info){.any_positional = true};
    return true;
}

static struct mr_graph *graph_make(uint32_t tasks, const char *shape)
{
    struct mr_builder *b = mr_builder_new();
    struct mr_graph *g = NULL;
    struct mr_error e = {0};
    uint32_t *at = mr_alloc_array(tasks, sizeof *at);
    bool is_chain = !strcmp(shape, "chain"), is_tree = !strcmp(shape, "tree");
    bool is_chains = !strcmp(shape, "chains"), is_diamonds = !strcmp(shape, "diamonds");
    int err = 0;
    for (uint32_t i = 0; i < tasks && !err; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "key-%08u", i);
        err = mr_builder_node(b, mr_str(key), &at[i], &e);
        if (!err) err = mr_builder_task(b, at[i], MR_STR("inc"), &e);
        uint32_t half = tasks / 2, inputs = is_chain ? i > 0 : is_tree && i >= half ? 2 : 0;
        uint32_t from[2] = {
            is_chain ? i - 1 : MR_MIN(2 * (i - half), i - 1), MR_MIN(2 * (i - half) + 1, i - 1)};
        if (is_chains) inputs = i % 10 > 0, from[0] = i - 1;
        if (is_diamonds && i % 4) inputs = 1, from[0] = i - i % 4;
        if (is_diamonds && i % 4 == 3) inputs = 2, from[0] = i - 2, from[1] = i - 1;
        mr_pack_list(mr_builder_args(b), inputs + 1);
        mr_pack_uint(mr_builder_args(b), i);
        for (uint32_t k = 0; k < inputs && !err; k++)
            err = mr_builder_input(b, at[from[k]], &e);
        if (!err) err = mr_builder_task_end(b, &e);
        bool is_end = (!is_chains || i % 10 == 9) && (!is_diamonds || i % 4 == 3);
        if (!err && !is_chain && !is_tree && is_end) err = mr_builder_target(b, at[i], &e);
    }
    if (!err) err = mr_builder_target(b, at[tasks - 1], &e);
    const struct mr_graph_catalogue catalogue = {.find = find_op};
    if (!err) err = mr_graph_build(&b, &catalogue, &g, &e);
    if (err) MR_PANIC("%s", e.text);
    mr_release(at);
    return g;
}

static void step(struct bench *b, struct mr_sched_event *ev)
{
    mr_sched_step(b->s, b->now, ev, &b->fx);
    const unsigned char *p = b->fx.journal.p;
    for (size_t at = b->journal_at; at < b->fx.journal.n;) {
        struct mr_sched_record_head h;
        memcpy(&h, p + at, sizeof h);
        b->sequence = h.sequence;
        at += sizeof h + mr_align_up(h.bytes, 8);
        b->journal_at = at;
    }
}

static void turn(struct bench *b)
{
    uint64_t sequence = b->sequence;
    struct mr_sched_event tick = {.type = MR_SCHED_TICK};
    mr_sched_effects_clear(&b->fx);
    b->journal_at = 0;
    step(b, &tick);
    struct mr_sched_event acked = {.type = MR_SCHED_JOURNAL_ACKED, .sequence = b->sequence};
    if (b->sequence != sequence) mr_sched_step(b->s, b->now, &acked, &b->fx);
}

/* True: the message has all tasks that use the value of this row's task, so the worker uses the
 * value up. The tasks of one chain or diamond are adjacent rows. */
static bool is_used_up(const struct mr_sched_rows *r, uint32_t row)
{
    const uint32_t *index = mr_sched_column(r, MR_COLUMN_INDEX);
    uint32_t uses = mr_sched_cell(r, MR_COLUMN_USES, row);
    uint32_t last = row + uses + 1; /* the first row of a diamond has 2 uses, the inner ones 1 */
    if (!uses) return false;
    last = MR_MIN(last, r->count) - 1;
    return last > row && index[last] == index[row] + (last - row);
}

static void room_make(struct bench *b, uint32_t n)
{
    while (b->room < n) {
        size_t room = b->room ? 2 * b->room : 4096;
        b->inline_bytes = mr_grow(b->inline_bytes, b->room * 4, room * 4);
        b->outcome = mr_grow(b->outcome, b->room * 4, room * 4);
        b->attempt = mr_grow(b->attempt, b->room * 4, room * 4);
        b->started = mr_grow(b->started, b->room * 8, room * 8);
        b->duration = mr_grow(b->duration, b->room * 8, room * 8);
        b->values = mr_grow(b->values, b->room, room);
        for (size_t i = b->room; i < room; i++) {
            b->attempt[i] = b->inline_bytes[i] = 1;
            b->duration[i] = MR_US;
        }
        b->room = room;
    }
}

/* Answers for a worker: reports that all tasks which the worker was just sent are done, each after
 * a microsecond. */
static void answer(struct bench *b, uint32_t slot, const struct mr_sched_batch *x)
{
    const struct mr_sched_rows *r = &x->tasks;
    const uint32_t *attempt = mr_sched_column(r, MR_COLUMN_ATTEMPT);
    room_make(b, r->count);
    struct mr_sched_event ev = {.type = MR_SCHED_WORKER_MESSAGE};
    uint32_t bytes = r->count;
    for (uint32_t i = 0; b->is_fusing && i < r->count; i++) {
        bool is_gone = is_used_up(r, i);
        b->outcome[i] = is_gone ? MR_OUTCOME_USED_UP : MR_OUTCOME_OK;
        b->inline_bytes[i] = !is_gone;
        bytes -= is_gone;
    }
    ev.slot = slot;
    ev.incarnation = x->incarnation;
    ev.message.completed = (struct mr_ws_completed){
        .tasks = {r->runs.p, r->runs.count, mr_sched_column(r, MR_COLUMN_INDEX),
            attempt ? attempt : b->attempt, r->count},
        .outcome = b->is_fusing ? b->outcome : NULL,
        .inline_bytes = b->inline_bytes,
        .inlined = mr_str_of(b->values, bytes),
        .base_ns = b->now,
        .started_ns = b->started,
        .duration_ns = b->duration};
    step(b, &ev);
    b->done += r->count;
}

/* Answers the batches that the scheduler's shell would send at the end of one round of its event
 * loop. */
static void flush(struct bench *b)
{
    for (size_t i = 0; i < b->fx.dirty_workers.n / sizeof(uint32_t); i++) {
        uint32_t slot;
        memcpy(&slot, b->fx.dirty_workers.p + i * sizeof slot, sizeof slot);
        struct mr_sched_batch *x = b->fx.worker[slot];
        b->fx.worker[slot] = NULL; /* a new batch may begin while this one is answered */
        if (x && x->tasks.count) answer(b, slot, x);
        mr_sched_batch_put(&b->fx, &x);
    }
}

static void workers_join(struct bench *b, uint32_t workers)
{
    const struct mr_ws_operator inc = {.name = MR_STR("inc"), .deterministic = true};
    for (uint32_t i = 0; i < workers; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "w%u", i);
        struct mr_sched_event ev = {.type = MR_SCHED_WORKER_REGISTER};
        ev.session = i + 1;
        ev.worker = (struct mr_ws_register){.name = mr_str(name),
            .slots = 1,
            .memory_bytes = (uint64_t)1 << 40,
            .time_ns = b->now,
            .ops = &inc,
            .ops_count = 1};
        step(b, &ev);
        mr_sched_batch_put(&b->fx, &b->fx.worker[i]);
    }
    struct mr_sched_event acked = {.type = MR_SCHED_JOURNAL_ACKED, .sequence = b->sequence};
    mr_sched_step(b->s, b->now, &acked, &b->fx);
}

static uint64_t resident_kib(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (uint64_t)u.ru_maxrss;
}

int main(int argc, char **argv)
{
    uint32_t tasks = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000;
    uint32_t workers = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 10;
    const char *shape = argc > 3 ? argv[3] : "wide";
    struct bench b = {.now = MR_SECOND};
    b.is_fusing = argc <= 4 && (!strcmp(shape, "chains") || !strcmp(shape, "diamonds"));
    struct mr_arena arena;
    struct mr_sched_config c;
    mr_sched_config_default(&c);
    c.workers_max = MR_MAX(c.workers_max, workers);
    c.lease = 3600 * MR_SECOND;
    c.unacked_bytes_max = (uint64_t)1 << 40;
    mr_arena_init(&arena, mr_sched_arena_bytes(&c));
    b.s = mr_sched_new(&c, &arena);
    mr_sched_effects_init(&b.fx, c.workers_max, c.stores_max);
    struct mr_sched_event ev = {.type = MR_SCHED_RECOVERED};
    step(&b, &ev);
    workers_join(&b, workers);
    struct mr_graph *g = graph_make(tasks, shape);
    size_t graph_bytes = mr_graph_bytes_held(g);
    uint64_t before = resident_kib();
    struct mr_sched_event submit = {.type = MR_SCHED_SUBMIT};
    submit.submit.graph = g;
    double t0 = seconds();
    step(&b, &submit);
    double t1 = seconds();
    uint64_t turns = 0;
    for (; b.done < tasks; turns++) {
        uint64_t done = b.done;
        b.now += 10 * MR_US;
        turn(&b);
        flush(&b);
        if (b.done == done && turns > 1000000) MR_PANIC("nothing moves");
    }
    double t2 = seconds();
    printf(
        "%s: %u tasks, %u workers: submit %.3f s, run %.3f s, %.2f M tasks/s, %.0f ns a task, %.1f M moves/s; "
        "graph %.0f B a task, the rest at most %.0f B a task\n",
        shape, tasks, workers, t1 - t0, t2 - t1, tasks / (t2 - t1) / 1e6, (t2 - t1) / tasks * 1e9,
        4 * (tasks / (t2 - t1)) / 1e6, (double)graph_bytes / tasks,
        (double)(resident_kib() - before) * 1024 / tasks);
    mr_sched_free(&b.s);
    mr_sched_effects_fini(&b.fx);
    mr_arena_fini(&arena);
    mr_release(b.inline_bytes);
    mr_release(b.started);
    mr_release(b.outcome);
    mr_release(b.attempt);
    mr_release(b.duration);
    mr_release(b.values);
    return 0;
}
