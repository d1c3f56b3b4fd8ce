/* The scheduler's core reads records back as from its journal. After any records in any order, the
 * core's state must satisfy its invariants, and the core must go on working. The input is records:
 * type (u8), length (u16, little endian), payload. A record of type 0 has no payload: the target
 * puts a valid graph there, so that later records refer to a job that exists. */
#include "base/alloc.h"
#include "graph/bytes/bytes.h"
#include "graph/json/json.h"
#include "services/scheduler/core/core.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool any_op(const void *ctx, struct mr_str op, struct mr_graph_op_info *out)
{
    (void)ctx;
    (void)op;
    *out = (struct mr_graph_op_info){.any_positional = true, .any_named = true};
    return true;
}

/* Gives the core the records GRAPH and ACCEPTED of job `id`, as if read from the journal. */
static void replay_job(struct mr_sched *s, struct mr_sched_effects *fx, uint64_t id, mr_time now)
{
    static const char text[] =
        "{\"namespace\":\"n\",\"tasks\":{\"a\":{\"op\":\"f\",\"args\":[1]},"
        "\"b\":{\"op\":\"f\",\"args\":[{\"ref\":\"a\"}],\"retries\":2},"
        "\"c\":{\"op\":\"g\",\"args\":[{\"ref\":\"a\"},{\"ref\":\"b\"}],\"pure\":false},"
        "\"d\":{\"value\":7}},\"targets\":[\"c\",\"d\"]}";
    const struct mr_graph_catalogue catalogue = {.find = any_op};
    struct mr_graph *g = NULL;
    struct mr_buf record;
    mr_buf_init(&record, 1 << 20);
    if (mr_graph_from_json(mr_str(text), &catalogue, &g, NULL)) __builtin_trap();
    uint64_t head[2] = {id, 0};
    mr_buf_add(&record, head, sizeof head);
    if (mr_graph_to_bytes(g, &record, NULL)) __builtin_trap();
    uint64_t bytes = record.n - sizeof head;
    mr_graph_free(&g);
    struct mr_sched_event ev = {.type = MR_SCHED_RECORD, .wall_ns = now, .sequence = 1};
    ev.record.type = MR_RECORD_GRAPH;
    ev.record.bytes = mr_buf_str(&record);
    mr_sched_step(s, now, &ev, fx);
    const uint64_t accepted[6] = {id, bytes, 1, 0, 2, 3};
    uint32_t none = 0;
    mr_buf_clear(&record);
    mr_buf_add(&record, accepted, sizeof accepted);
    mr_buf_add(&record, &none, sizeof none);
    ev.record.type = MR_RECORD_ACCEPTED;
    ev.record.bytes = mr_buf_str(&record);
    mr_sched_step(s, now, &ev, fx);
    mr_buf_fini(&record);
}

static void replay_all(
    struct mr_sched *s, struct mr_sched_effects *fx, const uint8_t *data, size_t n)
{
    uint64_t jobs = 0;
    for (size_t at = 0; at + 3 <= n;) {
        uint8_t type = data[at] % 12;
        size_t bytes = (size_t)data[at + 1] | (size_t)(data[at + 2] & 3) << 8;
        at += 3;
        bytes = MR_MIN(bytes, n - at);
        if (!type) {
            if (jobs < 4) replay_job(s, fx, (uint64_t)1 << 32 | ++jobs, 1000);
            continue;
        }
        struct mr_sched_event ev = {.type = MR_SCHED_RECORD, .wall_ns = 1000, .sequence = 10 + at};
        ev.record.type = type;
        ev.record.bytes = mr_str_of(data + at, bytes);
        mr_sched_step(s, 1000, &ev, fx);
        mr_sched_effects_clear(fx);
        at += bytes;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mr_sched_config c;
    struct mr_sched_effects fx;
    struct mr_arena arena;
    struct mr_buf snapshot;
    mr_sched_config_default(&c);
    c.epoch = 2;
    c.tasks_max = 4096;
    c.jobs_max = 16;
    c.workers_max = 8;
    c.stores_max = 8;
    c.ops_max = 64;
    c.inline_blocks = 256;
    c.failures_max = 16;
    mr_arena_init(&arena, mr_sched_arena_bytes(&c));
    mr_sched_effects_init(&fx, c.workers_max, c.stores_max);
    struct mr_sched *s = mr_sched_new(&c, &arena);
    replay_all(s, &fx, data, n);
    struct mr_sched_event end = {.type = MR_SCHED_RECOVERED, .wall_ns = 1000, .sequence = 4000};
    mr_sched_step(s, 1000, &end, &fx);
    mr_sched_check(s);
    mr_time now = 1000;
    for (int i = 0; i < 50; i++) {
        struct mr_sched_event tick = {.type = MR_SCHED_TICK, .wall_ns = now};
        mr_sched_step(s, now, &tick, &fx);
        mr_sched_effects_clear(&fx);
        mr_sched_check(s);
        mr_time next = mr_sched_deadline(s);
        if (next == MR_NEVER) break;
        now = MR_MAX(next, now + 1);
    }
    mr_buf_init(&snapshot, 1 << 24);
    mr_sched_snapshot(s, &snapshot);
    mr_buf_fini(&snapshot);
    mr_sched_free(&s);
    mr_sched_effects_fini(&fx);
    mr_arena_fini(&arena);
    return 0;
}
