/* Decodes protobuf with the tables of fields.h. A message is read twice. The first pass stores
 * single values and counts the elements of repeated fields. Then arrays for the elements are taken
 * from the caller's memory, and the second pass fills the arrays. A repeated field of numbers is a
 * column of a table (refs.h). Finally the length of each column is compared with the number of
 * rows. */
#include "session/decode.h"

#include "base/protowire.h"
#include "session/fields.h"

#include <math.h>

/* The high bits of all eight bytes of a word. In a varint, every byte except the last has its high
 * bit set. */
#define HIGH_BITS UINT64_C(0x8080808080808080)

struct reader {
    const struct mr_ws_memory *memory;
    size_t bytes; /* bytes taken from `memory` so far */
    const char *outermost;
    struct mr_error *e;
};

/* A message that is being decoded into a struct. */
struct frame {
    const struct mr_ws_type *type;
    const char *name; /* name of the field that holds the message */
    unsigned char *to;
    /* First pass: the number of elements of each field. Second pass: the number of elements that
     * were stored so far. */
    uint32_t count[MR_WS_FIELDS_MAX];
};

static int malformed(const struct reader *r)
{
    return mr_fail(r->e, MR_EFORMAT, "millrace.v1.%s: malformed protobuf", r->outermost);
}

static int take(struct reader *r, size_t count, size_t each, void **out)
{
    size_t left = r->memory->bytes_max - r->bytes;
    if (count > left / each)
        return mr_fail(r->e, MR_ELIMIT, "millrace.v1.%s: needs more than %zu bytes of memory",
            r->outermost, r->memory->bytes_max);
    *out = r->memory->take(r->memory->ctx, count * each);
    if (!*out)
        return mr_fail(r->e, MR_ELIMIT, "millrace.v1.%s: there is no memory for it", r->outermost);
    r->bytes += count * each;
    return MR_OK;
}

/* ---- columns -------------------------------------------------------------------------------- */

static uint32_t element_bytes(const struct mr_ws_field *f)
{
    static const uint8_t bytes[] = {[MR_WS_COLUMN32] = 4,
        [MR_WS_COLUMN64] = 8,
        [MR_WS_COLUMN_SIGNED32] = 4,
        [MR_WS_COLUMN_FIXED64] = 8,
        [MR_WS_TEXTS] = sizeof(struct mr_str),
        [MR_WS_ROWS] = 0};
    return f->kind == MR_WS_ROWS ? f->type->bytes : bytes[f->kind];
}

static uint64_t load64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Returns the number of varints in a packed column. Only the last byte of a varint has no high bit,
 * so this function counts the bytes without a high bit, eight bytes at a time. */
static uint32_t varints_in(struct mr_str s)
{
    const unsigned char *p = (const unsigned char *)s.p, *end = p + s.n;
    uint32_t n = 0;
    for (; end - p >= 8; p += 8)
        n += (uint32_t)(((~load64(p) & HIGH_BITS) >> 7) * UINT64_C(0x0101010101010101) >> 56);
    for (; p < end; p++)
        n += *p < 0x80;
    return n;
}

/* Reads the rest of a varint whose first byte is in `*v`. Returns the address after the varint.
 * NULL: the varint has more than 64 bits. */
static const unsigned char *varint_rest(const unsigned char *p, uint64_t *v)
{
    *v &= 0x7f;
    for (unsigned shift = 7; shift < 70; shift += 7) {
        uint64_t b = *p++;
        if (shift == 63 && b > 1) return NULL;
        *v |= (b & 0x7f) << shift;
        if (b < 0x80) return p;
    }
    return NULL;
}

/* Reads the `count` varints of a packed column. The caller has checked that the bytes end with a
 * whole varint. Most varints have one byte or two. False: a varint has more than 64 bits. */
static bool column32(struct mr_str s, uint32_t *to, uint32_t count)
{
    const unsigned char *p = (const unsigned char *)s.p;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t v = *p++;
        if (v >= 0x80 && *p < 0x80)
            v = (v & 0x7f) | (uint64_t)*p++ << 7;
        else if (v >= 0x80 && !(p = varint_rest(p, &v)))
            return false;
        to[i] = (uint32_t)v;
    }
    return true;
}

static bool column64(struct mr_str s, uint64_t *to, uint32_t count)
{
    const unsigned char *p = (const unsigned char *)s.p;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t v = *p++;
        if (v >= 0x80 && !(p = varint_rest(p, &v))) return false;
        to[i] = v;
    }
    return true;
}

static void fixed64s(struct mr_str s, uint64_t *to)
{
    const unsigned char *p = (const unsigned char *)s.p;
    for (size_t i = 0; i < s.n / 8; i++, p += 8)
        to[i] = load64(p);
}

/* Decodes zigzag in place. */
static void signed32(uint32_t *v, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        v[i] = v[i] >> 1 ^ (0u - (v[i] & 1));
}

/* ---- fields --------------------------------------------------------------------------------- */

static struct mr_str text_of(struct mr_str s)
{
    const char *nul = s.n ? memchr(s.p, 0, s.n) : NULL; /* protobuf-c also ends a text at a NUL */
    return nul ? mr_str_of(s.p, (size_t)(nul - s.p)) : s;
}

static uint64_t micro_of(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v >= 0 && v <= 1e12 ? (uint64_t)llround(v * 1e6) : UINT64_MAX;
}

static uint32_t wire_type(enum mr_ws_kind kind)
{
    if (kind <= MR_WS_BOOL) return MR_PROTOWIRE_VARINT;
    return kind <= MR_WS_MICRO ? MR_PROTOWIRE_FIXED64 : MR_PROTOWIRE_BYTES;
}

static int message(
    struct reader *r, const struct mr_ws_type *t, const char *name, struct mr_str bytes, void *to);

/* Decodes a nested message: for MR_WS_PART into a member of the outer struct, for MR_WS_LINK into a
 * struct that is taken from the caller's memory. */
static int part(struct reader *r, struct frame *m, const struct mr_ws_field *f, struct mr_str bytes)
{
    void *to = m->to + f->at;
    /* A nested message may come once only. */
    if (m->count[f - m->type->fields]++) return malformed(r);
    if (f->kind == MR_WS_LINK) {
        int err = take(r, 1, f->type->bytes, &to);
        if (err) return err;
        memset(to, 0, f->type->bytes);
        *(void **)(void *)(m->to + f->at) = to;
    } else if (f->count != MR_WS_NOWHERE) {
        *(bool *)(m->to + f->count) = true;
    }
    return message(r, f->type, f->name, bytes, to);
}

/* True: the field on the wire is one element of a column that is not packed, which protobuf allows.
 * False: the field is a whole packed column, or no column. */
static bool is_element(const struct mr_ws_field *f, const struct mr_protowire_field *w)
{
    bool is_fixed = f->kind == MR_WS_COLUMN_FIXED64;
    if (f->kind < MR_WS_COLUMN32 || f->kind > MR_WS_COLUMN_FIXED64) return false;
    return w->type == (is_fixed ? MR_PROTOWIRE_FIXED64 : MR_PROTOWIRE_VARINT);
}

/* The first pass stores single values, decodes messages, and counts elements of repeated fields. */
static int first_pass(struct reader *r, struct frame *m, const struct mr_ws_field *f,
    const struct mr_protowire_field *w)
{
    enum mr_ws_kind kind = (enum mr_ws_kind)f->kind;
    void *to = m->to + f->at;
    uint32_t *count = &m->count[f - m->type->fields];
    if (is_element(f, w)) {
        ++*count;
        return MR_OK;
    }
    if (w->type != wire_type(kind)) return malformed(r);
    switch (kind) {
    case MR_WS_U32:
    case MR_WS_I32: *(uint32_t *)to = (uint32_t)w->value; break;
    case MR_WS_U64:
    case MR_WS_FIXED64: *(uint64_t *)to = w->value; break;
    case MR_WS_BOOL: *(bool *)to = w->value != 0; break;
    case MR_WS_MICRO: *(uint64_t *)to = micro_of(w->value); break;
    case MR_WS_TEXT: *(struct mr_str *)to = text_of(w->bytes); break;
    case MR_WS_BYTES: *(struct mr_str *)to = w->bytes; break;
    case MR_WS_PART:
    case MR_WS_LINK: return part(r, m, f, w->bytes);
    case MR_WS_COLUMN32:
    case MR_WS_COLUMN64:
    case MR_WS_COLUMN_SIGNED32:
        if (w->bytes.n && (unsigned char)w->bytes.p[w->bytes.n - 1] >= 0x80) return malformed(r);
        *count += varints_in(w->bytes);
        break;
    case MR_WS_COLUMN_FIXED64: *count += (uint32_t)(w->bytes.n / 8); break;
    case MR_WS_TEXTS:
    case MR_WS_ROWS: ++*count; break;
    }
    return MR_OK;
}

/* The second pass stores elements of a repeated field, whose array has room for all of them. */
static int second_pass(struct reader *r, struct frame *m, const struct mr_ws_field *f,
    const struct mr_protowire_field *w)
{
    uint32_t *count = &m->count[f - m->type->fields];
    unsigned char *rows = *(unsigned char **)(void *)(m->to + f->at);
    if (!rows) return MR_OK; /* the field has no element: an empty packed column */
    void *to = rows + (size_t)*count * element_bytes(f);
    bool ok = true;
    ++*count;
    if (is_element(f, w)) {
        if (element_bytes(f) == sizeof(uint32_t))
            *(uint32_t *)to = (uint32_t)w->value;
        else
            *(uint64_t *)to = w->value;
    } else if (f->kind == MR_WS_TEXTS) {
        *(struct mr_str *)to = text_of(w->bytes);
    } else if (f->kind == MR_WS_ROWS) {
        memset(to, 0, f->type->bytes);
        return message(r, f->type, f->name, w->bytes, to);
    } else if (f->kind == MR_WS_COLUMN_FIXED64) {
        ok = w->bytes.n % 8 == 0;
        fixed64s(w->bytes, to);
        *count += (uint32_t)(w->bytes.n / 8) - 1;
    } else {
        uint32_t n = varints_in(w->bytes);
        bool is_narrow = element_bytes(f) == sizeof(uint32_t);
        ok = is_narrow ? column32(w->bytes, to, n) : column64(w->bytes, to, n);
        *count += n - 1;
    }
    return ok ? MR_OK : malformed(r);
}

/* Takes an array for each repeated field that has elements, and writes its address into the struct.
 * Sets `*has_rows` to true if it has taken an array. Also writes numbers of rows into the struct:
 * the lengths of columns with the rule MR_WS_LEADS, and of arrays of texts or nested messages. */
static int arrays(struct reader *r, struct frame *m, bool *has_rows)
{
    for (uint32_t i = 0; i < m->type->fields_count; i++) {
        const struct mr_ws_field *f = &m->type->fields[i];
        if (f->kind < MR_WS_COLUMN32) continue;
        bool is_leading = f->kind >= MR_WS_TEXTS || f->rule == MR_WS_LEADS;
        if (is_leading) *(uint32_t *)(void *)(m->to + f->count) = m->count[i];
        if (!m->count[i]) continue;
        void *rows = NULL;
        int err = take(r, m->count[i], element_bytes(f), &rows);
        if (err) return err;
        *(void **)(void *)(m->to + f->at) = rows;
        *has_rows = true;
    }
    return MR_OK;
}

/* Compares the length of each column with the number of rows, by the rule of its field. MR_EFORMAT:
 * a length breaks its rule. Also decodes the zigzag of signed columns. */
static int lengths(struct reader *r, struct frame *m)
{
    for (uint32_t i = 0; i < m->type->fields_count; i++) {
        const struct mr_ws_field *f = &m->type->fields[i];
        if (f->kind < MR_WS_COLUMN32 || f->kind > MR_WS_COLUMN_FIXED64) continue;
        uint32_t rows = *(const uint32_t *)(const void *)(m->to + f->count), n = m->count[i];
        void **column = (void **)(void *)(m->to + f->at);
        if (f->kind == MR_WS_COLUMN_SIGNED32) signed32(*column, n);
        if (f->rule == MR_WS_ONE && n == 1) {
            memcpy(m->to + f->one, *column, element_bytes(f));
            *column = NULL;
        } else if (f->rule == MR_WS_IGNORE && n != rows) {
            *column = NULL;
        } else if (n != rows && (n || f->rule != MR_WS_MAY)) {
            return mr_fail(
                r->e, MR_EFORMAT, "%s.%s: %u rows, expected %u", m->name, f->name, n, rows);
        }
    }
    return MR_OK;
}

/* Returns the field with this number, or NULL if the table has no such field. The search begins at
 * `*hint`, the place of the field found last, because fields mostly come in the order of the
 * table. */
static const struct mr_ws_field *field_of(
    const struct mr_ws_type *t, uint32_t number, uint32_t *hint)
{
    for (uint32_t i = 0; i < t->fields_count; i++) {
        uint32_t at = (*hint + i) % t->fields_count;
        if (t->fields[at].number != number) continue;
        *hint = at;
        return &t->fields[at];
    }
    return NULL;
}

typedef int pass(struct reader *r, struct frame *m, const struct mr_ws_field *f,
    const struct mr_protowire_field *w);

static int each_field(struct reader *r, struct frame *m, struct mr_str bytes, pass *fn)
{
    struct mr_protowire_reader w = mr_protowire_read(bytes);
    struct mr_protowire_field field;
    uint32_t hint = 0;
    int err;
    while (!(err = mr_protowire_next(&w, &field))) {
        const struct mr_ws_field *f = field_of(m->type, field.number, &hint);
        if (f && (fn != second_pass || f->kind >= MR_WS_COLUMN32)) err = fn(r, m, f, &field);
        if (err) return err;
    }
    return err == MR_ENOENT ? MR_OK : malformed(r);
}

/* Decodes a message. The recursion is as deep as the tables nest, whatever the bytes are. */
static int message(
    struct reader *r, const struct mr_ws_type *t, const char *name, struct mr_str bytes, void *to)
{
    struct frame m = {.type = t, .name = name, .to = to};
    bool has_rows = false;
    int err = each_field(r, &m, bytes, first_pass);
    if (!err) err = arrays(r, &m, &has_rows);
    if (!err && has_rows) {
        memset(m.count, 0, sizeof m.count);
        err = each_field(r, &m, bytes, second_pass);
    }
    return err ? err : lengths(r, &m);
}

int mr_ws_decode_down(
    struct mr_str bytes, const struct mr_ws_memory *m, struct mr_ws_down *out, struct mr_error *e)
{
    struct reader r = {.memory = m, .outermost = mr_ws_down_type.name, .e = e};
    *out = (struct mr_ws_down){0};
    int err = message(&r, &mr_ws_down_type, r.outermost, bytes, out);
    return err ? err : mr_ws_down_check(out, e);
}

int mr_ws_decode_up(
    struct mr_str bytes, const struct mr_ws_memory *m, struct mr_ws_up *out, struct mr_error *e)
{
    struct reader r = {.memory = m, .outermost = mr_ws_up_type.name, .e = e};
    *out = (struct mr_ws_up){0};
    int err = message(&r, &mr_ws_up_type, r.outermost, bytes, out);
    /* Another version of the protocol may have other columns. So a wrong version is reported before
     * an error in the columns. */
    int version = err && out->reg ? mr_ws_version_check(out->reg, e) : MR_OK;
    if (version) return version;
    return err ? err : mr_ws_up_check(out, e);
}
