/* Measures how fast lib/account divides the time of slots (executor threads) into pieces, each of
 * one class, such as computing or waiting for a task.
 *     bench_account [tasks] [slots]
 * Prints the ns per task and the pieces per task for three graphs. In the first one, independent
 * tasks run back to back. In the second one, a chain runs on one slot, and the other slots wait. In
 * the third one, each task of a chain runs on the next slot. The times of the tasks are made up. */
#include "account/account.h"
#include "base/defs.h"
#include "host/clock.h"

#include <stdio.h>
#include <stdlib.h>

#define RUN 1000 /* ns that a task runs */
#define GAP 300  /* ns between a task and the one that needs it */

struct counted {
    struct mr_account_sums sums;
    uint64_t pieces;
};

static void count(void *ctx, const struct mr_account_piece *p)
{
    struct counted *c = ctx;
    c->pieces++;
    mr_account_sum(&c->sums, p);
}

/* Divides the time of `slots` slots into classes, and prints how long this takes. Without inputs,
 * the tasks run back to back on all slots. With inputs, each task starts GAP after the end of the
 * task before it. All these tasks run on slot 0, or with `moves` each one on the next slot. */
static void run(const char *name, uint32_t tasks, uint32_t slots, bool has_input, bool moves)
{
    struct counted c = {0};
    mr_time end = (mr_time)tasks * (RUN + GAP) + 1;
    const struct mr_account_config config = {
        .from = 1, .until = end + 1, .recent_max = 1u << 16, .sink = count, .ctx = &c};
    struct mr_account *a = mr_account_open(&config);
    for (uint32_t i = 0; i < slots; i++)
        mr_account_lane(a, i, 1, 1);
    mr_account_job(a, 0, 0, 1, 1);
    mr_time begun = mr_clock_now();
    for (uint32_t i = 0; i < tasks; i++) {
        uint32_t lane = has_input && !moves ? 0 : i % slots;
        mr_time at = has_input ? 1 + (mr_time)i * (RUN + GAP) : 1 + (mr_time)(i / slots) * RUN;
        const struct mr_account_task t = {.index = i,
            .last_input = has_input && i ? i - 1 : i,
            .lane = lane,
            .ready = at,
            .sent = at,
            .received = at,
            .started = at,
            .finished = at + RUN,
            .accounted = at + RUN + GAP / 2,
            .cpu_ns = RUN};
        mr_account_task(a, &t);
    }
    mr_account_job_over(a, 0, end, end);
    mr_account_close(&a);
    mr_duration took = mr_clock_now() - begun;
    uint64_t sum = 0;
    for (unsigned i = 0; i < MR_ACCOUNT_CLASSES; i++)
        sum += c.sums.ns[i];
    (void)printf("%-28s %8.1f ns a task %6.2f pieces a task, %6.3f s for %u tasks on %u slots%s\n",
        name, (double)took / tasks, (double)c.pieces / tasks, (double)took / 1e9, tasks, slots,
        sum == (uint64_t)slots * end ? "" : "  THE SUM IS WRONG");
}

int main(int argc, char **argv)
{
    uint32_t tasks = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000000;
    uint32_t slots = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 8;
    run("independent, back to back", tasks, slots, false, false);
    run("a chain on one slot", tasks, slots, true, false);
    run("a chain over all slots", tasks, slots, true, true);
    return 0;
}
