/* Walks a message with a stack instead of recursion, because messages come from outside. Strings
 * are checked for UTF-8, which protobuf-c does not do. */
#include "gateway/json/json_out.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "gateway/json/base64.h"
#include "gateway/json/field.h"
#include "store/object/format/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct frame {
    const ProtobufCMessage *m;
    unsigned field; /* index of the next field to write */
    size_t item;    /* index of the next item of the current repeated field */
    bool is_open;   /* true: the opening bracket of this field is written */
    bool wrote;     /* true: a comma has to precede the next member */
};

struct state {
    struct frame stack[MR_DEPTH_MAX];
    size_t depth;
    struct mr_buf *out;
};

/* Returns the length of the character at `p`. 0: the bytes are not UTF-8. */
static size_t utf8_length(const unsigned char *p, size_t n)
{
    size_t want = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (want > n || !mr_utf8_is_valid(mr_str_of(p, want))) return 0;
    return want;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c != '"' && c != '\\' && c < 0x7f;
}

void mr_json_text(struct mr_buf *out, struct mr_str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    mr_buf_add_byte(out, '"');
    for (size_t i = 0; i < s.n;) {
        size_t run = i;
        while (run < s.n && is_plain(p[run]))
            run++;
        if (run > i) mr_buf_add(out, p + i, run - i);
        i = run;
        if (i == s.n) break;
        size_t n = utf8_length(p + i, s.n - i);
        if (p[i] == '"' || p[i] == '\\') {
            mr_buf_add_byte(out, '\\');
            mr_buf_add_byte(out, p[i]);
        } else if (p[i] == '\n') {
            mr_buf_add_text(out, "\\n");
        } else if (n == 0) {
            mr_buf_add_text(out, "\\ufffd");
        } else if (p[i] < 0x20 || p[i] == 0x7f) {
            mr_buf_printf(out, "\\u%04x", p[i]);
        } else {
            mr_buf_add(out, p + i, n);
        }
        i += MR_MAX(n, (size_t)1);
    }
    mr_buf_add_byte(out, '"');
}

void mr_json_real(struct mr_buf *out, double v)
{
    if (isnan(v)) {
        mr_buf_add_text(out, "\"NaN\"");
        return;
    }
    if (isinf(v)) {
        mr_buf_add_text(out, v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    /* "-0" would read back as the integer 0. */
    if (v == 0 && signbit(v)) {
        mr_buf_add_text(out, "-0.0");
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v) break;
    }
    mr_buf_add_text(out, text);
}

static size_t element_bytes(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_ENUM: return 4;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return 8;
    case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING: return sizeof(char *);
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(ProtobufCMessage *);
    case PROTOBUF_C_TYPE_BYTES: break;
    }
    return sizeof(ProtobufCBinaryData);
}

static void write_enum(const ProtobufCFieldDescriptor *f, int32_t v, struct mr_buf *out)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(f->descriptor, v);
    if (value)
        mr_json_text(out, mr_str(value->name));
    else
        /* The value comes from a newer version of the proto file. */
        mr_buf_printf(out, "%" PRId32, v);
}

static void write_bytes(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
    const ProtobufCBinaryData *data, struct mr_buf *out)
{
    struct mr_str bytes = mr_str_of(data->data, data->len);
    if (mr_proto_value_field_find(m->descriptor, f->name)) {
        size_t before = out->n;
        if (mr_json_from_pack(bytes, out, NULL)) {
            out->n = before;
            mr_buf_add_text(out, "null");
        }
        return;
    }
    mr_buf_add_byte(out, '"');
    mr_base64_encode(bytes, out);
    mr_buf_add_byte(out, '"');
}

/* Writes an element that is not a message. */
static void write_plain(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
    const void *at, struct mr_buf *out)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32: mr_buf_printf(out, "%" PRId32, *(const int32_t *)at); return;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32: mr_buf_printf(out, "%" PRIu32, *(const uint32_t *)at); return;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        mr_buf_printf(out, "\"%" PRId64 "\"", *(const int64_t *)at);
        return;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        mr_buf_printf(out, "\"%" PRIu64 "\"", *(const uint64_t *)at);
        return;
    case PROTOBUF_C_TYPE_FLOAT: mr_json_real(out, (double)*(const float *)at); return;
    case PROTOBUF_C_TYPE_DOUBLE: mr_json_real(out, *(const double *)at); return;
    case PROTOBUF_C_TYPE_BOOL:
        mr_buf_add_text(out, *(const protobuf_c_boolean *)at ? "true" : "false");
        return;
    case PROTOBUF_C_TYPE_ENUM: write_enum(f, *(const int32_t *)at, out); return;
    case PROTOBUF_C_TYPE_STRING: mr_json_text(out, mr_str(*(char *const *)at)); return;
    case PROTOBUF_C_TYPE_BYTES: write_bytes(m, f, at, out); return;
    case PROTOBUF_C_TYPE_MESSAGE: break;
    }
    mr_assert(false); /* cannot happen: a message is put on the stack instead */
}

static void write_map_key(const ProtobufCMessage *entry, struct mr_buf *out)
{
    const ProtobufCFieldDescriptor *f = &entry->descriptor->fields[0];
    const void *at = (const char *)entry + f->offset;
    bool quotes = f->type == PROTOBUF_C_TYPE_STRING || mr_field_is_64(f);
    if (!quotes) mr_buf_add_byte(out, '"');
    write_plain(entry, f, at, out);
    if (!quotes) mr_buf_add_byte(out, '"');
    mr_buf_add_byte(out, ':');
}

static int push(struct state *s, const ProtobufCMessage *m)
{
    if (s->depth == MR_DEPTH_MAX) return MR_ELIMIT;
    s->stack[s->depth++] = (struct frame){.m = m};
    mr_buf_add_byte(s->out, '{');
    return MR_OK;
}

static bool is_map(const ProtobufCFieldDescriptor *f)
{
    return f->type == PROTOBUF_C_TYPE_MESSAGE && mr_proto_is_map_entry(f->descriptor);
}

/* Writes the element at `at` of message `m`. */
static int write_element(
    struct state *s, const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, const void *at)
{
    if (f->type != PROTOBUF_C_TYPE_MESSAGE) {
        write_plain(m, f, at, s->out);
        return MR_OK;
    }
    const ProtobufCMessage *child = *(ProtobufCMessage *const *)at;
    if (!is_map(f)) return push(s, child);
    write_map_key(child, s->out);
    const ProtobufCFieldDescriptor *value = &child->descriptor->fields[1];
    const void *value_at = (const char *)child + value->offset;
    if (value->type != PROTOBUF_C_TYPE_MESSAGE) {
        write_plain(child, value, value_at, s->out);
        return MR_OK;
    }
    const ProtobufCMessage *inner = *(ProtobufCMessage *const *)value_at;
    if (inner) return push(s, inner);
    mr_buf_add_text(s->out, "{}");
    return MR_OK;
}

static int step_repeated(struct state *s, struct frame *top, const ProtobufCFieldDescriptor *f)
{
    const char *base = (const char *)top->m;
    size_t count = *(const size_t *)(const void *)(base + f->quantifier_offset);
    if (!top->is_open) {
        mr_buf_add_byte(s->out, is_map(f) ? '{' : '[');
        top->is_open = true;
        top->item = 0;
    }
    if (top->item == count) {
        mr_buf_add_byte(s->out, is_map(f) ? '}' : ']');
        top->is_open = false;
        top->field++;
        return MR_OK;
    }
    if (top->item) mr_buf_add_byte(s->out, ',');
    const char *items = *(char *const *)(const void *)(base + f->offset);
    return write_element(s, top->m, f, items + element_bytes(f) * top->item++);
}

static bool is_there(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    const char *base = (const char *)m;
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const uint32_t *)(const void *)(base + f->quantifier_offset) == f->id;
    if (f->type == PROTOBUF_C_TYPE_MESSAGE && f->label != PROTOBUF_C_LABEL_REPEATED)
        return *(ProtobufCMessage *const *)(const void *)(base + f->offset) != NULL;
    return true;
}

static int step(struct state *s)
{
    struct frame *top = &s->stack[s->depth - 1];
    if (top->field == top->m->descriptor->n_fields) {
        mr_buf_add_byte(s->out, '}');
        s->depth--;
        return MR_OK;
    }
    const ProtobufCFieldDescriptor *f = &top->m->descriptor->fields[top->field];
    if (top->is_open) return step_repeated(s, top, f);
    if (!is_there(top->m, f)) {
        top->field++;
        return MR_OK;
    }
    if (top->wrote) mr_buf_add_byte(s->out, ',');
    top->wrote = true;
    const char *shown = f->type == PROTOBUF_C_TYPE_BYTES
                            ? mr_proto_value_field_find(top->m->descriptor, f->name)
                            : NULL;
    mr_json_text(s->out, mr_str(shown ? shown : f->name));
    mr_buf_add_byte(s->out, ':');
    if (f->label == PROTOBUF_C_LABEL_REPEATED) return step_repeated(s, top, f);
    top->field++;
    return write_element(s, top->m, f, (const char *)top->m + f->offset);
}

int mr_json_from_message(const ProtobufCMessage *m, struct mr_buf *out)
{
    struct state s = {.out = out};
    int err = push(&s, m);
    while (!err && s.depth)
        err = step(&s);
    return err;
}
