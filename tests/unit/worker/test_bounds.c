/* The bounds of the worker's core: how much one message holds, what happens if too much comes, and
 * how long the worker waits before it connects again. */
#include "base/limits.h"
#include "tests/unit/worker/test.h"

static struct heard {
    uint32_t messages, rows, failures;
    size_t inlined_max, texts_max, log_bytes, message_bytes, arguments_bytes;
    char log_end[8];
} heard;

static void hear(struct rig *r, const struct mr_ws_up *up)
{
    const struct mr_ws_completed *c = up->reg ? &up->reg->holding : &up->completed;
    size_t texts = 0;
    (void)r;
    if (!c->tasks.count) return;
    heard.messages++;
    heard.rows += c->tasks.count;
    heard.failures += c->failures_count;
    heard.inlined_max = MR_MAX(heard.inlined_max, c->inlined.n);
    for (uint32_t i = 0; i < c->failures_count; i++) {
        const struct mr_ws_failure *f = &c->failures[i];
        texts += f->message.n + f->arguments.n + f->log.n;
        heard.message_bytes = f->message.n;
        heard.arguments_bytes = f->arguments.n;
        heard.log_bytes = f->log.n;
        if (f->message.n == MR_ERROR_TEXT_MAX) { /* this is the test long_texts_of_errors_are_cut */
            assert_int_equal(f->message.p[0], 'm');
            assert_int_equal(f->message.p[f->message.n - 1], 'm');
            assert_int_equal(f->arguments.p[0], 'm');
            assert_int_equal(f->log.p[0], 'l');
        }
        if (f->log.n > 4) memcpy(heard.log_end, f->log.p + f->log.n - 4, 4);
    }
    heard.texts_max = MR_MAX(heard.texts_max, texts);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void run_with(struct rig *r, uint32_t count, struct mr_str pack)
{
    for (uint32_t i = 0; i < count; i++)
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    for (rig_turn(r); r->strands_count; rig_turn(r)) {
        struct mr_strand *s = r->strands[0];
        rig_result(r, &s->items[0], MR_STRAND_DONE);
        s->items[0].result.pack = pack;
        rig_report(r, s, 1);
    }
    r->now += MR_SECOND;
    rig_turn(r);
}

/* Values that do not fit into one message come with the next one. */
static void small_values_go_in_as_many_messages_as_they_need(void **state)
{
    static const char bytes[100000];
    struct rig *r = *state;
    heard = (struct heard){0};
    r->on_up = hear;
    r->connected = false;
    run_with(r, 9, mr_str_of(bytes, sizeof bytes));
    assert_int_equal(heard.rows, 0);
    r->connected = true;
    rig_turn(r);
    assert_int_equal(heard.rows, 9);
    assert_int_equal(heard.messages, 5); /* two values fit into one message */
    assert_true(heard.inlined_max <= MR_INLINE_MESSAGE_BYTES_MAX);
    for (uint32_t i = 0; i < 9; i++)
        assert_int_equal(rig_find(r, i)->outcome, MR_OUTCOME_OK);
}

static void a_message_can_be_full_to_the_last_byte(void **state)
{
    static const char bytes[MR_INLINE_MESSAGE_BYTES_MAX / 2];
    struct rig *r = *state;
    heard = (struct heard){0};
    r->on_up = hear;
    r->connected = false;
    run_with(r, 2, mr_str_of(bytes, sizeof bytes));
    r->connected = true;
    rig_turn(r);
    assert_int_equal(heard.rows, 2);
    assert_int_equal(heard.messages, 1);
}

/* A Register may hold more than other messages. Values that it cannot hold follow in later
 * messages. */
static void what_a_register_does_not_take_follows(void **state)
{
    static const char bytes[200 << 10];
    struct rig *r = *state;
    run_with(r, 24, mr_str_of(bytes, sizeof bytes));
    for (uint32_t i = 0; i < 24; i++)
        assert_int_equal(rig_find(r, i)->outcome, MR_OUTCOME_OK);
    heard = (struct heard){0};
    r->on_up = hear;
    r->done_count = 0;
    r->connected = false;
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    assert_int_equal(r->held, 20);
    for (uint32_t i = 0; i < 20; i++)
        rig_ref(&r->m.registered.adopt, &r->m.adopt, RIG_JOB, r->held_rows[i].index, 1);
    rig_register(r, 9);
    r->m.registered.adopt = (struct mr_ws_refs){0};
    r->now += MR_SECOND;
    rig_turn(r);
    assert_int_equal(heard.rows, 24);
    assert_int_equal(r->done_count, 4);
    for (uint32_t i = 0; i < 24; i++) {
        assert_true(mr_worker_keeps(r->w, RIG_JOB, i));
        rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, i, 1);
    }
    rig_deliver(r);
    rig_turn(r);
    assert_null(mr_worker_leftover(r->w));
}

static void fail_with(struct rig *r, uint32_t count, struct mr_str message, struct mr_str log)
{
    for (uint32_t i = 0; i < count; i++)
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    for (rig_turn(r); r->strands_count; rig_turn(r)) {
        struct mr_strand *s = r->strands[0];
        rig_result(r, &s->items[0], MR_STRAND_FAILED);
        s->items[0].result.message = s->items[0].result.arguments = message;
        s->items[0].result.log = log;
        rig_report(r, s, 1);
    }
    r->now += MR_SECOND;
    rig_turn(r);
}

static void errors_go_in_as_many_messages_as_they_need(void **state)
{
    struct rig *r = *state;
    heard = (struct heard){0};
    r->on_up = hear;
    r->connected = false;
    fail_with(r, 600, MR_STR("no"), MR_STR("a line"));
    r->connected = true;
    rig_turn(r);
    assert_int_equal(heard.failures, 600);
    assert_int_equal(heard.messages, 3); /* one message has at most 256 errors */
    for (uint32_t i = 0; i < 600; i++)
        assert_int_equal(rig_find(r, i)->code, MR_EUNKNOWN);
}

/* An error message that is too long keeps its beginning. An output that is too long keeps its
 * end. */
static void long_texts_of_errors_are_cut(void **state)
{
    static char log[MR_TASK_LOG_BYTES_MAX + 100], message[2 * MR_ERROR_TEXT_MAX];
    struct rig *r = *state;
    heard = (struct heard){0};
    r->on_up = hear;
    memset(log, 'l', sizeof log);
    memset(message, 'm', sizeof message);
    memcpy(log + sizeof log - 4, "last", 4);
    r->connected = false;
    fail_with(r, 90, mr_str_of(message, sizeof message), mr_str_of(log, sizeof log));
    r->connected = true;
    rig_turn(r);
    assert_int_equal(heard.failures, 90);
    assert_true(heard.messages >= 2);
    assert_true(heard.texts_max <= (size_t)4 << 20);
    assert_int_equal(heard.log_bytes, MR_TASK_LOG_BYTES_MAX);
    assert_int_equal(heard.message_bytes, MR_ERROR_TEXT_MAX);
    assert_int_equal(heard.arguments_bytes, MR_ERROR_TEXT_MAX);
    assert_string_equal(heard.log_end, "last");
}

/* ---- too much -------------------------------------------------------------------------------- */

/* More completions come than the outbox can hold. The worker drops them and opens a new session, in
 * which Register says what the worker still has. */
static void an_outbox_that_runs_over_begins_a_new_session(void **state)
{
    struct rig *r = *state;
    uint32_t registers = r->registers, connects = r->connects;
    r->connected = false; /* the stream takes no message */
    for (uint32_t n = 0; n < 2; n++) {
        for (uint32_t i = 0; i < 1600; i++)
            rig_task(r, RIG_JOB, i, 1, OP_NONE, NULL);
        rig_deliver(r);
        rig_turn(r);
        assert_int_equal(r->connects, connects + n);
    }
    r->connected = true;
    rig_event(r, MR_WORKER_CONNECTED);
    rig_turn(r);
    assert_int_equal(r->registers, registers + 1);
    rig_register(r, 9);
    rig_turn(r);
    assert_int_equal(r->connects, connects + 1);
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_OK);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 1, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_null(mr_worker_leftover(r->w)); /* the texts of errors were freed, too */
}

/* A session may have 65536 names of operators. */
static void a_session_with_too_many_names_begins_anew(void **state)
{
    static struct mr_str names[65536];
    struct rig *r = *state;
    uint32_t connects = r->connects;
    for (uint32_t i = 0; i < MR_ARRAY_LEN(names); i++)
        names[i] = MR_STR("inc");
    r->m.down.ops = names;
    r->m.down.ops_count = MR_ARRAY_LEN(names) - 6; /* six names came with the answer to Register */
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->connects, connects);
    /* The operator of task 1 is number 65536, the last name that the session may have. */
    rig_task(r, RIG_JOB, 1, 1, MR_ARRAY_LEN(names), NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_OK);
    r->m.down.ops = names;
    r->m.down.ops_count = 1;
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->connects, connects + 1);
}

static void a_session_with_too_many_nodes_begins_anew(void **state)
{
    static struct mr_ws_node nodes[2 * MR_NODES_MAX];
    struct rig *r = *state;
    uint32_t connects = r->connects;
    for (uint32_t i = 0; i < MR_ARRAY_LEN(nodes); i++)
        nodes[i] = (struct mr_ws_node){MR_STR("unix:there"), {1000 + i}};
    r->m.down.nodes = nodes;
    /* Two nodes came with the answer to Register. */
    r->m.down.nodes_count = MR_ARRAY_LEN(nodes) - 2;
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->connects, connects);
    /* Row 0 of the table of all nodes stands for no node. So the table has no room for
     * the session's last node. */
    for (uint32_t i = 0; i < 2; i++) {
        rig_value(r, RIG_JOB, i, MR_ARRAY_LEN(nodes) - i);
        rig_task(r, RIG_JOB, 10 + i, 1, OP_REF, INPUTS((int)i));
    }
    rig_deliver(r);
    rig_turn(r);
    const struct mr_strand *s = r->strands[0];
    assert_int_equal(s->nodes[s->items[0].inputs[0].node].id.v, 0);
    assert_int_equal(s->nodes[s->items[1].inputs[0].node].id.v, 1000 + MR_ARRAY_LEN(nodes) - 4);
    r->m.down.nodes = nodes;
    r->m.down.nodes_count = 1;
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->connects, connects + 1);
}

/* If the worker has no room for the inputs, texts or arguments of a task, it returns the task to
 * the scheduler. The worker may still have room for a smaller task that comes later. */
static void large_arguments_go_back_and_smaller_ones_find_room(void **state)
{
    static const struct mr_worker_config small = {.slots = 1,
        .tasks_max = 100,
        .values_max = 200,
        .outbox_max = 100,
        .bytes_max = 2000,
        .prefetch_bytes = 1 << 20};
    (void)state;
    struct rig *r = rig_of(&small);
    static char name[MR_KEY_BYTES_MAX];
    static int inputs[61];
    for (uint32_t i = 0; i < 60; i++)
        inputs[i] = 90;
    inputs[60] = -1;
    for (uint32_t i = 0; i < 20; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, i == 16 ? inputs : NULL);
        if (i == 17) {
            struct mr_ws_extra *x = rig_extra(r);
            x->key = x->persist_name = mr_str_of(name, sizeof name);
        }
        if (i != 18) continue;
        r->m.args_bytes[i] = 1100;
        r->m.down.tasks.args.n += 1099;
    }
    rig_deliver(r);
    rig_run_all(r);
    r->now += MR_SECOND;
    rig_turn(r);
    assert_int_equal(r->done_count, 20);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(
            rig_find(r, i)->outcome, i >= 16 && i <= 18 ? MR_OUTCOME_RETURNED : MR_OUTCOME_OK);
    rig_free(&r);
}

static void nodes_are_known_by_address_and_incarnation(void **state)
{
    static char far_too_long[1002], longest[1001];
    struct rig *r = *state;
    memset(far_too_long, 'a', sizeof far_too_long - 1);
    memset(longest, 'a', sizeof longest - 1);
    const struct mr_ws_node nodes[] = {{MR_STR("unix:a"), {90}}, {MR_STR("unix:a"), {91}},
        {MR_STR("unix:b"), {91}}, {MR_STR("unix:a"), {90}}, {mr_str(longest), {93}},
        {mr_str(far_too_long), {92}}};
    r->m.down.nodes = nodes;
    r->m.down.nodes_count = MR_ARRAY_LEN(nodes);
    rig_deliver(r);
    uint32_t rows[MR_ARRAY_LEN(nodes)];
    for (uint32_t i = 0; i < MR_ARRAY_LEN(nodes); i++) {
        rig_value(r, RIG_JOB, 100 + i, 3 + i); /* two nodes came with the answer to Register */
        rig_task(r, RIG_JOB, i, 1, OP_REF, INPUTS((int)(100 + i)));
        rig_deliver(r);
        rig_turn(r);
        const struct mr_strand *s = r->strands[0];
        rows[i] = s->items[0].inputs[0].node;
        bool is_known = i < 5;
        assert_int_equal(s->nodes[rows[i]].id.v, is_known ? nodes[i].id.v : 0);
        assert_int_equal(s->nodes[rows[i]].address.n, is_known ? nodes[i].address.n : 0);
        assert_int_equal(strlen(s->nodes[rows[i]].address.p), s->nodes[rows[i]].address.n);
        rig_run(r, 0, MR_STRAND_DONE);
    }
    assert_int_equal(rows[0], rows[3]);
    assert_true(rows[0] != rows[1] && rows[1] != rows[2] && rows[0] != rows[2]);
    /* A node that the worker does not know has an empty address, not NULL. */
    for (uint32_t i = 0; i < 20; i++)
        assert_non_null(mr_worker_node(r->w, i)->address.p);
    assert_int_equal(mr_worker_node(r->w, 4711)->address.n, 0);
    assert_int_equal(mr_worker_node(r->w, 4711)->id.v, 0);
}

/* ---- the stream ------------------------------------------------------------------------------ */

/* The worker connects again at once, and then after growing times. The times are random, so that
 * workers do not connect in step. */
static void a_scheduler_that_is_away_is_tried_less_and_less_often(void **state)
{
    struct rig *r = *state;
    mr_duration last = 0;
    bool differs = false;
    r->connected = false;
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t connects = r->connects;
        rig_event(r, MR_WORKER_DISCONNECTED);
        assert_true(mr_worker_deadline(r->w) <= r->now);
        rig_turn(r);
        assert_int_equal(r->connects, connects + 1);
        rig_turn(r); /* the worker makes no second attempt while one is under way */
        assert_int_equal(r->connects, connects + 1);
        mr_duration wait = r->last[MR_WORKER_CONNECT].at - r->now;
        if (i == 0) assert_int_equal(wait, 0);
        mr_duration most = MR_MIN(50 * MR_MS << MR_MIN(i - 1, 10), 2 * MR_SECOND);
        if (i > 0) assert_in_range(wait, most / 2 + 1, most);
        differs |= i > 10 && last && wait != last;
        last = wait;
        r->now += wait;
    }
    assert_true(differs);
    rig_connect(r);
    /* The worker is registered again, so it connects at once after the next loss. */
    rig_register(r, 9);
    r->connected = false;
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_turn(r);
    assert_int_equal(r->last[MR_WORKER_CONNECT].at, r->now);
}

/* Arguments find no room. Their tasks are returned to the scheduler, and nothing of them stays
 * here. */
static void what_finds_no_room_for_its_arguments_goes_back(void **state)
{
    static const struct mr_worker_config small = {.slots = 1,
        .tasks_max = 2000,
        .values_max = 4000,
        .outbox_max = 4000,
        .bytes_max = 20000,
        .prefetch_bytes = 1 << 20};
    (void)state;
    struct rig *r = rig_of(&small);
    for (uint32_t i = 0; i < 1000; i++)
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, i % 2 ? INPUTS(5000) : NULL);
    rig_deliver(r);
    r->now += MR_SECOND;
    rig_turn(r);
    assert_in_range(r->done_count, 600, 999);
    for (uint32_t i = 0; i < r->done_count; i++)
        assert_int_equal(r->done[i].outcome, MR_OUTCOME_RETURNED);
    for (uint32_t i = 0; i < 1000; i++) {
        if (rig_find(r, i)) continue;
        rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, i, 1);
    }
    rig_deliver(r);
    rig_turn(r);
    while (r->strands_count)
        rig_run(r, 0, MR_STRAND_STOPPED);
    r->now += MR_SECOND;
    rig_turn(r);
    assert_int_equal(r->done_count, 1000);
    const char *left = mr_worker_leftover(r->w);
    assert_string_equal(left ? left : "", "");
    rig_free(&r);
}

static void more_jobs_than_there_is_room_for_go_back(void **state)
{
    static const struct mr_worker_config many = {.slots = 1,
        .tasks_max = 70000,
        .values_max = 140001,
        .outbox_max = 100,
        .bytes_max = 64 << 20,
        .prefetch_bytes = 1 << 20};
    (void)state;
    struct rig *r = rig_of(&many);
    for (uint32_t job = 1; job <= 65537; job++) {
        rig_task(r, (mr_job_id){job}, 1, 1, OP_BLOCK, INPUTS(90));
        if (job % RIG_ROWS == 0 || job > 65536) rig_deliver(r);
    }
    rig_turn(r);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].job, 65537);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_RETURNED);
    rig_ref(&r->m.down.cancel, &r->m.cancel, (mr_job_id){77}, 1, 1);
    rig_deliver(r); /* this frees the row of job 77 */
    rig_task(r, (mr_job_id){65537}, 1, 2, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->done_count, 3);
    assert_int_equal(r->done[2].outcome, MR_OUTCOME_OK);
    rig_free(&r);
}

/* The table of values is full. The worker returns the tasks that need new rows. */
static void more_values_than_there_is_room_for_go_back(void **state)
{
    static const struct mr_worker_config few = {.slots = 1,
        .tasks_max = 10,
        .values_max = 11,
        .outbox_max = 100,
        .bytes_max = 1 << 20,
        .prefetch_bytes = 1 << 20};
    (void)state;
    struct rig *r = rig_of(&few);
    for (uint32_t i = 0; i < 5; i++)
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, INPUTS((int)(10 + i)));
    rig_task(r, RIG_JOB, 5, 1, OP_BLOCK, INPUTS(10, 16));
    rig_deliver(r); /* the value of task 5 gets a row, but the task's second input gets none */
    rig_turn(r);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].index, 5);
    /* The value of task 6 takes the last free row of the table of values. */
    rig_task(r, RIG_JOB, 6, 1, OP_BLOCK, NULL);
    rig_task(r, (mr_job_id){6}, 7, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->done_count, 2);
    assert_int_equal(r->done[1].index, 7);
    rig_value(r, (mr_job_id){6}, 8, 0);
    rig_value(r, RIG_JOB, 12, 0);
    /* Value 12, the input of task 10, has a row of the table of values. The value of task 10 gets
     * no row. */
    rig_task(r, RIG_JOB, 10, 1, OP_BLOCK, INPUTS(12));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->done_count, 3);
    assert_int_equal(r->done[2].index, 10);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(r->done[i].outcome, MR_OUTCOME_RETURNED);
        assert_int_equal(r->done[i].code, MR_OK);
    }
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 0, 1);
    rig_deliver(r);
    /* Tasks 2 and 6 can run. Task 6 needs no input. The input of task 2, value 12, arrived above;
     * the full table of values had a row for value 12 already. */
    rig_run_all(r);
    assert_int_equal(rig_find(r, 2)->outcome, MR_OUTCOME_OK);
    rig_task(r, RIG_JOB, 7, 2, OP_BLOCK, NULL); /* after the cancel there is room again */
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 7)->outcome, MR_OUTCOME_OK);
    r->m.forget[0] = RIG_JOB;
    r->m.down.forget_jobs = r->m.forget;
    r->m.down.forget_jobs_count = 1;
    rig_deliver(r);
    rig_turn(r);
    /* The worker has forgotten RIG_JOB. It has no row of job 6 either, because it returned the only
     * task of job 6. */
    assert_null(mr_worker_leftover(r->w));
    rig_free(&r);
}

static void small_values_that_find_no_room_send_their_tasks_back(void **state)
{
    static const struct mr_worker_config small = {.slots = 1,
        .tasks_max = 10,
        .values_max = 100,
        .outbox_max = 100,
        .bytes_max = 4096,
        .prefetch_bytes = 1 << 20};
    (void)state;
    struct rig *r = rig_of(&small);
    rig_value(r, RIG_JOB, 1, 0);
    r->m.value_inline[0] = 6000;
    r->m.down.values.inlined.n = 6000;
    rig_task(r, RIG_JOB, 2, 1, OP_BLOCK, INPUTS(1));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_RETURNED);
    assert_null(mr_worker_leftover(r->w));
    rig_value(r, RIG_JOB, 1, 0);
    rig_task(r, RIG_JOB, 2, 2, OP_BLOCK, INPUTS(1));
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    static const char large[6000];
    rig_result(r, &s->items[0], MR_STRAND_DONE);
    s->items[0].result.pack = mr_str_of(large, sizeof large);
    rig_report(r, s, 1);
    rig_turn(r);
    assert_int_equal(rig_find(r, 2)->attempt, 2);
    assert_int_equal(rig_find(r, 2)->outcome, MR_OUTCOME_ERROR);
    assert_int_equal(rig_find(r, 2)->code, MR_ELIMIT);
    rig_turn(r);
    assert_null(mr_worker_leftover(r->w));
    rig_task(r, RIG_JOB, 3, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    s = r->strands[0];
    rig_result(r, &s->items[0], MR_STRAND_FAILED);
    s->items[0].result.log = mr_str_of(large, sizeof large);
    rig_report(r, s, 1);
    rig_turn(r);
    assert_int_equal(rig_find(r, 3)->outcome, MR_OUTCOME_ERROR); /* the error has no texts */
    assert_int_equal(rig_find(r, 3)->code, MR_OK);
    rig_free(&r);
}

static void hear_many(struct rig *r, const struct mr_ws_up *up)
{
    hear(r, up);
    r->done_count = 0; /* the rig's list has no room for all completions of the test */
}

static void a_message_has_a_bounded_number_of_completions(void **state)
{
    static const struct mr_worker_config many = {.slots = 1,
        .tasks_max = 10,
        .values_max = 100,
        .outbox_max = 70000,
        .bytes_max = 1 << 20,
        .prefetch_bytes = 1 << 20};
    (void)state;
    struct rig *r = rig_of(&many);
    heard = (struct heard){0};
    r->on_up = hear_many;
    r->connected = false;
    rig_event(r, MR_WORKER_DRAIN); /* the worker returns all new tasks, without error texts */
    for (uint32_t n = 0; n < 65537; n++) {
        rig_task(r, RIG_JOB, n % RIG_ROWS, 1, OP_INC, NULL);
        if (r->m.down.tasks.count == RIG_ROWS || n == 65536) rig_deliver(r);
    }
    r->connected = true;
    rig_turn(r);
    assert_int_equal(heard.rows, 65537);
    assert_int_equal(heard.messages, 2);
    rig_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(small_values_go_in_as_many_messages_as_they_need),
        TEST(a_message_can_be_full_to_the_last_byte),
        TEST(what_a_register_does_not_take_follows),
        TEST(errors_go_in_as_many_messages_as_they_need),
        TEST(long_texts_of_errors_are_cut),
        TEST(an_outbox_that_runs_over_begins_a_new_session),
        TEST(a_session_with_too_many_names_begins_anew),
        TEST(a_session_with_too_many_nodes_begins_anew),
        cmocka_unit_test(large_arguments_go_back_and_smaller_ones_find_room),
        TEST(nodes_are_known_by_address_and_incarnation),
        TEST(a_scheduler_that_is_away_is_tried_less_and_less_often),
        cmocka_unit_test(what_finds_no_room_for_its_arguments_goes_back),
        cmocka_unit_test(more_jobs_than_there_is_room_for_go_back),
        cmocka_unit_test(more_values_than_there_is_room_for_go_back),
        cmocka_unit_test(small_values_that_find_no_room_send_their_tasks_back),
        cmocka_unit_test(a_message_has_a_bounded_number_of_completions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
