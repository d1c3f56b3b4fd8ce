/* Writes the spans of a block (codec.h, internal.h). */
#include "store/meta/trace/internal.h"

#include "base/alloc.h"
#include "base/index.h"
#include "base/utf8.h"

static uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static uint64_t end_of(const struct mr_trace_span *s)
{
    return s->finished ? s->finished : s->accounted;
}

/* The numbers that a block gives to the ids of its lanes, its workers or its operators: 0, 1, … in
 * the order in which the ids first appear in the block. */
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
    uint32_t index;    /* task index of the last span */
    uint64_t distance; /* the last span's index minus its last_input */
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
    e->distance = 0;
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

/* A lane is an executor thread: a slot of a worker. Writes the worker and the slot of a lane that
 * is new in the block. The caller has written the lane's number. */
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

/* Writes the times that the mask `has` names, and the CPU time. `l` is the span's lane (its
 * executor thread). The times in `l` become those of this span. */
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

/* Returns the mask of the measurements to write. RECEIVED is not written if it equals the lane's
 * `received`. LAST is the span's index minus the index of its last input. It is not written if it
 * equals `e->distance`, which is the LAST of the span before. Every other measurement is not
 * written if it is 0. */
static unsigned measured_of(
    const struct mr_trace_encoder *e, const struct lane *l, const struct mr_trace_span *s)
{
    return (s->received / MR_TRACE_TICK_NS != l->received ? RECEIVED : 0u) |
           (s->inputs ? INPUTS : 0u) | (s->input_ns ? INPUT : 0u) | (s->output_ns ? OUTPUT : 0u) |
           (s->late_ns ? LATE : 0u) | (s->held ? HELD : 0u) | (s->delayed_ns ? DELAYED : 0u) |
           (s->room_ns ? ROOM : 0u) | (s->training ? TRAINING : 0u) |
           ((uint64_t)s->index - s->last_input != e->distance ? LAST : 0u);
}

static unsigned char *put_measured(struct mr_trace_encoder *e, unsigned char *p, struct lane *l,
    const struct mr_trace_span *s, unsigned mask)
{
    uint64_t sent = s->sent / MR_TRACE_TICK_NS;
    uint64_t received = s->received / MR_TRACE_TICK_NS;
    p = put(p, mask);
    if (mask & RECEIVED) p = received ? put(p, zigzag(received - sent) + 1) : put(p, 0);
    l->received = received;
    if (mask & INPUTS) p = put_difference(p, s->inputs / MR_TRACE_TICK_NS, sent);
    if (mask & INPUT) p = put(p, s->input_ns / MR_TRACE_TICK_NS);
    if (mask & OUTPUT) p = put(p, s->output_ns / MR_TRACE_TICK_NS);
    if (mask & LATE) p = put(p, s->late_ns / MR_TRACE_TICK_NS);
    if (mask & HELD) p = put(p, s->held);
    if (mask & LAST) {
        e->distance = (uint64_t)s->index - s->last_input;
        p = put_difference(p, s->index, s->last_input);
    }
    if (mask & DELAYED) p = put(p, s->delayed_ns / MR_TRACE_TICK_NS);
    if (mask & ROOM) p = put(p, s->room_ns / MR_TRACE_TICK_NS);
    if (mask & TRAINING) p = put(p, s->training);
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
    unsigned measured = measured_of(e, l, s);
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
    if (measured) p = put_measured(e, p, l, s, measured);
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

void mr_trace_encoder_numbers(
    const struct mr_trace_encoder *e, struct mr_trace_encoder_numbers *out)
{
    *out = (struct mr_trace_encoder_numbers){.lanes_count = e->lanes.count,
        .workers_count = e->workers.count,
        .ops_count = e->ops.count,
        .workers = e->workers.ids,
        .ops = e->ops.ids};
}

struct mr_trace_encoder_lane mr_trace_encoder_lane(const struct mr_trace_encoder *e, uint32_t lane)
{
    mr_assert(lane < e->lanes.count);
    return (struct mr_trace_encoder_lane){e->lane[lane].worker, e->lane[lane].slot};
}

void mr_trace_encoder_last(const struct mr_trace_encoder *e, uint32_t *lane, uint32_t *op)
{
    *lane = e->at;
    *op = e->op;
}

struct mr_str mr_trace_encoder_end(struct mr_trace_encoder *e)
{
    mr_assert(e->head.count);
    e->head.bytes = (uint32_t)(e->bytes.n - sizeof e->head);
    memcpy(e->bytes.p, &e->head, sizeof e->head);
    return mr_buf_str(&e->bytes);
}
