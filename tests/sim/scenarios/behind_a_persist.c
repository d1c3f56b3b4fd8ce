/* A task of a short operator persists its value, which takes seconds. The scheduler must not count
 * the tasks behind it as nearly done: an idle worker has to get them. */
#include "tests/sim/scenarios/scenario.h"

#define BEAT (500 * MR_MS)

/* Sends a heartbeat of the worker: the task `key` has run since `begun`. */
static void beat(struct rig *r, struct rig_worker w, uint64_t job, const char *key, mr_time begun)
{
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    uint32_t index = rig_index(r, job, key), attempt = rig_sent(r, w, job, index);
    uint64_t ns = r->now - begun;
    const struct mr_ws_heartbeat h = {.time_ns = r->now,
        .running = 1,
        .running_tasks = {&run, 1, &index, &attempt, 1},
        .running_ns = &ns};
    struct mr_ws_up m = {.heartbeat = &h};
    rig_message(r, w, &m);
}

static void what_waits_behind_a_task_that_persists_goes_to_an_idle_worker(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker busy = rig_join(r, &(struct rig_spec){.name = "busy"});
    uint64_t first = rig_submit(r, "{\"tasks\":{\"a\":{\"op\":\"f\"},\"b\":{\"op\":\"g\"}}}");
    /* The scheduler learns that both operators are short. */
    for (int i = 0; i < 2; i++) {
        const char *key = i ? "b" : "a";
        uint32_t attempt = rig_sent(r, busy, first, rig_index(r, first, key));
        rig_done_as(
            r, busy, first, key, attempt, MR_OUTCOME_OK, (mr_object_id){0, 0}, 1, 20 * MR_US);
    }
    uint64_t job = rig_submit(r, "{\"tasks\":{\"long\":{\"op\":\"f\",\"persist\":\"name\"},"
                                 "\"b\":{\"op\":\"g\"},\"c\":{\"op\":\"g\"},\"d\":{\"op\":\"g\"}},"
                                 "\"priority\":0}");
    assert_true(rig_attempt(r, busy, job, "long") && rig_attempt(r, busy, job, "d"));
    mr_time begun = r->now;
    struct rig_worker idle = rig_join(r, &(struct rig_spec){.name = "idle"});
    for (int i = 0; i < 4; i++) {
        rig_pass(r, BEAT);
        beat(r, busy, job, "long", begun);
        rig_heartbeat(r, idle);
    }
    uint32_t asked = rig_count(r, SAID_STEAL, busy, job, NULL);
    assert_true(asked >= 1);
    assert_int_equal(rig_count(r, SAID_STEAL, busy, job, "long"), 0); /* "long" runs */
    static const char *const keys[] = {"b", "c", "d"};
    for (uint32_t i = 0; i < 3; i++)
        if (rig_count(r, SAID_STEAL, busy, job, keys[i]))
            rig_tell(r, busy, TOLD_GIVEN, job, keys[i]);
    rig_pass(r, MR_MS);
    assert_int_equal(rig_count(r, SAID_TASK, idle, job, NULL), asked);
}

SCENARIO(what_waits_behind_a_task_that_persists_goes_to_an_idle_worker)
