/* Writes values of protobuf fields in wire format. Error sentences name a field as the proto file
 * spells it. */
#include "gateway/json/field.h"

#include "base/assert.h"
#include "base/protowire.h"
#include "base/utf8.h"
#include "gateway/json/base64.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME_BYTES_MAX 64
#define NUMBER_BYTES_MAX 40

const ProtobufCFieldDescriptor *mr_field_find(
    const ProtobufCMessageDescriptor *type, struct mr_str name)
{
    char snake[NAME_BYTES_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool upper = c >= 'A' && c <= 'Z';
        if (n + 2 > NAME_BYTES_MAX || c == 0) return NULL;
        if (upper) snake[n++] = '_';
        snake[n++] = upper ? (char)(c - 'A' + 'a') : c;
    }
    snake[n] = 0;
    return protobuf_c_message_descriptor_get_field_by_name(type, snake);
}

bool mr_field_is_64(const ProtobufCFieldDescriptor *f)
{
    return f->type == PROTOBUF_C_TYPE_INT64 || f->type == PROTOBUF_C_TYPE_SINT64 ||
           f->type == PROTOBUF_C_TYPE_SFIXED64 || f->type == PROTOBUF_C_TYPE_UINT64 ||
           f->type == PROTOBUF_C_TYPE_FIXED64;
}

bool mr_field_is_number(const ProtobufCFieldDescriptor *f)
{
    return f->type != PROTOBUF_C_TYPE_BOOL && f->type != PROTOBUF_C_TYPE_ENUM &&
           f->type != PROTOBUF_C_TYPE_STRING && f->type != PROTOBUF_C_TYPE_BYTES &&
           f->type != PROTOBUF_C_TYPE_MESSAGE;
}

static bool is_real(const ProtobufCFieldDescriptor *f)
{
    return f->type == PROTOBUF_C_TYPE_FLOAT || f->type == PROTOBUF_C_TYPE_DOUBLE;
}

static bool is_unsigned(const ProtobufCFieldDescriptor *f)
{
    return f->type == PROTOBUF_C_TYPE_UINT32 || f->type == PROTOBUF_C_TYPE_FIXED32 ||
           f->type == PROTOBUF_C_TYPE_UINT64 || f->type == PROTOBUF_C_TYPE_FIXED64;
}

static enum mr_protowire_type wire_type(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM: return MR_PROTOWIRE_VARINT;
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT: return MR_PROTOWIRE_FIXED32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return MR_PROTOWIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: break;
    }
    return MR_PROTOWIRE_BYTES;
}

static void write_integer(const ProtobufCFieldDescriptor *f, uint64_t bits, struct mr_buf *wire)
{
    int64_t v = (int64_t)bits;
    if (wire_type(f) == MR_PROTOWIRE_FIXED32)
        mr_protowire_fixed32(wire, (uint32_t)bits);
    else if (wire_type(f) == MR_PROTOWIRE_FIXED64)
        mr_protowire_fixed64(wire, bits);
    else if (f->type == PROTOBUF_C_TYPE_SINT32 || f->type == PROTOBUF_C_TYPE_SINT64)
        mr_protowire_varint(wire, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
    else
        mr_protowire_varint(wire, bits);
}

static void write_real(const ProtobufCFieldDescriptor *f, double v, struct mr_buf *wire)
{
    if (f->type == PROTOBUF_C_TYPE_FLOAT) {
        float single = (float)v;
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        mr_protowire_fixed32(wire, bits);
        return;
    }
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    mr_protowire_fixed64(wire, bits);
}

static int check_bound(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *f,
    double v, struct mr_error *e)
{
    const struct mr_proto_bound *bound = mr_proto_bound_find(type, f->name);
    if (!bound || (v >= bound->min && v <= bound->max)) return MR_OK;
    return mr_fail(
        e, MR_EINVAL, "%s: %.17g is not within %g to %g", f->name, v, bound->min, bound->max);
}

static int not_integer(const ProtobufCFieldDescriptor *f, struct mr_error *e)
{
    if (is_unsigned(f))
        return mr_fail(e, MR_EINVAL, "%s: a whole number from 0 to %s is wanted", f->name,
            mr_field_is_64(f) ? "18446744073709551615" : "4294967295");
    return mr_fail(e, MR_EINVAL, "%s: a whole number of %s bits is wanted", f->name,
        mr_field_is_64(f) ? "64" : "32");
}

/* Converts a number to an integer of the field's type. MR_EINVAL: the number has a fraction or does
 * not fit. */
static int as_integer(const ProtobufCFieldDescriptor *f, struct mr_number v, uint64_t *bits)
{
    /* 1e3 is an integer, too. Beyond 2^53 doubles are not exact. */
    if (v.kind == MR_NUMBER_REAL) {
        if (!(fabs(v.real) <= 9007199254740992.0) || v.real != floor(v.real)) return MR_EINVAL;
        v = (struct mr_number){.kind = MR_NUMBER_INT, .i = (int64_t)v.real};
    }
    if (v.kind == MR_NUMBER_UINT) {
        uint64_t max = is_unsigned(f) ? (mr_field_is_64(f) ? UINT64_MAX : UINT32_MAX)
                                      : (uint64_t)(mr_field_is_64(f) ? INT64_MAX : INT32_MAX);
        *bits = v.u;
        return v.u > max ? MR_EINVAL : MR_OK;
    }
    *bits = (uint64_t)v.i;
    if (is_unsigned(f))
        return v.i < 0 || (!mr_field_is_64(f) && v.i > UINT32_MAX) ? MR_EINVAL : MR_OK;
    return !mr_field_is_64(f) && (v.i < INT32_MIN || v.i > INT32_MAX) ? MR_EINVAL : MR_OK;
}

int mr_field_from_number(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *f,
    struct mr_number v, bool tag, struct mr_buf *wire, struct mr_error *e)
{
    mr_assert(mr_field_is_number(f));
    double real = v.kind == MR_NUMBER_REAL  ? v.real
                  : v.kind == MR_NUMBER_INT ? (double)v.i
                                            : (double)v.u;
    uint64_t bits = 0;
    if (!isfinite(real)) return mr_fail(e, MR_EINVAL, "%s: a finite number is wanted", f->name);
    if (!is_real(f) && as_integer(f, v, &bits)) return not_integer(f, e);
    int err = check_bound(type, f, real, e);
    if (err) return err;

    if (tag) mr_protowire_tag(wire, f->id, wire_type(f));
    if (is_real(f))
        write_real(f, real, wire);
    else
        write_integer(f, bits, wire);
    return MR_OK;
}

void mr_field_bool(const ProtobufCFieldDescriptor *f, bool v, bool tag, struct mr_buf *wire)
{
    if (tag) mr_protowire_tag(wire, f->id, MR_PROTOWIRE_VARINT);
    mr_protowire_varint(wire, v);
}

/* Reads a text that is one decimal number. MR_EINVAL: the text is anything else, or too long. */
static int parse_number(struct mr_str text, struct mr_number *out)
{
    char copy[NUMBER_BYTES_MAX + 1];
    if (text.n == 0 || text.n > NUMBER_BYTES_MAX) return MR_EINVAL;
    for (size_t i = 0; i < text.n; i++)
        if (!memchr("0123456789+-.eE", text.p[i], 15)) return MR_EINVAL;
    memcpy(copy, text.p, text.n);
    copy[text.n] = 0;

    char *end;
    errno = 0;
    if (!strpbrk(copy, ".eE")) {
        if (copy[0] == '-')
            *out = (struct mr_number){.kind = MR_NUMBER_INT, .i = strtoll(copy, &end, 10)};
        else
            *out = (struct mr_number){.kind = MR_NUMBER_UINT, .u = strtoull(copy, &end, 10)};
        if (!errno) return *end ? MR_EINVAL : MR_OK;
    }
    *out = (struct mr_number){.kind = MR_NUMBER_REAL, .real = strtod(copy, &end)};
    return *end ? MR_EINVAL : MR_OK;
}

static int quoted_enum(const ProtobufCFieldDescriptor *f, struct mr_str text, bool tag,
    struct mr_buf *wire, struct mr_error *e)
{
    const ProtobufCEnumDescriptor *d = f->descriptor;
    for (unsigned i = 0; i < d->n_values; i++) {
        if (!mr_str_eq(text, mr_str(d->values[i].name))) continue;
        if (tag) mr_protowire_tag(wire, f->id, MR_PROTOWIRE_VARINT);
        mr_protowire_varint(wire, (uint64_t)(int64_t)d->values[i].value);
        return MR_OK;
    }
    char names[400] = "";
    size_t n = 0;
    for (unsigned i = 0; i < d->n_values && n < sizeof names; i++)
        n +=
            (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", d->values[i].name);
    return mr_fail(e, MR_EINVAL, "%s: \"%.*s\" is none of %s", f->name,
        (int)MR_MIN(text.n, (size_t)64), text.p, names);
}

int mr_field_from_quoted(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *f,
    struct mr_str text, bool tag, struct mr_buf *wire, struct mr_error *e)
{
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        if (memchr(text.p, 0, text.n))
            return mr_fail(e, MR_EINVAL, "%s: the character U+0000 is not allowed", f->name);
        if (!mr_utf8_is_valid(text)) return mr_fail(e, MR_EINVAL, "%s is not valid UTF-8", f->name);
        mr_protowire_add_bytes(wire, f->id, text);
        return MR_OK;
    }
    if (f->type == PROTOBUF_C_TYPE_BYTES) {
        size_t began = mr_protowire_begin(wire, f->id);
        if (mr_base64_decode(text, wire)) return mr_fail(e, MR_EINVAL, "%s is not base64", f->name);
        mr_protowire_end(wire, began);
        return MR_OK;
    }
    if (f->type == PROTOBUF_C_TYPE_ENUM) return quoted_enum(f, text, tag, wire, e);
    if (mr_field_is_64(f)) {
        struct mr_number v;
        if (parse_number(text, &v)) return not_integer(f, e);
        return mr_field_from_number(type, f, v, tag, wire, e);
    }
    return mr_fail(e, MR_EINVAL, "%s: a text stands where %s is wanted", f->name,
        f->type == PROTOBUF_C_TYPE_MESSAGE ? "an object"
        : f->type == PROTOBUF_C_TYPE_BOOL  ? "true or false"
                                           : "a number");
}

int mr_field_from_text(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *f,
    struct mr_str text, struct mr_buf *wire, struct mr_error *e)
{
    if (f->type == PROTOBUF_C_TYPE_MESSAGE)
        return mr_fail(e, MR_EINVAL, "%s is not a plain value and cannot be given here", f->name);
    if (f->type == PROTOBUF_C_TYPE_BOOL) {
        bool yes = mr_str_eq(text, MR_STR("true")) || mr_str_eq(text, MR_STR("1"));
        if (!yes && !mr_str_eq(text, MR_STR("false")) && !mr_str_eq(text, MR_STR("0")))
            return mr_fail(e, MR_EINVAL, "%s: \"%.*s\" is neither true nor false", f->name,
                (int)MR_MIN(text.n, (size_t)64), text.p);
        mr_field_bool(f, yes, true, wire);
        return MR_OK;
    }
    if (!mr_field_is_number(f)) return mr_field_from_quoted(type, f, text, true, wire, e);
    struct mr_number v;
    if (parse_number(text, &v))
        return is_real(f) ? mr_fail(e, MR_EINVAL, "%s: \"%.*s\" is not a number", f->name,
                                (int)MR_MIN(text.n, (size_t)64), text.p)
                          : not_integer(f, e);
    return mr_field_from_number(type, f, v, true, wire, e);
}
