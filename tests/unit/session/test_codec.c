/* The messages of WorkerSession. Their bytes are compared with those of protobuf-c, and the decoder
 * refuses malformed messages. */
#include "session/decode.h"
#include "session/encode.h"
#include "session/fields.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/protowire.h"
#include "rpc/util/pb.h"

#include <millrace/v1/session.pb-c.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define MEMORY ((size_t)1 << 20)

/* ---- messages in which each field is set ---------------------------------------------------- */

#define ROWS(p) (uint32_t) MR_ARRAY_LEN(p)
#define BIG UINT64_C(0xfedcba9876543210)

static const struct mr_ws_run runs[] = {{{7}, 1, true}, {{BIG}, 2, false}};
static const uint32_t index3[] = {0, 300, UINT32_MAX}, attempt3[] = {1, 2, 70000};
static const struct mr_ws_refs refs3 = {runs, 2, index3, attempt3, 3};
static const struct mr_ws_resource resources[] = {
    {MR_STR_INIT("gpu"), 1500000}, {MR_STR_INIT("disk"), 1}};
static const uint64_t maker[] = {BIG}, number[] = {3}, object_bytes[] = {4096};
static const uint64_t times[] = {0, 1, BIG};
static const uint32_t inline3[] = {1, 0, 1}, ones[] = {1, 1, 1};

static struct mr_ws_down down_full(void)
{
    static const struct mr_ws_registered registered = {.incarnation = BIG,
        .epoch = 3,
        .scheduler = BIG + 1,
        .heartbeat_ns = 5,
        .lease_ns = 6,
        .time_ns = 7,
        .cluster_id = MR_STR_INIT("c"),
        .adopt = {runs, 2, index3, attempt3, 3},
        .keep = {runs, 2, index3, attempt3, 3}};
    static const struct mr_str ops[] = {MR_STR_INIT("inc"), MR_STR_INIT("")};
    static const struct mr_ws_node nodes[] = {{MR_STR_INIT("unix:a"), {BIG}}};
    static const struct mr_ws_extra extras[] = {{.row = 1,
        .long_running = true,
        .alone = true,
        .want_object = true,
        .persist = true,
        .timeout_ns = 9,
        .resources = resources,
        .resources_count = 2,
        .key = MR_STR_INIT("key"),
        .persist_name = MR_STR_INIT("name"),
        .definition = MR_STR_INIT("0123456789abcdef")}};
    static const uint32_t op[] = {1, 2, 1}, inputs[] = {5, 6}, last_use[] = {1};
    static const uint32_t inputs_count[] = {0, 2, 0}, node[] = {1};
    static const int32_t priority[] = {-1, INT32_MIN, 1000};
    static const mr_job_id forget[] = {{1}, {BIG}};
    return (struct mr_ws_down){.registered = &registered,
        .ops = ops,
        .ops_count = ROWS(ops),
        .nodes = nodes,
        .nodes_count = ROWS(nodes),
        .values = {.runs = runs,
            .runs_count = 2,
            .index = index3,
            .inline_bytes = inline3,
            .inlined = MR_STR_INIT("\x01\x02"),
            .object_maker = maker,
            .object_number = number,
            .object_bytes = object_bytes,
            .object_node = node,
            .objects_count = 1,
            .count = 3},
        .tasks = {.runs = runs,
            .runs_count = 2,
            .index = index3,
            .attempt = attempt3,
            .op = op,
            .args = MR_STR_INIT("abc"),
            .args_bytes = ones,
            .inputs_count = inputs_count,
            .inputs = inputs,
            .inputs_total = 2,
            .last_use = last_use,
            .last_use_count = 1,
            .priority = priority,
            .order = attempt3,
            .uses = attempt3,
            .extras = extras,
            .extras_count = 1,
            .count = 3},
        .cancel = refs3,
        .release = refs3,
        .steal = refs3,
        .fetch = refs3,
        .leave = refs3,
        .forget_jobs = forget,
        .forget_jobs_count = 2,
        .drain = true,
        .heard = 11};
}

static struct mr_ws_completed completed_full(void)
{
    static const uint32_t outcome[] = {MR_OUTCOME_OK, MR_OUTCOME_OK, MR_OUTCOME_ERROR};
    static const uint32_t bytes[] = {1, 0, 0};
    static const struct mr_ws_failure failures[] = {
        {2, 13, MR_STR_INIT("why"), MR_STR_INIT("[1]"), MR_STR_INIT("a line\n")}};
    return (struct mr_ws_completed){.tasks = refs3,
        .outcome = outcome,
        .inline_bytes = bytes,
        .inlined = MR_STR("\x01"),
        .object_maker = maker,
        .object_number = number,
        .object_bytes = object_bytes,
        .objects_count = 1,
        .base_ns = 12,
        .started_ns = times,
        .duration_ns = times,
        .cpu_ns = times,
        .input_ns = times,
        .output_ns = times,
        .late_ns = times,
        .waited_ns = times,
        .delayed_ns = times,
        .room_ns = times,
        .restore_ns = times,
        .training = times,
        .slot = index3,
        .failures = failures,
        .failures_count = 1};
}

static struct mr_ws_register register_full(void)
{
    static const struct mr_str runtimes[] = {MR_STR_INIT("native"), MR_STR_INIT("exec")};
    static const struct mr_ws_operator ops[] = {{.name = MR_STR_INIT("inc"),
        .info_json = MR_STR_INIT("{}"),
        .args_min = 1,
        .args_max = UINT32_MAX,
        .cost_ns = 200,
        .deterministic = true,
        .by_reference = true,
        .passes = true,
        .long_running = true}};
    return (struct mr_ws_register){.protocol_version = MR_PROTOCOL_VERSION,
        .layout_version = MR_LAYOUT_VERSION,
        .name = MR_STR("w"),
        .node = MR_STR("n"),
        .store = BIG,
        .store_address = MR_STR("unix:a"),
        .address = MR_STR("unix:b"),
        .version = MR_STR("0.1.0"),
        .slots = 4,
        .pid = 99,
        .processors = 7,
        .began_ns = BIG,
        .memory_bytes = BIG,
        .resources = resources,
        .resources_count = 2,
        .runtimes = runtimes,
        .runtimes_count = 2,
        .ops = ops,
        .ops_count = 1,
        .has_suspects = true,
        .suspects = refs3,
        .incarnation = BIG,
        .epoch = 5,
        .scheduler = BIG,
        .time_ns = 6,
        .holding = completed_full(),
        .queued = refs3};
}

static struct mr_ws_up up_full(struct mr_ws_register *r)
{
    static const struct mr_ws_heartbeat heartbeat = {.sequence = 1,
        .time_ns = 2,
        .memory_used_bytes = BIG,
        .held_bytes = 3,
        .queued = 4,
        .running = 5,
        .tasks_started = 6,
        .tasks_done = 7,
        .running_tasks = {runs, 2, index3, attempt3, 3},
        .running_ns = times,
        .queue_ns = 8,
        .cpu_ns = 9,
        .received_bytes = BIG,
        .sent_bytes = 10};
    static const struct mr_ws_missing missing[] = {{{7}, 1, 2, 3, MR_STR_INIT("it is gone")}};
    static const struct mr_ws_log logs[] = {{{7}, 1, 2, MR_STR_INIT("text"), 5}};
    *r = register_full();
    return (struct mr_ws_up){.reg = r,
        .heartbeat = &heartbeat,
        .completed = completed_full(),
        .given = refs3,
        .started = refs3,
        .unknown = refs3,
        .left_slot = refs3,
        .missing = missing,
        .missing_count = 1,
        .received_ns = times,
        .received_count = 2,
        .paused_from_ns = 3,
        .paused_until_ns = BIG,
        .received_first = 3,
        .logs = logs,
        .logs_count = 1,
        .leaving = true};
}

/* Asserts that each field of the message is set. So a field that is added to the tables must be
 * added to the messages above. */
static void assert_full(const struct mr_ws_type *t, const unsigned char *p)
{
    for (uint32_t i = 0; i < t->fields_count; i++) {
        const struct mr_ws_field *f = &t->fields[i];
        const unsigned char *at = p + f->at;
        bool is_wide = f->kind != MR_WS_U32 && f->kind != MR_WS_I32 && f->kind != MR_WS_BOOL;
        uint64_t zero = 0;
        size_t bytes = is_wide ? 8 : f->kind == MR_WS_BOOL ? 1 : 4;
        if (f->kind == MR_WS_PART) {
            assert_full(f->type, at);
            continue;
        }
        if (!memcmp(at, &zero, bytes)) fail_msg("%s.%s is not set", t->name, f->name);
        if (f->kind == MR_WS_LINK || f->kind == MR_WS_ROWS)
            assert_full(f->type, *(const unsigned char *const *)(const void *)at);
    }
}

static void *take(void *arena, size_t bytes)
{
    return mr_pb_arena_take(arena, bytes);
}

struct rig {
    struct mr_pb_arena arena;
    struct mr_ws_memory memory;
    struct mr_buf once, twice;
    struct mr_error e;
    struct mr_ws_down down;
    struct mr_ws_up up;
};

static int setup(void **state)
{
    struct rig *r = mr_alloc(sizeof *r);
    mr_pb_arena_init(&r->arena, 4 * MEMORY);
    r->memory = (struct mr_ws_memory){take, &r->arena, MEMORY};
    mr_buf_init(&r->once, MEMORY);
    mr_buf_init(&r->twice, MEMORY);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct rig *r = *state;
    mr_pb_arena_fini(&r->arena);
    mr_buf_fini(&r->once);
    mr_buf_fini(&r->twice);
    mr_release(r);
    return 0;
}

static int decode_down(struct rig *r)
{
    return mr_ws_decode_down(mr_buf_str(&r->once), &r->memory, &r->down, &r->e);
}

static int decode_up(struct rig *r)
{
    return mr_ws_decode_up(mr_buf_str(&r->once), &r->memory, &r->up, &r->e);
}

/* Asserts that protobuf-c reads the message in `once` and writes the same bytes. */
static void assert_protobuf(struct rig *r, const ProtobufCMessageDescriptor *d)
{
    struct mr_error e = {0};
    const ProtobufCMessage *m = mr_pb_unpack(d, mr_buf_str(&r->once), &r->arena, &e);
    assert_non_null(m);
    mr_buf_clear(&r->twice);
    mr_pb_pack(m, &r->twice);
    assert_true(mr_str_eq(mr_buf_str(&r->once), mr_buf_str(&r->twice)));
}

static void a_message_to_a_worker_arrives_as_it_was_sent(void **state)
{
    struct rig *r = *state;
    struct mr_ws_down full = down_full();
    assert_full(&mr_ws_down_type, (const unsigned char *)&full);
    mr_ws_encode_down(&full, &r->once);
    assert_protobuf(r, &millrace__v1__scheduler_message__descriptor);
    if (decode_down(r)) fail_msg("%s", r->e.text);
    assert_full(&mr_ws_down_type, (const unsigned char *)&r->down);
    mr_buf_clear(&r->twice);
    mr_ws_encode_down(&r->down, &r->twice);
    assert_true(mr_str_eq(mr_buf_str(&r->once), mr_buf_str(&r->twice)));
    assert_int_equal(r->down.tasks.priority[1], INT32_MIN);
    assert_int_equal(r->down.tasks.extras[0].resources[0].micro, 1500000);
    assert_int_equal(r->down.tasks.extras[0].resources[1].micro, 1);
    assert_true(r->down.forget_jobs[1].v == BIG);
}

static void a_message_of_a_worker_arrives_as_it_was_sent(void **state)
{
    struct rig *r = *state;
    struct mr_ws_register reg;
    struct mr_ws_up full = up_full(&reg);
    assert_full(&mr_ws_up_type, (const unsigned char *)&full);
    mr_ws_encode_up(&full, &r->once);
    assert_protobuf(r, &millrace__v1__worker_message__descriptor);
    if (decode_up(r)) fail_msg("%s", r->e.text);
    assert_full(&mr_ws_up_type, (const unsigned char *)&r->up);
    mr_buf_clear(&r->twice);
    mr_ws_encode_up(&r->up, &r->twice);
    assert_true(mr_str_eq(mr_buf_str(&r->once), mr_buf_str(&r->twice)));
    assert_true(r->up.completed.started_ns[2] == BIG);
    assert_int_equal(r->up.completed.failures[0].code, 13);
}

static void a_message_of_nothing_has_no_bytes(void **state)
{
    struct rig *r = *state;
    mr_ws_encode_down(&(struct mr_ws_down){0}, &r->once);
    mr_ws_encode_up(&(struct mr_ws_up){0}, &r->once);
    assert_int_equal(r->once.n, 0);
    assert_int_equal(decode_down(r), MR_OK);
    assert_int_equal(decode_up(r), MR_OK);
    assert_null(r->down.registered);
    assert_null(r->up.heartbeat);
}

static void no_suspects_are_not_the_same_as_unknown_ones(void **state)
{
    struct rig *r = *state;
    struct mr_ws_register reg = register_full();
    const struct mr_ws_up up = {.reg = &reg};
    reg.suspects = (struct mr_ws_refs){0};
    mr_ws_encode_up(&up, &r->once);
    assert_int_equal(decode_up(r), MR_OK);
    assert_true(r->up.reg->has_suspects);
    reg.has_suspects = false;
    mr_buf_clear(&r->once);
    mr_ws_encode_up(&up, &r->once);
    assert_int_equal(decode_up(r), MR_OK);
    assert_false(r->up.reg->has_suspects);
}

static void one_op_for_all_tasks_travels_once(void **state)
{
    struct rig *r = *state;
    struct mr_ws_down m = {.tasks = down_full().tasks};
    m.tasks.op = NULL;
    m.tasks.op_of_all = 300;
    mr_ws_encode_down(&m, &r->once);
    assert_protobuf(r, &millrace__v1__scheduler_message__descriptor);
    assert_int_equal(decode_down(r), MR_OK);
    assert_null(r->down.tasks.op);
    assert_int_equal(mr_ws_op(&r->down.tasks, 2), 300);
}

/* A protobuf parser must take repeated numbers that come in one packed field, in several packed
 * fields, or singly. */
static void columns_may_come_in_pieces(void **state)
{
    struct rig *r = *state;
    size_t began = mr_protowire_begin(&r->once, 7); /* release */
    size_t run = mr_protowire_begin(&r->once, 1);
    mr_protowire_add_varint(&r->once, 1, 5);
    mr_protowire_add_varint(&r->once, 2, 3);
    mr_protowire_end(&r->once, run);
    mr_protowire_add_varint(&r->once, 2, 1000);
    mr_protowire_add_bytes(&r->once, 2, MR_STR("\x07\x08"));
    mr_protowire_add_varint(&r->once, 99, 1); /* a field of a later version */
    mr_protowire_end(&r->once, began);
    assert_int_equal(decode_down(r), MR_OK);
    assert_int_equal(r->down.release.count, 3);
    assert_int_equal(r->down.release.index[0], 1000);
    assert_int_equal(r->down.release.index[1], 7);
    assert_int_equal(r->down.release.index[2], 8);
    assert_null(r->down.release.attempt);
}

/* ---- texts ---------------------------------------------------------------------------------- */

static void a_text_that_is_not_utf8_is_escaped(void **state)
{
    struct rig *r = *state;
    const struct mr_ws_log log = {.job = {1}, .text = MR_STR("a\377b")};
    mr_ws_encode_up(&(struct mr_ws_up){.logs = &log, .logs_count = 1}, &r->once);
    assert_protobuf(r, &millrace__v1__worker_message__descriptor);
    assert_int_equal(decode_up(r), MR_OK);
    assert_true(mr_str_eq(r->up.logs[0].text, MR_STR("a\\xffb")));
}

static void a_text_ends_at_its_first_nul(void **state)
{
    struct rig *r = *state;
    size_t began = mr_protowire_begin(&r->once, 9);
    mr_protowire_add_bytes(&r->once, 4, mr_str_of("ab\0cd", 5));
    mr_protowire_end(&r->once, began);
    assert_int_equal(decode_up(r), MR_OK);
    assert_true(mr_str_eq(r->up.logs[0].text, MR_STR("ab")));
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void refused_down(struct rig *r, const struct mr_ws_down *m, int code, const char *text)
{
    mr_buf_clear(&r->once);
    mr_ws_encode_down(m, &r->once);
    assert_int_equal(decode_down(r), code);
    assert_string_equal(r->e.text, text);
}

static void refused_up(struct rig *r, const struct mr_ws_up *m, int code, const char *text)
{
    mr_buf_clear(&r->once);
    mr_ws_encode_up(m, &r->once);
    assert_int_equal(decode_up(r), code);
    assert_string_equal(r->e.text, text);
}

static void columns_of_different_lengths_are_refused(void **state)
{
    struct rig *r = *state;
    struct mr_ws_down m = {.tasks = down_full().tasks};
    m.tasks.args_bytes = NULL;
    refused_down(r, &m, MR_EFORMAT, "tasks.args_bytes: 0 rows, expected 3");
    struct mr_ws_up up = {.completed = completed_full()};
    up.completed.tasks.attempt = NULL;
    refused_up(r, &up, MR_EFORMAT, "completed.attempt: 0 rows, expected 3");
    mr_buf_clear(&r->once);
    size_t began = mr_protowire_begin(&r->once, 6); /* cancel */
    mr_protowire_add_bytes(&r->once, 3, MR_STR("\x01\x01"));
    mr_protowire_end(&r->once, began);
    assert_int_equal(decode_down(r), MR_EFORMAT);
    assert_string_equal(r->e.text, "cancel.attempt: 2 rows, expected 0");
}

static void sums_that_do_not_add_up_are_refused(void **state)
{
    struct rig *r = *state;
    struct mr_ws_down m = {.steal = refs3};
    m.steal.runs_count = 1;
    refused_down(r, &m, MR_EFORMAT, "steal: the runs cover 1 rows, the columns have 3");
    struct mr_ws_up up = {.given = refs3};
    up.given.runs_count = 1;
    refused_up(r, &up, MR_EFORMAT, "given: the runs cover 1 rows, the columns have 3");
    up = (struct mr_ws_up){.completed = completed_full()};
    up.completed.objects_count = 0;
    refused_up(r, &up, MR_EFORMAT, "completed.object_*: 0 rows, expected 1");
    up = (struct mr_ws_up){.completed = completed_full()};
    up.completed.inlined = MR_STR("\x01\x02");
    refused_up(r, &up, MR_EFORMAT, "completed.inline: 2 bytes, its rows have 1");
    up.completed.inlined = MR_STR("");
    refused_up(r, &up, MR_EFORMAT, "completed.inline: ends inside row 0");
    up.completed.inlined = MR_STR("\xc1"); /* no pack begins with 0xc1 */
    mr_buf_clear(&r->once);
    mr_ws_encode_up(&up, &r->once);
    assert_int_equal(decode_up(r), MR_EFORMAT);
}

static void failures_out_of_order_are_refused(void **state)
{
    struct rig *r = *state;
    const struct mr_ws_failure twice[] = {{.row = 1}, {.row = 1}}, beyond = {.row = 3};
    struct mr_ws_up up = {.completed = completed_full()};
    up.completed.failures = &beyond;
    refused_up(r, &up, MR_EFORMAT, "completed.failures: row 3 is out of place");
    up.completed.failures = twice;
    up.completed.failures_count = 2;
    refused_up(r, &up, MR_EFORMAT, "completed.failures: row 1 is out of place");
}

static void a_register_beyond_the_limits_is_refused(void **state)
{
    struct rig *r = *state;
    struct mr_ws_register reg = register_full();
    const struct mr_ws_up up = {.reg = &reg};
    reg.name = MR_STR("");
    refused_up(r, &up, MR_EINVAL, "register.name: 1 to 256 bytes");
    reg = register_full();
    reg.slots = 0;
    refused_up(r, &up, MR_EINVAL, "register.slots: 1 to 1024, not 0");
    const struct mr_ws_resource odd = {MR_STR("gpu"), UINT64_MAX};
    reg = register_full();
    reg.resources = &odd;
    reg.resources_count = 1;
    refused_up(r, &up, MR_EINVAL, "register.resources: \"gpu\" is not between 0 and 1e12");
    reg = register_full();
    reg.ops_count = 1;
    reg.ops = &(struct mr_ws_operator){.cost_ns = 1};
    refused_up(r, &up, MR_EINVAL, "register.ops: a name of 0 bytes");
}

/* A message of another protocol version may have other columns. The error must name the version,
 * not the columns. */
static void another_version_is_named_whatever_its_columns_are(void **state)
{
    struct rig *r = *state;
    struct mr_ws_register reg = register_full();
    reg.protocol_version = MR_PROTOCOL_VERSION + 1;
    reg.holding.tasks.attempt = NULL;
    mr_ws_encode_up(&(struct mr_ws_up){.reg = &reg}, &r->once);
    assert_int_equal(decode_up(r), MR_ESTATE);
    assert_non_null(strstr(r->e.text, "worker \"w\" speaks protocol"));
}

static void running_times_of_another_length_are_left_out(void **state)
{
    struct rig *r = *state;
    const struct mr_ws_heartbeat h = {.sequence = 1, .running_tasks = refs3, .running_ns = times};
    mr_ws_encode_up(&(struct mr_ws_up){.heartbeat = &h}, &r->once);
    assert_int_equal(decode_up(r), MR_OK);
    assert_non_null(r->up.heartbeat->running_ns);
    mr_buf_clear(&r->once);
    size_t began = mr_protowire_begin(&r->once, 2);
    mr_protowire_add_varint(&r->once, 10, 5);
    mr_protowire_end(&r->once, began);
    assert_int_equal(decode_up(r), MR_OK);
    assert_null(r->up.heartbeat->running_ns);
}

static void bytes_that_are_no_message_are_refused(void **state)
{
    struct rig *r = *state;
    static const struct mr_str bad[] = {MR_STR_INIT("\x08"),         /* ends inside a field */
        MR_STR_INIT("\x0a\x05\x08"),                                 /* ends inside a message */
        MR_STR_INIT("\x50\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), /* no varint has 70 bits */
        MR_STR_INIT("\x55\x01\x01\x01\x01"),                         /* drain as a fixed32 */
        MR_STR_INIT("\x3a\x04\x12\x02\x80\x80"), /* a column that ends inside a number */
        MR_STR_INIT("\x2a\x00\x2a\x00")};        /* tasks twice */
    for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++) {
        mr_buf_clear(&r->once);
        mr_buf_add_str(&r->once, bad[i]);
        assert_int_equal(decode_down(r), MR_EFORMAT);
        assert_string_equal(r->e.text, "millrace.v1.SchedulerMessage: malformed protobuf");
    }
}

static void a_message_that_needs_too_much_memory_is_refused(void **state)
{
    struct rig *r = *state;
    size_t began = mr_protowire_begin(&r->once, 6);
    for (int i = 0; i < 1000; i++)
        mr_protowire_add_bytes(&r->once, 1, MR_STR("")); /* adds an empty message Run to `cancel` */
    mr_protowire_end(&r->once, began);
    r->memory.bytes_max = 1000;
    assert_int_equal(decode_down(r), MR_ELIMIT);
    assert_string_equal(
        r->e.text, "millrace.v1.SchedulerMessage: needs more than 1000 bytes of memory");
}

/* Cuts the message at each length, and flips each of its bits. The sanitizers notice if the decoder
 * reads or writes beyond its memory. */
static void no_bytes_make_the_decoder_stumble(void **state)
{
    struct rig *r = *state;
    struct mr_ws_register reg;
    struct mr_ws_down down = down_full();
    struct mr_ws_up up = up_full(&reg);
    for (int way = 0; way < 2; way++) {
        mr_buf_clear(&r->once);
        if (way)
            mr_ws_encode_up(&up, &r->once);
        else
            mr_ws_encode_down(&down, &r->once);
        size_t whole = r->once.n;
        for (size_t i = 0; i < whole; i++) {
            for (unsigned bit = 0; bit < 9; bit++) {
                if (bit < 8) r->once.p[i] ^= (unsigned char)(1u << bit);
                r->once.n = bit < 8 ? whole : i;
                mr_pb_arena_clear(&r->arena);
                (void)(way ? decode_up(r) : decode_down(r));
                if (bit < 8) r->once.p[i] ^= (unsigned char)(1u << bit);
            }
        }
        r->once.n = whole;
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_message_to_a_worker_arrives_as_it_was_sent),
        T(a_message_of_a_worker_arrives_as_it_was_sent),
        T(a_message_of_nothing_has_no_bytes),
        T(no_suspects_are_not_the_same_as_unknown_ones),
        T(one_op_for_all_tasks_travels_once),
        T(columns_may_come_in_pieces),
        T(a_text_that_is_not_utf8_is_escaped),
        T(a_text_ends_at_its_first_nul),
        T(columns_of_different_lengths_are_refused),
        T(sums_that_do_not_add_up_are_refused),
        T(failures_out_of_order_are_refused),
        T(a_register_beyond_the_limits_is_refused),
        T(another_version_is_named_whatever_its_columns_are),
        T(running_times_of_another_length_are_left_out),
        T(bytes_that_are_no_message_are_refused),
        T(a_message_that_needs_too_much_memory_is_refused),
        T(no_bytes_make_the_decoder_stumble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
