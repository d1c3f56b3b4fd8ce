/* The bytes of a sheet: a magic number with the version, a check sum of what follows, and varints
 * (7 bits a byte, lowest first). First come the varints of the head: job, epoch, number, spans
 * of the block, spans of the sheet, from, until minus from, bits. Then come the number of names,
 * and for each name its length and its bytes. The workers follow in the same way, and then the
 * number of lanes. Each lane has its worker, its slot, the number of its pieces, and the pieces.
 *
 * A piece begins with a varint. Bit 0 says that the number of a name follows, since it differs
 * from that of the piece before. Bit 1 says that the piece is a run of full buckets, whose count
 * follows; otherwise the share follows. The other bits are the distance of the piece's first bucket
 * from the first bucket of the piece before. For the first piece of a lane, they are the distance
 * from the bucket of the sheet's `from`. */
#include "tiles/sheet_bytes.h"

#include "base/alloc.h"
#include "base/id.h"
#include "base/protowire.h"
#include "base/utf8.h"

#define MAGIC UINT32_C(0x3169746d) /* the characters "mti1" */
#define HEAD_BYTES MR_TILE_SHEET_SUMMED_AT
#define NAME_BYTES_MAX 1024u
#define FULL UINT64_C(4096)
#define TIME_MAX (UINT64_MAX / 4)
#define BITS_MAX 62u

enum { NAMED = 1, RUN = 2 };

uint64_t mr_tile_sheet_sum(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t sum = mr_hash_u64(n), word;
    for (; n >= sizeof word; p += sizeof word, n -= sizeof word) {
        memcpy(&word, p, sizeof word);
        sum = mr_hash_u64(sum ^ word);
    }
    word = 0;
    if (n) memcpy(&word, p, n);
    return mr_hash_u64(sum ^ word);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void names_put(struct mr_buf *out, const struct mr_str *names, uint32_t count)
{
    mr_protowire_varint(out, count);
    for (uint32_t i = 0; i < count; i++) {
        size_t n = MR_MIN(names[i].n, (size_t)NAME_BYTES_MAX);
        if (n != names[i].n) n = 0; /* a longer name is written as empty */
        mr_protowire_varint(out, n);
        if (n) mr_buf_add(out, names[i].p, n);
    }
}

static void lane_put(struct mr_buf *out, const struct mr_tile_sheet *s,
    const struct mr_tile_piece *p, uint32_t count)
{
    uint64_t at = s->from >> s->bits;
    uint32_t name = UINT32_MAX;
    mr_protowire_varint(out, count);
    for (uint32_t i = 0; i < count; i++, p++) {
        unsigned bits = (p->name != name ? NAMED : 0u) | (p->buckets > 1 ? RUN : 0u);
        mr_protowire_varint(out, (p->bucket - at) << 2 | bits);
        if (bits & NAMED) mr_protowire_varint(out, p->name);
        mr_protowire_varint(out, bits & RUN ? p->buckets : p->share);
        name = p->name;
        at = p->bucket;
    }
}

int mr_tile_sheet_write(const struct mr_tile_sheet *s, const struct mr_tile_sheet_id *id,
    const struct mr_tile_legend *legend, struct mr_buf *out)
{
    const uint32_t magic = MAGIC;
    uint64_t sum = 0;
    size_t began = out->n;
    mr_buf_add(out, &magic, sizeof magic);
    mr_buf_add(out, &sum, sizeof sum);
    const uint64_t head[] = {
        id->job, id->epoch, id->number, id->spans, s->spans, s->from, s->until - s->from, s->bits};
    for (size_t i = 0; i < MR_ARRAY_LEN(head); i++)
        mr_protowire_varint(out, head[i]);
    names_put(out, legend->names, legend->names_count);
    names_put(out, legend->workers, legend->workers_count);
    mr_protowire_varint(out, legend->lanes_count);
    uint32_t at = 0;
    for (uint32_t i = 0; i < legend->lanes_count; i++) {
        uint32_t end = at;
        while (end < s->count && s->pieces[end].lane == i)
            end++;
        mr_protowire_varint(out, legend->lanes[i].worker);
        mr_protowire_varint(out, legend->lanes[i].slot);
        lane_put(out, s, &s->pieces[at], end - at);
        at = end;
    }
    if (mr_buf_status(out) || out->n - began > MR_TILE_SHEET_BYTES_MAX) return MR_ELIMIT;
    sum = mr_tile_sheet_sum(out->p + began + HEAD_BYTES, out->n - began - HEAD_BYTES);
    memcpy(out->p + began + sizeof magic, &sum, sizeof sum);
    return MR_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct decoder {
    const unsigned char *p, *end;
    bool is_bad;
};

static uint64_t take(struct decoder *d)
{
    uint64_t v = 0;
    if (mr_protowire_take_varint(&d->p, d->end, &v)) return v;
    d->is_bad = true;
    return 0;
}

static uint64_t take_max(struct decoder *d, uint64_t max)
{
    uint64_t v = take(d);
    if (v > max) d->is_bad = true;
    return d->is_bad ? 0 : v;
}

/* Reads the number of things that follow. Each of them takes at least one byte, so there are at
 * most as many things as bytes. */
static uint32_t take_count(struct decoder *d)
{
    return (uint32_t)take_max(d, (uint64_t)(d->end - d->p));
}

static struct decoder open_bytes(struct mr_str bytes)
{
    struct decoder d = {.is_bad = true};
    uint32_t magic = 0;
    uint64_t sum = 0;
    if (bytes.n < HEAD_BYTES || bytes.n > MR_TILE_SHEET_BYTES_MAX) return d;
    memcpy(&magic, bytes.p, sizeof magic);
    memcpy(&sum, bytes.p + sizeof magic, sizeof sum);
    d.p = (const unsigned char *)bytes.p + HEAD_BYTES;
    d.end = (const unsigned char *)bytes.p + bytes.n;
    d.is_bad = magic != MAGIC || sum != mr_tile_sheet_sum(d.p, bytes.n - HEAD_BYTES);
    return d;
}

static void head_take(struct decoder *d, struct mr_tile_sheet_head *out)
{
    out->id.job = take(d);
    out->id.epoch = (uint32_t)take_max(d, UINT32_MAX);
    out->id.number = take(d);
    out->id.spans = (uint32_t)take_max(d, UINT32_MAX);
    out->spans = (uint32_t)take_max(d, UINT32_MAX);
    out->from = take_max(d, TIME_MAX);
    out->until = out->from + take_max(d, TIME_MAX - MR_MIN(out->from, TIME_MAX));
    out->bits = (unsigned)take_max(d, BITS_MAX);
}

int mr_tile_sheet_read(struct mr_str bytes, struct mr_tile_sheet_head *out)
{
    struct mr_tile_sheet_head head = {0};
    struct decoder d = open_bytes(bytes);
    if (!d.is_bad) head_take(&d, &head);
    if (d.is_bad) return MR_EFORMAT;
    *out = head;
    return MR_OK;
}

/* Reads names and translates them to the caller's numbers. The caller frees the result. */
static uint32_t *names_take(
    struct decoder *d, uint32_t (*fn)(void *ctx, struct mr_str name), void *ctx, uint32_t *count)
{
    *count = take_count(d);
    uint32_t *numbers = mr_alloc_array(MR_MAX(*count, 1u), sizeof *numbers);
    for (uint32_t i = 0; i < *count && !d->is_bad; i++) {
        uint64_t n = take_max(d, MR_MIN((uint64_t)(d->end - d->p), (uint64_t)NAME_BYTES_MAX));
        struct mr_str name = mr_str_of(d->p, (size_t)n);
        if (n > (uint64_t)(d->end - d->p) || !mr_utf8_is_valid(name)) d->is_bad = true;
        if (d->is_bad) break;
        d->p += n;
        numbers[i] = fn(ctx, name);
    }
    return numbers;
}

struct tables {
    const struct mr_tile_sheet_head *head;
    uint32_t *names, *workers;
    uint32_t names_count, workers_count;
};

static void lane_take(
    struct decoder *d, const struct mr_tile_sheet_fns *fns, const struct tables *t)
{
    const struct mr_tile_sheet_head *head = t->head;
    uint64_t worker = take(d), slot = take_max(d, UINT32_MAX);
    if (worker >= t->workers_count) d->is_bad = true;
    uint32_t count = take_count(d);
    if (d->is_bad) return;
    uint32_t lane = fns->lane(fns->ctx, t->workers[worker], (uint32_t)slot);
    struct mr_tile_piece p = {.name = MR_TILE_NONE};
    uint64_t at = head->from >> head->bits, end = (head->until >> head->bits) + 1;
    for (uint32_t i = 0; i < count && !d->is_bad; i++) {
        uint64_t begin = take(d);
        p.bucket = at + MR_MIN(begin >> 2, end);
        if (begin & NAMED) {
            uint64_t name = take(d);
            if (name >= t->names_count) d->is_bad = true;
            if (!d->is_bad) p.name = (uint16_t)MR_MIN(t->names[name], (uint32_t)MR_TILE_NONE);
        }
        p.buckets = begin & RUN ? take_max(d, end) : 1;
        p.share = (uint16_t)(begin & RUN ? FULL : take_max(d, FULL));
        if (!p.buckets || p.bucket + p.buckets > end) d->is_bad = true;
        if (d->is_bad) return;
        const struct mr_tile_time time = mr_tile_piece_time(&p, head->bits);
        fns->piece(fns->ctx, lane, &time);
        at = p.bucket;
    }
}

int mr_tile_sheet_decode(struct mr_str bytes, const struct mr_tile_sheet_fns *fns)
{
    struct mr_tile_sheet_head head = {0};
    struct tables t = {.head = &head};
    struct decoder d = open_bytes(bytes);
    if (d.is_bad) return MR_EFORMAT;
    head_take(&d, &head);
    t.names = names_take(&d, fns->name, fns->ctx, &t.names_count);
    t.workers = names_take(&d, fns->worker, fns->ctx, &t.workers_count);
    uint32_t lanes = take_count(&d);
    for (uint32_t i = 0; i < lanes && !d.is_bad; i++)
        lane_take(&d, fns, &t);
    if (d.p != d.end) d.is_bad = true;
    mr_release(t.names);
    mr_release(t.workers);
    return d.is_bad ? MR_EFORMAT : MR_OK;
}
