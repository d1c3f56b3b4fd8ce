/* The scheduler's core: all parts are cut from one large value before the next large value is made,
 * because the large values fill the memory. The tests have sizes on both sides of the limits of
 * this rule. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define R(key) "{\"ref\":\"" key "\"}"
#define MIB ((uint64_t)1 << 20)

/* Cuts parts from the values x0, x1 and x2. y0 and y1 each need one part of every value; y2 and y3
 * each need a further part of x0. In the graph's order, c01, the second part of x0, comes after x1
 * and x2. */
#define SHUFFLE(of_c03, targets)                                                                   \
    "{\"tasks\":{" T("x0", "f", "0", "") "," T("x1", "f", "1", "") "," T(                          \
        "x2", "f", "2", "") "," T("c00", "g", R("x0") ",0", "") "," T("c01", "g", R("x0") ",1",    \
        "") "," T("c02", "g", R("x0") ",2", "") "," T("c03", "g", R("x0") ",3",                    \
        of_c03) "," T("c10", "g", R("x1") ",0", "") "," T("c11", "g", R("x1") ",1",                \
        "") "," T("c20", "g", R("x2") ",0", "") "," T("c21", "g", R("x2") ",1", "") "," T("y0",    \
        "f", R("c00") "," R("c10") "," R("c20"), "") "," T("y1", "f",                              \
        R("c01") "," R("c11") "," R("c21"), "") "," T("y2", "f", R("c02"), "") "," T("y3", "f",    \
        R("c03"), "") "},\"targets\":[" targets "\"y0\",\"y1\",\"y2\",\"y3\"]}"

struct shuffle {
    uint64_t memory, value, part;
    const char *json; /* NULL: SHUFFLE */
};

/* Makes the first large value, x0, and its first part, c00. The worker is sent two tasks at a time.
 * Returns the rig. */
static struct rig *begin(struct shuffle d, struct rig_worker *w, uint64_t *job)
{
    struct mr_sched_config c;
    rig_config(&c);
    c.queue = 1;
    struct rig *r = rig_new_with(&c);
    r->store_memory = d.memory;
    rig_store(r, 0x51, "a");
    const struct rig_spec spec = {.name = "a", .node = "a", .slots = 1, .store = 0x51};
    *w = rig_join(r, &spec);
    static const char *const ops[] = {"f", "g", "h"};
    for (int i = 0; i < 3; i++) { /* runs each operator once, so that its run time is known */
        char json[64];
        (void)snprintf(json, sizeof json, "{\"tasks\":{\"w\":{\"op\":\"%s\"}}}", ops[i]);
        rig_done(r, *w, rig_submit(r, json), "w");
    }
    rig_forget_rows(r);
    *job = rig_submit(r, d.json ? d.json : SHUFFLE("", ""));
    r->object_bytes = d.value;
    (void)rig_done_object(r, *w, *job, "x0");
    r->object_bytes = d.part;
    rig_done_as(r, *w, *job, "c00", 1, MR_OUTCOME_OK, (mr_object_id){7, 1}, 0, MR_MS);
    return r;
}

/* Returns true if the scheduler sends task c01, which cuts the second part of x0, before x1 is
 * made. */
static bool is_used_up_first(struct shuffle d)
{
    struct rig_worker w;
    uint64_t job;
    struct rig *r = begin(d, &w, &job);
    bool is_next = rig_count(r, SAID_TASK, w, job, "c01") > 0;
    (void)rig_teardown(NULL);
    return is_next;
}

static void a_value_is_used_up_first_if_it_is_large_and_its_parts_are_small(void **state)
{
    (void)state;
    static const struct {
        struct shuffle d;
        bool is_first;
    } cases[] = {
        {{4 * MIB, MIB, MIB / 4, NULL}, true},
        /* x0 and c00 take 1.25 MiB of the store: an eighth of its memory, or a little more than an
         * eighth */
        {{10 * MIB, MIB, MIB / 4, NULL}, false},
        {{10 * MIB - 8, MIB, MIB / 4, NULL}, true},
        /* the three parts that are left are together as large as the value, or a little larger */
        {{4 * MIB, MIB, 349525, NULL}, true},
        {{4 * MIB, MIB, 349526, NULL}, false},
        /* x0 is just large enough to matter, or too small */
        {{MIB, 262144, 65536, NULL}, true},
        {{MIB, 262143, 65535, NULL}, false},
        {{4 * MIB, MIB, 1, NULL}, true},
        /* x0 is a target, so it stays in memory in any case */
        {{4 * MIB, MIB, MIB / 4, SHUFFLE("", "\"x0\",")}, false},
        /* the tasks have priorities from the user, so memory does not change their order */
        {{4 * MIB, MIB, MIB / 4, SHUFFLE(",\"priority\":-1", "")}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (is_used_up_first(cases[i].d) != cases[i].is_first) fail_msg("case %u", (unsigned)i);
}

static void a_more_urgent_job_goes_before_the_rest_of_a_value(void **state)
{
    (void)state;
    for (int is_urgent = 0; is_urgent < 2; is_urgent++) {
        struct rig_worker w;
        uint64_t job;
        struct rig *r = begin((struct shuffle){4 * MIB, MIB, MIB / 4, NULL}, &w, &job);
        assert_int_equal(rig_count(r, SAID_TASK, w, job, "c01"), 1);
        assert_int_equal(rig_count(r, SAID_TASK, w, job, "c02"), 0);
        char json[128];
        (void)snprintf(json, sizeof json,
            "{\"priority\":%d,\"tasks\":{\"u\":{\"op\":\"h\"},\"v\":{\"op\":\"h\",\"args\":[1]},"
            "\"w\":{\"op\":\"h\",\"args\":[2]}}}",
            is_urgent);
        uint64_t other = rig_submit(r, json);
        (void)rig_done_object(r, w, job, "x1");
        (void)rig_done_object(r, w, job, "c01");
        const struct rig_row *part = rig_row(r, SAID_TASK, job, "c02");
        const struct rig_row *second = rig_row(r, SAID_TASK, other, "v");
        assert_true(
            is_urgent ? second && (!part || second < part) : part && (!second || part < second));
        (void)rig_teardown(state);
    }
}

/* After a job was cancelled, its large value no longer affects which tasks are sent first. */
static void a_cancelled_job_leaves_no_order(void **state)
{
    (void)state;
    struct rig_worker w;
    uint64_t job;
    struct rig *r = begin((struct shuffle){4 * MIB, MIB, MIB / 4, NULL}, &w, &job);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    uint64_t other = rig_submit(r, "{\"tasks\":{\"u\":{\"op\":\"f\"}}}");
    assert_int_equal(rig_count(r, SAID_TASK, w, other, "u"), 1);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    rig_done(r, w, other, "u");
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, other), MR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_value_is_used_up_first_if_it_is_large_and_its_parts_are_small),
        RIG_TEST(a_more_urgent_job_goes_before_the_rest_of_a_value),
        RIG_TEST(a_cancelled_job_leaves_no_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
