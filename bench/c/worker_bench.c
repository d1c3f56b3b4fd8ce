/* Measures the worker without a scheduler: its core alone, and the core with real executors and
 * operators.
 *     worker_bench [TASKS]
 * Prints tasks/s for independent empty tasks and for chains, and how many tasks the core put into a
 * strand: a list of tasks that one executor runs in order. */
#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/inbox.h"
#include "services/worker/core/core.h"
#include "services/worker/exec/executor.h"

#include <stdio.h>
#include <stdlib.h>

#define BATCH 1000u /* tasks in one message */
#define JOB ((mr_job_id){7})

struct bench {
    struct mr_worker *w;
    struct mr_worker_effects fx;
    struct mr_inbox *inbox;
    struct mr_executor_env env;
    /* NULL: there are no executors, and run_here ends all tasks at once */
    struct mr_executor **executors;
    uint32_t slots;
    uint64_t done;
    uint64_t strands;
    struct mr_strand *ready[4096];
    uint32_t ready_count;
    uint64_t in_flight;
};

static void on_report(void *ctx, const struct mr_run_report *r)
{
    struct bench *b = ctx;
    (void)mr_inbox_push_wait(b->inbox, r, MR_NEVER);
}

static void perform(struct bench *b)
{
    for (uint32_t i = 0; i < b->fx.count; i++) {
        const struct mr_worker_effect *e = &b->fx.p[i];
        if (e->kind == MR_WORKER_SEND) b->done += e->send->completed.tasks.count;
        if (e->kind != MR_WORKER_START) continue;
        b->strands++;
        if (b->executors) {
            mr_executor_give(b->executors[e->strand->slot], mr_run_new(e->strand));
        } else {
            b->ready[b->ready_count++] = e->strand;
        }
    }
    b->fx.count = 0;
}

static void step(struct bench *b, const struct mr_worker_event *ev)
{
    mr_worker_step(b->w, mr_clock_now(), ev, &b->fx);
    /* The effect MR_WORKER_TAKE (take back a strand's tasks that have not begun) is not performed,
     * because all strands of this benchmark are alike and end soon. */
}

static void turn(struct bench *b)
{
    struct mr_worker_event ev = {.kind = MR_WORKER_TURN, .turn = {.may_send = true}};
    step(b, &ev);
    perform(b);
}

static void connect(struct bench *b)
{
    static const struct mr_str names[] = {MR_STR_INIT("inc")};
    struct mr_worker_event ev = {.kind = MR_WORKER_CONNECTED};
    turn(b);
    step(b, &ev);
    turn(b);
    struct mr_ws_registered reg = {.incarnation = 1, .epoch = 1, .heartbeat_ns = MR_SECOND};
    struct mr_ws_down down = {.registered = &reg, .ops = names, .ops_count = 1};
    ev = (struct mr_worker_event){.kind = MR_WORKER_MESSAGE, .message = &down};
    step(b, &ev);
}

/* Assigns `n` tasks, of which the first has the index `first`. In a chain, each task uses up the
 * value of the task before it. */
static void assign(struct bench *b, uint32_t first, uint32_t n, bool chain)
{
    static uint32_t index[BATCH], attempt[BATCH], op[BATCH], args_bytes[BATCH], order[BATCH];
    static uint32_t inputs_count[BATCH], inputs[BATCH], last_use[BATCH];
    static char args[BATCH * 8];
    struct mr_ws_run run = {.job = JOB, .count = n};
    uint32_t inputs_total = 0;
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool has_input = chain && first + i;
        static const unsigned char literal[] = {0x91, 0x01};
        static const unsigned char input[] = {0x91, 0xd6, 0x01, 0, 0, 0, 0};
        index[i] = order[i] = first + i;
        attempt[i] = op[i] = 1;
        inputs_count[i] = has_input;
        args_bytes[i] = has_input ? sizeof input : sizeof literal;
        memcpy(args + at, has_input ? input : literal, args_bytes[i]);
        at += args_bytes[i];
        if (!has_input) continue;
        last_use[inputs_total] = inputs_total;
        inputs[inputs_total++] = first + i - 1;
    }
    struct mr_ws_down down = {.tasks = {.runs = &run,
                                  .index = index,
                                  .attempt = attempt,
                                  .op = op,
                                  .args = mr_str_of(args, at),
                                  .args_bytes = args_bytes,
                                  .inputs_count = inputs_count,
                                  .inputs = inputs,
                                  .last_use = last_use,
                                  .order = order,
                                  .runs_count = 1,
                                  .count = n,
                                  .inputs_total = inputs_total,
                                  .last_use_count = inputs_total}};
    struct mr_error e;
    mr_assert(!mr_ws_down_check(&down, &e));
    struct mr_worker_event ev = {.kind = MR_WORKER_MESSAGE, .message = &down};
    step(b, &ev);
}

static void run_here(struct bench *b)
{
    static const char one = 2;
    for (uint32_t i = 0; i < b->ready_count; i++) {
        struct mr_strand *s = b->ready[i];
        for (uint32_t k = 0; k < s->count; k++) {
            s->items[k].result = (struct mr_strand_result){.end = MR_STRAND_DONE,
                .pack = {&one, 1},
                .started_ns = 1,
                .duration_ns = 300,
                .cpu_ns = 300};
        }
        struct mr_worker_event ev = {.kind = MR_WORKER_REPORT, .report = {s->id, s->count, true}};
        step(b, &ev);
    }
    b->ready_count = 0;
}

static void run_there(struct bench *b)
{
    struct mr_run_report reports[64];
    size_t n = mr_inbox_wait(b->inbox, MR_NEVER, reports, MR_ARRAY_LEN(reports));
    for (size_t i = 0; i < n; i++) {
        struct mr_run *run = reports[i].run;
        struct mr_worker_event ev = {
            .kind = MR_WORKER_REPORT, .report = {run->id, reports[i].done, reports[i].last}};
        if (reports[i].last || reports[i].done > run->reported) step(b, &ev);
        run->reported = reports[i].done;
        if (reports[i].last) mr_run_free(&run);
    }
}

static void release_all(struct bench *b)
{
    mr_job_id job = JOB;
    struct mr_ws_down down = {.forget_jobs = &job, .forget_jobs_count = 1};
    struct mr_worker_event ev = {.kind = MR_WORKER_MESSAGE, .message = &down};
    step(b, &ev);
}

static double run(struct bench *b, uint32_t tasks, bool chain)
{
    uint64_t before = b->done;
    uint32_t sent = 0;
    b->strands = 0;
    mr_time start = mr_clock_now();
    while (b->done - before < tasks) {
        while (sent < tasks && sent - (b->done - before) < 4 * BATCH) {
            assign(b, sent, MR_MIN(BATCH, tasks - sent), chain);
            sent += MR_MIN(BATCH, tasks - sent);
        }
        turn(b);
        if (b->executors) {
            run_there(b);
        } else {
            run_here(b);
        }
        turn(b);
    }
    double seconds = (double)(mr_clock_now() - start) / 1e9;
    release_all(b);
    return seconds;
}

static void measure(const char *what, uint32_t slots, bool real, bool chain, uint32_t tasks)
{
    static const struct mr_worker_op ops[] = {{.name = MR_STR_INIT("inc"), .cost_ns = 200}};
    struct mr_registry *registry = mr_registry_new();
    const struct mr_op_desc *inc = mr_registry_find(registry, MR_STR("inc"));
    struct mr_worker_config c = {.slots = slots,
        .tasks_max = 1 << 20,
        .values_max = 1 << 22,
        .outbox_max = 1 << 20,
        .bytes_max = (uint64_t)1 << 30,
        .prefetch_bytes = 1 << 20,
        .ops = ops,
        .ops_count = 1};
    struct mr_roots roots;
    mr_roots_init(&roots);
    struct bench b = {.w = mr_worker_new(&c), .slots = slots};
    b.inbox = mr_inbox_new(4096, sizeof(struct mr_run_report));
    b.env = (struct mr_executor_env){.ops = &inc,
        .ops_count = 1,
        .roots = &roots,
        .scratch_bytes_max = 1 << 20,
        .store_address = "",
        .report = on_report,
        .ctx = &b};
    if (real) {
        b.executors = mr_alloc_array(slots, sizeof *b.executors);
        for (uint32_t i = 0; i < slots; i++)
            b.executors[i] = mr_executor_start(&b.env, i);
    }
    connect(&b);
    double best = 1e9, worst = 0;
    for (int i = 0; i < 5; i++) {
        double s = run(&b, tasks, chain);
        best = MR_MIN(best, s);
        worst = MR_MAX(worst, s);
    }
    printf("%-34s %u slots  best %6.2f M/s  worst %6.2f M/s  %6.0f ns/task  %.0f tasks/strand\n",
        what, slots, tasks / best / 1e6, tasks / worst / 1e6, best * 1e9 / tasks,
        (double)tasks / (double)MR_MAX(b.strands, (uint64_t)1));
    for (uint32_t i = 0; real && i < slots; i++)
        mr_executor_stop(&b.executors[i]);
    mr_release(b.executors);
    mr_inbox_free(&b.inbox);
    mr_worker_free(&b.w);
    mr_worker_effects_fini(&b.fx);
    mr_registry_free(&registry);
    mr_roots_fini(&roots);
}

int main(int argc, char **argv)
{
    uint32_t tasks = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 200000;
    if (!tasks) return 2;
    measure("core, empty tasks", 1, false, false, tasks);
    measure("core, chain", 1, false, true, tasks);
    measure("with executors, inc of a literal", 1, true, false, tasks);
    measure("with executors, inc of a literal", 2, true, false, tasks);
    measure("with executors, chain of inc", 1, true, true, tasks);
    return 0;
}
