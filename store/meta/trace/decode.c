/* Reads the spans of a block (codec.h, internal.h). A damaged block gives MR_EFORMAT. */
#include "store/meta/trace/internal.h"

#include "base/alloc.h"
#include "base/protowire.h"
#include "base/utf8.h"

static uint64_t unzigzag(uint64_t v)
{
    return v >> 1 ^ (v & 1 ? UINT64_MAX : 0);
}

struct decoder {
    const unsigned char *p, *end;
    bool bad;
    unsigned version; /* 1 to 3: "mtr1" to "mtr3" */
    struct lane *lane;
    struct mr_str *workers, *ops;
    uint32_t lanes, lane_room, workers_count, workers_room, ops_count, ops_room;
    uint32_t at, op, index;
    uint64_t distance; /* the last span's index minus its last_input */
    uint64_t base;
};

static uint64_t take(struct decoder *d)
{
    uint64_t v = 0;
    if (mr_protowire_take_varint(&d->p, d->end, &v)) return v;
    d->bad = true;
    return 0;
}

static uint32_t take_u32(struct decoder *d)
{
    uint64_t v = take(d);
    if (v > UINT32_MAX) d->bad = true;
    return (uint32_t)v;
}

static uint64_t take_difference(struct decoder *d, uint64_t from)
{
    return from + unzigzag(take(d));
}

/* Reads a number up to `count`. The number `count` announces a new item. */
static uint32_t take_number(struct decoder *d, uint32_t count)
{
    uint64_t v = take(d);
    if (v > count || v >= NUMBERS_MAX) {
        d->bad = true;
        return 0;
    }
    return (uint32_t)v;
}

static void take_name(struct decoder *d, struct mr_str **names, uint32_t *count, uint32_t *room)
{
    uint64_t n = take(d);
    struct mr_str name = mr_str_of(d->p, (size_t)n);
    if (n > MR_TRACE_NAME_BYTES_MAX || n > (uint64_t)(d->end - d->p) || !mr_utf8_is_valid(name)) {
        d->bad = true;
        return;
    }
    d->p += n;
    if (*count == *room) {
        uint32_t more = MR_MAX(8u, *room * 2);
        *names = mr_grow(*names, *room * sizeof name, more * sizeof name);
        *room = more;
    }
    (*names)[(*count)++] = name;
}

static void take_lane(struct decoder *d)
{
    uint32_t number = take_number(d, d->lanes);
    if (d->bad || number < d->lanes) {
        d->at = number;
        return;
    }
    struct lane l = {.ready = d->base, .sent = d->base, .finished = d->base, .accounted = d->base};
    if (number) l = d->lane[d->at];
    l.worker = take_number(d, d->workers_count);
    if (!d->bad && l.worker == d->workers_count)
        take_name(d, &d->workers, &d->workers_count, &d->workers_room);
    l.slot = take_u32(d);
    if (d->bad) return;
    if (d->lanes == d->lane_room) {
        uint32_t more = MR_MAX(8u, d->lane_room * 2);
        d->lane = mr_grow(d->lane, d->lane_room * sizeof l, more * sizeof l);
        d->lane_room = more;
    }
    d->at = d->lanes;
    d->lane[d->lanes++] = l;
}

static void take_times(
    struct decoder *d, struct lane *l, unsigned flags, unsigned has, struct mr_trace_span *s)
{
    uint64_t started = 0;
    if (flags & SENT) l->sent = take_difference(d, l->accounted);
    if (flags & READY) l->ready = take_difference(d, l->sent);
    if (has & HAS_STARTED) started = take_difference(d, l->finished);
    if (has & HAS_FINISHED)
        l->finished = take_difference(d, has & HAS_STARTED ? started : l->finished);
    if (flags & ACCOUNTED) l->accounted = take_difference(d, l->finished);
    uint64_t ran = has & HAS_STARTED && has & HAS_FINISHED ? l->finished - started : 0;
    uint64_t cpu = ran;
    if (flags & CPU) {
        uint64_t v = take(d);
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
static unsigned take_more(
    struct decoder *d, struct lane *l, struct mr_trace_span *s, bool *is_measured)
{
    unsigned mask = d->version == 1 ? TRIED : 0;
    if (d->version > 1) mask = d->p < d->end ? *d->p++ : ~0u;
    if (mask & ~(HAS_ALL | BYTES | TRIED | (d->version > 2 ? MEASURED : 0u))) d->bad = true;
    if (mask & BYTES) l->bytes = take(d);
    if (mask & TRIED) {
        s->attempt = take_u32(d);
        s->outcome = take_u32(d);
    }
    if (d->version > 1) *is_measured = mask & MEASURED;
    return d->version == 1 ? take_u32(d) : mask & HAS_ALL;
}

/* Measurements as they stand in the block: relative to the span's `sent`, which is read later. */
struct measured {
    unsigned mask;
    uint64_t received, inputs;
};

static void take_measured(struct decoder *d, struct measured *m, struct mr_trace_span *s)
{
    m->mask = take_u32(d);
    if (m->mask & ~(unsigned)(RECEIVED | INPUTS | INPUT | OUTPUT | LATE | HELD | LAST | DELAYED |
                              ROOM | TRAINING | RESTORE))
        d->bad = true;
    if (m->mask & RECEIVED) m->received = take(d);
    if (m->mask & INPUTS) m->inputs = take_difference(d, 0);
    if (m->mask & INPUT) s->input_ns = take(d) * MR_TRACE_TICK_NS;
    if (m->mask & OUTPUT) s->output_ns = take(d) * MR_TRACE_TICK_NS;
    if (m->mask & LATE) s->late_ns = take(d) * MR_TRACE_TICK_NS;
    if (m->mask & HELD) s->held = take_u32(d);
    if (m->mask & LAST) d->distance = take_difference(d, 0);
    if (m->mask & DELAYED) s->delayed_ns = take(d) * MR_TRACE_TICK_NS;
    if (m->mask & ROOM) s->room_ns = take(d) * MR_TRACE_TICK_NS;
    if (m->mask & TRAINING) s->training = take(d);
    if (m->mask & RESTORE) s->restore_ns = take(d) * MR_TRACE_TICK_NS;
}

static void put_in_time(const struct measured *m, struct lane *l, struct mr_trace_span *s)
{
    uint64_t sent = s->sent / MR_TRACE_TICK_NS;
    if (m->mask & RECEIVED) l->received = m->received ? sent + unzigzag(m->received - 1) : 0;
    if (m->mask & INPUTS) s->inputs = (sent + m->inputs) * MR_TRACE_TICK_NS;
    s->received = l->received * MR_TRACE_TICK_NS;
}

static void take_span(struct decoder *d, struct mr_trace_span *s)
{
    unsigned flags = d->p < d->end ? *d->p++ : 0;
    unsigned has = HAS_ALL;
    if (flags & LANE) take_lane(d);
    if (flags & OP) {
        d->op = take_number(d, d->ops_count);
        if (!d->bad && d->op == d->ops_count) take_name(d, &d->ops, &d->ops_count, &d->ops_room);
    }
    if (d->bad || d->at >= d->lanes || d->op >= d->ops_count) {
        d->bad = true; /* damaged: the first span must name its lane and operator */
        return;
    }
    struct lane *l = &d->lane[d->at];
    uint64_t index = (uint64_t)d->index + 1;
    if (flags & INDEX) index = take_difference(d, index);
    bool is_measured = false;
    struct measured m = {0};
    s->attempt = 1;
    s->outcome = s->held = 0;
    s->inputs = s->input_ns = s->output_ns = s->late_ns = s->delayed_ns = 0;
    s->room_ns = s->training = s->restore_ns = 0;
    if (flags & MORE) has = take_more(d, l, s, &is_measured);
    if (is_measured) take_measured(d, &m, s);
    s->bytes = l->bytes;
    if (index > UINT32_MAX || has & ~HAS_ALL) d->bad = true;
    d->index = s->index = (uint32_t)index;
    if (index - d->distance > UINT32_MAX) d->bad = true;
    s->last_input = (uint32_t)(index - d->distance);
    take_times(d, l, flags, has, s);
    put_in_time(&m, l, s);
    s->slot = l->slot;
    s->op_id = d->op;
    s->op = d->ops[d->op];
    s->worker_id = l->worker;
    s->worker = d->workers[l->worker];
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

int mr_trace_decode(struct mr_str block, mr_trace_span_fn fn, void *ctx)
{
    struct head h;
    int err = head_read(block, &h);
    if (err) return err;
    if (h.kind != KIND_SPANS) return MR_OK;
    struct decoder d = {.p = (const unsigned char *)block.p + sizeof h,
        .end = (const unsigned char *)block.p + block.n,
        .base = h.base,
        .version = version_of(h.magic)};
    for (uint32_t i = 0; i < h.count && !d.bad; i++) {
        struct mr_trace_span s;
        take_span(&d, &s);
        if (!d.bad) fn(ctx, &s);
    }
    if (d.p != d.end) d.bad = true;
    mr_release(d.lane);
    mr_release(d.workers);
    mr_release(d.ops);
    return d.bad ? MR_EFORMAT : MR_OK;
}
