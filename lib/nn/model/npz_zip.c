/* A zip archive is a sequence of members, then the directory, then the end record with the place of
 * the directory. A reader uses the directory; of a member's own header it uses only the magic and
 * the lengths of the name and of the extra field. */
#include "nn/model/npz_zip.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"

#include <inttypes.h>
#include <stdio.h>

enum { LOCAL = 30, ENTRY = 46, END = 22, COMMENT_MAX = 65535 }; /* bytes */
#define LOCAL_MAGIC 0x04034b50u
#define ENTRY_MAGIC 0x02014b50u
#define END_MAGIC 0x06054b50u
#define RATIO_MAX 1040 /* a byte of deflated data holds at most so many bytes, with a margin */
/* 1980-01-01 for every member, so that equal models give equal bytes. */
#define DATE 0x0021

/* ---- little-endian numbers ------------------------------------------------------------------- */

static void put16(unsigned char *p, uint32_t v)
{
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
}

static void put32(unsigned char *p, uint32_t v)
{
    put16(p, v);
    put16(p + 2, v >> 16);
}

static uint32_t get16(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t get32(const unsigned char *p)
{
    return get16(p) | get16(p + 2) << 16;
}

static uint32_t crc_of(const void *p, size_t n)
{
    return (uint32_t)crc32_z(0, p, n);
}

/* ---- writing --------------------------------------------------------------------------------- */

void mr_nn_zip_writer_init(struct mr_nn_zip_writer *w, struct mr_buf *out)
{
    *w = (struct mr_nn_zip_writer){.out = out};
    mr_buf_init(&w->directory, (size_t)MR_NN_ZIP_MEMBERS_MAX * (ENTRY + sizeof w->name));
}

void mr_nn_zip_writer_fini(struct mr_nn_zip_writer *w)
{
    mr_buf_fini(&w->directory);
}

void mr_nn_zip_begin(struct mr_nn_zip_writer *w, const char *name)
{
    int n = snprintf(w->name, sizeof w->name, "%s", name);
    mr_assert(n > 0 && (size_t)n < sizeof w->name);
    w->member = w->out->n;
    const unsigned char empty[LOCAL] = {0}; /* mr_nn_zip_end fills in these bytes */
    mr_buf_add(w->out, empty, sizeof empty);
    mr_buf_add_text(w->out, w->name);
}

/* Writes the fields that a member's header and its directory entry share, from "version needed"
 * on. */
static void describe(unsigned char *p, uint32_t crc, uint32_t bytes, uint32_t name_bytes)
{
    put16(p, 20);       /* version 2.0 */
    put16(p + 8, DATE); /* the fields flags, method and time stay 0 */
    put32(p + 10, crc);
    put32(p + 14, bytes);
    put32(p + 18, bytes);
    put16(p + 22, name_bytes);
}

void mr_nn_zip_end(struct mr_nn_zip_writer *w)
{
    /* mr_nn_zip_finish reports the error */
    if (mr_buf_status(w->out) || w->out->n > UINT32_MAX) return;
    uint32_t name_bytes = (uint32_t)strlen(w->name);
    size_t start = w->member + LOCAL + name_bytes;
    uint32_t bytes = (uint32_t)(w->out->n - start);
    uint32_t crc = crc_of(w->out->p + start, bytes);
    put32(w->out->p + w->member, LOCAL_MAGIC);
    describe(w->out->p + w->member + 4, crc, bytes, name_bytes);

    unsigned char entry[ENTRY] = {0};
    put32(entry, ENTRY_MAGIC);
    put16(entry + 4, 20);
    describe(entry + 6, crc, bytes, name_bytes);
    put32(entry + 42, (uint32_t)w->member);
    mr_buf_add(&w->directory, entry, sizeof entry);
    mr_buf_add_text(&w->directory, w->name);
    w->members++;
}

int mr_nn_zip_finish(struct mr_nn_zip_writer *w, struct mr_error *e)
{
    size_t at = w->out->n;
    mr_buf_add_str(w->out, mr_buf_str(&w->directory));
    unsigned char end[END] = {0};
    put32(end, END_MAGIC);
    put16(end + 8, w->members);
    put16(end + 10, w->members);
    put32(end + 12, (uint32_t)w->directory.n);
    put32(end + 16, (uint32_t)at);
    mr_buf_add(w->out, end, sizeof end);
    if (mr_buf_status(w->out) || mr_buf_status(&w->directory) || w->out->n > UINT32_MAX)
        return mr_fail(e, MR_ELIMIT, "npz: the archive would be too large, at most 4 GiB");
    return MR_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct member {
    struct mr_str name;
    uint32_t flags, method, crc;
    uint64_t packed_bytes, bytes, offset;
};

static int broken(const char *what, struct mr_error *e)
{
    return mr_fail(e, MR_EFORMAT, "npz: the archive is damaged: %s", what);
}

/* Sets `*out` to the offset of the end record: the last place that has the record's magic and a
 * comment length that fits. False: there is no such place. */
static bool find_end(struct mr_str b, size_t *out)
{
    for (size_t comment = 0; comment <= COMMENT_MAX && END + comment <= b.n; comment++) {
        size_t at = b.n - END - comment;
        const unsigned char *p = (const unsigned char *)b.p + at;
        if (get32(p) != END_MAGIC || get16(p + 20) != comment) continue;
        *out = at;
        return true;
    }
    return false;
}

int mr_nn_zip_open(struct mr_str bytes, struct mr_nn_zip *out, struct mr_error *e)
{
    size_t at = 0;
    if (!find_end(bytes, &at))
        return mr_fail(e, MR_EFORMAT, "npz: not a zip archive, or one that was cut off");
    const unsigned char *p = (const unsigned char *)bytes.p + at;
    uint32_t members = get16(p + 10), directory_bytes = get32(p + 12), offset = get32(p + 16);
    if (members != get16(p + 8)) return broken("it is one of several", e);
    if (members > MR_NN_ZIP_MEMBERS_MAX)
        return mr_fail(
            e, MR_ELIMIT, "npz: %u members, at most %d are read", members, MR_NN_ZIP_MEMBERS_MAX);
    if (offset > at || directory_bytes > at - offset)
        return broken("its directory is outside (zip64 is not read)", e);
    *out = (struct mr_nn_zip){
        .bytes = bytes, .directory = mr_str_of(bytes.p + offset, directory_bytes), members};
    return MR_OK;
}

/* Reads the directory entry at `*at` and moves `*at` to the next entry. False: the entry is
 * malformed. */
static bool next_member(const struct mr_nn_zip *z, size_t *at, struct member *out)
{
    const unsigned char *p = (const unsigned char *)z->directory.p + *at;
    size_t left = z->directory.n - *at;
    if (left < ENTRY || get32(p) != ENTRY_MAGIC) return false;
    uint32_t name = get16(p + 28), extra = get16(p + 30), comment = get16(p + 32);
    if (left - ENTRY < (size_t)name + extra + comment) return false;
    *out = (struct member){.name = mr_str_of(p + ENTRY, name),
        .flags = get16(p + 8),
        .method = get16(p + 10),
        .crc = get32(p + 16),
        .packed_bytes = get32(p + 20),
        .bytes = get32(p + 24),
        .offset = get32(p + 42)};
    *at += ENTRY + (size_t)name + extra + comment;
    return true;
}

/* Sets `*out` to the bytes of a member as the archive stores them. */
static int packed(
    const struct mr_nn_zip *z, const struct member *m, struct mr_str *out, struct mr_error *e)
{
    const unsigned char *p = (const unsigned char *)z->bytes.p;
    if (m->offset > z->bytes.n || z->bytes.n - m->offset < LOCAL)
        return broken("a member is outside", e);
    p += m->offset;
    uint64_t start = m->offset + LOCAL + get16(p + 26) + get16(p + 28);
    if (get32(p) != LOCAL_MAGIC) return broken("no member is where the directory says", e);
    if (start > z->bytes.n || m->packed_bytes > z->bytes.n - start)
        return broken("a member ends outside (zip64 is not read)", e);
    *out = mr_str_of(z->bytes.p + start, m->packed_bytes);
    return MR_OK;
}

static void inflate_fini(z_stream *s)
{
    (void)inflateEnd(s);
}

/* Decompresses exactly `n` bytes into `to`. MR_EFORMAT: the stream is damaged, or ends earlier or
 * later. */
static int unpack(struct mr_str from, unsigned char *to, uint32_t n, struct mr_error *e)
{
    MR_AUTO(inflate_fini) z_stream s = {0};
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK)
        return mr_fail(e, MR_EINTERNAL, "npz: zlib does not start");
    s.next_in = mr_unconst(from.p);
    s.avail_in = (uInt)from.n;
    s.next_out = to;
    s.avail_out = n;
    int status = inflate(&s, Z_FINISH);
    if (status != Z_STREAM_END || s.avail_out) return broken("a member does not unpack", e);
    return MR_OK;
}

static int find(const struct mr_nn_zip *z, const char *name, struct member *out, struct mr_error *e)
{
    size_t at = 0;
    for (uint32_t i = 0; i < z->members; i++) {
        if (!next_member(z, &at, out)) return broken("its directory does not hold together", e);
        if (mr_str_eq(out->name, mr_str(name))) return MR_OK;
    }
    return mr_fail(e, MR_ENOENT, "npz: there is no \"%s\" in the archive", name);
}

int mr_nn_zip_name(const struct mr_nn_zip *z, uint32_t i, struct mr_str *out, struct mr_error *e)
{
    size_t at = 0;
    struct member m = {0};
    for (uint32_t k = 0; k <= i; k++)
        if (!next_member(z, &at, &m)) return broken("its directory does not hold together", e);
    *out = m.name;
    return MR_OK;
}

int mr_nn_zip_take(const struct mr_nn_zip *z, const char *name, uint64_t bytes_max, void **owned,
    struct mr_str *out, struct mr_error *e)
{
    struct member m = {0};
    int err = find(z, name, &m, e);
    if (err) return err;
    if (m.bytes > bytes_max)
        return mr_fail(e, MR_ELIMIT,
            "npz: \"%s\" has %" PRIu64 " bytes, at most %" PRIu64 " are right", name, m.bytes,
            bytes_max);
    if (m.flags & 1) return mr_fail(e, MR_EFORMAT, "npz: \"%s\" is encrypted", name);
    if (m.method != 0 && m.method != Z_DEFLATED)
        return mr_fail(e, MR_EFORMAT,
            "npz: \"%s\" is packed by method %u; stored and deflated can be read", name, m.method);
    if (m.method == 0 && m.packed_bytes != m.bytes)
        return broken("a stored member of two sizes", e);
    struct mr_str raw;
    err = packed(z, &m, &raw, e);
    if (err) return err;
    MR_AUTO(mr_free_ptr) unsigned char *copy = NULL;
    if (m.bytes / RATIO_MAX > m.packed_bytes) /* this check comes before memory is allocated */
        return broken("a member claims more than its packed bytes can hold", e);
    if (m.method == Z_DEFLATED) {
        copy = mr_alloc(m.bytes ? m.bytes : 1);
        err = unpack(raw, copy, (uint32_t)m.bytes, e);
        if (err) return err;
        raw = mr_str_of(copy, m.bytes);
    }
    if (crc_of(raw.p, raw.n) != m.crc)
        return mr_fail(e, MR_EFORMAT, "npz: \"%s\" is damaged: its checksum does not agree", name);
    *out = raw;
    *owned = MR_STEAL(copy);
    return MR_OK;
}
