/* The tables of fields of WorkerSession's messages have each field of session.proto. */
#include "session/fields.h"
#include "session/up.h"

#include <millrace/v1/session.pb-c.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool is_repeated(const struct mr_ws_field *f)
{
    return f->kind >= MR_WS_COLUMN32;
}

static ProtobufCType type_of(const struct mr_ws_field *f)
{
    static const ProtobufCType types[] = {[MR_WS_U32] = PROTOBUF_C_TYPE_UINT32,
        [MR_WS_U64] = PROTOBUF_C_TYPE_UINT64,
        [MR_WS_I32] = PROTOBUF_C_TYPE_INT32,
        [MR_WS_BOOL] = PROTOBUF_C_TYPE_BOOL,
        [MR_WS_FIXED64] = PROTOBUF_C_TYPE_FIXED64,
        [MR_WS_MICRO] = PROTOBUF_C_TYPE_DOUBLE,
        [MR_WS_TEXT] = PROTOBUF_C_TYPE_STRING,
        [MR_WS_BYTES] = PROTOBUF_C_TYPE_BYTES,
        [MR_WS_PART] = PROTOBUF_C_TYPE_MESSAGE,
        [MR_WS_LINK] = PROTOBUF_C_TYPE_MESSAGE,
        [MR_WS_COLUMN32] = PROTOBUF_C_TYPE_UINT32,
        [MR_WS_COLUMN64] = PROTOBUF_C_TYPE_UINT64,
        [MR_WS_COLUMN_SIGNED32] = PROTOBUF_C_TYPE_SINT32,
        [MR_WS_COLUMN_FIXED64] = PROTOBUF_C_TYPE_FIXED64,
        [MR_WS_TEXTS] = PROTOBUF_C_TYPE_STRING,
        [MR_WS_ROWS] = PROTOBUF_C_TYPE_MESSAGE};
    return types[f->kind];
}

static void compare(const struct mr_ws_type *t, const ProtobufCMessageDescriptor *d)
{
    assert_string_equal(t->name, d->short_name);
    assert_int_equal(t->fields_count, d->n_fields);
    for (uint32_t i = 0; i < t->fields_count; i++) {
        const struct mr_ws_field *f = &t->fields[i];
        const ProtobufCFieldDescriptor *p = protobuf_c_message_descriptor_get_field(d, f->number);
        assert_non_null(p);
        assert_string_equal(f->name, p->name);
        assert_int_equal(is_repeated(f), p->label == PROTOBUF_C_LABEL_REPEATED);
        bool is_enum = f->kind == MR_WS_COLUMN32 && p->type == PROTOBUF_C_TYPE_ENUM;
        if (!is_enum) assert_int_equal(type_of(f), p->type);
        if (i) assert_true(f->number > t->fields[i - 1].number);
        if (f->type) compare(f->type, p->descriptor);
    }
}

static void the_tables_have_each_field_of_session_proto(void **state)
{
    (void)state;
    compare(&mr_ws_down_type, &millrace__v1__scheduler_message__descriptor);
    compare(&mr_ws_up_type, &millrace__v1__worker_message__descriptor);
}

static void outcomes_have_the_numbers_of_session_proto(void **state)
{
    (void)state;
    assert_int_equal(MR_OUTCOME_OK, MILLRACE__V1__OUTCOME__OUTCOME_OK);
    assert_int_equal(MR_OUTCOME_ERROR, MILLRACE__V1__OUTCOME__OUTCOME_ERROR);
    assert_int_equal(MR_OUTCOME_CANCELLED, MILLRACE__V1__OUTCOME__OUTCOME_CANCELLED);
    assert_int_equal(MR_OUTCOME_TIMEOUT, MILLRACE__V1__OUTCOME__OUTCOME_TIMEOUT);
    assert_int_equal(MR_OUTCOME_BAD_ARGUMENT, MILLRACE__V1__OUTCOME__OUTCOME_BAD_ARGUMENT);
    assert_int_equal(MR_OUTCOME_LOST_INPUT, MILLRACE__V1__OUTCOME__OUTCOME_LOST_INPUT);
    assert_int_equal(MR_OUTCOME_RETURNED, MILLRACE__V1__OUTCOME__OUTCOME_RETURNED);
    assert_int_equal(MR_OUTCOME_USED_UP, MILLRACE__V1__OUTCOME__OUTCOME_USED_UP);
    assert_int_equal(MR_OUTCOME_NO_ROOM, MILLRACE__V1__OUTCOME__OUTCOME_NO_ROOM);
    assert_int_equal(millrace__v1__outcome__descriptor.n_values, MR_OUTCOME_LOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tables_have_each_field_of_session_proto),
        cmocka_unit_test(outcomes_have_the_numbers_of_session_proto),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
