/* Encodes protobuf with the tables of fields.h. Default values are not written, as in proto3: 0, an
 * empty text, a message without fields. Columns are written packed, directly from the caller's
 * struct. */
#include "session/encode.h"

#include "base/protowire.h"
#include "base/utf8.h"
#include "session/fields.h"

#define PIECE 128 /* room is made for at most this many elements of a column at a time */

static void text(struct mr_buf *b, uint32_t number, struct mr_str s)
{
    if (mr_utf8_is_valid(s) && !(s.n && memchr(s.p, 0, s.n))) {
        mr_protowire_add_bytes(b, number, s);
        return;
    }
    size_t began = mr_protowire_begin(b, number);
    size_t room = s.n * 4 + 1; /* an escaped byte takes four bytes, and a NUL follows */
    char *to = mr_buf_extend(b, room);
    if (!to) return;
    mr_utf8_printable(s.p, s.n, to, room);
    b->n -= room - strlen(to);
    mr_protowire_end(b, began);
}

static void column32(struct mr_buf *b, uint32_t number, const uint32_t *v, uint32_t count)
{
    size_t began = mr_protowire_begin(b, number);
    for (uint32_t i = 0; i < count;) {
        uint32_t end = i + MR_MIN(count - i, (uint32_t)PIECE);
        size_t room = (end - i) * (size_t)5;
        unsigned char *to = mr_buf_extend(b, room), *start = to;
        if (!to) return;
        for (; i < end; i++) {
            uint32_t x = v[i];
            for (; x >= 0x80; x >>= 7)
                *to++ = (unsigned char)(x | 0x80);
            *to++ = (unsigned char)x;
        }
        b->n -= room - (size_t)(to - start);
    }
    mr_protowire_end(b, began);
}

static void column64(struct mr_buf *b, uint32_t number, const uint64_t *v, uint32_t count)
{
    size_t began = mr_protowire_begin(b, number);
    for (uint32_t i = 0; i < count;) {
        uint32_t end = i + MR_MIN(count - i, (uint32_t)PIECE);
        size_t room = (end - i) * (size_t)MR_PROTOWIRE_VARINT_MAX;
        unsigned char *to = mr_buf_extend(b, room), *start = to;
        if (!to) return;
        for (; i < end; i++)
            to += mr_protowire_put_varint(to, v[i]);
        b->n -= room - (size_t)(to - start);
    }
    mr_protowire_end(b, began);
}

static void column_signed32(struct mr_buf *b, uint32_t number, const int32_t *v, uint32_t count)
{
    size_t began = mr_protowire_begin(b, number);
    for (uint32_t i = 0; i < count; i++)
        mr_protowire_varint(b, (uint32_t)v[i] << 1 ^ (uint32_t)(v[i] >> 31));
    mr_protowire_end(b, began);
}

static void column_fixed64(struct mr_buf *b, uint32_t number, const uint64_t *v, uint32_t count)
{
    mr_protowire_tag(b, number, MR_PROTOWIRE_BYTES);
    mr_protowire_varint(b, (uint64_t)count * 8);
    unsigned char *to = mr_buf_extend(b, (size_t)count * 8);
    for (uint32_t i = 0; to && i < count; i++)
        for (unsigned k = 0; k < 8; k++)
            *to++ = (unsigned char)(v[i] >> 8 * k);
}

static void fixed64(struct mr_buf *b, uint32_t number, uint64_t v)
{
    if (!v) return;
    mr_protowire_tag(b, number, MR_PROTOWIRE_FIXED64);
    mr_protowire_fixed64(b, v);
}

static void varint(struct mr_buf *b, uint32_t number, uint64_t v)
{
    if (v) mr_protowire_add_varint(b, number, v);
}

static void micro(struct mr_buf *b, uint32_t number, uint64_t v)
{
    double d = (double)v / 1e6;
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    fixed64(b, number, bits);
}

static void message(struct mr_buf *b, const struct mr_ws_type *t, const unsigned char *from);

/* Writes a nested message. A message without fields is written only if its presence has a meaning
 * (`is_written_empty`). */
static void part(
    struct mr_buf *b, const struct mr_ws_field *f, const unsigned char *from, bool is_written_empty)
{
    size_t before = b->n, began = mr_protowire_begin(b, f->number);
    message(b, f->type, from);
    if (b->n == began && !is_written_empty)
        b->n = before;
    else
        mr_protowire_end(b, began);
}

/* Returns the elements to write for a repeated field, and sets `*count` to their number. A column
 * with the rule MR_WS_ONE may be NULL in the struct: then all rows have the same value, and the
 * function returns this value as the only element. */
static const void *rows_of(const struct mr_ws_field *f, const unsigned char *from, uint32_t *count)
{
    const void *rows = *(const void *const *)(const void *)(from + f->at);
    *count = *(const uint32_t *)(const void *)(from + f->count);
    if (!rows && f->rule == MR_WS_ONE && *count) {
        *count = 1;
        return from + f->one;
    }
    if (!rows) *count = 0;
    return rows;
}

static void texts(struct mr_buf *b, uint32_t number, const struct mr_str *s, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        text(b, number, s[i]);
}

static void messages(
    struct mr_buf *b, const struct mr_ws_field *f, const unsigned char *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        part(b, f, rows + (size_t)i * f->type->bytes, true);
}

static void field(struct mr_buf *b, const struct mr_ws_field *f, const unsigned char *from)
{
    const void *p = from + f->at;
    uint32_t count = 0, number = f->number;
    if (f->kind >= MR_WS_COLUMN32) {
        p = rows_of(f, from, &count);
        if (!count) return;
    }
    switch ((enum mr_ws_kind)f->kind) {
    case MR_WS_U32: varint(b, number, *(const uint32_t *)p); break;
    case MR_WS_U64: varint(b, number, *(const uint64_t *)p); break;
    case MR_WS_I32: varint(b, number, (uint64_t)(int64_t) * (const int32_t *)p); break;
    case MR_WS_BOOL: varint(b, number, *(const bool *)p); break;
    case MR_WS_FIXED64: fixed64(b, number, *(const uint64_t *)p); break;
    case MR_WS_MICRO: micro(b, number, *(const uint64_t *)p); break;
    case MR_WS_TEXT: texts(b, number, p, ((const struct mr_str *)p)->n > 0); break;
    case MR_WS_BYTES:
        if (((const struct mr_str *)p)->n)
            mr_protowire_add_bytes(b, number, *(const struct mr_str *)p);
        break;
    case MR_WS_PART:
        part(b, f, p, f->count != MR_WS_NOWHERE && *(const bool *)(from + f->count));
        break;
    case MR_WS_LINK:
        messages(b, f, *(const void *const *)p, *(const void *const *)p != NULL);
        break;
    case MR_WS_COLUMN32: column32(b, number, p, count); break;
    case MR_WS_COLUMN64: column64(b, number, p, count); break;
    case MR_WS_COLUMN_SIGNED32: column_signed32(b, number, p, count); break;
    case MR_WS_COLUMN_FIXED64: column_fixed64(b, number, p, count); break;
    case MR_WS_TEXTS: texts(b, number, p, count); break;
    case MR_WS_ROWS: messages(b, f, p, count); break;
    }
}

/* Writes a message. The recursion is as deep as the tables nest. */
static void message(struct mr_buf *b, const struct mr_ws_type *t, const unsigned char *from)
{
    for (uint32_t i = 0; i < t->fields_count; i++)
        field(b, &t->fields[i], from);
}

void mr_ws_encode_down(const struct mr_ws_down *from, struct mr_buf *out)
{
    message(out, &mr_ws_down_type, (const unsigned char *)from);
}

void mr_ws_encode_up(const struct mr_ws_up *from, struct mr_buf *out)
{
    message(out, &mr_ws_up_type, (const unsigned char *)from);
}
