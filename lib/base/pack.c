#include "base/pack.h"

#include "base/limits.h"
#include "base/utf8.h"

static uint64_t read_be(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

/* Reads an integer of `n` big-endian bytes into `*v`. */
static bool take_be(struct mr_pack_reader *r, size_t n, uint64_t *v)
{
    if (r->n - r->at < n) return false;
    *v = read_be(r->p + r->at, n);
    r->at += n;
    return true;
}

static bool take_bytes(struct mr_pack_reader *r, uint64_t n, struct mr_str *out)
{
    if (r->n - r->at < n) return false;
    *out = mr_str_of(r->p + r->at, (size_t)n);
    r->at += (size_t)n;
    return true;
}

static void set_int(struct mr_pack_item *out, int64_t v)
{
    out->type = MR_PACK_INT;
    out->i = v;
}

static void set_uint(struct mr_pack_item *out, uint64_t v)
{
    if (v <= INT64_MAX) {
        set_int(out, (int64_t)v);
        return;
    }
    out->type = MR_PACK_UINT;
    out->u = v;
}

static bool next_float(struct mr_pack_reader *r, size_t n, struct mr_pack_item *out)
{
    uint64_t bits = 0;
    if (!take_be(r, n, &bits)) return false;
    out->type = MR_PACK_FLOAT;
    if (n == 4) {
        uint32_t narrow = (uint32_t)bits;
        float f = 0;
        memcpy(&f, &narrow, sizeof f);
        out->f = (double)f;
    } else {
        memcpy(&out->f, &bits, sizeof out->f);
    }
    return true;
}

static bool next_counted(
    struct mr_pack_reader *r, size_t width, enum mr_pack_type type, struct mr_pack_item *out)
{
    uint64_t n = 0;
    if (!take_be(r, width, &n)) return false;
    out->type = type;
    if (type == MR_PACK_LIST || type == MR_PACK_MAP) {
        out->count = (uint32_t)n;
        /* Each item takes at least one byte, so a count that the remaining bytes cannot hold is
         * refused. */
        return n <= r->n - r->at;
    }
    if (type == MR_PACK_EXT) {
        uint64_t ext = 0;
        if (!take_be(r, 1, &ext)) return false;
        out->ext = (int8_t)(uint8_t)ext;
    }
    return take_bytes(r, n, &out->bytes);
}

static bool next_fixext(struct mr_pack_reader *r, uint64_t n, struct mr_pack_item *out)
{
    uint64_t ext = 0;
    if (!take_be(r, 1, &ext)) return false;
    out->type = MR_PACK_EXT;
    out->ext = (int8_t)(uint8_t)ext;
    return take_bytes(r, n, &out->bytes);
}

static bool next_signed(struct mr_pack_reader *r, unsigned width, struct mr_pack_item *out)
{
    uint64_t v = 0;
    if (!take_be(r, width, &v)) return false;
    unsigned shift = 64 - 8 * width;
    set_int(out, (int64_t)(v << shift) >> shift);
    return true;
}

static bool next_unsigned(struct mr_pack_reader *r, size_t width, struct mr_pack_item *out)
{
    uint64_t v = 0;
    if (!take_be(r, width, &v)) return false;
    set_uint(out, v);
    return true;
}

static bool next_short(struct mr_pack_reader *r, unsigned char tag, struct mr_pack_item *out)
{
    if (tag <= 0x7f || tag >= 0xe0) {
        set_int(out, (int8_t)tag);
        return true;
    }
    if (tag >= 0xa0) {
        out->type = MR_PACK_TEXT;
        return take_bytes(r, tag & 0x1fu, &out->bytes);
    }
    out->type = tag >= 0x90 ? MR_PACK_LIST : MR_PACK_MAP;
    out->count = tag & 0x0fu;
    return out->count <= r->n - r->at;
}

static bool next(struct mr_pack_reader *r, struct mr_pack_item *out)
{
    *out = (struct mr_pack_item){0};
    if (r->at >= r->n) return false;
    unsigned char tag = r->p[r->at++];
    if (tag <= 0xbf || tag >= 0xe0) return next_short(r, tag, out);
    switch (tag) {
    case 0xc0: out->type = MR_PACK_NIL; return true;
    case 0xc2:
    case 0xc3:
        out->type = MR_PACK_BOOL;
        out->boolean = tag == 0xc3;
        return true;
    case 0xc4: return next_counted(r, 1, MR_PACK_BYTES, out);
    case 0xc5: return next_counted(r, 2, MR_PACK_BYTES, out);
    case 0xc6: return next_counted(r, 4, MR_PACK_BYTES, out);
    case 0xc7: return next_counted(r, 1, MR_PACK_EXT, out);
    case 0xc8: return next_counted(r, 2, MR_PACK_EXT, out);
    case 0xc9: return next_counted(r, 4, MR_PACK_EXT, out);
    case 0xca: return next_float(r, 4, out);
    case 0xcb: return next_float(r, 8, out);
    case 0xcc: return next_unsigned(r, 1, out);
    case 0xcd: return next_unsigned(r, 2, out);
    case 0xce: return next_unsigned(r, 4, out);
    case 0xcf: return next_unsigned(r, 8, out);
    case 0xd0: return next_signed(r, 1, out);
    case 0xd1: return next_signed(r, 2, out);
    case 0xd2: return next_signed(r, 4, out);
    case 0xd3: return next_signed(r, 8, out);
    case 0xd4: return next_fixext(r, 1, out);
    case 0xd5: return next_fixext(r, 2, out);
    case 0xd6: return next_fixext(r, 4, out);
    case 0xd7: return next_fixext(r, 8, out);
    case 0xd8: return next_fixext(r, 16, out);
    case 0xd9: return next_counted(r, 1, MR_PACK_TEXT, out);
    case 0xda: return next_counted(r, 2, MR_PACK_TEXT, out);
    case 0xdb: return next_counted(r, 4, MR_PACK_TEXT, out);
    case 0xdc: return next_counted(r, 2, MR_PACK_LIST, out);
    case 0xdd: return next_counted(r, 4, MR_PACK_LIST, out);
    case 0xde: return next_counted(r, 2, MR_PACK_MAP, out);
    case 0xdf: return next_counted(r, 4, MR_PACK_MAP, out);
    default: return false; /* MessagePack never uses the tag 0xc1 */
    }
}

int mr_pack_next(struct mr_pack_reader *r, struct mr_pack_item *out)
{
    return next(r, out) ? MR_OK : MR_EFORMAT;
}

int mr_pack_skip(struct mr_pack_reader *r, struct mr_str *out)
{
    size_t start = r->at;
    uint64_t left = 1;
    while (left) {
        struct mr_pack_item item;
        if (!next(r, &item)) return MR_EFORMAT;
        left--;
        if (item.type == MR_PACK_LIST) left += item.count;
        if (item.type == MR_PACK_MAP) left += 2 * (uint64_t)item.count;
    }
    if (out) *out = mr_str_of(r->p + start, r->at - start);
    return MR_OK;
}

static int check_ext(const struct mr_pack_item *item, uint32_t inputs_max, struct mr_error *e)
{
    switch (item->ext) {
    case MR_PACK_EXT_INPUT: {
        uint32_t slot = mr_pack_input_slot(item);
        if (item->bytes.n != 4)
            return mr_fail(e, MR_EFORMAT, "input slot of %zu bytes, not 4", item->bytes.n);
        if (slot >= inputs_max)
            return mr_fail(
                e, MR_EFORMAT, "input slot %u, but there are %u inputs", slot, inputs_max);
        return MR_OK;
    }
    case MR_PACK_EXT_VALUE: return MR_OK; /* the reader of the value checks its bytes */
    case MR_PACK_EXT_OBJECT:
        if (item->bytes.n != 16)
            return mr_fail(e, MR_EFORMAT, "object id of %zu bytes, not 16", item->bytes.n);
        return MR_OK;
    default: return mr_fail(e, MR_EFORMAT, "unknown extension type %d", item->ext);
    }
}

/* Checks one item. The caller checks the items inside a list or a map. */
static int check_leaf(const struct mr_pack_item *item, uint32_t inputs_max, struct mr_error *e)
{
    if (item->type == MR_PACK_TEXT && !mr_utf8_is_valid(item->bytes))
        return mr_fail(e, MR_EFORMAT, "a text is not UTF-8");
    if (item->type == MR_PACK_EXT) return check_ext(item, inputs_max, e);
    return MR_OK;
}

/* Maps the first byte of an item to the number of bytes of the whole item. 0: the item is a text,
 * a byte string, a container or an extension. */
static const unsigned char width_of[256] = {[0xc0] = 1,
    [0xc2] = 1,
    [0xc3] = 1,
    [0xca] = 5,
    [0xcb] = 9,
    [0xcc] = 2,
    [0xcd] = 3,
    [0xce] = 5,
    [0xcf] = 9,
    [0xd0] = 2,
    [0xd1] = 3,
    [0xd2] = 5,
    [0xd3] = 9};

/* True: the value is one number, boolean, nil or input slot below `inputs`, or a list of at most 15
 * of these. Most values and arguments have this form. This check is faster than the general check
 * of mr_pack_check. False: the general check decides. */
static bool is_simple(const unsigned char *p, size_t n, uint32_t inputs)
{
    if (!n) return false;
    bool is_list = (p[0] & 0xf0) == 0x90;
    size_t at = is_list;
    for (uint32_t items = is_list ? p[0] & 0x0fu : 1; items; items--) {
        if (at >= n) return false;
        unsigned char tag = p[at];
        if (tag <= 0x7f || tag >= 0xe0) {
            at++;
        } else if (tag == 0xd6 && n - at >= 6 && p[at + 1] == MR_PACK_EXT_INPUT) {
            uint32_t slot = (uint32_t)p[at + 2] << 24 | (uint32_t)p[at + 3] << 16 |
                            (uint32_t)p[at + 4] << 8 | p[at + 5];
            if (slot >= inputs) return false;
            at += 6;
        } else if (width_of[tag]) {
            at += width_of[tag];
        } else {
            return false;
        }
    }
    return at == n;
}

int mr_pack_check(struct mr_str bytes, uint32_t inputs_max, struct mr_error *e)
{
    if (is_simple((const unsigned char *)bytes.p, bytes.n, inputs_max)) return MR_OK;
    struct mr_pack_reader r = mr_pack_read(bytes);
    /* For each level of nesting: the number of items that are still to come. */
    uint64_t left[MR_DEPTH_MAX + 1] = {1};
    bool is_map[MR_DEPTH_MAX + 1] = {false};
    unsigned depth = 0;
    for (;;) {
        while (depth && !left[depth])
            depth--;
        if (!left[depth]) break;
        struct mr_pack_item item;
        size_t at = r.at;
        if (!next(&r, &item)) return mr_fail(e, MR_EFORMAT, "malformed pack at byte %zu", at);
        if (is_map[depth] && left[depth] % 2 == 0 && item.type != MR_PACK_TEXT)
            return mr_fail(e, MR_EFORMAT, "map key at byte %zu is not a text", at);
        left[depth]--;
        int err = check_leaf(&item, inputs_max, e);
        if (err) return err;
        if (item.type != MR_PACK_LIST && item.type != MR_PACK_MAP) continue;
        if (depth == MR_DEPTH_MAX)
            return mr_fail(e, MR_ELIMIT, "nested deeper than %d at byte %zu", MR_DEPTH_MAX, at);
        depth++;
        is_map[depth] = item.type == MR_PACK_MAP;
        left[depth] = (is_map[depth] ? 2 : 1) * (uint64_t)item.count;
    }
    if (r.at != r.n)
        return mr_fail(e, MR_EFORMAT, "%zu bytes after the end of the pack", r.n - r.at);
    return MR_OK;
}

static void put_be(struct mr_buf *b, unsigned char tag, uint64_t v, size_t width)
{
    unsigned char *p = mr_buf_extend(b, 1 + width);
    if (!p) return;
    p[0] = tag;
    for (size_t i = 0; i < width; i++)
        p[1 + i] = (unsigned char)(v >> (8 * (width - 1 - i)));
}

void mr_pack_nil(struct mr_buf *b)
{
    mr_buf_add_byte(b, 0xc0);
}

void mr_pack_bool(struct mr_buf *b, bool v)
{
    mr_buf_add_byte(b, v ? 0xc3 : 0xc2);
}

void mr_pack_int(struct mr_buf *b, int64_t v)
{
    if (v >= 0) {
        mr_pack_uint(b, (uint64_t)v);
        return;
    }
    if (v >= -32)
        mr_buf_add_byte(b, (unsigned char)v);
    else if (v >= INT8_MIN)
        put_be(b, 0xd0, (uint64_t)v, 1);
    else if (v >= INT16_MIN)
        put_be(b, 0xd1, (uint64_t)v, 2);
    else if (v >= INT32_MIN)
        put_be(b, 0xd2, (uint64_t)v, 4);
    else
        put_be(b, 0xd3, (uint64_t)v, 8);
}

void mr_pack_uint(struct mr_buf *b, uint64_t v)
{
    if (v <= 0x7f)
        mr_buf_add_byte(b, (unsigned char)v);
    else if (v <= UINT8_MAX)
        put_be(b, 0xcc, v, 1);
    else if (v <= UINT16_MAX)
        put_be(b, 0xcd, v, 2);
    else if (v <= UINT32_MAX)
        put_be(b, 0xce, v, 4);
    else
        put_be(b, 0xcf, v, 8);
}

void mr_pack_float(struct mr_buf *b, double v)
{
    uint64_t bits = 0;
    memcpy(&bits, &v, sizeof bits);
    put_be(b, 0xcb, bits, 8);
}

/* Writes the tag and the length of a container, text or byte string in the shortest form that holds
 * the length: 8, 16 or 32 bits. `tag8` is 0 for types that have no form with 8 bits. */
static void put_length(struct mr_buf *b, unsigned char tag8, unsigned char tag16, size_t n)
{
    if (tag8 && n <= UINT8_MAX)
        put_be(b, tag8, n, 1);
    else if (n <= UINT16_MAX)
        put_be(b, tag16, n, 2);
    else
        put_be(b, (unsigned char)(tag16 + 1), n, 4);
}

void mr_pack_text(struct mr_buf *b, struct mr_str s)
{
    if (s.n <= 31)
        mr_buf_add_byte(b, (unsigned char)(0xa0 | s.n));
    else
        put_length(b, 0xd9, 0xda, s.n);
    mr_buf_add_str(b, s);
}

void mr_pack_bytes(struct mr_buf *b, struct mr_str s)
{
    put_length(b, 0xc4, 0xc5, s.n);
    mr_buf_add_str(b, s);
}

void mr_pack_list(struct mr_buf *b, uint32_t count)
{
    if (count <= 15)
        mr_buf_add_byte(b, (unsigned char)(0x90 | count));
    else
        put_length(b, 0, 0xdc, count);
}

void mr_pack_map(struct mr_buf *b, uint32_t count)
{
    if (count <= 15)
        mr_buf_add_byte(b, (unsigned char)(0x80 | count));
    else
        put_length(b, 0, 0xde, count);
}

void mr_pack_ext(struct mr_buf *b, int8_t type, struct mr_str data)
{
    static const unsigned char fixed[17] = {
        [1] = 0xd4, [2] = 0xd5, [4] = 0xd6, [8] = 0xd7, [16] = 0xd8};
    if (data.n <= 16 && fixed[data.n])
        mr_buf_add_byte(b, fixed[data.n]);
    else
        put_length(b, 0xc7, 0xc8, data.n);
    mr_buf_add_byte(b, (unsigned char)type);
    mr_buf_add_str(b, data);
}

void mr_pack_input(struct mr_buf *b, uint32_t slot)
{
    const unsigned char ext[6] = {0xd6, MR_PACK_EXT_INPUT, (unsigned char)(slot >> 24),
        (unsigned char)(slot >> 16), (unsigned char)(slot >> 8), (unsigned char)slot};
    /* One append instead of the three of mr_pack_ext writes the same bytes faster. A graph has many
     * input slots. */
    mr_buf_add(b, ext, sizeof ext);
}

void mr_pack_object(struct mr_buf *b, mr_object_id id)
{
    unsigned char be[16];
    mr_object_id_to_bytes(id, be);
    mr_pack_ext(b, MR_PACK_EXT_OBJECT, mr_str_of(be, sizeof be));
}

uint32_t mr_pack_input_slot(const struct mr_pack_item *item)
{
    if (item->type != MR_PACK_EXT || item->ext != MR_PACK_EXT_INPUT || item->bytes.n != 4)
        return UINT32_MAX;
    return (uint32_t)read_be((const unsigned char *)item->bytes.p, 4);
}
