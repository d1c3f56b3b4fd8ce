/* A block of events has the head of a block of spans (internal.h) with KIND_EVENTS, and one message
 * in the wire format of protobuf for each event. */
#include "store/meta/trace/events.h"

#include "base/limits.h"
#include "base/protowire.h"
#include "base/utf8.h"
#include "store/meta/trace/internal.h"

enum {
    F_KIND = 1,
    F_AT,
    F_SINCE,
    F_INCARNATION,
    F_JOB,
    F_SLOTS,
    F_NAME,
    F_NAMESPACE,
    F_PROCESSORS
};

void mr_trace_events_begin(struct mr_buf *block, mr_job_id segment)
{
    mr_trace__records_begin(block, KIND_EVENTS, segment);
}

static void add_text(struct mr_buf *b, uint32_t field, struct mr_str text)
{
    if (text.n && text.n <= MR_TRACE_NAME_BYTES_MAX) mr_protowire_add_bytes(b, field, text);
}

static void add_number(struct mr_buf *b, uint32_t field, uint64_t v)
{
    if (v) mr_protowire_add_varint(b, field, v);
}

void mr_trace_events_add(struct mr_buf *block, const struct mr_trace_event *e)
{
    size_t began = mr_trace__record_begin(block);
    mr_protowire_add_varint(block, F_KIND, e->kind);
    mr_protowire_add_varint(block, F_AT, e->at);
    add_number(block, F_SINCE, e->since);
    add_number(block, F_INCARNATION, e->incarnation);
    add_number(block, F_JOB, e->job.v);
    add_number(block, F_SLOTS, e->slots);
    add_number(block, F_PROCESSORS, e->processors);
    add_text(block, F_NAME, e->name);
    add_text(block, F_NAMESPACE, e->name_space);
    mr_trace__record_end(block, began, e->at);
}

struct decoding {
    mr_trace_event_fn fn;
    void *ctx;
};

static int one_event(void *ctx, struct mr_str bytes)
{
    const struct decoding *d = ctx;
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
        case F_PROCESSORS: e.processors = (uint32_t)MR_MIN(f.value, UINT32_MAX); break;
        case F_NAME: e.name = f.bytes; break;
        case F_NAMESPACE: e.name_space = f.bytes; break;
        default: break; /* a field of a later version */
        }
    }
    if (err != MR_ENOENT || !mr_utf8_is_valid(e.name) || !mr_utf8_is_valid(e.name_space))
        return MR_EFORMAT;
    d->fn(d->ctx, &e);
    return MR_OK;
}

int mr_trace_events_decode(struct mr_str block, mr_trace_event_fn fn, void *ctx)
{
    struct decoding d = {fn, ctx};
    return mr_trace__records_decode(block, KIND_EVENTS, one_event, &d);
}
