/* A block of events has the head of a block of spans (internal.h) with KIND_EVENTS, and one message
 * in the wire format of protobuf for each event. */
#include "store/meta/trace/events.h"

#include "base/limits.h"
#include "base/protowire.h"
#include "base/utf8.h"
#include "store/meta/trace/internal.h"

enum { F_EVENT = 1 };
enum { F_KIND = 1, F_AT, F_SINCE, F_INCARNATION, F_JOB, F_SLOTS, F_NAME };

void mr_trace_events_begin(struct mr_buf *block, mr_job_id segment)
{
    const struct head h = {.magic = MAGIC,
        .kind = KIND_EVENTS,
        .job = segment.v,
        .finished_min = UINT64_MAX,
        .index_min = UINT32_MAX};
    mr_buf_clear(block);
    mr_buf_add(block, &h, sizeof h);
}

static void add_number(struct mr_buf *b, uint32_t field, uint64_t v)
{
    if (v) mr_protowire_add_varint(b, field, v);
}

void mr_trace_events_add(struct mr_buf *block, const struct mr_trace_event *e)
{
    struct head h;
    memcpy(&h, block->p, sizeof h);
    size_t began = mr_protowire_begin(block, F_EVENT);
    mr_protowire_add_varint(block, F_KIND, e->kind);
    mr_protowire_add_varint(block, F_AT, e->at);
    add_number(block, F_SINCE, e->since);
    add_number(block, F_INCARNATION, e->incarnation);
    add_number(block, F_JOB, e->job.v);
    add_number(block, F_SLOTS, e->slots);
    if (e->name.n && e->name.n <= MR_TRACE_NAME_BYTES_MAX)
        mr_protowire_add_bytes(block, F_NAME, e->name);
    mr_protowire_end(block, began);
    h.count++;
    h.finished_min = MR_MIN(h.finished_min, e->at);
    h.finished_max = MR_MAX(h.finished_max, e->at);
    h.bytes = (uint32_t)(block->n - sizeof h);
    if (!block->failed) memcpy(block->p, &h, sizeof h);
}

static int one_event(struct mr_str bytes, mr_trace_event_fn fn, void *ctx)
{
    struct mr_protowire_reader r = mr_protowire_read(bytes);
    struct mr_protowire_field f;
    struct mr_trace_event e = {0};
    int err;
    while (!(err = mr_protowire_next(&r, &f))) {
        switch (f.number) {
        case F_KIND: e.kind = (enum mr_trace_event_kind)f.value; break;
        case F_AT: e.at = f.value; break;
        case F_SINCE: e.since = f.value; break;
        case F_INCARNATION: e.incarnation = f.value; break;
        case F_JOB: e.job.v = f.value; break;
        case F_SLOTS: e.slots = (uint32_t)MR_MIN(f.value, MR_SLOTS_MAX); break;
        case F_NAME: e.name = f.bytes; break;
        default: break; /* a field of a later version */
        }
    }
    if (err != MR_ENOENT || !mr_utf8_is_valid(e.name)) return MR_EFORMAT;
    fn(ctx, &e);
    return MR_OK;
}

int mr_trace_events_decode(struct mr_str block, mr_trace_event_fn fn, void *ctx)
{
    struct head h;
    if (block.n < sizeof h) return MR_EFORMAT;
    memcpy(&h, block.p, sizeof h);
    if (h.magic != MAGIC || h.bytes != block.n - sizeof h) return MR_EFORMAT;
    if (h.kind != KIND_EVENTS) return MR_OK;
    struct mr_protowire_reader r =
        mr_protowire_read(mr_str_of(block.p + sizeof h, block.n - sizeof h));
    struct mr_protowire_field f;
    int err;
    while (!(err = mr_protowire_next(&r, &f)))
        if (f.number == F_EVENT && f.type == MR_PROTOWIRE_BYTES) {
            err = one_event(f.bytes, fn, ctx);
            if (err) return err;
        }
    return err == MR_ENOENT ? MR_OK : MR_EFORMAT;
}
