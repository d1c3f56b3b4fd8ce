/* The bytes of a block: the struct head below, little endian, and then `count` spans. A span is one
 * attempt of a task, and a lane is an executor thread. The block's first four bytes give its
 * version. Version 3 ("mtr3") is described first and is the only one that is written.
 *
 * A span is a byte of flags and then fields, in the order of the list below. A field is absent if
 * its flag is not set. Its numbers are varints (7 bits a byte, lowest first). A difference of two
 * numbers wraps and is zigzag-encoded (0, -1, 1, -2 …), so any uint64_t can be restored. Names
 * appear once: a field gives the number of a known name, or the next free number followed by the
 * new name. A time that the span does not have has no field.
 *
 * - LANE: the lane's number. A new lane adds its worker (number, or new number with name) and the
 *   slot. Absent: the lane of the span before.
 * - OP: the operator's number; a new one adds its name. Absent: the operator of the span before.
 * - INDEX: the index minus that of the span before, minus 1. Absent: one more than that of the span
 *   before.
 * - MORE: a byte of bits. Five bits (HAS_…) say which times the span has. The other bits say which
 *   of these follow: BYTES, the bytes of the value; TRIED, attempt and outcome; MEASURED, the
 *   measurements. Without MORE the span has all times, and none of the three follows. Without BYTES
 *   the bytes are those of the lane's last span. Without TRIED: attempt 1, outcome 0.
 * - The measurements: a byte of bits that says which numbers follow. RECEIVED is 0 if it is not
 *   known, else 1 plus the zigzag-encoded difference received minus sent. INPUTS is inputs minus
 *   sent. INPUT, OUTPUT, LATE and HELD are plain numbers. Without RECEIVED, received is the lane's
 *   last received. Any other measurement without its bit is 0.
 * - SENT: sent minus the lane's last accounted. Absent: sent is the lane's last sent.
 * - READY: ready minus sent. Absent: ready is the lane's last ready.
 * - Without a flag: started minus the lane's last finished, and finished minus started (minus the
 *   lane's last finished if the span has no started).
 * - ACCOUNTED: accounted minus finished. Absent: accounted is the lane's last accounted.
 * - CPU: the processor time C. The run time R is finished minus started, or 0 if the span lacks one
 *   of them. D is the zigzag-encoded difference C minus R. The field is 2 C + 1 if C is smaller
 *   than D, otherwise 2 D. Absent: C equals R.
 *
 * A lane's next task usually begins right after its last one, and messages carry many tasks, so
 * most differences are small or absent. A new lane begins with the times of the last span's lane.
 *
 * Version 2 ("mtr2") has no measurements. Version 1 ("mtr1") has neither measurements nor bytes of
 * values; its field MORE is three varints: attempt, outcome, and the bits HAS_…. */
#include "store/meta/trace/codec.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/index.h"
#include "base/utf8.h"

#include <assert.h>

#define MAGIC 0x3372746du /* the characters "mtr3" */
/* The characters "mtr2": blocks of version 2, which are read and never written. */
#define MAGIC_2 0x3272746du
/* The characters "mtr1": blocks of version 1, which are read and never written. */
#define MAGIC_1 0x3172746du
#define KIND_SPANS 1      /* a reader skips blocks of any other kind */
#define NUMBERS_MAX 4096u /* limit of the lanes, workers and operators of one block */
#define SPAN_BYTES_MAX (2 * (MR_TRACE_NAME_BYTES_MAX + 3) + 3 + 21 * 10)
#define SPAN_BYTES_MIN 2

enum { LANE = 1, OP = 2, INDEX = 4, MORE = 8, SENT = 16, READY = 32, ACCOUNTED = 64, CPU = 128 };
enum { HAS_READY = 1, HAS_SENT = 2, HAS_STARTED = 4, HAS_FINISHED = 8, HAS_ACCOUNTED = 16 };
#define HAS_ALL 31u
enum { BYTES = 32, TRIED = 64, MEASURED = 128 };
enum { RECEIVED = 1, INPUTS = 2, INPUT = 4, OUTPUT = 8, LATE = 16, HELD = 32 };

struct head {
    uint32_t magic;
    uint32_t kind;
    uint32_t count;
    uint32_t bytes; /* bytes of all spans */
    uint64_t job;
    /* A time in ticks, to which the times of the first lane are relative. */
    uint64_t base;
    uint64_t finished_min, finished_max; /* ns */
    uint32_t index_min, index_max;
};
static_assert(sizeof(struct head) == 56, "the layout of a block");

struct lane {
    uint32_t worker; /* the worker's number in this block */
    uint32_t slot;
    /* Times of the lane's last span, in ticks. */
    uint64_t ready, sent, received, finished, accounted;
    uint64_t bytes;
};

static uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static uint64_t unzigzag(uint64_t v)
{
    return v >> 1 ^ (v & 1 ? UINT64_MAX : 0);
}

static uint64_t end_of(const struct mr_trace_span *s)
{
    return s->finished ? s->finished : s->accounted;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Numbers the caller's ids in the order in which they first appear in the block. */
struct numbering {
    struct mr_index index;
    uint64_t *ids;
    uint32_t count, room;
};

struct mr_trace_encoder {
    struct mr_buf bytes;
    struct head head;
    struct numbering lanes, workers, ops;
    struct lane *lane; /* indexed by the lane's number */
    uint32_t lane_room;
    uint32_t at; /* number of the last span's lane */
    uint64_t at_id;
    uint32_t op;
    uint32_t op_id;
    uint32_t index; /* task index of the last span */
};

static bool id_eq(const void *ctx, uint32_t item, const void *key)
{
    const struct numbering *n = ctx;
    return n->ids[item] == *(const uint64_t *)key;
}

static uint64_t id_hash(const void *ctx, uint32_t item)
{
    const struct numbering *n = ctx;
    return mr_hash_u64(n->ids[item]);
}

/* Returns the number of an id. A new id is added; its number is then the old n->count. */
static uint32_t number_of(struct numbering *n, uint64_t id)
{
    uint64_t hash = mr_hash_u64(id);
    uint32_t found = mr_index_find(&n->index, hash, id_eq, n, &id);
    if (found != MR_INDEX_NONE) return found;
    if (n->count == n->room) {
        uint32_t more = MR_MAX(8u, n->room * 2);
        n->ids = mr_grow(n->ids, n->room * sizeof *n->ids, more * sizeof *n->ids);
        n->room = more;
    }
    n->ids[n->count] = id;
    mr_index_add(&n->index, hash, n->count, id_hash, n);
    return n->count++;
}

static void numbering_clear(struct numbering *n)
{
    if (n->count) {
        mr_index_fini(&n->index);
        mr_index_init(&n->index, 8);
    }
    n->count = 0;
}

static void numbering_fini(struct numbering *n)
{
    mr_index_fini(&n->index);
    mr_release(n->ids);
}

struct mr_trace_encoder *mr_trace_encoder_new(void)
{
    struct mr_trace_encoder *e = mr_alloc(sizeof *e);
    mr_buf_init(&e->bytes, MR_TRACE_BLOCK_BYTES_MAX);
    mr_index_init(&e->lanes.index, 8);
    mr_index_init(&e->workers.index, 8);
    mr_index_init(&e->ops.index, 8);
    return e;
}

void mr_trace_encoder_free(struct mr_trace_encoder **ep)
{
    struct mr_trace_encoder *e = *ep;
    *ep = NULL;
    if (!e) return;
    mr_buf_fini(&e->bytes);
    numbering_fini(&e->lanes);
    numbering_fini(&e->workers);
    numbering_fini(&e->ops);
    mr_release(e->lane);
    mr_release(e);
}

void mr_trace_encoder_begin(struct mr_trace_encoder *e, mr_job_id job)
{
    numbering_clear(&e->lanes);
    numbering_clear(&e->workers);
    numbering_clear(&e->ops);
    mr_buf_clear(&e->bytes);
    e->index = 0;
    e->head = (struct head){.magic = MAGIC,
        .kind = KIND_SPANS,
        .job = job.v,
        .finished_min = UINT64_MAX,
        .index_min = UINT32_MAX};
    mr_buf_add(&e->bytes, &e->head, sizeof e->head);
}

size_t mr_trace_encoder_bytes(const struct mr_trace_encoder *e)
{
    return e->bytes.n;
}

uint32_t mr_trace_encoder_count(const struct mr_trace_encoder *e)
{
    return e->head.count;
}

static unsigned char *put(unsigned char *p, uint64_t v)
{
    for (; v >= 128; v >>= 7)
        *p++ = (unsigned char)(v | 128);
    *p++ = (unsigned char)v;
    return p;
}

static unsigned char *put_difference(unsigned char *p, uint64_t v, uint64_t from)
{
    return put(p, zigzag(v - from));
}

static unsigned char *put_name(unsigned char *p, struct mr_str name)
{
    bool good = name.n <= MR_TRACE_NAME_BYTES_MAX && mr_utf8_is_valid(name);
    size_t n = good ? name.n : 0; /* a name that the decoder would refuse is written as empty */
    p = put(p, n);
    if (n) memcpy(p, name.p, n);
    return p + n;
}

/* Writes the worker and the slot of a lane that is new in the block. The number of the lane has
 * been written before. */
static unsigned char *put_lane(
    struct mr_trace_encoder *e, unsigned char *p, uint32_t number, const struct mr_trace_span *s)
{
    uint32_t workers = e->workers.count;
    struct lane l = {.ready = e->head.base,
        .sent = e->head.base,
        .finished = e->head.base,
        .accounted = e->head.base};
    if (number) l = e->lane[e->at];
    if (number == e->lane_room) {
        uint32_t more = MR_MAX(8u, e->lane_room * 2);
        e->lane = mr_grow(e->lane, e->lane_room * sizeof l, more * sizeof l);
        e->lane_room = more;
    }
    l.worker = number_of(&e->workers, s->worker_id);
    l.slot = s->slot;
    p = put(p, l.worker);
    if (l.worker == workers) p = put_name(p, s->worker);
    e->lane[number] = l;
    return put(p, s->slot);
}

static unsigned char *put_who(
    struct mr_trace_encoder *e, unsigned char *p, const struct mr_trace_span *s, unsigned *flags)
{
    uint64_t lane_id = (uint64_t)s->worker_id << 32 | s->slot;
    if (!e->head.count || lane_id != e->at_id) {
        uint32_t known = e->lanes.count;
        uint32_t number = number_of(&e->lanes, lane_id);
        *flags |= LANE;
        p = put(p, number);
        if (number == known) p = put_lane(e, p, number, s);
        e->at = number;
        e->at_id = lane_id;
    }
    if (!e->head.count || s->op_id != e->op_id) {
        uint32_t known = e->ops.count;
        e->op = number_of(&e->ops, s->op_id);
        e->op_id = s->op_id;
        *flags |= OP;
        p = put(p, e->op);
        if (e->op == known) p = put_name(p, s->op);
    }
    return p;
}

static unsigned has_of(const struct mr_trace_span *s)
{
    return (s->ready ? HAS_READY : 0u) | (s->sent ? HAS_SENT : 0u) |
           (s->started ? HAS_STARTED : 0u) | (s->finished ? HAS_FINISHED : 0u) |
           (s->accounted ? HAS_ACCOUNTED : 0u);
}

/* Writes the times that the mask `has` names, and updates the lane. */
static unsigned char *put_times(
    unsigned char *p, struct lane *l, const struct mr_trace_span *s, unsigned has, unsigned *flags)
{
    uint64_t sent = s->sent / MR_TRACE_TICK_NS;
    uint64_t ready = s->ready / MR_TRACE_TICK_NS;
    uint64_t started = s->started / MR_TRACE_TICK_NS;
    uint64_t finished = s->finished / MR_TRACE_TICK_NS;
    uint64_t accounted = s->accounted / MR_TRACE_TICK_NS;
    if (has & HAS_SENT && sent != l->sent) {
        *flags |= SENT;
        p = put_difference(p, sent, l->accounted);
        l->sent = sent;
    }
    if (has & HAS_READY && ready != l->ready) {
        *flags |= READY;
        p = put_difference(p, ready, l->sent);
        l->ready = ready;
    }
    if (has & HAS_STARTED) p = put_difference(p, started, l->finished);
    if (has & HAS_FINISHED) {
        p = put_difference(p, finished, has & HAS_STARTED ? started : l->finished);
        l->finished = finished;
    }
    if (has & HAS_ACCOUNTED && accounted != l->accounted) {
        *flags |= ACCOUNTED;
        p = put_difference(p, accounted, l->finished);
        l->accounted = accounted;
    }
    uint64_t ran = has & HAS_STARTED && has & HAS_FINISHED ? finished - started : 0;
    uint64_t cpu = s->cpu_ns / MR_TRACE_TICK_NS;
    if (cpu != ran) {
        uint64_t difference = zigzag(cpu - ran);
        *flags |= CPU; /* ticks are below 2^58, so the shift loses no bit */
        p = put(p, cpu < difference ? cpu << 1 | 1 : difference << 1);
    }
    return p;
}

/* Returns the mask of the measurements that differ from what their absence means. */
static unsigned measured_of(const struct lane *l, const struct mr_trace_span *s)
{
    return (s->received / MR_TRACE_TICK_NS != l->received ? RECEIVED : 0u) |
           (s->inputs ? INPUTS : 0u) | (s->input_ns ? INPUT : 0u) | (s->output_ns ? OUTPUT : 0u) |
           (s->late_ns ? LATE : 0u) | (s->held ? HELD : 0u);
}

static unsigned char *put_measured(
    unsigned char *p, struct lane *l, const struct mr_trace_span *s, unsigned mask)
{
    uint64_t sent = s->sent / MR_TRACE_TICK_NS;
    uint64_t received = s->received / MR_TRACE_TICK_NS;
    *p++ = (unsigned char)mask;
    if (mask & RECEIVED) p = received ? put(p, zigzag(received - sent) + 1) : put(p, 0);
    l->received = received;
    if (mask & INPUTS) p = put_difference(p, s->inputs / MR_TRACE_TICK_NS, sent);
    if (mask & INPUT) p = put(p, s->input_ns / MR_TRACE_TICK_NS);
    if (mask & OUTPUT) p = put(p, s->output_ns / MR_TRACE_TICK_NS);
    if (mask & LATE) p = put(p, s->late_ns / MR_TRACE_TICK_NS);
    if (mask & HELD) p = put(p, s->held);
    return p;
}

int mr_trace_encoder_add(struct mr_trace_encoder *e, const struct mr_trace_span *s)
{
    if (e->lanes.count == NUMBERS_MAX || e->ops.count == NUMBERS_MAX ||
        e->bytes.n + SPAN_BYTES_MAX > MR_TRACE_BLOCK_BYTES_MAX)
        return MR_ELIMIT;
    size_t at = e->bytes.n;
    unsigned char *first = mr_buf_extend(&e->bytes, SPAN_BYTES_MAX);
    mr_assert(first);
    unsigned char *p = first + 1;
    unsigned flags = 0;
    if (!e->head.count) e->head.base = s->accounted / MR_TRACE_TICK_NS;
    p = put_who(e, p, s, &flags);
    struct lane *l = &e->lane[e->at];
    if (s->index != e->index + 1) {
        flags |= INDEX;
        p = put(p, zigzag((uint64_t)s->index - 1 - e->index));
    }
    e->index = s->index;
    unsigned has = has_of(s);
    bool was_tried = s->attempt != 1 || s->outcome, has_bytes = s->bytes != l->bytes;
    unsigned measured = measured_of(l, s);
    if (was_tried || has_bytes || has != HAS_ALL || measured) {
        flags |= MORE;
        *p++ = (unsigned char)(has | (has_bytes ? BYTES : 0u) | (was_tried ? TRIED : 0u) |
                               (measured ? MEASURED : 0u));
    }
    if (has_bytes) p = put(p, l->bytes = s->bytes);
    if (was_tried) {
        p = put(p, s->attempt);
        p = put(p, s->outcome);
    }
    if (measured) p = put_measured(p, l, s, measured);
    p = put_times(p, l, s, has, &flags);
    *first = (unsigned char)flags;
    e->bytes.n = at + (size_t)(p - first);
    e->head.count++;
    e->head.index_min = MR_MIN(e->head.index_min, s->index);
    e->head.index_max = MR_MAX(e->head.index_max, s->index);
    e->head.finished_min = MR_MIN(e->head.finished_min, end_of(s));
    e->head.finished_max = MR_MAX(e->head.finished_max, end_of(s));
    return MR_OK;
}

struct mr_str mr_trace_encoder_end(struct mr_trace_encoder *e)
{
    mr_assert(e->head.count);
    e->head.bytes = (uint32_t)(e->bytes.n - sizeof e->head);
    memcpy(e->bytes.p, &e->head, sizeof e->head);
    return mr_buf_str(&e->bytes);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct decoder {
    const unsigned char *p, *end;
    bool bad;
    unsigned version; /* 1 to 3: "mtr1" to "mtr3" */
    struct lane *lane;
    struct mr_str *workers, *ops;
    uint32_t lanes, lane_room, workers_count, workers_room, ops_count, ops_room;
    uint32_t at, op, index;
    uint64_t base;
};

static uint64_t take(struct decoder *d)
{
    uint64_t v = 0;
    for (unsigned shift = 0; d->p < d->end && shift < 64; shift += 7) {
        uint64_t byte = *d->p++;
        if (shift == 63 && byte > 1) break;
        v |= (byte & 127) << shift;
        if (byte < 128) return v;
    }
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
    m->mask = d->p < d->end ? *d->p++ : ~0u;
    if (m->mask & ~(unsigned)(RECEIVED | INPUTS | INPUT | OUTPUT | LATE | HELD)) d->bad = true;
    if (m->mask & RECEIVED) m->received = take(d);
    if (m->mask & INPUTS) m->inputs = take_difference(d, 0);
    if (m->mask & INPUT) s->input_ns = take(d) * MR_TRACE_TICK_NS;
    if (m->mask & OUTPUT) s->output_ns = take(d) * MR_TRACE_TICK_NS;
    if (m->mask & LATE) s->late_ns = take(d) * MR_TRACE_TICK_NS;
    if (m->mask & HELD) s->held = take_u32(d);
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
    s->inputs = s->input_ns = s->output_ns = s->late_ns = 0;
    if (flags & MORE) has = take_more(d, l, s, &is_measured);
    if (is_measured) take_measured(d, &m, s);
    s->bytes = l->bytes;
    if (index > UINT32_MAX || has & ~HAS_ALL) d->bad = true;
    d->index = s->index = (uint32_t)index;
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
