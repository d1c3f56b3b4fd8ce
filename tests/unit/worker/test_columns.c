/* Messages of the scheduler as the worker checks them. A column whose length does not fit the
 * others is refused, and the error names the column. */
#include "base/limits.h"
#include "tests/unit/worker/test.h"

static void refused(struct rig *r, const char *words)
{
    struct mr_error e = {0};
    assert_int_equal(mr_ws_down_check(&r->m.down, &e), MR_EFORMAT);
    if (!strstr(e.text, words)) fail_msg("\"%s\" does not say \"%s\"", e.text, words);
}

static void accepted(struct rig *r)
{
    struct mr_error e = {0};
    if (mr_ws_down_check(&r->m.down, &e)) fail_msg("refused: %s", e.text);
}

/* Makes a message with two values, one of them an object, and two tasks. The first task has one
 * input; the second has two inputs and extra fields. */
static void sample(struct rig *r)
{
    rig_clear(r);
    rig_value(r, RIG_JOB, 11, 0);
    rig_value(r, RIG_JOB, 12, 1);
    rig_task(r, RIG_JOB, 1, 1, OP_INC, INPUTS(1011));
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1012, 1011));
    (void)rig_extra(r);
}

static void columns_of_values_belong_together(void **state)
{
    struct rig *r = *state;
    sample(r);
    accepted(r);
    r->m.value_runs[1].job = (mr_job_id){0};
    refused(r, "values: run 1 has no job");
    sample(r);
    r->m.value_runs[0].count = 2;
    refused(r, "values: the runs cover 3 rows, the columns have 2");
    sample(r);
    r->m.value_inline[0] = 2;
    refused(r, "values: inline_bytes add up to 2, inline has 1");
    sample(r);
    r->m.down.values.objects_count = 2;
    refused(r, "values: 1 rows are objects, the object columns have 2");
}

static void columns_of_tasks_belong_together(void **state)
{
    struct rig *r = *state;
    sample(r);
    r->m.task_runs[0].job = (mr_job_id){0};
    refused(r, "tasks: run 0 has no job");
    sample(r);
    r->m.attempt[1] = 0;
    refused(r, "tasks: row 1 has attempt 0");
    sample(r);
    r->m.args_bytes[1] = 0;
    refused(r, "tasks: args_bytes add up to 1, args has 2");
    sample(r);
    r->m.inputs_count[1] = 1;
    refused(r, "tasks: inputs_count add up to 2, inputs has 3");
    sample(r);
    r->m.inputs_count[1] = MR_TASK_INPUTS_MAX;
    refused(r, "tasks: inputs_count add up");
    r->m.inputs_count[1] = MR_TASK_INPUTS_MAX + 1;
    refused(r, "tasks: row 1 has more than");
    sample(r);
    r->m.last_use[2] = 3; /* the tasks have three inputs together, 0 to 2 */
    refused(r, "tasks: last_use 2");
    sample(r);
    r->m.last_use[1] = r->m.last_use[0];
    refused(r, "tasks: last_use 1");
}

static void what_goes_with_a_task_is_checked(void **state)
{
    static const char name[MR_KEY_BYTES_MAX + 1];
    const struct mr_str longest = mr_str_of(name, MR_KEY_BYTES_MAX),
                        too_long = mr_str_of(name, MR_KEY_BYTES_MAX + 1);
    struct rig *r = *state;
    struct mr_ws_extra *x = r->m.extras;
    sample(r);
    *x = (struct mr_ws_extra){
        .row = 1, .key = longest, .persist_name = longest, .definition = mr_str_of(name, 16)};
    accepted(r);
    x->key = too_long;
    refused(r, "tasks: extra 0 has a name over");
    *x = (struct mr_ws_extra){.row = 1, .persist_name = too_long};
    refused(r, "tasks: extra 0 has a name over");
    *x = (struct mr_ws_extra){.row = 1, .definition = mr_str_of(name, 15)};
    refused(r, "tasks: extra 0 has a definition");
    *x = (struct mr_ws_extra){.row = 1, .resources_count = MR_RESOURCES_MAX};
    accepted(r);
    x->resources_count++;
    refused(r, "tasks: extra 0 wants more than");
    *x = (struct mr_ws_extra){.row = 2};
    refused(r, "tasks: extra 0 is for row 2, which is not there");
    r->m.down.tasks.extras_count = 2;
    x[0] = x[1] = (struct mr_ws_extra){.row = 1};
    refused(r, "tasks: extra 1 is for row 1, which is not above");
    x[0].row = 0;
    accepted(r);
}

static void each_list_of_tasks_is_checked(void **state)
{
    struct rig *r = *state;
    struct mr_ws_down *d = &r->m.down;
    struct rig_msg *m = &r->m;
    d->registered = &m->registered;
    const struct {
        const char *name;
        struct mr_ws_refs *refs;
        struct rig_refs *rows;
    } lists[] = {{"adopt", &m->registered.adopt, &m->adopt},
        {"keep", &m->registered.keep, &m->keep}, {"cancel", &d->cancel, &m->cancel},
        {"release", &d->release, &m->release}, {"steal", &d->steal, &m->steal},
        {"fetch", &d->fetch, &m->fetch}, {"leave", &d->leave, &m->leave}};
    for (size_t i = 0; i < MR_ARRAY_LEN(lists); i++) {
        *lists[i].refs = (struct mr_ws_refs){0};
        rig_ref(lists[i].refs, lists[i].rows, RIG_JOB, 1, 1);
        rig_ref(lists[i].refs, lists[i].rows, RIG_JOB, 2, 1);
        accepted(r);
        lists[i].rows->runs[1].count = 2;
        refused(r, lists[i].name);
        lists[i].rows->runs[1] = (struct mr_ws_run){.count = 1};
        refused(r, lists[i].name);
        *lists[i].refs = (struct mr_ws_refs){0};
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(columns_of_values_belong_together),
        TEST(columns_of_tasks_belong_together),
        TEST(what_goes_with_a_task_is_checked),
        TEST(each_list_of_tasks_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
