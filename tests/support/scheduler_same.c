#include "tests/support/scheduler_same.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <stdio.h>

#define WALL ((uint64_t)1700000000 * MR_SECOND)

static struct mr_str next(struct mr_str *rest, struct mr_sched_record_head *head)
{
    do {
        *head = (struct mr_sched_record_head){0};
        if (!rest->n) return (struct mr_str){0};
        memcpy(head, rest->p, sizeof *head);
        size_t n = sizeof *head + (size_t)mr_align_up(head->bytes, 8);
        mr_assert(n <= rest->n);
        *rest = mr_str_of(rest->p + n, rest->n - n);
    } while (head->type == MR_RECORD_EPOCH);
    return mr_str_of(rest->p - mr_align_up(head->bytes, 8), head->bytes);
}

static bool is_same(struct mr_str a, struct mr_str b, char why[128])
{
    struct mr_sched_record_head x, y;
    for (uint32_t i = 0;; i++) {
        struct mr_str p = next(&a, &x), q = next(&b, &y);
        if (!x.type && !y.type) return true;
        if (x.type == y.type && mr_str_eq(p, q)) continue;
        size_t at = 0;
        while (at < p.n && at < q.n && p.p[at] == q.p[at])
            at++;
        (void)snprintf(why, 128, "record %u: types %u and %u, %zu and %zu bytes, other at %zu", i,
            x.type, y.type, p.n, q.n, at);
        return false;
    }
}

/* Makes a core from `records` and writes its snapshot. */
static void read_again(
    const struct mr_sched_config *config, mr_time now, struct mr_str records, struct mr_buf *out)
{
    struct mr_arena arena;
    struct mr_sched_effects fx;
    struct mr_sched_record_head head;
    mr_arena_init(&arena, mr_sched_arena_bytes(config));
    mr_sched_effects_init(&fx, config->workers_max, config->stores_max);
    struct mr_sched *s = mr_sched_new(config, &arena);
    struct mr_sched_event ev = {.type = MR_SCHED_RECORD, .wall_ns = WALL + now};
    do {
        ev.record.bytes = next(&records, &head);
        ev.record.type = head.type;
        ev.sequence++;
        if (!head.type) ev.type = MR_SCHED_RECOVERED;
        mr_sched_step(s, now, &ev, &fx);
    } while (head.type);
    mr_sched_check(s);
    mr_sched_snapshot(s, out);
    mr_sched_free(&s);
    mr_sched_effects_fini(&fx);
    mr_arena_fini(&arena);
}

bool sched_is_same_when_read_again(
    const struct mr_sched *s, const struct mr_sched_config *config, mr_time now, char why[128])
{
    struct mr_buf first, second;
    mr_buf_init(&first, (size_t)1 << 30);
    mr_buf_init(&second, (size_t)1 << 30);
    mr_sched_snapshot(s, &first);
    read_again(config, now, mr_buf_str(&first), &second);
    bool same = is_same(mr_buf_str(&first), mr_buf_str(&second), why);
    mr_buf_fini(&first);
    mr_buf_fini(&second);
    return same;
}
