/* lib/rpc without a connection: status details, descriptors, reflection, and protobuf-c messages in
 * an arena. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/protowire.h"
#include "millrace/v1/jobs.pb-c.h"
#include "proto/methods.h"
#include "rpc/util/pb.h"
#include "rpc/server/reflection_answer.h"
#include "rpc/status.h"

static void every_error_survives_the_way_through_a_status(void **state)
{
    (void)state;
    static const int codes[] = {
#define MR_ROW(name, value, grpc, http, words) value,
        MR_ERRORS(MR_ROW)
#undef MR_ROW
    };
    struct mr_buf details;
    mr_buf_init(&details, 4096);
    for (size_t i = 0; i < MR_ARRAY_LEN(codes); i++) {
        struct mr_error e, back;
        (void)mr_fail(&e, codes[i], "key \"%s\" is wrong", "a");
        struct mr_rpc_status s = mr_rpc_status_of(&e, &details);
        assert_int_equal(mr_rpc_status_error(&s, &back), codes[i]);
        assert_string_equal(back.text, e.text);
    }
    mr_buf_fini(&details);
}

static void details_that_contradict_the_code_are_not_believed(void **state)
{
    (void)state;
    struct mr_error e;
    struct mr_buf details;
    mr_buf_init(&details, 4096);
    (void)mr_fail(&e, MR_ETOOBIG, "too big");
    struct mr_rpc_status s = mr_rpc_status_of(&e, &details);
    s.code = 5;
    assert_int_equal(mr_rpc_status_error(&s, NULL), MR_ENOENT);
    s.details = MR_STR("\xff\xff");
    assert_int_equal(mr_rpc_status_error(&s, NULL), MR_ENOENT);
    s.code = 99;
    assert_int_equal(mr_rpc_status_error(&s, NULL), MR_EUNKNOWN);
    mr_buf_fini(&details);
}

static void descriptors_know_every_symbol_of_the_contract(void **state)
{
    (void)state;
    struct mr_descriptors d;
    mr_descriptors_init(&d);
    struct mr_error e;
    assert_int_equal(mr_descriptors_add(&d, mr_proto_descriptor_set(), &e), MR_OK);
    /* Descriptors that were added before are skipped. */
    assert_int_equal(mr_descriptors_add(&d, mr_proto_descriptor_set(), &e), MR_OK);
    uint32_t file = mr_descriptors_file(&d, MR_STR("millrace/v1/jobs.proto"));
    assert_int_not_equal(file, MR_INDEX_NONE);
    static const char *const symbols[] = {"millrace.v1.Jobs", "millrace.v1.Jobs.Get",
        "millrace.v1.Argument", "millrace.v1.Argument.pack", "millrace.v1.Argument.kind",
        "millrace.v1.JobOptions.LabelsEntry"};
    for (size_t i = 0; i < MR_ARRAY_LEN(symbols); i++)
        assert_int_equal(mr_descriptors_symbol_file(&d, mr_str(symbols[i])), file);
    assert_int_equal(mr_descriptors_symbol_file(&d, MR_STR("millrace.v1.Nothing")), MR_INDEX_NONE);
    uint32_t http =
        mr_descriptors_extension_file(&d, MR_STR("google.protobuf.MethodOptions"), 72295728);
    assert_int_equal(http, mr_descriptors_file(&d, MR_STR("google/api/annotations.proto")));
    mr_descriptors_fini(&d);
}

static void malformed_descriptors_are_refused(void **state)
{
    (void)state;
    struct mr_descriptors d;
    mr_descriptors_init(&d);
    assert_int_equal(mr_descriptors_add(&d, MR_STR("\x0a"), NULL), MR_EFORMAT);
    /* A FileDescriptorProto without a name is refused. */
    assert_int_equal(mr_descriptors_add(&d, MR_STR("\x0a\x00"), NULL), MR_EFORMAT);
    mr_descriptors_fini(&d);
}

/* Sends `question` to the reflection service. Returns the last field of the answer; its bytes are
 * in `out`. */
static struct mr_protowire_field ask(
    const struct mr_descriptors *d, struct mr_str question, struct mr_buf *out)
{
    static const struct mr_str services[] = {MR_STR_INIT("a.B"), MR_STR_INIT("c.D")};
    mr_buf_clear(out);
    assert_int_equal(mr_reflection_answer(d, services, 2, question, out), MR_OK);
    struct mr_protowire_reader r = mr_protowire_read(mr_buf_str(out));
    struct mr_protowire_field f = {0}, last = {0};
    while (!mr_protowire_next(&r, &f))
        last = f;
    return last;
}

static void reflection_answers_each_kind_of_question(void **state)
{
    (void)state;
    struct mr_descriptors d;
    mr_descriptors_init(&d);
    assert_int_equal(mr_descriptors_add(&d, mr_proto_descriptor_set(), NULL), MR_OK);
    struct mr_buf out;
    mr_buf_init(&out, MR_MESSAGE_BYTES_MAX);
    struct mr_protowire_field f = ask(&d, MR_STR("\x3a\x01*"), &out);
    assert_int_equal(f.number, 6);
    assert_true(mr_str_eq(f.bytes, MR_STR("\x0a\x05\x0a\x03"
                                          "a.B\x0a\x05\x0a\x03"
                                          "c.D")));
    f = ask(&d, MR_STR("\x22\x10millrace.v1.Jobs"), &out);
    assert_int_equal(f.number, 4);
    f = ask(&d, MR_STR("\x1a\x16millrace/v1/jobs.proto"), &out);
    assert_int_equal(f.number, 4);
    f = ask(&d, MR_STR("\x32\x1dgoogle.protobuf.MethodOptions"), &out);
    assert_int_equal(f.number, 5);
    f = ask(&d, MR_STR("\x22\x01x"), &out);
    /* Field 7, error_response: unknown symbols are answered within the stream. */
    assert_int_equal(f.number, 7);
    f = ask(&d, MR_STR(""), &out);
    assert_int_equal(f.number, 7);
    assert_int_equal(mr_reflection_answer(&d, NULL, 0, MR_STR("\xff"), &out), MR_EFORMAT);
    mr_buf_fini(&out);
    mr_descriptors_fini(&d);
}

/* Makes an Argument with `depth` nested lists. */
static void nest(struct mr_buf *b, int depth)
{
    mr_buf_clear(b);
    struct mr_buf outer;
    mr_buf_init(&outer, 1 << 20);
    for (int i = 0; i < depth; i++) {
        mr_buf_clear(&outer);
        mr_protowire_add_bytes(&outer, 1, mr_buf_str(b)); /* ArgumentList.items */
        mr_buf_clear(b);
        mr_protowire_add_bytes(b, 9, mr_buf_str(&outer)); /* Argument.list */
    }
    mr_buf_fini(&outer);
}

static void messages_nest_as_deep_as_graphs_may_and_no_deeper(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 1 << 20);
    struct mr_pb_arena a;
    mr_pb_arena_init(&a, 1 << 20);
    struct mr_error e;
    nest(&b, MR_DEPTH_MAX);
    assert_non_null(mr_pb_unpack(&millrace__v1__argument__descriptor, mr_buf_str(&b), &a, &e));
    nest(&b, 10000);
    mr_pb_arena_clear(&a);
    assert_null(mr_pb_unpack(&millrace__v1__argument__descriptor, mr_buf_str(&b), &a, &e));
    assert_int_equal(e.code, MR_ELIMIT);
    mr_pb_arena_fini(&a);
    mr_buf_fini(&b);
}

static void an_arena_holds_a_message_to_its_ceiling(void **state)
{
    (void)state;
    Millrace__V1__SubmitGraphRequest m = MILLRACE__V1__SUBMIT_GRAPH_REQUEST__INIT;
    char *targets[1000];
    for (size_t i = 0; i < MR_ARRAY_LEN(targets); i++)
        targets[i] = (char *)(uintptr_t) "key";
    m.n_targets = MR_ARRAY_LEN(targets);
    m.targets = targets;
    struct mr_buf b;
    mr_buf_init(&b, 1 << 20);
    mr_pb_pack(&m.base, &b);
    struct mr_pb_arena a;
    mr_pb_arena_init(&a, 16384);
    struct mr_error e;
    assert_null(mr_pb_unpack(m.base.descriptor, mr_buf_str(&b), &a, &e));
    assert_int_equal(e.code, MR_ELIMIT);
    mr_pb_arena_fini(&a);
    mr_pb_arena_init(&a, 1 << 20);
    for (int i = 0; i < 3; i++) {
        mr_pb_arena_clear(&a);
        const Millrace__V1__SubmitGraphRequest *back =
            mr_pb_unpack(m.base.descriptor, mr_buf_str(&b), &a, &e);
        assert_non_null(back);
        assert_int_equal(back->n_targets, 1000);
        assert_string_equal(back->targets[999], "key");
    }
    assert_null(mr_pb_unpack(m.base.descriptor, MR_STR("\x32\xff"), &a, &e));
    assert_int_equal(e.code, MR_EFORMAT);
    mr_pb_arena_fini(&a);
    mr_buf_fini(&b);
}

/* A request that fills the arena must leave memory for the answer. Without this memory an assertion
 * would end the service. */
static void a_request_leaves_half_of_the_arena(void **state)
{
    (void)state;
    struct mr_buf b;
    struct mr_error e;
    for (size_t fields = 100; fields < 4000; fields += 100) {
        mr_buf_init(&b, 1 << 20);
        /* These unknown fields have two bytes each, and protobuf-c keeps them. */
        for (size_t i = 0; i < fields; i++)
            mr_protowire_add_varint(&b, 15, 0);
        struct mr_pb_arena a;
        mr_pb_arena_init(&a, 65536);
        const void *m = mr_pb_unpack_request(
            &millrace__v1__submit_graph_request__descriptor, mr_buf_str(&b), &a, &e);
        assert_true(m || e.code == MR_ELIMIT);
        assert_true(fields > 100 || m);
        assert_true(fields < 2000 || !m);
        assert_non_null(mr_pb_arena_take(&a, 65536 / 2));
        mr_pb_arena_fini(&a);
        mr_buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_survives_the_way_through_a_status),
        cmocka_unit_test(details_that_contradict_the_code_are_not_believed),
        cmocka_unit_test(descriptors_know_every_symbol_of_the_contract),
        cmocka_unit_test(malformed_descriptors_are_refused),
        cmocka_unit_test(reflection_answers_each_kind_of_question),
        cmocka_unit_test(messages_nest_as_deep_as_graphs_may_and_no_deeper),
        cmocka_unit_test(an_arena_holds_a_message_to_its_ceiling),
        cmocka_unit_test(a_request_leaves_half_of_the_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
