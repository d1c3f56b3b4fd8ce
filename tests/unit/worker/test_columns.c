/* Columns of messages (arrays with one entry a task). The worker refuses a message of the scheduler
 * in which the length of a column does not fit the others, and the error names the column. The
 * worker's own messages have columns with the parts of each task's run time, and with the times at
 * which messages of the scheduler came. */
#include "base/limits.h"
#include "tests/unit/worker/test.h"

#define RECEIVED_KEPT 64 /* as RECEIVED_MAX of the core */

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

/* ---- times ----------------------------------------------------------------------------------- */

static struct {
    uint32_t rows, input_at; /* input_at: index of the last task with `input` */
    uint64_t input, output, late, waited, delayed, room, restore, training;
    bool has_input, has_waited;
    uint64_t received_first;
    uint32_t received_count, messages;
    mr_time received[RECEIVED_KEPT + 1];
} told;

static void hear(struct rig *r, const struct mr_ws_up *up)
{
    const struct mr_ws_completed *c = &up->completed;
    (void)r;
    told.messages++;
    for (uint32_t i = 0; i < c->tasks.count; i++, told.rows++) {
        told.has_input = told.has_input || c->input_ns;
        told.has_waited = told.has_waited || c->waited_ns;
        told.input += c->input_ns ? c->input_ns[i] : 0;
        if (c->input_ns && c->input_ns[i]) told.input_at = c->tasks.index[i];
        told.output += c->output_ns ? c->output_ns[i] : 0;
        told.late += c->late_ns ? c->late_ns[i] : 0;
        told.waited += c->waited_ns ? c->waited_ns[i] : 0;
        told.delayed += c->delayed_ns ? c->delayed_ns[i] : 0;
        told.room += c->room_ns ? c->room_ns[i] : 0;
        told.restore += c->restore_ns ? c->restore_ns[i] : 0;
        told.training += c->training ? c->training[i] : 0;
    }
    if (!up->received_count) return;
    assert_true(up->received_count <= RECEIVED_KEPT);
    told.received_first = up->received_first;
    told.received_count = up->received_count;
    memcpy(told.received, up->received_ns, up->received_count * sizeof *told.received);
}

static void what_an_executor_measures_is_told(void **state)
{
    struct rig *r = *state;
    r->on_up = hear;
    memset(&told, 0, sizeof told);
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, NULL);
    *rig_extra(r) = (struct mr_ws_extra){.row = 0, .want_object = true};
    rig_task(r, RIG_JOB, 2, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    for (rig_turn(r); r->strands_count; rig_turn(r)) {
        struct mr_strand *s = r->strands[0];
        bool failed = s->items[0].index == 2;
        rig_result(r, &s->items[0], failed ? MR_STRAND_FAILED : MR_STRAND_DONE);
        s->items[0].result.has_parts = true;
        s->parts[0].input_ns = failed ? 3000 : 1;
        s->parts[0].output_ns = failed ? 5000 : 20;
        s->parts[0].late_ns = failed ? 7000 : 300;
        s->parts[0].delayed_ns = failed ? 9000 : 400;
        s->parts[0].room_ns = failed ? 11000 : 500;
        s->parts[0].restore_ns = failed ? 17000 : 800;
        s->parts[0].training = failed ? 13000 : 600;
        rig_report(r, s, 1);
    }
    assert_int_equal(told.rows, 2);
    assert_int_equal(told.input, 3001);
    assert_int_equal(told.output, 5020);
    assert_int_equal(told.late, 7300);
    assert_int_equal(told.delayed, 9400);
    assert_int_equal(told.room, 11500);
    assert_int_equal(told.restore, 17800);
    assert_int_equal(told.training, 13600);
}

/* Of five tasks that are told in one message, only the third has such times. */
static void one_task_of_a_message_has_times_that_others_lack(void **state)
{
    struct rig *r = *state;
    r->on_up = hear;
    memset(&told, 0, sizeof told);
    for (uint32_t i = 1; i <= 5; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    for (rig_turn(r); r->strands_count; rig_turn(r)) {
        struct mr_strand *s = r->strands[0];
        for (uint32_t i = 0; i < s->count; i++) {
            rig_result(r, &s->items[i], MR_STRAND_DONE);
            memset(&s->parts[i], 0xff, sizeof s->parts[i]); /* not to be read without has_parts */
            if (s->items[i].index != 3) continue;
            s->items[i].result.has_parts = true;
            s->parts[i] = (struct mr_strand_parts){.input_ns = 77, .late_ns = 5};
        }
        rig_report(r, s, s->count);
    }
    assert_int_equal(told.rows, 5);
    assert_int_equal(told.input, 77);
    assert_int_equal(told.late, 5);
    assert_int_equal(told.input_at, 3);
    assert_int_equal(told.output + told.delayed + told.room + told.restore + told.training, 0);
}

/* Columns of which every number would be 0 are left out. */
static void what_takes_no_time_is_not_told(void **state)
{
    struct rig *r = *state;
    r->on_up = hear;
    memset(&told, 0, sizeof told);
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(told.rows, 1);
    assert_false(told.has_input || told.has_waited);
}

/* Task 2 needs value 11. The value comes 5 ms after the task, and the task starts 2 ms after the
 * value. Task 3 needs the value of task 2, which this worker makes, so task 3 has waited for
 * nothing from elsewhere. */
static void the_wait_for_an_input_from_elsewhere_is_told(void **state)
{
    struct rig *r = *state;
    r->on_up = hear;
    memset(&told, 0, sizeof told);
    rig_task(r, RIG_JOB, 2, 1, OP_BLOCK, INPUTS(11));
    rig_task(r, RIG_JOB, 3, 1, OP_BLOCK, INPUTS(2));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 0);
    r->now += 5 * MR_MS;
    rig_value(r, RIG_JOB, 11, 0);
    rig_deliver(r);
    r->now += 2 * MR_MS;
    rig_run_all(r);
    assert_int_equal(told.rows, 2);
    assert_int_equal(told.waited, 2 * MR_MS);
}

static void the_times_of_messages_with_tasks_are_told(void **state)
{
    struct rig *r = *state;
    r->on_up = hear;
    memset(&told, 0, sizeof told);
    mr_time first = r->now;
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    r->now += MR_MS;
    rig_value(r, RIG_JOB, 11, 0); /* a message without tasks is not counted */
    rig_deliver(r);
    r->now += MR_MS;
    rig_task(r, RIG_JOB, 2, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(told.received_first, 0);
    assert_int_equal(told.received_count, 2);
    assert_int_equal(told.received[0], first);
    assert_int_equal(told.received[1], first + 2 * MR_MS);
    rig_task(r, RIG_JOB, 3, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(told.received_first, 2);
    assert_int_equal(told.received_count, 1);
}

/* The worker keeps the times of the last RECEIVED_KEPT messages and drops older times. On a new
 * stream, messages are counted from 0 again. */
static void only_the_last_messages_are_told(void **state)
{
    struct rig *r = *state;
    r->on_up = hear;
    memset(&told, 0, sizeof told);
    for (uint32_t i = 0; i < RECEIVED_KEPT + 6; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, NULL);
        rig_deliver(r);
    }
    rig_run_all(r);
    assert_int_equal(told.received_first, 6);
    assert_int_equal(told.received_count, RECEIVED_KEPT);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    rig_register(r, 9);
    rig_task(r, RIG_JOB, 1000, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(told.received_first, 0);
    assert_int_equal(told.received_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(columns_of_values_belong_together),
        TEST(columns_of_tasks_belong_together),
        TEST(what_goes_with_a_task_is_checked),
        TEST(each_list_of_tasks_is_checked),
        TEST(what_an_executor_measures_is_told),
        TEST(what_takes_no_time_is_not_told),
        TEST(one_task_of_a_message_has_times_that_others_lack),
        TEST(the_wait_for_an_input_from_elsewhere_is_told),
        TEST(the_times_of_messages_with_tasks_are_told),
        TEST(only_the_last_messages_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
