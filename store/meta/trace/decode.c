/* Reads the spans of a block (codec.h, internal.h). A damaged block gives MR_EFORMAT. */
#include "store/meta/trace/internal.h"

#include "base/alloc.h"
#include "base/protowire.h"
#include "base/utf8.h"

static uint64_t unzigzag(uint64_t v)
{
    return v >> 1 ^ (v & 1 ? UINT64_MAX : 0);
}

/* The bytes that are left of a block. */
struct rest {
    const unsigned char *p, *end;
    bool bad; /* the block is damaged */
};

struct mr_trace_decoder {
    struct rest rest;
    uint32_t left;    /* number of spans that were not read yet */
    unsigned version; /* 1 to 3: "mtr1" to "mtr3" */
    struct lane *lane;
    struct mr_str *workers, *ops;
    uint32_t lanes, lane_room, workers_count, workers_room, ops_count, ops_room;
    uint32_t at, op, index;
    uint64_t distance; /* the last span's index minus its last_input */
    uint64_t base;
};

/* Returns the place after the varint. NULL: the varint is malformed. */
static const unsigned char *take_long(
    const unsigned char *p, const unsigned char *end, uint64_t *out)
{
    return mr_protowire_take_varint(&p, end, out) ? p : NULL;
}

/* Most varints have one or two bytes. `r` is a local variable of the caller, so the compiler keeps
 * its members in registers. */
static inline uint64_t take(struct rest *r)
{
    const unsigned char *p = r->p;
    if (MR_LIKELY(r->end - p >= 2)) {
        if (p[0] < 128) {
            r->p = p + 1;
            return p[0];
        }
        if (p[1] < 128) {
            r->p = p + 2;
            return (p[0] & 127u) | (uint64_t)p[1] << 7;
        }
    }
    uint64_t v = 0;
    p = take_long(p, r->end, &v);
    if (p)
        r->p = p;
    else
        r->bad = true;
    return p ? v : 0;
}

static inline uint32_t take_u32(struct rest *r)
{
    uint64_t v = take(r);
    if (v > UINT32_MAX) r->bad = true;
    return (uint32_t)v;
}

static inline uint64_t take_difference(struct rest *r, uint64_t from)
{
    return from + unzigzag(take(r));
}

/* Reads a number up to `count`. The number `count` announces a new item. */
static inline uint32_t take_number(struct rest *r, uint32_t count)
{
    uint64_t v = take(r);
    if (MR_LIKELY(v <= count && v < NUMBERS_MAX)) return (uint32_t)v;
    r->bad = true;
    return 0;
}

static void take_name(struct rest *r, struct mr_str **names, uint32_t *count, uint32_t *room)
{
    uint64_t n = take(r);
    struct mr_str name = mr_str_of(r->p, (size_t)n);
    if (n > MR_TRACE_NAME_BYTES_MAX || n > (uint64_t)(r->end - r->p) || !mr_utf8_is_valid(name)) {
        r->bad = true;
        return;
    }
    r->p += n;
    if (*count == *room) {
        uint32_t more = MR_MAX(8u, *room * 2);
        *names = mr_grow(*names, *room * sizeof name, more * sizeof name);
        *room = more;
    }
    (*names)[(*count)++] = name;
}

/* Reads the worker and the slot of the new lane `number`. Returns the place after them. */
static struct rest lane_add(struct mr_trace_decoder *d, struct rest r, uint32_t number)
{
    struct lane l = {.ready = d->base, .sent = d->base, .finished = d->base, .accounted = d->base};
    if (number) l = d->lane[d->at];
    l.worker = take_number(&r, d->workers_count);
    if (!r.bad && l.worker == d->workers_count)
        take_name(&r, &d->workers, &d->workers_count, &d->workers_room);
    l.slot = take_u32(&r);
    if (r.bad) return r;
    if (d->lanes == d->lane_room) {
        uint32_t more = MR_MAX(8u, d->lane_room * 2);
        d->lane = mr_grow(d->lane, d->lane_room * sizeof l, more * sizeof l);
        d->lane_room = more;
    }
    d->at = d->lanes;
    d->lane[d->lanes++] = l;
    return r;
}

/* Reads the name of the new operator d->op. Returns the place after the name. */
static struct rest op_add(struct mr_trace_decoder *d, struct rest r)
{
    take_name(&r, &d->ops, &d->ops_count, &d->ops_room);
    return r;
}

static inline void take_lane(struct mr_trace_decoder *d, struct rest *r)
{
    uint32_t number = take_number(r, d->lanes);
    if (number < d->lanes)
        d->at = number;
    else if (!r->bad)
        *r = lane_add(d, *r, number);
}

static inline void take_op(struct mr_trace_decoder *d, struct rest *r)
{
    d->op = take_number(r, d->ops_count);
    if (!r->bad && d->op == d->ops_count) *r = op_add(d, *r);
}

static inline void take_times(
    struct rest *r, struct lane *l, unsigned flags, unsigned has, struct mr_trace_span *s)
{
    uint64_t started = 0;
    if (flags & SENT) l->sent = take_difference(r, l->accounted);
    if (flags & READY) l->ready = take_difference(r, l->sent);
    if (has & HAS_STARTED) started = take_difference(r, l->finished);
    if (has & HAS_FINISHED)
        l->finished = take_difference(r, has & HAS_STARTED ? started : l->finished);
    if (flags & ACCOUNTED) l->accounted = take_difference(r, l->finished);
    uint64_t ran = has & HAS_STARTED && has & HAS_FINISHED ? l->finished - started : 0;
    uint64_t cpu = ran;
    if (flags & CPU) {
        uint64_t v = take(r);
        cpu = v & 1 ? v >> 1 : ran + unzigzag(v >> 1);
    }
    s->ready = has & HAS_READY ? l->ready * MR_TRACE_TICK_NS : 0;
    s->sent = has & HAS_SENT ? l->sent * MR_TRACE_TICK_NS : 0;
    s->started = has & HAS_STARTED ? started * MR_TRACE_TICK_NS : 0;
    s->finished = has & HAS_FINISHED ? l->finished * MR_TRACE_TICK_NS : 0;
    s->accounted = has & HAS_ACCOUNTED ? l->accounted * MR_TRACE_TICK_NS : 0;
    s->cpu_ns = cpu * MR_TRACE_TICK_NS;
}

/* Reads the field MORE up to the measurements, and returns the bits HAS_…. `*is_measured`: the
 * measurements follow. */
static inline unsigned take_more(
    struct rest *r, unsigned version, struct lane *l, struct mr_trace_span *s, bool *is_measured)
{
    unsigned mask = version == 1 ? TRIED : 0;
    if (version > 1) mask = r->p < r->end ? *r->p++ : ~0u;
    if (mask & ~(HAS_ALL | BYTES | TRIED | (version > 2 ? MEASURED : 0u))) r->bad = true;
    if (mask & BYTES) l->bytes = take(r);
    if (mask & TRIED) {
        s->attempt = take_u32(r);
        s->outcome = take_u32(r);
    }
    if (version > 1) *is_measured = mask & MEASURED;
    return version == 1 ? take_u32(r) : mask & HAS_ALL;
}

/* Measurements as they stand in the block: relative to the span's `sent`, which is read later. */
struct measured {
    unsigned mask;
    uint64_t received, inputs;
};

static inline void take_measured(
    struct rest *r, uint64_t *distance, struct measured *m, struct mr_trace_span *s)
{
    m->mask = take_u32(r);
    if (m->mask & ~(unsigned)(RECEIVED | INPUTS | INPUT | OUTPUT | LATE | HELD | LAST | DELAYED |
                              ROOM | TRAINING | RESTORE))
        r->bad = true;
    if (m->mask & RECEIVED) m->received = take(r);
    if (m->mask & INPUTS) m->inputs = take_difference(r, 0);
    if (m->mask & INPUT) s->input_ns = take(r) * MR_TRACE_TICK_NS;
    if (m->mask & OUTPUT) s->output_ns = take(r) * MR_TRACE_TICK_NS;
    if (m->mask & LATE) s->late_ns = take(r) * MR_TRACE_TICK_NS;
    if (m->mask & HELD) s->held = take_u32(r);
    if (m->mask & LAST) *distance = take_difference(r, 0);
    if (m->mask & DELAYED) s->delayed_ns = take(r) * MR_TRACE_TICK_NS;
    if (m->mask & ROOM) s->room_ns = take(r) * MR_TRACE_TICK_NS;
    if (m->mask & TRAINING) s->training = take(r);
    if (m->mask & RESTORE) s->restore_ns = take(r) * MR_TRACE_TICK_NS;
}

static inline void put_in_time(const struct measured *m, struct lane *l, struct mr_trace_span *s)
{
    uint64_t sent = s->sent / MR_TRACE_TICK_NS;
    if (m->mask & RECEIVED) l->received = m->received ? sent + unzigzag(m->received - 1) : 0;
    if (m->mask & INPUTS) s->inputs = (sent + m->inputs) * MR_TRACE_TICK_NS;
    s->received = l->received * MR_TRACE_TICK_NS;
}

/* Reads the next span from `r`, and returns the place after the span. */
static struct rest take_span(struct mr_trace_decoder *d, struct rest r, struct mr_trace_span *s)
{
    unsigned flags = r.p < r.end ? *r.p++ : 0;
    unsigned has = HAS_ALL;
    if (flags & LANE) take_lane(d, &r);
    if (flags & OP) take_op(d, &r);
    if (r.bad || d->at >= d->lanes || d->op >= d->ops_count) {
        r.bad = true; /* damaged: the first span must name its lane and operator */
        return r;
    }
    struct lane *l = &d->lane[d->at];
    uint64_t index = (uint64_t)d->index + 1;
    if (flags & INDEX) index = take_difference(&r, index);
    bool is_measured = false;
    struct measured m = {0};
    s->attempt = 1;
    s->outcome = s->held = 0;
    s->inputs = s->input_ns = s->output_ns = s->late_ns = s->delayed_ns = 0;
    s->room_ns = s->training = s->restore_ns = 0;
    if (flags & MORE) has = take_more(&r, d->version, l, s, &is_measured);
    if (is_measured) take_measured(&r, &d->distance, &m, s);
    s->bytes = l->bytes;
    if (index > UINT32_MAX || has & ~HAS_ALL) r.bad = true;
    d->index = s->index = (uint32_t)index;
    if (index - d->distance > UINT32_MAX) r.bad = true;
    s->last_input = (uint32_t)(index - d->distance);
    take_times(&r, l, flags, has, s);
    put_in_time(&m, l, s);
    s->slot = l->slot;
    s->op_id = d->op;
    s->op = d->ops[d->op];
    s->worker_id = l->worker;
    s->worker = d->workers[l->worker];
    return r;
}

static unsigned version_of(uint32_t magic) /* 0: the bytes are no block */
{
    return magic == MAGIC ? 3 : magic == MAGIC_2 ? 2 : magic == MAGIC_1 ? 1 : 0;
}

static int head_read(struct mr_str block, struct head *h)
{
    if (block.n < sizeof *h || block.n > MR_TRACE_BLOCK_BYTES_MAX) return MR_EFORMAT;
    memcpy(h, block.p, sizeof *h);
    if (!version_of(h->magic) || h->bytes != block.n - sizeof *h) return MR_EFORMAT;
    if (h->kind != KIND_SPANS) h->count = 0;
    return h->count <= h->bytes / SPAN_BYTES_MIN ? MR_OK : MR_EFORMAT;
}

int mr_trace_block_read(struct mr_str block, struct mr_trace_block *out)
{
    struct head h;
    int err = head_read(block, &h);
    if (err) return err;
    *out = (struct mr_trace_block){.job = {h.job},
        .count = h.count,
        .index_min = h.index_min,
        .index_max = h.index_max,
        .finished_min = h.finished_min,
        .finished_max = h.finished_max};
    return MR_OK;
}

int mr_trace_decoder_begin(struct mr_trace_decoder *d, struct mr_str block)
{
    struct head h;
    d->left = 0;
    int err = head_read(block, &h);
    if (err) return err;
    const unsigned char *p = (const unsigned char *)block.p, *end = p + block.n;
    d->rest = (struct rest){.p = h.kind == KIND_SPANS ? p + sizeof h : end, .end = end};
    d->left = h.count;
    d->version = version_of(h.magic);
    d->base = h.base;
    d->lanes = d->workers_count = d->ops_count = 0;
    d->at = d->op = d->index = 0;
    d->distance = 0;
    return MR_OK;
}

bool mr_trace_decoder_next(struct mr_trace_decoder *d, struct mr_trace_span *out)
{
    if (!d->left || d->rest.bad) return false;
    d->left--;
    d->rest = take_span(d, d->rest, out);
    return !d->rest.bad;
}

/* Frees what the decoder owns. */
static void decoder_fini(struct mr_trace_decoder *d)
{
    mr_release(d->lane);
    mr_release(d->workers);
    mr_release(d->ops);
}

struct mr_trace_decoder *mr_trace_decoder_new(void)
{
    return mr_alloc(sizeof(struct mr_trace_decoder));
}

void mr_trace_decoder_free(struct mr_trace_decoder **dp)
{
    struct mr_trace_decoder *d = *dp;
    *dp = NULL;
    if (!d) return;
    decoder_fini(d);
    mr_release(d);
}

int mr_trace_decode(struct mr_str block, mr_trace_span_fn fn, void *ctx)
{
    struct mr_trace_decoder d = {0};
    struct mr_trace_span s;
    int err = mr_trace_decoder_begin(&d, block);
    if (err) return err;
    while (mr_trace_decoder_next(&d, &s))
        fn(ctx, &s);
    bool is_whole = !d.rest.bad && d.rest.p == d.rest.end;
    decoder_fini(&d);
    return is_whole ? MR_OK : MR_EFORMAT;
}
