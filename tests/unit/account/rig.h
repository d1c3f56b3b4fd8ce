/* An account of slots for a test: it checks that the pieces of each slot cover its time once. Times
 * are in ms. */
#pragma once

#include "account/account.h"
#include "base/alloc.h"
#include "base/defs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define INPUTS_MAX 8
#define TASKS_MAX 4096
#define PIECES_MAX (1u << 20)
#define MS(t) ((mr_time)(t)*MR_MS)

static struct {
    uint32_t count, index[INPUTS_MAX]; /* the inputs */
    mr_time finished;
} tasks[TASKS_MAX];

static struct {
    struct mr_account *a;
    struct mr_account_sums sums;
    struct mr_account_piece *pieces;
    uint32_t count;
    mr_time from, until;
} at;

static inline void take(void *ctx, const struct mr_account_piece *p)
{
    (void)ctx;
    assert_true(p->from < p->to);
    assert_true(p->from >= at.from && p->to <= at.until);
    assert_true(at.count < PIECES_MAX);
    at.pieces[at.count++] = *p;
    mr_account_sum(&at.sums, p);
}

static inline void begin(mr_time from, mr_time until)
{
    const struct mr_account_config config = {
        .from = from, .until = until, .recent_max = 4096, .sink = take};
    memset(tasks, 0, sizeof tasks);
    mr_release(at.pieces);
    memset(&at, 0, sizeof at);
    at.from = from;
    at.until = until;
    at.pieces = mr_alloc_array(PIECES_MAX, sizeof *at.pieces);
    at.a = mr_account_open(&config);
}

/* Begins an account of the first 1,000 ms with slots that exist from the beginning on. */
static inline void begin_slots(uint32_t slots)
{
    begin(MS(1), MS(1001));
    for (uint32_t i = 0; i < slots; i++)
        mr_account_lane(at.a, i, MS(1), MS(1));
}

static inline int by_lane_and_time(const void *a, const void *b)
{
    const struct mr_account_piece *x = a, *y = b;
    if (x->lane != y->lane) return x->lane < y->lane ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Ends the account. The pieces of each slot cover the whole time once. */
static inline void end(uint32_t slots)
{
    mr_account_close(&at.a);
    qsort(at.pieces, at.count, sizeof *at.pieces, by_lane_and_time);
    uint32_t i = 0;
    for (uint32_t lane = 0; lane < slots; lane++) {
        mr_time to = at.from;
        for (; i < at.count && at.pieces[i].lane == lane; i++) {
            assert_true(at.pieces[i].from == to);
            to = at.pieces[i].to;
        }
        assert_true(to == at.until);
    }
    assert_int_equal(i, at.count);
}

static inline mr_duration ms_of(enum mr_account_class class)
{
    return (at.sums.ns[class] + MR_MS / 2) / MR_MS;
}

/* Returns a task that ran without any delay: ready, sent, received and started at once. */
static inline struct mr_account_task ran(uint32_t index, uint32_t lane, mr_time from, mr_time to)
{
    return (struct mr_account_task){.index = index,
        .lane = lane,
        .ready = MS(from),
        .sent = MS(from),
        .received = MS(from),
        .started = MS(from),
        .finished = MS(to),
        .accounted = MS(to),
        .cpu_ns = MS(to) - MS(from)};
}

static inline void needs(uint32_t index, uint32_t input)
{
    tasks[index].index[tasks[index].count++] = input;
}

/* Reports the task with its last input: the one that finished last. */
static inline void give(struct mr_account_task t)
{
    mr_time last = 0;
    t.last_input = t.index;
    for (uint32_t i = 0; i < tasks[t.index].count; i++) {
        uint32_t input = tasks[t.index].index[i];
        if (tasks[input].finished <= last) continue;
        last = tasks[input].finished;
        t.last_input = input;
    }
    tasks[t.index].finished = t.finished;
    mr_account_task(at.a, &t);
}

static inline int teardown(void **state)
{
    (void)state;
    mr_release(at.pieces);
    at.pieces = NULL;
    return 0;
}
